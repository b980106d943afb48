"""Faults, one by one: each job comes back at the step after the one that was saved."""

import contextlib
import json
import os
import pathlib
import shutil
import signal

from digitsjob import EXAMPLES, digits_job, example
from kubernetes import BREAKPOINTS, JOBS, PODS, condition, ready, wait_for
from podlogs import PodLogs
from ranks import SIDECAR, Ranks, process_of, rank_processes
from recovery import (
    expect_no_other_life,
    expect_no_restart_by_volcano,
    expect_nothing_lost,
    expect_own_grace,
    expect_recovered,
    steps_lost,
)
from stage import Cases, expect, expect_equal
from stepjournal import journals_in_logs

CASES = Cases()
case = CASES.case

CLAIMS = "api/v1/namespaces/{namespace}/persistentvolumeclaims"
VOLUMES = "api/v1/persistentvolumes"


@case()
def evicted_pod_resumes_and_completes(site, scene):
    """The example as it stands, only shorter, through to its end."""
    scene.submit(steps=120, cpu_limit=None)
    old = scene.training()
    before = scene.last_step(old)
    scene.kubernetes.evict(scene.namespace, "digits-worker-1")
    found = expect_recovered(scene, old, before, retries=1)
    expect_equal(found.breakpoint["spec"]["trigger"], "PreStop", "the trigger")
    expect(
        "digits-worker-1 evicted" in found.breakpoint["spec"].get("reason", ""),
        f"the reason should name the eviction: {found.breakpoint['spec']}",
    )
    scene.reached("Completed", seconds=240)
    expect_equal(len(scene.breakpoint_list()), 1, "Breakpoints after the job has completed")
    return f"saved {found.status['step']}, agreed {found.status['agreedIn']}, durable {found.status['durableIn']}"


@case(level=None, node=True)  # another cluster's default class need not be one that nodes share
def example_runs_as_it_is_committed(site, scene):
    """storage.yaml and job.yaml as a user applies them, in a namespace where nothing was made before; a pod is evicted
    on the way."""
    namespace, kubernetes = "rk-e2e-example", site.kubernetes
    files = [word for name in ("storage.yaml", "job.yaml") for word in ("-f", str(EXAMPLES / name))]
    restricted = {"pod-security.kubernetes.io/enforce": "restricted"}
    with (
        kubernetes.namespace(namespace, restricted),
        contextlib.closing(kubernetes.watch(BREAKPOINTS, namespace)) as seen,
        contextlib.closing(PodLogs(kubernetes, namespace, scene.folder)) as logs,
    ):
        kubernetes.kubectl("-n", namespace, "apply", *files)
        claimed = wait_for(
            lambda: kubernetes.get(CLAIMS, namespace, "checkpoints")["spec"].get("volumeName"),
            30,
            "the claim to be bound",
        )
        ranks = Ranks(kubernetes, namespace)

        def running(other_than=()):
            pods = {pod["metadata"]["uid"]: pod for pod in kubernetes.pods_of(namespace, "digits")}
            fresh = {pod["metadata"]["name"]: pod for uid, pod in pods.items() if uid not in other_than}
            return fresh if len(fresh) == 2 and all(map(ready, fresh.values())) else None

        old = wait_for(running, 150, "the example to run", pause=0.3)
        for pod in old.values():
            logs.follow(pod)
        wait_for(lambda: ranks.last_step(old) >= 20, 60, "the example to make 20 steps", pause=0.3)
        kubernetes.evict(namespace, "digits-worker-0")
        _, one = seen.first(
            lambda _, one: (condition(one, "Restored") or {}).get("status") == "True",
            150,
            "the Breakpoint to be Restored",
        )

        uids = {pod["metadata"]["uid"] for pod in old.values()}
        new = wait_for(lambda: running(uids), 60, "the example's new pods to run", pause=0.3)
        for pod in new.values():
            logs.follow(pod)

        def phase():
            return kubernetes.get(JOBS, namespace, "digits").get("status", {}).get("state", {}).get("phase", "")

        ended = wait_for(
            lambda: phase() if phase() in ("Completed", "Failed", "Aborted", "Terminated") else None,
            300,
            "the example to end",
        )
        expect_equal(ended, "Completed", "the end of the example")
        logs.await_ends()
        journals = journals_in_logs([*logs.steps(old), *logs.steps(new)], ranks=4)
        lived = logs.first_step(new).attempt - 1
    free_volume(kubernetes, claimed)
    steps = steps_lost(journals, lived, one["status"]["step"], ranks_after=4)
    scene.losses.append(steps)
    expect_nothing_lost(steps)
    expect_no_other_life(scene, journals, steps_of_example(kubernetes))
    expect_equal(one["status"].get("firstStep"), steps.first_step_after, "status.firstStep of the Breakpoint")


