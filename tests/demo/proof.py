"""Whether nothing was lost: read from logs, manifests and final states that others wrote."""

import dataclasses
import json
import pathlib
import subprocess

from failure import Failure
from faults import Fault
from stepjournal import first_behind, last_committed, life_faults
from steploss import StepLoss
from trainingrun import ProtectedRun, Setting


@dataclasses.dataclass(frozen=True)
class Recovery:
    """What became of one fault, and the folder of what was saved."""

    fault: Fault
    steps: StepLoss
    path: str


def recovery_of(run: ProtectedRun, fault: Fault) -> Recovery:
    """Read when the run has ended. What is wrong with it is told by its `steps`."""
    journals = run.journals()
    saved, path = newest_durable(run, fault.attempt)
    steps = StepLoss(
        last_step_committed=last_committed(journals, fault.attempt),
        step_saved=saved,
        first_step_after=first_behind(journals, fault.attempt).step,
    )
    if steps.last_step_committed < fault.step_at_fault:
        raise run.failure(
            f"the killer saw step {fault.step_at_fault} committed, but the ranks' journals end with step "
            f"{steps.last_step_committed} in attempt {fault.attempt}"
        )
    return Recovery(fault=fault, steps=steps, path=path)


def newest_durable(run: ProtectedRun, attempt: int) -> tuple[int, str]:
    """Step and folder of the last checkpoint that was reported durable up to the end of an attempt; (0, "") when there
    is none."""
    durable = [event for event in run.events() if event.name == "durable" and event.attempt <= attempt]
    return (durable[-1].step, durable[-1].path) if durable else (0, "")


def check_lives(run: ProtectedRun, recoveries: list[Recovery], steps: int) -> None:
    """Every rank's journal holds the whole run, and no life of the job but those that the faults led to."""
    starts = {recovery.steps.first_step_after for recovery in recoveries}
    if found := life_faults(run.journals(), starts, steps):
        raise run.failure("; ".join(found))


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
    if manifest["step"] != recovery.steps.step_saved or manifest["attempt"] != recovery.fault.attempt:
        raise Failure(
            f"the manifest in {folder} is of attempt {manifest['attempt']}, step {manifest['step']}; expected attempt "
            f"{recovery.fault.attempt}, step {recovery.steps.step_saved}"
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
