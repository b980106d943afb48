"""Whole stages of small cases: what is printed, and the code that the stage ends with."""

import contextlib
import io
import pathlib
import re
import tempfile
import unittest.mock

import caserunner
from failure import Failure
from judging import Unmet, expect_unmet


def broken():
    raise Unmet("it is\n  not so")


def faulty():
    return {}["key"]


def refuse(*_):
    raise Failure("no compiler\nhere")


CASES = [("good", lambda: "seen"), ("broken", broken), ("faulty", faulty), ("good_too", lambda: "seen")]


class Stage:
    def __init__(self, *names, cases=CASES, build=None, set_up="#!/bin/sh\n"):
        """`build`: in place of a note of what there was to build."""
        self.built = []
        output = io.StringIO()
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            (root / "dev").write_text(set_up)
            (root / "dev").chmod(0o755)
            with (
                unittest.mock.patch.object(caserunner, "ROOT", root),
                unittest.mock.patch.object(caserunner, "LOGS", root / "logs"),
                unittest.mock.patch.object(caserunner.signal, "signal"),
                unittest.mock.patch("sys.argv", ["run", *names]),
                contextlib.redirect_stdout(output),
            ):
                parts = [("preset", build or (lambda _, chosen: self.built.append(chosen)), cases)]
                self.code = caserunner.main("stage", "", ["build"], parts)
        self.lines = re.sub(r"\d+ s$", "N s", output.getvalue(), flags=re.M).splitlines()

    def line_of(self, name):
        return next((line for line in self.lines if re.match(rf"(ok|FAIL) {name}:", line)), None)


def all_cases_pass():
    stage = Stage("good")
    yield stage.code, 0
    yield stage.line_of("good"), "ok good: seen, N s"
    yield stage.lines[-1], "2 passed, 0 failed, 0 skipped"


def a_case_that_is_not_met():
    stage = Stage("good", "broken")
    yield stage.code, 1
    yield stage.line_of("broken"), "FAIL broken: it is / not so"
    yield stage.lines[-1], "2 passed, 1 failed, 0 skipped"


def a_case_that_is_faulty_leaves_the_others():
    stage = Stage("faulty", "good_too")
    yield stage.code, 1
    yield "KeyError" in stage.line_of("faulty"), True
    yield stage.line_of("good_too"), "ok good_too: seen, N s"


def only_what_is_chosen_is_built():
    yield Stage("good_").built, [["good_too"]]
    yield Stage().built, [["good", "broken", "faulty", "good_too"]]


def a_name_of_no_case_is_a_failure():
    stage = Stage("nothing")
    yield (stage.code, stage.built), (1, [])


def what_does_not_build_is_not_run():
    stage = Stage(build=refuse)
    yield stage.code, 1
    yield stage.line_of("build_with_preset"), "FAIL build_with_preset: no compiler / here"
    yield stage.lines[-1], "0 passed, 1 failed, 0 skipped"


def what_cannot_be_set_up_is_not_run():
    stage = Stage(set_up="#!/bin/sh\nexit 1\n")
    yield (stage.code, stage.built, stage.lines[-1]), (1, [], "0 passed, 1 failed, 0 skipped")


def said(words, case):
    """What a judgement of it says; None when it is content."""
    try:
        expect_unmet(words, "it", case)
    except Unmet as why:
        return str(why)
    return None


def a_planted_fault_is_told_in_its_words():
    yield said("it is", broken), None
    yield said("another", broken), "it is to be told as 'another' and was told as: it is\n  not so"
    yield said("it is", lambda: "seen"), "it was not noticed: 'seen'"


STORIES = (
    all_cases_pass,
    a_case_that_is_not_met,
    a_case_that_is_faulty_leaves_the_others,
    only_what_is_chosen_is_built,
    a_name_of_no_case_is_a_failure,
    what_does_not_build_is_not_run,
    what_cannot_be_set_up_is_not_run,
    a_planted_fault_is_told_in_its_words,
)


def outcomes():
    results = []
    for story in STORIES:
        faults = [f"expected {expected!r}, got {actual!r}" for actual, expected in story() if actual != expected]
        results.append((f"case-runner-{story.__name__.replace('_', '-')}", faults))
    return results
