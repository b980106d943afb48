"""What a long run does in its rounds: each part is a function from a seed to (failures, note)."""

import itertools
import os
import re
import shlex
import subprocess

import fuzzers
import random_tests
from googletest import run_googletest
from rounds import Failure
from sharedcluster import ENVIRONMENT

PROGRAM_SECONDS_MAX = 900
FUZZ_SECONDS = 60
DRILL_KILLS = 40
OPERATOR_KILLS = 6
WEBHOOK_AWAY_SECONDS = 300


class Parts:
    """`logs`: the folder for what the programs print."""

    def __init__(self, root, logs, children):
        self._root = root
        self._logs = logs
        self._children = children
        self._fuzz_targets = itertools.cycle(fuzzers.targets())

    def all(self, on_cluster):
        parts = {"random_tests": self.random_tests, "fuzz": self.fuzz, "drill": self.drill}
        return parts | ({"outages": self.outages} if on_cluster else {})

    def random_tests(self, _seed):
        """Each draws seeds of its own and prints them."""
        paths = [*self._root.glob("tests/**/CMakeLists.txt"), *self._root.glob("tests/**/*_test.cc")]
        files = {str(path.relative_to(self._root)): path.read_text() for path in paths}
        failures, passed, seeds = [], 0, []
        for (stage, name), test_filter in random_tests.find(files).items():
            program = self._root / "build" / "dev" / "test-programs" / stage / name
            log = self._logs / f"{name}.log"
            outcomes = run_googletest(
                program, log, PROGRAM_SECONDS_MAX, [f"--gtest_filter={test_filter}"], run=self._children.run
            )
            text = log.read_text(errors="replace")
            passed += sum(one.result == "passed" for one in outcomes)
            seeds += re.findall(r"^seed (\d+)", text, re.M)
            for one in outcomes:
                if one.result == "failed":
                    test = one.name.partition("/")[2] or test_filter
                    # The next round writes over the log.
                    kept = log.with_name(f"{name}-failed-{len(list(self._logs.glob(f'{name}-failed-*')))}.log")
                    kept.write_text(text)
                    replay = random_tests.replay_of(text, program.relative_to(self._root), test)
                    failures.append(Failure(f"{one.name} failed; log {kept.relative_to(self._root)}", replay))
        return failures, f"{passed} tests, from seeds {', '.join(seeds) or 'that they do not tell'}"

    def fuzz(self, _seed):
        """One target a round: an input that breaks it is kept, so that no seed is needed to see it again."""
        target = next(self._fuzz_targets)
        code, text, log = self._run("fuzz", "./dev", "fuzz", target, "--seconds", str(FUZZ_SECONDS))
        if code == 0:
            return [], target
        replays = re.findall(r"^  again: (.+)$", text, re.M) or [f"./dev fuzz {target} --seconds {FUZZ_SECONDS}"]
        return [Failure(f"fuzz {target} broke; log {log}", replay) for replay in replays], target

    def drill(self, seed):
        return self._command("drill", "./dev", "drill", "--kills", str(DRILL_KILLS), "--seed", str(seed))

    def outages(self, seed):
        """What takes too long for every run: the operator is away for minutes, and killed at many moments."""
        return self._command(
            "outages",
            *("tests/e2e/run", "--seed", str(seed), "--webhook-away-seconds", str(WEBHOOK_AWAY_SECONDS)),
            *("--operator-kills", str(OPERATOR_KILLS), "--only", "operator_"),
        )

    def _command(self, name, *command):
        code, text, log = self._run(name, *command)
        if code == 0:
            return [], ""
        failed = [line for line in text.splitlines() if line.startswith("FAIL ")] or [f"{name} ended with {code}"]
        return [Failure(f"{line}; log {log}", shlex.join(command)) for line in failed], ""

    def _run(self, name, *command):
        """(exit code, what it printed, its log)."""
        log = self._logs / f"{name}-{len(list(self._logs.glob(f'{name}-*.log'))) + 1}.log"
        with log.open("wb") as output:
            process = self._children.start(
                command,
                cwd=self._root,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**os.environ, **ENVIRONMENT},
            )
            code = process.wait()
        return code, log.read_text(errors="replace"), log.relative_to(self._root)
