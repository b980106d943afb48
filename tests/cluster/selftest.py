"""Checks that the cluster is what the tests of the project rely on. Prints a line per check.

Run as `dev cluster selftest`. It starts from a cluster that is down and leaves it down.
"""

import io
import json
import os
import random
import signal
import subprocess
import tarfile
import time
from pathlib import Path

import cgroups
import cleanup
import containers
import controlplane
import identity
import images
import lifecycle
import network
import node
import ociimage
import process
from failure import Failure

NAMESPACE = "selftest"
JOB = "visitors"


class Checks:
    """Counts and prints outcomes. A check that cannot be made has failed."""

    def __init__(self):
        self.passed = self.failed = 0

    def check(self, what, question):
        began = time.monotonic()
        try:
            answer = question()
            good, detail = answer if isinstance(answer, tuple) else (answer, "")
        except (Failure, KeyError, IndexError, OSError, subprocess.SubprocessError, ValueError) as problem:
            good, detail = False, str(problem)
        self.passed, self.failed = self.passed + bool(good), self.failed + (not good)
        seconds = time.monotonic() - began
        reason = f": {detail}" if detail and not good else ""
        print(f"{'ok    ' if good else 'FAILED'} {what} ({seconds:.1f} s){reason}", flush=True)
        return good


def job():
    """Two pods on two nodes, each with a native sidecar, restarted as a whole when one is evicted or fails."""
    spread = {
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {
                    "topologyKey": "kubernetes.io/hostname",
                    "labelSelector": {"matchLabels": {"volcano.sh/job-name": JOB}},
                }
            ]
        }
    }
    common = {
        "image": images.VISITOR_IMAGE,
        "imagePullPolicy": "Never",
        "resources": {"requests": {"cpu": "50m", "memory": "16Mi"}},
    }
    pod = {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 5,
        "affinity": spread,
        "initContainers": [
            {
                **common,
                "name": "sidecar",
                "restartPolicy": "Always",
                "args": ["listen", "7000"],
                "startupProbe": {"tcpSocket": {"port": 7000}, "periodSeconds": 1},
            }
        ],
        "containers": [
            {**common, "name": "main", "args": ["wait"], "volumeMounts": [{"name": "shared", "mountPath": "/shared"}]}
        ],
        "volumes": [{"name": "shared", "hostPath": {"path": str(identity.SHARED), "type": "Directory"}}],
    }
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": JOB, "namespace": NAMESPACE},
        "spec": {
            "minAvailable": 2,
            "schedulerName": "volcano",
            "queue": "default",
            "maxRetry": 5,
            "plugins": {"env": [], "svc": []},
            "policies": [{"events": ["PodEvicted", "PodFailed"], "action": "RestartJob"}],
            "tasks": [{"name": "worker", "replicas": 2, "template": {"spec": pod}}],
        },
    }


def apply(value):
    outcome = controlplane.kubectl("create", "-f", "-", input=json.dumps(value))
    return outcome.returncode == 0, outcome.stderr.strip()


def pods():
    found = controlplane.get("pods", "--namespace", NAMESPACE, "--selector", f"volcano.sh/job-name={JOB}")
    return found["items"] if found else []


def is_ready(pod):
    return any(
        one["type"] == "Ready" and one["status"] == "True" for one in pod.get("status", {}).get("conditions", [])
    )


def both_running(other_than=()):
    """The two pods, once both are Ready and none is one of `other_than` (uids of an earlier life)."""

    def question():
        found = pods()
        good = [pod for pod in found if is_ready(pod) and pod["metadata"]["uid"] not in other_than]
        return found if len(found) == len(good) == 2 else None

    return process.wait_until(question, 60, "both pods to be Ready", interval=0.2)


def uids():
    return [pod["metadata"]["uid"] for pod in pods()]


def in_pod(pod, *command):
    return controlplane.kubectl("exec", pod, "--namespace", NAMESPACE, "--container", "main", "--", *command)


def check_parts(checks):
    checks.check(
        "both nodes are Ready",
        lambda: (
            sorted(name for name, ready in controlplane.ready_nodes().items() if ready)
            == [n.name for n in identity.NODES]
        ),
    )
    checks.check("a second up does nothing", lambda: lifecycle.up() is None and lifecycle.is_up())
    checks.check(
        "RBAC refuses a service account without a role",
        lambda: (
            controlplane.kubectl(
                "auth", "can-i", "list", "pods", "--as=system:serviceaccount:default:default"
            ).stdout.strip()
            == "no"
        ),
    )
    checks.check(
        "admission policies are there",
        lambda: controlplane.kubectl("get", "validatingadmissionpolicies").returncode == 0,
    )
    checks.check("the API server is reached through its service", controlplane.services_work)
    checks.check(
        "nothing leads out of the network",
        lambda: subprocess.run(process.inside("ip", "route", "get", "192.0.2.1"), capture_output=True).returncode != 0,
    )


