"""What clang-tidy looks at, run after run, with an analysis that only takes notes."""

import json
import pathlib
import tempfile
from unittest.mock import patch

import changed_sources
import programs
from storytests import entered, outcomes_of_stories

FILES = {
    ".clang-tidy": "Checks: x",
    "a/x.cc": '#include "a/x.h"\n',
    "a/x.h": '#include "a/deep.h"\n',
    "a/deep.h": "",
    "a/y.cc": "",
    "a/z.cc": "",
    "b/w.cc": "",
}
SOURCES = ["a/x.cc", "a/y.cc", "a/z.cc", "b/w.cc"]


class Tree:
    """`seconds`: that every analysis takes."""

    def __init__(self, folder, *, files_max=40, seconds=0.0):
        self._folder = pathlib.Path(folder)
        self._files_max, self._seconds = files_max, seconds
        self.files = dict(FILES)
        self.bad = {}
        self.flags = ""
        self._now = 0.0

    def run(self, *changed, everything=False):
        """(what was looked at, faults)"""
        commands = [{"file": str(programs.ROOT / path), "command": f"c++ {path}{self.flags}"} for path in SOURCES]
        (self._folder / "compile_commands.json").write_text(json.dumps(commands))
        looked_at = []

        def analyse(path):
            looked_at.append(path)
            self._now += self._seconds
            return self.bad.get(path, [])

        patches = [
            patch.object(programs, "ANALYSIS", self._folder),
            patch.object(programs, "CLEAN", self._folder / "clean.json"),
            patch.object(programs, "AT_ONCE", 1),
            patch.object(programs, "configure", list),
            patch.object(programs, "analyse", analyse),
            patch.object(programs.time, "monotonic", lambda: self._now),
            patch.object(changed_sources, "FILES_MAX", self._files_max),
            patch.object(changed_sources, "changed_since_landing", lambda root: list(changed)),
        ]
        with entered(patches):
            faults = programs.clang_tidy(self.files, everything, say=lambda line: None)
        return looked_at, faults

    def forget(self):
        (self._folder / "clean.json").write_text("[")


def stories_in_a_tree(*stories):
    def told(story):
        def run():
            with tempfile.TemporaryDirectory() as folder:
                yield from story(lambda **more: Tree(folder, **more))

        run.__name__ = story.__name__
        return run

    return [told(story) for story in stories]


def what_changed_is_looked_at_first(tree):
    one = tree()
    yield one.run("b/w.cc", "a/deep.h", "a/x.h"), (["b/w.cc", "a/x.cc", "a/y.cc", "a/z.cc"], [])


def what_was_clean_is_not_looked_at_again(tree):
    one = tree()
    one.run("b/w.cc")
    yield one.run("b/w.cc"), ([], [])
    one.files["b/w.cc"] = "int x;"
    yield one.run("b/w.cc"), (["b/w.cc"], [])
    # Through a header behind a header, other checks, another command.
    one.files["a/deep.h"] = "int y;"
    yield one.run("a/deep.h"), (["a/x.cc"], [])
    one.files[".clang-tidy"] = "Checks: y"
    yield len(one.run()[0]), 4
    one.flags = " -DOTHER"
    yield len(one.run()[0]), 4
    one.forget()
    yield len(one.run()[0]), 4
    yield len(one.run(everything=True)[0]), 4


def runs_after_each_other_come_to_every_source(tree):
    one = tree(files_max=2)
    changed = ("a/z.cc", "a/y.cc", "a/x.cc")
    yield one.run(*changed)[0], ["a/z.cc", "a/y.cc"]
    yield one.run(*changed)[0], ["a/x.cc", "b/w.cc"]
    yield one.run(*changed)[0], []


def a_fault_stays_until_it_is_mended(tree):
    one = tree()
    one.bad["a/y.cc"] = ["a/y.cc:1:1: error: x"]
    for _ in range(2):
        yield one.run("a/y.cc")[1], ["a/y.cc:1:1: error: x"]
    one.bad.clear()
    yield one.run("a/y.cc"), (["a/y.cc"], [])
    one.bad["a/z.cc"] = ["a/z.cc:1:1: error: y"]
    yield one.run(everything=True)[1], ["a/z.cc:1:1: error: y"]
    yield one.run(), (["a/z.cc"], ["a/z.cc:1:1: error: y"])


def what_was_not_looked_at_in_time_is_a_fault(tree):
    one = tree(seconds=200.0)
    looked_at, faults = one.run("a/z.cc", "a/y.cc", "a/x.cc")
    yield (looked_at, len(faults)), (["a/z.cc", "a/y.cc"], 1)
    yield faults[0].startswith("1 of 3 changed sources were not looked at within 300 s, a/x.cc among them"), True
    yield one.run("a/z.cc", "a/y.cc", "a/x.cc"), (["a/x.cc"], [])
    # One that has not changed waits for a run with time, which is no fault.
    yield one.run(), (["b/w.cc"], [])


def outcomes():
    return outcomes_of_stories(
        "analysis",
        stories_in_a_tree(
            what_changed_is_looked_at_first,
            what_was_clean_is_not_looked_at_again,
            runs_after_each_other_come_to_every_source,
            a_fault_stays_until_it_is_mended,
            what_was_not_looked_at_in_time_is_a_fault,
        ),
    )
