"""Rules over the text of the tree. Each takes {path: text} and returns a list of faults, empty when all is well."""

import re

import lists
import sanitized_programs
import testprograms
from class_rules import a_class_is_defined_in_one_file
from document_rules import cited_tests_exist, names_that_users_meet_are_documented
from home_rules import (
    a_type_is_defined_once_a_namespace,
    declarations_are_used,
    environment_variables_are_documented,
    globs_find_folders,
    layers_are_folders,
    the_version_has_one_home,
)
from line_rules import code_lines_are_narrow, comment_lines_are_narrow
from sources import SOURCE, sources


def parse_layers(text):
    """{folder: (kind, allowed folders)} from layers.txt."""
    layers = {}
    for line in text.splitlines():
        if not line or line.startswith("#"):
            continue
        head, _, allowed = line.partition(":")
        folder, kind = head.split()
        layers[folder] = (kind, set(allowed.split()))
    return layers


def folder_of(path, layers):
    """The layer that a file belongs to: the longest one that its path begins with."""
    candidates = [folder for folder in layers if path.startswith(folder + "/")]
    return max(candidates, key=len) if candidates else None


def production(files):
    return {path: text for path, text in files.items() if path.endswith(SOURCE) and not path.startswith("tests/")}


def layer_table_is_complete_and_pure(files):
    layers = parse_layers(files["tests/tidy/layers.txt"])
    faults = []
    for folder, (kind, allowed) in layers.items():
        for other in allowed:
            if other not in layers:
                faults.append(f"layers.txt: {folder} may reach {other}, which has no line")
            elif kind == "pure" and layers[other][0] != "pure":
                faults.append(f"layers.txt: {folder} is pure and may not reach {other}")
    for path in production(files):
        if folder_of(path, layers) is None:
            faults.append(f"{path}: its folder has no line in layers.txt")
    return faults


def includes_follow_the_layers(files):
    layers = parse_layers(files["tests/tidy/layers.txt"])
    return [
        f"{path} includes {included}: {folder} may not reach {target}"
        for path, included, folder, target in included_layers(files, layers)
        if target not in layers[folder][1]
    ]


def included_layers(files, layers):
    """(path, what it includes, its folder, the folder of what it includes) where they differ."""
    for path, text in production(files).items():
        folder = folder_of(path, layers)
        for included in re.findall(r'^\s*#\s*include\s+"([^"]+)"', text, re.M):
            target = folder_of(included, layers)
            if folder is not None and target is not None and target != folder:
                yield path, included, folder, target


def linked_layers(files, layers):
    """(path, target, what it links, folder of the target, folder of what it links) where they differ."""
    owner = {}
    calls = []
    for path, text in files.items():
        if not path.endswith("CMakeLists.txt"):
            continue
        folder = folder_of(path, layers)
        text = re.sub(r"#.*", "", text)
        for match in re.finditer(r"rekindle_(?:library|program)\(\s*(\S+)([^)]*)\)", text):
            links = re.search(r"\bLINKS\b(.*)", match[2], re.S)
            calls.append((path, folder, match[1], links[1].split() if links else []))
            owner[match[1]] = folder
        for match in re.finditer(r"add_library\(\s*(\S+)", text):
            owner[match[1]] = folder
        for match in re.finditer(r"target_link_libraries\(\s*(\S+)([^)]*)\)", text):
            calls.append(
                (
                    path,
                    folder,
                    match[1],
                    [word for word in match[2].split() if word not in ("PUBLIC", "PRIVATE", "INTERFACE")],
                )
            )
    for path, folder, target, links in calls:
        for link in links:
            other = owner.get(link)
            if folder and other and other != folder:
                yield path, target, link, folder, other


def links_follow_the_layers(files):
    layers = parse_layers(files["tests/tidy/layers.txt"])
    return [
        f"{path}: {target} links {link}: {folder} may not reach {other}"
        for path, target, link, folder, other in linked_layers(files, layers)
        if other not in layers[folder][1]
    ]


def permitted_edges_are_used(files):
    layers = parse_layers(files["tests/tidy/layers.txt"])
    used = {(folder, other) for *_, folder, other in included_layers(files, layers)}
    used |= {(folder, other) for *_, folder, other in linked_layers(files, layers)}
    return [
        f"layers.txt: {folder} may reach {other}, and neither includes nor links it: take it out"
        for folder, (_, allowed) in layers.items()
        for other in sorted(allowed)
        if (folder, other) not in used
    ]


