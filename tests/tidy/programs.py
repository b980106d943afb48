"""The formatters and linters, each a list of faults."""

import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import time

import changed_sources
from sources import SOURCE

ROOT = pathlib.Path(__file__).resolve().parents[2]
RUFF = ROOT / "build" / "python-tidy" / "bin" / "ruff"
ANALYSIS = ROOT / "build" / "tidy"
AT_ONCE = os.cpu_count() or 1
# No source is begun after that, so that the stage stays below three minutes where the machine is busy.
ANALYSIS_SECONDS_MAX = 150
_CONCISE = ["--no-cache", "--output-format=concise"]


def _run(*command):
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, errors="replace", stdin=subprocess.DEVNULL)
    return done.returncode, done.stdout + done.stderr


def _lines(code, output, pattern):
    """The lines of `output` that tell a fault; a program that fails without any tells its last lines."""
    lines = [line.replace(f"{ROOT}/", "") for line in output.splitlines() if re.search(pattern, line)]
    return lines if lines or code == 0 else [f"ended with {code}: {' / '.join(output.splitlines()[-3:])}"]


def sources(files):
    return sorted(path for path in files if path.endswith(SOURCE))


def clang_format(files):
    """In a few processes, each with a share of the files."""
    paths = sources(files)
    shares = [share for share in (paths[first::AT_ONCE] for first in range(AT_ONCE)) if share]
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        done = list(pool.map(lambda share: _run("clang-format-19", "--dry-run", "-Werror", *share), shares))
    places = sorted({line.split(": ")[0] for result in done for line in _lines(*result, r": error: |^ended with")})
    return [f"{place}: not as .clang-format has it; run ./dev format" for place in places]


def ruff_format(_files, paths=()):
    return _lines(*_run(RUFF, "format", "--check", *_CONCISE, *paths), r"^\S+:\d+:\d+: ")


def ruff_check(_files, paths=()):
    return _lines(*_run(RUFF, "check", *_CONCISE, *paths), r"^\S+:\d+:\d+: ")


def apply_formats(files):
    for command in (["clang-format-19", "-i", *sources(files)], [RUFF, "format"], [RUFF, "check", "--fix"]):
        subprocess.run(command, cwd=ROOT, check=True)


def configure():
    """Compile commands of every source by itself, and the headers that are generated: all that clang-tidy needs."""
    ANALYSIS.mkdir(parents=True, exist_ok=True)
    code, output = _run("cmake", "--preset", "tidy")
    if code == 0:
        listed = _run("ninja", "-C", ANALYSIS, "-t", "targets", "all")[1]
        headers = re.findall(r"^(generated/\S+\.pb\.h):", listed, re.M)
        code, output = _run("ninja", "-C", ANALYSIS, *headers) if headers else (0, "")
    return _lines(code, output, r"^CMake Error|error:")


def clang_tidy(files, everything=False, say=print):
    if faults := configure():
        return faults
    commands = json.loads((ANALYSIS / "compile_commands.json").read_text())
    compiled = {os.path.relpath(command["file"], ROOT) for command in commands} & set(files)
    if everything:
        chosen, left = sorted(compiled), 0
    else:
        chosen, left = changed_sources.choose(changed_sources.changed_since_landing(ROOT), compiled, files)
    until = time.monotonic() + (float("inf") if everything else ANALYSIS_SECONDS_MAX)
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        done = list(pool.map(lambda path: analyse(path) if time.monotonic() < until else None, chosen))
    looked_at = sum(faults is not None for faults in done)
    say(
        f"     clang-tidy looked at {looked_at} of {len(compiled)} sources; "
        f"{left + len(chosen) - looked_at} more have changed (tests/tidy/run --all looks at every one)"
    )
    return sorted({fault for faults in done for fault in faults or ()})


def analyse(path, flags=("-p", ANALYSIS)):
    return _lines(*_run("clang-tidy-19", "--quiet", path, *flags), r": (error|fatal error): ")
