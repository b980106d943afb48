"""Where the programs are that ship. Images carry them, demo and stages run them, benchmarks measure them: all of it is
one build."""

import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
PRESET = "release"
FOLDER = ROOT / "build" / PRESET
PROGRAMS = FOLDER / "bin"
# CMakeLists.txt names the version; everything else asks for it.
VERSION = re.search(r"^project\(rekindle VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text(), re.M)[1]
DIGITS_IMAGE = f"rekindle.dev/digits:{VERSION}"
