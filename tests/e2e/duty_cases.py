"""What is nobody's fault: suspending, scaling, deleting. No Breakpoint, no warning, no error."""

import time

from kubernetes import JOBS, wait_for
from recovery import expect_quiet, wait_gone
from stage import Cases, expect, expect_equal

CASES = Cases()
case = CASES.case

COMMANDS = "apis/bus.volcano.sh/v1alpha1/namespaces/{namespace}/commands"


def command(scene, action, job="digits"):
    """As `vcctl job suspend` and `vcctl job resume` do."""
    owner = {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "name": job,
        "uid": scene.job(job)["metadata"]["uid"],
        "controller": True,
    }
    scene.kubernetes.create(
        COMMANDS,
        scene.namespace,
        {
            "apiVersion": "bus.volcano.sh/v1alpha1",
            "kind": "Command",
            "metadata": {
                "generateName": f"{job}-{action.lower()}-",
                "namespace": scene.namespace,
                "ownerReferences": [owner],
            },
            "target": owner,
            "action": action,
        },
    )


@case()
def suspended_job_makes_no_breakpoint_and_resumes(site, scene):
    scene.submit()
    old = scene.training()
    before = scene.last_step(old)
    command(scene, "AbortJob")
    scene.reached("Aborted", seconds=150)
    wait_for(lambda: not scene.kubernetes.pods_of(scene.namespace, "digits"), 90, "the suspended job's pods to be gone")
    expect_quiet(scene, scene.began)
    command(scene, "ResumeJob")
    new = scene.training(other_than=old)
    first = scene.first_step(new)
    expect(first > before, f"step {before} was made before the job was suspended; it resumed with step {first}")
    expect_quiet(scene, scene.began)
    return f"resumed with step {first}"


@case()
def scaled_down_job_makes_no_breakpoint(site, scene):
    """Volcano allows replicas and minAvailable to change; the rest go on with what was saved."""
    scene.submit(replicas=3, ranks_per_pod=1)
    old = scene.training(pods=3)
    before = scene.last_step(old)
    job = scene.job()
    job["spec"]["minAvailable"] = 2
    job["spec"]["tasks"][0]["replicas"] = 2
    job["spec"]["tasks"][0]["minAvailable"] = 2
    scene.kubernetes.patch(
        JOBS, scene.namespace, "digits", {"spec": {"minAvailable": 2, "tasks": job["spec"]["tasks"]}}
    )
    gone = old["digits-worker-2"]["metadata"]["uid"]
    wait_for(
        lambda: gone not in {pod["metadata"]["uid"] for pod in scene.kubernetes.pods_of(scene.namespace, "digits")},
        120,
        "the third pod to be gone",
    )
    new = scene.training(pods=2, other_than=old, seconds=180)
    first = scene.first_step(new)
    expect(first > before, f"step {before} was made before the job was scaled; it goes on with step {first}")
    expect_quiet(scene, scene.began)
    return f"goes on with step {first}"


@case()
def deleted_job_makes_no_breakpoint(site, scene):
    scene.submit()
    scene.training()
    scene.kubernetes.delete(JOBS, scene.namespace, "digits")
    wait_gone(scene)
    time.sleep(3)  # what would be wrong would come now
    expect_quiet(scene, scene.began)


@case()
def job_of_the_same_name_resumes_from_the_checkpoint(site, scene):
    scene.submit()
    old = scene.training()
    uid = scene.job()["metadata"]["uid"]
    before = scene.last_step(old)
    scene.kubernetes.delete(JOBS, scene.namespace, "digits")
    wait_gone(scene)
    # Volcano 1.14 clears a deleted job out of its cache some seconds after its pods have gone, by name: a new one of that name that comes before would be
    # cleared away with it and stay Pending for ever.
    time.sleep(8)
    scene.submit()
    new = scene.training()
    expect(scene.job()["metadata"]["uid"] != uid, "the job should be another one")
    first = scene.first_step(new)
    expect(
        first > before,
        f"step {before} was made before the job was deleted; the next one of its name began with step {first}",
    )
    expect_equal([one["metadata"]["name"] for one in scene.breakpoint_list()], [], "Breakpoints")
    return f"resumed with step {first}"
