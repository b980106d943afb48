"""Whole runs of stages, with small programs and a cluster that only takes notes in place of the real ones."""

import contextlib
import dataclasses
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import unittest.mock

from children import Children
from googletest import Outcome
from kubernetes import Failed
from sharedcluster import SharedCluster
from stagerun import StageRun, outcome_of_line
from stages import STAGES

SUPPORT = pathlib.Path(__file__).resolve().parent
# A GoogleTest program as we see it: a report, an exit code.
GOOGLETEST = """#!/bin/sh
for word in "$@"; do case "$word" in --gtest_output=json:*) report=${word#*json:} ;; esac; done
MEETING
[ RESULT = crash ] && exit 3
[ RESULT = empty ] && echo '{"testsuites": []}' > "$report" && exit 0
printf '{"testsuites": [{"name": "Suite", "testsuite": [{"name": "case", "time": "7s", "status": "RUN", "result": "COMPLETED"%s}]}]}' 'FAILURES' > "$report"
[ RESULT = late ] && exit 3
exit 0
"""
NOTE = '#!/bin/sh\necho "STAGE $REKINDLE_INSTALLED" >> notes\necho "ok story: 3 s"\n'


class Tree:
    """A folder that looks like the repository to StageRun."""

    def __init__(self, folder):
        self.root = pathlib.Path(folder)
        self.said = []
        self.program_seconds = {}
        (self.root / "build" / "logs").mkdir(parents=True)
        self.notes.write_text("")

    @property
    def notes(self):
        return self.root / "notes"

    def add(self, path, text):
        path = self.root / path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)

    def add_stage(self, stage, text=NOTE):
        self.add(f"tests/{stage}/run", text.replace("STAGE", stage))

    def add_googletest(self, name, failures="", result="", meeting="", target=True):
        """`target`: whether the tree still has it."""
        if target:
            self.add(f"tests/unit/{name}/CMakeLists.txt", f"rekindle_test({name} SOURCES {name}.cc)")
        text = GOOGLETEST.replace("FAILURES", failures).replace("RESULT", result).replace("MEETING", meeting)
        self.add(f"build/dev/test-programs/unit/{name}", text)

    def note(self, line):
        with self.notes.open("a") as notes:
            notes.write(line + "\n")

    @contextlib.contextmanager
    def installed(self):
        self.note("up")
        try:
            yield
        finally:
            self.note("down")

    def run(self, *stages, installed=None):
        cluster = SharedCluster(installed or self.installed, Failed)
        try:
            run = StageRun(self.root, Children(), cluster, self.program_seconds, say=self.said.append)
            # As tests/run does it: programs find the tree as their folder.
            return run.run(stages)
        finally:
            cluster.take_down()


def limit_of(stage, seconds_max):
    """A shorter one while the block runs."""
    return unittest.mock.patch.dict(STAGES, {stage: dataclasses.replace(STAGES[stage], seconds_max=seconds_max)})


def one_cluster_for_three_stages(tree):
    for stage in ("local", "demo", "admission", "e2e"):
        tree.add_stage(stage)
    outcomes, seconds = tree.run("local", "demo", "admission", "e2e")
    yield tree.notes.read_text().split("\n"), ["local ", "up", "demo 1", "admission 1", "e2e 1", "down", ""]
    yield outcomes["e2e"], [Outcome("story", "passed", "3 s", seconds=3.0)]
    yield list(seconds), ["local", "cluster", "demo", "admission", "e2e"]


def no_cluster_without_need(tree):
    tree.add_stage("local")
    tree.run("local")
    yield tree.notes.read_text(), "local \n"


def a_cluster_that_does_not_come_up(tree):
    tree.add_stage("demo")
    tree.add_stage("e2e")

    @contextlib.contextmanager
    def broken():
        tree.note("up")
        raise Failed("no root\nhere")
        yield

    outcomes, _ = tree.run("demo", "e2e", installed=broken)
    # Tried once, and no stage runs without it.
    yield tree.notes.read_text(), "up\n"
    yield [outcomes[stage][0].result for stage in ("demo", "e2e")], ["failed", "failed"]
    yield outcomes["demo"][0].why, "no root / here"


def a_stage_that_fails_leaves_the_others_their_cluster(tree):
    tree.add_stage("demo", "#!/bin/sh\necho 'FAIL story: it broke (after 4 s; logs)'\nexit 1\n")
    tree.add_stage("e2e")
    outcomes, _ = tree.run("demo", "e2e")
    yield tree.notes.read_text(), "up\ne2e 1\ndown\n"
    yield outcomes["demo"][0][:2], ("story", "failed")


