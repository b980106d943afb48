"""The Debian packages that the cluster needs, installed only when what they bring is missing."""

import os
import shutil
import subprocess

import node
from failure import Failure, say

# package, what proves it is there
PROGRAMS = (
    ("containerd", "containerd"),
    ("containerd", "ctr"),
    ("runc", "runc"),
    ("iproute2", "ip"),
    ("nftables", "nft"),
    ("util-linux", "nsenter"),
    ("util-linux", "unshare"),
    ("mount", "mount"),
    ("openssl", "openssl"),
    ("gcc", "gcc"),
)


def missing():
    packages = {package for package, program in PROGRAMS if not shutil.which(program, path=search_path())}
    if node.plugin_folder() is None:
        packages.add("containernetworking-plugins")
    if not os.path.exists("/usr/include/stdio.h"):
        packages.add("libc6-dev")
    return sorted(packages)


def search_path():
    return os.environ.get("PATH", "") + ":/usr/sbin:/sbin"


def install():
    packages = missing()
    if not packages:
        return
    if not shutil.which("apt-get"):
        raise Failure(
            f"this is not Debian or Ubuntu: install {', '.join(packages)} with the system's own means, "
            "then run this again"
        )
    say(f"installing with apt-get: {' '.join(packages)}")
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    command = ["apt-get", "install", "--yes", "--quiet", "--no-install-recommends", *packages]
    outcome = subprocess.run(command, env=environment, capture_output=True, text=True)
    if outcome.returncode != 0:  # the package lists of a fresh machine are empty or old
        subprocess.run(["apt-get", "update", "--quiet"], env=environment, capture_output=True)
        outcome = subprocess.run(command, env=environment, capture_output=True, text=True)
    if outcome.returncode != 0:
        words = (outcome.stderr or outcome.stdout).strip().splitlines()
        raise Failure(
            f"apt-get cannot install {' '.join(packages)}: {words[-1] if words else 'no message'}; check "
            "the network and the package sources"
        )
