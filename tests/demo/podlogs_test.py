"""What the logs of pods and the watch tell of a recovery, from planted lines."""

import json
import pathlib
import tempfile
import types

from failure import Failure
from podlogs import FirstStep, PodLogs, first_made, lines_of, recovery_told, steps_in
from podtimes import gone_and_back
from selfcheck import outcomes_of, refused
from timeline import ReportedEvent


def line(seconds, **entry):
    return f"2026-01-01T00:00:{seconds:02d}Z {json.dumps(entry)}"


EPOCH = 1767225600  # 2026-01-01


def lines_have_a_moment():
    text = "\n".join(
        (
            "2026-01-01T00:00:01Z for people",
            line(2, msg="a"),
            line(9, msg="b", ts="2026-01-01T00:00:03.123456789Z"),
            "2026-01-01T00:00:04Z {cut sho",
        )
    )
    yield (
        [(round(moment, 6), entry["msg"]) for moment, entry in lines_of(text, 10.0 - EPOCH)],
        [(12.0, "a"), (13.123456, "b")],
    )


SAVE = [
    (1.0, {"msg": "a preStop hook asks for a breakpoint"}),
    (2.0, {"msg": "breakpoint", "state": "collecting"}),
    (3.0, {"msg": "breakpoint", "state": "writing", "step": 7}),
    (2.5, {"msg": "breakpoint", "state": "writing", "step": 7}),
    (4.0, {"msg": "breakpoint", "state": "durable", "step": 7}),
    (5.0, {"msg": "something else"}),
]


def a_save_is_told_once():
    yield (
        recovery_told(SAVE),
        [
            ReportedEvent(1.0, "hook", "the preStop hook asks for a breakpoint"),
            ReportedEvent(2.0, "hold", "every rank is asked to hold still"),
            ReportedEvent(2.5, "agreed", "the living ranks agree on step 7"),
            ReportedEvent(4.0, "durable", "the checkpoint of step 7 is complete on disk"),
        ],
    )
    yield recovery_told([]), []


def a_death_counts_before_the_save_only():
    early, late = (0.5, {"msg": "a rank died"}), (4.5, {"msg": "a rank died"})
    yield [one.name for one in recovery_told([early, *SAVE])], ["rank_died", "hook", "hold", "agreed", "durable"]
    yield [one.name for one in recovery_told([late, *SAVE])], ["hook", "hold", "agreed", "durable"]
    yield [one.name for one in recovery_told([late])], ["rank_died"]


def steps_are_those_of_a_rank():
    made = [
        (9.0, {"step": 8, "rank": 1, "attempt": 2}),
        (8.0, {"step": 8, "rank": 0, "attempt": 2}),
        (7.0, {"step": 9, "rank": 0, "attempt": 2}),
    ]
    lines = [(1.0, {"step": 1}), (1.0, {"rank": 1}), *made]
    yield steps_in(lines), made
    yield first_made(lines), FirstStep(8.0, 8, 2)
    yield first_made([]), None


def pod(uid, is_ready=False):
    status = {"conditions": [{"type": "Ready", "status": "True"}]} if is_ready else {}
    return {"metadata": {"uid": uid}, "status": status}


WATCHED = [
    (1.0, "ADDED", pod("old-0", True)),
    (2.0, "DELETED", pod("old-0")),
    (3.0, "DELETED", pod("other")),
    (4.0, "DELETED", pod("old-1")),
    (5.0, "ADDED", pod("new-0")),
    (6.0, "MODIFIED", pod("new-0", True)),
    (7.0, "MODIFIED", pod("new-0", True)),
    (6.5, "MODIFIED", pod("new-1", True)),
]


def pods_are_gone_and_back():
    yield (
        gone_and_back(WATCHED, {"old-0", "old-1"}, {"new-0", "new-1"}),
        [ReportedEvent(4.0, "pods_gone", "the old pods are gone"), ReportedEvent(6.5, "pods_back", "the new pods run")],
    )


def what_did_not_happen_is_not_told():
    yield gone_and_back(WATCHED[:3], {"old-0", "old-1"}, {"new-0"}), []
    yield [one.name for one in gone_and_back(WATCHED[:6], {"old-0", "old-1"}, {"new-0", "new-1"})], ["pods_gone"]


def a_log_is_read_to_its_end():
    def following(*codes):
        """Logs whose followers have ended with these codes, or go on."""
        followers = [types.SimpleNamespace(poll=lambda code=code: code) for code in codes]
        started = types.SimpleNamespace(start_kubectl=lambda *_, **__: followers.pop())
        with tempfile.TemporaryDirectory() as folder:
            logs = PodLogs(started, "demo", pathlib.Path(folder))
            logs.follow({"metadata": {"name": "digits-worker-0", "uid": "0123456789"}})
        return logs

    yield following(0, 0).await_ends(0), None
    yield refused(lambda: following(0, None).await_ends(0), Failure, "not all of its logs have come to theirs"), True


def outcomes():
    return outcomes_of(
        "pod-logs",
        (
            lines_have_a_moment,
            a_save_is_told_once,
            a_death_counts_before_the_save_only,
            steps_are_those_of_a_rank,
            pods_are_gone_and_back,
            a_log_is_read_to_its_end,
            what_did_not_happen_is_not_told,
        ),
    )
