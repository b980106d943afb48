"""A step with everything on makes no system call: counted by the kernel, never timed."""

import shutil
import subprocess

from judging import Unmet, expect
from places import WORK
from shipped import PROGRAMS
from systemcalls import calls_in

FEW = 1_000
MANY = 101_000


def _calls(command, log):
    """All system calls that strace counted; `log` has them by name."""
    result = subprocess.run(command, capture_output=True, text=True, timeout=120)
    expect(result.returncode == 0, f"{command[0]} ended with {result.returncode}: {result.stderr[-400:]}")
    text = log.read_text()
    calls = calls_in(text)
    expect(calls is not None, f"strace left no total in {log}: {text[-300:]}")
    return calls


def _compare(name, command_for, *planted):
    folder = WORK / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    counts = {}
    for steps in (FEW, MANY):
        log = folder / f"{steps}.txt"
        counts[steps] = _calls([*command_for(steps, log, folder), *planted], log)
    more = counts[MANY] - counts[FEW]
    # One for every thousand steps would be 100: anything that belongs to a step shows.
    expect(more < 20, f"{MANY - FEW} steps more made {more} system calls more; see {folder}")
    return f"{counts[FEW]} calls with {FEW} steps, {counts[MANY]} with {MANY}"


def _notices(name, command_for):
    """A call in every thousandth step, with and without an error, for which strace has another column."""
    seen = []
    for planted in ("getppid", "close"):
        try:
            found = _compare(f"{name}-{planted}", command_for, planted)
        except Unmet as why:
            seen.append(f"{planted}: {str(why).partition(';')[0]}")
            continue
        raise Unmet(f"{planted} in every thousandth step was not noticed: {found}")
    return ", ".join(seen)


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
    ("a_planted_system_call_is_noticed", lambda: _notices("steps-planted", _by_itself)),
    ("a_planted_system_call_beside_a_sidecar_is_noticed", lambda: _notices("steps-planted-beside", _beside_a_sidecar)),
    ("a_step_by_itself_makes_no_system_call", lambda: _compare("steps-alone", _by_itself)),
    ("a_step_beside_a_sidecar_makes_no_system_call", lambda: _compare("steps-beside-a-sidecar", _beside_a_sidecar)),
]
