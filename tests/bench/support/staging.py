"""Pairs of one of our copies and a plain memcpy of the same bytes (tests/bench/stage/stage_benchmark.cc)."""

import json
import subprocess

import shipped

PROGRAM = shipped.PROGRAMS / "stage_benchmark"


def pairs_of(what, mebibytes, pairs):
    output = subprocess.run(
        [PROGRAM, what, str(mebibytes), str(pairs)], check=True, capture_output=True, text=True
    ).stdout
    return [json.loads(line) for line in output.splitlines()]
