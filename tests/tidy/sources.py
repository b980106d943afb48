"""What C and C++ files look like to the rules."""

import re

SOURCE = (".h", ".cc", ".c")
# A comment or a literal, whichever comes first: what stands inside one is no start of another.
TOKEN = re.compile(
    r"//[^\n]*|/\*.*?\*/"
    r'|(?P<raw>R"(?P<end>[^()\\\s]{0,16})\(.*?\)(?P=end)")'
    r'|"(?:\\.|[^"\\\n])*"'
    r"|'(?:\\.|[^'\\\n])*'",
    re.S,
)


def sources(files):
    return {path: text for path, text in files.items() if path.endswith(SOURCE)}


def lines_of_raw_strings(text):
    """Numbers, from 1, of the lines on which a raw string literal stands."""
    numbers = set()
    for match in TOKEN.finditer(text):
        if match["raw"]:
            first = text.count("\n", 0, match.start()) + 1
            numbers.update(range(first, first + match[0].count("\n") + 1))
    return numbers
