"""Every fuzz target over its kept inputs, each once, and on from there to a fixed number from a fixed seed. ./dev fuzz
runs them for longer. And proof that a target which breaks is noticed."""

import shutil
import subprocess
import tempfile

import corpus
import fuzzers
from building import build_targets
from caserunner import LOGS, ROOT
from judging import Unmet, expect, expect_unmet

RUNS = 20_000
SEED = 20261121
_SECONDS_MAX = 300
_FAULTS = ROOT / "build" / "fuzz" / "faults"
# Input of planted_fault.cc: what its case has to say.
_PLANTED = {
    b"overread": "heap-buffer-overflow",
    b"memory": "out-of-memory",
    b"grow": "deadly signal",
    b"endless": "still running after",
}
_ENDLESS_SECONDS_MAX = 5
_PLANTED_CASE = "planted_faults_are_found_by_the_fuzzer"


def _name(target):
    return f"fuzzing_{target}_breaks_nothing"


def build(say, names):
    chosen = [f"{target}_fuzzer" for target in fuzzers.targets() if _name(target) in names]
    if _PLANTED_CASE in names:
        chosen.append("planted_fault_fuzzer")
    if chosen:
        build_targets(fuzzers.BUILD, "fuzz", chosen, say)


def _fuzz(target, folder, seconds_max=_SECONDS_MAX):
    """From the inputs in `folder` on; raises with what was found."""
    log = LOGS / f"sanitizers-fuzz-{folder.name}.log"
    log.write_bytes(b"")
    _FAULTS.mkdir(parents=True, exist_ok=True)
    kept = len(list(folder.iterdir()))
    expect(kept, f"{target} has no inputs; tests/fuzz/make_corpus.cc writes the first ones")
    with tempfile.TemporaryDirectory() as found:
        try:
            code = fuzzers.run(
                target,
                log,
                [f"-runs={RUNS}", f"-seed={SEED}", f"-max_len={corpus.INPUT_BYTES_MAX}"],
                [found, folder],
                f"{_FAULTS}/{target}-",
                seconds_max,
            )
        except subprocess.TimeoutExpired:
            raise Unmet(f"it was still running after {seconds_max} s; log {log}") from None
    if code != 0:
        raise Unmet(f"it ended with {code}: {fuzzers.why_it_ended(log)}; the input is in {_FAULTS}, log {log}")
    return f"{kept} kept inputs and new ones, {RUNS} runs with seed {SEED}"


def _fuzz_from_kept(target):
    folder = fuzzers.unpacked_folder(target)
    try:
        corpus.unpack(target, folder)
    except corpus.Stray as why:
        raise Unmet(str(why)) from None
    return _fuzz(target, folder)


def _folder_of(name, contents):
    folder = fuzzers.unpacked_folder(name)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for content in contents:
        (folder / "kept").write_bytes(content)
    return folder


def _find_planted_faults():
    """They go through what the targets go through."""
    target = "planted_fault"
    expect_unmet("has no inputs", "no input", lambda: _fuzz(target, _folder_of(f"{target}-no-input", [])))
    for content, words in _PLANTED.items():
        kind = content.decode()
        folder = _folder_of(f"{target}-{kind}", [content])
        seconds_max = _ENDLESS_SECONDS_MAX if kind == "endless" else _SECONDS_MAX
        expect_unmet(words, kind, lambda: _fuzz(target, folder, seconds_max))
    return ", ".join(content.decode() for content in _PLANTED)


def _keep_nothing_stray():
    strays = corpus.find_strays(fuzzers.targets())
    expect(not strays, f"tests/fuzz/corpus has what no target runs: {', '.join(strays[:5])}")
    return f"{len(fuzzers.targets())} targets"


CASES = [
    ("fuzzing_keeps_no_stray_inputs", _keep_nothing_stray),
    (_PLANTED_CASE, _find_planted_faults),
    *((_name(target), lambda target=target: _fuzz_from_kept(target)) for target in fuzzers.targets()),
]
