"""Shows that each rule fails when it should: a check that cannot fail is none."""

import rules

LAYERS = "a/pure_part pure:\na/shell io: a/pure_part\n"

# rule: a tree that it must refuse
BAD = {
    rules.layer_table_is_complete_and_pure: {"tests/tidy/layers.txt": "a/pure_part pure: a/shell\na/shell io:\n"},
    rules.includes_follow_the_layers: {"tests/tidy/layers.txt": LAYERS, "a/pure_part/x.h": '#include "a/shell/y.h"\n'},
    rules.links_follow_the_layers: {
        "tests/tidy/layers.txt": LAYERS,
        "a/shell/CMakeLists.txt": "rekindle_library(shell SOURCES y.cc LINKS pure_part)",
        "a/pure_part/CMakeLists.txt": "rekindle_library(pure_part\n  SOURCES x.cc\n  LINKS shell)",
    },
    rules.pure_folders_have_no_io: {"tests/tidy/layers.txt": LAYERS, "a/pure_part/x.cc": "#include <sys/socket.h>\n"},
    rules.banned_calls_are_absent: {"a/shell/x.cc": "std::this_thread::sleep" + "_for(1s);"},
    rules.tests_wait_for_conditions: {"tests/e2e/x_cases.py": "import time\n\ntime.sleep(3)\n"},
    rules.every_test_file_is_in_a_target: {"tests/unit/a/x_test.cc": "", "tests/unit/a/CMakeLists.txt": "y_test.cc"},
    rules.files_stay_small: {"a/shell/x.cc": "\n" * (rules.LINES_MAX + 1)},
    rules.documents_have_one_title: {"docs/x.md": "# One\n# Two\n"},
    rules.chart_carries_the_crds_as_they_are: {"crds/x.yaml": "a", "helm/rekindle/files/crds/x.yaml": "b"},
    rules.no_unfinished_words: {"a/shell/x.cc": "// TO" + "DO"},
}


def outcomes():
    results = []
    for name, check in rules.ALL.items():
        faults = [] if check in BAD and check(BAD[check]) else ["accepts a tree that breaks it"]
        results.append((f"rule-can-fail-{name}", faults))
    return results
