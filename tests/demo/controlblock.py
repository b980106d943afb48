"""Reads what a rank last said about itself, also after its death: the memory outlives the process.

The control block is the sidecar's (docs/formats/control-block.md), the status page the training program's own
(docs/examples/digits/journal.h). The demo only reads them, to know better than its subjects what a kill has hit.
"""

import dataclasses
import mmap
import os
import pathlib
import struct

PHASES = (
    "starting",
    "restoring",
    "between",
    "computing",
    "updating",
    "waiting at update",
    "waiting at step",
    "collective failed",
    "finished",
    "evaluating",
    "compiling",
    "waiting for data",
    "swapped",
)
DOINGS = ("starting", "between steps", "computing", "reducing", "updating", "finishing")

_TRAINING_PHASES = range(2, len(PHASES))


@dataclasses.dataclass(frozen=True)
class Word:
    """What a rank has published: its last committed step, in which life of the job, and what it is doing."""

    attempt: int
    step: int
    phase: int

    @property
    def is_training(self) -> bool:
        return self.attempt > 0 and self.phase in _TRAINING_PHASES

    @property
    def phase_name(self) -> str:
        return PHASES[self.phase] if self.phase < len(PHASES) else f"phase {self.phase}"


class ControlBlock:
    """One rank's block, mapped for reading; the mapping stays valid when the file is replaced."""

    def __init__(self, path: pathlib.Path) -> None:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            self._memory = mmap.mmap(descriptor, 256, prot=mmap.PROT_READ)
        finally:
            os.close(descriptor)
        if self._memory[:8] != b"RKCTRL01":
            raise ValueError(f"{path} is not a control block")
        (self.rank,) = struct.unpack_from("<I", self._memory, 16)
        (self.incarnation,) = struct.unpack_from("<Q", self._memory, 24)

    def read(self) -> Word:
        value, attempt = struct.unpack_from("<QQ", self._memory, 64)
        return Word(attempt=attempt, step=value >> 16, phase=value >> 8 & 0xFF)

    def close(self) -> None:
        self._memory.close()


def doing_of(status_page: pathlib.Path) -> str:
    """What the training program was at when it wrote its status page last."""
    try:
        with open(status_page, "rb") as file:
            (doing,) = struct.unpack_from("<I", file.read(64))
    except (OSError, struct.error):
        return "unknown"
    return DOINGS[doing] if doing < len(DOINGS) else "unknown"
