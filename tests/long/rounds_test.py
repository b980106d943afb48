"""Long runs of parts that do nothing, with a clock that goes on by a minute a round."""

import json
import pathlib
import tempfile

from rounds import Failure, Rounds

BROKEN = Failure("it broke", "./dev break --seed 2")


class Run:
    """`rounds_that_fail`: numbers, from 1."""

    def __init__(self, names, minutes, rounds_that_fail=()):
        self.said = []
        self.seeds = []
        self._seconds = 0
        self._rounds_that_fail = rounds_that_fail
        self._drawn = 0
        with tempfile.TemporaryDirectory() as folder:
            report = pathlib.Path(folder) / "long.json"
            rounds = Rounds(
                dict.fromkeys(names, self._part), lambda: self._seconds, self._draw, self.said.append, report
            )
            self.well = rounds.run(60 * minutes)
            self.parts = [one.part for one in rounds.done]
            self.report = json.loads(report.read_text())

    def _draw(self):
        self._drawn += 1
        return self._drawn

    def _part(self, seed):
        self.seeds.append(seed)
        self._seconds += 60
        return ([BROKEN] if len(self.seeds) in self._rounds_that_fail else []), "note"


def in_turn(run):
    yield run.parts, ["a", "b", "a"]
    yield run.seeds, [1, 2, 3]
    yield run.well, True
    yield run.report["failed"], 0
    yield run.report["minutes"], 3.0
    yield "round 3: a, seed 3" in run.said, True


def with_a_failure(run):
    yield run.parts, ["a", "b", "a"]  # the others still get their turns
    yield run.well, False
    yield "  again: ./dev break --seed 2" in run.said, True
    yield run.report["failed"], 1
    yield run.report["rounds"][1]["failures"], [{"what": "it broke", "replay": "./dev break --seed 2"}]
    yield run.report["rounds"][1]["seed"], 2


def with_too_little_time(run):
    yield run.parts, ["a", "b", "c"]


STORIES = {
    "parts-in-turn-until-the-time-is-over": (in_turn, Run(["a", "b"], 3)),
    "a-failure-is-told-and-the-run-goes-on": (with_a_failure, Run(["a", "b"], 3, rounds_that_fail=[2])),
    "every-part-has-one-turn": (with_too_little_time, Run(["a", "b", "c"], 1)),
}


def outcomes():
    return [
        (
            f"long-{name}",
            [f"expected {expected!r}, got {actual!r}" for actual, expected in story(run) if actual != expected],
        )
        for name, (story, run) in STORIES.items()
    ]
