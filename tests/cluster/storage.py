"""Volumes for claims that name no class: the default class of a cluster whose nodes share their storage. They are made
with the cluster, so nothing that provisions has to run."""

import identity

CLASS = "shared"
VOLUMES = [f"shared-{number}" for number in range(1, 9)]


def folder(volume):
    return identity.SHARED / "volumes" / volume


def make_folders():
    for volume in VOLUMES:
        folder(volume).mkdir(parents=True, exist_ok=True)
        folder(volume).chmod(0o1777)  # hostPath leaves owner and mode as they are


def objects():
    storage_class = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": CLASS, "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
        "provisioner": "kubernetes.io/no-provisioner",
    }
    volumes = [
        {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": volume},
            "spec": {
                "capacity": {"storage": "10Gi"},
                "accessModes": ["ReadWriteMany"],
                "persistentVolumeReclaimPolicy": "Retain",
                "storageClassName": CLASS,
                "hostPath": {"path": str(folder(volume)), "type": "Directory"},
            },
        }
        for volume in VOLUMES
    ]
    return [storage_class, *volumes]
