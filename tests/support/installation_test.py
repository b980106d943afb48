"""What a stage does to the cluster, with programs that take notes in place of the cluster and of ./dev install."""

import contextlib
import os
import pathlib
import subprocess
import sys
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


def prepare(root, install):
    (root / "deploy").mkdir()
    for path, text in ((root / "cluster", CLUSTER), (root / "deploy" / "install", install)):
        path.write_text(text)
        path.chmod(0o755)


def notes_of(files=(), install=INSTALL, environment=None):
    """What was done to a cluster with these files around a stage that writes `stage`."""
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        prepare(root, install)
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
                with installation.installed(None, root / "install.log"):
                    with (root / "notes").open("a") as notes:
                        notes.write("stage\n")
            except Failed:
                with (root / "notes").open("a") as notes:
                    notes.write("failed\n")
        return (root / "notes").read_text().split("\n")[:-1]


# What tests/run does when it is ended while the cluster comes up.
UNTIL_SIGNALLED = """
import pathlib, signal, sys
sys.path.insert(0, {support!r})
import installation
root = pathlib.Path({root!r})
installation.ROOT, installation.EMBEDDED = root, root / "cluster"
signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
with installation.installed(None, root / "install.log"):
    pass
"""
WAITING_INSTALL = """#!/bin/sh
cd "$(dirname "$0")/.."
trap 'echo "install ended" >> notes; exit 1' TERM
echo begun > begun
sleep 600 & wait
"""


def notes_when_ended_while_it_installs():
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        prepare(root, WAITING_INSTALL)
        os.mkfifo(root / "begun")
        program = UNTIL_SIGNALLED.format(support=str(pathlib.Path(__file__).parent), root=folder)
        environment = {name: value for name, value in os.environ.items() if not name.startswith("REKINDLE_")}
        process = subprocess.Popen([sys.executable, "-B", "-c", program], stdout=subprocess.DEVNULL, env=environment)
        (root / "begun").read_text()
        process.terminate()
        return process.wait(), (root / "notes").read_text().split("\n")[:-1]


# name: (what was done, what should be)
STORIES = {
    "a-stage-alone-brings-the-cluster-up-and-down": (notes_of, ["install ", "stage", "down "]),
    "a-cluster-that-was-up-stays": (lambda: notes_of(["up", "chart"]), ["install ", "stage"]),
    "a-chart-that-was-not-there-goes": (
        lambda: notes_of(["up"]),
        ["install ", "stage", "helm uninstall", "kubectl delete"],
    ),
    "a-shared-cluster-is-left-as-it-is": (
        lambda: notes_of(["up", "chart"], environment={"REKINDLE_INSTALLED": "1"}),
        ["stage"],
    ),
    "a-cluster-that-is-to-be-kept-stays": (
        lambda: notes_of(environment={"REKINDLE_KEEP_CLUSTER": "1"}),
        ["install ", "stage"],
    ),
    "nothing-stays-of-an-installation-that-failed": (
        lambda: notes_of(install=INSTALL + "exit 1\n"),
        ["install ", "down ", "failed"],
    ),
    "nothing-comes-up-behind-a-run-that-was-ended": (
        notes_when_ended_while_it_installs,
        (143, ["install ended", "down "]),
    ),
}


def outcomes():
    results = []
    for name, (story, expected) in STORIES.items():
        actual = story()
        faults = [] if actual == expected else [f"expected {expected!r}, got {actual!r}"]
        results.append((f"installation-{name}", faults))
    return results
