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
    "a-renamed-line-has-no-new-name": ([change("Names\n\nRenamed tests: d is e now")], True),
    "fewer-new-names-than-old-ones": (
        [change("Names\n\nRenamed tests: c is e, d is f", after=frozenset({"unit a/B.e"}))],
        True,
    ),
    "a-new-name-in-another-stage": (
        [change("Names\n\nRenamed tests: d is e now", after=ONE | {"tidy a/B.e"})],
        True,
    ),
    "some-renamed-and-some-removed": (
        [change("Names\n\nRenamed tests: c is e\nRemoved tests: d is gone", after=frozenset({"unit a/B.e"}))],
        False,
    ),
    "a-later-commit-renames-for-another-one": (
        [Commit("ffff", "Why\n\nRenamed tests of 0123456: d is e", (ONE,), ONE), change("Tidied up")],
        True,
    ),
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


class Repository:
    """A folder with a history of its own."""

    def __init__(self, folder):
        self.root = pathlib.Path(folder)
        self._required = self.root / "tests" / "required.txt"
        self._rule = self.root / "tests" / "tidy" / "required_history.py"
        self._rule.parent.mkdir(parents=True)
        self.git("init", "-b", "main")

    def git(self, *words):
        identity = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]
        subprocess.run(["git", *identity, *words], cwd=self.root, check=True, capture_output=True)

    def commit(self, lines, message):
        self._required.write_text("".join(f"{line}\n" for line in sorted(lines)))
        self.git("add", "-A")
        self.git("commit", "-m", message)

    def bring_the_rule(self):
        self._rule.write_text("")


def in_a_repository(folder):
    """Read from a real history: the rule comes in, and after it a line goes, once on the branch and once in a merge of
    an older branch."""
    repository = Repository(folder)
    repository.commit({"unit a", "unit b", "unit c"}, "First")
    repository.commit({"unit a", "unit b"}, "Before the rule")
    repository.git("branch", "older")
    repository.bring_the_rule()
    repository.commit({"unit a", "unit b"}, "The rule")
    repository.git("checkout", "older")
    repository.commit({"unit b"}, "Does not know the rule")
    repository.git("checkout", "main")
    repository.git("merge", "--no-ff", "-m", "Merge", "older")
    if found := required_history.faults_in(repository.root):
        yield f"blames commits that did not know the rule: {found[0]}"
    repository.commit({"unit d"}, "After the rule")
    found = required_history.faults_in(repository.root)
    if len(found) != 1 or "After the rule" not in found[0] or "'unit b'" not in found[0]:
        yield f"should blame the commit after the rule, once: {found}"


def in_a_shallow_clone(folder):
    """The commit that took a line away is cut off."""
    repository = Repository(f"{folder}/whole")
    repository.bring_the_rule()
    repository.commit({"unit a", "unit b"}, "The rule")
    repository.commit({"unit a"}, "Without a word")
    repository.commit({"unit a", "unit c"}, "More tests")
    for commits in ("1", "2"):
        clone = pathlib.Path(folder) / f"shallow-{commits}"
        repository.git("clone", "--depth", commits, f"file://{repository.root}", str(clone))
        found = required_history.faults_in(clone)
        if len(found) != 1 or "git fetch --unshallow" not in found[0]:
            yield f"should say what to do about a clone of depth {commits}: {found}"
    subprocess.run(["git", "fetch", "--unshallow"], cwd=clone, check=True, capture_output=True)
    found = required_history.faults_in(clone)
    if len(found) != 1 or "Without a word" not in found[0]:
        yield f"should blame the commit once the clone has it: {found}"


def in_an_export(folder):
    """The tree of one commit, whose history is somewhere else."""
    repository = Repository(folder)
    repository.bring_the_rule()
    repository.commit({"unit a"}, "Everything")
    yield from required_history.faults_in(repository.root)


def outcomes():
    results = []
    for name, (commits, wrong) in STORIES.items():
        found = faults_of(commits)
        faults = [] if bool(found) == wrong else [found[0] if found else "found nothing wrong"]
        results.append((f"required-history-{name}", faults))
    for name, story in (
        ("of-a-repository", in_a_repository),
        ("of-a-shallow-clone", in_a_shallow_clone),
        ("of-an-export", in_an_export),
    ):
        with tempfile.TemporaryDirectory() as folder:
            results.append((f"required-history-{name}", list(story(folder))))
    return results
