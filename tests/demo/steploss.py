"""How many steps a fault has cost: a difference of two readings that share no code, and what it has to be."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class StepLoss:
    last_step_committed: int  # by any rank before the fault was over; its own journal says so
    step_saved: int  # Rekindle says so
    first_step_after: int  # the journals of the next life say so

    @property
    def steps_lost(self) -> int:
        """Below 0 when more was saved than was ever made, which cannot be."""
        return self.last_step_committed - self.step_saved

    def faults(self, *, lost_max: int = 0) -> list[str]:
        """Sentences; none when no more than `lost_max` steps were lost and training went on behind the step that was
        saved."""
        found = []
        if self.steps_lost < 0:
            found.append(
                f"step {self.step_saved} is said to be saved, but no rank's journal knows a step after "
                f"{self.last_step_committed}: one of the two is wrong"
            )
        if self.steps_lost > lost_max:
            found.append(
                f"{self.steps_lost} {'step was' if self.steps_lost == 1 else 'steps were'} lost: a rank had committed step "
                f"{self.last_step_committed}, and saved was step {self.step_saved}"
                + (f"; no more than {lost_max} may be lost" if lost_max else "")
            )
        if self.first_step_after != self.step_saved + 1:
            found.append(
                f"step {self.step_saved} was saved, so step {self.step_saved + 1} was expected first; training went on with step "
                f"{self.first_step_after}"
            )
        return found

    def __str__(self) -> str:
        return (
            f"steps_lost {self.steps_lost} (last_step_committed {self.last_step_committed}, step_saved {self.step_saved}, "
            f"first_step_after {self.first_step_after})"
        )

    def report(self) -> dict:
        return {
            "last_step_committed": self.last_step_committed,
            "step_saved": self.step_saved,
            "first_step_after": self.first_step_after,
            "steps_lost": self.steps_lost,
        }

    def lines(self, saved_where: str) -> list[str]:
        """What the report has, each with where it is from."""
        return [
            f"    last_step_committed   {self.last_step_committed:>8}   (the ranks' own journals, read after they had ended)",
            f"    step_saved            {self.step_saved:>8}   ({saved_where})",
            f"    first_step_after      {self.first_step_after:>8}   (the ranks' own journals)",
            f"    steps_lost            {self.steps_lost:>8}",
        ]
