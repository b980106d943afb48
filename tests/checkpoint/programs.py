"""The real programs, in folders of their own: what they are started with, and what they leave."""

import os
import shutil
import subprocess

from judging import expect
from places import WORK
from shipped import PROGRAMS

REKINDLE = PROGRAMS / "rekindle"


def fresh(name):
    """An empty folder of a case."""
    folder = WORK / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def run_program(command, code=0, environment=None):
    """Standard output of a program that has to end with `code`."""
    result = subprocess.run(
        [str(word) for word in command],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, **(environment or {})},
    )
    expect(
        result.returncode == code,
        f"`{' '.join(map(str, command))}` ended with {result.returncode}, expected {code}: {(result.stdout + result.stderr)[-600:]}",
    )
    return result.stdout


def checkpoints_in(root):
    """The folders of all published ones, in no order."""
    return [path.parent for path in root.glob("*/*/manifest.json")]


def the_checkpoint(root):
    found = checkpoints_in(root)
    expect(len(found) == 1, f"one checkpoint was expected below {root}, there are {len(found)}")
    return found[0]
