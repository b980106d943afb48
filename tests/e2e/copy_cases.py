"""Copies that are made while training goes on: they count where nobody is left who could save."""

import contextlib
import json
import os
import signal

from kubernetes import wait_for
from ranks import SIDECAR
from recovery import count_steps, expect_recovered
from stage import Cases, expect

CASES = Cases()
case = CASES.case

PERIOD_STEPS = 40


def periodic_steps(scene, pods):
    """Of the checkpoints that the sidecars' logs tell of, in order."""
    steps = []
    for name in pods:
        for line in scene.kubernetes.log(scene.namespace, name, SIDECAR).splitlines():
            with contextlib.suppress(ValueError):
                entry = json.loads(line)
                if entry.get("msg") == "periodic checkpoint":
                    steps.append(int(entry["step"]))
    return sorted(steps)


def kill_everything(scene, pods, containers):
    """All processes of these containers of all pods, at once."""
    victims = [
        process["pid"]
        for container in containers
        for name in pods
        for process in scene.kubernetes.processes(scene.namespace, name, container)
    ]
    for pid in victims:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


@case(node=True)
def all_ranks_killed_with_shadows_keep_what_all_had_committed(site, scene):
    """Nobody holds the model any more; the sidecars write the breakpoint from the copies that the ranks have left."""
    scene.submit(annotations={"rekindle.dev/shadow-every": "1 step"})
    old = scene.training(steps=20)
    before = scene.last_step(old)
    kill_everything(scene, old, ["worker"])
    found = expect_recovered(scene, old, before, retries=1, survivors=0, nobody_left=True)
    return f"step {before} seen before the kill, saved {found.status['step']} with {found.status['ranksSaved']} ranks alive"


@case(node=True)
def everything_killed_resumes_from_the_periodic_checkpoint(site, scene):
    """As in a power cut: ranks and sidecars of all pods at once. What is left is what the storage has. Without a policy
    for PodFailed Volcano would end the job: all of its pods have failed."""
    scene.submit(
        policies={"PodEvicted": "RestartJob", "PodFailed": "RestartJob"},
        annotations={"rekindle.dev/checkpoint-every": f"{PERIOD_STEPS} steps", "rekindle.dev/keep": "2"},
    )
    old = scene.training()
    wait_for(
        lambda: len(periodic_steps(scene, old)) >= 3, 120, "three periodic checkpoints in the sidecars' logs", pause=0.5
    )
    saved = periodic_steps(scene, old)
    kill_everything(scene, old, [SIDECAR, "worker"])
    found = scene.resumed(old)
    steps = count_steps(scene, found, None)
    expect(
        steps.step_saved >= saved[-1],
        f"training resumed with step {steps.first_step_after}, although step {saved[-1]} was durable",
    )
    expect(
        0 <= steps.steps_lost <= 2 * PERIOD_STEPS,
        f"of {steps.last_step_committed} steps {steps.steps_lost} were lost; one period is {PERIOD_STEPS}",
    )
    return f"periodic checkpoints of steps {saved}"
