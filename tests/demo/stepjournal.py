"""The ranks' own journals: a line for each step that a rank has committed, written by the training program and not by
Rekindle (docs/examples/digits/journal.h). They lie where they outlive processes and pods."""

import dataclasses
import json
import math
import pathlib

from failure import Failure


def cluster_argument(job: str) -> str:
    """What a job of the example on a cluster is told, so that its journals lie beside its checkpoints."""
    return f"--log=/rekindle/checkpoints/{job}-steps-%r.jsonl"


@dataclasses.dataclass(frozen=True)
class LoggedStep:
    """A rank has made this update, in this life of the job."""

    attempt: int
    step: int
    time_milliseconds: float


def steps_of(text: str, where: object) -> list[LoggedStep]:
    """A line is one write, so each is whole whenever its rank was killed."""
    try:
        return [_step_of(json.loads(line)) for line in text.splitlines()]
    except (ValueError, KeyError, TypeError) as error:
        raise Failure(f"the journal {where} holds a line that is no step ({error})") from None


def _step_of(entry: dict) -> LoggedStep:
    """ValueError, KeyError or TypeError when it is none. NaN and true compare like numbers, and would hide a loss."""
    for name in ("attempt", "step"):
        if type(entry[name]) is not int or entry[name] < 1:
            raise ValueError(f"{name} is {entry[name]!r}")
    if type(entry["time_ms"]) not in (int, float) or not math.isfinite(entry["time_ms"]):
        raise ValueError(f"time_ms is {entry['time_ms']!r}")
    return LoggedStep(entry["attempt"], entry["step"], entry["time_ms"])


def read_journals(folder: pathlib.Path, ranks: int, prefix: str = "") -> dict[int, list[LoggedStep]]:
    """Of every rank; one without a journal is a failure, since it may be the one that was ahead."""
    journals = {}
    for rank in range(ranks):
        path = folder / f"{prefix}steps-{rank}.jsonl"
        try:
            journals[rank] = steps_of(path.read_text(encoding="utf-8"), path)
        except OSError as error:
            raise Failure(f"rank {rank} has left no journal: {error}") from None
    return journals


def journals_in_logs(entries: list[dict], ranks: int) -> dict[int, list[LoggedStep]]:
    """The same lines as they went to standard output, for a cluster whose volumes cannot be seen from here. A log that
    was cut is a failure: what it does not hold may be what was lost."""
    journals: dict[int, list[LoggedStep]] = {rank: [] for rank in range(ranks)}
    for entry in entries:
        try:
            step = _step_of(entry)
        except (ValueError, KeyError, TypeError) as error:
            raise Failure(f"the logs hold a line that is no step ({error})") from None
        if entry.get("rank") in journals:
            journals[entry["rank"]].append(step)
    for rank, steps in journals.items():
        steps.sort(key=lambda step: step.time_milliseconds)
        if not steps:
            raise Failure(f"the logs hold no step of rank {rank}")
    if found := cut_faults(journals):
        raise Failure(f"the steps that were lost are not counted: {'; '.join(found)}")
    return journals


def cut_faults(journals: dict[int, list[LoggedStep]]) -> list[str]:
    """Sentences about ranks of which lines are missing at the end of a life that is over. A rank takes part in each step
    that any rank makes, so when it is killed its peers have made one step more at the most."""
    lives = sorted({logged.attempt for steps in journals.values() for logged in steps})
    found = []
    for attempt in lives[:-1]:
        made = {rank: [one.step for one in steps if one.attempt == attempt] for rank, steps in journals.items()}
        most = max(max(steps) for steps in made.values() if steps)
        before_first = min(min(steps) for steps in made.values() if steps) - 1
        for rank, steps in made.items():
            last = max(steps, default=before_first)
            if last < most - 1:
                found.append(
                    f"the log of rank {rank} ends with step {last} in attempt {attempt}, in which another rank made step {most}"
                )
    return found


def last_committed(journals: dict[int, list[LoggedStep]], attempt: int) -> int:
    """The highest step that any rank has committed up to the end of that life of the job. To be read when its processes
    have ended."""
    return max((logged.step for steps in journals.values() for logged in steps if logged.attempt <= attempt), default=0)


def committed_by_all(journals: dict[int, list[LoggedStep]], attempt: int) -> int:
    """The highest step that every rank has committed up to the end of that life: where nobody is left who could pass a
    newer one on, no more can be saved. 0 where a rank has none."""
    return min((last_committed({rank: steps}, attempt) for rank, steps in journals.items()), default=0)


def first_behind(journals: dict[int, list[LoggedStep]], attempt: int) -> LoggedStep:
    """The first step of the next life in which any was made; every rank went on, and all at the same step."""
    firsts = {
        rank: next((logged for logged in steps if logged.attempt > attempt), None) for rank, steps in journals.items()
    }
    silent = [rank for rank, logged in firsts.items() if logged is None]
    if silent or not firsts:
        raise Failure(f"the journals of ranks {silent} hold no step after attempt {attempt}")
    # A rank that the next fault hit before its first step has nothing of that life.
    life = min(logged.attempt for logged in firsts.values())
    begun = {rank: logged for rank, logged in firsts.items() if logged.attempt == life}
    if len({logged.step for logged in begun.values()}) != 1:
        starts = {rank: logged.step for rank, logged in begun.items()}
        raise Failure(f"the ranks went on at different steps after attempt {attempt}: {starts}")
    return next(iter(begun.values()))


def life_faults(journals: dict[int, list[LoggedStep]], starts: set[int], steps: int | None) -> list[str]:
    """Sentences about lives of the job that nobody asked for: none when every rank makes step after step to the end, from
    step 1, and begins another life only with a step of `starts`, the first steps behind what the known faults saved.
    `steps` None: the job has not ended."""
    found = [] if journals else ["no rank has left a journal"]
    lives = {logged.attempt for steps_of_rank in journals.values() for logged in steps_of_rank}
    for rank, logged in journals.items():
        if not logged and steps is None:
            found.append(f"rank {rank} has made no step")
        elif steps is not None and (not logged or logged[-1].step != steps):
            found.append(f"rank {rank} ended with step {logged[-1].step if logged else 0}; expected {steps}")
        # A rank that was hit in its first step has nothing of the first life.
        began_later = bool(logged) and logged[0].attempt > min(lives) and logged[0].step in starts
        if logged and logged[0].step != 1 and not began_later:
            found.append(f"rank {rank} began with step {logged[0].step}; expected 1")
        for before, after in zip(logged, logged[1:]):
            if after.attempt < before.attempt:
                found.append(f"rank {rank} went back from attempt {before.attempt} to {after.attempt}")
            elif after.attempt > before.attempt and after.step not in starts:
                found.append(
                    f"rank {rank} began attempt {after.attempt} with step {after.step} after step {before.step}, which is "
                    f"behind no fault of this run (those are {sorted(starts)})"
                )
            elif after.attempt == before.attempt and after.step != before.step + 1:
                found.append(f"rank {rank} made step {after.step} after step {before.step} in attempt {after.attempt}")
    if len(lives) > len(starts) + 1:
        found.append(f"the job lived {len(lives)} times with {len(starts)} faults")
    return found
