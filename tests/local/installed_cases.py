"""The page docs/operating/compiling.md as somebody follows it who has nothing but an installation: its program, compiled by
its commands against a prefix outside of the tree."""

import os
import pathlib
import re
import subprocess
import sys

from building import REPOSITORY
from case import Context, Unmet, expect
from processes import Processes

PAGE = REPOSITORY / "docs" / "operating" / "compiling.md"
PREFIX_OF_THE_PAGE = "/opt/rekindle"
STEPS = 10


def a_program_is_compiled_with_pkg_config(context: Context, processes: Processes, folder: pathlib.Path) -> None:
    prefix = _installed(context, folder)
    (folder / "train.c").write_text(_block("c", "int main("))
    compiling = _block("sh", "gcc").replace(PREFIX_OF_THE_PAGE, str(prefix))
    for compiler in ("gcc -Wall -Werror", "g++ -Wall -Werror"):
        _run(["bash", "-ec", compiling.replace("gcc", compiler)], folder)
        _expect_two_ranks(prefix, folder, folder / "train")


def a_program_is_compiled_with_cmake(context: Context, processes: Processes, folder: pathlib.Path) -> None:
    prefix = _installed(context, folder)
    (folder / "train.c").write_text(_block("c", "int main("))
    (folder / "CMakeLists.txt").write_text(_block("cmake", "find_package(rekindle"))
    _run(["cmake", "-B", "build", "-D", f"CMAKE_PREFIX_PATH={prefix}"], folder)
    _run(["cmake", "--build", "build"], folder)
    _expect_two_ranks(prefix, folder, folder / "build" / "train")


def the_library_is_loaded_by_its_whole_path(context: Context, processes: Processes, folder: pathlib.Path) -> None:
    prefix = _installed(context, folder)
    loading = _block("python", "ctypes.CDLL(").replace(PREFIX_OF_THE_PAGE, str(prefix))
    asking = "library.rk_status_name.restype = ctypes.c_char_p\nprint(library.rk_status_name(0).decode())\n"
    said = _run([sys.executable, "-c", loading + asking], folder)
    expect("RK_OK" in said, f"the library does not answer as it should: {said}")


CASES = [
    a_program_is_compiled_with_pkg_config,
    a_program_is_compiled_with_cmake,
    the_library_is_loaded_by_its_whole_path,
]


def _installed(context: Context, folder: pathlib.Path) -> pathlib.Path:
    """Installed into one prefix and moved to another: no file may name where it was."""
    _run(["cmake", "--install", str(context.build), "--prefix", str(folder / "first")], folder)
    prefix = folder / "moved"
    (folder / "first").rename(prefix)
    named = _run(["grep", "-rlF", str(folder / "first"), str(prefix)], folder, codes=(0, 1))
    expect(not named, f"installed files name the prefix: {named}")
    return prefix


def _expect_two_ranks(prefix: pathlib.Path, folder: pathlib.Path, program: pathlib.Path) -> None:
    command = _block("sh", "rekindle run -n 2").replace(PREFIX_OF_THE_PAGE, str(prefix))
    # Each from the beginning.
    command = command.replace("./train", str(program)).replace("./checkpoints", f"{program}.checkpoints")
    _run(["rm", "-rf", f"{program}.checkpoints"], folder)
    said = _run(["bash", "-ec", command], folder)
    for rank in (0, 1):
        expect(f"rank {rank} of 2 begins behind step 0" in said, f"rank {rank} did not find its place: {said}")
        expect(f"rank {rank} of 2 ends with weights of {STEPS}" in said, f"rank {rank} did not train: {said}")


def _block(language: str, word: str) -> str:
    """The one block of the page in this language that has the word in it."""
    blocks = re.findall(rf"^```{language}\n(.*?)^```$", PAGE.read_text(), re.M | re.S)
    found = [block for block in blocks if word in block]
    expect(len(found) == 1, f"{PAGE} has {len(found)} blocks of {language} with {word!r}")
    return found[0]


def _run(command: list[str], folder: pathlib.Path, codes: tuple[int, ...] = (0,)) -> str:
    """Standard output and error together."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("REKINDLE_")}
    ended = subprocess.run(
        command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    if ended.returncode not in codes:
        raise Unmet(f"`{' '.join(command)}` ended with {ended.returncode}: {ended.stdout[-800:]}")
    return ended.stdout
