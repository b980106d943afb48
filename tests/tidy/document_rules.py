"""What documents say about the code: the tests that they cite are there, and the names that users meet have a page."""

import re

TEST = re.compile(r"^(?:TYPED_)?TEST(?:_F|_P)?\(\s*(\w+)\s*,\s*(\w+)\s*\)", re.M)
CITED_TEST = re.compile(r"`([A-Z]\w+\.(?:[A-Z]\w*\*?|\*))`")
# "scenario `a`", "scenarios `a`, `b` (operator) and `c`"
CITED_SCENARIOS = re.compile(r"\bscenarios?\s+((?:`[a-z0-9-]+`(?:\s+\(\w+\))?(?:,\s+|\s+and\s+)?)+)")


def cited_tests_exist(files):
    """A test, or a beginning of names with * behind it, and a scenario, wherever a document names one."""
    tests = {
        ".".join(match)
        for path, text in files.items()
        if path.startswith("tests/") and path.endswith(".cc")
        for match in TEST.findall(text)
    }
    scenarios = {
        path.rpartition("/")[2].removesuffix(".txt")
        for path in files
        if path.startswith("tests/scenario/") and path.endswith(".txt")
    }
    faults = []
    for path, text in sorted(files.items()):
        if not path.endswith(".md"):
            continue
        for name in CITED_TEST.findall(text):
            found = any(one.startswith(name[:-1]) for one in tests) if name.endswith("*") else name in tests
            if not found:
                faults.append(f"{path} cites the test {name}, which is not there")
        for names in CITED_SCENARIOS.findall(text):
            faults += [
                f"{path} cites the scenario {name}, which is not there"
                for name in re.findall(r"`([a-z0-9-]+)`", names)
                if name not in scenarios
            ]
    return faults


MESSAGES_PAGE = "docs/operating/README.md"
# (what it is, below which folder it stands, its name in the code, the page that says what it means)
MET_BY_USERS = (
    ("reason of a condition or an event", "operator/model/names.h", r'k\w+(?<!Kind) = "([A-Z]\w+)";', MESSAGES_PAGE),
    (
        "code of a sidecar's problem",
        "worker-sidecar/",
        r'(?:\bNoteProblem\{|\bnote_problem\()\s*"(\w+)"',
        MESSAGES_PAGE,
    ),
    ("metric of the operator", "operator/io/", r'\.Name\("(\w+)"\)', MESSAGES_PAGE),
    ("metric of a sidecar", "worker-sidecar/", r'\bgauge\("(\w+)"', MESSAGES_PAGE),
    (
        "label, annotation or gate",
        "operator/model/names.h",
        r'(?:k\w+(?:Annotation|Label|Gate) = |^ +\{)"([\w.-]+(?:/[\w-]+)?)"',
        "docs/formats/injection.md",
    ),
)


def names_that_users_meet_are_documented(files):
    """Whoever meets such a name in an event, a condition, a metric or on an object finds it on the page."""
    faults = []
    for what, place, shape, page in MET_BY_USERS:
        names = {
            name: path
            for path, text in sorted(files.items())
            if path.startswith(place) and path.endswith((".h", ".cc"))
            for name in re.findall(shape, text, re.M)
        }
        if not names:
            faults.append(f"no {what} is found below {place}: has it moved, or is it spelled in another way?")
        text = files.get(page, "")
        for name, path in names.items():
            # `rekindle.dev/a`, `b`: the prefix is written once.
            if f"`{name}`" not in text and f"`{name.removeprefix('rekindle.dev/')}`" not in text:
                # `name: "value"` and `name=value`
                if not re.search(rf"`{re.escape(name)}[:=]", text):
                    faults.append(f"{page} does not have {name}, a {what} of {path}")
    return faults
