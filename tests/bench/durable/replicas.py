"""Replicas of one model share the work of a save: what each writes, and how long all take when each one's bandwidth is
capped (as a network does it)."""

import os
import subprocess
import tempfile

import report
import shipped

PROGRAM = shipped.PROGRAMS / "replicas_benchmark"
WRITERS = (1, 2, 4)


def save_once(folder, mebibytes, writers, cap):
    with tempfile.TemporaryDirectory(dir=folder) as target:
        words = subprocess.run(
            [PROGRAM, target, str(mebibytes), str(writers), str(cap)], check=True, capture_output=True, text=True
        ).stdout.split()
    return float(words[0]), [int(word) for word in words[1:]]


def measure(folder, mebibytes, cap_mib_per_second, rounds):
    """One row for each number of writers; the rounds go through all of them, in alternating order."""
    os.makedirs(folder, exist_ok=True)
    times = {writers: [] for writers in WRITERS}
    shares = {}
    for index in range(rounds):
        for writers in report.in_turn(index, WRITERS):
            milliseconds, shares[writers] = save_once(folder, mebibytes, writers, cap_mib_per_second)
            times[writers].append(milliseconds)
    rows = []
    for writers in WRITERS:
        fair = sum(shares[writers]) / writers
        rows.append(
            {
                "writers": writers,
                "bytes_a_writer": shares[writers],
                "off_fair_share_percent": max(abs(share - fair) for share in shares[writers]) / fair * 100,
                "milliseconds": report.spread(times[writers]),
            }
        )
    alone = rows[0]["milliseconds"]["median"]
    for row in rows:
        row["times_faster_than_one"] = alone / row["milliseconds"]["median"]
    return {"mebibytes": mebibytes, "cap_mib_per_second": cap_mib_per_second, "rows": rows}


def show(figures):
    print(f"replicas: {figures['mebibytes']} MiB, each writer capped at {figures['cap_mib_per_second']} MiB/s")
    print("  writers   MiB a writer   off 1/R      wall      faster")
    for row in figures["rows"]:
        print(
            f"  {row['writers']:7}   {max(row['bytes_a_writer']) / 2**20:12.2f}   {row['off_fair_share_percent']:6.3f}%   "
            f"{row['milliseconds']['median']:5.0f} ms   {row['times_faster_than_one']:7.2f}x"
        )
