"""The formatters and linters, each a list of faults."""

import concurrent.futures
import hashlib
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
CLEAN = ROOT / "build" / "tidy-clean.json"
AT_ONCE = os.cpu_count() or 1
# No changed source is begun after that; the stage has a limit of its own.
ANALYSIS_SECONDS_MAX = 300
# Nor one that has not changed and was never looked at here.
SPARE_SECONDS_MAX = 60
_INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.M)
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


def fingerprints(commands, files):
    """{source: hash of all that clang-tidy's word on it depends on}: its text, those of the tree's headers that it
    reaches, its command and the checks. `commands`: {source: command}; `files`: {path: text}."""
    includes = {path: _INCLUDE.findall(text) for path, text in files.items() if path.endswith(SOURCE)}

    def reached(source):
        seen, left = {source}, [source]
        while left:
            fresh = {path for path in includes.get(left.pop(), ()) if path in files} - seen
            seen |= fresh
            left += fresh
        return sorted(seen)

    return {
        source: hashlib.sha256(
            "\0".join([files.get(".clang-tidy", ""), command, *(files[path] for path in reached(source))]).encode()
        ).hexdigest()
        for source, command in commands.items()
    }


def choose_sources(changed, unseen, files_max):
    """(those to look at, those to look at if there is time, how many changed ones are left for another run). `changed`:
    sources, newest change first; `unseen`: those that nobody has found clean as they are."""
    due = [path for path in changed if path in unseen]
    chosen = due[:files_max]
    return chosen, sorted(unseen - set(due))[: files_max - len(chosen)], len(due) - len(chosen)


def clang_tidy(files, everything=False, say=print):
    """Remembers in build/tidy what was clean, so that runs after each other come to every source."""
    if faults := configure():
        return faults
    commands = {
        os.path.relpath(command["file"], ROOT): command.get("command", "")
        for command in json.loads((ANALYSIS / "compile_commands.json").read_text())
    }
    now = fingerprints({path: command for path, command in commands.items() if path in files}, files)
    clean = _read_clean()
    unseen = {path for path, hash_ in now.items() if clean.get(path) != hash_}
    if everything:
        chosen, spare, left = sorted(now), [], 0
    else:
        changed = changed_sources.choose(changed_sources.changed_since_landing(ROOT), set(now), files, len(now))[0]
        chosen, spare, left = choose_sources(changed, unseen, changed_sources.FILES_MAX)
    began = time.monotonic()
    found = _analyse_until(chosen, float("inf") if everything else began + ANALYSIS_SECONDS_MAX)
    more = _analyse_until(spare, began + SPARE_SECONDS_MAX)
    looked_at = found | more
    clean |= {path: now[path] for path, faults in looked_at.items() if not faults}
    # A source with a fault is looked at again, and one that is gone is forgotten.
    kept = {path: hash_ for path, hash_ in clean.items() if path in now and not looked_at.get(path)}
    CLEAN.write_text(json.dumps(kept, indent=0, sort_keys=True))
    say(
        f"     clang-tidy looked at {len(looked_at)} of {len(now)} sources; "
        f"{sum(kept.get(path) == hash_ for path, hash_ in now.items())} are clean as they are, "
        f"{left} changed ones are left for the next run (tests/tidy/run --all looks at every one)"
    )
    faults = sorted({fault for one in looked_at.values() for fault in one})
    if missed := [path for path in chosen if path not in found]:
        faults.append(
            f"{len(missed)} of {len(chosen)} changed sources were not looked at within {ANALYSIS_SECONDS_MAX} s, "
            f"{missed[0]} among them; run it again, it goes on from there"
        )
    return faults


def _read_clean():
    """{source: its fingerprint when it was found clean}"""
    try:
        clean = json.loads(CLEAN.read_text())
        return clean if isinstance(clean, dict) else {}
    except (OSError, ValueError):
        return {}


def _analyse_until(paths, until):
    """{path: faults} of those that were begun by then."""
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        done = list(pool.map(lambda path: analyse(path) if time.monotonic() < until else None, paths))
    return {path: faults for path, faults in zip(paths, done) if faults is not None}


def analyse(path, flags=("-p", ANALYSIS)):
    return _lines(*_run("clang-tidy-19", "--quiet", path, *flags), r": (error|fatal error): ")
