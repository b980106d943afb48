"""The minutes of one recovery: what happened when, in milliseconds since the fault."""

from events import Event
from failure import Failure
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


def milliseconds_since(fault_at: float, at: float, what: str) -> float:
    """Both in seconds of one clock."""
    milliseconds = round((at - fault_at) * 1000, 1)
    if milliseconds < 0:
        raise Failure(
            f'"{what}" is told {-milliseconds} ms before the fault: it is not of this fault, or a clock is wrong'
        )
    return milliseconds + 0.0  # which makes a zero of a negative zero


def timeline_of(
    events: list[Event], fault: Fault, started_again_at: float | None = None, *, scheduled: bool = False
) -> list[dict]:
    """From the fault to the first step after it; `milliseconds` since the fault. `started_again_at`: when we, not the
    launcher, did so. What belongs to the recovery and came before the fault is a failure: then it is not this fault's,
    or a clock is wrong. `scheduled`: checkpoints were made before the fault as well, each with a hold of its own."""
    if started_again_at is not None:
        events = [*events, Event(name="restart", at=started_again_at, attempt=0, step=0, path="", message="")]
    entries = []
    for event in sorted(events, key=lambda event: event.at):
        concerns = event.attempt == 0 or event.attempt >= fault.attempt
        if event.name not in _TOLD or not concerns:
            continue
        if scheduled and event.at < fault.at and event.name in ("hold", "agreed", "durable"):
            continue
        if event.name in ("restored", "first_step") and event.attempt == fault.attempt:
            continue
        text = _TOLD[event.name].format(step=event.step, message=event.message)
        entries.append(
            {
                "milliseconds": milliseconds_since(fault.at, event.at, text),
                "event": event.name,
                "step": event.step,
                "text": text,
            }
        )
        if event.name == "first_step":
            break
    return entries
