"""One noun a file: what a class does is told in one .cc file."""

import collections
import re

# `Type Outer::Name::function(` at the beginning of a line, with the class's names in group 1.
DEFINITION = re.compile(
    r"^(?!\s|//|#|return\b|using\b)(?:[^\n;={}\"]*?[\s*&])?((?:\w+::)*[A-Z]\w*)::(?:~?\w+|operator[^\s(]+)\(", re.M
)


def files_of_classes(files):
    """{`folder Class`: paths of the .cc files that define its member functions}."""
    found = collections.defaultdict(set)
    for path, text in files.items():
        if path.endswith(".cc"):
            for match in DEFINITION.finditer(text):
                found[f"{path.rpartition('/')[0]} {match[1]}"].add(path)
    return found


def a_class_is_defined_in_one_file(files):
    return [
        f"{name} is defined in {', '.join(sorted(paths))}: one class, one file; split the class by noun"
        for name, paths in sorted(files_of_classes(files).items())
        if len(paths) > 1
    ]


LONG_LINES_MIN = 600


def long_files(files):
    """Sentences about files that are worth a look: length is no fault, two nouns are."""
    return [
        f"{path} has {text.count(chr(10))} lines: are there two nouns in it?"
        for path, text in sorted(files.items())
        if path.endswith((".h", ".cc", ".c", ".py")) and text.count("\n") > LONG_LINES_MIN
    ]
