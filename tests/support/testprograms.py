"""The GoogleTest programs, as the CMake files name them: rekindle_test(NAME SOURCES a_test.cc LINKS part)."""

import dataclasses
import re


@dataclasses.dataclass(frozen=True)
class TestProgram:
    """`stage`: the folder below tests/ that runs it; `sources`: paths from the root of the tree."""

    stage: str
    name: str
    sources: tuple[str, ...]


def without_comments(text):
    """Of a CMake file."""
    return re.sub(r"#.*", "", text)


def find(files):
    """Sorted by name. `files`: {path: text} with at least the CMakeLists.txt below tests/."""
    found = []
    for path, text in files.items():
        if not re.fullmatch(r"tests/.+/CMakeLists\.txt", path):
            continue
        folder = path.rpartition("/")[0]
        for name, words in re.findall(r"rekindle_test\(\s*(\S+)\s([^)]*)\)", without_comments(text)):
            sources = re.search(r"\bSOURCES\s(.*?)(?:\bLINKS\b|$)", words, re.S)
            named = tuple(f"{folder}/{source}" for source in sources[1].split()) if sources else ()
            found.append(TestProgram(path.split("/")[1], name, named))
    return sorted(found, key=lambda one: one.name)


def in_tree(root):
    return find({str(path.relative_to(root)): path.read_text() for path in root.glob("tests/**/CMakeLists.txt")})
