"""`./dev demo --local --kills N`: many kills of random ranks at random moments, each checked like the single one."""

import collections
import random
import time
from collections.abc import Callable

from faults import Fault, kill_random_rank
from polling import poll
from proof import SECTION, Observed
from story import Story
from trainingrun import ProtectedRun

# Of one life of the job. Short, so that kills also hit jobs that have hardly begun again.
SECONDS_BETWEEN_KILLS = (0.0, 1.2)


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
    return {
        "kills": len(faults),
        "steps_lost": sum(recovery.steps.steps_lost for recovery in recoveries),
        "runs": len(runs),
        "phases": dict(collections.Counter(fault.phase for fault in faults).most_common()),
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
        if not _wait(run, chance.uniform(*SECONDS_BETWEEN_KILLS), pids):
            break
        faults.append(kill_random_rank(run, chance))
        story.passing(f"      kill {before + len(faults)}: {faults[-1]}")
    run.finish()
    return faults


def _wait(run: ProtectedRun, seconds: float, pids: dict[int, int]) -> bool:
    """False when the run comes so near its end that a kill would no longer hit a training job."""

    def nearly_over() -> bool:
        steps = max((word.step for word in run.words(pids).values()), default=0)
        return not run.is_running() or steps > run.steps - 40

    return not poll(nearly_over, seconds, pause=0.05)
