"""What a drill makes of its runs, with planted ones instead of real kills."""

import contextlib
import dataclasses
import io

from drill import drill_lines, run_drill
from faults import Fault
from proof_test import DRILL, RECOVERY
from selfcheck import outcomes_of
from steploss import StepLoss
from story import Story

FAULTS = [
    Fault("sigkill", "rank 1", 1.0, 1, 39, "computing", "between"),
    Fault("sigkill", "rank 2", 2.0, 2, 60, "reducing", "computing"),
]
LOST = dataclasses.replace(
    DRILL, recoveries=[dataclasses.replace(RECOVERY, steps=StepLoss(42, 40, 41)), DRILL.recoveries[1]]
)


def drilled(kills, *runs):
    """The report, what was printed, and what each run was asked for."""
    asked = []
    ready = iter(runs)

    def one_run(*numbers):
        asked.append(numbers)
        return FAULTS, next(ready)

    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        report = run_drill(kills, one_run, Story())
    return report, printed.getvalue(), asked


def runs_are_made_until_there_are_enough_kills():
    report, printed, asked = drilled(4, DRILL, DRILL)
    yield asked, [(1, 4, 0), (2, 2, 2)]
    yield (report["kills"], report["runs"], report["steps_lost"], report["faults"]), (4, 2, 0, [])
    yield report["targets"], {"rank 1": 2, "rank 2": 2}
    yield report["phases"], {"computing": 2, "reducing": 2}
    yield report["weights_sha256"], DRILL.states.disturbed.sha256
    yield "run 2: 4 kills so far, end state equal" in printed, True


def a_lost_step_ends_the_drill_with_its_figure():
    report, printed, asked = drilled(4, DRILL, LOST, DRILL)
    yield asked, [(1, 4, 0), (2, 2, 2)]
    yield report["steps_lost"], 2
    yield [sentence.partition(":")[2].partition(":")[0] for sentence in report["faults"]], [" 2 steps were lost"]
    yield "steps_lost in all     2" in printed, True


def each_recovery_is_reported():
    report, _, _ = drilled(2, LOST)
    yield (
        report["recoveries"],
        [
            {
                "target": "rank 1",
                "phase": "computing",
                "word": "between",
                "attempt": 1,
                "step_at_fault": 39,
                "last_step_committed": 42,
                "step_saved": 40,
                "first_step_after": 41,
                "steps_lost": 2,
            },
            {
                "target": "rank 2",
                "phase": "reducing",
                "word": "computing",
                "attempt": 2,
                "step_at_fault": 60,
                "last_step_committed": 60,
                "step_saved": 60,
                "first_step_after": 61,
                "steps_lost": 0,
            },
        ],
    )


def figures_and_states_are_printed():
    report, _, _ = drilled(2, DRILL)
    lines = drill_lines(report, [DRILL])
    for line in (
        "    computing         1",
        "    rank 2            1",
        "    steps_lost                   0",
        "  steps_lost in all     0",
        f"  final state, undisturbed   {DRILL.states.undisturbed.sha256}",
        f"  final state, run 1         {DRILL.states.disturbed.sha256}",
    ):
        yield line in lines or line, True


def outcomes():
    return outcomes_of(
        "drill",
        (
            runs_are_made_until_there_are_enough_kills,
            a_lost_step_ends_the_drill_with_its_figure,
            each_recovery_is_reported,
            figures_and_states_are_printed,
        ),
    )
