#!/usr/bin/env python3
"""./dev bench step: what a step of an otherwise empty training loop costs with open gates, for some sizes of small
state, and how many system calls it makes (counted by the kernel, from the difference between two runs of different
length); the same beside a sidecar (`rekindle run`), pairs in turn one way round and the other. And a step with a shadow
(a copy of the rank's share at every step) beside a memcpy of the same bytes.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "support"), str(HERE.parents[1] / "support")]

import report
import shipped
from staging import pairs_of
from systemcalls import calls_in

PROGRAM = shipped.PROGRAMS / "step_benchmark"
STATE_BYTES = 256


def system_calls(steps):
    result = subprocess.run(
        ["strace", "-f", "-c", "-S", "calls", PROGRAM, "--steps", str(steps)],
        check=True,
        capture_output=True,
        text=True,
    )
    calls = calls_in(result.stderr)
    if calls is None:
        sys.exit(f"strace left no total: {result.stderr[-300:]}")
    return calls


def rows_of(command):
    """What step_benchmark prints, a line a size; `rekindle run` around it says other things."""
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return [json.loads(line) for line in output.splitlines() if line.startswith("{")]


def alone():
    return rows_of([PROGRAM, "--state", str(STATE_BYTES)])[0]["nanoseconds_a_step_median"]


def beside_sidecar():
    with tempfile.TemporaryDirectory() as folder:
        launcher = [shipped.PROGRAMS / "rekindle", "run", "-n", "1", "--checkpoint-dir", folder, "--"]
        return rows_of([*launcher, PROGRAM, "--beside", str(STATE_BYTES)])[0]["nanoseconds_a_step_median"]


def pairs_beside(count):
    """The same step with nobody else, and as a rank that `rekindle run` plays the sidecar for."""
    ways = {"alone_nanoseconds": alone, "beside_nanoseconds": beside_sidecar}
    return [{name: ways[name]() for name in report.in_turn(index, list(ways))} for index in range(count)]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=21)
    parser.add_argument("--shadow-mebibytes", type=int, default=256)
    options = parser.parse_args()
    rows = rows_of([PROGRAM])
    for row in rows:
        print(
            f"  {row['state_bytes']:6} bytes of state: {row['nanoseconds_a_step_median']:7.1f} ns "
            f"({row['nanoseconds_a_step_fastest']:.1f} to {row['nanoseconds_a_step_slowest']:.1f})"
        )
    few, many = 1000, 101_000
    calls = (system_calls(many) - system_calls(few)) / (many - few)
    print(f"  system calls a step: {calls:g}")
    ours = next(row for row in rows if row["state_bytes"] == STATE_BYTES)
    beside_pairs = pairs_beside(min(options.pairs, 5))
    beside = report.spread([pair["beside_nanoseconds"] for pair in beside_pairs])
    slower = report.spread([pair["beside_nanoseconds"] / pair["alone_nanoseconds"] for pair in beside_pairs])
    print(
        f"  beside a sidecar: {beside['median']:.1f} ns ({beside['minimum']:.1f} to {beside['maximum']:.1f}), "
        f"{slower['median']:.2f} times a step alone"
    )
    pairs = pairs_of("shadow", options.shadow_mebibytes, options.pairs)
    shadow = report.spread([pair["ours_milliseconds"] / pair["memcpy_milliseconds"] for pair in pairs])
    print(
        f"  with a shadow of {options.shadow_mebibytes} MiB at every step: {shadow['median']:.2f} times a memcpy of it ({shadow['minimum']:.2f} to {shadow['maximum']:.2f})"
    )
    report.write(
        "step",
        {
            "nanoseconds_per_step_median": ours["nanoseconds_a_step_median"],
            "state_bytes": STATE_BYTES,
            "system_calls_per_step": calls,
            "nanoseconds_per_step_beside_a_sidecar": beside,
            "beside_a_sidecar_ratio_to_alone": slower,
            "beside_a_sidecar_pairs": beside_pairs,
            "sizes": rows,
            "shadow_ratio_to_memcpy_median": shadow["median"],
            "shadow_ratio_to_memcpy": shadow,
            "shadow_pairs": pairs,
        },
    )
    report.write_picture(
        "step",
        "A step with open gates",
        "ns",
        [
            (
                f"{row['state_bytes']} bytes of state",
                {
                    "minimum": row["nanoseconds_a_step_fastest"],
                    "median": row["nanoseconds_a_step_median"],
                    "maximum": row["nanoseconds_a_step_slowest"],
                },
            )
            for row in rows
            if row["state_bytes"] <= 4096
        ],
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