# What a pure folder must not name, with what to do instead.
IMPURE = {
    r"#\s*include\s*<(thread|mutex|condition_variable|fstream|filesystem|iostream|random|ctime|unistd\.h|fcntl\.h|poll\.h|pthread\.h|time\.h|sys/[^>]+|netinet/[^>]+|arpa/[^>]+|asio[^>]*|httplib\.h|openssl/[^>]+|spdlog/[^>]+)>": "IO, threads and randomness belong to an io folder; take the value as an argument",
    r"\b(?:system_clock|steady_clock|high_resolution_clock|random_device)\b": "take an Instant or a seed as an argument",
    r"\b(?:getenv|time\s*\(\s*(?:NULL|nullptr|0)\s*\)|clock_gettime|gettimeofday|rand)\s*\(": "take the value as an argument",
}
# The mailbox is how threads hand over; it holds no thread itself.
IMPURE_ALLOWED = {"common/base/mailbox.h"}


def pure_folders_have_no_io(files):
    layers = parse_layers(files["tests/tidy/layers.txt"])
    faults = []
    for path, text in production(files).items():
        folder = folder_of(path, layers)
        if folder is None or layers[folder][0] != "pure" or path in IMPURE_ALLOWED:
            continue
        for pattern, instead in IMPURE.items():
            match = re.search(pattern, re.sub(r"//.*", "", text))
            if match:
                faults.append(f"{path} has '{match[0].strip()}': {instead}")
    return faults


BANNED = {
    r"\bsleep_for\b|\bsleep_until\b|\b(?:u|nano|clock_nano)?sleep\s*\(": "wait for the condition (poll, futex, condition variable)",
    r"\bstd::rand\b|\bsrand\s*\(": "use a seeded generator that is passed in",
    r"\bstrcpy\s*\(|\bsprintf\s*\(|\bgets\s*\(": "use std::string or snprintf",
    r"\busing namespace std;": "name what is used",
}


# Short pauses between looks at something outside that announces nothing (another process's memory, a socket that is not
# there yet); each is bounded by a time limit of its own.
PAUSES_ALLOWED = {
    "tests/support/test_process.h",
    "tests/support/test_rank.c",
    "tests/unit/worker-sidecar/sidecar/death_watch_test.cc",
    "worker-sidecar/hook/hook_call.cc",
    "worker-sidecar/sidecar/death_watch.cc",
}


def banned_calls_are_absent(files):
    faults = []
    for path, text in files.items():
        if not path.endswith(SOURCE) or path in PAUSES_ALLOWED:
            continue
        code = re.sub(r"//.*", "", text)
        for pattern, instead in BANNED.items():
            match = re.search(pattern, code)
            if match:
                faults.append(f"{path} has '{match[0]}': {instead}")
    return faults


# Folders whose code is handed what strangers wrote: objects of the cluster, reviews, reports.
READS_OUTSIDE = ("operator/admission/", "operator/io/", "operator/kube/", "operator/model/", "common/net/")


def outside_input_is_not_asserted(files):
    faults = []
    for path, text in production(files).items():
        if not path.startswith(READS_OUTSIDE):
            continue
        lines = text.splitlines()
        for number, line in enumerate(lines):
            if re.match(r"[^/\"]*\bRK_ASSERT\(", line) and "// own bug: " not in lines[max(number - 1, 0)]:
                faults.append(
                    f"{path}:{number + 1} asserts where input comes from outside: return an error, "
                    "or say on the line above who else has checked it (// own bug: ...)"
                )
    return faults


# Where Python pauses: the helper that all wait with, and two of the embedded cluster, which stands by itself.
PYTHON_PAUSES_ALLOWED = {"tests/support/polling.py", "tests/cluster/process.py", "tests/cluster/nodeinit.py"}
# By whatever name its module goes, or the function itself.
PYTHON_PAUSE = re.compile(r"\.sleep\b|\bsleep\s*\(|\bfrom (?:time|asyncio) import (?:\([^)]*|.*)\bsleep\b")


def tests_wait_for_conditions(files):
    """Python by its name or its first line: the programs have no ending."""
    return [
        f"{path} has '{match[0]}': wait for the condition with poll() of tests/support/polling.py"
        for path, text in files.items()
        if path.startswith("tests/")
        and (path.endswith(".py") or text.startswith("#!/usr/bin/env python3"))
        and path not in PYTHON_PAUSES_ALLOWED
        and not path.startswith("tests/tidy/")
        and (match := PYTHON_PAUSE.search(re.sub(r"#.*", "", text)))
    ]