def steps_of_example(kubernetes):
    """With how many job.yaml ends."""
    (container,) = example(kubernetes, "job.yaml")["spec"]["tasks"][0]["template"]["spec"]["containers"]
    (steps,) = [word.removeprefix("--steps=") for word in container["args"] if word.startswith("--steps=")]
    return int(steps)


def free_volume(kubernetes, name):
    """For the next claim, as the one who made the volume does."""
    folder = kubernetes.get(VOLUMES, "", name)["spec"].get("hostPath", {}).get("path")
    for left in pathlib.Path(folder).iterdir() if folder and kubernetes.embedded else []:
        shutil.rmtree(left) if left.is_dir() else left.unlink()
    kubernetes.patch(VOLUMES, "", name, {"spec": {"claimRef": None}})


@case()
def deleted_pod_with_pod_evicted_policy(site, scene):
    scene.submit(policies={"PodEvicted": "RestartJob"})
    old = scene.training()
    before = scene.last_step(old)
    scene.kubernetes.delete(PODS, scene.namespace, "digits-worker-0")
    found = expect_recovered(scene, old, before, retries=1)
    expect(
        "digits-worker-0 deleted" in found.breakpoint["spec"].get("reason", ""),
        f"the reason should name the deletion: {found.breakpoint['spec']}",
    )


@case()
def deleted_pod_without_policies(site, scene):
    """Nobody but the operator restarts it: by deletes with each pod's own grace."""
    scene.submit(policies={})
    old = scene.training()
    before = scene.last_step(old)
    scene.kubernetes.delete(PODS, scene.namespace, "digits-worker-1")
    expect_recovered(scene, old, before, retries=0)
    expect_own_grace(scene, old)
    expect_no_restart_by_volcano(scene)


def kill_a_rank(scene, policies, retries, pod="digits-worker-1", target="rank"):
    scene.submit(policies=policies)
    old = scene.training()
    pid = process_of(scene.kubernetes, scene.namespace, pod, target)
    before = scene.last_step(old)
    os.kill(pid, signal.SIGKILL)
    found = expect_recovered(
        scene, old, before, retries=retries, survivors=2
    )  # the other pod's; those of this one go soon after
    expect(
        found.breakpoint["spec"]["trigger"] in ("RankDied", "ContainerDied"),
        f"the trigger should tell of a death: {found.breakpoint['spec']}",
    )
    return old


@case(node=True)
def killed_rank_with_pod_evicted_policy(site, scene):
    """Volcano does not react to a failed pod here: one delete by the operator makes it."""
    kill_a_rank(scene, {"PodEvicted": "RestartJob"}, retries=1)


@case(node=True)
def killed_rank_with_pod_failed_policy(site, scene):
    """Volcano reacts by itself once the sidecar has let the pod end; the operator adds nothing."""
    kill_a_rank(scene, {"PodFailed": "RestartJob"}, retries=1, pod="digits-worker-0")


@case(node=True)
def killed_rank_without_policies(site, scene):
    old = kill_a_rank(scene, {}, retries=0)
    expect_own_grace(scene, old)
    expect_no_restart_by_volcano(scene)


