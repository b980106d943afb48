"""Bringing the cluster up and down."""

import calendar
import contextlib
import fcntl
import os
import time

import certificates
import cleanup
import controlplane
import identity
import images
import network
import node
import packages
import process
import report
import storage
import volcano
from failure import Failure, say

import build

READY_TIMEOUT = 120


def require_root():
    if os.geteuid() != 0:
        raise Failure("the cluster makes namespaces and cgroups and needs root: run it with sudo")


@contextlib.contextmanager
def locked():
    """One `up`, `down` or node command of a checkout at a time. The lock is outside the state that `down` removes."""
    build.cache_root().mkdir(parents=True, exist_ok=True)
    with open(build.cache_root() / f"{identity.ID}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def setup(parallel=None):
    """Install and build what is missing. Returns the seconds of each binary built now."""
    if packages.missing():
        require_root()
    packages.install()
    return build.build(parallel)


def control_components():
    return (*controlplane.COMPONENTS, *volcano.COMPONENTS)


def is_up():
    return all(process.running(component) for component in report.COMPONENTS) and controlplane.is_ready()


def up():
    require_root()
    build_seconds = setup()
    with locked():
        ended = [component for component in report.COMPONENTS if not process.running(component)]
        stopped = [one for one in identity.NODES if one.component in ended]
        if len(ended) == len(stopped) and controlplane.is_ready():
            for one in stopped:
                say(f"starting {one.name} again")
                bring_back(one)
            say("the cluster is up")
            return
        if len(ended) < len(report.COMPONENTS):
            say(f"{', '.join(ended) or 'the API server'} had ended: starting afresh")
        cleanup.remove_everything()
        try:
            start(build_seconds)
        except KeyboardInterrupt:
            cleanup.remove_everything()
            raise


class Stopwatch:
    """Seconds since the start at which each thing was ready."""

    def __init__(self):
        self.began = time.monotonic()
        self.seconds = {}

    def mark(self, *names):
        for name in names:
            self.seconds[name] = round(time.monotonic() - self.began, 2)


def start(build_seconds):
    watch = Stopwatch()
    say(f"starting the cluster {identity.NAME}, logs in {identity.LOGS}")
    for component in report.COMPONENTS:
        process.log_path(component).unlink(missing_ok=True)
    for folder in (identity.CONFIGURATION, identity.SHARED):
        folder.mkdir(parents=True, exist_ok=True)
    identity.SHARED.chmod(0o1777)
    identity.STATE.chmod(0o755)
    storage.make_folders()
    network.make()
    controlplane.start_etcd()
    certificates.make()
    controlplane.start_api_server()
    for one in identity.NODES:
        node.start(one)
    manifests = volcano.write_manifests()
    pause = images.pause_archive()
    for one in identity.NODES:
        node.wait_for_containerd(one)
    node.load([pause])
    process.wait_until(controlplane.is_ready, READY_TIMEOUT, "the API server", alive=["etcd", "kube-apiserver"])
    watch.mark("etcd", "kube-apiserver")
    controlplane.start_controller_manager()
    volcano.create(manifests)
    volcano.start_webhooks()
    controlplane.start_scheduler()
    controlplane.start_dns()
    wait_for_rest(watch)
    watch.mark("cluster")
    report.write(watch.seconds, build_seconds)
    say(f"the cluster is up after {watch.seconds['cluster']} s; report in {identity.REPORT}")


def wait_for_rest(watch):
    """What is left can get ready in any order, so it is asked for in one loop."""

    def nodes_ready():
        ready = controlplane.ready_nodes()
        return all(ready.get(one.name) for one in identity.NODES)

    def default_account_exists():
        return controlplane.get("serviceaccount", "default", "--namespace", "default") is not None

    # milestone: what to ask, what to start once it is so, which components it proves
    open_questions = {
        "nodes": (nodes_ready, [controlplane.start_proxy], [one.component for one in identity.NODES]),
        "admission": (
            volcano.admission_answers,
            [volcano.start_controllers, volcano.start_scheduler],
            ["volcano-webhook-manager"],
        ),
        "accounts": (default_account_exists, [], ["kube-controller-manager"]),
        "names": (lambda: controlplane.resolves(f"kubernetes.default.svc.{identity.CLUSTER_DOMAIN}"), [], ["coredns"]),
    }
    started_later = {"kube-proxy", "volcano-controller-manager", "volcano-scheduler"}
    early = [component for component in report.COMPONENTS if component not in started_later]

    def all_answered():
        for milestone, (question, followers, proven) in list(open_questions.items()):
            if question():
                watch.mark(*proven)
                for follow in followers:
                    follow()
                del open_questions[milestone]
        return not open_questions

    process.wait_until(all_answered, READY_TIMEOUT, "nodes, admission webhooks, accounts and DNS", alive=early)
    process.wait_until(volcano.takes_jobs, READY_TIMEOUT, "Volcano to take jobs", alive=report.COMPONENTS)
    watch.mark("volcano-controller-manager", "volcano-scheduler")
    process.wait_until(
        controlplane.services_work, READY_TIMEOUT, "kube-proxy to write its rules", alive=report.COMPONENTS
    )
    watch.mark("kube-proxy")
    process.wait_until(controlplane.scheduler_is_ready, READY_TIMEOUT, "kube-scheduler", alive=report.COMPONENTS)
    watch.mark("kube-scheduler")


def down():
    require_root()
    with locked():
        found = cleanup.leftovers()
        cleanup.remove_everything()
        left = cleanup.leftovers()
        if left:
            raise Failure(f"`down` could not remove {left[0]}")
    say("the cluster is down" if found else "the cluster was not up")


def kill_node(one):
    require_root()
    with locked():
        if not node.is_running(one):
            raise Failure(f"{one.name} is not running")
        node.kill(one)


def start_node(one):
    require_root()
    with locked():
        if node.is_running(one):
            raise Failure(f"{one.name} is running already")
        bring_back(one)


def bring_back(one):
    """Start a node that ended, and wait until it has said itself that it is Ready."""
    began = int(time.time())
    node.start(one)

    def reported():
        # Its old word, still in the API for some seconds after a sudden end, does not count.
        found = controlplane.get("node", one.name) or {"status": {}}
        for condition in found["status"].get("conditions", []):
            if condition["type"] == "Ready" and condition["status"] == "True":
                heard = time.strptime(condition["lastHeartbeatTime"], "%Y-%m-%dT%H:%M:%SZ")
                return calendar.timegm(heard) > began
        return False

    process.wait_until(reported, READY_TIMEOUT, f"{one.name} to be Ready", alive=[one.component])
