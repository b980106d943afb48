"""tests/bench/checkpoint, driven."""

import os
import pathlib
import subprocess

import shipped

PATH = shipped.PROGRAMS / "checkpoint_benchmark"


class CheckpointProgram:
    def __init__(self, folder, mebibytes):
        self.process = subprocess.Popen(
            [PATH, folder, str(mebibytes)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        restore, step, memory = self.answer().split()
        self.restore_milliseconds = float(restore)
        self.restored_step = int(step)
        self.memory_beyond_tensors_mib = float(memory)  # the most so far

    def answer(self):
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit("bench: checkpoint_benchmark ended before its time")
        return line

    def checkpoint_milliseconds(self):
        """Until it was durable, and until the call had returned."""
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        durable, returned, memory = self.answer().split()
        self.memory_beyond_tensors_mib = float(memory)
        return float(durable), float(returned)

    def end(self):
        self.process.stdin.close()
        self.process.wait()


def forget(folder):
    """Takes every file below out of the page cache."""
    for path in pathlib.Path(folder).rglob("*"):
        if path.is_file():
            file = os.open(path, os.O_RDONLY)
            os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(file)
