"""The cluster and the chart for the time of a test stage or of several: what was not there before is not there
afterwards."""

import contextlib
import os
import subprocess

from children import Children
from kubernetes import EMBEDDED, ROOT, Failed

NAMESPACE = "rekindle-system"
RELEASE = "rekindle"


@contextlib.contextmanager
def installed(context, log, take_as_is=False, children=None):
    """Without a context the embedded cluster, which is taken down again when it was not up before;
    REKINDLE_KEEP_CLUSTER=1 keeps it. REKINDLE_INSTALLED=1: whoever started this stage has done so for several, see
    sharedcluster.py. `children`: what installing starts is one of them."""
    if take_as_is or is_shared(context):
        yield
        return
    keep = os.environ.get("REKINDLE_KEEP_CLUSTER") == "1"
    was_up = context is not None or _quiet(EMBEDDED, "status")
    helm = [EMBEDDED, "helm"] if context is None else ["helm", "--kube-context", context]
    was_installed = was_up and _quiet(*helm, "status", RELEASE, "--namespace", NAMESPACE)
    try:
        install(context, log, children=children)
        yield
    finally:
        if not was_up and not keep:
            subprocess.run([EMBEDDED, "down"], stdout=subprocess.DEVNULL)
        elif was_up and not was_installed and not keep:
            _quiet(*helm, "uninstall", RELEASE, "--namespace", NAMESPACE, "--wait")
            kubectl = [EMBEDDED, "kubectl"] if context is None else ["kubectl", "--context", context]
            _quiet(*kubectl, "delete", "namespace", NAMESPACE, "--ignore-not-found", "--timeout=60s")


def is_shared(context):
    return context is None and os.environ.get("REKINDLE_INSTALLED") == "1"


def install(context, log, keep_images=False, children=None):
    """./dev install, with its output in `log`. `keep_images`: those that are on the cluster are the ones to install."""
    children = children or Children()
    command = [ROOT / "deploy" / "install"]
    command += ["--context", context] if context else []
    command += ["--keep-images"] if keep_images else []
    print(f"setting up cluster, images and chart (log {log.relative_to(ROOT)})", flush=True)
    with log.open("wb") as output:
        try:
            process = children.start(
                command, stdout=output, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, cwd=ROOT
            )
            code = process.wait()
        except BaseException:
            # A bash that waits for the cluster to come up would bring it up behind us. It may have been started when a
            # signal came and not be known here yet.
            children.end_all()
            raise
    if code != 0:
        raise Failed("setting up failed: " + "\n".join(log.read_text(errors="replace").splitlines()[-8:]))


def _quiet(*command):
    return (
        subprocess.run(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL
        ).returncode
        == 0
    )
