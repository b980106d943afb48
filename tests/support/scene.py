"""One case's own corner of the cluster: a namespace with storage, everything that happened in it, and its end."""

import contextlib
import dataclasses
import threading
import time

import digitsjob
import installation
import workspace
from kubernetes import BREAKPOINTS, EVENTS, JOBS, PODS, ApiError, condition, ready, wait_for
from ranks import Ranks, logged_steps
from stepjournal import cluster_argument, journals_in_logs, read_journals

# For cases whose jobs are not meant to end by themselves.
ENDLESS = 1_000_000
# So that several jobs beside each other leave two cores something for the cluster.
CPU_LIMIT = "300m"


@dataclasses.dataclass(frozen=True)
class Recovery:
    breakpoint: dict | None
    pods: dict  # the new ones, by name
    first_step: int  # by the training program's own log
    attempt: int  # that it belongs to

    @property
    def status(self):
        return self.breakpoint["status"]


class Scene:
    def __init__(self, kubernetes, stage, name, level, folder):
        self.kubernetes = kubernetes
        self.namespace = f"rk-{stage}-{name.replace('_', '-')}"[:63].rstrip("-")
        self.level = level
        self.folder = folder
        self.began = time.time()
        self.losses = []  # a StepLoss for each recovery that was counted
        self._followers = {}
        self._lock = threading.Lock()
        self._ended = level is None
        self._finished = level is None
        self.pods = self.breakpoints = None

    def begin(self):
        if self.level is None:
            return
        workspace.remove_workspace(self.kubernetes, self.namespace)
        workspace.make_workspace(self.kubernetes, self.namespace, self.level)
        self.ranks = Ranks(self.kubernetes, self.namespace)
        self.pods = self.kubernetes.watch(PODS, self.namespace, on_event=self._follow)
        self.breakpoints = self.kubernetes.watch(BREAKPOINTS, self.namespace)

    # --- acting

    def submit(self, **changes):
        """The example job with these changes; long and modest unless they say otherwise."""
        name = changes.get("name") or "digits"
        more = [*changes.pop("more_arguments", []), cluster_argument(name)]
        job = digitsjob.digits_job(
            self.kubernetes,
            self.namespace,
            **{"steps": ENDLESS, "cpu_limit": CPU_LIMIT, "more_arguments": more, **changes},
        )
        self.kubernetes.create(JOBS, self.namespace, job)
        return job["metadata"]["name"]

    def training(self, job="digits", *, other_than=None, pods=2, steps=5, seconds=150):
        """All pods of the job by name, once they are Ready and have made so many steps since."""
        unwanted = {pod["metadata"]["uid"] for pod in (other_than or {}).values()}
        deadline = time.monotonic() + seconds

        def running():
            found = [
                pod for pod in self.kubernetes.pods_of(self.namespace, job) if pod["metadata"]["uid"] not in unwanted
            ]
            return found if len(found) == pods and all(ready(pod) for pod in found) else None

        found = {
            pod["metadata"]["name"]: pod
            for pod in wait_for(running, seconds, f"{pods} pods of {job} to be Ready", pause=0.3)
        }
        begin = wait_for(
            lambda: self.last_step(found), max(5, deadline - time.monotonic()), f"job {job} to train", pause=0.3
        )
        self.trains_on(found, begin, steps, max(10, deadline - time.monotonic()))
        return found

    def trains_on(self, pods, from_step, steps=5, seconds=60):
        wait_for(
            lambda: self.last_step(pods) >= from_step + steps,
            seconds,
            f"training to go beyond step {from_step + steps}",
            pause=0.3,
        )

    def last_step(self, pods):
        return self.ranks.last_step(pods)

    def first_step(self, pods):
        return self.first_logged(pods)["step"]

    def first_logged(self, pods):
        """The line of the first step, which has its attempt too."""
        return wait_for(lambda: self.ranks.first_step(pods), 30, "the first step in the new pods' logs")

    # --- looking

    def job(self, name="digits"):
        return self.kubernetes.get(JOBS, self.namespace, name)

    def phase(self, name="digits"):
        return ((self.job(name) or {}).get("status", {}).get("state") or {}).get("phase", "")

    def reached(self, phase, name="digits", seconds=120):
        wait_for(lambda: self.phase(name) == phase, seconds, f"job {name} to be {phase}", pause=0.3)

    def breakpoint_list(self, job=None):
        return [
            one
            for one in self.kubernetes.list(BREAKPOINTS, self.namespace)
            if job is None or one["spec"]["jobRef"]["name"] == job
        ]

    def events(self, name="digits", ours=True):
        """Events about the Job: ours only, or everybody's."""
        return [
            event
            for event in self.kubernetes.list(EVENTS, self.namespace)
            if event.get("regarding", {}).get("name") == name
            and event["regarding"].get("kind") == "Job"
            and (not ours or event.get("reportingController") == "rekindle.dev/operator")
        ]

    def restored(self, job="digits", *, beyond=(), seconds=150):
        """The Breakpoint of the job that says Restored and is none of `beyond` (names)."""
        return self.breakpoints.first(
            lambda type_, one: (
                type_ != "DELETED"
                and one["spec"]["jobRef"]["name"] == job
                and one["metadata"]["name"] not in beyond
                and (condition(one, "Restored") or {}).get("status") == "True"
            ),
            seconds,
            f"a Breakpoint of {job} to be Restored",
        )[1]

    def recovered(self, old, job="digits", *, beyond=(), pods=2, seconds=150):
        """The job trains again, in pods other than `old`."""
        one = self.restored(job, beyond=beyond, seconds=seconds)
        return self.resumed(old, job, pods=pods, seconds=seconds, breakpoint_=one)

    def resumed(self, old, job="digits", *, pods=2, seconds=150, breakpoint_=None):
        """The same where there need not be a Breakpoint."""
        new = self.training(job, other_than=old, pods=pods, seconds=seconds)
        self.wait_ended(old)
        first = self.first_logged(new)
        return Recovery(breakpoint_, new, first["step"], first["attempt"])

    def wait_ended(self, pods, seconds=90):
        """Until nothing of these pods is there, and with them none of their processes."""
        uids = {pod["metadata"]["uid"] for pod in pods.values()}
        wait_for(
            lambda: not uids & {pod["metadata"]["uid"] for pod in self.kubernetes.list(PODS, self.namespace)},
            seconds,
            f"the old pods {', '.join(pods)} to be gone",
            pause=0.3,
        )

    def journals(self, job, ranks):
        """What each rank of the job has committed, by its own account; to be read for a life when its pods have
        ended."""
        if self.kubernetes.embedded:
            return read_journals(workspace.checkpoint_folder(self.namespace), ranks, f"{job}-")
        logs = [path.read_text(errors="replace") for path in self.folder.glob(f"{job}-*-worker.log")]
        return journals_in_logs([entry for text in logs for entry in logged_steps(text)], ranks)

    def deletions(self, pods):
        """Of these pods: name -> the grace seconds that the deletion gave. The kubelet ends a pod with a second one of
        0 seconds when nothing of it runs any more."""
        uids, graces = {pod["metadata"]["uid"] for pod in pods.values()}, {}
        for _, _, one in list(self.pods.events):
            if one["metadata"]["uid"] in uids and one["metadata"].get("deletionTimestamp"):
                graces.setdefault(one["metadata"]["name"], one["metadata"]["deletionGracePeriodSeconds"])
        return graces

    # --- keeping and ending

    def _follow(self, type_, pod):
        """Logs go with their pods, so they are followed while these live; a container that is restarted is followed
        again."""
        status = pod.get("status", {})
        for one in [*status.get("initContainerStatuses", []), *status.get("containerStatuses", [])]:
            state, key = one.get("state", {}), (pod["metadata"]["uid"], one["name"], one.get("containerID"))
            with self._lock:
                if (
                    type_ == "DELETED"
                    or self._ended
                    or key in self._followers
                    or not ("running" in state or "terminated" in state)
                ):
                    continue
                path = self.folder / f"{pod['metadata']['name']}-{pod['metadata']['uid'][:8]}-{one['name']}.log"
                self._followers[key] = self.kubernetes.follow_log(
                    self.namespace, pod["metadata"]["name"], one["name"], path
                )

    def dump(self):
        """What helps to understand a failure, into the case's folder."""

        def write(name, *words):
            done = self.kubernetes.kubectl(*words, check=False)
            (self.folder / name).write_text(done.stdout + done.stderr)

        if self.level is not None:
            write(
                "objects.yaml",
                "-n",
                self.namespace,
                "get",
                "jobs.batch.volcano.sh,podgroups,breakpoints,pods",
                "-o",
                "yaml",
            )
            write(
                "overview.txt",
                "-n",
                self.namespace,
                "get",
                "jobs.batch.volcano.sh,podgroups,breakpoints,pods,pvc",
                "-o",
                "wide",
            )
            write("describe.txt", "-n", self.namespace, "describe", "pods")
            write("events.txt", "-n", self.namespace, "get", "events", "--sort-by=.metadata.creationTimestamp")
            if self.breakpoints is not None:
                (self.folder / "breakpoints-seen.txt").write_text(
                    "\n".join(
                        f"{moment:.3f} {type_} {one['metadata']['name']} {one.get('status', {})}"
                        for moment, type_, one in self.breakpoints.events
                    )
                )
        write(
            "operator.log", "-n", installation.NAMESPACE, "logs", "-l", "app.kubernetes.io/name=rekindle", "--tail=-1"
        )
        write(
            "operator-previous.log",
            "-n",
            installation.NAMESPACE,
            "logs",
            "-l",
            "app.kubernetes.io/name=rekindle",
            "--tail=-1",
            "--previous",
        )
        write("operator-pods.txt", "-n", installation.NAMESPACE, "describe", "pods")

    def begin_end(self):
        """Ends all pods soon and asks for the namespace's end; nothing is waited for. Safe twice."""
        with self._lock:
            if self._ended:
                return
            self._ended = True
        for each in (self.pods, self.breakpoints, *self._followers.values()):
            if each is not None:
                each.close()
        with contextlib.suppress(ApiError, OSError):  # a cluster that is gone by now has nothing left to end
            workspace.begin_removal(self.kubernetes, self.namespace)
            for pod in self.kubernetes.list(PODS, self.namespace):
                self.kubernetes.delete(PODS, self.namespace, pod["metadata"]["name"], grace_seconds=1)

    def finish_end(self):
        if not self._finished:
            self._finished = True
            workspace.finish_removal(self.kubernetes, self.namespace)
