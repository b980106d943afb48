"""The stage `local` (tests/local/run) with small cases: what is printed of each, and the code that it ends with."""

import contextlib
import io
import pathlib
import re
import tempfile
from unittest.mock import patch

from failure import Failure
from selfcheck import outcomes_of
from storytests import entered, program

RUN = program("local/run")


def good(context, processes, folder):
    (folder / "log").write_text("said")


def unmet(context, processes, folder):
    (folder / "log").write_text("said")
    raise RUN.Unmet("it is\n  not so")


def failed(context, processes, folder):
    raise Failure("the run ended with 3")


def faulty(context, processes, folder):
    return {}["key"]


def skipped(context, processes, folder):
    raise RUN.Skipped("no cgroup here")


class Stage:
    def __init__(self, *names, unbuilt=None):
        def build(folder):
            if unbuilt:
                raise Failure(unbuilt)

        output = io.StringIO()
        with tempfile.TemporaryDirectory() as name:
            root = pathlib.Path(name)
            with (
                entered(
                    [
                        patch.object(RUN, "REPOSITORY", root),
                        patch.object(RUN, "CASES", [good, unmet, failed, faulty, skipped]),
                        patch.object(RUN, "build_programs", build),
                        patch.object(RUN.dataset, "ensure", lambda: root / "digits.csv"),
                        patch.object(RUN.signal, "signal"),
                        patch("sys.argv", ["run", *names]),
                    ]
                ),
                contextlib.redirect_stdout(output),
            ):
                self.code = RUN.main()
            self.kept = sorted(path.parent.name for path in root.rglob("log"))
        self.lines = re.sub(r"\d+ s$", "N s", output.getvalue(), flags=re.M).splitlines()


def a_case_that_holds_is_ok():
    stage = Stage("good")
    yield (stage.code, stage.lines, stage.kept), (0, ["ok good: N s", "1 passed, 0 failed, 0 skipped"], [])


def a_case_that_does_not_hold_fails_the_stage():
    stage = Stage("good", "unmet", "failed")
    yield stage.code, 1
    yield (
        stage.lines,
        [
            "ok good: N s",
            "FAIL unmet: it is / not so",
            "FAIL failed: the run ended with 3",
            "1 passed, 2 failed, 0 skipped",
        ],
    )
    yield stage.kept, ["unmet"]


def a_case_that_is_faulty_leaves_the_others():
    stage = Stage("faulty", "good")
    yield stage.code, 1
    yield [line.startswith("FAIL faulty: ") and "KeyError" in line for line in stage.lines], [False, True, False]
    yield stage.lines[-1], "1 passed, 1 failed, 0 skipped"


def a_case_that_cannot_run_is_skipped():
    stage = Stage("skipped", "good")
    yield (stage.code, stage.lines[-2:]), (0, ["skip skipped: no cgroup here", "1 passed, 0 failed, 1 skipped"])


def what_does_not_build_is_not_run():
    stage = Stage(unbuilt="no compiler")
    yield (stage.code, stage.lines), (1, ["FAIL set_up: no compiler", "0 passed, 1 failed, 0 skipped"])


def a_name_of_no_case_is_a_failure():
    yield Stage("nothing").code, 1


def outcomes():
    return outcomes_of(
        "stage-local",
        (
            a_case_that_holds_is_ok,
            a_case_that_does_not_hold_fails_the_stage,
            a_case_that_is_faulty_leaves_the_others,
            a_case_that_cannot_run_is_skipped,
            what_does_not_build_is_not_run,
            a_name_of_no_case_is_a_failure,
        ),
    )
