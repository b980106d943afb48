"""A program that may hang."""

import os
import signal
import subprocess


def run_limited(command, seconds_max, **options):
    """The exit code; None when it was still running by then. What it started ends with it."""
    process = subprocess.Popen(command, start_new_session=True, **{"stdin": subprocess.DEVNULL, **options})
    try:
        return process.wait(seconds_max)
    except subprocess.TimeoutExpired:
        return None
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
