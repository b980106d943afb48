"""Builds and runs tests in the scratch tree."""

import dataclasses
import os
import pathlib
import subprocess
import time

from googletest import Outcome, run_googletest
from limited import run_limited
from lists import Command


class BuildFailed(Exception):
    """What the compiler said first, and where the rest is."""


@dataclasses.dataclass(frozen=True)
class Ran:
    outcomes: list
    seconds: float

    @property
    def failure(self):
        """The first test that failed; None where all passed."""
        return next((outcome for outcome in self.outcomes if outcome.result == "failed"), None)

    @property
    def passed(self):
        return self.failure is None and any(outcome.result == "passed" for outcome in self.outcomes)


class Workbench:
    """`configure` and `compile` are command lines; the second one gets the targets behind it."""

    def __init__(self, tree: pathlib.Path, logs: pathlib.Path, configure, compile):
        self._tree = tree
        self._logs = logs
        self._configuring = [configure]  # until it has been done
        self._compile = compile
        logs.mkdir(parents=True, exist_ok=True)

    def build(self, tests, label):
        """The programs of the tests."""
        targets = sorted({each.program for each in tests if not isinstance(each, Command)})
        if not targets:
            return
        log = self._logs / f"{label}-build.log"
        configuring, self._configuring = self._configuring, []
        with log.open("w") as output:
            for command in [*configuring, [*self._compile, *targets]]:
                ended = subprocess.run(command, cwd=self._tree, stdout=output, stderr=subprocess.STDOUT)
                if ended.returncode != 0:
                    break
        if ended.returncode != 0:
            said = next((line for line in log.read_text(errors="replace").splitlines() if "error" in line.lower()), "")
            raise BuildFailed(f"{said.strip()} (log {log})".strip())

    def run(self, tests, label, seconds_max) -> Ran:
        began = time.monotonic()
        if isinstance(tests, Command):
            outcomes = [self._run_command(tests, self._logs / f"{label}.log", seconds_max)]
        else:
            program = self._tree / "build" / "dev" / "test-programs" / tests.stage / tests.program
            arguments = [f"--gtest_filter={tests.filter}", "--gtest_fail_fast"]
            log = self._logs / f"{label}-{tests.program}.log"
            outcomes = run_googletest(program, log, seconds_max, arguments)
        return Ran(outcomes, time.monotonic() - began)

    def _run_command(self, command, log, seconds_max):
        environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
        with log.open("wb") as output:
            code = run_limited(
                command.words, seconds_max, cwd=self._tree, stdout=output, stderr=subprocess.STDOUT, env=environment
            )
        if code is None:
            return Outcome(str(command), "failed", f"still running after {seconds_max:.0f} s; log {log}", "time-out")
        return Outcome(
            str(command), "failed" if code else "passed", f"ended with {code}; log {log}", "crash" if code < 0 else ""
        )
