"""One home for each fact: types, declarations, folders and the version."""

import collections
import re

from sources import SOURCE, TOKEN

PRODUCTION = ("common/", "operator/", "worker-sidecar/")


def production(files):
    return {path: text for path, text in files.items() if path.endswith(SOURCE) and path.startswith(PRODUCTION)}


def without_literals(text):
    """The code, with comments and string literals blanked: lines stay where they are."""
    return TOKEN.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)


# What opens a block that has a name, or any other brace.
BLOCK = re.compile(
    r"\bnamespace(?P<space>(?:\s+[\w:]+)?)\s*\{"
    r"|\b(?:enum\s+(?:class\s+|struct\s+)?|struct\s+|class\s+|union\s+)(?:\[\[[^\]]*\]\]\s*)?(?P<type>\w+)"
    r"(?:\s+final)?\s*(?::(?!:)[^;{()]*)?\{"
    r"|(?P<open>\{)|(?P<close>\})"
)


def types_of(text):
    """(full name, line) of each type that a header defines outside of functions and other types."""
    found = []
    blocks = []
    code = without_literals(text)
    for match in BLOCK.finditer(code):
        if match["close"]:
            if blocks:
                blocks.pop()
        elif match["space"] is not None:
            blocks.append(match["space"].strip() or "(unnamed)")
        elif match["type"] is not None:
            if all(block is not None for block in blocks):
                found.append(("::".join([*blocks, match["type"]]), code.count("\n", 0, match.start()) + 1))
            blocks.append(None)
        else:
            blocks.append(None)
    return found


def a_type_is_defined_once_a_namespace(files):
    """The linker takes one of two types of a name without a word."""
    places = collections.defaultdict(list)
    for path, text in sorted(production(files).items()):
        for name, line in types_of(text):
            if "(unnamed)" not in name:
                places[name].append(f"{path}:{line}")
    return [
        f"{name} is defined at {' and '.join(where)}: one name, one type; a namespace a program"
        for name, where in sorted(places.items())
        if len(where) > 1
    ]


DECLARED = re.compile(
    r"\b(?P<constant>k[A-Z]\w*)\b(?=[^;()]*=)"
    r"|^(?:inline |constexpr |static |virtual |explicit |\[\[nodiscard\]\] )*[\w:<>,&*\[\] ]*?[\w>&*\]] (?P<function>[a-z]\w+)\(",
    re.M,
)
# The C ABI, which others call; what the standard library or a library calls by its name.
CALLED_BY_OTHERS = re.compile(r"^(rk_\w+|main|to_json|from_json|assertion_failed)$")
# Declared for tests to look inside, and said so at the declaration: `// for tests: why`.
FOR_TESTS = re.compile(r"// [Ff]or tests\b")


def declarations_are_used(files):
    """A function or constant of a header that production names nowhere but where it is declared and defined."""
    code = {path: without_literals(text) for path, text in production(files).items()}
    code |= {
        path: without_literals(text)
        for path, text in files.items()
        if path.startswith("docs/examples/") and path.endswith(SOURCE)
    }
    used = collections.Counter()
    for text in code.values():
        used.update(re.findall(r"\b[A-Za-z_]\w*\b", text))
    defined = collections.Counter()
    for path, text in code.items():
        if path.endswith(".cc"):
            # `Type Class::name(` or `Type name(` at the beginning of a line.
            for match in re.finditer(r"^[^\s#/}{][^;={}]*?(\w+)\(", text, re.M):
                defined[match[1]] += 1
    faults = []
    for path, text in sorted(files.items()):
        if not (path.endswith(".h") and path.startswith(PRODUCTION)):
            continue
        bare = code[path]
        lines = text.splitlines()
        for match in DECLARED.finditer(bare):
            name = match["constant"] or match["function"]
            number = bare.count("\n", 0, match.start(match.lastgroup))
            if CALLED_BY_OTHERS.match(name) or any(
                FOR_TESTS.search(line) for line in lines[max(0, number - 3) : number + 1]
            ):
                continue
            if used[name] - min(defined[name], 1) <= 1:
                faults.append(
                    f"{path}:{number + 1}: nothing that ships uses {name}: remove it, or say `// for tests: why` above it"
                )
    return faults


def layers_are_folders(files):
    folders = {path.rpartition("/")[0] for path in files}
    return [
        f"tests/tidy/layers.txt: {line.split()[0]} is no folder of the tree"
        for line in files["tests/tidy/layers.txt"].splitlines()
        if line
        and not line.startswith("#")
        and not any(one == line.split()[0] or one.startswith(line.split()[0] + "/") for one in folders)
    ]


def globs_find_folders(files):
    """`file(GLOB ... a/CMakeLists.txt)`: a pattern for a folder that is not there finds nothing, without a word."""
    faults = []
    for path, text in files.items():
        if not path.endswith("CMakeLists.txt"):
            continue
        folder = path.rpartition("/")[0]
        for arguments in re.findall(r"file\(GLOB\w*\s([^)]*)\)", re.sub(r"#.*", "", text)):
            for pattern in re.findall(r"(?<![\w$}/.])([\w-]+(?:/[\w*.-]+)+)", arguments):
                shape = re.compile(re.escape(f"{folder}/{pattern}" if folder else pattern).replace(r"\*", ".*") + "$")
                if not any(shape.match(one) for one in files):
                    faults.append(f"{path}: {pattern} finds nothing: take it out")
    return faults


VARIABLES = "common/contract/environment.h"
VARIABLES_PAGE = "docs/formats/injection.md"


def environment_variables_are_documented(files):
    """Every name of environment.h stands in the page that says what it means and who sets it."""
    # One that ends in _ is the beginning of names.
    names = re.findall(r'\[\] = "(\w*[A-Z0-9])"', files.get(VARIABLES, ""))
    page = files.get(VARIABLES_PAGE, "")
    return [
        f"{VARIABLES_PAGE} does not have {name}, which {VARIABLES} names" for name in names if f"`{name}`" not in page
    ]


VERSIONED = ("helm/rekindle/Chart.yaml", "docs/examples/digits/job.yaml", "docs/examples/digits/plain.yaml")
# They tell of versions, of others' or of what a version brought.
TELL_OF_VERSIONS = (
    "CHANGELOG.md",
    "docs/",
    "README.md",
    "tests/cluster/gomod/",
    "tests/fuzz/corpus/",
    "tests/fuzz/make_corpus.cc",
    "tests/unit/",
    "tests/tidy/",
    "tests/mutate/",
)


def the_version_has_one_home(files):
    version = re.search(r"^project\(\w+ VERSION ([0-9.]+)", files["CMakeLists.txt"], re.M)[1]
    faults = []
    for path in VERSIONED:
        written = re.findall(r"^(?:version|appVersion): (\S+)|image: \S+:(\d\S*)", files.get(path, ""), re.M)
        faults += [
            f"{path} says {''.join(one)}; CMakeLists.txt says {version}" for one in written if "".join(one) != version
        ]
    for path, text in files.items():
        if path == "CMakeLists.txt" or path in VERSIONED or path.startswith(TELL_OF_VERSIONS):
            continue
        for number, line in enumerate(text.splitlines(), 1):
            if re.search(rf"(?<![\d.]){re.escape(version)}(?![\d.])", line):
                faults.append(
                    f"{path}:{number} spells the version: it comes from CMakeLists.txt (PROJECT_VERSION, shipped.VERSION)"
                )
    return faults
