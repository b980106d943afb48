"""`./dev demo --local --kills N`: many kills of random ranks at random moments, each checked like the single one."""

import collections
import math
import random
import time
from collections.abc import Callable

from faults import Fault, kill_random_rank
from polling import poll
from proof import SECTION, Observed
from story import Story
from trainingrun import ProtectedRun

# A job that comes so near its end is no longer hit.
STEPS_AT_THE_END = 40
# Between two kills at least, on average: many kills take several runs, and hit all of each.
STEPS_BETWEEN_KILLS = 10
# Of kills, those that hit a job which has hardly begun again.
SOON = 0.25
SOON_STEPS = 3
# Of one step, before any was timed.
STEP_SECONDS = 0.02
PATIENCE_SECONDS = 120


def run_drill(kills: int, one_run: Callable[[int, int, int], tuple[list[Fault], Observed]], story: Story) -> dict:
    """The drill's part of the report. Ends with the first run that anything is wrong with. `one_run` breaks a run of
    this number until it is over or a number of kills is reached; last comes how many kills there were before."""
    started = time.monotonic()
    faults: list[Fault] = []
    runs: list[Observed] = []
    wrong: list[str] = []
    while len(faults) < kills and not wrong:
        hit, observed = one_run(len(runs) + 1, kills - len(faults), len(faults))
        faults += hit
        runs.append(observed)
        wrong = observed.faults()
        story.say(f"      run {len(runs)}: {len(faults)} kills so far, {'; '.join(wrong) or 'end state equal'}")
    report = drill_report(faults, runs)
    for line in drill_lines(report, runs):
        story.say(line)
    return {**report, "seconds_drill": round(time.monotonic() - started, 1)}


def drill_report(faults: list[Fault], runs: list[Observed]) -> dict:
    recoveries = [recovery for run in runs for recovery in run.recoveries]
    steps_at_fault = [fault.step_at_fault for fault in faults]
    return {
        "kills": len(faults),
        "steps_lost": sum(recovery.steps.steps_lost for recovery in recoveries),
        "runs": len(runs),
        "steps_at_fault": [min(steps_at_fault, default=0), max(steps_at_fault, default=0)],
        # None in the update is worth a line: it is where most can go wrong.
        "phases": {"updating": 0} | dict(collections.Counter(fault.phase for fault in faults).most_common()),
        "targets": dict(sorted(collections.Counter(fault.target for fault in faults).items())),
        **runs[-1].states.report(),
        "faults": [sentence for run in runs for sentence in run.faults()],
        "recoveries": [
            {
                "target": fault.target,
                "phase": fault.phase,
                "word": fault.word,
                "attempt": fault.attempt,
                "step_at_fault": fault.step_at_fault,
                **recovery.steps.report(),
            }
            for fault, recovery in zip(faults, recoveries, strict=True)
        ],
    }


def drill_lines(report: dict, runs: list[Observed]) -> list[str]:
    states = [run.states for run in runs]
    return [
        "",
        "  where the kills landed",
        *(f"    {phase:<14} {count:>4}" for phase, count in report["phases"].items()),
        f"    after steps {report['steps_at_fault'][0]} to {report['steps_at_fault'][1]} of {runs[-1].steps}",
        "  who was killed",
        *(f"    {target:<14} {count:>4}" for target, count in report["targets"].items()),
        f"{SECTION}, of the last kill",
        *(line for run in runs[-1:] for last in run.recoveries[-1:] for line in last.steps.lines(last.saved_where)),
        f"  steps_lost in all  {report['steps_lost']:>4}",
        f"  final state, undisturbed   {states[0].undisturbed.sha256}",
        *(f"  final state, run {number:<9} {each.disturbed.sha256}" for number, each in enumerate(states, 1)),
        "",
    ]


def kill_again_and_again(
    run: ProtectedRun, kills: int, chance: random.Random, story: Story, before: int
) -> list[Fault]:
    """Until the run comes near its end or `kills` are done; the run has ended then."""
    faults: list[Fault] = []
    run.launch()
    attempt = 0
    while len(faults) < kills:
        pids, words = run.await_training(attempt)
        attempt = max(word.attempt for word in words.values())
        step = max(word.step for word in words.values())
        if not train_for(run, steps_to_train(step, run.steps, kills - len(faults), chance), pids):
            break
        faults.append(kill_random_rank(run, chance))
        story.passing(f"      kill {before + len(faults)}: {faults[-1]}")
    run.finish()
    return faults


def steps_to_train(step: int, steps: int, kills: int, chance: random.Random) -> float:
    """From `step` of a run of `steps` until the next of so many kills: all of them together are spread over what is left
    of the run, and some come right behind the one before. Not whole: a step in part as well."""
    if chance.random() < SOON:
        return chance.uniform(0, SOON_STEPS)
    left = max(0, steps - STEPS_AT_THE_END - step)
    return chance.uniform(0, 2 * max(STEPS_BETWEEN_KILLS, left / (kills + 1)))


def train_for(run: ProtectedRun, steps: float, pids: dict[int, int]) -> bool:
    """False when the run comes so near its end that a kill would no longer hit a training job."""

    def now() -> int:
        return max((word.step for word in run.words(pids).values()), default=0)

    def nearly_over() -> bool:
        return not run.is_running() or now() > run.steps - STEPS_AT_THE_END

    first, began = now(), time.monotonic()
    whole = math.floor(steps)
    poll(lambda: now() >= first + whole or nearly_over(), PATIENCE_SECONDS, pause=0.002)
    # As long as that part of a step takes here; of a life that has made none, nobody knows.
    seconds = (time.monotonic() - began) / whole if whole else STEP_SECONDS
    return not poll(nearly_over, (steps - whole) * seconds, pause=0.002)
