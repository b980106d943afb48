"""What a stage does to the cluster, with programs that take notes in place of the cluster and of ./dev install."""

import contextlib
import os
import pathlib
import tempfile
import unittest.mock

import installation
from kubernetes import Failed

# Up when there is a file `up`, with the chart when there is a file `chart`.
CLUSTER = """#!/bin/sh
cd "$(dirname "$0")" || exit 9
case "$1 $2" in
  "status ") test -e up ;;
  "helm status") test -e chart ;;
  *) echo "$1 ${2-}" >> notes ;;
esac
"""
INSTALL = '#!/bin/sh\ncd "$(dirname "$0")/.."\necho "install $*" >> notes\n'


def notes_of(files=(), install=INSTALL, environment=None, context=None):
    """What was done to a cluster with these files around a stage that writes `stage`."""
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        (root / "deploy").mkdir()
        for path, text in ((root / "cluster", CLUSTER), (root / "deploy" / "install", install)):
            path.write_text(text)
            path.chmod(0o755)
        for name in files:
            (root / name).touch()
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("REKINDLE_")}
        with (
            unittest.mock.patch.object(installation, "ROOT", root),
            unittest.mock.patch.object(installation, "EMBEDDED", root / "cluster"),
            unittest.mock.patch.dict(os.environ, {**inherited, **(environment or {})}, clear=True),
            contextlib.redirect_stdout(None),
        ):
            try:
                with installation.installed(context, root / "install.log"):
                    with (root / "notes").open("a") as notes:
                        notes.write("stage\n")
            except Failed:
                with (root / "notes").open("a") as notes:
                    notes.write("failed\n")
        return (root / "notes").read_text().split("\n")[:-1]


# name: (what was done, what should be)
STORIES = {
    "a-stage-alone-brings-the-cluster-up-and-down": (notes_of(), ["install ", "stage", "down "]),
    "a-cluster-that-was-up-stays": (notes_of(["up", "chart"]), ["install ", "stage"]),
    "a-chart-that-was-not-there-goes": (
        notes_of(["up"]),
        ["install ", "stage", "helm uninstall", "kubectl delete"],
    ),
    "a-shared-cluster-is-left-as-it-is": (
        notes_of(["up", "chart"], environment={"REKINDLE_INSTALLED": "1"}),
        ["stage"],
    ),
    "a-cluster-that-is-to-be-kept-stays": (notes_of(environment={"REKINDLE_KEEP_CLUSTER": "1"}), ["install ", "stage"]),
    "nothing-stays-of-an-installation-that-failed": (
        notes_of(install=INSTALL + "exit 1\n"),
        ["install ", "down ", "failed"],
    ),
}


def outcomes():
    return [
        (f"installation-{name}", [] if actual == expected else [f"expected {expected!r}, got {actual!r}"])
        for name, (actual, expected) in STORIES.items()
    ]
