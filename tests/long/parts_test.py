"""The parts of a long run, with small programs in place of ./dev and of the tests, and what they make of a failure."""

import pathlib
import tempfile

from children import Children
from parts import Parts
from rounds import Failure

DEV = """#!/bin/sh
echo "$* $REKINDLE_INSTALLED" >> asked
case "$1" in
  fuzz) printf 'broken\\n  the input is x\\n  again: build/fuzz/fuzzers/x x\\n' ;;
  drill) echo "The demo failed: a step was lost" ;;
esac
exit EXIT
"""
E2E = "#!/bin/sh\necho 'FAIL operator_away: it was lost (after 3 s)'\nexit 1\n"
GOOGLETEST = """#!/bin/sh
for word in "$@"; do case "$word" in --gtest_output=json:*) report=${word#*json:} ;; esac; done
echo "seed 9; replay with TEST_SEED=9 $0 --gtest_filter=Lucky.Thing"
printf '{"testsuites": [{"name": "Lucky", "testsuite": [{"name": "Thing", "time": "1s", "status": "RUN", "result": "COMPLETED", "failures": [{}]}]}]}' > "$report"
exit 1
"""


def add(root, path, text, mode=0o755):
    path = root / path
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)


def parts_of(root, code):
    """As they are made for a tree in which everything fails (code 1) or nothing does."""
    add(root, "dev", DEV.replace("EXIT", str(code)))
    add(root, "tests/e2e/run", E2E)
    add(root, "tests/unit/a/CMakeLists.txt", "rekindle_test(a_test SOURCES lucky_test.cc)\n", 0o644)
    add(root, "tests/unit/a/lucky_test.cc", "TEST(Lucky, Thing) { for_each_seed(", 0o644)
    add(root, "build/dev/test-programs/unit/a_test", GOOGLETEST)
    logs = root / "build" / "logs"
    logs.mkdir()
    return Parts(root, logs, Children())


def a_fuzzer_that_breaks_something(root):
    failures, _ = parts_of(root, 1).fuzz(7)
    yield [failure.replay for failure in failures], ["build/fuzz/fuzzers/x x"]


def a_fuzzer_a_round(root):
    parts = parts_of(root, 0)
    yield [parts.fuzz(7)[0], parts.fuzz(8)[0]], [[], []]
    asked = (root / "asked").read_text().splitlines()
    yield len(set(asked)), 2


def a_drill_that_loses_a_step(root):
    failures, _ = parts_of(root, 1).drill(7)
    yield [failure.replay for failure in failures], ["./dev drill --kills 40 --seed 7"]


def an_outage_that_loses_a_job(root):
    failures, _ = parts_of(root, 1).outages(7)
    command = "tests/e2e/run --seed 7 --webhook-away-seconds 300 --operator-kills 6 --only operator_"
    yield failures, [Failure("FAIL operator_away: it was lost (after 3 s); log build/logs/outages-1.log", command)]


def a_random_test_that_fails(root):
    failures, _ = parts_of(root, 1).random_tests(7)
    program = root / "build/dev/test-programs/unit/a_test"
    yield [failure.replay for failure in failures], [f"TEST_SEED=9 {program} --gtest_filter=Lucky.Thing"]


def outages_only_on_a_cluster(root):
    parts = parts_of(root, 0)
    yield list(parts.all(on_cluster=False)), ["random_tests", "fuzz", "drill"]
    yield list(parts.all(on_cluster=True)), ["random_tests", "fuzz", "drill", "outages"]


STORIES = (
    a_fuzzer_that_breaks_something,
    a_fuzzer_a_round,
    a_drill_that_loses_a_step,
    an_outage_that_loses_a_job,
    a_random_test_that_fails,
    outages_only_on_a_cluster,
)


def outcomes():
    results = []
    for story in STORIES:
        with tempfile.TemporaryDirectory() as folder:
            faults = [
                f"expected {expected!r}, got {actual!r}"
                for actual, expected in story(pathlib.Path(folder))
                if actual != expected
            ]
        results.append((f"long-{story.__name__.replace('_', '-')}", faults))
    return results
