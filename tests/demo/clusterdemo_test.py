"""The demo on a cluster, told through to its report, with pods, steps and a Breakpoint that the test makes up."""

import contextlib
import io
import pathlib
import types
from unittest.mock import patch

import clusterdemo
from clusterdemo import PLAIN, Demonstration
from endstates_test import GOOD as STATES
from failure import Failure
from podlogs import FirstStep
from selfcheck import outcomes_of, refused, said
from story import Story
from timeline import CLUSTER_EVENTS, Entry

TIMELINE = [Entry(1.0 + place, name, name) for place, name in enumerate((*CLUSTER_EVENTS, "pods_back", "restored"))]


def life(attempt, first, last):
    return [
        {"attempt": attempt, "step": step, "rank": rank, "time_ms": float(1000 * attempt + step)}
        for rank in range(4)
        for step in range(first, last + 1)
    ]


class Logs:
    def __init__(self, old, new):
        self._steps = {"old": old, "new": new}

    def follow(self, pod):
        pass

    def await_ends(self):
        pass

    def steps(self, pods):
        return [step for pod in pods.values() for step in self._steps[pod["uid"]]]

    def first_step(self, pods):
        first = min(self.steps(pods), key=lambda step: step["step"])
        return FirstStep(1.0, first["step"], first["attempt"])


class Cluster(Demonstration):
    """The pods have made the steps `old` and then `new`; step `seen` was seen before the fault, and `saved` is what the
    Breakpoint says."""

    def __init__(self, old, new, *, seen=40, saved=41, hashes=None):
        self.kubernetes = types.SimpleNamespace(embedded=False, create=lambda *_: None)
        self.arguments = types.SimpleNamespace(fault="evict", target="rank", pod=0)
        self.namespace = "demo"
        self.story = Story()
        self.logs = Logs(old, new)
        self.ranks = types.SimpleNamespace(last_step=lambda pods: seen)
        breakpoint_ = {"metadata": {"name": "digits-1"}, "status": {"step": saved}}
        self.breakpoints = types.SimpleNamespace(first=lambda *_: (5.0, breakpoint_))
        self.hashes = hashes or {
            "digits-plain-initial": STATES.initial.sha256,
            "digits-plain": STATES.undisturbed.sha256,
            "digits": STATES.disturbed.sha256,
        }

    def told(self):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed), patch.object(clusterdemo, "digits_job", lambda *_, **__: {}):
            return self._run(), printed.getvalue()

    def _running_pods(self, job, other_than=None):
        uid = "new" if other_than else "old"
        return [{"metadata": {"name": f"{job}-worker-0"}, "uid": uid}]

    def _break(self, victim, old):
        return 1.0

    def _timeline(self, at, old, new, restored):
        return TIMELINE

    def _wait_completed(self, job):
        pass

    def _run_in_pod(self, name, command):
        return self.hashes[pathlib.Path(command[1]).stem] if command[0].endswith("hash_tensors") else ""


GOOD = (life(1, 1, 41), life(2, 42, 200))


def a_job_that_lost_nothing_is_well():
    report, printed = Cluster(*GOOD).told()
    yield report["faults"], []
    yield (
        {name: report[name] for name in ("step_at_fault", "last_step_committed", "step_saved", "first_step_after")},
        {
            "step_at_fault": 40,
            "last_step_committed": 41,
            "step_saved": 41,
            "first_step_after": 42,
        },
    )
    yield (report["fault"], report["target"], report["breakpoint"]), ("evict", "pod", "digits-1")
    yield "eviction of pod digits-worker-0, which trains at step 40" in printed, True


def a_lost_step_is_told():
    yield said(Cluster(life(1, 1, 42), GOOD[1]).told()[0]["faults"], "1 step was lost"), True


def a_step_that_was_seen_and_was_never_logged_is_told():
    yield said(Cluster(*GOOD, seen=43).told()[0]["faults"], "step 43 was seen committed from outside"), True


def the_life_that_was_broken_counts():
    """The third one of this job, whose first pods made two of them."""
    old = [*life(1, 1, 20), *life(2, 21, 41)]
    report = Cluster(old, life(3, 42, 200)).told()[0]
    yield (report["last_step_committed"], report["first_step_after"]), (41, 42)
    yield said(report["faults"][:1], "rank 0 began attempt 2 with step 21"), True


def the_end_of_each_job_is_its_own():
    report = Cluster(*GOOD).told()[0]
    yield report["weights_sha256"], STATES.disturbed.sha256
    other = {"digits-plain-initial": "ab" * 32, PLAIN: "cd" * 32, "digits": "0e" * 32}
    report = Cluster(*GOOD, hashes=other).told()[0]
    yield (
        (
            report["weights_sha256_initial"],
            report["weights_sha256_undisturbed"],
            report["weights_sha256"],
        ),
        ("ab" * 32, "cd" * 32, "0e" * 32),
    )
    yield any("the final states differ" in fault for fault in report["faults"]), True


def a_log_that_was_cut_is_told():
    old = [step for step in life(1, 1, 41) if step["rank"] != 2 or step["step"] < 30]
    yield refused(lambda: Cluster(old, GOOD[1]).told(), Failure, "not counted", "the log of rank 2"), True


def outcomes():
    return outcomes_of(
        "cluster-demo",
        (
            a_job_that_lost_nothing_is_well,
            a_lost_step_is_told,
            a_step_that_was_seen_and_was_never_logged_is_told,
            the_life_that_was_broken_counts,
            the_end_of_each_job_is_its_own,
            a_log_that_was_cut_is_told,
        ),
    )
