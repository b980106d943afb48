"""What a drill makes of its runs, with planted ones instead of real kills."""

import contextlib
import dataclasses
import io
import random

from controlblock import Word
from drill import STEPS_AT_THE_END, drill_lines, run_drill, steps_to_train, train_for
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
    yield report["phases"], {"computing": 2, "reducing": 2, "updating": 0}
    yield report["steps_at_fault"], [39, 60]
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
        "    updating          0",
        "    after steps 39 to 60 of 100",
        "    rank 2            1",
        "    steps_lost                   0",
        "  steps_lost in all     0",
        f"  final state, undisturbed   {DRILL.states.undisturbed.sha256}",
        f"  final state, run 1         {DRILL.states.disturbed.sha256}",
    ):
        yield line in lines or line, True


def moments(kills, seed, steps=400):
    """The steps at which so many kills come, where a recovery costs no step, in as many runs as it takes."""
    chance, found, step = random.Random(seed), [], 0.0
    while len(found) < kills:
        step += steps_to_train(int(step), steps, kills - len(found), chance)
        if step > steps - STEPS_AT_THE_END:
            step = 0.0
        else:
            found.append(step)
    return found


def kills_are_spread_over_the_run():
    seeds = range(40)
    for kills in (8, 20, 100):
        thirds = [0, 0, 0]
        for seed in seeds:
            for moment in moments(kills, seed):
                thirds[int(moment * 3 // (400 - STEPS_AT_THE_END + 1))] += 1
        yield (kills, all(count > kills * len(seeds) / 6 for count in thirds) or thirds), (kills, True)
    # One kill is anywhere.
    single = [moments(1, seed)[0] for seed in seeds]
    yield (min(single) < 60, max(single) > 300), (True, True)


def some_kills_come_right_behind_the_one_before():
    chance = random.Random(1)
    waits = [steps_to_train(10, 400, 8, chance) for _ in range(400)]
    yield sum(wait < 3 for wait in waits) > 60, True
    # Not at the moment at which a step is committed.
    yield len({round(wait % 1, 2) for wait in waits}) > 90, True


class Run:
    """Makes a step with every other look at it."""

    steps = 100

    def __init__(self, first, is_running=True):
        self._looks = 2 * first
        self._is_running = is_running

    def words(self, pids):
        self._looks += 1
        return {0: Word(1, self._looks // 2, 3)}

    def is_running(self):
        return self._is_running


def a_run_is_left_alone_near_its_end():
    yield train_for(Run(10), 5.5, {}), True
    yield train_for(Run(10), 80, {}), False
    yield train_for(Run(61), 0.0, {}), False
    yield train_for(Run(10, is_running=False), 5, {}), False


def outcomes():
    return outcomes_of(
        "drill",
        (
            runs_are_made_until_there_are_enough_kills,
            a_lost_step_ends_the_drill_with_its_figure,
            each_recovery_is_reported,
            figures_and_states_are_printed,
            kills_are_spread_over_the_run,
            some_kills_come_right_behind_the_one_before,
            a_run_is_left_alone_near_its_end,
        ),
    )
