"""Breaking a run, and knowing exactly what was hit."""

import dataclasses
import os
import random
import select
import signal
import time

from controlblock import Word
from failure import Failure
from trainingrun import ProtectedRun


@dataclasses.dataclass(frozen=True)
class Fault:
    """What the killer saw. `step_at_fault` is the largest step that any rank had committed, read from the control
    blocks right before and right after, the dead rank's last word included."""

    kind: str  # evict, sigkill
    target: str  # rank 2, launcher
    at: float  # time.monotonic()
    attempt: int
    step_at_fault: int
    phase: str  # of the training program: computing, reducing, ...
    word: str  # of the control block

    def __str__(self) -> str:
        target = "`rekindle run`" if self.target == "launcher" else self.target
        return f"{'SIGTERM' if self.kind == 'evict' else 'SIGKILL'} to {target}, {self.phase} after step {self.step_at_fault}"


def committed_step(attempt: int, *looks: dict[int, Word]) -> int:
    """The largest step that any rank had committed in an attempt, of all looks at all ranks."""
    return max(word.step for words in looks for word in words.values() if word.attempt == attempt)


def kill_random_rank(run: ProtectedRun, chance: random.Random, patience_seconds: float = 10, aim: str = "") -> Fault:
    """SIGKILL, from outside, to one rank. All ranks must be training. `aim`: a phase of the control block in which the
    rank is to be hit, as well as another process can aim; what it really hit is in the result."""
    pids = run.rank_processes()
    rank = chance.choice(sorted(pids))
    if aim:
        _await_phase(run, {rank: pids[rank]}, aim)
    before = run.words(pids)
    if rank not in before:
        raise Failure(
            f"rank {rank} (process {pids[rank]}) has no control block although it trains; cannot tell what a kill hits"
        )
    try:
        watch = os.pidfd_open(pids[rank])
    except OSError as error:
        raise Failure(f"rank {rank} (process {pids[rank]}) cannot be watched: {error}") from None
    try:
        at = time.monotonic()
        signal.pidfd_send_signal(watch, signal.SIGKILL)
        if not select.select([watch], [], [], patience_seconds)[0]:
            raise Failure(f"process {pids[rank]} is still there {patience_seconds:.0f} s after SIGKILL")
    finally:
        os.close(watch)
    after = run.words(pids)
    doing = run.doing(rank)
    attempt = before[rank].attempt
    return Fault(
        kind="sigkill",
        target=f"rank {rank}",
        at=at,
        attempt=attempt,
        step_at_fault=committed_step(attempt, before, after),
        phase=doing,
        word=after[rank].phase_name,
    )


def _await_phase(run: ProtectedRun, pids: dict[int, int], phase: str, patience_seconds: float = 60) -> None:
    limit = time.monotonic() + patience_seconds
    while time.monotonic() < limit:
        if any(word.phase_name == phase for word in run.words(pids).values()):
            return
    raise run.failure(f"rank {min(pids)} was never seen {phase} within {patience_seconds:.0f} s")


def signal_launcher(run: ProtectedRun, number: int) -> Fault:
    """SIGTERM (an eviction, as a process sees it) or SIGKILL to `rekindle run` itself."""
    pids = run.rank_processes()
    before = run.words(pids)
    if not before:
        raise Failure("no rank has a control block; cannot tell at which step the fault comes")
    at = time.monotonic()
    run.signal_launcher(number)
    after = run.words(pids)
    attempt = max(word.attempt for word in before.values())
    return Fault(
        kind="evict" if number == signal.SIGTERM else "sigkill",
        target="launcher",
        at=at,
        attempt=attempt,
        step_at_fault=committed_step(attempt, before, after),
        phase=run.doing(0),
        word=before[min(before)].phase_name,
    )
