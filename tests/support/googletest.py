"""GoogleTest programs, run and judged by their own report."""

import collections
import json
import os
import pathlib
import subprocess
import tempfile

from limited import run_limited

ROOT = pathlib.Path(__file__).resolve().parents[2]
# `end`: how a program ended that told nothing, "crash" or "time-out". `seconds` is 0 where nobody has measured it.
Outcome = collections.namedtuple("Outcome", "name result why end seconds", defaults=("", 0.0))


def run_googletest(program, log, seconds_max, arguments=(), environment=None, prefix=(), run=run_limited):
    """Outcomes of one program, named PROGRAM/SUITE.TEST, read from its JSON report; a crash is a failure of the program
    itself. `environment` is added to this process's; `prefix` is a command that runs another one; `run` is how it is
    run, see Children.run."""
    name = program.name
    with tempfile.TemporaryDirectory() as folder:
        report = pathlib.Path(folder) / "report.json"
        # In memory where there is room: the crash tests sync thousands of small files.
        temporary = {"TMPDIR": "/dev/shm"} if os.access("/dev/shm", os.W_OK) else {}
        with log.open("wb") as output:
            code = run(
                [*prefix, program, f"--gtest_output=json:{report}", *arguments],
                seconds_max,
                stdout=output,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                env={**os.environ, **temporary, **(environment or {})},
                cwd=ROOT,
            )
        if code is None:
            return [Outcome(name, "failed", f"still running after {seconds_max} s; log {log}", "time-out")]
        if not report.exists():
            return [Outcome(name, "failed", f"ended with {code} before its report; log {log}", "crash")]
        outcomes = []
        for suite in json.loads(report.read_text())["testsuites"]:
            for case in suite["testsuite"]:
                full = f"{name}/{suite['name']}.{case['name']}"
                seconds = float(case.get("time", "0s").removesuffix("s"))
                if case.get("failures"):
                    outcomes.append(Outcome(full, "failed", f"log {log}", seconds=seconds))
                elif case["result"] == "SKIPPED" or case["status"] != "RUN":
                    outcomes.append(Outcome(full, "skipped", "skipped by the test"))
                else:
                    outcomes.append(Outcome(full, "passed", "", seconds=seconds))
        if code != 0 and not any(outcome.result == "failed" for outcome in outcomes):
            outcomes.append(Outcome(name, "failed", f"ended with {code}; log {log}"))
        return outcomes
