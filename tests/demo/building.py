"""Builds what demo and tests run, with progress, once."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

import shipped
from failure import Failure
from processes import last_lines

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
TARGETS = ("digits", "hash_tensors", "rekindle")
# What is wrong, and the program in which it is: tests/local/CMakeLists.txt.
PLANTED = {"lose-a-step": "rekindle_that_loses_a_step"}


class Programs:
    """Where the built programs are."""

    def __init__(self, build: pathlib.Path, planted: str | None = None) -> None:
        self.digits = build / "bin" / "digits"
        self.hash_tensors = build / "bin" / "hash_tensors"
        self.rekindle = build / "bin" / PLANTED.get(planted, "rekindle")


def build_programs(build: pathlib.Path, say=print, planted: str | None = None) -> Programs:
    """What the demo runs, as it ships. `planted`: a name of PLANTED."""
    build_targets(build, shipped.PRESET, TARGETS if planted is None else (*TARGETS, PLANTED[planted]), say)
    return Programs(build, planted)


def build_targets(build: pathlib.Path, preset: str, targets, say=print) -> None:
    """Configures and builds where needed. `say` gets a line of progress now and then; a failure names the log."""
    for tool, package in (("cmake", "cmake"), ("ninja", "ninja-build"), ("g++", "g++")):
        if shutil.which(tool) is None:
            raise Failure(f"{tool} is not installed; run ./dev setup (or: apt-get install {package})")
    build.mkdir(parents=True, exist_ok=True)
    log = build / "build.log"
    log.write_bytes(b"")
    if not (build / "build.ninja").exists():
        _run(["cmake", "--preset", preset, "-B", str(build)], log, say)
    _run(["ninja", "-C", str(build), *targets], log, say)


def _run(command: list[str], log: pathlib.Path, say) -> None:
    said = time.monotonic()
    with (
        subprocess.Popen(
            command,
            cwd=REPOSITORY,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            env={**os.environ, "NINJA_STATUS": "[%f/%t] "},
        ) as process,
        open(log, "a", encoding="utf-8") as file,
    ):
        for line in process.stdout:
            file.write(line)
            progress = re.match(r"\[(\d+)/(\d+)\]", line)
            if progress and time.monotonic() - said >= (1.0 if sys.stdout.isatty() else 10.0):
                said = time.monotonic()
                say(f"compiled {progress[1]} of {progress[2]} files")
    if process.returncode != 0:
        raise Failure(f"`{' '.join(command)}` failed; the whole output is in {log}. Its end:\n{last_lines(log, 20)}")
