#!/usr/bin/env python3
"""./dev bench reshard: what a rank pays that restores another cut by columns (tensor parallel) than was saved. Cold,
verified: rank 0 of two reads what two ranks wrote (equal), what four wrote (joined), and rank 0 of four what two wrote
(divided; it reads whole rows to take half of each). Rounds of the three, in turn one way round and the other; a ratio
is the time of the equal cut, which reads as many bytes, to that of the other.
"""

import argparse
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
import pathlib

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "support"), str(HERE.parents[1] / "support")]

import report
import shipped

CASES = ("equal", "joined", "divided")
FIGURES = ("ranges", "plan_milliseconds", "read_milliseconds", "mib_filled", "mib_read", "memory_beyond_tensors_mib")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--tensors",
        type=int,
        default=16,
        help="of 128 MiB each; twice as much disk is needed, and half as much memory (default: 16)",
    )
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument(
        "--folder", default=str(report.ROOT / "build"), help="on the disk that is measured (default: build)"
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-reshard-", dir=options.folder) as folder:
        command = [
            shipped.PROGRAMS / "resharding_benchmark",
            folder,
            str(options.tensors),
            str(options.rounds),
        ]
        lines = subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE).stdout.splitlines()
    rows = {
        case: [dict(zip(FIGURES, map(float, line.split()[1:]))) for line in lines if line.split()[0] == case]
        for case in CASES
    }
    seconds = {
        case: [(row["plan_milliseconds"] + row["read_milliseconds"]) / 1000 for row in rows[case]] for case in CASES
    }
    speeds = {
        case: report.spread([row["mib_read"] / time for row, time in zip(rows[case], seconds[case])]) for case in CASES
    }
    ratios = {
        case: report.spread([equal / own for equal, own in zip(seconds["equal"], seconds[case])]) for case in CASES[1:]
    }
    for case in CASES:
        plan = report.spread([row["plan_milliseconds"] for row in rows[case]])
        ratio = (
            f", ratio to the equal cut {ratios[case]['median']:.2f} ({ratios[case]['minimum']:.2f} to {ratios[case]['maximum']:.2f})"
            if case in ratios
            else ""
        )
        print(
            f"  {case:8} {rows[case][0]['ranges']:.0f} ranges planned in {plan['median']:.2f} ms; {rows[case][0]['mib_read']:.0f} MiB at {speeds[case]['median']:.0f} MiB/s{ratio}; "
            f"memory beyond the tensors {max(row['memory_beyond_tensors_mib'] for row in rows[case]):.0f} MiB"
        )
    report.write("reshard", {"ratios_to_equal_cut": ratios, "mib_per_second": speeds, "rounds": rows})
    report.write_picture(
        "reshard",
        f"Cold restore of {rows['equal'][0]['mib_read']:.0f} MiB into another cut",
        "MiB/s",
        list(speeds.items()),
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
