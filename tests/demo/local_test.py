"""How the local demo breaks a run, and what it may cost."""

import random
import signal
import types

from failure import Failure
from faults_test import AFTER, BEFORE, Run, sleeping
from local import CHECKPOINT_EVERY, Plan, await_stopped, break_run, plan_of
from selfcheck import outcomes_of, refused
from trainingrun import STEPS


def only_a_killed_launcher_may_cost_steps():
    for fault, target in (("evict", "rank"), ("sigkill", "rank")):
        yield plan_of(fault, target, None), Plan(checkpoint_every=0, shadow_every="")
    plan = plan_of("sigkill", "launcher", None)
    yield plan, Plan(checkpoint_every=CHECKPOINT_EVERY, shadow_every="")
    # Otherwise a run that begins anew would pass.
    yield 2 * plan.checkpoint_every <= STEPS // 5, True


def a_planted_program_has_shadows_to_lose_a_step_from():
    yield plan_of("evict", "rank", "lose-a-step").shadow_every, "1 step"
    yield plan_of("sigkill", "rank", "lose-a-step"), Plan(0, "1 step")


def each_fault_hits_what_it_says():
    for fault, target, ends_with, hit in (
        ("evict", "rank", -signal.SIGTERM, "launcher"),
        ("sigkill", "launcher", -signal.SIGKILL, "launcher"),
        ("sigkill", "rank", -signal.SIGKILL, "rank 1"),
    ):
        with sleeping() as process:
            done = break_run(fault, target, Run(process, BEFORE, AFTER), random.Random(1))
            yield (process.wait(), done.kind, done.target), (ends_with, fault, hit)


def an_eviction_ends_with_its_own_code():
    def stopped(fault, code):
        return lambda: await_stopped(fault, types.SimpleNamespace(await_end=lambda seconds: code, failure=Failure))

    yield (stopped("evict", 143)(), stopped("sigkill", -9)()), (None, None)
    for fault, code in (("evict", 0), ("evict", -15), ("sigkill", 0), ("sigkill", 143)):
        yield refused(stopped(fault, code), Failure, f"ended with {code} when"), True


def outcomes():
    return outcomes_of(
        "local-demo",
        (
            only_a_killed_launcher_may_cost_steps,
            a_planted_program_has_shadows_to_lose_a_step_from,
            each_fault_hits_what_it_says,
            an_eviction_ends_with_its_own_code,
        ),
    )
