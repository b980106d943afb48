"""What is said of checkpoints on a schedule, told by example: a step every 10 ms, a write that takes 20."""

import dataclasses

from events import Event
from schedule import Schedule, schedule_of
from selfcheck import outcomes_of, said
from stepjournal import LoggedStep


def trained_to(last, milliseconds=10.0):
    return {rank: [LoggedStep(1, step, step * milliseconds) for step in range(1, last + 1)] for rank in range(2)}


SCHEDULE = Schedule(every=40, attempt=1, durable=(40, 80, 120), write_milliseconds=20.0)


def with_durable(*steps):
    return dataclasses.replace(SCHEDULE, durable=steps)


def every_scheduled_one_is_there():
    yield SCHEDULE.faults(trained_to(150)), []
    # Taken at a later step than asked for.
    yield with_durable(40, 82, 121).faults(trained_to(150)), []
    yield with_durable().faults(trained_to(39)), []


def every_second_one_is_missing():
    for last in range(80, 240):
        made = [step for step in (80, 160, 240) if step <= last]
        missing = with_durable(*made).faults(trained_to(last))
        yield (last, bool(missing) and "none of step 40 to 79 was ever complete" in missing[0]), (last, True)


def the_newest_may_still_be_on_its_way():
    yield with_durable(40, 80).faults(trained_to(126)), []
    yield said(with_durable(40, 80).faults(trained_to(127)), "a checkpoint was due every 40 steps"), True
    yield said(with_durable(40).faults(trained_to(125)), "a checkpoint was due every 40 steps"), True


def what_may_be_lost_is_measured():
    # Three writes take 60 ms, which are 6 steps, and one may be in progress.
    yield SCHEDULE.lost_max(trained_to(150)), 47
    yield SCHEDULE.lost_max(trained_to(150, milliseconds=100.0)), 41
    another_life = {0: [LoggedStep(2, step, 0.0) for step in range(1, 50)]}
    yield SCHEDULE.lost_max(another_life), 41


def a_slow_disk_excuses_the_newest_only():
    slow = dataclasses.replace(SCHEDULE, write_milliseconds=9000.0)
    yield slow.lost_max(trained_to(150)), 79
    yield dataclasses.replace(slow, durable=(40, 80)).faults(trained_to(158)), []
    yield len(dataclasses.replace(slow, durable=(80,)).faults(trained_to(80))), 1


def it_is_read_from_the_events():
    def event(name, at, step=0, attempt=1):
        return Event(name, at, attempt, step, "", "")

    events = [
        event("hold", 1.0),
        event("durable", 1.25, 40),
        event("hold", 2.0),
        event("durable", 2.125, 80),
        event("hold", 3.0, attempt=2),
        event("durable", 9.0, 81, attempt=2),
    ]
    yield schedule_of(events, 1, 40), Schedule(40, 1, (40, 80), 250.0)
    yield schedule_of([], 1, 40), Schedule(40, 1, (), 0.0)


def outcomes():
    return outcomes_of(
        "schedule",
        (
            every_scheduled_one_is_there,
            every_second_one_is_missing,
            the_newest_may_still_be_on_its_way,
            what_may_be_lost_is_measured,
            a_slow_disk_excuses_the_newest_only,
            it_is_read_from_the_events,
        ),
    )
