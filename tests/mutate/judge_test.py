#!/usr/bin/env python3
"""Shows that ./dev mutate tells every kind of end apart, with a planted tree: a file in Python, a stand-in for the
compiler, and a program that answers as GoogleTest does."""

import pathlib
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS / folder) for folder in ("mutate", "support")]

import lists
from judge import Judge
from scratch import ScratchTree
from workbench import Workbench

PRODUCT = """import os, signal
# Adds.
def add(a, b):
    return a + b
"""
COMPILER = """import pathlib, py_compile, shutil, sys
if sys.argv[1] == "--configure":
    pathlib.Path("build/dev/test-programs/unit").mkdir(parents=True, exist_ok=True)
    pathlib.Path("build/dev/build.ninja").touch()
else:
    py_compile.compile("product.py", cfile="build/product.pyc", doraise=True)
    shutil.copy("sum_test.py", f"build/dev/test-programs/unit/{sys.argv[1]}")
"""
GOOGLETEST = f"""#!{sys.executable}
import fnmatch, json, sys
sys.dont_write_bytecode = True
sys.path.insert(0, __file__.rpartition("/build/")[0])
from product import add
options = dict(word.split("=", 1) for word in sys.argv[1:] if "=" in word)
cases = []
for name, holds in [("OfTwo", lambda: add(1, 2) == 3), ("AlwaysFails", lambda: False)]:
    if fnmatch.fnmatch("Sum." + name, options["--gtest_filter"]):
        case = dict(name=name, status="RUN", result="COMPLETED")
        cases.append(case if holds() else dict(case, failures=[dict(failure="it does not hold")]))
with open(options["--gtest_output"].removeprefix("json:"), "w") as report:
    json.dump(dict(testsuites=[dict(name="Sum", testsuite=cases)]), report)
sys.exit(any("failures" in case for case in cases))
"""
CHECK = "import product, sys\nsys.exit(product.add(2, 2) != 4)\n"
FILES = {"product.py": PRODUCT, "compiler.py": COMPILER, "sum_test.py": GOOGLETEST, "check.py": CHECK}

OF_TWO = "unit/sum_test:Sum.OfTwo"
# before, after, noticed_by: how the line of the verdict begins
STORIES = {
    "noticed": ("a + b", "a - b", OF_TWO, "noticed noticed by sum_test/Sum.OfTwo"),
    "noticed-by-a-command": ("a + b", "a - b", "command: python3 check.py", "noticed noticed-by-a-command by command"),
    "crash": ("a + b", "os.abort()", OF_TWO, "noticed crash by sum_test (crash)"),
    "time-out": ("a + b", "signal.pause()", OF_TWO, "noticed time-out by sum_test (time-out)"),
    "nobody-notices": ("# Adds.", "# Sums.", OF_TWO, "SURVIVED nobody-notices"),
    "does-not-compile": ("a + b", "a +", OF_TWO, "ERROR does-not-compile: does not compile:"),
    "stands-twice": ("b", "c", OF_TWO, "ERROR stands-twice: `before` stands 2 times in product.py"),
    "stands-nowhere": ("a * b", "a - b", OF_TWO, "ERROR stands-nowhere: `before` stands 0 times in product.py"),
    "fails-anyway": ("a + b", "a - b", "unit/sum_test:Sum.*", "ERROR fails-anyway: unit/sum_test:Sum.* does not pass"),
    "no-test": ("a + b", "a - b", "unit/sum_test:Sum.None", "ERROR no-test: unit/sum_test:Sum.None does not pass"),
}


def _plant(folder):
    for name, content in FILES.items():
        (folder / name).write_text(content)
    (folder / "sum_test.py").chmod(0o755)
    subprocess.run(["git", "init", "--quiet"], cwd=folder, check=True)


def verdicts_are_told_apart():
    """One fault for every story that ends otherwise than written."""
    with tempfile.TemporaryDirectory(prefix="rekindle-mutate-") as name:
        source, folder = pathlib.Path(name) / "source", pathlib.Path(name) / "scratch" / "tree"
        source.mkdir()
        _plant(source)
        compiler = [sys.executable, "compiler.py"]
        with ScratchTree(source, folder).held() as tree:
            workbench = Workbench(folder, folder.parent / "logs", [*compiler, "--configure"], compiler)
            judge = Judge(tree, workbench, spare_seconds=1.0)
            mutations = {
                story: lists.Mutation(story, "product.py", before, after, (lists.test_of(by),))
                for story, (before, after, by, _) in STORIES.items()
            }
            judge.prepare(mutations.values())
            lines = {story: judge.judge(mutation).line for story, mutation in mutations.items()}
        wrong = [
            f"{lines[story]}, expected {STORIES[story][3]}"
            for story in STORIES
            if not lines[story].startswith(STORIES[story][3])
        ]
        if (folder / "product.py").read_text() != PRODUCT:
            wrong.append("a mutation stays in the tree")
        return wrong


