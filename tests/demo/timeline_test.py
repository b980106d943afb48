"""What a timeline holds, and what is said about one, told by example."""

from events import Event
from faults import Fault
from selfcheck import outcomes_of, said
from timeline import (
    CLUSTER_EVENTS,
    RESUMED_EVENTS,
    SAVED_EVENTS,
    Entry,
    ReportedEvent,
    entries_of,
    milliseconds_since,
    timeline_faults,
    timeline_lines,
    timeline_report,
    told_by_launcher,
)

FAULT = Fault(
    kind="sigkill", target="rank 1", at=100.0, attempt=1, step_at_fault=7, phase="computing", word="computing"
)
GOOD = [
    Entry(0.0, "hold", "every rank is asked to hold still"),
    Entry(1.0, "agreed", "the living ranks agree"),
    Entry(9.5, "durable", "complete"),
    Entry(12.0, "restart", "started again"),
    Entry(90.0, "restored", "every rank holds it"),
    Entry(100.0, "first_step", "training goes on"),
]


def event(name, at, attempt=1, step=0, message=""):
    return Event(name=name, at=at, attempt=attempt, step=step, path="", message=message)


LIFE = [
    event("restored", 90.0, 1),
    event("first_step", 90.5, 1, 1),
    event("rank_died", 100.1, 1, 7),
    event("hold", 100.11, 1),
    event("agreed", 100.12, 1, 7),
    event("periodic", 100.13, 1, 7),
    event("durable", 100.2, 1, 7),
    event("restart", 100.3, 1, 7),
    event("restored", 101.0, 2, 7),
    event("first_step", 101.5, 2, 8),
    event("hold", 105.0, 2),
]


def without(name):
    return [entry for entry in GOOD if entry.event != name]


def milliseconds_are_those_since_the_fault():
    yield milliseconds_since(10.0, 10.25), 250.0
    yield milliseconds_since(10.0, 9.999), -1.0
    yield str(milliseconds_since(10.0, 9.99999)), "0.0"


def a_whole_recovery_is_well():
    yield timeline_faults(GOOD, SAVED_EVENTS), []
    yield timeline_faults(GOOD, RESUMED_EVENTS), []
    yield timeline_faults(GOOD, CLUSTER_EVENTS, ("hold",)), []


def what_has_to_be_told_is_named():
    yield SAVED_EVENTS, ("agreed", "durable", "restart", "restored", "first_step")
    yield RESUMED_EVENTS, ("restart", "restored", "first_step")
    yield CLUSTER_EVENTS, ("agreed", "durable", "first_step")


def each_missing_event_is_told():
    for name in SAVED_EVENTS:
        yield said(timeline_faults(without(name), SAVED_EVENTS), f"nobody told of {name} after"), True
    yield said(timeline_faults(GOOD, CLUSTER_EVENTS, ("pods_back",)), "nobody told of pods_back after"), True
    yield said(timeline_faults([], CLUSTER_EVENTS, ("hold",)), "of agreed, durable, first_step, hold after"), True


def a_time_before_the_fault_is_told():
    early = [Entry(-1.0, "hold", "every rank is asked to hold still"), *GOOD[1:]]
    yield (
        said(
            timeline_faults(early, SAVED_EVENTS), '"every rank is asked to hold still" is told 1.0 ms before the fault'
        ),
        True,
    )
    yield len(timeline_faults([Entry(float("nan"), "hold", "x"), *GOOD[1:]], SAVED_EVENTS)), 1


def times_that_are_all_zero_are_told():
    zeros = [Entry(0.0, entry.event, entry.text) for entry in GOOD]
    yield said(timeline_faults(zeros, SAVED_EVENTS), '"training goes on" is told at the very moment of the fault'), True


def times_out_of_order_are_told():
    mixed = [GOOD[0], Entry(95.0, "agreed", "x"), *GOOD[2:]]
    yield said(timeline_faults(mixed, SAVED_EVENTS), "not in order of time: hold at 0.0 ms, agreed at 95.0 ms"), True


def events_out_of_order_are_told():
    swapped = [Entry(1.0, "durable", "x"), Entry(9.5, "agreed", "x"), *GOOD[3:]]
    yield said(timeline_faults(swapped, SAVED_EVENTS), "expected agreed, durable, restart"), True


