"""How a run's end is judged and its command is made, with a shell script in place of the programs."""

import contextlib
import os
import pathlib
import sys
import tempfile
import types

from drill import kill_again_and_again
from failure import Failure
from faults_test import BEFORE, Run, sleeping
from processes import Processes, children_of, end_process, environment_of, last_lines, processes_about
from selfcheck import outcomes_of, refused
from story import Story
from trainingrun import ProtectedRun, Setting, UndisturbedRun, initial_state

# Writes its words down, and the result where it is told to; ends with CODE.
SCRIPT = """#!/bin/sh
folder=$(dirname "$0")
echo "$@" > "$folder/words"
while [ $# -gt 0 ]; do
  [ "$1" = --output ] && [ ! -e "$folder/no-output" ] && echo result > "$2"
  shift
done
exit $(cat "$folder/code")
"""


@contextlib.contextmanager
def setting_of(code=0, *, output=True):
    with tempfile.TemporaryDirectory() as name, Processes() as processes:
        folder = pathlib.Path(name)
        program = folder / "program"
        program.write_text(SCRIPT)
        program.chmod(0o755)
        (folder / "code").write_text(str(code))
        if not output:
            (folder / "no-output").touch()
        programs = types.SimpleNamespace(digits=program, rekindle=program)
        yield processes, Setting(programs, folder / "data", folder, steps=50), folder / "words"


def an_undisturbed_run_ends_with_its_result():
    with setting_of() as (processes, setting, words):
        run = UndisturbedRun(processes, setting)
        yield run.finish() >= 0, True
        yield "--steps 50 --spawn 4 --without-rekindle --output" in words.read_text(), True
        yield run.output.read_text(), "result\n"


def an_undisturbed_run_that_fails_is_told():
    with setting_of(3) as (processes, setting, _):
        yield refused(UndisturbedRun(processes, setting).finish, Failure, "the undisturbed run ended with 3"), True
    with setting_of(output=False) as (processes, setting, _):
        yield refused(UndisturbedRun(processes, setting).finish, Failure, "the undisturbed run ended with 0"), True


def the_initial_state_is_that_of_a_run_without_steps():
    with setting_of() as (processes, setting, words):
        yield initial_state(processes, setting) != UndisturbedRun(processes, setting).output, True
    with setting_of() as (processes, setting, words):
        yield initial_state(processes, setting).read_text(), "result\n"
        yield "--seed 7 --steps 0 " in words.read_text(), True


def a_protected_run_ends_with_its_result():
    with setting_of() as (processes, setting, words):
        run = ProtectedRun(processes, setting, "run", checkpoint_every=40, shadow_every="1 step", max_restarts=3)
        run.launch()
        yield run.finish(), None
        yield run.is_running(), False
        said = words.read_text()
        for expected in ("run -n 4 --max-restarts 3 --shadow-every 1 step --events", "--checkpoint-every 40"):
            yield expected in said or said, True
        yield (run.steps, run.output.read_text()), (50, "result\n")
    with setting_of() as (processes, setting, words):
        run = ProtectedRun(processes, setting, "run")
        run.launch()
        run.finish()
        yield "--shadow-every" in words.read_text(), False


def a_protected_run_that_fails_is_told():
    with setting_of(3) as (processes, setting, _):
        run = ProtectedRun(processes, setting, "run")
        run.launch()
        yield refused(run.finish, Failure, "the disturbed run ended with 3"), True
        yield refused(lambda: run.await_training(0), Failure, "ended with 3 where all 4 ranks"), True
    with setting_of(output=False) as (processes, setting, _):
        run = ProtectedRun(processes, setting, "run")
        run.launch()
        yield refused(run.finish, Failure, "the disturbed run ended with 0"), True


def a_run_that_does_not_end_is_ended():
    with setting_of() as (processes, setting, _):
        setting.programs.rekindle.write_text("#!/bin/sh\nexec sleep 60\n")
        run = ProtectedRun(processes, setting, "run")
        run.launch()
        yield refused(lambda: run.await_end(0.05), Failure, "was not done after 0 s"), True
        yield run.launcher.poll(), -9
        undisturbed_program = setting.programs.digits
        undisturbed_program.write_text("#!/bin/sh\nexec sleep 60\n")
        undisturbed = UndisturbedRun(processes, setting)
        yield refused(lambda: undisturbed.finish(0.05), Failure, "was not done after 0 s"), True


