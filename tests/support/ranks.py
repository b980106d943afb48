"""What the ranks of running pods are doing, seen from outside: from the node where that is possible, else from their
logs."""

import contextlib
import json
import pathlib

from controlblock import ControlBlock
from kubernetes import ApiError, Failed

MAIN = "worker"
SIDECAR = "rekindle-sidecar"
_PROGRAMS = {"rank": "digits", "launcher": "rekindle", "sidecar": "rekindle-sidecar", "operator": "rekindle-operator"}


def process_of(kubernetes, namespace, pod, target):
    """The host's process id of a rank, the launcher, the sidecar or the operator in that pod. Embedded cluster only."""
    for process in kubernetes.processes(namespace, pod, {"sidecar": SIDECAR, "operator": "operator"}.get(target, MAIN)):
        words = process["command"].split()
        if words and pathlib.Path(words[0]).name == _PROGRAMS[target]:
            return process["pid"]
    raise Failed(f"no {target} runs in pod {namespace}/{pod}")


def rank_processes(kubernetes, namespace, pod):
    """Process ids of all processes of the main container."""
    return {process["pid"] for process in kubernetes.processes(namespace, pod, MAIN)}


class Ranks:
    """Steps of the ranks of one namespace's pods. Any thread, one at a time."""

    def __init__(self, kubernetes, namespace):
        self._kubernetes = kubernetes
        self._namespace = namespace
        self._folders = {}  # by pod uid: the memory volume as the node sees it

    def last_step(self, pods):
        """The largest step that any rank of these pods has committed; 0 when none trains."""
        if self._kubernetes.embedded:
            return max((word.step for pod in pods.values() for word in self._words(pod) if word.is_training), default=0)
        return max((line["step"] for name in pods for line in logged_steps(self._log(name, tailLines=40))), default=0)

    def first_step(self, pods):
        """The first step that the training program logged in these pods, and in which attempt; None before it has."""
        first = None
        for name in pods:
            for line in logged_steps(self._log(name, limitBytes=200_000)):
                if first is None or line["step"] < first["step"]:
                    first = line
        return first

    def _log(self, name, **query):
        with contextlib.suppress(ApiError):  # not started yet, or gone
            return self._kubernetes.log(self._namespace, name, MAIN, **query)
        return ""

    def _words(self, pod):
        uid = pod["metadata"]["uid"]
        folder = self._folders.get(uid)
        if folder is None or not folder.exists():
            folder = self._folders[uid] = self._memory_volume(pod["metadata"]["name"])
        words = []
        if folder is not None:
            for path in folder.glob("rank-*.control"):
                with contextlib.suppress(OSError, ValueError):
                    block = ControlBlock(path)
                    words.append(block.read())
                    block.close()
        else:
            del self._folders[uid]
        return words

    def _memory_volume(self, name):
        with contextlib.suppress(Failed):
            for process in self._kubernetes.processes(self._namespace, name, MAIN):
                folder = pathlib.Path(f"/proc/{process['pid']}/root/rekindle/run")
                if folder.exists():
                    return folder
        return None


def logged_steps(text):
    """The lines of the training program's log that tell of a step."""
    steps = []
    for line in text.splitlines():
        if line.startswith("{"):
            with contextlib.suppress(ValueError):
                entry = json.loads(line)
                if "step" in entry and "rank" in entry:
                    steps.append(entry)
    return steps
