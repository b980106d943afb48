"""How wide a line of C or C++ may be. clang-format breaks code; it leaves long literals and all comments as they
are."""

import re

from sources import lines_of_raw_strings, sources

COMMENT_COLUMNS_MAX = 100
CODE_COLUMNS_MAX = 120


def comment_lines_are_narrow(files):
    return [
        f"{path}:{number}: a comment of {len(line)} columns; at most {COMMENT_COLUMNS_MAX}: break it"
        for path, text in sources(files).items()
        for number, line in enumerate(text.split("\n"), 1)
        if len(line) > COMMENT_COLUMNS_MAX and line.lstrip().startswith("//")
    ]


def code_lines_are_narrow(files):
    """But for raw string literals, and for what clang-format is told to leave as it is."""
    faults = []
    for path, text in sources(files).items():
        if max(map(len, text.split("\n"))) <= CODE_COLUMNS_MAX:
            continue
        raw = lines_of_raw_strings(text)
        formatted = True
        for number, line in enumerate(text.split("\n"), 1):
            if switch := re.match(r"\s*// clang-format (on|off)\b", line):
                formatted = switch[1] == "on"
            if formatted and number not in raw and len(line) > CODE_COLUMNS_MAX and not line.lstrip().startswith("//"):
                faults.append(f"{path}:{number}: {len(line)} columns of code; at most {CODE_COLUMNS_MAX}: break it")
    return faults
