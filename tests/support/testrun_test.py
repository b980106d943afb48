"""Whole runs of ./dev test over a small tree: what it says, and the code that it ends with."""

import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

from stagerun_test import Tree

TESTS = pathlib.Path(__file__).resolve().parents[1]
ALL_PASS = "#!/bin/sh\necho 'ok story: 3 s'\n"
SKIPS = "#!/bin/sh\necho 'ok story: 3 s'\necho 'skip other: takes minutes'\n"
FAILS = "#!/bin/sh\necho 'FAIL story: it broke'\n"


class Run:
    """Of tests/run of this tree in another one. `stages`: {name: its program}; `dev`: what stands for ./dev."""

    def __init__(self, folder, words, stages, required="", dev='#!/bin/sh\necho "$@" >> notes\n'):
        tree = Tree(folder)
        (tree.root / "tests").mkdir()
        (tree.root / "tests" / "support").symlink_to(TESTS / "support")
        shutil.copy(TESTS / "run", tree.root / "tests" / "run")
        for stage, text in stages.items():
            tree.add_stage(stage, text)
        tree.add("dev", dev)
        self._required = tree.root / "tests" / "required.txt"
        self._required.write_text(required)
        command = [sys.executable, "-B", tree.root / "tests" / "run", *words.split()]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        self.code = done.returncode
        self.lines = (done.stdout + done.stderr).splitlines()
        self.builds = tree.notes.read_text().splitlines()
        report = tree.root / "build" / "reports" / "test.json"
        self.report = json.loads(report.read_text()) if report.exists() else None

    @property
    def required(self):
        return self._required.read_text().splitlines()[1:]


def all_is_well(folder):
    run = Run(folder, "local", {"local": ALL_PASS}, "local story\ne2e other\n")
    yield run.code, 0
    yield run.lines[-1], "1 passed, 0 failed, 0 skipped"
    yield run.builds, ["build"]
    yield run.report["passed"], 1


def a_failure_ends_with_a_code(folder):
    run = Run(folder, "local", {"local": FAILS})
    yield run.code, 1
    yield run.lines[-1], "0 passed, 1 failed, 0 skipped"
    yield run.report["failures"], ["local story: it broke"]


def a_required_test_that_did_not_run_is_a_failure(folder):
    run = Run(folder, "local", {"local": ALL_PASS}, "local story\nlocal other\n")
    yield run.code, 1
    yield "required test local other did not run" in run.lines, True
    yield run.lines[-1], "1 passed, 1 failed, 0 skipped"
    yield run.report["failures"], ["local other did not run"]


def a_required_test_that_was_skipped_is_a_failure(folder):
    run = Run(folder, "local", {"local": SKIPS}, "local other\n")
    yield run.code, 1
    yield "required test local other was skipped" in run.lines, True


def a_quick_run_may_skip_what_tidy_leaves_out(folder):
    stages = {"tidy": "#!/bin/sh\necho 'ok story'\necho 'skip clang-tidy: takes minutes'\n"}
    yield Run(folder, "--quick tidy", stages, "tidy clang-tidy\n").code, 0


def a_quick_run_skips_no_other_test(folder):
    run = Run(folder, "--quick local", {"local": SKIPS}, "local other\n")
    yield (run.code, "required test local other was skipped" in run.lines), (1, True)


def a_name_that_is_told_twice_is_a_failure(folder):
    twice = "#!/bin/sh\necho 'skip story: no root'\necho 'ok story: 3 s'\n"
    run = Run(folder, "local", {"local": twice}, "local story\n")
    yield (run.code, run.lines[-1]), (1, "1 passed, 2 failed, 1 skipped")
    yield run.report["failures"], ["local story: was told 2 times", "local story was skipped"]


def one_of_two_builds_that_fails_is_enough(folder):
    """Otherwise its stage would run what was built before."""
    for number, words in enumerate(("build --preset release", "build")):
        inner = pathlib.Path(folder) / str(number)
        inner.mkdir()
        dev = f'#!/bin/sh\n[ "$*" = "{words}" ] && exit 0\necho no such file; exit 1\n'
        run = Run(inner, "abi local", {"local": ALL_PASS}, dev=dev)
        yield (run.code, run.lines[-2:]), (1, ["the build failed", "0 passed, 1 failed, 0 skipped"])


def what_does_not_build_is_not_run(folder):
    run = Run(folder, "local", {"local": ALL_PASS}, dev="#!/bin/sh\necho no such file\nexit 1\n")
    yield run.code, 1
    yield run.lines[-3:], ["no such file", "the build failed", "0 passed, 1 failed, 0 skipped"]
    yield run.report, None


def what_ships_is_built_for_its_stage(folder):
    yield Run(folder, "abi", {}).builds, ["build", "build --preset release"]


def tidy_alone_builds_nothing(folder):
    run = Run(folder, "tidy", {"tidy": ALL_PASS})
    yield (run.code, run.builds), (0, [])


def a_stage_that_is_none(folder):
    run = Run(folder, "locale", {"local": ALL_PASS})
    yield (run.code, run.builds), (2, [])


def what_has_passed_is_written_down(folder):
    run = Run(folder, "--write-required local", {"local": SKIPS}, "# Head\nlocal gone\ne2e other\n")
    yield run.required, ["e2e other", "local story"]


STORIES = (
    all_is_well,
    a_failure_ends_with_a_code,
    a_required_test_that_did_not_run_is_a_failure,
    a_required_test_that_was_skipped_is_a_failure,
    a_quick_run_may_skip_what_tidy_leaves_out,
    a_quick_run_skips_no_other_test,
    a_name_that_is_told_twice_is_a_failure,
    one_of_two_builds_that_fails_is_enough,
    what_does_not_build_is_not_run,
    what_ships_is_built_for_its_stage,
    tidy_alone_builds_nothing,
    a_stage_that_is_none,
    what_has_passed_is_written_down,
)


def outcomes():
    results = []
    for story in STORIES:
        with tempfile.TemporaryDirectory() as folder:
            faults = [
                f"expected {expected!r}, got {actual!r}" for actual, expected in story(folder) if actual != expected
            ]
        results.append((f"test-run-{story.__name__.replace('_', '-')}", faults))
    return results