RANDOM_ENGINE = re.compile(r"\b(?:mt19937(?:_64)?|minstd_rand0?|default_random_engine)\b")
# Seeds are drawn here, and told: nobody could run a test again that draws its own.
SEEDS_ARE_DRAWN_IN = {"tests/support/random_seed.h", "tests/support/thoroughness.h"}


def random_tests_can_be_replayed(files):
    faults = []
    for path, text in sources(files).items():
        if not path.startswith("tests/") or path in SEEDS_ARE_DRAWN_IN:
            continue
        code = re.sub(r"//.*", "", text)
        if "random_device" in code:
            faults.append(
                f"{path} draws a seed of its own: take it from for_each_seed() of tests/support/random_seed.h"
            )
        elif RANDOM_ENGINE.search(code) and '#include "tests/support/random_seed.h"' not in code:
            faults.append(f"{path} has random numbers and no seed of tests/support/random_seed.h: nobody can replay it")
    return faults


def every_test_file_is_in_a_target(files):
    faults = []
    for path in files:
        if not re.match(r"tests/.*_test\.(cc|c)$", path):
            continue
        folder, _, name = path.rpartition("/")
        words = re.split(r"[\s()]+", testprograms.without_comments(files.get(f"{folder}/CMakeLists.txt", "")))
        if name not in words:
            faults.append(f"{path} is in no target of {folder}/CMakeLists.txt, so it never runs")
    return faults


def sanitizers_leave_out_programs_that_exist(files):
    return [
        f"tests/sanitizers/sanitized_programs.py leaves {name} out of {preset}, and no CMakeLists.txt has such a program: "
        "take the line out"
        for preset, name in sanitized_programs.unknown_exclusions(testprograms.find(files))
    ]


def ruff_knows_every_program(files):
    """ruff finds files by their name; programs without `.py` stand in its list."""
    return [
        f"ruff.toml does not name {path}, which is Python"
        for path, text in files.items()
        if re.match(r"#!.*\bpython3?$", text.partition("\n")[0])
        and not path.endswith(".py")
        and f'"{path}"' not in files.get("ruff.toml", "")
    ]


def documents_have_one_title(files):
    faults = []
    for path, text in files.items():
        if path.endswith(".md"):
            titles = [line for line in re.sub(r"```.*?```", "", text, flags=re.S).splitlines() if line.startswith("# ")]
            if len(titles) != 1:
                faults.append(f"{path} has {len(titles)} titles; a document has one")
    return faults


def no_unfinished_words(files):
    pattern = re.compile(r"\b(TODO|FIXME|XXX|not implemented)\b")
    return [
        f"{path} says '{match[0]}'"
        for path, text in files.items()
        if not path.startswith(("tests/tidy/", "CONTRIBUTING")) and (match := pattern.search(text))
    ]


def chart_carries_the_crds_as_they_are(files):
    faults = []
    for path, text in files.items():
        if path.startswith("crds/") and path.count("/") == 1 and path.endswith(".yaml"):
            if files.get(f"helm/rekindle/files/{path}") != text:
                faults.append(f"helm/rekindle/files/{path} differs from {path}; copy it")
    return faults


def mutations_stand_in_the_tree(files):
    return lists.misfits(files)


ALL = {
    check.__name__.replace("_", "-"): check
    for check in (
        layer_table_is_complete_and_pure,
        includes_follow_the_layers,
        links_follow_the_layers,
        permitted_edges_are_used,
        pure_folders_have_no_io,
        banned_calls_are_absent,
        outside_input_is_not_asserted,
        tests_wait_for_conditions,
        random_tests_can_be_replayed,
        every_test_file_is_in_a_target,
        sanitizers_leave_out_programs_that_exist,
        a_class_is_defined_in_one_file,
        a_type_is_defined_once_a_namespace,
        declarations_are_used,
        environment_variables_are_documented,
        names_that_users_meet_are_documented,
        cited_tests_exist,
        layers_are_folders,
        globs_find_folders,
        the_version_has_one_home,
        comment_lines_are_narrow,
        code_lines_are_narrow,
        ruff_knows_every_program,
        documents_have_one_title,
        no_unfinished_words,
        chart_carries_the_crds_as_they_are,
        mutations_stand_in_the_tree,
    )
}
