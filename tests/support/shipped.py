"""Where the programs are that ship. Images carry them, demo and stages run them, benchmarks measure them: all of it is one build."""

import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[2]
PRESET = "release"
FOLDER = ROOT / "build" / PRESET
PROGRAMS = FOLDER / "bin"
