"""The kept inputs of each fuzz target: one text file a target, one input a line.

A line is the input with everything but printable ASCII escaped, so that a difference can be read; lines are sorted, and
none comes twice. The empty input is in no file: the fuzzer runs it by itself.
"""

import hashlib
import pathlib
import shutil

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = ROOT / "tests" / "fuzz" / "corpus"
INPUT_BYTES_MAX = 4096


class Stray(Exception):
    """Something among the kept inputs that nobody would run."""


def line_of(content):
    return content.decode("latin-1").encode("unicode_escape").decode("ascii")


def content_of(line):
    return line.encode("ascii").decode("unicode_escape").encode("latin-1")


def _path(target):
    return FOLDER / f"{target}.txt"


def read(target):
    """The kept inputs of a target; Stray where the file is not as write() leaves it."""
    path = _path(target)
    if not path.exists():
        return []
    text = path.read_bytes()
    try:
        contents = [content_of(line) for line in text.decode("ascii").split("\n")[:-1]]
    except UnicodeError as why:
        raise Stray(f"{path.relative_to(ROOT)} has a line that is no escaped input: {why}") from None
    if text != _text(contents):
        raise Stray(
            f"{path.relative_to(ROOT)} is not sorted, has an input twice, or spells one in another way; write it with ./dev fuzz {target} --keep"
        )
    too_long = next((content for content in contents if len(content) > INPUT_BYTES_MAX), None)
    if too_long is not None:
        raise Stray(
            f"{path.relative_to(ROOT)} keeps an input of {len(too_long)} bytes, and {INPUT_BYTES_MAX} are run at most"
        )
    return contents


def _text(contents):
    return "".join(line + "\n" for line in sorted({line_of(content) for content in contents if content})).encode()


def write(target, contents):
    FOLDER.mkdir(parents=True, exist_ok=True)
    _path(target).write_bytes(_text(contents))


def unpack(target, folder):
    """The kept inputs as the files that libFuzzer wants, and nothing else, in `folder`; how many there are."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    contents = read(target)
    for content in contents:
        (folder / hashlib.sha1(content).hexdigest()).write_bytes(content)
    return len(contents)


def find_strays(targets):
    """Names of what lies beside the files of these targets."""
    known = {_path(target).name for target in targets}
    return sorted(path.name for path in FOLDER.iterdir() if path.name not in known)
