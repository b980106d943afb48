"""The minutes of one recovery: what happened when, in milliseconds since the fault."""

from events import Event
from faults import Fault

# What a reader wants to know, in the order in which it happens.
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


def timeline_of(events: list[Event], fault: Fault, started_again_at: float | None = None) -> list[dict]:
    """From the fault to the first step after it; `milliseconds` since the fault, never before it. `started_again_at`: when we, not
    the launcher, did so."""
    if started_again_at is not None:
        events = [*events, Event(name="restart", at=started_again_at, attempt=0, step=0, path="", message="")]
    entries = []
    for event in sorted(events, key=lambda event: event.at):
        concerns = event.attempt == 0 or event.attempt >= fault.attempt
        # A few milliseconds of slack: the launcher's clock is known to us only that well.
        if event.name not in _TOLD or not concerns or event.at < fault.at - 0.005:
            continue
        if event.name in ("restored", "first_step") and event.attempt == fault.attempt:
            continue
        entries.append(
            {
                "milliseconds": round(max(0.0, event.at - fault.at) * 1000, 1),
                "event": event.name,
                "step": event.step,
                "text": _TOLD[event.name].format(step=event.step, message=event.message),
            }
        )
        if event.name == "first_step":
            break
    return entries
