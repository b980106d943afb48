"""The lines of a program, also of one that leaves another behind which holds its output open."""

import os
import pathlib
import select
import time

# For what was written right before the end.
SECONDS_AFTER_END = 1


class ProgramOutput:
    """Of a process that was started with a pipe for its output."""

    def __init__(self, process, seconds_after_end=SECONDS_AFTER_END):
        self._process = process
        self._seconds_after_end = seconds_after_end
        self.holders = []  # processes that still hold the pipe, once lines() has come to its end

    def lines(self):
        """As they come, until the output ends, or until the process has ended and what is there was read."""
        pipe = self._process.stdout.fileno()
        ended = os.pidfd_open(self._process.pid)
        left, until = b"", None
        try:
            while True:
                patience = None if until is None else max(0, until - time.monotonic())
                ready = select.select([pipe, ended] if until is None else [pipe], [], [], patience)[0]
                if pipe in ready:
                    content = os.read(pipe, 65536)
                    if not content:
                        break
                    *whole, left = (left + content).split(b"\n")
                    yield from (line.decode(errors="replace") for line in whole)
                    if until is not None and time.monotonic() >= until:
                        self.holders = holders_of(pipe)
                        break
                elif ended in ready:
                    until = time.monotonic() + self._seconds_after_end
                elif not ready:
                    self.holders = holders_of(pipe)
                    break
            if left:
                yield left.decode(errors="replace")
        finally:
            os.close(ended)


def holders_of(pipe):
    """Other processes that have the pipe open: what they are, with their ids."""
    wanted, found = f"pipe:[{os.fstat(pipe).st_ino}]", []
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            if any(os.readlink(one) == wanted for one in (entry / "fd").iterdir()):
                found.append(f"{(entry / 'comm').read_text().strip()} ({entry.name})")
        except OSError:
            continue  # gone by now, or another user's
    return sorted(found)
