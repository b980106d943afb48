"""A run of `rekindle run` with test_rank that a case watches and speaks to while it trains."""

import json
import os
import re
import signal
import subprocess

from judging import Unmet, expect
from polling import poll
from programs import REKINDLE
from shipped import PROGRAMS

WAIT_SECONDS_MAX = 60


class Training:
    """`with Training(folder, checkpoints, ...) as run:`; ended when the block is left."""

    def __init__(self, folder, checkpoints, *, ranks=2, steps=100_000, ballast_mib=0, options=(), before=None):
        folder.mkdir(exist_ok=True)
        self._folder = folder
        self._events = folder / "events.txt"
        self._events.unlink(missing_ok=True)
        self.log = folder / "output.txt"
        environment = {
            **os.environ,
            "TEST_FOLDER": str(folder),
            "TEST_STEPS": str(steps),
            "TEST_BALLAST_MIB": str(ballast_mib),
        }
        command = [
            REKINDLE,
            "run",
            "--verbose",
            "-n",
            ranks,
            "--max-restarts",
            0,
            "--checkpoint-dir",
            checkpoints,
            "--events",
            self._events,
            *options,
            "--",
            PROGRAMS / "test_rank",
        ]
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                [str(word) for word in command],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=environment,
                start_new_session=True,
                preexec_fn=before,
            )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def said(self):
        return self.log.read_text(errors="replace")

    def events(self, *names):
        lines = self._events.read_text().splitlines() if self._events.exists() else []
        return [event for event in map(json.loads, lines) if event["event"] in names]

    def wait_until(self, found, what):
        def look():
            ended = self._process.poll() is not None  # and then what it left is looked at once more
            result = found()
            return (result,) if result or ended else None

        if (seen := poll(look, WAIT_SECONDS_MAX)) and seen[0]:
            return seen[0]
        raise Unmet(f"{what} did not come; the run said: {self.said()[-900:]}")

    def wait_for_training(self):
        self.wait_until(lambda: self.events("first_step"), "the first step")

    def wait_for_words(self, words):
        self.wait_until(lambda: words in self.said(), f"'{words}'")

    def step(self):
        """The last that rank 0 has committed."""
        path = self._folder / "step-0"
        return int(path.read_text()) if path.exists() else 0

    def wait_for_step(self, step):
        self.wait_until(lambda: self.step() >= step, f"step {step}")

    def save(self):
        """Asks for a checkpoint; how it ended: the event `durable` or `failed`."""
        before = len(self.events("durable", "failed"))
        self._process.send_signal(signal.SIGUSR1)
        return self.wait_until(lambda: self.events("durable", "failed")[before:], "the end of the save")[0]

    def stop(self, code=143):
        """Saves and ends it, as a pod that goes away does."""
        self._process.send_signal(signal.SIGTERM)
        self.wait(code)

    def wait(self, code=0):
        try:
            ended = self._process.wait(WAIT_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            raise Unmet(f"the run did not end; it said: {self.said()[-900:]}") from None
        expect(ended == code, f"the run ended with {ended}, expected {code}; it said: {self.said()[-900:]}")

    def ways(self, message):
        """The ways in the log's lines of this message."""
        return set(re.findall(rf"rekindle: {message}: .*\bway (\w+)", self.said()))

    def ways_written(self):
        return self.ways("a rank has written its part")

    def ways_read(self):
        return self.ways("a rank has loaded a checkpoint")
