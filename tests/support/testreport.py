"""What a run of ./dev test has to tell: the table at its end, and build/reports/test.json."""

import collections
import json

from stages import COLD_MINUTES_MAX, STAGES, WARM_MINUTES_MAX

SLOWEST = 10
# What `tests/tidy/run --quick` says that it leaves out.
QUICK_SKIPS = ("tidy clang-tidy", "tidy program-can-fail-clang-tidy")
RESULTS = ("passed", "failed", "skipped")


def read_program_seconds(path):
    """{`stage/program`: seconds} of the last report; empty where there is none."""
    try:
        seconds = json.loads(path.read_text()).get("program_seconds", {})
        return {name: float(value) for name, value in seconds.items()}
    except (OSError, ValueError, AttributeError, TypeError):
        return {}


def longest_first(names, seconds):
    """Those that nobody has timed yet come first: they may be long."""
    return sorted(names, key=lambda name: (-seconds.get(name, float("inf")), name))


def slowest_tests(outcomes, count=SLOWEST):
    """(`stage name`, seconds), the slowest first. `outcomes`: {stage: [Outcome]}."""
    timed = [(f"{stage} {one.name}", one.seconds) for stage, list_ in outcomes.items() for one in list_ if one.seconds]
    return sorted(timed, key=lambda one: (-one[1], one[0]))[:count]


def count(outcomes):
    """{stage: {result: number}}"""
    return {
        stage: {result: sum(one.result == result for one in list_) for result in RESULTS}
        for stage, list_ in outcomes.items()
    }


def failed_requirements(required, stages, outcomes, quick=False):
    """(name, why) of the lines `stage name` of required.txt that did not run or were skipped. A quick run may leave out
    QUICK_SKIPS."""
    ran = {}
    for stage, list_ in outcomes.items():
        for one in list_:
            # Of several under one name, one that did not pass counts.
            if ran.get(f"{stage} {one.name}") in (None, "passed"):
                ran[f"{stage} {one.name}"] = one.result
    missing = []
    for line in required:
        if not line or line.startswith("#") or line.partition(" ")[0] not in stages:
            continue
        if ran.get(line) is None:
            missing.append((line, "did not run"))
        elif ran[line] == "skipped" and not (quick and line in QUICK_SKIPS):
            missing.append((line, "was skipped"))
    return missing


class Report:
    def __init__(self, outcomes, missing, seconds, seconds_total, program_seconds, cold):
        """`seconds`: of each part of the run, `build`, `cluster` and `clean_up` among them; `missing`: from
        failed_requirements()."""
        self._outcomes = outcomes
        self._missing = missing
        self._seconds = seconds
        self._program_seconds = program_seconds
        self._cold = cold
        self._counts = count(outcomes)
        self._total = collections.Counter()
        for counted in self._counts.values():
            self._total.update(counted)
        self.failed = self._total["failed"] + len(missing)
        self.minutes = seconds_total / 60
        self.minutes_max = COLD_MINUTES_MAX if cold else WARM_MINUTES_MAX

    def lines(self):
        yield f"{'stage':12} {'passed':>7} {'failed':>7} {'skipped':>8} {'seconds':>9}"
        for name, seconds in self._seconds.items():
            counted = self._counts.get(name)
            numbers = [counted[result] for result in RESULTS] if counted else ["", "", ""]
            yield f"{name:12} {numbers[0]:>7} {numbers[1]:>7} {numbers[2]:>8} {seconds:>9.1f}"
        slowest = slowest_tests(self._outcomes)
        if slowest:
            yield f"slowest {len(slowest)} tests"
            for name, seconds in slowest:
                yield f"  {seconds:7.1f} s  {name}"
        yield self._total_line()
        yield f"{self._total['passed']} passed, {self.failed} failed, {self._total['skipped']} skipped"

    def _total_line(self):
        kind = "cold" if self._cold else "warm"
        if set(self._outcomes) != set(STAGES):
            return f"total {self.minutes:.1f} min ({kind})"
        over = f": {self.minutes - self.minutes_max:.1f} min too long" if self.minutes > self.minutes_max else ""
        return f"total {self.minutes:.1f} min of at most {self.minutes_max} ({kind}){over}"

    def as_json(self):
        failures = [
            f"{stage} {one.name}: {one.why}"
            for stage, list_ in self._outcomes.items()
            for one in list_
            if one.result == "failed"
        ]
        return {
            "passed": self._total["passed"],
            "failed": self.failed,
            "skipped": self._total["skipped"],
            "failures": failures + [f"{name} {why}" for name, why in self._missing],
            "minutes": round(self.minutes, 2),
            "minutes_max": self.minutes_max,
            "cold": self._cold,
            "seconds": {name: round(value, 1) for name, value in self._seconds.items()},
            "stages": self._counts,
            "program_seconds": {name: round(value, 2) for name, value in sorted(self._program_seconds.items())},
            "slowest_tests": [
                {"name": name, "seconds": round(value, 2)} for name, value in slowest_tests(self._outcomes)
            ],
        }