def check_image(checks):
    first, second = identity.STATE / "images" / "once.tar", identity.STATE / "images" / "twice.tar"
    files = {"/bin/tool": b"#!/bin/sh\n", "/lib/x/one": b"1", "/etc/settings": b"on\n"}

    def same_bytes():
        for archive in (first, second):
            ociimage.build_image(
                archive,
                "rekindle.test/tool:1",
                dict(reversed(files.items())) if archive == first else files,
                modes={"/tmp": 0o1777},
                env={"B": "2", "A": "1"},
                user="1000",
            )
        return first.read_bytes() == second.read_bytes()

    def merged():
        with tarfile.open(fileobj=io.BytesIO(ociimage.layer(files))) as archive:
            return archive.getmember("bin").linkname == "usr/bin" and archive.getmember("usr/bin/tool").mode == 0o755

    def name_refused():
        try:
            ociimage.checked_reference("tool:1")
        except Failure:
            return True
        return False

    checks.check("an image is the same bytes each time", same_bytes)
    checks.check("its folders are usr-merged", merged)
    checks.check("an image name without a domain is refused", name_refused)


def check_pod_security(checks):
    apply(
        {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": "selftest-restricted", "labels": {"pod-security.kubernetes.io/enforce": "restricted"}},
        }
    )

    def refused():
        good, words = apply(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": "root", "namespace": "selftest-restricted"},
                "spec": {"containers": [{"name": "root", "image": images.VISITOR_IMAGE}]},
            }
        )
        return not good and "violates PodSecurity" in words, words

    checks.check("PodSecurity refuses a pod that is not restricted", refused)


def check_job(checks):
    checks.check("an image loads on both nodes", lambda: node.load([images.visitor_archive()]) is None)
    checks.check(
        "a namespace", lambda: apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    )
    checks.check("a Volcano job is admitted", lambda: apply(job()))
    if not checks.check("its two pods run, native sidecars too", lambda: bool(both_running())):
        return
    checks.check(
        "they are on both nodes",
        lambda: sorted(pod["spec"]["nodeName"] for pod in pods()) == [one.name for one in identity.NODES],
    )
    checks.check(
        "the env plugin gave each its index",
        lambda: (
            sorted(
                entry["value"]
                for pod in pods()
                for entry in pod["spec"]["containers"][0]["env"]
                if entry["name"] == "VC_TASK_INDEX"
            )
            == ["0", "1"]
        ),
    )
    first, second = sorted(pods(), key=lambda pod: pod["metadata"]["name"])
    peer = f"{second['metadata']['name']}.{JOB}.{NAMESPACE}.svc.{identity.CLUSTER_DOMAIN}"

    def peer_resolves(name):
        def question():
            outcome = in_pod(first["metadata"]["name"], "/visitor", "resolve", name)
            return outcome.stdout.strip() == second["status"]["podIP"]

        return bool(process.wait_until(question, 15, f"{name} to resolve", interval=0.2))

    checks.check("a pod resolves its peer's full name", lambda: peer_resolves(peer))
    checks.check("a pod resolves its peer's short name", lambda: peer_resolves(f"{second['metadata']['name']}.{JOB}"))
    checks.check(
        "a pod connects to its peer on the other node",
        lambda: in_pod(first["metadata"]["name"], "/visitor", "connect", peer, "7000").returncode == 0,
    )
    checks.check(
        "a pod reaches the API server through its service",
        lambda: in_pod(first["metadata"]["name"], "/visitor", "connect", "kubernetes.default", "443").returncode == 0,
    )
    checks.check(
        "a name outside the cluster fails at once",
        lambda: in_pod(first["metadata"]["name"], "/visitor", "resolve", "outside.invalid").returncode == 1,
    )
    checks.check(
        "a pod writes into the shared folder",
        lambda: (
            in_pod(first["metadata"]["name"], "/visitor", "write", "/shared/note").returncode == 0
            and (identity.SHARED / "note").read_text() == "written by a pod\n"
        ),
    )
    checks.check(
        "logs",
        lambda: (
            controlplane.kubectl(
                "logs", first["metadata"]["name"], "--namespace", NAMESPACE, "--container", "main"
            ).stdout
            == "waiting\n"
        ),
    )


