"""Rounds of a long run: whose turn it is, until when, and what is written down."""

import dataclasses
import json


@dataclasses.dataclass(frozen=True)
class Failure:
    """`replay`: the command, to be run in the root of the tree, that shows it again."""

    what: str
    replay: str


@dataclasses.dataclass(frozen=True)
class Round:
    part: str
    seed: int
    seconds: float
    failures: tuple[Failure, ...]
    note: str


class Rounds:
    """`parts`: {name: function from a seed to (failures, note)}, each in its turn; `now`: seconds of a steady clock;
    `draw`: a fresh seed; `say`: takes a line; `report`: the file that is written after every round."""

    def __init__(self, parts, now, draw, say, report):
        self._parts = parts
        self._now = now
        self._draw = draw
        self._say = say
        self._report = report
        self.done = []

    def run(self, seconds):
        """Every part gets at least one turn; none begins after `seconds`. Whether nothing failed."""
        began = self._now()
        while True:
            for name, part in self._parts.items():
                if len(self.done) >= len(self._parts) and self._now() - began >= seconds:
                    return not self.failures
                self._round(name, part)
                self._write(began)

    @property
    def failures(self):
        return [failure for one in self.done for failure in one.failures]

    def _round(self, name, part):
        seed = self._draw()
        number = len(self.done) + 1
        self._say(f"round {number}: {name}, seed {seed}")
        start = self._now()
        failures, note = part(seed)
        seconds = self._now() - start
        self.done.append(Round(name, seed, seconds, tuple(failures), note))
        self._say(
            f"round {number}: {'FAIL' if failures else 'ok'} {name}, {seconds:.0f} s{', ' + note if note else ''}"
        )
        for failure in failures:
            self._say(f"  {failure.what}")
            self._say(f"  again: {failure.replay}")

    def _write(self, began):
        report = {
            "minutes": round((self._now() - began) / 60, 2),
            "failed": len(self.failures),
            "rounds": [dataclasses.asdict(one) for one in self.done],
        }
        self._report.write_text(json.dumps(report, indent=2) + "\n")
