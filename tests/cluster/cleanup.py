"""Removing a cluster, or what a killed one left: only what carries this checkout's id is touched."""

import contextlib
import shutil
from pathlib import Path

import cgroups
import identity
import network
import node
import process
from process import run


def mounts():
    """Mount points below the state folder, the inner ones first."""
    found = [line.split(" ")[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    return sorted((point for point in found if Path(point).is_relative_to(identity.STATE)), reverse=True)


def leftovers():
    """What of this id is still on the machine, in words; empty after a clean `down`."""
    found = [f"process {one}: {process.command_line(one)}" for one in sorted(cgroups.process_ids(identity.NAME))]
    found += [f"mount {point}" for point in mounts()]
    found += [f"cgroup {folder}" for folder in cgroups.folders(identity.NAME) if folder.exists()]
    if network.exists():
        found.append(f"network namespace {identity.NETWORK_NAMESPACE}")
    if identity.STATE.exists():
        found.append(f"folder {identity.STATE}")
    return found


def remove_everything():
    process.kill_group(identity.NAME)
    # Nodes mount in namespaces of their own, which ended with them. One can still be on the host when a
    # run was interrupted in the middle of such a change.
    for point in mounts():
        run(["umount", "--lazy", point], f"unmounting {point}")
    process.wait_until(lambda: cgroups.remove(identity.NAME), 20, f"the cgroups of {identity.NAME} to go")
    network.remove()
    if identity.STATE.exists():
        shutil.rmtree(identity.STATE)
    remove_shared_folders()


def remove_shared_folders():
    """Only when no other checkout has a cluster: taking a folder away also takes what is mounted on it in their
    namespaces."""
    try:
        identity.STATE.parent.rmdir()
    except OSError:
        return
    for folder in node.MOUNT_POINTS:
        with contextlib.suppress(OSError):
            folder.rmdir()
