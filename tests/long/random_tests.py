"""The GoogleTests that draw seeds: where they are, and how a failure is seen again."""

import re

import testprograms

# What a test that draws a seed has in its source.
DRAWS = re.compile(r"\bfor_each_seed\(")
# What tests/support/random_seed.h prints.
REPLAY = re.compile(r"replay with (\S.*)")


def find(files):
    """{(stage, program): filter of the suites that draw seeds}. `files`: {path: text} of sources and CMakeLists below
    tests/."""
    found = {}
    for program in testprograms.find(files):
        tests = [files.get(source, "") for source in program.sources]
        suites = {
            suite
            for test in tests
            if DRAWS.search(test)
            for suite in re.findall(r"^TEST(?:_F|_P)?\(\s*(\w+)", test, re.M)
        }
        if suites:
            patterns = sorted({pattern for suite in suites for pattern in (f"{suite}.*", f"*/{suite}.*")})
            found[(program.stage, program.name)] = ":".join(patterns)
    return found


def replay_of(log, program, test):
    """The command for a test that failed, from what its program printed. `test`: `SUITE.NAME`."""
    said = [line for line in REPLAY.findall(log) if line.rstrip().endswith(f"--gtest_filter={test}")]
    if said:
        # The last that it told before it stopped is the one that broke.
        return said[-1].strip()
    return f"{program} --gtest_filter={test}  # draws its seed anew"
