"""How random GoogleTests are found and replayed, told by example."""

from random_tests import find, replay_of

FILES = {
    "tests/unit/a/CMakeLists.txt": "rekindle_test(part_test\n  SOURCES dull_test.cc lucky_test.cc\n  LINKS part)\nrekindle_test(b SOURCES dull_test.cc)",
    "tests/unit/a/dull_test.cc": "TEST(Dull, Thing) {}\n",
    "tests/unit/a/lucky_test.cc": "TEST_F(Lucky, Thing) {\n  test::for_each_seed({}, run);\n",
}
LOG = """seed 8; replay with TEST_SEED=8 program --gtest_filter=Lucky.Other
seed 7; replay with TEST_SEED=7 program --gtest_filter=Lucky.Thing
12 seeds from that one on
  seed 9; replay with TEST_SEED=9 program --gtest_filter=Lucky.Thing
"""

EXAMPLES = {
    "found-by-what-they-draw": (find(FILES), {("unit", "part_test"): "*/Lucky.*:Lucky.*"}),
    "replayed-with-the-seed-that-broke": (
        replay_of(LOG, "program", "Lucky.Thing"),
        "TEST_SEED=9 program --gtest_filter=Lucky.Thing",
    ),
    "replayed-anew-when-it-takes-no-seed": (
        replay_of("seed 5\n", "program", "Lucky.Thing"),
        "program --gtest_filter=Lucky.Thing  # draws its seed anew",
    ),
}


def outcomes():
    return [
        (f"random-tests-{name}", [] if actual == expected else [f"expected {expected!r}, got {actual!r}"])
        for name, (actual, expected) in EXAMPLES.items()
    ]
