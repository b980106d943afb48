#!/usr/bin/env python3
"""./dev bench durable: how fast a whole checkpoint of registered memory becomes durable (rk_checkpoint in a stand-alone
session; the call also removes old checkpoints, which its own figure holds), beside fio writing as many bytes to the
same disk (direct, 4 MiB blocks, 16 at once, space reserved, fsync at the end), and beside safetensors' save_file and
torch.save, each with an fsync. All that are compared run one after the other, in turn one way round and the other; a
ratio is fio's time to ours. fio is the limit: the same disk, the same direct writes, nothing hashed. The two packages
are compared tool against tool: they write one file through the page cache and hash nothing. Then what replicas of one
model gain by sharing the work.
"""

import argparse
import os
import pathlib
import shutil
import sys
import tempfile

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "support"), str(HERE.parents[1] / "support")]

import replicas
import report
from checkpoint_program import CheckpointProgram
from disk import fio_milliseconds
from peer_program import PYTHON_OF, PeerProgram


def fresh_fio_milliseconds(folder, mebibytes):
    milliseconds = fio_milliseconds(folder, mebibytes, "write")
    for path in pathlib.Path(folder).glob("disk*"):
        path.unlink()
    return milliseconds


def measure(folder, mebibytes, pairs, peer_pairs):
    ours = CheckpointProgram(os.path.join(folder, "ours"), mebibytes)
    peers = {name: PeerProgram(name, folder, mebibytes) for name in PYTHON_OF} if peer_pairs else {}
    rows = []
    for index in range(pairs + 1):
        row = {}
        steps = [("ours", ours.checkpoint_milliseconds), ("fio", lambda: fresh_fio_milliseconds(folder, mebibytes))]
        if index <= peer_pairs:
            steps += [(name, peer.milliseconds) for name, peer in peers.items()]
        for name, step in report.in_turn(index, steps):
            row[f"{name}_milliseconds"] = step()
        row["ours_milliseconds"], row["returned_milliseconds"] = row["ours_milliseconds"]
        row["ratio_to_disk"] = row["fio_milliseconds"] / row["ours_milliseconds"]
        if index == 0:
            continue  # all find their memory and their files for the first time
        rows.append(row)
        print(
            f"  {mebibytes} MiB, pair {index:2}: ours {row['ours_milliseconds']:7.0f} ms (call {row['returned_milliseconds']:.0f}), "
            f"fio {row['fio_milliseconds']:7.0f} ms, ratio {row['ratio_to_disk']:.2f}",
            flush=True,
        )
    ours.end()
    for peer in peers.values():
        peer.end()
    shutil.rmtree(os.path.join(folder, "ours"))
    figures = {
        "mebibytes": mebibytes,
        "pairs": rows,
        "ratio_to_disk": report.spread([row["ratio_to_disk"] for row in rows]),
        "memory_beyond_tensors_mib": ours.memory_beyond_tensors_mib,
        "versions": {name: peer.version for name, peer in peers.items()},
        "mib_per_second": {},
        "times_faster_than": {},
    }
    for name in ("ours", "fio", *peers):
        pairs_with = [row for row in rows if f"{name}_milliseconds" in row]
        if not pairs_with:
            continue
        figures["mib_per_second"][name] = report.spread(
            [mebibytes / (row[f"{name}_milliseconds"] / 1000) for row in pairs_with]
        )
        if name in peers:
            figures["times_faster_than"][name] = report.spread(
                [row[f"{name}_milliseconds"] / row["ours_milliseconds"] for row in pairs_with]
            )
    return figures


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mebibytes", type=int, nargs="+", default=[1024, 4096])
    parser.add_argument("--pairs", type=int, default=11)
    parser.add_argument(
        "--peer-pairs",
        type=int,
        default=5,
        help="so many of the pairs have the Python peers beside them, which take long",
    )
    parser.add_argument("--replica-mebibytes", type=int, default=512)
    parser.add_argument(
        "--replica-cap", type=int, default=128, help='MiB a second for each writer of the part "replicas"'
    )
    parser.add_argument(
        "--folder", default=str(report.ROOT / "build"), help="on the disk that is measured (default: build)"
    )
    options = parser.parse_args()
    sizes = []
    with tempfile.TemporaryDirectory(prefix="bench-durable-", dir=options.folder) as folder:
        for mebibytes in options.mebibytes:
            sizes.append(measure(folder, mebibytes, options.pairs, options.peer_pairs))
        shares = replicas.measure(folder, options.replica_mebibytes, options.replica_cap, rounds=5)
    rows = []
    for figures in sizes:
        print(
            f"{figures['mebibytes']} MiB: ratio to the disk {figures['ratio_to_disk']['median']:.2f} "
            f"({figures['ratio_to_disk']['minimum']:.2f} to {figures['ratio_to_disk']['maximum']:.2f})"
        )
        for name, speed in figures["mib_per_second"].items():
            faster = figures["times_faster_than"].get(name)
            print(
                f"  {name:12} {speed['median']:7.0f} MiB/s ({speed['minimum']:.0f} to {speed['maximum']:.0f})"
                + (f"; tool against tool: ours is {faster['median']:.1f} times as fast" if faster else "")
            )
            rows.append((f"{name}, {figures['mebibytes']} MiB", speed))
        print(f"  memory beyond the tensors: {figures['memory_beyond_tensors_mib']:.0f} MiB")
    replicas.show(shares)
    report.write(
        "durable",
        {
            "ratio_to_disk_median": min(figures["ratio_to_disk"]["median"] for figures in sizes),
            "memory_beyond_tensors_mib": max(figures["memory_beyond_tensors_mib"] for figures in sizes),
            "sizes": sizes,
            "replicas": shares,
        },
    )
    report.write_picture("durable", "Memory to durable", "MiB/s", rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
