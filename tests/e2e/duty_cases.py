"""What is nobody's fault: suspending, scaling, deleting. No Breakpoint, no warning, no error."""

from kubernetes import JOBS, wait_for
from operatorpod import operator_has_caught_up
from polling import poll
from recovery import expect_no_step_lost, expect_quiet, wait_gone
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
    expect_no_step_lost(scene, before, scene.resumed(old))
    expect_quiet(scene, scene.began)


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
    expect_no_step_lost(scene, before, scene.resumed(old, seconds=180), ranks=3, ranks_after=2)
    expect_quiet(scene, scene.began)


@case()
def deleted_job_makes_no_breakpoint(site, scene):
    scene.submit()
    scene.training()
    scene.kubernetes.delete(JOBS, scene.namespace, "digits")
    wait_gone(scene)
    operator_has_caught_up(scene)  # what would be wrong has come by now
    expect_quiet(scene, scene.began)


@case()
def job_of_the_same_name_resumes_from_the_checkpoint(site, scene):
    scene.submit()
    old = scene.training()
    uid = scene.job()["metadata"]["uid"]
    before = scene.last_step(old)
    scene.kubernetes.delete(JOBS, scene.namespace, "digits")
    submit_until_scheduled(scene)
    expect(scene.job()["metadata"]["uid"] != uid, "the job should be another one")
    expect_no_step_lost(scene, before, scene.resumed(old))
    expect_equal([one["metadata"]["name"] for one in scene.breakpoint_list()], [], "Breakpoints")


def submit_until_scheduled(scene, tries=4):
    """Volcano 1.14 clears a deleted job out of its cache some seconds after its pods have gone, by name, and tells
    nobody: a new one of that name that comes before is cleared away with it and stays Pending for ever. Such a one has
    made no step, and the next one is not cleared away."""
    for _ in range(tries):
        wait_gone(scene)
        scene.submit()

        def scheduled():
            return any(pod["spec"].get("nodeName") for pod in scene.kubernetes.pods_of(scene.namespace, "digits"))

        if poll(scheduled, 12, pause=0.3):
            return
        scene.kubernetes.delete(JOBS, scene.namespace, "digits")
    expect(False, f"{tries} jobs of the same name after each other were not scheduled")
