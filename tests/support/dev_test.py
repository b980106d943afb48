"""What ./dev build asks of cmake and ninja."""

import os
import pathlib
import shutil
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
NOTE = '#!/bin/sh\necho "${0##*/} $*" >> "$NOTES"\n'


def asked(*words):
    """What `./dev build WORDS` runs in a tree where nothing is configured."""
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        shutil.copy(ROOT / "dev", root)
        for path in (root / "tests" / "support" / "setup", root / "bin" / "cmake", root / "bin" / "ninja"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(NOTE)
            path.chmod(0o755)
        environment = {**os.environ, "PATH": f"{root}/bin:{os.environ['PATH']}", "NOTES": str(root / "notes")}
        subprocess.run([root / "dev", "build", *words], check=True, env=environment, stdin=subprocess.DEVNULL)
        return (root / "notes").read_text().splitlines()[1:]


# name: (words, preset, what ninja gets)
EXAMPLES = {
    "everything": ((), "dev", "-C build/dev"),
    "a-target": (("part_test",), "dev", "-C build/dev part_test"),
    "what-ships": (("--preset", "release"), "release", "-C build/release shipped"),
    "a-preset-before-a-target": (("--preset", "release", "rekindle"), "release", "-C build/release rekindle"),
    "a-preset-behind-a-target": (("rekindle", "--preset", "release"), "release", "-C build/release rekindle"),
    "a-preset-between": (("-j1", "--preset", "asan", "part_test"), "asan", "-C build/asan -j1 part_test"),
}


def outcomes():
    results = []
    for name, (words, preset, ninja) in EXAMPLES.items():
        expected, actual = [f"cmake --preset {preset}", f"ninja {ninja}"], asked(*words)
        faults = [] if actual == expected else [f"expected {expected!r}, got {actual!r}"]
        results.append((f"dev-build-{name}", faults))
    return results
