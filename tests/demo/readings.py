"""What the proof is about, read from what a run through `rekindle run` has left: logs, manifests, final states."""

import dataclasses
import json
import pathlib
import subprocess

from endstates import EndStates, State
from events import Event
from failure import Failure
from faults import Fault
from processes import processes_about
from proof import Observed, Recovery
from schedule import schedule_of
from stepjournal import LoggedStep, first_behind, last_committed
from steploss import StepLoss
from timeline import RESUMED_EVENTS, SAVED_EVENTS, entries_of, told_by_launcher
from trainingrun import ProtectedRun


def recovery_of(journals: dict[int, list[LoggedStep]], events: list[Event], fault: Fault) -> Recovery:
    """To be read when the run has ended."""
    saved, _ = newest_durable(events, fault.attempt)
    return Recovery(
        what=str(fault),
        attempt=fault.attempt,
        step_at_fault=fault.step_at_fault,
        steps=StepLoss(
            last_step_committed=last_committed(journals, fault.attempt),
            step_saved=saved,
            first_step_after=first_behind(journals, fault.attempt).step,
        ),
        saved_where="the launcher's events",
    )


def newest_durable(events: list[Event], attempt: int) -> tuple[int, str]:
    """Step and folder of the last checkpoint that was reported durable up to the end of an attempt; (0, "") when there
    is none."""
    durable = [event for event in events if event.name == "durable" and event.attempt <= attempt]
    return (durable[-1].step, durable[-1].path) if durable else (0, "")


def observe_drill(run: ProtectedRun, faults: list[Fault], states: EndStates) -> Observed:
    """Of a run that has ended and was broken again and again."""
    journals, events = run.journals(), run.events()
    return Observed(
        steps=run.steps,
        journals=journals,
        recoveries=[recovery_of(journals, events, fault) for fault in faults],
        states=states,
        leftovers=processes_about(f"{run.folder}/"),
    )


def observe(
    run: ProtectedRun, fault: Fault, states: EndStates, started_again_at: float | None, *, checkpoint_every: int
) -> Observed:
    """Of a run that has ended and was broken once. `checkpoint_every` above 0: nobody was left to save, and checkpoints
    were due every so many steps before."""
    journals, events = run.journals(), run.events()
    _, path = newest_durable(events, fault.attempt)
    recovery = recovery_of(journals, events, fault)
    told = told_by_launcher(events, fault, started_again_at, scheduled=checkpoint_every > 0)
    return Observed(
        steps=run.steps,
        journals=journals,
        recoveries=[
            dataclasses.replace(
                recovery,
                saved_where=f"manifest of {pathlib.Path(path).name}",
                manifest=manifest_in(path, run.checkpoints),
            )
        ],
        states=states,
        leftovers=processes_about(f"{run.folder}/"),
        timeline=entries_of(fault.at, told),
        in_order=RESUMED_EVENTS if checkpoint_every else SAVED_EVENTS,
        schedule=schedule_of(events, fault.attempt, checkpoint_every) if checkpoint_every else None,
    )


def manifest_in(path: str, checkpoints: pathlib.Path) -> dict:
    """The manifest of a checkpoint that was said to be durable."""
    try:
        (folder,) = checkpoints.glob(f"*/{path}")
        return json.loads((folder / "manifest.json").read_text())["manifest"]
    except (OSError, ValueError, KeyError) as error:
        raise Failure(
            f"the checkpoint '{path}' in {checkpoints} was said to be durable but its manifest cannot be read ({error})"
        ) from None


def state_in(hash_tensors: pathlib.Path, file: pathlib.Path) -> State:
    """An exported state and its hash."""
    outcome = subprocess.run([hash_tensors, file], capture_output=True, text=True, check=False, timeout=60)
    if outcome.returncode != 0:
        raise Failure(f"the final state {file} cannot be hashed: {outcome.stderr.strip()}")
    return State(str(file), outcome.stdout.strip())
