"""How the ranks' journals are read, and what is said about the lives of a job, told by example journals."""

import json
import pathlib
import tempfile

from failure import Failure
from selfcheck import outcomes_of, refused, said
from stepjournal import (
    LoggedStep,
    cluster_argument,
    committed_by_all,
    first_behind,
    journals_in_logs,
    last_committed,
    life_faults,
    read_journals,
    steps_of,
)


def life(attempt, first, last):
    return [LoggedStep(attempt, step, 0.0) for step in range(first, last + 1)]


WHOLE = {0: life(1, 1, 100) + life(2, 101, 200), 1: life(1, 1, 99) + life(2, 101, 200)}

# name: (journals, first steps behind the known faults, how each sentence begins)
EXAMPLES = {
    "one-fault-and-one-life-behind-it": ({0: life(1, 1, 100) + life(2, 101, 200)}, {101}, ()),
    "a-rank-may-have-been-one-step-behind": (WHOLE, {101}, ()),
    "a-rank-may-have-been-hit-in-its-first-step": ({0: life(1, 1, 1) + life(2, 2, 200), 1: life(2, 2, 200)}, {2}, ()),
    "a-rank-that-skips-its-first-step": (
        {0: life(1, 1, 200), 1: life(1, 2, 200)},
        {2},
        ("rank 1 began with step 2; expected 1",),
    ),
    "a-rank-that-comes-too-late": (
        {0: life(1, 1, 1) + life(2, 2, 200), 1: life(2, 3, 200)},
        {2},
        ("rank 1 began with step 3; expected 1",),
    ),
    "a-restart-that-no-fault-explains": (
        {0: life(1, 1, 100) + life(2, 101, 160) + life(3, 150, 200)},
        {101},
        ("rank 0 began attempt 3 with step 150 after step 160", "the job lived 3 times with 1 faults"),
    ),
    # At a step at which one was expected.
    "a-restart-too-many": (
        {0: life(1, 1, 100) + life(2, 101, 101) + life(3, 101, 200)},
        {101},
        ("the job lived 3 times with 1 faults",),
    ),
    "a-restart-without-any-fault": (
        {0: life(1, 1, 100) + life(2, 41, 200)},
        set(),
        ("rank 0 began attempt 2 with step 41 after step 100", "the job lived 2 times with 0 faults"),
    ),
    "a-gap-within-a-life": ({0: life(1, 1, 60) + life(1, 62, 200)}, set(), ("rank 0 made step 62 after step 60",)),
    "a-step-made-twice": ({0: life(1, 1, 60) + life(1, 60, 200)}, set(), ("rank 0 made step 60 after step 60",)),
    "a-life-that-begins-late": ({0: life(1, 5, 200)}, set(), ("rank 0 began with step 5",)),
    "a-life-that-ends-early": ({0: life(1, 1, 199)}, set(), ("rank 0 ended with step 199; expected 200",)),
    "a-life-that-goes-too-far": ({0: life(1, 1, 201)}, set(), ("rank 0 ended with step 201; expected 200",)),
    "a-rank-without-a-step": ({0: life(1, 1, 200), 1: []}, set(), ("rank 1 ended with step 0; expected 200",)),
    "no-journal": ({}, set(), ("no rank has left a journal",)),
    "an-attempt-that-goes-back": (
        {0: life(2, 1, 100) + life(1, 101, 200)},
        {101},
        ("rank 0 went back from attempt 2 to 1",),
    ),
}


def what_every_rank_has_committed_is_the_least():
    journals = {0: life(1, 1, 60) + life(2, 61, 99), 1: life(1, 1, 59) + life(2, 61, 98)}
    yield (committed_by_all(journals, 1), committed_by_all(journals, 2)), (59, 98)
    # A rank that was killed in its first step, and no rank.
    yield (committed_by_all({0: life(1, 1, 1), 1: []}, 1), committed_by_all({}, 1)), (0, 0)


def a_job_that_has_not_ended_has_no_last_step():
    yield life_faults({0: life(1, 1, 100) + life(2, 101, 150)}, {101}, None), []
    yield (
        said(life_faults({0: life(1, 1, 60) + life(2, 31, 59)}, {61}, None), "rank 0 began attempt 2 with step 31"),
        True,
    )
    yield said(life_faults({0: life(1, 1, 60), 1: []}, set(), None), "rank 1 has made no step"), True


def lines_are_read():
    text = '{"attempt":1,"step":5,"rank":0,"time_ms":1.5}\n{"attempt":2,"step":6,"rank":0,"time_ms":2}\n'
    yield steps_of(text, "x"), [LoggedStep(1, 5, 1.5), LoggedStep(2, 6, 2)]
    yield steps_of("", "x"), []


def lines_that_are_no_steps_are_refused():
    for text in ("{}", "[]", "x", '{"attempt":1,"step":5}\n'):
        yield refused(lambda text=text: steps_of(text, "of rank 0"), Failure, "the journal of rank 0 holds"), True
    for name in ("attempt", "step", "time_ms"):
        for value in ("NaN", "Infinity", '"5"', "true", "null", "[5]"):
            line = json.dumps({"attempt": 1, "step": 5, "time_ms": 1, name: "VALUE"}).replace('"VALUE"', value)
            yield refused(lambda line=line: steps_of(line, "x"), Failure, f"{name} is"), True
    for name, value in (("step", 0), ("step", 5.5), ("attempt", -1)):
        line = json.dumps({"attempt": 1, "step": 5, "time_ms": 1, name: value})
        yield refused(lambda line=line: steps_of(line, "x"), Failure, f"{name} is {value}"), True


