"""What the disk itself can do."""

import json
import subprocess


def fio_milliseconds(folder, mebibytes, direction):
    """`direction` is "read" or "write" (with an fsync at the end): 4 MiB blocks past the page cache, 16 at once. The
    file stays for the next call."""
    options = ["--end_fsync=1", "--refill_buffers=1"] if direction == "write" else []
    result = subprocess.run(
        [
            "fio",
            "--name=disk",
            f"--directory={folder}",
            f"--rw={direction}",
            "--bs=4M",
            f"--size={mebibytes}M",
            "--direct=1",
            "--ioengine=io_uring",
            "--iodepth=16",
            *options,
            "--output-format=json",
        ],
        check=True,
        capture_output=True,
        text=True,
    )
    return float(json.loads(result.stdout)["jobs"][0][direction]["runtime"])
