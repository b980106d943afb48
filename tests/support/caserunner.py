"""A stage in parts: each part builds with a preset, then its cases run, a few at once. A case is a name and a function
that gives what it saw, or raises Unmet.

One line a case: `ok NAME: what it saw` or `FAIL NAME: why`; then `N passed, N failed, N skipped`. Names given as
arguments select cases by their beginning; what is not needed for them is not built.
"""

import argparse
import concurrent.futures
import pathlib
import signal
import subprocess
import sys
import time
import traceback

from failure import Failure
from judging import Unmet

ROOT = pathlib.Path(__file__).resolve().parents[2]
LOGS = ROOT / "build" / "logs"
# One build at a time, then its cases, at most so many at once.
AT_ONCE = 2


def say(text):
    print(f"  {text}", flush=True)


def _run_case(name, case):
    """The word of the result; prints the line."""
    began = time.monotonic()
    try:
        seen = case()
        print(f"ok {name}: {seen}, {time.monotonic() - began:.0f} s", flush=True)
        return "passed"
    except Unmet as why:
        sentence = str(why)
    except Exception:  # a fault of the test itself: the other cases still run
        sentence = "\n".join(traceback.format_exc().splitlines()[-4:])
    print(f"FAIL {name}: {' / '.join(line.strip() for line in sentence.splitlines())}", flush=True)
    return "failed"


def _run_part(name, build, cases):
    """Builds into build/NAME, then runs."""
    began = time.monotonic()
    say(f"building with the preset {name} (log build/{name}/build.log)")
    try:
        build(say, [case[0] for case in cases])
    except Failure as why:
        print(f"FAIL build_with_{name}: {' / '.join(line.strip() for line in str(why).splitlines())}", flush=True)
        return ["failed"]
    say(f"built in {time.monotonic() - began:.0f} s")
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(lambda case: _run_case(*case), cases))


def main(stage, describe, setup_groups, parts):
    """Exit code of the stage. `parts`: the preset, what builds for the cases of these names, and the cases."""
    parser = argparse.ArgumentParser(
        prog=f"tests/{stage}/run", description=describe, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    LOGS.mkdir(parents=True, exist_ok=True)
    if subprocess.run([ROOT / "dev", "setup", *setup_groups], stdin=subprocess.DEVNULL).returncode != 0:
        print("FAIL set_up: ./dev setup could not install what this stage needs; what it says is above")
        print("0 passed, 1 failed, 0 skipped")
        return 1
    results = []
    for name, build, cases in parts:
        chosen = [case for case in cases if not arguments.names or case[0].startswith(tuple(arguments.names))]
        if chosen:
            results += _run_part(name, build, chosen)
    print(f"{results.count('passed')} passed, {results.count('failed')} failed, 0 skipped")
    return 1 if "failed" in results or not results else 0
