#!/usr/bin/env python3
"""./dev bench step: what a step of an otherwise empty training loop costs with open gates, for some sizes of small state, and how many system calls it makes (counted by
the kernel, from the difference between two runs of different length). And a step with a shadow (a copy of the rank's share at every step) beside a memcpy of the same bytes.
"""

import argparse
import json
import pathlib
import subprocess
import sys

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "support"), str(HERE.parents[1] / "support")]

import report
from staging import pairs_of
from systemcalls import calls_in

PROGRAM = report.ROOT / "build" / "dev" / "bin" / "step_benchmark"


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


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.parse_args()
    rows = [
        json.loads(line)
        for line in subprocess.run([PROGRAM], check=True, capture_output=True, text=True).stdout.splitlines()
    ]
    for row in rows:
        print(
            f"  {row['state_bytes']:6} bytes of state: {row['nanoseconds_a_step_median']:7.1f} ns "
            f"({row['nanoseconds_a_step_fastest']:.1f} to {row['nanoseconds_a_step_slowest']:.1f})"
        )
    few, many = 1000, 101_000
    calls = (system_calls(many) - system_calls(few)) / (many - few)
    print(f"  system calls a step: {calls:g}")
    ours = next(row for row in rows if row["state_bytes"] == 256)
    pairs = pairs_of("shadow", 256, 21)
    shadow = report.spread([pair["ours_milliseconds"] / pair["memcpy_milliseconds"] for pair in pairs])
    print(
        f"  with a shadow of 256 MiB at every step: {shadow['median']:.2f} times a memcpy of it ({shadow['minimum']:.2f} to {shadow['maximum']:.2f})"
    )
    report.write(
        "step",
        {
            "nanoseconds_per_step_median": ours["nanoseconds_a_step_median"],
            "state_bytes": 256,
            "system_calls_per_step": calls,
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
