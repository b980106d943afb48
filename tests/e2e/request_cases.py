"""Breakpoints that people ask for."""

from kubernetes import BREAKPOINTS, condition
from ranks import logged_steps
from recovery import expect_no_step_lost
from stage import Cases, expect, expect_equal

CASES = Cases()
case = CASES.case


def ask(scene, name, job="digits"):
    """As a person writes it."""
    scene.kubernetes.apply(
        {
            "apiVersion": "rekindle.dev/v1alpha1",
            "kind": "Breakpoint",
            "metadata": {"name": name, "namespace": scene.namespace},
            "spec": {"jobRef": {"name": job}},
        }
    )


def outcome(scene, name, type_, seconds=60):
    return scene.breakpoints.first(
        lambda _, one: one["metadata"]["name"] == name and (condition(one, type_) or {}).get("status") == "True",
        seconds,
        f"Breakpoint {name} to be {type_}",
    )[1]


@case()
def breakpoint_by_hand_saves_and_training_goes_on(site, scene):
    scene.submit(more_arguments=["--log-every=1"])
    pods = scene.training()
    before = scene.last_step(pods)
    ask(scene, "now")
    one = outcome(scene, "now", "Durable")
    status = one["status"]
    expect(status.get("step", 0) >= before, f"step {before} was made before; saved was {status}")
    expect(
        bool(status.get("path")) and bool(status.get("manifestHash")),
        f"the status should tell the path and the hash: {status}",
    )
    expect_equal(status.get("state"), "Saved", "status.state")
    expect_equal(one["spec"].get("trigger", "User"), "User", "the trigger")
    scene.trains_on(pods, scene.last_step(pods), steps=10)
    ask(scene, "again")
    second = outcome(scene, "again", "Durable")["status"]
    expect(
        second["step"] > status["step"] and second["path"] != status["path"],
        f"the second one should be a newer checkpoint: {second} after {status}",
    )
    after = scene.kubernetes.pods_of(scene.namespace, "digits")
    expect_equal(
        {pod["metadata"]["uid"] for pod in after}, {pod["metadata"]["uid"] for pod in pods.values()}, "the pods"
    )
    expect_equal(scene.job()["status"].get("retryCount", 0), 0, "retryCount")
    steps = [
        line["step"]
        for line in logged_steps(scene.kubernetes.log(scene.namespace, "digits-worker-0", "worker"))
        if line["rank"] == 0
    ]
    expect_equal(steps, list(range(1, len(steps) + 1)), "the steps that rank 0 made, none twice and none left out")
    scene.kubernetes.evict(scene.namespace, "digits-worker-0")
    found = scene.recovered(pods, beyond=("now", "again"))
    expect_no_step_lost(scene, 0, found, found.status["step"])


@case()
def breakpoint_for_a_job_that_is_not_there_says_so(site, scene):
    ask(scene, "lost", job="nobody")
    one = outcome(scene, "lost", "Failed", 30)
    expect("nobody" in one["status"].get("message", ""), f"the message should name the job: {one['status']}")
    expect_equal(condition(one, "Failed")["reason"], "JobNotFound", "the reason")
    scene.kubernetes.delete(BREAKPOINTS, scene.namespace, "lost")
