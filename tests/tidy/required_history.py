"""A line leaves tests/required.txt only in a commit whose message says why: `Removed tests: <why>` or `Renamed tests:
<why>` on a line of its own. A commit that only renames brings a new line of the same stage for each that leaves.

A commit that can no longer be amended is answered for by a later one: `Removed tests of <hash>: <why>`. The rule holds
for the descendants of the commit that brought this file.
"""

import collections
import dataclasses
import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
REQUIRED = "tests/required.txt"
REMOVED = re.compile(r"^Removed tests(?: of ([0-9a-f]{7,40}))?: +\S", re.M)
RENAMED = re.compile(r"^Renamed tests: +\S", re.M)


@dataclasses.dataclass(frozen=True)
class Commit:
    """`before`: the lines of required.txt in each parent; `base`: those of the parents' common ancestor, None where
    there is one parent."""

    hash: str
    message: str
    before: tuple[frozenset[str], ...]
    after: frozenset[str]
    base: frozenset[str] | None = None

    @property
    def added(self):
        return self.after - frozenset().union(*self.before)

    @property
    def removed(self):
        """A merge does not answer for what one of its sides removed before it."""
        gone = frozenset().union(*self.before) - self.after
        if self.base is None:
            return gone
        return {line for line in gone if not (line in self.base and any(line not in side for side in self.before))}


def lines_of(text):
    return frozenset(line for line in text.splitlines() if line and not line.startswith("#"))


def _stages(lines):
    return collections.Counter(line.partition(" ")[0] for line in lines)


def faults_of(commits):
    answered = {match for commit in commits for match in REMOVED.findall(commit.message) if match}
    faults = []
    for commit in commits:
        explained = "" in REMOVED.findall(commit.message) or any(commit.hash.startswith(one) for one in answered)
        if not commit.removed or explained:
            continue
        subject = f"commit {commit.hash[:12]} ({commit.message.partition(chr(10))[0]})"
        names = sorted(commit.removed)
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        if not RENAMED.search(commit.message):
            faults.append(
                f"{subject} takes '{names[0]}'{more} out of {REQUIRED} and does not say why: "
                "amend its message with a line `Removed tests: <why>` or `Renamed tests: <why>`"
            )
        elif lost := _stages(commit.removed) - _stages(commit.added):
            stage, number = sorted(lost.items())[0]
            faults.append(
                f"{subject} says that it renames '{names[0]}'{more}, and {number} of the stage {stage} "
                f"have no new name in {REQUIRED}: add the new names, or amend its message with a line "
                "`Removed tests: <why>`"
            )
    return faults


def _git(root, *words, text=None):
    return subprocess.run(["git", *words], cwd=root, check=True, capture_output=True, text=True, input=text).stdout


def read_commits(root):
    """Those after the rule came in that touch required.txt, newest first."""
    introduced = _git(root, "log", "--diff-filter=A", "--format=%H", "--", "tests/tidy/required_history.py").split()
    if not introduced:
        return []
    chosen = [
        line.split()
        for line in _git(root, "rev-list", "--parents", "--ancestry-path", f"{introduced[-1]}..HEAD").splitlines()
    ]
    wanted = list(dict.fromkeys(name for names in chosen for name in names))
    asked = "".join(f"{name}:{REQUIRED}\n" for name in wanted)
    answers = _git(root, "cat-file", "--batch-check=%(objectname)", text=asked).splitlines() if wanted else []
    blobs = {name: "" if answer.endswith(" missing") else answer for name, answer in zip(wanted, answers, strict=True)}

    def lines(blob):
        return lines_of(_git(root, "cat-file", "blob", blob)) if blob else frozenset()

    commits = []
    for name, *parents in chosen:
        message = _git(root, "log", "-1", "--format=%B", name)
        before, base = (), None
        if any(blobs[parent] != blobs[name] for parent in parents):
            before = tuple(lines(blobs[parent]) for parent in parents)
            if len(parents) > 1:
                base = _lines_of_ancestor(root, parents, lines)
                base = frozenset().union(*before) if base is None else base
        commits.append(Commit(name, message, before, lines(blobs[name]) if before else frozenset(), base))
    return commits


def _lines_of_ancestor(root, parents, lines):
    """None where they have none: only what all sides had can be missed then."""
    found = subprocess.run(["git", "merge-base", "--octopus", *parents], cwd=root, capture_output=True, text=True)
    if found.returncode != 0:
        return None
    blob = subprocess.run(
        ["git", "rev-parse", "--verify", "--quiet", f"{found.stdout.strip()}:{REQUIRED}"],
        cwd=root,
        capture_output=True,
        text=True,
    ).stdout.strip()
    return lines(blob)


def faults_in(root):
    """Of a clone of the whole history. An export is one commit and has no history to answer for, and nothing in it is
    cut off; a shallow clone has commits that it does not see."""
    if _git(root, "rev-parse", "--is-shallow-repository").strip() == "true":
        return [
            f"this clone is shallow: a commit that it does not have may have taken a line out of {REQUIRED}; "
            "run `git fetch --unshallow`"
        ]
    return faults_of(read_commits(root))


def removals_say_why(_files):
    return faults_in(ROOT)
