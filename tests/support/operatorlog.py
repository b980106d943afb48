"""What every operator of a stage has said until its end, the killed ones too: followed while their pods live, since a
log goes with its pod."""

import re
import threading

from installation import NAMESPACE
from kubernetes import PODS

SELECTOR = "app.kubernetes.io/name=rekindle"
# Of an assertion of ours, of the C++ library, of a sanitizer and of glibc.
_ABORT = re.compile(
    r"rekindle: bug:|terminate called|Assertion .*failed|AddressSanitizer|ThreadSanitizer|runtime error:|"
    r"pure virtual|stack smashing|double free|corrupted|Aborted|Segmentation fault"
)
# 128 + SIGILL, SIGABRT, SIGBUS, SIGFPE, SIGSEGV.
_SIGNALLED = {132: "SIGILL", 134: "SIGABRT", 135: "SIGBUS", 136: "SIGFPE", 139: "SIGSEGV"}


def aborts_in(text):
    """The lines that a process writes when it ends itself; what it logs is JSON and may name anything."""
    return [line for line in text.splitlines() if not line.startswith("{") and _ABORT.search(line)]


def aborted_containers(pod):
    """Sentences about containers of a pod that were ended by a signal which is a bug; SIGKILL and SIGTERM come from
    tests."""
    found = []
    for one in pod.get("status", {}).get("containerStatuses", []):
        for state in (one.get("state", {}), one.get("lastState", {})):
            code = state.get("terminated", {}).get("exitCode")
            if code in _SIGNALLED:
                found.append(f"{pod['metadata']['name']} ended with {_SIGNALLED[code]}")
    return found


class OperatorLogs:
    """From begin to close(), into files of `folder`."""

    def __init__(self, kubernetes, folder):
        self._kubernetes = kubernetes
        self._folder = folder
        self._lock = threading.Lock()
        self._followers = {}
        self._aborted = set()
        for old in folder.glob("operator-*.log"):
            old.unlink()
        self._watch = kubernetes.watch(PODS, NAMESPACE, on_event=self._take)

    def _take(self, type_, pod):
        if pod["metadata"].get("labels", {}).get("app.kubernetes.io/name") != "rekindle":
            return
        with self._lock:
            self._aborted.update(aborted_containers(pod))
            for one in pod.get("status", {}).get("containerStatuses", []):
                key, state = one.get("containerID"), one.get("state", {})
                if key in self._followers or type_ == "DELETED" or not ("running" in state or "terminated" in state):
                    continue
                path = self._folder / f"operator-{pod['metadata']['name'][-5:]}-{one['restartCount']}.log"
                follower = self._kubernetes.follow_log(NAMESPACE, pod["metadata"]["name"], one["name"], path)
                self._followers[key] = (path, follower)

    def faults(self):
        """Sentences; a container that ran and of which nothing was read is one of them."""
        with self._lock:
            followed, found = list(self._followers.values()), sorted(self._aborted)
        if not followed:
            found.append(f"no operator was seen in {NAMESPACE}")
        for path, _ in followed:
            text = path.read_text(errors="replace") if path.exists() else ""
            if not text:
                found.append(f"nothing was read of what an operator said ({path.name})")
            found += [f"{path.name}: {line}" for line in aborts_in(text)]
        return found

    def summary(self):
        with self._lock:
            paths = [path for path, _ in self._followers.values()]
        lines = sum(path.read_text(errors="replace").count("\n") for path in paths)
        return f"{lines} lines of {len(paths)} containers"

    def close(self):
        self._watch.close()
        with self._lock:
            followers = [follower for _, follower in self._followers.values()]
        for follower in followers:
            follower.close()
