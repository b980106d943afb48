"""Whole stages on a cluster that is none: what is printed of each case, and the code that the stage ends with."""

import contextlib
import io
import pathlib
import re
import tempfile
import types
from unittest.mock import patch

import stage
from failure import Failure
from kubernetes import Failed
from stage import Cases, Skipped, expect, expect_equal
from storytests import Exited, entered, outcomes_of_stories

CASES = Cases()


@CASES.case()
def good(site, scene):
    scene.losses.append("steps_lost 0")
    return f"seed {site.seed}"


@CASES.case(level=None)
def unmet(site, scene):
    expect(True, "never said")
    expect_equal(1, 2, "the number\nof pods")


@CASES.case()
def failed(site, scene):
    raise Failed("waited in vain")


@CASES.case()
def faulty(site, scene):
    return {}["key"]


@CASES.case()
def uncounted(site, scene):
    raise Failure("rank 1 has left no journal")


@CASES.case()
def skipped(site, scene):
    raise Skipped("no second node")


@CASES.case(node=True)
def reaching(site, scene):
    return "reached"


@CASES.case(alone=True)
def lonely(site, scene):
    return f"beside {sorted(one.name for one in FakeScene.all if not one.has_ended)}"


class FakeScene:
    all = []

    def __init__(self, kubernetes, stage_name, name, level, folder):
        self.name, self.level, self.folder = name, level, folder
        self.losses, self.calls = [], []
        FakeScene.all.append(self)

    @property
    def has_ended(self):
        return "begin_end" in self.calls

    def begin(self):
        self.calls.append("begin")

    def dump(self):
        self.calls.append("dump")
        if self.name == "failed":
            raise OSError("disk full")

    def begin_end(self):
        self.calls.append("begin_end")

    def finish_end(self):
        self.calls.append("finish_end")


class Stage:
    """A run with these words. `faults`: what the operators' logs show; `set_up`: what stands in its way."""

    def __init__(self, *words, faults=(), set_up=None):
        FakeScene.all = []
        self.kubernetes = types.SimpleNamespace(embedded="--context" not in words)

        @contextlib.contextmanager
        def installed(*_, **__):
            if set_up:
                raise Failed(set_up)
            yield

        operators = types.SimpleNamespace(
            faults=lambda: list(faults), summary=lambda: "7 lines of 1 containers", close=lambda: None
        )

        def leave(code):
            raise Exited(code)

        output = io.StringIO()
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            with (
                entered(
                    [
                        patch.object(stage, "ROOT", root),
                        patch.object(stage, "Scene", FakeScene),
                        patch.object(stage, "OperatorLogs", lambda *_: operators),
                        patch.object(stage, "Kubernetes", lambda _: contextlib.nullcontext(self.kubernetes)),
                        patch.object(stage.installation, "installed", installed),
                        patch.object(stage.signal, "signal"),
                        patch.object(stage.os, "_exit", leave),
                        patch("sys.argv", ["run", "--seed", "5", *words]),
                    ]
                ),
                contextlib.redirect_stdout(output),
                contextlib.redirect_stderr(output),
            ):
                try:
                    self.code = stage.main("e2e", CASES.all, "")
                except (Exited, SystemExit) as end:
                    self.code = end.code
            self.kept = sorted(str(path.relative_to(root / "build/logs/e2e")) for path in root.rglob("*.txt"))
        self.lines = re.sub(r"\d+ s\b", "N s", output.getvalue()).splitlines()

    def line_of(self, name):
        return next((line for line in self.lines if re.match(rf"(ok|FAIL|skip) {name}\b", line)), None)


def a_case_that_holds_is_ok():
    run = Stage("--only", "good")
    yield (
        run.lines,
        [
            "ok good: N s, seed 5, steps_lost 0",
            "ok no_operator_ended_by_itself: 7 lines of 1 containers",
            "2 passed, 0 failed, 0 skipped",
        ],
    )
    yield run.code, 0
    yield FakeScene.all[0].calls, ["begin", "begin_end", "begin_end", "finish_end"]


