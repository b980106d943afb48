"""Every fuzz target over its kept inputs, each once, and on from there to a fixed number from a fixed seed. ./dev fuzz
runs them for longer."""

import subprocess
import tempfile

import corpus
import fuzzers
from building import build_targets
from caserunner import LOGS, ROOT
from judging import Unmet, expect

RUNS = 20_000
SEED = 20261121
_SECONDS_MAX = 300
_FAULTS = ROOT / "build" / "fuzz" / "faults"


def _name(target):
    return f"fuzzing_{target}_breaks_nothing"


def build(say, names):
    chosen = [f"{target}_fuzzer" for target in fuzzers.targets() if _name(target) in names]
    if chosen:
        build_targets(fuzzers.BUILD, "fuzz", chosen, say)


def _fuzz(target):
    log = LOGS / f"sanitizers-fuzz-{target}.log"
    log.write_bytes(b"")
    _FAULTS.mkdir(parents=True, exist_ok=True)
    folder = fuzzers.unpacked_folder(target)
    try:
        kept = corpus.unpack(target, folder)
    except corpus.Stray as why:
        raise Unmet(str(why)) from None
    expect(kept, f"tests/fuzz/corpus/{target}.txt has no inputs; tests/fuzz/make_corpus.cc writes the first ones")
    with tempfile.TemporaryDirectory() as found:
        try:
            code = fuzzers.run(
                target,
                log,
                [f"-runs={RUNS}", f"-seed={SEED}", f"-max_len={corpus.INPUT_BYTES_MAX}"],
                [found, folder],
                f"{_FAULTS}/{target}-",
                _SECONDS_MAX,
            )
        except subprocess.TimeoutExpired:
            raise Unmet(f"it was still running after {_SECONDS_MAX} s; log {log}") from None
    if code != 0:
        raise Unmet(f"it ended with {code}: {fuzzers.why_it_ended(log)}; the input is in {_FAULTS}, log {log}")
    return f"{kept} kept inputs and new ones, {RUNS} runs with seed {SEED}"


def _keep_nothing_stray():
    strays = corpus.find_strays(fuzzers.targets())
    expect(not strays, f"tests/fuzz/corpus has what no target runs: {', '.join(strays[:5])}")
    return f"{len(fuzzers.targets())} targets"


CASES = [
    ("fuzzing_keeps_no_stray_inputs", _keep_nothing_stray),
    *((_name(target), lambda target=target: _fuzz(target)) for target in fuzzers.targets()),
]
