"""The GoogleTest programs of the checkpoint part under the sanitizers, and proof that the sanitizers would have noticed."""

import functools
import os
import re
import subprocess

from building import build_targets
from googletest import run_googletest
from judging import Unmet, expect
from places import LOGS, ROOT

PROGRAM_SECONDS_MAX = 600
_ENVIRONMENT = {
    # Of the 4000 random runs of the coordination a part: the sanitizer makes each twenty times as long.
    "asan": {
        "COORDINATION_SEEDS": "100",
        "ASAN_OPTIONS": "detect_leaks=1:halt_on_error=1:strict_string_checks=1:detect_stack_use_after_return=1",
        "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1",
    },
    "tsan": {"TSAN_OPTIONS": f"halt_on_error=1:suppressions={ROOT / 'tests' / 'checkpoint' / 'tsan.supp'}"},
}
_MARKS = (
    "ERROR: AddressSanitizer",
    "ERROR: LeakSanitizer",
    "runtime error:",
    "WARNING: ThreadSanitizer",
    "rekindle: bug",
)

# Under asan (with ubsan) all of it; under tsan what has threads or shared memory.
_ASAN_PROGRAMS = (
    "coordination_test",
    "sidecar_checkpoint_test",
    "sidecar_mindspore_test",
    "sidecar_mindspore_test",
    "sidecar_protocol_test",
    "sidecar_resharding_test",
    "sidecar_cli_test",
    "sidecar_runtime_parts_test",
    "sidecar_runtime_session_test",
    "sidecar_host_test",
    "sidecar_storage_test",
)
_TSAN_PROGRAMS = (
    "sidecar_runtime_parts_test",
    "sidecar_runtime_session_test",
    "sidecar_host_test",
    "sidecar_storage_test",
)
# Long walks by one thread: they are cases of their own under asan, and tsan has nothing to see in them.
_WALKS = "PowerLoss.*:Corruption.*"
_ONE_THREAD = f"{_WALKS}:BrokenSave.*:ReadPlan.Every*:Prune.Killed*"
_PLANTED = {
    "asan": {
        "use_after_free": "heap-use-after-free",
        "overflow": "signed integer overflow",
        "leak": "detected memory leaks",
    },
    "tsan": {"race": "data race"},
}


@functools.cache
def _steady_addresses():
    """g++ 12's sanitizers cannot place their shadow where a newer kernel spreads addresses wider. Containers that forbid this do not spread them so."""
    prefix = ("setarch", "-R")
    return prefix if subprocess.run([*prefix, "true"], capture_output=True).returncode == 0 else ()


def build(preset, say):
    programs = _ASAN_PROGRAMS if preset == "asan" else _TSAN_PROGRAMS
    build_targets(ROOT / "build" / preset, preset, [*programs, "planted_fault"], say)


def _run(preset, program, name, test_filter):
    """What a passing run says; raises with the first thing that was found."""
    log = LOGS / f"checkpoint-{name}.log"
    outcomes = run_googletest(
        ROOT / "build" / preset / "test-programs" / "unit" / program,
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


def _clean(preset, program, test_filter="*"):
    name = f"{program}_is_clean_under_{preset}{'_and_ubsan' if preset == 'asan' else ''}"
    return name, lambda: _run(preset, program, name, test_filter)


def _finds_planted_faults(preset):
    def find():
        for kind, words in _PLANTED[preset].items():
            result = subprocess.run(
                [*_steady_addresses(), ROOT / "build" / preset / "bin" / "planted_fault", kind],
                capture_output=True,
                text=True,
                errors="replace",
                env={**os.environ, **_ENVIRONMENT[preset]},
                timeout=60,
            )
            expect(
                result.returncode != 0 and words in result.stderr,
                f"planted_fault {kind} ended with {result.returncode} and said {result.stderr[:300]!r}; expected '{words}'",
            )
        return ", ".join(_PLANTED[preset])

    return f"planted_faults_are_found_by_{preset}", find


ASAN_CASES = [
    _finds_planted_faults("asan"),
    *(
        _clean("asan", program, f"-{_WALKS}" if program == "sidecar_storage_test" else "*")
        for program in _ASAN_PROGRAMS
    ),
    (
        "power_loss_anywhere_leaves_a_whole_checkpoint_under_asan",
        lambda: _run("asan", "sidecar_storage_test", "power_loss", "PowerLoss.*"),
    ),
    (
        "no_corrupted_checkpoint_is_accepted_under_asan",
        lambda: _run("asan", "sidecar_storage_test", "corruption", "Corruption.*"),
    ),
]
TSAN_CASES = [
    _finds_planted_faults("tsan"),
    *(
        _clean("tsan", program, f"-{_ONE_THREAD}" if program == "sidecar_storage_test" else "*")
        for program in _TSAN_PROGRAMS
    ),
]