def what_an_interrupted_run_left_is_put_right():
    with tempfile.TemporaryDirectory(prefix="rekindle-mutate-") as name:
        source, folder = pathlib.Path(name) / "source", pathlib.Path(name) / "scratch" / "tree"
        source.mkdir()
        _plant(source)
        with ScratchTree(source, folder).held():
            pass
        (folder / "product.py").write_text("mutated")
        (folder / "more.py").write_text("")
        (source / "check.py").unlink()
        untouched = (folder / "compiler.py").stat().st_mtime_ns
        with ScratchTree(source, folder).held():
            found = {path.name: path.read_text() for path in folder.glob("*.py")}
        wrong = (
            [] if found == {name: FILES[name] for name in FILES if name != "check.py"} else [f"it has {sorted(found)}"]
        )
        if (folder / "compiler.py").stat().st_mtime_ns != untouched:
            wrong.append("what did not change was written again, and would be built again")
        return wrong


LIST = """[[mutation]]
name = "sum-of-one"
file = "product.cc"
before = "a + b"
after = "a"
noticed_by = ["unit/sum_test:Sum.Of*"]
"""
FITTING = {
    "tests/mutate/sum.toml": LIST,
    "product.cc": "return a + b;",
    "tests/unit/sum/CMakeLists.txt": "rekindle_test(sum_test\n  SOURCES sum_test.cc\n  LINKS sum)",
    "tests/unit/sum/sum_test.cc": "TEST(Sum, OfTwo) {}\nTEST_P(Sums, OfMany) {}\nINSTANTIATE_TEST_SUITE_P(All, Sums, x)",
}


def _with(path, old, new):
    return {**FITTING, path: FITTING[path].replace(old, new)}


# What is wrong: a tree that has to be refused for it.
MISFITS = {
    "the line is gone": _with("product.cc", "a + b", "b + a"),
    "the line stands twice": _with("product.cc", "a + b", "a + b + a + b"),
    "the file is gone": {path: text for path, text in FITTING.items() if path != "product.cc"},
    "the test is gone": _with("tests/unit/sum/sum_test.cc", "OfTwo", "Nothing"),
    "the program is gone": _with("tests/unit/sum/CMakeLists.txt", "sum_test\n", "other_test\n"),
    "the parameters are gone": _with("tests/mutate/sum.toml", "Sum.Of*", "Every/Sums.OfMany/0"),
    "the command is gone": _with("tests/mutate/sum.toml", "unit/sum_test:Sum.Of*", "command: python3 check.py"),
    "the name is another one's": {**FITTING, "tests/mutate/more.toml": LIST},
    "nothing changes": _with("tests/mutate/sum.toml", 'after = "a"', 'after = "a + b"'),
    "a field is missing": _with("tests/mutate/sum.toml", 'after = "a"\n', ""),
    "a field is misspelt": _with("tests/mutate/sum.toml", "after", "afterwards"),
    "it is no list": _with("tests/mutate/sum.toml", "[[mutation]]", "[[mutation"),
}


def lists_that_do_not_fit_are_refused():
    fitting = [
        FITTING,
        _with("tests/mutate/sum.toml", "Sum.Of*", "All/Sums.OfMany/7"),
        _with("tests/mutate/sum.toml", "Sum.Of*", "*Sums.*:Sum.OfTwo"),
    ]
    wrong = [f"refuses a list that fits: {why}" for tree in fitting for why in lists.misfits(tree)]
    return wrong + [f"accepts that {what}" for what, tree in MISFITS.items() if not lists.misfits(tree)]


def outcomes():
    checks = (verdicts_are_told_apart, what_an_interrupted_run_left_is_put_right, lists_that_do_not_fit_are_refused)
    return [("mutate-" + check.__name__.replace("_", "-"), check()) for check in checks]
