"""What is read of a run that has ended, from a folder with planted files."""

import dataclasses
import json
import pathlib
import sys
import tempfile

import processes
from endstates import State
from endstates_test import GOOD as STATES
from events import Event
from failure import Failure
from faults import Fault
from readings import manifest_in, newest_durable, observe, observe_drill, recovery_of, state_in
from schedule import Schedule
from selfcheck import outcomes_of, refused
from stepjournal import LoggedStep, read_journals
from steploss import StepLoss
from timeline import RESUMED_EVENTS, SAVED_EVENTS

FAULT = Fault(kind="sigkill", target="rank 1", at=10.0, attempt=1, step_at_fault=4, phase="computing", word="computing")


def event(name, at, attempt, step=0, path=""):
    return Event(name, at, attempt, step, path, "")


EVENTS = [
    event("durable", 8.0, 1, 2, "a1-s2-x"),
    event("agreed", 10.1, 1, 4),
    event("durable", 10.2, 1, 4, "a1-s4-y"),
    event("restart", 10.3, 1, 4),
    event("restored", 10.4, 2, 4),
    event("first_step", 10.5, 2, 5),
    event("durable", 11.0, 2, 6, "a2-s6-z"),
]


@dataclasses.dataclass
class Run:
    """Broken once, at step 4 of 6."""

    folder: pathlib.Path
    steps: int = 6

    @property
    def checkpoints(self):
        return self.folder / "checkpoints"

    def write(self):
        lives = [(1, step) for step in range(1, 5)] + [(2, step) for step in range(5, 7)]
        lines = [json.dumps({"attempt": attempt, "step": step, "time_ms": step}) for attempt, step in lives]
        for rank in range(2):
            (self.folder / f"steps-{rank}.jsonl").write_text("\n".join(lines) + "\n")
        checkpoint = self.checkpoints / "local.digits" / "a1-s4-y"
        checkpoint.mkdir(parents=True)
        (checkpoint / "manifest.json").write_text('{"manifest": {"attempt": 1, "step": 4}}')
        return self

    def journals(self):
        return read_journals(self.folder, 2)

    def events(self):
        return EVENTS[1:]


def with_run(case):
    with tempfile.TemporaryDirectory() as folder:
        return list(case(Run(pathlib.Path(folder)).write()))


def the_newest_durable_is_that_of_the_life():
    yield newest_durable(EVENTS, 1), (4, "a1-s4-y")
    yield newest_durable(EVENTS, 2), (6, "a2-s6-z")
    yield newest_durable(EVENTS[3:], 1), (0, "")


def a_recovery_is_read_from_three_places():
    journals = {0: [LoggedStep(1, 4, 0.0), LoggedStep(2, 5, 0.0)], 1: [LoggedStep(1, 3, 0.0), LoggedStep(2, 5, 0.0)]}
    found = recovery_of(journals, EVENTS, FAULT)
    yield (found.attempt, found.step_at_fault, found.steps), (1, 4, StepLoss(4, 4, 5))
    yield found.what, "SIGKILL to rank 1, computing after step 4"
    yield found.faults(), []


def a_run_is_observed_whole():
    def case(run):
        observed = observe(run, FAULT, STATES, None, checkpoint_every=0)
        yield observed.faults(), []
        yield (observed.steps, observed.states, observed.leftovers, observed.schedule), (6, STATES, [], None)
        yield sorted(observed.journals), [0, 1]
        yield (
            (observed.recoveries[0].manifest, observed.recoveries[0].saved_where),
            (
                {"attempt": 1, "step": 4},
                "manifest of a1-s4-y",
            ),
        )
        yield [entry.event for entry in observed.timeline], list(SAVED_EVENTS)
        yield observed.timeline[-1].milliseconds, 500.0
        yield observed.in_order, SAVED_EVENTS
        # Nothing was scheduled, so what came before the fault cannot be left out.
        late = dataclasses.replace(FAULT, at=10.15)
        yield observe(run, late, STATES, None, checkpoint_every=0).timeline[0].milliseconds, -50.0

    return with_run(case)


def a_run_that_nobody_could_save_may_lose_steps():
    def case(run):
        observed = observe(run, dataclasses.replace(FAULT, at=10.25), STATES, 10.26, checkpoint_every=3)
        yield (observed.in_order, observed.schedule), (RESUMED_EVENTS, Schedule(3, 1, (4,), 0.0))
        yield observed.timeline[0].event, "restart"
        yield observed.timeline[0].milliseconds, 10.0

    return with_run(case)


def a_manifest_that_is_not_there_is_told():
    def case(run):
        yield manifest_in("a1-s4-y", run.checkpoints)["step"], 4
        for path in ("", "a1-s5-y", "nowhere/a1-s4-y"):
            yield (
                refused(lambda path=path: manifest_in(path, run.checkpoints), Failure, "its manifest cannot be read"),
                True,
            )
        (run.checkpoints / "local.digits" / "a1-s4-y" / "manifest.json").write_text("{}")
        yield refused(lambda: observe(run, FAULT, STATES, None, checkpoint_every=0), Failure, "cannot be read"), True

    return with_run(case)


def a_drill_is_observed_without_a_timeline():
    def case(run):
        observed = observe_drill(run, [FAULT], STATES)
        yield (observed.timeline, observed.faults(), observed.states, observed.steps), (None, [], STATES, 6)
        yield [recovery.steps for recovery in observed.recoveries], [StepLoss(4, 4, 5)]
        yield observe_drill(run, [], STATES).faults() != [], True

    return with_run(case)


def a_process_that_is_left_is_seen():
    def case(run):
        with processes.Processes() as started:
            log = run.folder / "log"
            process = started.start([sys.executable, "-c", "import signal; signal.pause()", f"{run.folder}/x"], log)
            expected = [f"{pathlib.Path(sys.executable).name} ({process.pid})"]
            yield observe_drill(run, [FAULT], STATES).leftovers, expected
            yield observe(run, FAULT, STATES, None, checkpoint_every=0).leftovers, expected
        yield observe_drill(run, [FAULT], STATES).leftovers, []

    return with_run(case)


def a_state_is_hashed_by_the_program():
    with tempfile.TemporaryDirectory() as name:
        program = pathlib.Path(name) / "hash_tensors"
        program.write_text('#!/bin/sh\n[ "$1" = good ] && echo "hash of $1" && exit 0\necho broken >&2\nexit 1\n')
        program.chmod(0o755)
        yield state_in(program, pathlib.Path("good")), State("good", "hash of good")
        yield refused(lambda: state_in(program, pathlib.Path("bad")), Failure, "bad cannot be hashed: broken"), True


def outcomes():
    return outcomes_of(
        "readings",
        (
            the_newest_durable_is_that_of_the_life,
            a_recovery_is_read_from_three_places,
            a_run_is_observed_whole,
            a_run_that_nobody_could_save_may_lose_steps,
            a_manifest_that_is_not_there_is_told,
            a_drill_is_observed_without_a_timeline,
            a_process_that_is_left_is_seen,
            a_state_is_hashed_by_the_program,
        ),
    )
