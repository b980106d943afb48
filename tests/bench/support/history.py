"""What benchmarks measured before: a file a run, build/reports/bench/NAME/TIME-COMMIT.json. REKINDLE_BENCH_HISTORY
names a folder that outlives the build."""

import datetime
import json
import os
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[3]
FOLDER = pathlib.Path(os.environ.get("REKINDLE_BENCH_HISTORY", ROOT / "build" / "reports" / "bench"))


def _git(*arguments):
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True).stdout.strip()


def keep(name, figures, folder=FOLDER):
    """Beside the earlier ones; a plus behind the commit says that the tree had changes that are in none."""
    commit = (_git("rev-parse", "--short", "HEAD") or "unknown") + ("+" if _git("status", "--porcelain") else "")
    now = datetime.datetime.now(datetime.UTC)
    path = folder / name / f"{now:%Y%m%dT%H%M%SZ}-{commit}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    made = {"commit": commit, "time": f"{now:%Y-%m-%d %H:%M}", "processors": os.cpu_count()}
    path.write_text(json.dumps({"made": made, **figures}, indent=2) + "\n")


def _medians(figures, prefix=""):
    """Numbers of a report, and medians of what was measured several times; not the single measurements, which are in
    lists."""
    found = {}
    for key, value in figures.items():
        if isinstance(value, dict):
            found |= {prefix + key: value["median"]} if "median" in value else _medians(value, f"{prefix}{key}.")
        elif isinstance(value, (int, float)):
            found[prefix + key] = value
    return found


def table(reports):
    """Lines: a row a report, oldest first, a column a figure."""
    rows = []
    for report in reports:
        made = report["made"]
        figures = _medians({key: value for key, value in report.items() if key != "made"})
        rows.append({"date": made["time"], "commit": made["commit"]} | {k: f"{v:.4g}" for k, v in figures.items()})
    columns = list(dict.fromkeys(column for row in rows for column in row))
    lines = [columns, *([row.get(column, "-") for column in columns] for row in rows)]
    widths = [max(len(line[index]) for line in lines) for index in range(len(columns))]
    return ["  ".join(word.ljust(width) for word, width in zip(line, widths)).rstrip() for line in lines]


def show(names, folder=FOLDER):
    for name in names:
        paths = sorted((folder / name).glob("*.json"))
        print(f"{name}: {len(paths)} runs in {folder / name}")
        if paths:
            print("\n".join("  " + line for line in table([json.loads(path.read_text()) for path in paths])))
