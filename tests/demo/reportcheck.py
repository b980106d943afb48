"""Whether a demo that ended well had every reason to: its report and what it printed, read anew."""

import re

from endstates import EndStates, State
from steploss import StepLoss
from timeline import Entry, timeline_faults

FIELDS = (
    "fault",
    "step_at_fault",
    "last_step_committed",
    "step_saved",
    "first_step_after",
    "steps_lost",
    "lost_max",
    "weights_sha256",
    "weights_sha256_undisturbed",
    "weights_sha256_initial",
    "faults",
    "timeline",
)


def report_faults(report: dict, printed: str, in_order: tuple, *, lost_max: int = 0) -> list[str]:
    """Sentences. `in_order`: what the timeline has to have."""
    if missing := [field for field in FIELDS if field not in report]:
        return [f"the report lacks {', '.join(missing)}"]
    steps = StepLoss(report["last_step_committed"], report["step_saved"], report["first_step_after"])
    wrong = [*report["faults"], *steps.faults(lost_max=lost_max)]
    if report["steps_lost"] != steps.steps_lost:
        wrong.append(f"the report says steps_lost {report['steps_lost']}, its other figures {steps.steps_lost}")
    if report["last_step_committed"] < report["step_at_fault"]:
        wrong.append(
            f"step {report['step_at_fault']} was seen, step {report['last_step_committed']} is said to be last"
        )
    states = EndStates(
        State("initial", report["weights_sha256_initial"]),
        State("undisturbed", report["weights_sha256_undisturbed"]),
        State("disturbed", report["weights_sha256"]),
    )
    wrong += states.faults()
    entries = [Entry(one["milliseconds"], one["event"], one["event"]) for one in report["timeline"]]
    wrong += timeline_faults(entries, ("fault", *in_order))
    figures = {name: str(value) for name, value in steps.report().items()}
    for name, value in figures.items():
        if not re.search(rf"^ *{name} +{value}\b", printed, re.M):
            wrong.append(f"{name} {value} is in the report, but was not printed")
    for line in states.lines():
        if line not in printed:
            wrong.append(f"was not printed: {line.strip()}")
    for entry in entries:
        if f"{entry.milliseconds:>9.1f} ms  " not in printed:
            wrong.append(f"{entry.event} came after {entry.milliseconds} ms by the report, which was not printed")
    return wrong
