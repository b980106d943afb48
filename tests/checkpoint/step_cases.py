"""A step with everything on makes no system call: counted by the kernel, never timed."""

import re
import shutil
import subprocess

from judging import expect
from places import WORK
from shipped import PROGRAMS

FEW = 1_000
MANY = 101_000


def _calls(command, log):
    """All system calls that strace counted; `log` has them by name."""
    result = subprocess.run(command, capture_output=True, text=True, timeout=120)
    expect(result.returncode == 0, f"{command[0]} ended with {result.returncode}: {result.stderr[-400:]}")
    text = log.read_text()
    total = re.search(r"^\s*100\.00\s.*?\s(\d+)\s+(?:\d+\s+)?total$", text, re.MULTILINE)
    expect(total is not None, f"strace left no total in {log}: {text[-300:]}")
    return int(total[1])


def _compare(name, command_for):
    folder = WORK / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    counts = {}
    for steps in (FEW, MANY):
        log = folder / f"{steps}.txt"
        counts[steps] = _calls(command_for(steps, log, folder), log)
    more = counts[MANY] - counts[FEW]
    # One for every thousand steps would be 100: anything that belongs to a step shows.
    expect(more < 20, f"{MANY - FEW} steps more made {more} system calls more; see {folder}")
    return f"{counts[FEW]} calls with {FEW} steps, {counts[MANY]} with {MANY}"


def _by_itself(steps, log, _):
    return ["strace", "-f", "-c", "-o", log, PROGRAMS / "steady_steps", str(steps)]


def _beside_a_sidecar(steps, log, folder):
    """Only the training thread is watched: the library's own may speak with the sidecar."""
    return [
        PROGRAMS / "rekindle",
        "run",
        "--checkpoint-dir",
        folder / f"checkpoints-{steps}",
        "--",
        "strace",
        "-c",
        "-o",
        log,
        PROGRAMS / "steady_steps",
        str(steps),
    ]


CASES = [
    ("a_step_by_itself_makes_no_system_call", lambda: _compare("steps-alone", _by_itself)),
    ("a_step_beside_a_sidecar_makes_no_system_call", lambda: _compare("steps-beside-a-sidecar", _beside_a_sidecar)),
]