def what_a_run_has_left_is_read():
    with setting_of() as (processes, setting, _):
        run = ProtectedRun(processes, setting, "run")
        yield refused(run.journals, Failure, "rank 0 has left no journal"), True
        yield run.has_trained(), False
        for rank in range(4):
            (run.folder / f"steps-{rank}.jsonl").write_text('{"attempt":1,"step":1,"time_ms":1}\n')
        yield (sorted(run.journals()), run.has_trained()), ([0, 1, 2, 3], True)
        for step in (10, 9):
            folder = run.checkpoints / "local.digits" / f"a1-s{step}-x"
            folder.mkdir(parents=True)
            (folder / "manifest.json").write_text(f'{{"manifest": {{"attempt": 1, "step": {step}}}}}')
        yield [manifest["step"] for _, manifest in run.manifests()], [9, 10]


class Training(Run):
    """All ranks have made step 10 of `steps`."""

    def __init__(self, process, steps):
        super().__init__(process, BEFORE)
        self.steps = steps
        self.calls = []

    def launch(self):
        self.calls.append("launch")

    def await_training(self, attempt):
        self.calls.append(attempt)
        return self.rank_processes(), BEFORE

    def is_running(self):
        return True

    def finish(self):
        self.calls.append("finish")


def a_run_is_killed_as_often_as_was_asked():
    chance = types.SimpleNamespace(random=lambda: 1.0, uniform=lambda *_: 0.0, choice=min)
    with sleeping() as process:
        run = Training(process, 1000)
        yield [fault.target for fault in kill_again_and_again(run, 2, chance, Story(), 0)], ["rank 1", "rank 1"]
        yield run.calls, ["launch", 0, 2, "finish"]
        yield process.wait(), -9


def a_run_near_its_end_is_not_killed():
    chance = types.SimpleNamespace(random=lambda: 1.0, uniform=lambda *_: 5.0, choice=min)
    with sleeping() as process:
        run = Training(process, 49)
        yield kill_again_and_again(run, 3, chance, Story(), 0), []
        yield (run.calls, process.poll()), (["launch", 0, "finish"], None)


def everything_that_was_started_is_ended():
    with tempfile.TemporaryDirectory() as name:
        log = pathlib.Path(name) / "log"
        command = [sys.executable, "-c", "import signal; print('begun', flush=True); signal.pause()", f"{name}/mark"]
        with Processes() as processes:
            process = processes.start(command, log, {"REKINDLE_TEST": "x"})
            yield environment_of(process.pid).get("REKINDLE_TEST"), "x"
            yield process.pid in children_of(os.getpid()), True
            yield len(processes_about(f"{name}/mark")), 1
        yield process.poll() is not None, True
        yield processes_about(f"{name}/mark"), []
        with Processes() as processes:
            process = processes.start(command, log)
            end_process(process, 0)
            yield process.poll(), -9
        yield refused(lambda: processes.start([f"{name}/nothing"], log), Failure, "cannot start"), True


def what_has_ended_has_nothing_to_tell():
    yield (children_of(2**22 + 1), environment_of(2**22 + 1)), ([], {})
    with tempfile.TemporaryDirectory() as name:
        log = pathlib.Path(name) / "log"
        yield last_lines(log), "(no output)"
        log.write_text("a\nb\nc\n")
        yield last_lines(log, 2), "    | b\n    | c"


def outcomes():
    return outcomes_of(
        "training-run",
        (
            an_undisturbed_run_ends_with_its_result,
            an_undisturbed_run_that_fails_is_told,
            the_initial_state_is_that_of_a_run_without_steps,
            a_protected_run_ends_with_its_result,
            a_protected_run_that_fails_is_told,
            a_run_that_does_not_end_is_ended,
            what_a_run_has_left_is_read,
            a_run_is_killed_as_often_as_was_asked,
            a_run_near_its_end_is_not_killed,
            everything_that_was_started_is_ended,
            what_has_ended_has_nothing_to_tell,
        ),
    )
