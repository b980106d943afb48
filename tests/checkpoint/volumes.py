"""File systems of other kinds than the machine's own, mounted for one case. Only inside a mount namespace of the case's
own, with which they go.

Each function makes one in `folder` and answers with the place to save in."""

import mmap
import os
import subprocess

from judging import Unmet, expect
from polling import poll

MIB = 1 << 20
_IMAGE_BYTES = 200 * MIB
_START_SECONDS_MAX = 10


def _do(*words):
    try:
        result = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=60)
    except FileNotFoundError:
        raise Unmet(
            f"this machine has no `{words[0]}`, which this case needs: ./dev setup checkpoint installs it"
        ) from None
    expect(
        result.returncode == 0,
        f"this machine does not do what this case needs: `{' '.join(map(str, words))}` ended with {result.returncode}: {(result.stdout + result.stderr).strip()[-300:]}",
    )


def _made(folder, *names):
    for name in names:
        (folder / name).mkdir(parents=True)
    return [folder / name for name in names]


def tmpfs(folder, mib=200):
    (place,) = _made(folder, "tmpfs")
    _do("mount", "-t", "tmpfs", "-o", f"size={mib}m", "none", place)
    return place


def overlay(folder):
    """Of two folders of the machine's own file system, as a container's root is."""
    lower, upper, work, place = _made(folder, "lower", "upper", "work", "overlay")
    # An overlay cannot lie on another one, which the root of a container often is.
    if subprocess.run(["stat", "-f", "-c", "%T", folder], capture_output=True, text=True).stdout.strip() == "overlayfs":
        lower, upper, work = _made(tmpfs(folder), "lower", "upper", "work")
    _do("mount", "-t", "overlay", "-o", f"lowerdir={lower},upperdir={upper},workdir={work}", "none", place)
    return place


def read_only(place):
    """The same files once more, for reading only."""
    view = place.with_name(place.name + "-read-only")
    view.mkdir()
    _do("mount", "--bind", place, view)
    _do("mount", "-o", "remount,bind,ro", view)
    return view


def _serve(place, *command):
    """A FUSE file system; its server is a child that ends with the case."""
    expect(
        os.access("/dev/fuse", os.R_OK | os.W_OK),
        "this machine gives no /dev/fuse, so no FUSE file system can be tried here",
    )
    try:
        server = subprocess.Popen(
            [str(word) for word in command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
    except FileNotFoundError:
        raise Unmet(
            f"this machine has no `{command[0]}`, which this case needs: ./dev setup checkpoint installs it"
        ) from None
    poll(lambda: place.is_mount() or server.poll() is not None, _START_SECONDS_MAX)
    expect(
        server.poll() is None,
        f"`{command[0]}` ended with {server.returncode}: {server.stderr.read()[-300:] if server.returncode is not None else ''}",
    )
    expect(place.is_mount(), f"`{command[0]}` mounted nothing within {_START_SECONDS_MAX} s")
    return place


def bindfs(folder, below=None):
    """Through FUSE, with modes and owners that nobody may change."""
    (place,) = _made(folder, "bindfs")
    if below is None:
        (below,) = _made(folder, "below")
    return _serve(place, "bindfs", "-f", "--chmod-deny", "--chown-deny", "--chgrp-deny", below, place)


def fuse_overlay(folder):
    lower, upper, work, place = _made(folder, "lower", "upper", "work", "fuse-overlay")
    return _serve(place, "fuse-overlayfs", "-f", "-o", f"lowerdir={lower},upperdir={upper},workdir={work}", place)


def _image(folder, kind, *make):
    (place,) = _made(folder, kind)
    image = folder / f"{kind}.img"
    with image.open("wb") as file:
        file.truncate(_IMAGE_BYTES)
    _do(*make, image)
    # The loop device is given back when nothing is mounted from it any more, which is at the latest when the namespace
    # goes.
    _do("mount", "-o", "loop", image, place)
    return place


def ext4(folder):
    return _image(folder, "ext4", "mkfs.ext4", "-q", "-F", "-m", "0")


def btrfs(folder, quota_mib=None):
    place = _image(folder, "btrfs", "mkfs.btrfs", "-q", "-f", "-m", "single")
    if quota_mib is None:
        return place
    _do("btrfs", "quota", "enable", place)
    part = place / "part"
    _do("btrfs", "subvolume", "create", part)
    _do("btrfs", "qgroup", "limit", f"{quota_mib}M", part)
    return part


def free_bytes(place):
    about = os.statvfs(place)
    return about.f_bavail * about.f_frsize


def fill(place, leave_bytes):
    """A file that leaves so much room; its path."""
    path = place / "filler"
    with path.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, free_bytes(place) - leave_bytes)
        os.fsync(file.fileno())
    return path


def remove_at_once(path):
    """btrfs gives space back when a transaction ends."""
    path.unlink()
    os.sync()


def takes_direct_writes(place):
    """Whether a file can be written past the page cache there."""
    path = place / "direct"
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_DIRECT, 0o600)
    except OSError:
        return False
    try:
        return os.write(descriptor, mmap.mmap(-1, 4096)) == 4096
    except OSError:
        return False
    finally:
        os.close(descriptor)
        path.unlink()
