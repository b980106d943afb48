"""Whether nothing was lost: a judgement of what others wrote and saw (logs, manifests, final states). It reads nothing
itself, and is the same for `rekindle run` and for a cluster."""

import dataclasses

from endstates import EndStates
from schedule import Schedule
from stepjournal import LoggedStep, life_faults
from steploss import StepLoss
from timeline import Entry, timeline_faults, timeline_report

SECTION = "  Proof"


@dataclasses.dataclass(frozen=True)
class Recovery:
    """What became of one fault."""

    what: str  # in words, for sentences
    attempt: int  # the life of the job that it ended
    step_at_fault: int  # the largest step that was seen committed from outside
    steps: StepLoss
    saved_where: str  # what tells of step_saved
    manifest: dict | None = None  # of what was saved, where it can be read

    def faults(self, *, lost_max: int = 0) -> list[str]:
        found = self.steps.faults(lost_max=lost_max)
        if self.steps.last_step_committed < self.step_at_fault:
            found.append(
                f"step {self.step_at_fault} was seen committed from outside, but the ranks' journals end with step "
                f"{self.steps.last_step_committed} in attempt {self.attempt}"
            )
        if self.manifest is not None:
            said = (self.manifest.get("attempt"), self.manifest.get("step"))
            if said != (self.attempt, self.steps.step_saved):
                found.append(
                    f"the manifest is of attempt {said[0]}, step {said[1]}; expected attempt {self.attempt}, step "
                    f"{self.steps.step_saved}"
                )
        return found


@dataclasses.dataclass(frozen=True)
class Observed:
    """A run that was broken once or more, has come back and has ended."""

    steps: int  # that it had to make
    journals: dict[int, list[LoggedStep]]
    recoveries: list[Recovery]
    states: EndStates
    leftovers: list[str]  # processes of the job that are still there
    timeline: list[Entry] | None = None  # None in a drill, which makes none
    in_order: tuple = ()  # what the timeline has to have
    anywhere: tuple = ()
    schedule: Schedule | None = None  # of the checkpoints when nobody was left to save anything else

    @property
    def lost_max(self) -> int:
        """How many steps the fault may have cost."""
        return 0 if self.schedule is None else self.schedule.lost_max(self.journals)

    def faults(self) -> list[str]:
        """Sentences; none when nothing was lost and nothing else is wrong."""
        found = []
        for recovery in self.recoveries:
            where = f"{recovery.what}: " if len(self.recoveries) > 1 else ""
            found += [where + sentence for sentence in recovery.faults(lost_max=self.lost_max)]
        starts = {recovery.steps.first_step_after for recovery in self.recoveries}
        found += life_faults(self.journals, starts, self.steps)
        if self.schedule is not None:
            found += self.schedule.faults(self.journals)
        found += self.states.faults()
        if self.timeline is not None:
            found += timeline_faults(self.timeline, self.in_order, self.anywhere)
        if self.leftovers:
            found.append(f"the job has ended, but processes of it are still there: {', '.join(self.leftovers)}")
        return found

    def report(self) -> dict:
        """Of a run that was broken once."""
        (recovery,) = self.recoveries
        return {
            "step_at_fault": recovery.step_at_fault,
            **recovery.steps.report(),
            "lost_max": self.lost_max,
            **self.states.report(),
            "faults": self.faults(),
            "timeline": timeline_report(recovery.step_at_fault, self.timeline),
        }

    def lines(self) -> list[str]:
        """The same for people."""
        (recovery,) = self.recoveries
        return [SECTION, *recovery.steps.lines(recovery.saved_where), *self.states.lines(), ""]
