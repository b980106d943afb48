"""What a demo leaves behind: build/reports/demo.json, and the lines that people read."""

import json
import os
import pathlib
import sys
import time

from failure import Failure


class Story:
    """Prints plain short lines; a passing line is overwritten on a terminal and left out elsewhere."""

    def __init__(self) -> None:
        self._terminal = sys.stdout.isatty()
        self._passing = False

    def say(self, line: str = "") -> None:
        self._clear()
        print(line, flush=True)

    def passing(self, line: str) -> None:
        if self._terminal:
            self._clear()
            print(line[:100], end="", flush=True)
            self._passing = True

    def progress(self, line: str) -> None:
        """For long waits: overwritten on a terminal, a line each elsewhere."""
        if self._terminal:
            self.passing("      " + line)
        else:
            self.say("      " + line)

    def _clear(self) -> None:
        if self._passing:
            print("\r\033[K", end="")
            self._passing = False


class Stopwatch:
    def __init__(self) -> None:
        self._start = time.monotonic()

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._start


def conclude(report: dict, path: pathlib.Path, story: Story) -> None:
    """Writes the report and says how the demo ended. Failure when anything did not hold."""
    write_report(path, report)
    if report["faults"]:
        raise Failure(f"{'; '.join(report['faults'])}. Report: {path}")
    story.say(
        f"{'Nothing was lost' if report['steps_lost'] == 0 else 'Resumed as promised'}. {report['seconds']:.0f} s in all; "
        f"report: {path}"
    )


def write_report(path: pathlib.Path, report: dict) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f"{path.name}.{os.getpid()}")
    partial.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    os.replace(partial, path)
