"""Running the stages of ./dev test one after the other."""

import collections
import concurrent.futures
import os
import re
import subprocess
import threading
import time

import testprograms
from googletest import Outcome, run_googletest
from programoutput import ProgramOutput
from sharedcluster import ENVIRONMENT
from stages import STAGES
from testreport import longest_first

# GoogleTest programs beside each other.
AT_ONCE = 2
# A program that takes longer gets a line of its own.
SLOW_PROGRAM_SECONDS = 5
LINE = re.compile(r"(ok|FAIL|skip) ([^:\n]+)(?:: (.*))?$")
RESULT = {"ok": "passed", "FAIL": "failed", "skip": "skipped"}


def outcome_of_line(line):
    """Of a line `ok NAME: 12 s, what it saw`, `FAIL NAME: why` or `skip NAME: why`; None of any other."""
    match = LINE.match(line)
    if not match:
        return None
    took = re.search(r"(?:^|, |after )(\d+(?:\.\d+)?) s\b", match[3] or "")
    return Outcome(match[2].strip(), RESULT[match[1]], match[3] or "", seconds=float(took[1]) if took else 0.0)


def told_again(outcomes):
    """A failure for each name that has more than one outcome: the last one would hide the others."""
    counted = collections.Counter(one.name for one in outcomes)
    return [Outcome(name, "failed", f"was told {count} times") for name, count in counted.items() if count > 1]


class StageRun:
    """`program_seconds`: of the last run, and changed to those of this one as programs end."""

    def __init__(self, root, children, cluster, program_seconds, arguments=None, say=None):
        """`arguments`: {stage: what its program is given}."""
        self._root = root
        self._logs = root / "build" / "logs"
        self._children = children
        self._cluster = cluster
        self._program_seconds = program_seconds
        self._arguments = arguments or {}
        self._say = say or (lambda line: print(line, flush=True))

    def run(self, stages_to_run):
        """({stage: outcomes}, {part of the run: seconds}); the cluster comes up before the first stage that needs
        it."""
        outcomes, seconds = {}, {}
        for stage in stages_to_run:
            failure = None
            if STAGES[stage].is_on_cluster:
                start = time.monotonic()
                failure = self._cluster.ensure()
                seconds.setdefault("cluster", time.monotonic() - start)
            self._say(f"stage {stage}")
            start = time.monotonic()
            if failure is not None:
                outcomes[stage] = [Outcome("set_up", "failed", failure)]
                self._say(f"  FAIL set_up: {failure}")
            else:
                outcomes[stage] = self._run_stage(stage)
                for repeated in told_again(outcomes[stage]):
                    self._say(f"  FAIL {repeated.name}: {repeated.why}")
                    outcomes[stage].append(repeated)
            seconds[stage] = time.monotonic() - start
            self._say(f"stage {stage}: {seconds[stage]:.1f} s")
        return outcomes, seconds

    def _run_stage(self, stage):
        if not STAGES[stage].is_compiled:
            return self._run_program(stage)
        # Those that the tree has: one whose target is gone may still lie in the folder.
        names = [program.name for program in testprograms.in_tree(self._root) if program.stage == stage]
        if not names:
            return [Outcome("programs", "failed", f"no CMakeLists.txt below tests/{stage} has a test program")]
        folder = self._root / "build" / "dev" / "test-programs" / stage
        programs = {f"{stage}/{name}": folder / name for name in names}
        order = longest_first(programs, self._program_seconds)
        found = {}
        pool = concurrent.futures.ThreadPoolExecutor(AT_ONCE)
        try:
            running = {pool.submit(self._run_googletest, stage, programs[name]): name for name in order}
            for done in concurrent.futures.as_completed(running):
                name = running[done]
                found[name], self._program_seconds[name] = done.result()
                if self._program_seconds[name] >= SLOW_PROGRAM_SECONDS:
                    self._say(f"  {name} took {self._program_seconds[name]:.1f} s")
                for one in found[name]:
                    if one.result != "passed":
                        self._say(f"  {one.result} {one.name}: {one.why}")
        except BaseException:
            self._children.end_all()
            raise
        finally:
            pool.shutdown(cancel_futures=True)
        return [one for name in sorted(found) for one in found[name]]

    def _run_googletest(self, stage, program):
        start = time.monotonic()
        if not program.exists():
            return [Outcome(program.name, "failed", f"there is no {program.relative_to(self._root)}: build it")], 0.0
        log = self._logs / f"{stage}-{program.name}.log"
        outcomes = run_googletest(program, log, STAGES[stage].seconds_max, run=self._children.run)
        if not outcomes:
            outcomes = [Outcome(program.name, "failed", f"ran no test; log {log}")]
        return outcomes, time.monotonic() - start

    def _run_program(self, stage):
        """Outcomes of tests/STAGE/run, printed as they come."""
        program = self._root / "tests" / stage / "run"
        if not program.exists():
            return [Outcome("run", "failed", f"there is no {program.relative_to(self._root)}")]
        seconds_max = STAGES[stage].seconds_max
        outcomes = []
        log = self._logs / f"{stage}.log"
        process = self._children.start(
            [program, *self._arguments.get(stage, ())],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            cwd=self._root,
            env={**os.environ, **(ENVIRONMENT if STAGES[stage].is_on_cluster else {})},
        )
        overdue = threading.Event()

        def end():
            overdue.set()
            self._children.end(process)

        timer = threading.Timer(seconds_max, end)
        timer.daemon = True
        timer.start()
        printed = ProgramOutput(process)
        with log.open("w") as output:
            for line in printed.lines():
                output.write(line + "\n")
                output.flush()
                outcome = outcome_of_line(line)
                if outcome is not None:
                    outcomes.append(outcome)
                self._say("  " + line)
        process.stdout.close()
        timer.cancel()
        code = process.wait()
        if overdue.is_set():
            outcomes.append(Outcome("run", "failed", f"still running after {seconds_max} s; log {log}"))
        elif code != 0 and not any(outcome.result == "failed" for outcome in outcomes):
            outcomes.append(Outcome("run", "failed", f"ended with {code}; log {log}"))
        if printed.holders:
            why = f"has ended and left {', '.join(printed.holders)} behind, which hold its output open; log {log}"
            outcomes.append(Outcome("left_processes", "failed", why))
        if not outcomes:
            outcomes.append(Outcome("run", "failed", f"ran no test; log {log}"))
        return outcomes
