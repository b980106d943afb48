"""Child processes that never outlive the program: ended on return, on an error, on Ctrl-C, and when the program is
killed."""

import ctypes
import os
import pathlib
import signal
import socket
import subprocess
import time

from failure import Failure

_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True)


def _end_with_parent() -> None:
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


class Processes:
    """`with Processes() as processes:`; everything started through it is gone afterwards."""

    def __init__(self) -> None:
        self._started: list[subprocess.Popen] = []

    def __enter__(self) -> "Processes":
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._started:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
        limit = time.monotonic() + 2.0
        for process in self._started:
            end_process(process, max(0.0, limit - time.monotonic()))

    def start(
        self,
        command: list,
        log: pathlib.Path,
        environment: dict[str, str] | None = None,
        folder: pathlib.Path | None = None,
    ) -> subprocess.Popen:
        """In a process group of its own, standard output and error appended to `log`."""
        with open(log, "ab") as output:
            try:
                process = subprocess.Popen(
                    [str(word) for word in command],
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    env={**os.environ, **(environment or {})},
                    cwd=folder,
                    start_new_session=True,
                    preexec_fn=_end_with_parent,
                )
            except OSError as error:
                raise Failure(f"cannot start {command[0]}: {error.strerror}") from None
        self._started.append(process)
        return process


def end_process(process: subprocess.Popen, patience_seconds: float = 2.0) -> None:
    """SIGKILL after `patience_seconds`; its children too, as far as they are in its group."""
    try:
        process.wait(patience_seconds)
    except subprocess.TimeoutExpired:
        pass
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass
    process.wait()


def children_of(pid: int) -> list[int]:
    """Direct children; empty when the process is gone."""
    found: list[int] = []
    try:
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/children", encoding="ascii") as file:
                found += [int(word) for word in file.read().split()]
    except OSError:
        pass
    return found


def environment_of(pid: int) -> dict[str, str]:
    """What the process was started with; empty when it is gone."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            entries = file.read().split(b"\0")
    except OSError:
        return {}
    pairs = (entry.decode(errors="replace").partition("=") for entry in entries if entry)
    return {name: value for name, _, value in pairs}


def processes_about(mark: str) -> list[str]:
    """Those with `mark` in their command lines, this one aside: what they are, with their ids."""
    found = []
    for entry in os.listdir("/proc"):
        if not entry.isdigit() or int(entry) == os.getpid():
            continue
        try:
            with open(f"/proc/{entry}/cmdline", "rb") as file:
                words = file.read().decode(errors="replace").split("\0")
        except OSError:
            continue
        if any(mark in word for word in words):
            found.append(f"{pathlib.Path(words[0]).name} ({entry})")
    return found


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def last_lines(log: pathlib.Path, count: int = 12) -> str:
    try:
        lines = log.read_text(errors="replace").splitlines()
    except OSError:
        return "(no output)"
    return "\n".join(f"    | {line}" for line in lines[-count:]) or "    (no output)"
