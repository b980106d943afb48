"""Shows that each rule fails when it should: a check that cannot fail is none."""

import judge_test
import rules

LAYERS = "a/pure_part pure:\na/shell io: a/pure_part\n"

# Names that users meet, and the pages that have them.
MET = {
    "operator/model/names.h": 'std::string_view kStepAgreed = "StepAgreed";  // Agreed\n'
    'std::string_view kPathAnnotation = "rekindle.dev/path";\n'
    'CheckpointSetting kAll[] = {\n    {"rekindle.dev/keep", environment::kKeep, "keep"},\n};\n',
    "operator/io/metrics.cc": 'BuildGauge()\n  .Name("jobs")\n',
    "worker-sidecar/x.cc": 'out.push_back(NoteProblem{"storage", why});\ngauge("ranks", "help", 1);\n',
    "docs/operating/README.md": "`StepAgreed`, `storage`, `jobs`, `ranks`",
    "docs/formats/injection.md": "`rekindle.dev/path: /a`, `keep`",
}

# rule: a tree that it must refuse
BAD = {
    rules.layer_table_is_complete_and_pure: {"tests/tidy/layers.txt": "a/pure_part pure: a/shell\na/shell io:\n"},
    rules.includes_follow_the_layers: {"tests/tidy/layers.txt": LAYERS, "a/pure_part/x.h": '#include "a/shell/y.h"\n'},
    rules.links_follow_the_layers: {
        "tests/tidy/layers.txt": LAYERS,
        "a/shell/CMakeLists.txt": "rekindle_library(shell SOURCES y.cc LINKS pure_part)",
        "a/pure_part/CMakeLists.txt": "rekindle_library(pure_part\n  SOURCES x.cc\n  LINKS shell)",
    },
    rules.permitted_edges_are_used: {"tests/tidy/layers.txt": LAYERS, "a/shell/x.h": '#include "a/shell/y.h"\n'},
    rules.pure_folders_have_no_io: {"tests/tidy/layers.txt": LAYERS, "a/pure_part/x.cc": "#include <sys/socket.h>\n"},
    rules.banned_calls_are_absent: {"a/shell/x.cc": "std::this_thread::sleep" + "_for(1s);"},
    rules.outside_input_is_not_asserted: {"operator/kube/x.cc": "  RK_ASSERT" + "(!key.name.empty());\n"},
    rules.tests_wait_for_conditions: {"tests/e2e/x_cases.py": "import time\n\ntime.sleep(3)\n"},
    rules.random_tests_can_be_replayed: {"tests/unit/a/x_test.cc": "std::mt19937_64 random(7);\n"},
    rules.every_test_file_is_in_a_target: {"tests/unit/a/x_test.cc": "", "tests/unit/a/CMakeLists.txt": "y_test.cc"},
    rules.sanitizers_leave_out_programs_that_exist: {
        "tests/unit/a/CMakeLists.txt": "rekindle_test(a_test SOURCES a.cc)"
    },
    rules.a_class_is_defined_in_one_file: {
        "a/shell/x.cc": "void Part::one() {}\n",
        "a/shell/y.cc": "std::vector<int> Part::two(int number) {\n",
    },
    rules.a_type_is_defined_once_a_namespace: {
        "operator/x.h": "namespace rekindle::op {\nenum class Phase : int { one };\n}\n",
        "operator/y.cc": "namespace rekindle {\nnamespace op {\nstruct Phase final {\n  int x;\n};\n}\n}\n",
    },
    rules.declarations_are_used: {
        "operator/x.h": "bool is_idle(int number);\n",
        "operator/x.cc": "bool is_idle(int number) { return number == 0; }\n",
        "tests/unit/x_test.cc": "EXPECT_TRUE(is_idle(0));\n",
    },
    rules.environment_variables_are_documented: {
        "common/contract/environment.h": 'inline constexpr char kRank[] = "REKINDLE_RANK";\n',
        "docs/formats/injection.md": "`REKINDLE_RANKS_PER_POD`, REKINDLE_RANK",
    },
    rules.names_that_users_meet_are_documented: {**MET, "docs/operating/README.md": "`StepAgreed`, `storage`, `jobs`"},
    rules.cited_tests_exist: {
        "tests/unit/a/x_test.cc": "TEST(Requests, AreRefused) {\n}\n// TEST(Requests, AreTaken)\n",
        "docs/x.md": "Shown: `Requests.AreRefused`, `Requests.AreTaken`.",
    },
    rules.layers_are_folders: {"tests/tidy/layers.txt": LAYERS, "a/pure_part/x.h": ""},
    rules.globs_find_folders: {"tests/CMakeLists.txt": "file(GLOB found unit/*/CMakeLists.txt sim/CMakeLists.txt)"},
    rules.the_version_has_one_home: {
        "CMakeLists.txt": "project(rekindle VERSION 1.2.3 LANGUAGES C)",
        "a/shell/x.cc": 'const char* version = "1.2.3";',
    },
    rules.comment_lines_are_narrow: {"a/shell/x.h": "int x;\n  // " + "word " * 20},
    rules.code_lines_are_narrow: {"a/shell/x.cc": 'call("' + "x" * 120 + '");\n'},
    rules.ruff_knows_every_program: {"a/run": "#!/usr/bin/env python3\n", "ruff.toml": 'extend-include = ["b/run"]'},
    rules.documents_have_one_title: {"docs/x.md": "# One\n# Two\n"},
    rules.chart_carries_the_crds_as_they_are: {"crds/x.yaml": "a", "helm/rekindle/files/crds/x.yaml": "b"},
    rules.mutations_stand_in_the_tree: {"tests/mutate/sum.toml": judge_test.LIST},
    rules.no_unfinished_words: {"a/shell/x.cc": "// TO" + "DO"},
}