def a_stage_that_says_nothing_has_failed(tree):
    tree.add_stage("local", "#!/bin/sh\nexit 0\n")
    outcomes, _ = tree.run("local")
    yield [outcome.result for outcome in outcomes["local"]], ["failed"]


def a_stage_that_ends_badly_has_failed(tree):
    tree.add_stage("local", "#!/bin/sh\necho ok story\nexit 9\n")
    outcomes, _ = tree.run("local")
    yield [outcome.result for outcome in outcomes["local"]], ["passed", "failed"]


def a_stage_that_does_not_end_is_ended(tree):
    tree.add_stage("local", "#!/bin/sh\necho 'ok story: 3 s'\nexec sleep 600\n")
    with limit_of("local", 0.2):
        outcomes, _ = tree.run("local")
    yield [one[:2] for one in outcomes["local"]], [("story", "passed"), ("run", "failed")]
    yield outcomes["local"][1].why.startswith("still running after 0.2 s"), True


def a_stage_that_leaves_a_process_behind_has_failed(tree):
    """In a session of its own, where no signal to the stage's group reaches it; it holds the stage's output open."""
    tree.add_stage("local", "#!/bin/sh\nsetsid sleep 600 &\necho $! > left\necho 'ok story: 3 s'\nprintf 'ok last'\n")
    try:
        outcomes, _ = tree.run("local")
    finally:
        left = int((tree.root / "left").read_text())
        os.kill(left, signal.SIGKILL)
    told = [one[:2] for one in outcomes["local"]]
    left_program = "{} ({})".format("sleep", left)
    yield told, [("story", "passed"), ("last", "passed"), ("left_processes", "failed")]
    yield f"left {left_program} behind" in outcomes["local"][2].why, True


def a_stage_that_tells_a_name_twice_has_failed(tree):
    tree.add_stage("local", "#!/bin/sh\necho 'skip story: no root'\necho 'ok story: 3 s'\n")
    outcomes, _ = tree.run("local")
    yield outcomes["local"][2], Outcome("story", "failed", "was told 2 times")
    yield tree.said.count("  FAIL story: was told 2 times"), 1


def googletest_programs(tree):
    tree.add_googletest("good")
    tree.add_googletest("bad", failures=', "failures": [{}]')
    tree.add_googletest("gone", result="crash")
    tree.add_googletest("left_out", failures=', "status": "NOTRUN"')
    tree.add_googletest("skipped", failures=', "result": "SKIPPED"')
    outcomes, _ = tree.run("unit")
    yield (
        [(one.name, one.result, one.seconds) for one in outcomes["unit"]],
        [
            ("bad/Suite.case", "failed", 7.0),
            ("gone", "failed", 0.0),
            ("good/Suite.case", "passed", 7.0),
            ("left_out/Suite.case", "skipped", 0.0),
            ("skipped/Suite.case", "skipped", 0.0),
        ],
    )
    yield sorted(tree.program_seconds), ["unit/bad", "unit/gone", "unit/good", "unit/left_out", "unit/skipped"]
    yield sum("failed" in line for line in tree.said), 2


def a_googletest_program_that_ends_badly_has_failed(tree):
    """Its tests have passed, and what ends it comes behind them: a leak, a destructor."""
    tree.add_googletest("late", result="late")
    outcomes, _ = tree.run("unit")
    yield [one[:2] for one in outcomes["unit"]], [("late/Suite.case", "passed"), ("late", "failed")]


def a_googletest_program_that_does_not_end_has_failed(tree):
    tree.add_googletest("hanging", meeting="exec sleep 600")
    with limit_of("unit", 0.2):
        outcomes, _ = tree.run("unit")
    yield [one[:2] for one in outcomes["unit"]], [("hanging", "failed")]
    yield "still running after 0.2 s" in outcomes["unit"][0].why, True
    yield outcomes["unit"][0].end, "time-out"


def a_googletest_program_without_a_test_has_failed(tree):
    tree.add_googletest("empty", result="empty")
    outcomes, _ = tree.run("unit")
    yield [one[:2] for one in outcomes["unit"]], [("empty", "failed")]
    yield outcomes["unit"][0].why.startswith("ran no test"), True


def a_googletest_program_without_a_target_is_not_run(tree):
    """It was built once; nobody builds it any more."""
    tree.add_googletest("stale", target=False)
    tree.add_googletest("current")
    outcomes, _ = tree.run("unit")
    yield [one[:2] for one in outcomes["unit"]], [("current/Suite.case", "passed")]


