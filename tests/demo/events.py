"""What `rekindle run --events FILE` tells, on the demo's own clock."""

import dataclasses
import json
import pathlib
import time


@dataclasses.dataclass(frozen=True)
class Event:
    """One line of the file. `at` is in seconds of time.monotonic()."""

    name: str
    at: float
    attempt: int
    step: int
    path: str
    message: str


class EventFile:
    """Follows one launcher's file. Its lines carry milliseconds since that launcher began; when that was on our clock
    is learned from reading along: no line can be read before it was written, so the smallest difference seen is the
    best guess."""

    def __init__(self, path: pathlib.Path, started_at: float) -> None:
        self.path = path
        self._earliest = started_at
        self._offset: float | None = None
        self._raw: list[dict] = []
        self._position = 0

    def follow(self) -> None:
        """Takes what is new. To be called often while times matter."""
        try:
            with open(self.path, "rb") as file:
                file.seek(self._position)
                content = file.read()
        except OSError:
            return
        now = time.monotonic()
        whole = content[: content.rfind(b"\n") + 1]
        self._position += len(whole)
        for line in whole.splitlines():
            try:
                entry = json.loads(line)
            except ValueError:
                continue
            self._raw.append(entry)
            difference = now - entry.get("milliseconds", 0) / 1000
            if self._offset is None or difference < self._offset:
                self._offset = max(difference, self._earliest)

    def events(self) -> list[Event]:
        self.follow()
        offset = self._offset if self._offset is not None else self._earliest
        return [
            Event(
                name=entry.get("event", ""),
                at=offset + entry.get("milliseconds", 0) / 1000,
                attempt=entry.get("attempt", 0),
                step=entry.get("step", 0),
                path=entry.get("path", ""),
                message=entry.get("message", ""),
            )
            for entry in self._raw
        ]

    def count(self, name: str) -> int:
        """How many events of that name there are so far."""
        self.follow()
        return sum(entry.get("event") == name for entry in self._raw)
