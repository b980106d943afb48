"""The state at the end of a disturbed run beside that of its undisturbed twin: both have to be the same bytes, and what
compares them has to be able to tell states apart."""

import dataclasses
import re


@dataclasses.dataclass(frozen=True)
class State:
    """SHA-256 over all tensors of a file, by a program that shares no code with what wrote it."""

    where: str
    sha256: str


@dataclasses.dataclass(frozen=True)
class EndStates:
    """`initial`: before the first step, of the same seed. Its hash differs from the others unless nothing was trained
    or the hash is always the same."""

    initial: State
    undisturbed: State
    disturbed: State

    def faults(self) -> list[str]:
        """Sentences; none when both runs ended with the same state, and one that was trained."""
        found = []
        for name, state in (
            ("initial", self.initial),
            ("undisturbed", self.undisturbed),
            ("disturbed", self.disturbed),
        ):
            if not re.fullmatch("[0-9a-f]{64}", state.sha256) or len(set(state.sha256)) == 1:
                found.append(f"the hash of the {name} run's state is no SHA-256: {state.sha256!r}")
        if len({self.initial.where, self.undisturbed.where, self.disturbed.where}) != 3:
            found.append(
                f"the same file was hashed twice: {self.initial.where}, {self.undisturbed.where} and {self.disturbed.where}"
            )
        if self.undisturbed.sha256 == self.initial.sha256:
            found.append(
                "the undisturbed run ended with the state that it began with: nothing was trained, or every state has the "
                "same hash"
            )
        if self.disturbed.sha256 != self.undisturbed.sha256:
            found.append("the final states differ; expected the same SHA-256 over all parameters and moments")
        return found

    def report(self) -> dict:
        return {
            "weights_sha256": self.disturbed.sha256,
            "weights_sha256_undisturbed": self.undisturbed.sha256,
            "weights_sha256_initial": self.initial.sha256,
        }

    def lines(self) -> list[str]:
        return [
            f"    final state, undisturbed          {self.undisturbed.sha256}",
            f"    final state, disturbed            {self.disturbed.sha256}",
        ]