def a_googletest_program_that_is_not_built_has_failed(tree):
    tree.add_googletest("part")
    (tree.root / "build/dev/test-programs/unit/part").unlink()
    outcomes, _ = tree.run("unit")
    yield [one[:2] for one in outcomes["unit"]], [("part", "failed")]


def a_stage_without_googletest_programs_has_failed(tree):
    tree.add_googletest("stale", target=False)
    outcomes, _ = tree.run("unit")
    yield [one[:2] for one in outcomes["unit"]], [("programs", "failed")]


def two_googletest_programs_at_a_time(tree):
    fifo = tree.root / "fifo"
    os.mkfifo(fifo)
    # Each of them waits for the other one.
    tree.add_googletest("left", meeting=f"timeout 20 sh -c 'echo here > {fifo}' || exit 3")
    tree.add_googletest("right", meeting=f"timeout 20 sh -c 'read word < {fifo}' || exit 3")
    outcomes, _ = tree.run("unit")
    yield [outcome.result for outcome in outcomes["unit"]], ["passed", "passed"]


def lines_of_stages(_):
    yield outcome_of_line("ok name: 12 s, what it saw"), Outcome("name", "passed", "12 s, what it saw", seconds=12.0)
    yield outcome_of_line("ok name: 8 files, 12 s").seconds, 12.0
    yield outcome_of_line("ok name").seconds, 0.0
    yield outcome_of_line("skip name: no root").result, "skipped"
    yield outcome_of_line("12 passed, 0 failed"), None


RUN_UNTIL_SIGNALLED = """
import signal, sys
sys.path[:0] = [{support!r}]
from stagerun_test import Tree
from children import Children
from kubernetes import Failed
from sharedcluster import SharedCluster
from stagerun import StageRun
tree = Tree({root!r})
signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
children, cluster = Children(), SharedCluster(tree.installed, Failed)
try:
    StageRun(tree.root, children, cluster, {{}}).run({stages!r})
finally:
    children.end_all()
    cluster.take_down()
"""
UNTIL_SIGNALLED = "#!/bin/sh\ntrap 'echo stage ended >> notes; exit 143' TERM\necho waiting\nsleep 600 & wait\n"


def a_signal_ends_the_stage_and_takes_the_cluster_down(tree):
    root = tree.root / "inner"
    root.mkdir()
    program = RUN_UNTIL_SIGNALLED.format(support=str(SUPPORT), root=str(root), stages=["demo", "e2e"])
    (root / "tests" / "demo").mkdir(parents=True)
    (root / "tests" / "demo" / "run").write_text(UNTIL_SIGNALLED)
    (root / "tests" / "demo" / "run").chmod(0o755)
    process = subprocess.Popen([sys.executable, "-B", "-c", program], stdout=subprocess.PIPE, text=True)
    for line in process.stdout:
        if "waiting" in line:
            os.kill(process.pid, signal.SIGTERM)
    yield process.wait(), 143
    yield (root / "notes").read_text(), "up\nstage ended\ndown\n"


STORIES = (
    one_cluster_for_three_stages,
    no_cluster_without_need,
    a_cluster_that_does_not_come_up,
    a_stage_that_fails_leaves_the_others_their_cluster,
    a_stage_that_says_nothing_has_failed,
    a_stage_that_ends_badly_has_failed,
    a_stage_that_does_not_end_is_ended,
    a_stage_that_leaves_a_process_behind_has_failed,
    a_stage_that_tells_a_name_twice_has_failed,
    googletest_programs,
    a_googletest_program_that_does_not_end_has_failed,
    a_googletest_program_without_a_test_has_failed,
    a_googletest_program_that_ends_badly_has_failed,
    a_googletest_program_without_a_target_is_not_run,
    a_googletest_program_that_is_not_built_has_failed,
    a_stage_without_googletest_programs_has_failed,
    two_googletest_programs_at_a_time,
    lines_of_stages,
    a_signal_ends_the_stage_and_takes_the_cluster_down,
)


def outcomes():
    results = []
    for story in STORIES:
        with tempfile.TemporaryDirectory() as folder:
            faults = [
                f"expected {expected!r}, got {actual!r}"
                for actual, expected in story(Tree(folder))
                if actual != expected
            ]
        results.append((f"stages-{story.__name__.replace('_', '-')}", faults))
    return results
