"""Which sources clang-tidy looks at: those that changed since the landing before this one.

Nothing names that landing in a clone of one branch. So it is the newest commit that is older than LANDING_SECONDS
before HEAD; where there is none, everything counts as changed. Newest changes first, at most FILES_MAX; tests/tidy/run
--all looks at every file.
"""

import re
import subprocess

LANDING_SECONDS = 4 * 3600
FILES_MAX = 40


def choose(changed, compiled, files, files_max=FILES_MAX):
    """(sources to look at, how many more there were). `changed`: paths, newest change first; `compiled`: sources with a
    compile command; `files`: {path: text}. A header is looked at through its own source, or else through one that
    includes it."""
    chosen = []
    for path in changed:
        if path in compiled:
            source = path
        elif path.endswith(".h"):
            own = path.removesuffix(".h") + ".cc"
            source = own if own in compiled else _includer(path, compiled, files)
        else:
            source = None
        if source is not None and source not in chosen:
            chosen.append(source)
    return chosen[:files_max], max(0, len(chosen) - files_max)


def _includer(header, compiled, files):
    pattern = re.compile(rf'^\s*#\s*include\s+"{re.escape(header)}"', re.M)
    return next((path for path in sorted(compiled) if pattern.search(files.get(path, ""))), None)


def changed_since_landing(root):
    """Paths, those of the working tree first, then those of the newest commit, and so on."""

    def git(*words):
        return subprocess.run(["git", *words], cwd=root, check=True, capture_output=True, text=True).stdout.splitlines()

    head_seconds = int(git("log", "-1", "--format=%ct")[0])
    base = git("rev-list", "-1", f"--before={head_seconds - LANDING_SECONDS}", "HEAD")
    now = git("diff", "--name-only", "HEAD") + git("ls-files", "-o", "--exclude-standard")
    since = git(
        "log", "--format=", "--name-only", "--diff-merges=first-parent", *([f"{base[0]}..HEAD"] if base else [])
    )
    return list(dict.fromkeys(now + since))
