"""A cgroup with a small limit of memory, of either version."""

import contextlib
import errno
import os
import pathlib
import re
import signal

from judging import Unmet
from polling import poll


class _Group:
    def __init__(self, folder, limit_file, limit_bytes):
        self._folder = folder
        (folder / limit_file).write_text(str(limit_bytes))

    def join(self):
        """In the process that is to be limited."""
        (self._folder / "cgroup.procs").write_text("0")

    def kills(self):
        for name in ("memory.events", "memory.oom_control"):
            path = self._folder / name
            if path.exists():
                return int(re.search(r"^oom_kill (\d+)", path.read_text(), re.MULTILINE)[1])
        raise Unmet(f"{self._folder} does not say how many processes the kernel has ended")


def _parent():
    """A folder in which a group with a limit can be made, and the name of the limit's file."""
    first = pathlib.Path("/sys/fs/cgroup/memory")
    if (first / "memory.limit_in_bytes").exists():
        return first, "memory.limit_in_bytes"
    second = pathlib.Path("/sys/fs/cgroup")
    if "memory" in (second / "cgroup.subtree_control").read_text().split():
        return second, "memory.max"
    raise OSError("/sys/fs/cgroup has no control over memory below it")


def _remove(folder):
    # Killed processes are gone in a moment, and the group can be taken away then.
    for pid in (folder / "cgroup.procs").read_text().split():
        os.kill(int(pid), signal.SIGKILL)

    def removed():
        try:
            folder.rmdir()
        except OSError as error:
            if error.errno not in (errno.EBUSY, errno.ENOTEMPTY):
                raise
            return False
        return True

    if not poll(removed, 5):
        raise Unmet(f"processes of the group {folder} are still there 5 s after SIGKILL")


@contextlib.contextmanager
def limited_to(limit_bytes):
    try:
        parent, limit_file = _parent()
        folder = parent / f"rekindle-test-{os.getpid()}-{os.urandom(4).hex()}"
        folder.mkdir()
    except OSError as why:
        raise Unmet(
            f"this machine gives no cgroup with a limit of memory, which this case needs (as root, with /sys/fs/cgroup writable): {why}"
        ) from None
    try:
        yield _Group(folder, limit_file, limit_bytes)
    finally:
        _remove(folder)