def check_restarts(checks):
    def evicted():
        before = uids()
        victim = pods()[0]["metadata"]["name"]
        eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": victim, "namespace": NAMESPACE}}
        outcome = controlplane.kubectl(
            "create",
            "--raw",
            f"/api/v1/namespaces/{NAMESPACE}/pods/{victim}/eviction",
            "-f",
            "-",
            input=json.dumps(eviction),
        )
        return outcome.returncode == 0 and bool(both_running(before)), outcome.stderr

    def killed():
        before = uids()
        victim = pods()[0]["metadata"]["name"]
        found = containers.pod_processes(NAMESPACE, victim, "main")
        if [one["command"] for one in found] != ["/visitor wait"]:
            return False, found
        os.kill(found[0]["pid"], signal.SIGKILL)
        return bool(both_running(before))

    checks.check("an evicted pod brings the whole job back", evicted)
    checks.check("so does a container killed from the node", killed)


def check_node(checks):
    lost = identity.NODES[1]

    def noticed():
        lifecycle.kill_node(lost)
        process.wait_until(
            lambda: controlplane.ready_nodes().get(lost.name) is False, 30, f"{lost.name} to be noticed", interval=0.3
        )
        return not cgroups.process_ids(lost.pod_cgroup)

    checks.check("a node ends at once and is noticed", noticed)
    checks.check("it starts again", lambda: lifecycle.start_node(lost) is None)
    checks.check("and its job runs again", lambda: bool(both_running()))


def kill_everything():
    """SIGKILL to all, in no order: what a machine's user or its memory killer may do."""
    everything = list(cgroups.process_ids(identity.NAME))
    random.shuffle(everything)
    for one in everything:
        try:
            os.kill(one, signal.SIGKILL)
        except ProcessLookupError:
            pass
    process.wait_until(lambda: not cgroups.process_ids(identity.NAME), 20, "everything to end")
    return bool(everything) and not lifecycle.is_up()


def host_state():
    """What of the host the cluster must not change."""
    links = subprocess.run(["ip", "-brief", "link"], capture_output=True, text=True).stdout
    rules = subprocess.run(["nft", "list", "ruleset"], capture_output=True, text=True).stdout
    settings = [
        cgroups.read(Path("/proc/sys", name))
        for name in ("vm/overcommit_memory", "kernel/panic", "kernel/panic_on_oops", "net/ipv4/ip_forward")
    ]
    mounts = Path("/proc/self/mounts").read_text()
    folders = sorted(
        path
        for folder in ("/var/lib", "/run", "/var/log")
        for path in map(str, Path(folder).iterdir())
        if path not in ("/run/netns", "/var/lib/rekindle-cluster")
    )
    return {"links": links, "rules": rules, "settings": settings, "mounts": mounts, "folders": folders}


def processes_in_network(inode):
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and os.stat(entry / "ns" / "net").st_ino == inode:
                found.append(int(entry.name))
        except OSError:
            pass  # it ended in between
    return found


def check_end(checks, before):
    inode = identity.NETWORK_NAMESPACE_PATH.stat().st_ino
    checks.check("down", lambda: lifecycle.down() is None)
    checks.check("nothing with its id is left", lambda: (not cleanup.leftovers(), cleanup.leftovers()))
    checks.check("no process is left in its network", lambda: not network.exists() and not processes_in_network(inode))

    def unchanged():
        after = host_state()
        changed = [name for name in before if before[name] != after[name]]
        return not changed, f"{changed} changed"

    checks.check("the host's network, mounts, settings and folders are as before", unchanged)


def main():
    checks = Checks()
    lifecycle.require_root()
    lifecycle.setup()
    lifecycle.down()
    (identity.NETWORK_NAMESPACE_PATH.parent).mkdir(exist_ok=True)
    before = host_state()
    if checks.check("up", lambda: lifecycle.up() is None):
        check_parts(checks)
        check_image(checks)
        check_pod_security(checks)
        check_job(checks)
        check_restarts(checks)
        check_node(checks)
        checks.check("everything ends on SIGKILL", kill_everything)
        checks.check("up after that", lambda: lifecycle.up() is None and lifecycle.is_up())
        check_end(checks, before)
    print(f"{checks.passed} passed, {checks.failed} failed")
    return 0 if checks.failed == 0 else 1
