"""Whether nothing was lost: read from logs, manifests and final states that others wrote."""

import dataclasses
import json
import pathlib
import subprocess

from failure import Failure
from faults import Fault
from trainingrun import RANKS, LoggedStep, ProtectedRun, Setting


@dataclasses.dataclass(frozen=True)
class Recovery:
    """What became of one fault. `first_step_after` is what the training program's own logs say."""

    fault: Fault
    step_saved: int
    first_step_after: int
    path: str

    @property
    def steps_lost(self) -> int:
        return max(0, self.fault.step_at_fault - self.step_saved)


def recovery_of(run: ProtectedRun, fault: Fault) -> Recovery:
    """Raises when training did not go on exactly behind what was saved, on every rank."""
    behind = {rank: first_step_behind(run, rank, fault.attempt) for rank in range(RANKS)}
    # A rank that the next kill hit before its first step has logged nothing in that life.
    attempt = min(logged.attempt for logged in behind.values())
    starts = {rank: logged.step for rank, logged in behind.items() if logged.attempt == attempt}
    if len(set(starts.values())) != 1:
        raise run.failure(f"the ranks went on at different steps after attempt {fault.attempt}: {starts}")
    first = next(iter(starts.values()))
    saved, path = newest_durable(run, fault.attempt)
    if first != saved + 1:
        raise run.failure(
            f"after the fault in attempt {fault.attempt} step {saved} was the newest saved, so step {saved + 1} was expected "
            f"first; the training logs begin with {first}"
        )
    return Recovery(fault=fault, step_saved=saved, first_step_after=first, path=path)


def newest_durable(run: ProtectedRun, attempt: int) -> tuple[int, str]:
    """Step and folder of the last checkpoint that was reported durable up to the end of an attempt; (0, "") when there is none."""
    durable = [event for event in run.events() if event.name == "durable" and event.attempt <= attempt]
    return (durable[-1].step, durable[-1].path) if durable else (0, "")


def first_step_behind(run: ProtectedRun, rank: int, attempt: int) -> LoggedStep:
    """The first step that a rank's log holds of the next attempt in which it made one."""
    for logged in run.logged_steps(rank):
        if logged.attempt > attempt:
            return logged
    raise run.failure(f"rank {rank} has logged no step after attempt {attempt}")


def check_steps_follow(run: ProtectedRun, steps: int) -> None:
    """Every rank's log: within an attempt each step follows the one before, and the last attempt reaches the end."""
    for rank in range(RANKS):
        logged = run.logged_steps(rank)
        for before, after in zip(logged, logged[1:]):
            if after.attempt == before.attempt and after.step != before.step + 1:
                raise run.failure(
                    f"rank {rank} made step {after.step} after step {before.step} in attempt {after.attempt}"
                )
            if after.attempt < before.attempt:
                raise run.failure(f"rank {rank} went back from attempt {before.attempt} to {after.attempt}")
        if not logged or logged[-1].step != steps:
            raise run.failure(f"rank {rank} ended with step {logged[-1].step if logged else 0}; expected {steps}")


def check_manifest(recovery: Recovery, checkpoints: pathlib.Path) -> dict:
    """The manifest of what was saved, and that it says the same."""
    folder = pathlib.Path(recovery.path)
    if not folder.is_absolute():
        found = list(checkpoints.glob(f"*/{folder.name}"))
        folder = found[0] if found else checkpoints / folder
    try:
        manifest = json.loads((folder / "manifest.json").read_text())["manifest"]
    except (OSError, ValueError, KeyError) as error:
        raise Failure(
            f"the checkpoint {folder} was said to be durable but its manifest cannot be read ({error})"
        ) from None
    if manifest["step"] != recovery.step_saved or manifest["attempt"] != recovery.fault.attempt:
        raise Failure(
            f"the manifest in {folder} is of attempt {manifest['attempt']}, step {manifest['step']}; expected attempt "
            f"{recovery.fault.attempt}, step {recovery.step_saved}"
        )
    return manifest


def hash_of(setting: Setting, state: pathlib.Path) -> str:
    """SHA-256 over all tensors of an exported state, by a program that shares no code with what wrote it."""
    outcome = subprocess.run(
        [setting.programs.hash_tensors, state], capture_output=True, text=True, check=False, timeout=60
    )
    if outcome.returncode != 0:
        raise Failure(f"the final state {state} cannot be hashed: {outcome.stderr.strip()}")
    return outcome.stdout.strip()