@case(node=True)
def killed_launcher(site, scene):
    """Process 1 of the container, and with it the whole container at once."""
    kill_a_rank(scene, None, retries=1, target="launcher")


@case(node=True)
def killed_sidecar_leaves_training_alone(site, scene):
    """The sidecar comes back and protects again; its ranks notice nothing."""
    scene.submit()
    old = scene.training()
    victim = "digits-worker-1"
    processes = rank_processes(scene.kubernetes, scene.namespace, victim)
    pid = process_of(scene.kubernetes, scene.namespace, victim, "sidecar")
    before = scene.last_step(old)

    def connections():
        """That the other pod's sidecar has made so far."""
        return scene.kubernetes.log(scene.namespace, "digits-worker-0", SIDECAR).count("connected to a peer")

    connected = wait_for(connections, 30, "the sidecars to be connected")
    os.kill(pid, signal.SIGKILL)

    def back():
        pod = scene.kubernetes.get(PODS, scene.namespace, victim)
        sidecar = next(one for one in pod["status"]["initContainerStatuses"] if one["name"] == SIDECAR)
        return sidecar["restartCount"] > 0 and sidecar.get("started") and ready(pod)

    wait_for(back, 60, f"the sidecar of {victim} to come back")
    scene.trains_on(old, scene.last_step(old), steps=10)
    expect(scene.last_step(old) > before, "training should have gone on without the sidecar")
    expect_equal(
        rank_processes(scene.kubernetes, scene.namespace, victim), processes, "the processes of the main container"
    )
    expect_equal(scene.breakpoint_list(), [], "Breakpoints after the sidecar's death")
    wait_for(lambda: connections() > connected, 60, "the sidecars to find each other again")
    before = scene.last_step(old)
    scene.kubernetes.evict(scene.namespace, victim)
    expect_recovered(scene, old, before, retries=1)


@case()
def job_without_the_label_is_not_disturbed(site, scene):
    """Beside a protected one that breaks: no sidecar, nothing of ours on it, no restart."""
    plain = digits_job(scene.kubernetes, scene.namespace, file="plain.yaml", steps=1_000_000, cpu_limit="200m")
    scene.kubernetes.create(JOBS, scene.namespace, plain)
    scene.submit()
    old = scene.training()
    neighbours = wait_for(
        lambda: (
            [pod for pod in scene.kubernetes.pods_of(scene.namespace, "digits-plain") if ready(pod)][1:]
            and scene.kubernetes.pods_of(scene.namespace, "digits-plain")
        ),
        90,
        "the unlabelled job to run",
    )
    scene.kubernetes.evict(scene.namespace, "digits-worker-0")
    expect_recovered(scene, old, scene.last_step(old), retries=1)
    after = scene.kubernetes.pods_of(scene.namespace, "digits-plain")
    expect_equal(
        {pod["metadata"]["uid"] for pod in after},
        {pod["metadata"]["uid"] for pod in neighbours},
        "the pods of the unlabelled job",
    )
    job = scene.job("digits-plain")
    for object_ in (*after, job):
        for field in (
            object_["metadata"].get("labels", {}),
            object_["metadata"].get("annotations", {}),
            object_["spec"],
        ):
            text = (
                json.dumps({key: value for key, value in field.items() if "last-applied" not in key})
                .replace("rekindle.dev/digits:", "")
                .replace("--without-rekindle", "")
                .replace(scene.namespace, "")
            )
            expect("rekindle" not in text, f"something of ours is on {object_['metadata']['name']}: {text[:400]}")
    for pod in after:
        expect_equal(
            [one["restartCount"] for one in pod["status"]["containerStatuses"]],
            [0],
            f"restarts of {pod['metadata']['name']}",
        )
        expect(ready(pod), f"pod {pod['metadata']['name']} should still be Ready")
    expect_equal(job["status"].get("retryCount", 0), 0, "retryCount of the unlabelled job")
    expect_equal(scene.events("digits-plain"), [], "our events on the unlabelled job")
