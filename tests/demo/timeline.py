"""The minutes of one recovery: what happened when, in milliseconds since the fault."""

import dataclasses

# What `rekindle run` tells and a reader wants to know, in the order in which it happens.
_TOLD = {
    "rank_died": "the death is noticed",
    "hold": "every rank is asked to hold still",
    "agreed": "the living ranks agree on step {step}",
    "durable": "checkpoint of step {step} is complete on disk",
    "failed": "the checkpoint failed: {message}",
    "restart": "all ranks are started again",
    "restored": "every rank holds the state of step {step}",
    "first_step": "training goes on with step {step}",
}

# What has to be told of a recovery, in this order: by `rekindle run`, by one that could not save, on a cluster.
SAVED_EVENTS = ("agreed", "durable", "restart", "restored", "first_step")
RESUMED_EVENTS = ("restart", "restored", "first_step")
CLUSTER_EVENTS = ("agreed", "durable", "first_step")


@dataclasses.dataclass(frozen=True)
class ReportedEvent:
    """What somebody says has happened. `at` is in seconds of time.monotonic()."""

    at: float
    name: str
    text: str
    step: int | None = None


@dataclasses.dataclass(frozen=True)
class Entry:
    """`milliseconds` since the fault."""

    milliseconds: float
    event: str
    text: str
    step: int | None = None

    def report(self) -> dict:
        return {"milliseconds": self.milliseconds, "event": self.event} | (
            {} if self.step is None else {"step": self.step}
        )

    def line(self) -> str:
        return f"  {self.milliseconds:>9.1f} ms  {self.text}"


def milliseconds_since(fault_at: float, at: float) -> float:
    """Both in seconds of one clock."""
    return round((at - fault_at) * 1000, 1) + 0.0  # which makes a zero of a negative zero


def entries_of(fault_at: float, told: list[ReportedEvent]) -> list[Entry]:
    """In order of time."""
    return [
        Entry(milliseconds_since(fault_at, one.at), one.name, one.text, one.step)
        for one in sorted(told, key=lambda one: one.at)
    ]


def told_by_launcher(events: list, fault, started_again_at: float | None = None, *, scheduled: bool = False):
    """From the fault to the first step after it, of the events of `rekindle run`. `started_again_at`: when we, not the
    launcher, did so. `scheduled`: checkpoints were made before the fault as well, each with a hold of its own."""
    told = [
        ReportedEvent(
            event.at, event.name, _TOLD[event.name].format(step=event.step, message=event.message), event.step
        )
        for event in events
        if event.name in _TOLD
        and event.attempt >= fault.attempt
        and not (scheduled and event.at < fault.at and event.name in ("hold", "agreed", "durable"))
        and not (event.name in ("restored", "first_step") and event.attempt == fault.attempt)
    ]
    if started_again_at is not None:
        told.append(ReportedEvent(started_again_at, "restart", _TOLD["restart"], 0))
    told.sort(key=lambda one: one.at)
    end = next((place for place, one in enumerate(told, 1) if one.name == "first_step"), len(told))
    return told[:end]


def timeline_faults(entries: list[Entry], in_order: tuple, anywhere: tuple = ()) -> list[str]:
    """Sentences; none when all that had to happen did, once each, after the fault and `in_order`."""
    found = []
    for entry in entries:
        if not entry.milliseconds >= 0:
            found.append(
                f'"{entry.text}" is told {-entry.milliseconds} ms before the fault: it is not of this fault, or a clock is '
                "wrong"
            )
    names = [entry.event for entry in entries]
    if missing := [name for name in (*in_order, *anywhere) if name not in names]:
        found.append(f"nobody told of {', '.join(missing)} after the fault")
    if [entry.milliseconds for entry in entries] != sorted(entry.milliseconds for entry in entries):
        found.append(f"the timeline is not in order of time: {_summary(entries)}")
    seen = [entry for entry in entries if entry.event in in_order]
    if not missing and list(dict.fromkeys(entry.event for entry in seen)) != list(in_order):
        found.append(f"expected {', '.join(in_order)}, in this order; came {_summary(seen)}")
    for name in ("restart", "restored", "first_step"):
        if names.count(name) > 1:
            found.append(f"{name} was told {names.count(name)} times after one fault")
    # No recovery takes no time at all: then nobody has looked at the clock.
    for entry in entries:
        if entry.event == "first_step" and entry.milliseconds == 0:
            found.append(f'"{entry.text}" is told at the very moment of the fault: its time was not taken')
    return found


def _summary(entries: list[Entry]) -> str:
    return ", ".join(f"{entry.event} at {entry.milliseconds} ms" for entry in entries)


def timeline_lines(what: str, entries: list[Entry]) -> list[str]:
    """`what` is the fault, in words."""
    return ["  since the fault", Entry(0.0, "fault", what).line(), *(entry.line() for entry in entries), ""]


def timeline_report(step_at_fault: int, entries: list[Entry]) -> list[dict]:
    return [Entry(0.0, "fault", "", step_at_fault).report(), *(entry.report() for entry in entries)]
