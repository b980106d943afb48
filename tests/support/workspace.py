"""A namespace with storage for checkpoints, as a team would have it: made, and removed with everything in it."""

import pathlib
import shutil
import subprocess

from kubernetes import EMBEDDED, wait_for

CLAIM = "checkpoints"
_VOLUMES = "api/v1/persistentvolumes"


def make_workspace(kubernetes, namespace, level="restricted"):
    """The namespace, enforcing that Pod Security level, with a bound claim that every pod in it can write."""
    kubernetes.create(
        "api/v1/namespaces",
        "",
        {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": namespace, "labels": {"pod-security.kubernetes.io/enforce": level}},
        },
    )
    make_claim(kubernetes, namespace)


def make_claim(kubernetes, namespace):
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": CLAIM, "namespace": namespace},
        "spec": {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    if kubernetes.embedded:
        folder = _shared_folder(namespace)
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        folder.chmod(0o1777)
        volume = _volume(namespace)
        kubernetes.create(
            _VOLUMES,
            "",
            {
                "apiVersion": "v1",
                "kind": "PersistentVolume",
                "metadata": {"name": volume},
                "spec": {
                    "capacity": {"storage": "1Gi"},
                    "accessModes": ["ReadWriteMany"],
                    "persistentVolumeReclaimPolicy": "Retain",
                    "storageClassName": "",
                    "claimRef": {"namespace": namespace, "name": CLAIM},
                    "hostPath": {"path": str(folder), "type": "Directory"},
                },
            },
        )
        claim["spec"].update({"storageClassName": "", "volumeName": volume})
    else:
        # The default class of a kind cluster is on one node and knows ReadWriteOnce only, which pods of one node may
        # share.
        claim["spec"]["accessModes"] = ["ReadWriteOnce"]
    kubernetes.create("api/v1/namespaces/{namespace}/persistentvolumeclaims", namespace, claim)


def begin_removal(kubernetes, namespace):
    """Asks for the end of everything in the namespace; finish_removal() waits for it."""
    kubernetes.delete("api/v1/namespaces", "", namespace)


def finish_removal(kubernetes, namespace, seconds=180):
    wait_for(
        lambda: kubernetes.get("api/v1/namespaces", "", namespace) is None,
        seconds,
        f"namespace {namespace} to be gone",
        pause=0.3,
    )
    if kubernetes.embedded:
        kubernetes.delete(_VOLUMES, "", _volume(namespace))
        wait_for(
            lambda: kubernetes.get(_VOLUMES, "", _volume(namespace)) is None,
            30,
            f"volume {_volume(namespace)} to be gone",
            pause=0.3,
        )
        shutil.rmtree(_shared_folder(namespace), ignore_errors=True)


def remove_workspace(kubernetes, namespace):
    """Also when there is none, or half of one."""
    begin_removal(kubernetes, namespace)
    finish_removal(kubernetes, namespace)


def checkpoint_folder(namespace):
    """The claim's folder as the machine sees it; the embedded cluster's only."""
    return _shared_folder(namespace)


def _volume(namespace):
    return f"{namespace}-{CLAIM}"


_shared = None


def _shared_folder(namespace):
    global _shared
    if _shared is None:
        _shared = pathlib.Path(
            subprocess.run([EMBEDDED, "shared-dir"], check=True, capture_output=True, text=True).stdout.strip()
        )
    return _shared / namespace
