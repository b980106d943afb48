#!/usr/bin/env python3
"""./dev bench restore: how fast a checkpoint that is not in the page cache fills registered memory, verified
(rk_restore in a stand-alone session), beside fio reading as many bytes from the same disk (direct, 4 MiB blocks, 16 at
once). Pairs run one after the other, in turn one way round and the other; a ratio is fio's time to ours.
"""

import argparse
import os
import pathlib
import sys
import tempfile

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "support"), str(HERE.parents[1] / "support")]

import report
from checkpoint_program import CheckpointProgram, forget
from disk import fio_milliseconds


def ours_milliseconds(folder, mebibytes):
    forget(folder)
    program = CheckpointProgram(folder, mebibytes)
    program.end()
    if program.restored_step != 1:
        raise SystemExit("bench restore: the checkpoint was not restored")
    return program.restore_milliseconds, program.memory_beyond_tensors_mib


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mebibytes", type=int, default=1024)
    parser.add_argument("--pairs", type=int, default=11)
    parser.add_argument(
        "--folder", default=str(report.ROOT / "build"), help="on the disk that is measured (default: build)"
    )
    options = parser.parse_args()
    mebibytes = options.mebibytes
    rows = []
    with tempfile.TemporaryDirectory(prefix="bench-restore-", dir=options.folder) as folder:
        ours = os.path.join(folder, "ours")
        writer = CheckpointProgram(ours, mebibytes)
        writer.checkpoint_milliseconds()
        writer.end()
        fio_milliseconds(folder, mebibytes, "read")  # lays its file out
        for index in range(options.pairs):
            steps = [
                ("ours", lambda: ours_milliseconds(ours, mebibytes)),
                ("fio", lambda: fio_milliseconds(folder, mebibytes, "read")),
            ]
            row = {f"{name}_milliseconds": step() for name, step in report.in_turn(index, steps)}
            row["ours_milliseconds"], row["memory_beyond_tensors_mib"] = row["ours_milliseconds"]
            row["ratio_to_disk"] = row["fio_milliseconds"] / row["ours_milliseconds"]
            rows.append(row)
            print(
                f"  pair {index + 1:2}: ours {row['ours_milliseconds']:7.0f} ms, fio {row['fio_milliseconds']:7.0f} ms, ratio {row['ratio_to_disk']:.2f}",
                flush=True,
            )
    ratio = report.spread([row["ratio_to_disk"] for row in rows])
    print(
        f"{mebibytes} MiB: ratio to the disk {ratio['median']:.2f} ({ratio['minimum']:.2f} to {ratio['maximum']:.2f})"
    )
    speeds = {
        name: report.spread([mebibytes / (row[f"{name}_milliseconds"] / 1000) for row in rows])
        for name in ("ours", "fio")
    }
    memory = max(row["memory_beyond_tensors_mib"] for row in rows)
    print(f"  memory beyond the tensors: {memory:.0f} MiB")
    report.write(
        "restore",
        {
            "ratio_to_disk_median": ratio["median"],
            "ratio_to_disk": ratio,
            "memory_beyond_tensors_mib": memory,
            "mebibytes": mebibytes,
            "pairs": rows,
            "mib_per_second": speeds,
        },
    )
    report.write_picture("restore", f"Cold disk to memory, {mebibytes} MiB", "MiB/s", list(speeds.items()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
