"""What the proof says of a run, told by example: a run with which all is well, and what may be wrong with it."""

import dataclasses

from endstates import EndStates, State
from endstates_test import GOOD as STATES
from proof import Observed, Recovery
from schedule import Schedule
from selfcheck import outcomes_of, refused, said
from stepjournal import LoggedStep
from steploss import StepLoss
from timeline import SAVED_EVENTS
from timeline_test import GOOD as TIMELINE


def life(attempt, first, last):
    return [LoggedStep(attempt, step, 0.0) for step in range(first, last + 1)]


RECOVERY = Recovery(
    what="SIGKILL to rank 1",
    attempt=1,
    step_at_fault=39,
    steps=StepLoss(last_step_committed=40, step_saved=40, first_step_after=41),
    saved_where="manifest of x",
    manifest={"attempt": 1, "step": 40},
)
GOOD = Observed(
    steps=100,
    journals={rank: life(1, 1, 40) + life(2, 41, 100) for rank in range(4)},
    recoveries=[RECOVERY],
    states=STATES,
    leftovers=[],
    timeline=TIMELINE,
    in_order=SAVED_EVENTS,
    anywhere=("hold",),
)
# Broken twice, and no timeline made.
DRILL = dataclasses.replace(
    GOOD,
    journals={rank: life(1, 1, 40) + life(2, 41, 60) + life(3, 61, 100) for rank in range(4)},
    recoveries=[
        RECOVERY,
        Recovery("SIGKILL to rank 2", 2, 60, StepLoss(60, 60, 61), "the launcher's events"),
    ],
    timeline=None,
)


def but(**changes):
    return dataclasses.replace(GOOD, **changes).faults()


def recovered(**changes):
    return but(recoveries=[dataclasses.replace(RECOVERY, **changes)])


def a_run_that_lost_nothing_is_well():
    yield GOOD.faults(), []
    yield DRILL.faults(), []


def refuses_what_cannot_be():
    """More saved than was ever made, training that goes on elsewhere, a step that was seen and is in no journal."""
    yield said(recovered(steps=StepLoss(39, 40, 41)), "no rank's journal knows a step after 39"), True
    yield (
        said(recovered(step_at_fault=41), "step 41 was seen committed from outside, but the ranks' journals end"),
        True,
    )
    elsewhere = dataclasses.replace(RECOVERY, steps=StepLoss(40, 40, 42))
    journals = {rank: life(1, 1, 40) + life(2, 42, 100) for rank in range(4)}
    yield said(but(recoveries=[elsewhere], journals=journals), "step 41 was expected first"), True


def a_lost_step_is_told():
    lost = dataclasses.replace(RECOVERY, steps=StepLoss(41, 40, 41))
    yield said(but(recoveries=[lost]), "1 step was lost"), True
    yield but(recoveries=[lost])[0].partition(":")[0], "1 step was lost"
    # Nobody was left to save; the newest checkpoint is of step 40.
    at_ease = {
        rank: [LoggedStep(1, step, step * 10.0) for step in range(1, 42)] + life(2, 41, 100) for rank in range(4)
    }
    schedule = Schedule(every=20, attempt=1, durable=(20, 40), write_milliseconds=1.0)
    yield but(recoveries=[lost], journals=at_ease, schedule=schedule), []
    yield dataclasses.replace(GOOD, schedule=schedule, journals=at_ease).report()["lost_max"], 21
    late = dataclasses.replace(RECOVERY, steps=StepLoss(62, 40, 41))
    yield "22 steps were lost" in but(recoveries=[late], journals=at_ease, schedule=schedule)[0], True
    gap = dataclasses.replace(schedule, durable=(40,))
    yield said(but(recoveries=[lost], journals=at_ease, schedule=gap), "a checkpoint was due every 20 steps"), True
    two = dataclasses.replace(DRILL, recoveries=[lost, DRILL.recoveries[1]])
    yield said(two.faults(), "SIGKILL to rank 1: 1 step was lost"), True


def a_manifest_of_something_else_is_told():
    yield said(recovered(manifest={"attempt": 2, "step": 40}), "the manifest is of attempt 2, step 40"), True
    yield said(recovered(manifest={"attempt": 1, "step": 39}), "the manifest is of attempt 1, step 39"), True
    yield said(recovered(manifest={}), "the manifest is of attempt None"), True


def a_restart_that_nobody_asked_for_is_told():
    journals = {rank: life(1, 1, 40) + life(2, 41, 70) + life(3, 71, 100) for rank in range(1)}
    yield said(but(journals=journals), "rank 0 began attempt 3", "the job lived 3 times with 1 faults"), True


def a_run_of_another_length_is_told():
    yield len(but(steps=101)), 4


def different_ends_are_told():
    wrong = dataclasses.replace(STATES, disturbed=State("disturbed", STATES.initial.sha256))
    yield said(but(states=wrong), "the final states differ"), True


def a_timeline_with_a_hole_is_told():
    yield said(but(timeline=TIMELINE[:-1]), "nobody told of first_step"), True
    yield said(but(timeline=TIMELINE[1:]), "nobody told of hold"), True
    yield said(but(timeline=[]), "nobody told of agreed, durable, restart, restored, first_step, hold"), True


def a_process_that_is_left_is_told():
    yield said(but(leftovers=["digits (17)"]), "processes of it are still there: digits (17)"), True


def all_that_is_wrong_is_told_at_once():
    wrong = dataclasses.replace(
        GOOD,
        recoveries=[dataclasses.replace(RECOVERY, steps=StepLoss(41, 40, 41))],
        states=EndStates(STATES.initial, STATES.undisturbed, STATES.initial),
        timeline=[],
        leftovers=["digits (17)"],
    )
    yield len(wrong.faults()), 5


def the_report_has_what_was_judged():
    report = dataclasses.replace(GOOD, leftovers=["digits (17)"]).report()
    yield (
        {name: value for name, value in report.items() if name != "timeline"},
        {
            "step_at_fault": 39,
            "last_step_committed": 40,
            "step_saved": 40,
            "first_step_after": 41,
            "steps_lost": 0,
            "lost_max": 0,
            "weights_sha256": STATES.disturbed.sha256,
            "weights_sha256_undisturbed": STATES.undisturbed.sha256,
            "weights_sha256_initial": STATES.initial.sha256,
            "faults": ["the job has ended, but processes of it are still there: digits (17)"],
        },
    )
    yield [one["milliseconds"] for one in report["timeline"]], [0.0, *(entry.milliseconds for entry in TIMELINE)]
    yield report["timeline"][0]["step"], 39


def the_figures_are_printed():
    yield (
        GOOD.lines(),
        ["  Proof", *RECOVERY.steps.lines("manifest of x"), *STATES.lines(), ""],
    )


def a_report_is_of_one_fault():
    yield refused(DRILL.report, ValueError), True
    yield refused(DRILL.lines, ValueError), True


def outcomes():
    return outcomes_of(
        "proof",
        (
            a_run_that_lost_nothing_is_well,
            refuses_what_cannot_be,
            a_lost_step_is_told,
            a_manifest_of_something_else_is_told,
            a_restart_that_nobody_asked_for_is_told,
            a_run_of_another_length_is_told,
            different_ends_are_told,
            a_timeline_with_a_hole_is_told,
            a_process_that_is_left_is_told,
            all_that_is_wrong_is_told_at_once,
            the_report_has_what_was_judged,
            the_figures_are_printed,
            a_report_is_of_one_fault,
        ),
    )
