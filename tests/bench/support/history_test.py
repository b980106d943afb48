"""Shows that a benchmark's report is kept beside the earlier ones and that the table has what they have."""

import json
import pathlib
import tempfile

import history

OLD = {
    "made": {"commit": "1234567", "time": "2026-01-02 03:04"},
    "ratio": {"minimum": 0.5, "median": 0.75, "maximum": 1},
}
NEW = {
    "made": {"commit": "89abcde+", "time": "2026-02-03 04:05"},
    "ratio": {"minimum": 0.5, "median": 0.875, "maximum": 1},
    "speeds": {"ours": {"minimum": 1, "median": 2, "maximum": 3}},
    "pairs": [{"ours": 17}],
}
EXPECTED = [
    "date              commit    ratio  speeds.ours",
    "2026-01-02 03:04  1234567   0.75   -",
    "2026-02-03 04:05  89abcde+  0.875  2",
]


def outcomes():
    lines = history.table([OLD, NEW])
    wrong = [] if lines == EXPECTED else [f"expected {EXPECTED}, got {lines}"]
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "step").mkdir()
        (folder / "step" / "20260102T030405Z-1234567.json").write_text(json.dumps(OLD))
        history.keep("step", {"nanoseconds": 7}, folder)
        kept = sorted((folder / "step").iterdir())
        news = json.loads(kept[-1].read_text())
        lost = [] if len(kept) == 2 and news["nanoseconds"] == 7 else [f"there are {[path.name for path in kept]}"]
    return [("bench-history-is-a-table-of-medians", wrong), ("bench-reports-are-kept-beside-earlier-ones", lost)]
