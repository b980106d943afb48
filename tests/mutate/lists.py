"""The lists of mutations, tests/mutate/*.toml: what they say, and whether it still fits the tree."""

import dataclasses
import fnmatch
import pathlib
import re
import tomllib

import testprograms

FIELDS = {"name", "file", "before", "after", "noticed_by"}
COMMAND = "command: "


@dataclasses.dataclass(frozen=True)
class GoogleTests:
    """Tests of one program below build/dev/test-programs."""

    stage: str
    program: str
    filter: str

    def __str__(self):
        return f"{self.stage}/{self.program}:{self.filter}"


@dataclasses.dataclass(frozen=True)
class Command:
    """A self-test in Python, run in the root of the tree; it fails by its exit code."""

    words: tuple

    def __str__(self):
        return COMMAND + " ".join(self.words)


@dataclasses.dataclass(frozen=True)
class Mutation:
    name: str
    file: str
    before: str
    after: str
    noticed_by: tuple

    def apply(self, text):
        """The changed text, or None where `before` does not stand exactly once."""
        return text.replace(self.before, self.after) if text.count(self.before) == 1 else None


class Unreadable(Exception):
    """A list that does not say what a list has to say; the sentence names it."""


def is_list(path):
    return re.fullmatch(r"tests/mutate/[^/]+\.toml", path) is not None


def test_of(line):
    """What an entry of noticed_by names."""
    if line.startswith(COMMAND):
        words = tuple(line[len(COMMAND) :].split())
        if len(words) >= 2 and words[0] == "python3":
            return Command(words)
    elif match := re.fullmatch(r"(\w+)/([\w-]+):(\S+)", line):
        return GoogleTests(*match.groups())
    raise Unreadable(f"'{line}' is neither STAGE/PROGRAM:FILTER nor '{COMMAND}python3 FILE'")


def read_list(path, text):
    """Its mutations, in order."""
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise Unreadable(f"{path}: {error}") from error
    if set(content) != {"mutation"}:
        raise Unreadable(f"{path} has to consist of [[mutation]]")
    mutations = []
    for entry in content["mutation"]:
        name = entry.get("name", "a mutation")
        if set(entry) != FIELDS:
            raise Unreadable(f"{path}: {name} needs exactly {', '.join(sorted(FIELDS))}")
        if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name):
            raise Unreadable(f"{path}: '{name}' has to be small letters and numbers with hyphens between")
        try:
            tests = tuple(test_of(line) for line in entry["noticed_by"])
        except Unreadable as error:
            raise Unreadable(f"{path}: {name}: {error}") from error
        if not tests or entry["before"] == entry["after"] or not entry["before"]:
            raise Unreadable(f"{path}: {name} needs a change and a test that notices it")
        mutations.append(Mutation(name, entry["file"], entry["before"], entry["after"], tests))
    return mutations


def read_lists(folder: pathlib.Path):
    """Every mutation of the tree in `folder`."""
    paths = sorted((folder / "tests" / "mutate").glob("*.toml"))
    return [mutation for path in paths for mutation in read_list(path.relative_to(folder).as_posix(), path.read_text())]


def _program_sources(files, tests):
    """The sources of the named test program, or None where its stage has none of that name."""
    for program in testprograms.find(files):
        if (program.stage, program.name) == (tests.stage, tests.program):
            return [files.get(source, "") for source in program.sources]
    return None


def _names_of_tests(sources):
    """What GoogleTest calls them; of a test with parameters the part before its parameter, with a slash behind."""
    names = []
    for text in sources:
        names += [f"{suite}.{test}" for suite, test in re.findall(r"\bTEST(?:_F)?\(\s*(\w+)\s*,\s*(\w+)\s*\)", text)]
        prefixes = re.findall(r"\bINSTANTIATE_TEST_SUITE_P\(\s*(\w+)\s*,\s*(\w+)", text)
        for suite, test in re.findall(r"\bTEST_P\(\s*(\w+)\s*,\s*(\w+)\s*\)", text):
            names += [f"{prefix}/{suite}.{test}/" for prefix, of in prefixes if of == suite]
    return names


def _finds(pattern, name):
    if not name.endswith("/"):
        return fnmatch.fnmatchcase(name, pattern)
    return fnmatch.fnmatchcase(name + "0", pattern) or fnmatch.fnmatchcase(name, pattern.rpartition("/")[0] + "/")


def _misfit_of_tests(files, tests):
    if isinstance(tests, Command):
        return None if tests.words[1] in files else f"there is no file {tests.words[1]}"
    sources = _program_sources(files, tests)
    if sources is None:
        return f"there is no test program {tests.program} in the stage {tests.stage}"
    names = _names_of_tests(sources)
    for pattern in tests.filter.partition("-")[0].split(":"):
        if not any(_finds(pattern, name) for name in names):
            return f"{tests.program} has no test {pattern}"
    return None


def misfits(files):
    """What in the lists no longer fits the tree {path: text}: whoever moves a line moves its mutation."""
    faults = []
    mutations = []
    for path, text in files.items():
        if is_list(path):
            try:
                mutations += [(path, mutation) for mutation in read_list(path, text)]
            except Unreadable as error:
                faults.append(str(error))
    names = [mutation.name for _, mutation in mutations]
    for path, mutation in mutations:
        place = f"{path}: {mutation.name}"
        if names.count(mutation.name) > 1:
            faults.append(f"{place} has a name that another one has too")
        if mutation.file not in files:
            faults.append(f"{place}: there is no file {mutation.file}")
        elif mutation.apply(files[mutation.file]) is None:
            times = files[mutation.file].count(mutation.before)
            faults.append(f"{place}: `before` stands {times} times in {mutation.file}, it has to stand once")
        faults += [f"{place}: {why}" for tests in mutation.noticed_by if (why := _misfit_of_tests(files, tests))]
    return faults
