"""Checkpoints that a training program asks for every so many steps: whether each was made, and what the newest may still
have cost when nobody was left to save."""

import dataclasses

from events import Event
from stepjournal import LoggedStep, last_committed

# A write may take longer than the longest one that was measured before it.
WRITES = 3


@dataclasses.dataclass(frozen=True)
class Schedule:
    """Of one life of the job, which a fault has ended."""

    every: int
    attempt: int
    durable: tuple[int, ...]  # steps of the checkpoints that were complete on disk
    write_milliseconds: float  # the longest from asking every rank to hold still until then

    def late_steps(self, journals: dict[int, list[LoggedStep]]) -> int:
        """The most steps that were ever made in the time of WRITES writes, and the one in progress. Fewer than those of
        the schedule: a slow disk excuses no checkpoint but the newest."""
        made = max((self._steps_within(logged) for logged in journals.values()), default=0)
        return min(made + 1, self.every - 1)

    def lost_max(self, journals: dict[int, list[LoggedStep]]) -> int:
        """The newest scheduled checkpoint may still have been on its way to the disk."""
        return self.every + self.late_steps(journals)

    def faults(self, journals: dict[int, list[LoggedStep]]) -> list[str]:
        """Sentences; none when every scheduled step that was committed has its checkpoint, but for one that had no time
        to be written."""
        ended, late = last_committed(journals, self.attempt), self.late_steps(journals)
        return [
            f"a checkpoint was due every {self.every} steps, but none of step {step} to {step + self.every - 1} was ever "
            f"complete; the life that it belongs to ended {ended - step} steps behind it"
            for step in range(self.every, ended - late + 1, self.every)
            if not any(step <= made < step + self.every for made in self.durable)
        ]

    def _steps_within(self, logged: list[LoggedStep]) -> int:
        times = [one.time_milliseconds for one in logged if one.attempt == self.attempt]
        most, begin = 0, 0
        for end, time in enumerate(times):
            while time - times[begin] > WRITES * self.write_milliseconds:
                begin += 1
            most = max(most, end - begin)
        return most


def schedule_of(events: list[Event], attempt: int, every: int) -> Schedule:
    """As the launcher's events tell it."""
    durable, longest, held_at = [], 0.0, None
    for event in events:
        if event.attempt != attempt:
            continue
        if event.name == "hold":
            held_at = event.at
        elif event.name == "durable":
            durable.append(event.step)
            if held_at is not None:
                longest = max(longest, event.at - held_at)
    return Schedule(every, attempt, tuple(durable), longest * 1000)
