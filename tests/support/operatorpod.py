"""The operator as a test handles it: its log, its end from the node, its being away."""

import contextlib
import datetime
import json
import os
import signal

from installation import NAMESPACE
from kubernetes import BREAKPOINTS, PODS, Failed, condition, ready, wait_for
from operatorlog import SELECTOR
from ranks import process_of

DEPLOYMENT = "rekindle-operator"
_DEPLOYMENTS = "apis/apps/v1/namespaces/{namespace}/deployments"


class Operator:
    def __init__(self, kubernetes):
        self._kubernetes = kubernetes

    def pods(self):
        return self._kubernetes.list(PODS, NAMESPACE, SELECTOR)

    def pod(self):
        """The one that is Ready."""

        def found():
            pods = [pod for pod in self.pods() if ready(pod)]
            return pods[0] if len(pods) == 1 else None

        return wait_for(found, 90, "the operator to be ready")

    def process(self):
        """Its process id on this machine."""
        return process_of(self._kubernetes, NAMESPACE, self.pod()["metadata"]["name"], "operator")

    @staticmethod
    def kill(pid):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)

    def restarts(self):
        """Of the containers of its pods."""
        return sum(
            one["restartCount"] for pod in self.pods() for one in pod.get("status", {}).get("containerStatuses", [])
        )

    def make_anew(self):
        """A new pod, so that the kubelet's restart backoff begins from nothing."""
        old = {pod["metadata"]["uid"] for pod in self.pods()}
        for pod in self.pods():
            self._kubernetes.delete(PODS, NAMESPACE, pod["metadata"]["name"], grace_seconds=1)
        wait_for(
            lambda: not old & {pod["metadata"]["uid"] for pod in self.pods()}, 60, "the old operator pod to be gone"
        )
        self.pod()

    def scale(self, replicas):
        self._kubernetes.patch(_DEPLOYMENTS, NAMESPACE, DEPLOYMENT, {"spec": {"replicas": replicas}})
        if replicas == 0:
            wait_for(lambda: not self.pods(), 60, "the operator to be gone")
        else:
            self.pod()

    @contextlib.contextmanager
    def away(self):
        """No operator for the time of the block, whatever happens in it."""
        self.scale(0)
        try:
            yield
        finally:
            self.scale(1)

    def log(self, since=None):
        """All that the pods have logged, their containers of before a restart too, as objects; `since` a wall time in
        seconds. Lines that are not JSON are kept under `msg`. A log that cannot be read is a failure."""
        query = (
            {}
            if since is None
            else {"sinceTime": datetime.datetime.fromtimestamp(since, datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")}
        )
        lines = []
        texts = [
            self._kubernetes.log(NAMESPACE, pod["metadata"]["name"], "operator", previous=previous, **query)
            for pod in self.pods()
            for previous in had_logs(pod)
        ]
        if not texts:
            raise Failed("no operator is there whose log could be read")
        for line in "".join(texts).splitlines():
            try:
                lines.append(json.loads(line))
            except ValueError:
                lines.append({"level": "error", "msg": line})
        return lines

    def errors_about(self, namespace, since):
        """What it logged as an error with the namespace's name in it, or about nothing in particular."""
        return [
            line
            for line in self.log(since)
            if line.get("level") == "error" and (namespace in json.dumps(line) or "job" not in line)
        ]


def had_logs(pod):
    """Which logs of a pod's container there are, as `previous` in the API: that of a container before a restart, that
    of the present one."""
    for one in pod.get("status", {}).get("containerStatuses", []):
        if "terminated" in one.get("lastState", {}):
            yield "true"
        if "running" in one.get("state", {}) or "terminated" in one.get("state", {}):
            yield "false"


def operator_has_caught_up(scene, name="nobody-asked-for"):
    """Until the operator has answered a question that was put after all that it was to notice before: it takes up what
    it sees in the order in which it comes."""
    scene.kubernetes.create(
        BREAKPOINTS,
        scene.namespace,
        {
            "apiVersion": "rekindle.dev/v1alpha1",
            "kind": "Breakpoint",
            "metadata": {"name": name, "namespace": scene.namespace},
            "spec": {"jobRef": {"name": "nobody"}},
        },
    )
    wait_for(
        lambda: (
            (condition(scene.kubernetes.get(BREAKPOINTS, scene.namespace, name), "Failed") or {}).get("status")
            == "True"
        ),
        30,
        "the operator to say that there is no job `nobody`",
    )
    scene.kubernetes.delete(BREAKPOINTS, scene.namespace, name)