def every_rank_is_read():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "job-steps-0.jsonl").write_text('{"attempt":1,"step":5,"time_ms":1}\n')
        yield read_journals(folder, 1, "job-"), {0: [LoggedStep(1, 5, 1)]}
        yield refused(lambda: read_journals(folder, 2, "job-"), Failure, "rank 1 has left no journal"), True
    yield cluster_argument("job"), "--log=/rekindle/checkpoints/job-steps-%r.jsonl"


def logs_are_sorted_by_rank_and_time():
    entries = [
        {"attempt": 1, "step": step, "rank": rank, "time_ms": step * 10 + rank} for step in (2, 1) for rank in (0, 1)
    ]
    yield (
        journals_in_logs(entries, 2),
        {rank: [LoggedStep(1, step, step * 10 + rank) for step in (1, 2)] for rank in (0, 1)},
    )
    yield refused(lambda: journals_in_logs(entries, 3), Failure, "no step of rank 2"), True
    entries[0]["step"] = True
    yield refused(lambda: journals_in_logs(entries, 2), Failure, "the logs hold a line that is no step"), True


def logged(lives):
    """{rank: [(attempt, first, last)]} as lines of logs."""
    return [
        {"attempt": attempt, "step": step, "rank": rank, "time_ms": attempt * 1000 + step}
        for rank, lived in lives.items()
        for attempt, first, last in lived
        for step in range(first, last + 1)
    ]


def a_log_without_its_end_is_no_evidence():
    whole = [(1, 1, 60), (2, 61, 100)]
    yield sorted(journals_in_logs(logged({0: whole, 1: whole}), 2)), [0, 1]
    # Killed in the update of step 60, or in the very first step.
    yield sorted(journals_in_logs(logged({0: whole, 1: [(1, 1, 59), (2, 61, 100)]}), 2)), [0, 1]
    yield sorted(journals_in_logs(logged({0: [(1, 1, 1), (2, 2, 9)], 1: [(2, 2, 9)]}), 2)), [0, 1]
    cut = [(1, 1, 57), (2, 61, 100)]
    words = ("not counted", "the log of rank 1 ends with step 57 in attempt 1, in which another rank made step 60")
    yield refused(lambda: journals_in_logs(logged({0: whole, 1: cut}), 2), Failure, *words), True
    yield refused(lambda: journals_in_logs(logged({0: whole, 1: [(2, 61, 100)]}), 2), Failure, "ends with step 0"), True
    # A life that goes on is read while it is written.
    yield sorted(journals_in_logs(logged({0: whole, 1: [(1, 1, 60), (2, 61, 70)]}), 2)), [0, 1]


def the_last_step_is_that_of_any_rank():
    yield last_committed(WHOLE, 1), 100
    yield last_committed(WHOLE, 2), 200
    yield last_committed({0: life(1, 1, 7), 1: life(1, 1, 8)}, 1), 8
    yield last_committed({0: []}, 1), 0


def the_first_step_is_that_of_the_next_life():
    yield first_behind(WHOLE, 1), LoggedStep(2, 101, 0.0)
    # The next fault hit rank 1 before its first step of attempt 2.
    both = {0: life(1, 1, 5) + life(2, 6, 6) + life(3, 7, 9), 1: life(1, 1, 5) + life(3, 7, 9)}
    yield first_behind(both, 1).step, 6


def ranks_that_do_not_go_on_are_told():
    silent = {0: life(1, 1, 5) + life(2, 6, 9), 1: life(1, 1, 5)}
    yield refused(lambda: first_behind(silent, 1), Failure, "ranks [1] hold no step after attempt 1"), True
    yield refused(lambda: first_behind({}, 1), Failure, "hold no step after attempt 1"), True
    apart = {0: life(1, 1, 5) + life(2, 6, 9), 1: life(1, 1, 5) + life(2, 7, 9)}
    yield refused(lambda: first_behind(apart, 1), Failure, "went on at different steps after attempt 1"), True


def outcomes():
    results = []
    for name, (journals, starts, beginnings) in EXAMPLES.items():
        fits = said(life_faults(journals, starts, 200), *beginnings)
        results.append((f"journals-{name}", [] if fits is True else [f"expected {beginnings}, got {fits}"]))
    return results + outcomes_of(
        "journals",
        (
            lines_are_read,
            lines_that_are_no_steps_are_refused,
            every_rank_is_read,
            logs_are_sorted_by_rank_and_time,
            a_log_without_its_end_is_no_evidence,
            a_job_that_has_not_ended_has_no_last_step,
            the_last_step_is_that_of_any_rank,
            what_every_rank_has_committed_is_the_least,
            the_first_step_is_that_of_the_next_life,
            ranks_that_do_not_go_on_are_told,
        ),
    )
