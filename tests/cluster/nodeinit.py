"""The first process of one node, in process and mount namespaces of its own.

Started by node.py as process 1 behind `unshare`. When it dies the kernel ends every process of the node
at once and its mounts are gone with it, memory volumes included: that is what losing a machine looks
like, and it leaves nothing to clean. It starts containerd, waits for the API server, starts the kubelet
and from then on only reaps.

    nodeinit.py SPECIFICATION.json
"""

import json
import os
import signal
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

# The kubelet insists on these values and writes them when they differ. They belong to the whole machine,
# so it is shown files that already say what it wants.
KERNEL_SETTINGS = {
    "vm/overcommit_memory": "1",
    "vm/panic_on_oom": "0",
    "kernel/panic": "10",
    "kernel/panic_on_oops": "1",
    "kernel/keys/root_maxkeys": "1000000",
    "kernel/keys/root_maxbytes": "25000000",
}


def mount(*arguments):
    subprocess.run(["mount", *map(str, arguments)], check=True)


def arrange_mounts(state):
    """Private /run, logs, network and kubelet folders: containerd and the kubelet have these paths built in."""
    mount("--make-rshared", "/")  # the kubelet offers pods mounts that propagate
    mount("-t", "tmpfs", "-o", "mode=755", "tmpfs", "/run")
    for name in ("containerd", "lock", "netns"):
        Path("/run", name).mkdir()
    for target, source in (
        ("/var/log", state / "log"),
        ("/var/lib/cni", state / "cni"),
        ("/var/lib/kubelet", state / "kubelet"),
    ):
        source.mkdir(exist_ok=True)
        mount("--bind", source, target)
    settings = Path("/run/kernel-settings")
    settings.mkdir()
    for name, value in KERNEL_SETTINGS.items():
        target = Path("/proc/sys", name)
        if target.exists():
            shown = settings / name.replace("/", ".")
            shown.write_text(value + "\n")
            mount("--bind", shown, target)


def start(service):
    log = open(service["log"], "ab")
    return subprocess.Popen(
        service["command"], stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
    )


def poll(condition, what):
    announced = time.monotonic() + 30
    while not condition():
        if time.monotonic() > announced:
            print(f"still waiting for {what}", flush=True)
            announced = time.monotonic() + 30
        time.sleep(0.05)


def api_is_ready(url, authority):
    """A kubelet that starts too early backs off for seconds, which would make every start slow."""
    try:
        context = ssl.create_default_context(cafile=authority)
        with urllib.request.urlopen(f"{url}/readyz", timeout=2, context=context) as answer:
            return answer.status == 200
    except (urllib.error.URLError, OSError):
        return False


def main():
    specification = json.loads(Path(sys.argv[1]).read_text())
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: sys.exit(0))
    arrange_mounts(Path(specification["state"]))
    services = {}
    containerd = start(specification["containerd"])
    services[containerd.pid] = "containerd"
    socket = Path(specification["containerd_socket"])
    poll(lambda: socket.exists() or containerd.poll() is not None, "containerd")
    poll(lambda: api_is_ready(specification["api"], specification["authority"]), "the API server")
    kubelet = start(specification["kubelet"])
    services[kubelet.pid] = "kubelet"
    while True:
        process, status = os.wait()
        if process in services:  # a node without one of them is no node: end all of it, visibly
            print(f"{services[process]} ended with {os.waitstatus_to_exitcode(status)}", flush=True)
            return 1


if __name__ == "__main__":
    sys.exit(main())
