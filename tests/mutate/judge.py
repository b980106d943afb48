"""Whether a test notices a mutation."""

import dataclasses
import time

from workbench import BuildFailed

UNMUTATED_SECONDS_MAX = 300


@dataclasses.dataclass(frozen=True)
class Verdict:
    """`word` is noticed, SURVIVED or ERROR; `text` the test that noticed it, or why there is an error."""

    name: str
    word: str
    text: str
    seconds: float

    @property
    def line(self):
        return f"{self.word} {self.name}" + {"noticed": f" by {self.text}", "ERROR": f": {self.text}"}.get(
            self.word, ""
        )


class Judge:
    """A mutated run may take ten times as long as without the mutation and `spare_seconds`: a loaded machine is slow, a
    loop without an end is slower."""

    def __init__(self, tree, workbench, spare_seconds=20.0):
        self._tree = tree
        self._workbench = workbench
        self._spare_seconds = spare_seconds
        self._unmutated = {}  # by tests

    def prepare(self, mutations):
        """Builds and runs everything as it is; raises BuildFailed."""
        tests = dict.fromkeys(each for mutation in mutations for each in mutation.noticed_by)
        self._workbench.build(tests, "unmutated")
        for number, each in enumerate(tests, 1):
            self._unmutated[each] = self._workbench.run(each, f"unmutated-{number}", UNMUTATED_SECONDS_MAX)

    def judge(self, mutation) -> Verdict:
        began = time.monotonic()
        word, text = self._judge(mutation)
        return Verdict(mutation.name, word, text, time.monotonic() - began)

    def _judge(self, mutation):
        for each in mutation.noticed_by:
            unmutated = self._unmutated[each]
            if not unmutated.passed:
                why = f"{unmutated.failure.name} {unmutated.failure.why}" if unmutated.failure else "no test ran"
                return "ERROR", f"{each} does not pass without the mutation: {why}"
        try:
            with self._tree.mutated(mutation):
                self._workbench.build(mutation.noticed_by, mutation.name)
                for each in mutation.noticed_by:
                    seconds_max = self._spare_seconds + 10 * self._unmutated[each].seconds
                    failure = self._workbench.run(each, mutation.name, seconds_max).failure
                    if failure:
                        return "noticed", failure.name + (f" ({failure.end})" if failure.end else "")
        except ValueError as why:
            return "ERROR", str(why)
        except BuildFailed as why:
            return "ERROR", f"does not compile: {why}"
        return "SURVIVED", ""
