"""The GoogleTest programs under the sanitizers, and proof that the sanitizers would have noticed.

A sanitizer makes a test several times as long. Spaces that a test of the stage `unit` walks whole are sampled here
(tests/support/thoroughness.h).
"""

import functools
import os
import re
import subprocess

from building import build_targets
from caserunner import LOGS, ROOT
from googletest import run_googletest
from judging import Unmet, expect

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

# Under asan with ubsan every program whose code is in the test's own process; what starts other programs is for the
# stages `unit` and `e2e`.
_ASAN_PROGRAMS = (
    "common_base_test",
    "common_contract_test",
    "common_net_test",
    "common_system_test",
    "coordination_test",
    "operator_admission_test",
    "operator_config_test",
    "operator_controller_test",
    "operator_faults_test",
    "operator_io_test",
    "operator_kube_test",
    "operator_model_test",
    "operator_reconcile_test",
    "operator_scenario_test",
    "operator_transport_test",
    "sidecar_checkpoint_test",
    "sidecar_cli_test",
    "sidecar_cluster_test",
    "sidecar_hook_test",
    "sidecar_host_test",
    "sidecar_launcher_test",
    "sidecar_mindspore_test",
    "sidecar_protocol_test",
    "sidecar_resharding_test",
    "sidecar_runtime_parts_test",
    "sidecar_runtime_session_test",
    "sidecar_storage_test",
)
# Under tsan what has threads or shared memory.
_TSAN_PROGRAMS = (
    "common_base_test",
    "common_net_test",
    "common_system_test",
    "operator_config_test",
    "operator_io_test",
    "operator_transport_test",
    "sidecar_cluster_test",
    "sidecar_hook_test",
    "sidecar_host_test",
    "sidecar_launcher_test",
    "sidecar_runtime_parts_test",
    "sidecar_runtime_session_test",
    "sidecar_storage_test",
)
# Of one thread: tsan has nothing to see in them. Suites of the programs that also have others.
_ONE_THREAD = "PowerLoss.*:Corruption.*:BrokenSave.*:ReadPlan.Every*:Prune.Killed*"
_PROGRAMS = {"asan": _ASAN_PROGRAMS, "tsan": _TSAN_PROGRAMS}
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
    """g++ 12's sanitizers cannot place their shadow where a newer kernel spreads addresses wider. Containers that
    forbid this do not spread them so."""
    prefix = ("setarch", "-R")
    return prefix if subprocess.run([*prefix, "true"], capture_output=True).returncode == 0 else ()


def build_for(preset):
    """Builds the programs of the chosen cases, and no others."""

    def build(say, names):
        programs = [program for program in _PROGRAMS[preset] if _name(preset, program) in names]
        build_targets(ROOT / "build" / preset, preset, [*programs, "planted_fault"], say)

    return build


def _path_of(preset, program):
    stage = "scenario" if program == "operator_scenario_test" else "unit"
    return ROOT / "build" / preset / "test-programs" / stage / program


def _name(preset, program):
    return f"{program}_is_clean_under_{preset}{'_and_ubsan' if preset == 'asan' else ''}"


def _run(preset, program, name, test_filter):
    """What a passing run says; raises with the first thing that was found."""
    log = LOGS / f"sanitizers-{name}.log"
    outcomes = run_googletest(
        _path_of(preset, program),
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
    name = _name(preset, program)
    test_filter = f"-{_ONE_THREAD}" if preset == "tsan" else "*"
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


ASAN_CASES = [_finds_planted_faults("asan"), *(_clean("asan", program) for program in _ASAN_PROGRAMS)]
TSAN_CASES = [_finds_planted_faults("tsan"), *(_clean("tsan", program) for program in _TSAN_PROGRAMS)]
