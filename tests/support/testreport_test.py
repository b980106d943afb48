"""What ./dev test says about a run, told by example."""

import pathlib
import tempfile

from googletest import Outcome
from stages import STAGES
from testreport import QUICK_SKIPS, Report, failed_requirements, longest_first, read_program_seconds, slowest_tests

TIDY = pathlib.Path(__file__).resolve().parents[1] / "tidy" / "run"
OUTCOMES = {
    "unit": [Outcome("a/B.c", "passed", "", seconds=0.5), Outcome("a/B.d", "failed", "log x", seconds=2.5)],
    "e2e": [Outcome("evict", "passed", "", seconds=61.0), Outcome("other", "skipped", "why")],
}


def skipped(*names):
    return [Outcome(name, "skipped", "why") for name in names]


def report(outcomes=OUTCOMES, missing=(), minutes=1.0, cold=False):
    seconds = {"build": 3.0, **{stage: 10.0 for stage in outcomes}}
    return Report(outcomes, list(missing), seconds, 60 * minutes, {"unit/a": 3.0}, cold)


def whole(minutes, cold):
    return list(report({stage: [] for stage in STAGES}, minutes=minutes, cold=cold).lines())[-2]


def of_garbage():
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "test.json"
        absent = read_program_seconds(path)
        path.write_text("{")
        return absent, read_program_seconds(path)


def row(name, **more):
    return next((line.split() for line in report(**more).lines() if line.startswith(name)), None)


# name: (what comes, what should)
EXAMPLES = {
    "longest-program-first-and-before-it-the-unknown": (
        longest_first(["short", "long", "new"], {"short": 1, "long": 9}),
        ["new", "long", "short"],
    ),
    "no-last-report-or-a-broken-one": (of_garbage(), ({}, {})),
    "slowest-tests": (slowest_tests(OUTCOMES, 2), [("e2e evict", 61.0), ("unit a/B.d", 2.5)]),
    "a-row-a-stage": (row("unit"), ["unit", "1", "1", "0", "10.0"]),
    "a-part-without-tests": (row("build"), ["build", "3.0"]),
    "a-failure": (report().failed, 1),
    "a-missing-test-is-a-failure": (report(missing=[("unit a/B.e", "did not run")]).failed, 2),
    "the-report-names-failures": (
        report(missing=[("unit a/B.e", "did not run")]).as_json()["failures"],
        ["unit a/B.d: log x", "unit a/B.e did not run"],
    ),
    "within-the-limit": (whole(34.0, cold=False), "total 34.0 min of at most 35 (warm)"),
    "over-the-limit": (whole(36.5, cold=False), "total 36.5 min of at most 35 (warm): 1.5 min too long"),
    "a-cold-run-may-take-longer": (whole(36.5, cold=True), "total 36.5 min of at most 60 (cold)"),
    "a-part-of-the-stages-has-no-limit": (list(report(minutes=50).lines())[-2], "total 50.0 min (warm)"),
    "required-test-that-is-gone": (
        failed_requirements(["unit a/B.x", "local y"], ["unit"], OUTCOMES),
        [("unit a/B.x", "did not run")],
    ),
    "required-test-that-was-skipped": (
        failed_requirements(["e2e other"], ["e2e"], OUTCOMES),
        [("e2e other", "was skipped")],
    ),
    "a-quick-run-may-skip-clang-tidy": (
        failed_requirements(
            list(QUICK_SKIPS), ["tidy"], {"tidy": skipped("clang-tidy", QUICK_SKIPS[1][5:])}, quick=True
        ),
        [],
    ),
    "a-quick-run-may-skip-nothing-else": (
        failed_requirements(["unit p/S.t"], ["unit"], {"unit": skipped("p/S.t")}, quick=True),
        [("unit p/S.t", "was skipped")],
    ),
    "what-a-quick-run-may-skip-is-what-tidy-skips": (
        all(f'"{name.removeprefix("tidy ")}"' in TIDY.read_text() for name in QUICK_SKIPS),
        True,
    ),
    "a-pass-under-the-same-name-hides-no-skip": (
        failed_requirements(
            ["e2e a"], ["e2e"], {"e2e": [*skipped("a"), Outcome("a", "passed", ""), Outcome("a", "passed", "")]}
        ),
        [("e2e a", "was skipped")],
    ),
}


def outcomes():
    return [
        (f"test-report-{name}", [] if actual == expected else [f"expected {expected!r}, got {actual!r}"])
        for name, (actual, expected) in EXAMPLES.items()
    ]
