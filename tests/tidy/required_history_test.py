"""Stories of commits, each with whether it has to be explained."""

import pathlib
import subprocess
import tempfile

import required_history
from required_history import Commit, faults_of

ONE, TWO = frozenset({"unit a/B.c"}), frozenset({"unit a/B.c", "unit a/B.d"})


def change(message, before=TWO, after=ONE, **more):
    return Commit("0123456789abcdef", message, (before,), after, **more)


def merge(left, right, after, base):
    return Commit("fedcba9876543210", "Merge", (left, right), after, base)


# name: (commits, whether there is a fault)
STORIES = {
    "a-line-goes-without-a-word": ([change("Tidied up")], True),
    "a-line-goes-with-a-reason": ([change("Tidied up\n\nRemoved tests: the part is gone")], False),
    "a-line-is-renamed": ([change("Names\n\nRenamed tests: d is e now", after=ONE | {"unit a/B.e"})], False),
    "the-word-alone-is-no-reason": ([change("Tidied up\n\nRemoved tests: \n")], True),
    "a-word-in-a-sentence-is-no-reason": ([change("Tidied up. Removed tests: some")], True),
    "lines-only-come": ([change("More tests", before=ONE, after=TWO)], False),
    "a-later-commit-answers": (
        [Commit("ffff", "Why\n\nRemoved tests of 0123456: the part is gone", (ONE,), ONE), change("Tidied up")],
        False,
    ),
    "a-later-commit-answers-for-another-one": (
        [Commit("ffff", "Why\n\nRemoved tests of 7777777: the part is gone", (ONE,), ONE), change("Tidied up")],
        True,
    ),
    "a-merge-takes-over-what-a-side-removed": ([merge(TWO, ONE, after=ONE, base=TWO)], False),
    "a-merge-drops-what-a-side-added": ([merge(ONE, TWO, after=ONE, base=ONE)], True),
    "a-merge-drops-what-both-sides-have": ([merge(TWO, TWO, after=ONE, base=TWO)], True),
}


def in_a_repository():
    """Read from a real history: the rule comes in, and after it a line goes, once on the branch and once in a merge of
    an older branch."""
    faults = []
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        required, rule = root / "tests" / "required.txt", root / "tests" / "tidy" / "required_history.py"
        rule.parent.mkdir(parents=True)

        def git(*words):
            identity = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]
            subprocess.run(["git", *identity, *words], cwd=root, check=True, capture_output=True)

        def commit(lines, message):
            required.write_text("".join(f"{line}\n" for line in sorted(lines)))
            git("add", "-A")
            git("commit", "-m", message)

        git("init", "-b", "main")
        commit({"unit a", "unit b", "unit c"}, "First")
        commit({"unit a", "unit b"}, "Before the rule")
        git("branch", "older")
        rule.write_text("")
        commit({"unit a", "unit b"}, "The rule")
        git("checkout", "older")
        commit({"unit b"}, "Does not know the rule")
        git("checkout", "main")
        git("merge", "--no-ff", "-m", "Merge", "older")
        if found := faults_of(required_history.read_commits(root)):
            faults.append(f"blames commits that did not know the rule: {found[0]}")
        commit({"unit d"}, "After the rule")
        found = faults_of(required_history.read_commits(root))
        if len(found) != 1 or "After the rule" not in found[0] or "'unit b'" not in found[0]:
            faults.append(f"should blame the commit after the rule, once: {found}")
    return faults


def outcomes():
    results = []
    for name, (commits, wrong) in STORIES.items():
        found = faults_of(commits)
        faults = [] if bool(found) == wrong else [found[0] if found else "found nothing wrong"]
        results.append((f"required-history-{name}", faults))
    return [*results, ("required-history-of-a-repository", in_a_repository())]