def a_case_that_does_not_hold_fails_the_stage():
    run = Stage("--only", "unmet", "good")
    yield run.code, 1
    yield (
        run.line_of("unmet"),
        "FAIL unmet: the number / of pods: expected 2, got 1 (after N s; logs in build/logs/e2e/unmet)",
    )
    yield run.line_of("good"), "ok good: N s, seed 5, steps_lost 0"
    yield run.lines[-1], "2 passed, 1 failed, 0 skipped"
    yield next(one.calls for one in FakeScene.all if one.name == "unmet")[:2], ["begin", "dump"]


def a_cluster_that_does_not_do_its_part_fails_the_stage():
    run = Stage("--only", "failed", "uncounted")
    yield run.code, 1
    yield "(what helps could not be kept: disk full)" in run.line_of("failed"), True
    yield run.line_of("uncounted").startswith("FAIL uncounted: rank 1 has left no journal"), True
    yield run.lines[-1], "1 passed, 2 failed, 0 skipped"


def a_case_that_is_faulty_leaves_the_others():
    run = Stage("--only", "faulty", "good")
    yield run.code, 1
    yield "KeyError" in run.line_of("faulty"), True
    yield run.kept, ["faulty/traceback.txt"]
    yield run.lines[-1], "2 passed, 1 failed, 0 skipped"


def a_case_that_cannot_run_is_skipped():
    run = Stage("--only", "skipped", "good")
    yield run.line_of("skipped"), "skip skipped: no second node"
    yield (run.code, run.lines[-1]), (0, "2 passed, 0 failed, 1 skipped")


def a_case_that_reaches_into_a_node_needs_the_embedded_cluster():
    run = Stage("--only", "reaching", "--context", "kind")
    yield run.line_of("reaching").startswith("skip reaching: it reaches into a node"), True
    yield (run.code, run.lines[-1]), (0, "1 passed, 0 failed, 1 skipped")
    yield Stage("--only", "reaching").line_of("reaching"), "ok reaching: N s, reached"


def a_case_alone_runs_when_the_others_have_ended():
    yield Stage("--only", "good", "lonely").line_of("lonely"), "ok lonely: N s, beside ['lonely']"


def an_operator_that_ended_by_itself_fails_the_stage():
    run = Stage("--only", "good", faults=["operator-a-0.log: rekindle: bug: x", "y", "z", "more"])
    yield run.code, 1
    yield (
        run.line_of("no_operator_ended_by_itself"),
        "FAIL no_operator_ended_by_itself: operator-a-0.log: rekindle: bug: x; y; z",
    )
    yield run.lines[-1], "1 passed, 1 failed, 0 skipped"


def what_cannot_be_set_up_fails_the_stage():
    run = Stage("--only", "good", set_up="no root\nhere")
    yield run.code, 1
    yield run.lines, ["FAIL set_up: no root / here", "0 passed, 1 failed, 0 skipped"]


def a_name_of_no_case_is_refused():
    run = Stage("--only", "nothing")
    yield (run.code, FakeScene.all), (2, [])
    yield "no case begins with nothing" in run.lines[-1], True


def cases_can_be_named_only():
    run = Stage("--list", "--only", "un")
    yield (run.code, run.lines), (0, ["unmet", "uncounted"])


def outcomes():
    return outcomes_of_stories(
        "stage",
        (
            a_case_that_holds_is_ok,
            a_case_that_does_not_hold_fails_the_stage,
            a_cluster_that_does_not_do_its_part_fails_the_stage,
            a_case_that_is_faulty_leaves_the_others,
            a_case_that_cannot_run_is_skipped,
            a_case_that_reaches_into_a_node_needs_the_embedded_cluster,
            a_case_alone_runs_when_the_others_have_ended,
            an_operator_that_ended_by_itself_fails_the_stage,
            what_cannot_be_set_up_fails_the_stage,
            a_name_of_no_case_is_refused,
            cases_can_be_named_only,
        ),
    )
