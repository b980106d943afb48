"""The GoogleTest programs under the sanitizers, and proof that the sanitizers would have noticed.

A sanitizer makes a test several times as long. Spaces that a test of the stage `unit` walks whole are sampled here
(tests/support/thoroughness.h).
"""

import functools
import re
import subprocess

import sanitized_programs
import testprograms
from building import build_targets
from caserunner import LOGS, ROOT
from googletest import run_googletest
from judging import Unmet, expect, expect_unmet

PROGRAM_SECONDS_MAX = 600
_ENVIRONMENT = {
    "asan": {
        "ASAN_OPTIONS": "detect_leaks=1:halt_on_error=1:strict_string_checks=1:detect_stack_use_after_return=1",
        "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1",
    },
    "tsan": {"TSAN_OPTIONS": f"halt_on_error=1:suppressions={ROOT / 'tests' / 'sanitizers' / 'tsan.supp'}"},
}
_MARKS = (
    "ERROR: AddressSanitizer",
    "ERROR: LeakSanitizer",
    "runtime error:",
    "WARNING: ThreadSanitizer",
    "rekindle: bug",
)

# Of one thread: tsan has nothing to see in them. Suites of the programs that also have others.
_ONE_THREAD = "PowerLoss.*:Corruption.*:BrokenSave.*:ReadPlan.Every*:Prune.Killed*"
_PROGRAMS = testprograms.in_tree(ROOT)
_PLANTED = testprograms.TestProgram("sanitizers", "planted_fault", ())
# Test of planted_fault.cc: what its case has to say. The first two are no sanitizer's: a test
# that fails is a finding of this stage as well, and a filter that chooses nothing shows nothing.
_FOUND_BY_ANY = {"Planted.FailedExpectation": "Planted.FailedExpectation", "Planted.NoSuchTest": "no test ran"}
_FOUND_BY = {
    "asan": {
        "Planted.UseAfterFree": "heap-use-after-free",
        "Planted.UseAfterFreeInAChild": "heap-use-after-free",
        "Planted.Overflow": "signed integer overflow",
        "Planted.Leak": "detected memory leaks",
    },
    "tsan": {"Planted.Race": "data race"},
}


@functools.cache
def _steady_addresses():
    """g++ 12's sanitizers cannot place their shadow where a newer kernel spreads addresses wider. Containers that
    forbid this do not spread them so."""
    prefix = ("setarch", "-R")
    return prefix if subprocess.run([*prefix, "true"], capture_output=True).returncode == 0 else ()


def build_for(preset):
    """Builds the programs of the chosen cases, and no others."""

    def build(say, names):
        chosen = [
            program.name
            for program in sanitized_programs.under(preset, _PROGRAMS)
            if _name(preset, program.name) in names
        ]
        build_targets(ROOT / "build" / preset, preset, [*chosen, _PLANTED.name], say)

    return build


def _name(preset, program):
    return f"{program}_is_clean_under_{preset}{'_and_ubsan' if preset == 'asan' else ''}"


def _run(preset, program, name, test_filter):
    """What a passing run says; raises with the first thing that was found."""
    log = LOGS / f"sanitizers-{name}.log"
    outcomes = run_googletest(
        ROOT / "build" / preset / "test-programs" / program.stage / program.name,
        log,
        PROGRAM_SECONDS_MAX,
        [f"--gtest_filter={test_filter}"],
        _ENVIRONMENT[preset],
        _steady_addresses(),
    )
    text = log.read_text(errors="replace")
    reported = next((line.strip() for line in text.splitlines() if any(mark in line for mark in _MARKS)), None)
    failed = [outcome for outcome in outcomes if outcome.result == "failed"]
    if reported or failed:
        raise Unmet(
            "; ".join(filter(None, [reported, *(f"{outcome.name} {outcome.why}" for outcome in failed[:3])]))
            + f"; log {log}"
        )
    passed = sum(outcome.result == "passed" for outcome in outcomes)
    skipped = [outcome.name for outcome in outcomes if outcome.result == "skipped"]
    expect(passed > 0, f"no test ran; log {log}")
    seeds = re.findall(r"^seed (\d+)$", text, re.MULTILINE)
    return (
        f"{passed} tests"
        + (f", seeds {', '.join(seeds)}" if seeds else "")
        + (f", skipped by themselves: {', '.join(skipped)}" if skipped else "")
    )


def _clean(preset, program):
    name = _name(preset, program.name)
    test_filter = f"-{_ONE_THREAD}" if preset == "tsan" else "*"
    return name, lambda: _run(preset, program, name, test_filter)


def _finds_planted_faults(preset):
    """They go through what the clean programs go through."""

    def find():
        planted = _FOUND_BY_ANY | _FOUND_BY[preset]
        for test, words in planted.items():
            log_name = f"planted-{test.removeprefix('Planted.')}-under-{preset}"
            expect_unmet(words, test, lambda: _run(preset, _PLANTED, log_name, test))
        return ", ".join(planted)

    return f"planted_faults_are_found_by_{preset}", find


def _cases(preset):
    clean = [_clean(preset, program) for program in sanitized_programs.under(preset, _PROGRAMS)]
    return [_finds_planted_faults(preset), *clean]


ASAN_CASES = _cases("asan")
TSAN_CASES = _cases("tsan")
