"""Every fuzz target over its kept inputs, and then a run of a fixed length from a fixed seed. ./dev fuzz runs them for longer."""

import subprocess
import tempfile

import fuzzers
from building import build_targets
from judging import Unmet, expect
from places import LOGS, WORK

RUNS = 20_000
SEED = 20261121
_SECONDS_MAX = 300


def build(say):
    build_targets(fuzzers.BUILD, "fuzz", ["fuzzers"], say)


def _fuzz(target):
    log = LOGS / f"checkpoint-fuzz-{target}.log"
    log.write_bytes(b"")
    faults = WORK / "faults"
    faults.mkdir(parents=True, exist_ok=True)
    kept = fuzzers.kept_inputs(target)
    # Without a file to run, libFuzzer would not end.
    expect(kept, f"tests/fuzz/corpus/{target} has no inputs; tests/fuzz/make_corpus.cc writes the first ones")
    with tempfile.TemporaryDirectory() as found:
        for what, options, inputs in (
            ("a kept input", [], kept),
            (
                f"a run with seed {SEED}",
                [f"-runs={RUNS}", f"-seed={SEED}", "-max_len=4096"],
                [found, fuzzers.CORPUS / target],
            ),
        ):
            try:
                code = fuzzers.run(target, log, options, inputs, f"{faults}/{target}-", _SECONDS_MAX)
            except subprocess.TimeoutExpired:
                raise Unmet(f"{what} was still running after {_SECONDS_MAX} s; log {log}") from None
            if code != 0:
                raise Unmet(
                    f"{what} ended with {code}: {fuzzers.why_it_ended(log)}; the input is in {faults}, log {log}"
                )
    return f"{len(kept)} kept inputs, {RUNS} runs with seed {SEED}"


CASES = [(f"fuzzing_{target}_breaks_nothing", lambda target=target: _fuzz(target)) for target in fuzzers.targets()]