def a_second_round_of_a_save_is_well():
    yield timeline_faults([*GOOD[:2], *GOOD[1:]], SAVED_EVENTS), []


def a_restart_that_nobody_asked_for_is_told():
    for name in ("restart", "restored", "first_step"):
        twice = [twin for entry in GOOD for twin in [entry] * (1 + (entry.event == name))]
        yield said(timeline_faults(twice, SAVED_EVENTS), f"{name} was told 2 times after one fault"), True


def the_launchers_events_are_those_of_this_fault():
    told = told_by_launcher(LIFE, FAULT)
    yield [one.name for one in told], ["rank_died", "hold", "agreed", "durable", "restart", "restored", "first_step"]
    yield (
        [one.text for one in told],
        [
            "the death is noticed",
            "every rank is asked to hold still",
            "the living ranks agree on step 7",
            "checkpoint of step 7 is complete on disk",
            "all ranks are started again",
            "every rank holds the state of step 7",
            "training goes on with step 8",
        ],
    )
    yield [one.at for one in told], [100.1, 100.11, 100.12, 100.2, 100.3, 101.0, 101.5]
    yield [one.step for one in told], [7, 0, 7, 7, 7, 7, 8]
    failed = told_by_launcher([event("failed", 100.2, message="no room")], FAULT)
    yield [one.text for one in failed], ["the checkpoint failed: no room"]
    second = Fault("sigkill", "rank 1", 101.6, 2, 9, "computing", "computing")
    yield [one.name for one in told_by_launcher(LIFE, second)], ["hold"]


def an_event_before_the_fault_stays_to_be_told():
    early = [event("hold", 99.0), *LIFE]
    yield [one.at for one in told_by_launcher(early, FAULT)][0], 99.0


def scheduled_checkpoints_before_the_fault_are_left_out():
    names = ("hold", "agreed", "durable", "rank_died")
    early = [event(name, 99.0) for name in names]
    yield [one.name for one in told_by_launcher([*early, *LIFE], FAULT, scheduled=True)][:2], ["rank_died", "rank_died"]
    yield len(told_by_launcher(LIFE, FAULT, scheduled=True)), 7
    yield [one.name for one in told_by_launcher([event("hold", FAULT.at)], FAULT, scheduled=True)], ["hold"]


def our_own_start_is_in_it():
    told = told_by_launcher([one for one in LIFE if one.name != "restart"], FAULT, 100.5)
    yield [(one.at, one.name) for one in told if one.name == "restart"], [(100.5, "restart")]
    yield [one.at for one in told], sorted(one.at for one in told)


def entries_are_in_order_of_time():
    told = [ReportedEvent(10.5, "durable", "complete", 7), ReportedEvent(10.25, "agreed", "agree")]
    yield (
        entries_of(10.0, told),
        [Entry(250.0, "agreed", "agree", None), Entry(500.0, "durable", "complete", 7)],
    )


def times_are_printed_and_reported():
    entries = [Entry(250.0, "agreed", "they agree"), Entry(1234.5, "durable", "complete", 7)]
    yield (
        timeline_lines("SIGKILL to rank 1", entries),
        [
            "  since the fault",
            "        0.0 ms  SIGKILL to rank 1",
            "      250.0 ms  they agree",
            "     1234.5 ms  complete",
            "",
        ],
    )
    yield (
        timeline_report(6, entries),
        [
            {"milliseconds": 0.0, "event": "fault", "step": 6},
            {"milliseconds": 250.0, "event": "agreed"},
            {"milliseconds": 1234.5, "event": "durable", "step": 7},
        ],
    )


def outcomes():
    return outcomes_of(
        "timeline",
        (
            milliseconds_are_those_since_the_fault,
            a_whole_recovery_is_well,
            what_has_to_be_told_is_named,
            each_missing_event_is_told,
            a_time_before_the_fault_is_told,
            times_that_are_all_zero_are_told,
            times_out_of_order_are_told,
            events_out_of_order_are_told,
            a_second_round_of_a_save_is_well,
            a_restart_that_nobody_asked_for_is_told,
            the_launchers_events_are_those_of_this_fault,
            an_event_before_the_fault_stays_to_be_told,
            scheduled_checkpoints_before_the_fault_are_left_out,
            our_own_start_is_in_it,
            entries_are_in_order_of_time,
            times_are_printed_and_reported,
        ),
    )