# A tree that a rule must accept, though something in it looks like a fault, and what shows that.
WIDE = "x" * 130
GOOD = {
    "edges_that_an_include_or_a_link_uses": (
        rules.permitted_edges_are_used,
        {
            "tests/tidy/layers.txt": "a/core pure:\na/part pure: a/core\na/shell io: a/part\n",
            "a/part/x.h": '#include "a/core/y.h"\n',
            "a/part/CMakeLists.txt": "add_library(part SHARED x.cc)",
            "a/shell/CMakeLists.txt": "rekindle_program(shell SOURCES main.cc LINKS part)",
        },
    ),
    "a_class_in_one_file_beside_its_namesakes": (
        rules.a_class_is_defined_in_one_file,
        {
            "a/x.cc": "Outer::Part::Part(int number) : number_(number) {}\nOuter::Part::~Part() {}\n",
            "a/y.cc": "bool Other::Part::one() {\n  return Outer::Part::two();\n}\n",
            "b/x.cc": "void Outer::Part::one() {}\n",
        },
    ),
    "random_numbers_from_a_seed_that_is_told": (
        rules.random_tests_can_be_replayed,
        {"tests/unit/a/x_test.cc": '#include "tests/support/random_seed.h"\nstd::mt19937 random(seed);\n'},
    ),
    "a_program_that_sleeps": (
        rules.tests_wait_for_conditions,
        {"tests/e2e/x.py": 'run(["sleep", "600"])  # not time.sleep(1)\n'},
    ),
    "types_of_one_name_in_two_programs": (
        rules.a_type_is_defined_once_a_namespace,
        {
            "operator/x.h": "namespace rekindle::op {\nstruct Phase {\n  enum class Kind { one };\n};\n}\n",
            "worker-sidecar/x.h": "namespace rekindle::sidecar {\nstruct Phase {};\nclass Kind;\n}\n",
            "worker-sidecar/x.cc": "namespace rekindle::sidecar {\nnamespace {\nstruct Phase {};\n}\n}\n",
        },
    ),
    "a_function_that_is_there_for_tests": (
        rules.declarations_are_used,
        {
            "operator/x.h": "// For tests: what waits.\nint waiting_bytes();\n",
            "operator/x.cc": "int waiting_bytes() { return 0; }\n",
        },
    ),
    "names_that_users_meet_on_their_pages": (rules.names_that_users_meet_are_documented, MET),
    "tests_and_scenarios_that_are_cited": (
        rules.cited_tests_exist,
        {
            "tests/unit/a/x_test.cc": "TEST_F(Requests, P1_AreRefused) {\n}\n",
            "tests/scenario/a/one-dies.txt": "",
            "tests/scenario/b/scenarios/two-die.txt": "",
            "docs/x.md": "`Requests.P1_AreRefused`, `Requests.P1_*`, `Requests.*`, scenarios `one-dies` (a) and\n`two-die`",
        },
    ),
    "a_version_in_its_chart": (
        rules.the_version_has_one_home,
        {
            "CMakeLists.txt": "project(x VERSION 1.2.3)",
            "helm/rekindle/Chart.yaml": "version: 1.2.3\nappVersion: 1.2.3\n",
        },
    ),
    "a_long_raw_string": (rules.code_lines_are_narrow, {"a/x.cc": f'f(R"({{"a": "\n{WIDE}\n)");\n'}),
    "a_table_that_is_not_formatted": (
        rules.code_lines_are_narrow,
        {"a/x.cc": f"// clang-format off\n{WIDE}\n// clang-format on\nint x;\n"},
    ),
}
# The same, where it is a fault nevertheless.
NO_EXCUSE = {
    "a_label_without_a_page": (
        rules.names_that_users_meet_are_documented,
        {**MET, "docs/formats/injection.md": "`rekindle.dev/pathology`, `keep`"},
    ),
    "names_that_have_moved": (rules.names_that_users_meet_are_documented, {**MET, "operator/io/metrics.cc": ""}),
    "a_beginning_of_no_test": (
        rules.cited_tests_exist,
        {"tests/unit/a/x_test.cc": "TEST(Requests, P1_AreRefused) {\n", "docs/x.md": "`Requests.P2_*`"},
    ),
    "a_scenario_that_is_not_there": (
        rules.cited_tests_exist,
        {"tests/scenario/a/one-dies.txt": "", "docs/x.md": "scenarios `one-dies`,\n`two-die`"},
    ),
    "a_chart_of_another_version": (
        rules.the_version_has_one_home,
        {
            "CMakeLists.txt": "project(x VERSION 1.2.3)",
            "helm/rekindle/Chart.yaml": "version: 1.2.4\nappVersion: 1.2.3\n",
        },
    ),
    "a_seed_of_its_own": (
        rules.random_tests_can_be_replayed,
        {"tests/unit/a/x_test.cc": '#include "tests/support/random_seed.h"\nPrng random(std::random_device{}());\n'},
    ),
    "a_pause_by_another_name": (rules.tests_wait_for_conditions, {"tests/e2e/x.py": "import time as t\nt.sleep(1)\n"}),
    "a_pause_by_its_own_name": (rules.tests_wait_for_conditions, {"tests/e2e/x.py": "from time import sleep as nap\n"}),
    "a_pause_among_other_names": (
        rules.tests_wait_for_conditions,
        {"tests/e2e/x.py": "from time import (\n    monotonic,\n    sleep,\n)\n"},
    ),
    "a_pause_of_whole_seconds": (rules.banned_calls_are_absent, {"a/shell/x.cc": "  ::sleep" + "(1);\n"}),
    "a_pause_by_a_clock": (rules.banned_calls_are_absent, {"a/shell/x.cc": "clock_nanosleep" + "(a, b, c, d);\n"}),
    "a_test_file_in_a_comment": (
        rules.every_test_file_is_in_a_target,
        {
            "tests/unit/a/x_test.cc": "",
            "tests/unit/a/CMakeLists.txt": "rekindle_test(a SOURCES y_test.cc)  # x_test.cc",
        },
    ),
    "a_test_file_named_like_the_end_of_another": (
        rules.every_test_file_is_in_a_target,
        {"tests/unit/a/x_test.cc": "", "tests/unit/a/CMakeLists.txt": "rekindle_test(a SOURCES ax_test.cc)"},
    ),
    "after_the_table": (
        rules.code_lines_are_narrow,
        {"a/x.cc": f"// clang-format off\n{WIDE}\n// clang-format on\n{WIDE}\n"},
    ),
    "after_the_raw_string": (rules.code_lines_are_narrow, {"a/x.cc": f'f(R"(\n)");\n{WIDE}\n'}),
    "a_raw_string_in_a_comment": (rules.code_lines_are_narrow, {"a/x.cc": f'// as in R"(\n{WIDE}\n'}),
}


def outcomes():
    results = []
    for name, check in rules.ALL.items():
        faults = [] if check in BAD and check(BAD[check]) else ["accepts a tree that breaks it"]
        results.append((f"rule-can-fail-{name}", faults))
    results += [(f"accepts-{name.replace('_', '-')}", check(files)) for name, (check, files) in GOOD.items()]
    results += [
        (f"refuses-{name.replace('_', '-')}", [] if check(files) else ["accepts a tree that breaks it"])
        for name, (check, files) in NO_EXCUSE.items()
    ]
    return results
