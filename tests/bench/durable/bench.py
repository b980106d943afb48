#!/usr/bin/env python3
"""./dev bench durable: how fast a whole checkpoint of registered memory becomes durable (rk_checkpoint in a stand-alone session; the
call also removes old checkpoints, which its own figure holds), beside fio writing as many bytes to
the same disk (direct, 4 MiB blocks, 16 at once, space reserved, fsync at the end), and beside safetensors' save_file with an fsync where that package is
installed. Pairs run one after the other; a ratio is fio's time to ours.
"""

import argparse
import os
import pathlib
import shutil
import sys
import tempfile
import time

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "support"))

import report  # noqa: E402
from checkpoint_program import CheckpointProgram  # noqa: E402
from disk import fio_milliseconds  # noqa: E402


def fresh_fio_milliseconds(folder, mebibytes):
    milliseconds = fio_milliseconds(folder, mebibytes, "write")
    for path in pathlib.Path(folder).glob("disk*"):
        path.unlink()
    return milliseconds


def safetensors_milliseconds(folder, tensors):
    from safetensors.numpy import save_file

    path = os.path.join(folder, "peer.safetensors")
    begin = time.monotonic()
    save_file(tensors, path)
    file = os.open(path, os.O_RDONLY)
    os.fsync(file)
    os.close(file)
    milliseconds = (time.monotonic() - begin) * 1000
    os.unlink(path)
    return milliseconds


def make_tensors(mebibytes):
    import numpy

    random = numpy.random.default_rng(1)
    return {f"tensor.{index}": random.integers(0, 2**63, 64 * 2**20 // 8, dtype=numpy.uint64) for index in range(mebibytes // 64)}


def measure(folder, mebibytes, pairs, with_safetensors):
    ours = CheckpointProgram(os.path.join(folder, "ours"), mebibytes)
    tensors = make_tensors(mebibytes) if with_safetensors else None
    rows = []
    for index in range(pairs + 1):
        row = {}
        steps = [("ours", ours.checkpoint_milliseconds), ("fio", lambda: fresh_fio_milliseconds(folder, mebibytes))]
        if index % 2 == 1:
            steps.reverse()
        for name, step in steps:
            row[f"{name}_milliseconds"] = step()
        row["ours_milliseconds"], row["returned_milliseconds"] = row["ours_milliseconds"]
        if tensors is not None and index <= 3:
            row["safetensors_milliseconds"] = safetensors_milliseconds(folder, tensors)
        row["ratio_to_disk"] = row["fio_milliseconds"] / row["ours_milliseconds"]
        if index == 0:
            continue  # both find their memory and their files for the first time
        rows.append(row)
        print(f"  {mebibytes} MiB, pair {index:2}: ours {row['ours_milliseconds']:7.0f} ms (call {row['returned_milliseconds']:.0f}), fio {row['fio_milliseconds']:7.0f} ms, ratio {row['ratio_to_disk']:.2f}", flush=True)
    ours.end()
    shutil.rmtree(os.path.join(folder, "ours"))
    figures = {"mebibytes": mebibytes, "pairs": rows, "ratio_to_disk": report.spread([row["ratio_to_disk"] for row in rows])}
    for name in ("ours", "fio", "safetensors"):
        times = [row[f"{name}_milliseconds"] for row in rows if f"{name}_milliseconds" in row]
        if times:
            figures[f"{name}_mib_per_second"] = report.spread([mebibytes / (each / 1000) for each in times])
    return figures


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mebibytes", type=int, nargs="+", default=[1024, 4096])
    parser.add_argument("--pairs", type=int, default=11)
    parser.add_argument("--folder", default=str(report.ROOT / "build"), help="on the disk that is measured (default: build)")
    options = parser.parse_args()
    try:
        import numpy  # noqa: F401
        import safetensors.numpy  # noqa: F401

        with_safetensors = True
    except ImportError:
        with_safetensors = False
        print("bench durable: the Python packages numpy and safetensors are not installed; their figures are left out")
    sizes = []
    with tempfile.TemporaryDirectory(prefix="bench-durable-", dir=options.folder) as folder:
        for mebibytes in options.mebibytes:
            sizes.append(measure(folder, mebibytes, options.pairs, with_safetensors))
    rows = []
    for figures in sizes:
        print(f"{figures['mebibytes']} MiB: ratio to the disk {figures['ratio_to_disk']['median']:.2f} "
              f"({figures['ratio_to_disk']['minimum']:.2f} to {figures['ratio_to_disk']['maximum']:.2f})")
        for name in ("ours", "fio", "safetensors"):
            speed = figures.get(f"{name}_mib_per_second")
            if speed:
                print(f"  {name:12} {speed['median']:7.0f} MiB/s ({speed['minimum']:.0f} to {speed['maximum']:.0f})")
                rows.append((f"{name}, {figures['mebibytes']} MiB", speed))
    report.write("durable", {"ratio_to_disk_median": min(figures["ratio_to_disk"]["median"] for figures in sizes), "sizes": sizes})
    report.write_picture("durable", "Memory to durable", "MiB/s", rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
