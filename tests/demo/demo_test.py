"""All tests of the demo's own parts: every *_test.py beside this file. Nothing is built and no job runs."""

import importlib
import pathlib
import sys

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path += [str(TESTS / folder) for folder in ("demo", "cluster", "support") if str(TESTS / folder) not in sys.path]

from selfcheck import exit_code


def outcomes():
    names = sorted(path.stem for path in (TESTS / "demo").glob("*_test.py") if path.stem != "demo_test")
    return [outcome for name in names for outcome in importlib.import_module(name).outcomes()]


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    sys.exit(exit_code(outcomes()))
