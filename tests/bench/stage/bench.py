#!/usr/bin/env python3
"""./dev bench stage: how long training stands for a snapshot of a rank's share (what a periodic checkpoint costs it),
beside a plain memcpy of the same bytes between warm memory. Pairs run one after the other, the order alternates; a
ratio is memcpy's time to ours.
"""

import argparse
import sys

sys.dont_write_bytecode = True
import pathlib

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "support"), str(HERE.parents[1] / "support")]

import report
from staging import pairs_of


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mebibytes", type=int, nargs="+", default=[64, 512, 1024])
    parser.add_argument("--pairs", type=int, default=21)
    options = parser.parse_args()
    sizes = []
    for mebibytes in options.mebibytes:
        pairs = pairs_of("snapshot", mebibytes, options.pairs)
        ratio = report.spread([pair["memcpy_milliseconds"] / pair["ours_milliseconds"] for pair in pairs])
        stopped = report.spread([pair["ours_milliseconds"] for pair in pairs])
        speed = {
            name: report.spread([pair["bytes"] / 2**20 / (pair[f"{name}_milliseconds"] / 1000) for pair in pairs])
            for name in ("ours", "memcpy")
        }
        print(
            f"  {mebibytes:5} MiB: training stands {stopped['median']:.1f} ms ({stopped['minimum']:.1f} to {stopped['maximum']:.1f}); "
            f"ratio to memcpy {ratio['median']:.2f} ({ratio['minimum']:.2f} to {ratio['maximum']:.2f})",
            flush=True,
        )
        sizes.append(
            {
                "mebibytes": mebibytes,
                "ratio_to_memcpy": ratio,
                "stopped_milliseconds": stopped,
                "mib_per_second": speed,
                "pairs": pairs,
            }
        )
    largest = sizes[-1]
    report.write(
        "stage",
        {
            "ratio_to_memcpy_median": largest["ratio_to_memcpy"]["median"],
            "mebibytes": largest["mebibytes"],
            "sizes": sizes,
        },
    )
    report.write_picture(
        "stage",
        f"Snapshot of {largest['mebibytes']} MiB beside memcpy",
        "MiB/s",
        list(largest["mib_per_second"].items()),
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
