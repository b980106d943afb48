"""The fuzz targets: what there is, and how one is run."""

import os
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / "build" / "fuzz"

# Parsers keep little more than what they read. The largest inputs are those that a target makes itself, at the real
# limits (tests/fuzz/support/cost.h).
_LIMITS = ["-rss_limit_mb=1024", "-malloc_limit_mb=64", "-timeout=20"]
INPUT_BYTES_MAX = 16384
_ENVIRONMENT = {
    "ASAN_OPTIONS": "detect_leaks=1:abort_on_error=0",
    "UBSAN_OPTIONS": "print_stacktrace=1",
    "ASAN_SYMBOLIZER_PATH": "/usr/bin/llvm-symbolizer-19",
}


def targets():
    """Names of all, from the files in the tree."""
    return sorted(path.name.removesuffix("_fuzzer.cc") for path in (ROOT / "tests" / "fuzz").glob("*_fuzzer.cc"))


def unpacked_folder(target):
    """Where the kept inputs of a target are files."""
    return BUILD / "corpus" / target


def run(target, log, options, inputs, fault_prefix, seconds_max=None):
    """Exit code of the target; what it prints goes to `log`. `inputs`: files, each run once, or folders of which the
    first takes what is found. An input that breaks something is written to fault_prefix..."""
    command = [BUILD / "fuzzers" / target, *_LIMITS, f"-artifact_prefix={fault_prefix}", *options, *inputs]
    with log.open("ab") as output:
        return subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=ROOT,
            env={**os.environ, **_ENVIRONMENT},
            timeout=seconds_max,
        ).returncode


def why_it_ended(log):
    """The line that says what was found."""
    marks = ("rekindle: bug", "runtime error:", "ERROR: AddressSanitizer", "ERROR: LeakSanitizer", "ERROR: libFuzzer")
    lines = log.read_text(errors="replace").splitlines()
    return next(
        (line.strip() for mark in marks for line in lines if mark in line),
        lines[-1].strip() if lines else "it printed nothing",
    )
