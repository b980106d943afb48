"""What the cases share."""

import dataclasses
import pathlib

from building import Programs
from trainingrun import Setting


class Unmet(Exception):
    """An expectation that did not hold: what was expected, what came, where to look."""


class Skipped(Exception):
    """The case cannot run here; says why."""


@dataclasses.dataclass(frozen=True)
class Context:
    build: pathlib.Path
    programs: Programs
    data: pathlib.Path
    folder: pathlib.Path

    def setting(self, folder: pathlib.Path, steps: int) -> Setting:
        return Setting(programs=self.programs, data=self.data, folder=folder, steps=steps)


def expect(holds: bool, sentence: str) -> None:
    if not holds:
        raise Unmet(sentence)


def expect_said(log: pathlib.Path, *words: str) -> None:
    """All words, in any case, somewhere in what was printed."""
    text = log.read_text(errors="replace").lower()
    missing = [word for word in words if word.lower() not in text]
    expect(
        not missing,
        f"expected the output to mention {', '.join(repr(word) for word in missing)}; it is in {log}: {text[-600:]}",
    )
