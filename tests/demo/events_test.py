"""How the events of `rekindle run` come onto the demo's clock."""

import pathlib
import tempfile
import time

from events import Event, EventFile
from selfcheck import outcomes_of

LINE = '{"event":"durable","attempt":2,"step":7,"milliseconds":1500,"path":"a2-s7-x","message":"m"}\n'


def followed(started_at, *contents):
    """The file, read after each of the contents was added."""
    with tempfile.TemporaryDirectory() as name:
        path = pathlib.Path(name) / "events.jsonl"
        file = EventFile(path, started_at)
        file.follow()  # there is none yet
        for content in contents:
            with open(path, "a", encoding="utf-8") as more:
                more.write(content)
            file.follow()
        return file


def a_line_becomes_an_event():
    (event,) = followed(time.monotonic() + 5, LINE).events()
    yield (
        (event.name, event.attempt, event.step, event.path, event.message),
        ("durable", 2, 7, "a2-s7-x", "m"),
    )
    (bare,) = followed(0.0, "{}\n").events()
    yield (bare.name, bare.attempt, bare.step, bare.path, bare.message), ("", 0, 0, "", "")


def a_time_is_that_of_the_launchers_start_and_later():
    # Said to have started in the future, which is the earliest that the clock can be.
    started = time.monotonic() + 100
    yield followed(started, LINE).events()[0].at, started + 1.5


def the_line_that_was_read_soonest_sets_the_clock():
    before = time.monotonic()
    slow, quick = '{"event":"a","milliseconds":0}\n', '{"event":"b","milliseconds":500000}\n'
    first, second, _ = followed(before - 1000, slow, quick, slow).events()
    yield round(second.at - first.at, 6), 500.0
    yield before <= second.at <= time.monotonic(), True


def half_a_line_waits_for_its_end():
    file = followed(0.0, LINE[:20], LINE[20:] + LINE)
    yield [event.name for event in file.events()], ["durable", "durable"]
    yield [event.name for event in followed(0.0, LINE, LINE[:20]).events()], ["durable"]
    yield [event.name for event in followed(0.0, "no json\n", LINE).events()], ["durable"]


def events_are_counted_by_name():
    file = followed(0.0, LINE, LINE, '{"event":"hold"}\n')
    yield (file.count("durable"), file.count("hold"), file.count("restart")), (2, 1, 0)
    yield isinstance(file.events()[0], Event), True


def who_asks_gets_what_is_new():
    with tempfile.TemporaryDirectory() as name:
        path = pathlib.Path(name) / "events.jsonl"
        file = EventFile(path, 0.0)
        path.write_text(LINE)
        yield file.count("durable"), 1
        path.write_text(LINE + LINE)
        yield len(file.events()), 2


def outcomes():
    return outcomes_of(
        "launcher-events",
        (
            a_line_becomes_an_event,
            a_time_is_that_of_the_launchers_start_and_later,
            the_line_that_was_read_soonest_sets_the_clock,
            half_a_line_waits_for_its_end,
            events_are_counted_by_name,
            who_asks_gets_what_is_new,
        ),
    )
