"""`./dev demo --local --kills N`: many kills of random ranks at random moments, each checked like the single one."""

import collections
import random
import time

from faults import Fault, kill_random_rank
from polling import poll
from processes import Processes
from proof import Recovery, check_lives, hash_of, recovery_of
from story import Story
from trainingrun import ProtectedRun, Setting

# Of one life of the job. Short, so that kills also hit jobs that have hardly begun again.
SECONDS_BETWEEN_KILLS = (0.0, 1.2)


def run_drill(
    processes: Processes,
    setting: Setting,
    kills: int,
    chance: random.Random,
    seed: int,
    expected_hash: str,
    story: Story,
) -> dict:
    """The drill's part of the report. A step lost, a wrong first step or a differing end state raises."""
    story.say(f"[4/4] Disturbed runs: {kills} kills, seed {seed} (repeat with --kills {kills} --seed {seed})")
    started = time.monotonic()
    recoveries: list[Recovery] = []
    hashes: list[str] = []
    runs = 0
    while len(recoveries) < kills:
        runs += 1
        run = ProtectedRun(processes, setting, f"disturbed-{runs}", max_restarts=kills + 10)
        recoveries += _one_run(run, setting, kills - len(recoveries), chance, story, len(recoveries))
        hashes.append(hash_of(setting, run.output))
        if hashes[-1] != expected_hash:
            raise run.failure(f"the end state is {hashes[-1]}; that of the undisturbed run is {expected_hash}")
        story.say(f"      run {runs}: {len(recoveries)} kills so far, end state equal")
    lost = sum(recovery.steps.steps_lost for recovery in recoveries)
    phases = collections.Counter(recovery.fault.phase for recovery in recoveries)
    targets = collections.Counter(recovery.fault.target for recovery in recoveries)
    story.say()
    story.say("  where the kills landed")
    for phase, count in phases.most_common():
        story.say(f"    {phase:<14} {count:>4}")
    story.say("  who was killed")
    for target, count in sorted(targets.items()):
        story.say(f"    {target:<14} {count:>4}")
    story.say("  Proof, of the last kill")
    for line in recoveries[-1].steps.lines("the launcher's events"):
        story.say(line)
    story.say(f"  steps_lost in all  {lost:>4}")
    story.say(f"  final state, undisturbed   {expected_hash}")
    for number, actual in enumerate(hashes, start=1):
        story.say(f"  final state, run {number:<9} {actual}")
    story.say()
    return {
        "kills": len(recoveries),
        "steps_lost": lost,
        "runs": runs,
        "phases": dict(phases),
        "targets": dict(targets),
        "weights_sha256": hashes[-1],
        "weights_sha256_undisturbed": expected_hash,
        "seconds_drill": round(time.monotonic() - started, 1),
        "faults": [],  # one would have ended the drill
        "recoveries": [
            {
                "target": recovery.fault.target,
                "phase": recovery.fault.phase,
                "word": recovery.fault.word,
                "attempt": recovery.fault.attempt,
                "step_at_fault": recovery.fault.step_at_fault,
                **recovery.steps.report(),
            }
            for recovery in recoveries
        ],
    }


def _one_run(
    run: ProtectedRun,
    setting: Setting,
    kills_left: int,
    chance: random.Random,
    story: Story,
    before: int,
) -> list[Recovery]:
    """Kills until the run is over or enough are done, then checks it as a whole."""
    faults: list[Fault] = []
    run.launch()
    attempt = 0
    while len(faults) < kills_left:
        pids, words = run.await_training(attempt)
        attempt = max(word.attempt for word in words.values())
        if not _wait(run, chance.uniform(*SECONDS_BETWEEN_KILLS), setting.steps, pids):
            break
        fault = kill_random_rank(run, chance)
        faults.append(fault)
        story.passing(f"      kill {before + len(faults)}: {fault.target} at step {fault.step_at_fault}, {fault.phase}")
    run.finish()
    recoveries = [recovery_of(run, fault) for fault in faults]
    check_lives(run, recoveries, setting.steps)
    for recovery in recoveries:
        if found := recovery.steps.faults():
            raise run.failure(
                f"the kill of {recovery.fault.target} at step {recovery.fault.step_at_fault} ({recovery.fault.phase}): "
                f"{'; '.join(found)}"
            )
    return recoveries


def _wait(run: ProtectedRun, seconds: float, steps: int, pids: dict[int, int]) -> bool:
    """False when the run comes so near its end that a kill would no longer hit a training job."""

    def nearly_over() -> bool:
        return not run.is_running() or max((word.step for word in run.words(pids).values()), default=0) > steps - 40

    return not poll(nearly_over, seconds, pause=0.05)
