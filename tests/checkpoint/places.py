"""Where things are."""

import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[2]
LOGS = ROOT / "build" / "logs"
WORK = ROOT / "build" / "checkpoint-tests"
