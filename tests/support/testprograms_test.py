"""Which GoogleTest programs the tree has, and which sanitizers they run under, told by example."""

import sanitized_programs
from testprograms import TestProgram, find

FILES = {
    "tests/unit/a/CMakeLists.txt": (
        "# rekindle_test(old_test SOURCES old_test.cc)\n"
        "rekindle_test(part_test\n  SOURCES x_test.cc y_test.cc  # z_test.cc\n  LINKS part)\n"
        "rekindle_test(alone_test SOURCES z_test.cc)\n"
    ),
    "tests/scenario/b/CMakeLists.txt": "rekindle_test(story LINKS b)",
    "operator/CMakeLists.txt": "rekindle_test(elsewhere SOURCES x.cc)",
    "tests/unit/a/x_test.cc": "rekindle_test(in_a_source SOURCES x.cc)",
}
NEW = TestProgram("unit", "new_test", ())
ABI = TestProgram("abi", "abi_test", ())

EXAMPLES = {
    "found-in-cmake-files": (
        find(FILES),
        [
            TestProgram("unit", "alone_test", ("tests/unit/a/z_test.cc",)),
            TestProgram("unit", "part_test", ("tests/unit/a/x_test.cc", "tests/unit/a/y_test.cc")),
            TestProgram("scenario", "story", ()),
        ],
    ),
    "a-new-one-runs-under-both-sanitizers": (
        [sanitized_programs.under(preset, [NEW, ABI]) for preset in ("asan", "tsan")],
        [[NEW], [NEW]],
    ),
}


def outcomes():
    return [
        (f"test-programs-{name}", [] if actual == expected else [f"expected {expected!r}, got {actual!r}"])
        for name, (actual, expected) in EXAMPLES.items()
    ]
