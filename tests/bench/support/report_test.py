"""What a benchmark ends with, told by example."""

import contextlib
import json
import pathlib
import re
import tempfile
import unittest.mock

import history
import report

ROWS = [("fio", report.spread([1.0, 4.0, 2.0])), ("ours", report.spread([8.0, 6.0]))]


def written(write):
    """{name: text} of the files that `write` makes."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        keep = history.keep
        with (
            unittest.mock.patch.object(report, "REPORTS", folder / "reports"),
            unittest.mock.patch.object(
                report.history, "keep", lambda what, figures: keep(what, figures, folder / "kept")
            ),
            contextlib.redirect_stdout(None),
        ):
            write()
        return {path.name: path.read_text() for path in folder.rglob("*") if path.is_file()}


def figures_are_written_and_kept():
    files = written(lambda: report.write("step", {"ratio": 0.5}))
    latest = json.loads(files.pop("bench-step.json"))
    (earlier,) = files.values()
    yield latest, {"ratio": 0.5}
    yield json.loads(earlier)["ratio"], 0.5


def a_bar_is_as_long_as_its_median():
    (picture,) = written(lambda: report.write_picture("step", "Time", "ms", ROWS)).values()
    bars = [float(width) for width in re.findall(r'<rect [^>]*width="([\d.]+)"', picture)]
    whiskers = [(float(a), float(b)) for a, b in re.findall(r'<line x1="([\d.]+)" x2="([\d.]+)"', picture)]
    left = min(float(x) for x in re.findall(r'<rect x="([\d.]+)"', picture))
    longest = max(end for _, end in whiskers) - left
    yield [round(bar / longest, 2) for bar in bars], [round(2 / 8, 2), round(7 / 8, 2)]
    yield (
        [(round((a - left) / longest, 2), round((b - left) / longest, 2)) for a, b in whiskers],
        [
            (round(1 / 8, 2), round(4 / 8, 2)),
            (round(6 / 8, 2), 1.0),
        ],
    )
    yield re.findall(r">([\d.]+ ms)<", picture), ["2 ms", "7 ms"]


def nothing_measured_is_a_picture_as_well():
    (picture,) = written(lambda: report.write_picture("step", "Time", "ms", [("ours", report.spread([0, 0]))])).values()
    yield 'width="0.0"' in picture, True


def each_goes_first_as_often():
    yield [report.in_turn(index, ("a", "b")) for index in range(3)], [("a", "b"), ["b", "a"], ("a", "b")]


def a_spread_is_not_told_by_its_order():
    yield report.spread([3, 1, 2, 9]), {"minimum": 1, "median": 2.5, "maximum": 9}


STORIES = (
    figures_are_written_and_kept,
    a_bar_is_as_long_as_its_median,
    nothing_measured_is_a_picture_as_well,
    each_goes_first_as_often,
    a_spread_is_not_told_by_its_order,
)


def outcomes():
    results = []
    for story in STORIES:
        faults = [f"expected {expected!r}, got {actual!r}" for actual, expected in story() if actual != expected]
        results.append((f"bench-report-{story.__name__.replace('_', '-')}", faults))
    return results
