"""`./dev demo`: the whole story on a real Kubernetes with a real Volcano, the embedded one or any context."""

import argparse
import contextlib
import os
import pathlib
import shutil
import signal
import subprocess
import time

import shipped
from building import REPOSITORY
from digitsjob import digits_job
from endstates import EndStates, State
from failure import Failure
from kubernetes import BREAKPOINTS, JOBS, PODS, Failed, Kubernetes, condition, ready, wait_for
from podlogs import PodLogs
from podtimes import gone_and_back
from proof import Observed, Recovery
from ranks import Ranks, process_of, rank_processes
from stepjournal import cluster_argument, first_behind, journals_in_logs, last_committed, read_journals
from steploss import StepLoss
from story import Stopwatch, Story, conclude
from timeline import CLUSTER_EVENTS, Entry, ReportedEvent, entries_of, timeline_lines
from workspace import CLAIM, checkpoint_folder, make_workspace, remove_workspace

JOB, PLAIN = "digits", "digits-plain"
# Enough that a fault in the middle is in the middle; few enough that both jobs end soon beside each other.
STEPS = 200


def run(arguments: argparse.Namespace, story: Story) -> None:
    """Failure says what did not hold."""
    watch = Stopwatch()
    arguments.report.unlink(missing_ok=True)  # a proof that fails must not leave an older one standing
    what = {
        "evict": "one of the pods is evicted through the API",
        "delete": "one of the pods is deleted",
        "sigkill": f"the {arguments.target} in one of the pods is killed from its node (SIGKILL)",
    }[arguments.fault]
    story.say(
        "Rekindle demo. A Volcano job of two pods with two ranks each trains a small network on real data; in the middle of it"
    )
    story.say(f"{what}. The end state has to equal, bit for bit, that of an unlabelled job that trains beside it.")
    story.say()
    with contextlib.ExitStack() as stack:
        if not arguments.context and not arguments.keep and not _is_up():
            stack.callback(_take_down)  # what we start we also end
        if not arguments.installed:
            _set_up(arguments, story)
        kubernetes = stack.enter_context(_connected(arguments.context))
        folder = REPOSITORY / "build" / "demo" / f"cluster-{os.getpid()}"
        folder.mkdir(parents=True)
        if not arguments.keep:
            stack.callback(shutil.rmtree, folder, ignore_errors=True)
            stack.callback(remove_workspace, kubernetes, arguments.namespace)
        try:
            report = Demonstration(kubernetes, arguments, folder, story).run()
        except Failed as failed:
            raise Failure(str(failed)) from None
        if arguments.keep:
            story.say(f"Kept: namespace {arguments.namespace}, logs in {folder}")
        conclude({**report, "seconds": round(watch.seconds, 1)}, arguments.report, story)


def _connected(context: str | None) -> Kubernetes:
    try:
        return Kubernetes(context)
    except Failed as failed:
        raise Failure(str(failed)) from None


def _is_up() -> bool:
    return (
        subprocess.run([REPOSITORY / "tests/cluster/cluster", "status"], capture_output=True, check=False).returncode
        == 0
    )


def _take_down() -> None:
    subprocess.run([REPOSITORY / "tests/cluster/cluster", "down"], capture_output=True, check=False)


def _set_up(arguments: argparse.Namespace, story: Story) -> None:
    """Cluster, images and chart, with progress: the first time this builds Kubernetes and Volcano."""
    step = Stopwatch()
    story.say(
        "[1/4] Cluster, images and chart (the first time Kubernetes and Volcano are built, about ten minutes; afterwards seconds)"
    )
    command = [REPOSITORY / "deploy" / "install"] + (["--context", arguments.context] if arguments.context else [])
    lines: list[str] = []
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", cwd=REPOSITORY
    )
    assert process.stdout is not None
    for line in process.stdout:
        lines.append(line)
        story.progress(line.strip())
    if process.wait() != 0:
        raise Failure("setting up failed:\n" + "".join(lines[-15:]))
    story.say(f"[1/4] Cluster, images and chart: ready after {step.seconds:.0f} s")


class Demonstration:
    def __init__(
        self, kubernetes: Kubernetes, arguments: argparse.Namespace, folder: pathlib.Path, story: Story
    ) -> None:
        self.kubernetes = kubernetes
        self.arguments = arguments
        self.namespace = arguments.namespace
        self.story = story
        self.logs = PodLogs(kubernetes, self.namespace, folder)
        self.ranks = Ranks(kubernetes, self.namespace)

    def run(self) -> dict:
        remove_workspace(self.kubernetes, self.namespace)
        make_workspace(self.kubernetes, self.namespace)
        with contextlib.ExitStack() as stack:
            self.pods = self.kubernetes.watch(PODS, self.namespace)
            stack.callback(self.pods.close)
            self.breakpoints = self.kubernetes.watch(BREAKPOINTS, self.namespace)
            stack.callback(self.breakpoints.close)
            stack.callback(self.logs.close)
            return self._run()

    def _run(self) -> dict:
        step = Stopwatch()
        for file, more in (("job.yaml", [cluster_argument(JOB)]), ("plain.yaml", [])):
            job = digits_job(self.kubernetes, self.namespace, file=file, steps=STEPS, more_arguments=more)
            self.kubernetes.create(JOBS, self.namespace, job)
        old = {pod["metadata"]["name"]: pod for pod in self._running_pods(JOB)}
        for pod in old.values():
            self.logs.follow(pod)
        wait_for(lambda: self.ranks.last_step(old) >= STEPS // 5, 120, f"job {JOB} to train", pause=0.2)
        self.story.say(
            f"[2/4] Two jobs train beside each other, {JOB} (protected) and {PLAIN} (not), since {step.seconds:.0f} s"
        )

        victim = old[f"{JOB}-worker-{self.arguments.pod}"]
        extra = {}
        if self.arguments.fault == "sigkill" and self.arguments.target == "sidecar":
            extra = self._kill_sidecar(victim, old)
        step_at_fault = self.ranks.last_step(old)
        at = self._break(victim, old)
        self.story.say(f"[3/4] Broke {victim['metadata']['name']}; waiting for the job to come back")

        new = {pod["metadata"]["name"]: pod for pod in self._running_pods(JOB, other_than=old)}
        for pod in new.values():
            self.logs.follow(pod)
        moment, breakpoint_ = self.breakpoints.first(
            lambda type_, object_: (
                type_ != "DELETED" and (condition(object_, "Restored") or {}).get("status") == "True"
            ),
            120,
            f"a Breakpoint of {JOB} to be Restored",
        )
        timeline = self._timeline(at, old, new, moment)
        for name in (JOB, PLAIN):
            self._wait_completed(name)
        self.story.say("[4/4] Both jobs have ended")
        self.story.say()
        what = self._fault_in_words(victim, step_at_fault)
        observed = self._observe(what, step_at_fault, breakpoint_, timeline, old, new)
        for line in timeline_lines(what, timeline) + observed.lines():
            self.story.say(line)
        return {
            "mode": "cluster",
            "fault": self.arguments.fault,
            "target": self.arguments.target if self.arguments.fault == "sigkill" else "pod",
            **observed.report(),
            "breakpoint": breakpoint_["metadata"]["name"],
            **extra,
        }

    # setting the scene

    def _running_pods(self, job: str, other_than: dict | None = None) -> list[dict]:
        """Both pods of the job, Ready; the moment at which each became so is in the watch."""
        unwanted = {pod["metadata"]["uid"] for pod in (other_than or {}).values()}

        def found() -> list[dict] | None:
            pods = [
                pod for pod in self.kubernetes.pods_of(self.namespace, job) if pod["metadata"]["uid"] not in unwanted
            ]
            return pods if len(pods) == 2 and all(ready(pod) for pod in pods) else None

        return wait_for(found, 180, f"both pods of {job} to run", pause=0.2)

    # breaking it

    def _break(self, victim: dict, old: dict) -> float:
        name = victim["metadata"]["name"]
        fault, target = self.arguments.fault, self.arguments.target
        if fault == "delete":
            at = time.monotonic()
            self.kubernetes.delete(PODS, self.namespace, name)
        elif fault == "evict" or target == "sidecar":
            at = time.monotonic()
            self.kubernetes.evict(self.namespace, name)
        else:
            pid = process_of(self.kubernetes, self.namespace, name, target)
            at = time.monotonic()
            os.kill(pid, signal.SIGKILL)
        return at

    def _kill_sidecar(self, victim: dict, old: dict) -> dict:
        """The sidecar dies and comes back while training goes on; then the pod is evicted to show that it protects
        again."""
        name = victim["metadata"]["name"]
        ranks = rank_processes(self.kubernetes, self.namespace, name)
        before = self.ranks.last_step(old)
        at = time.monotonic()
        os.kill(process_of(self.kubernetes, self.namespace, name, "sidecar"), signal.SIGKILL)

        def back() -> bool:
            pod = self.kubernetes.get(PODS, self.namespace, name)
            sidecar = next(one for one in pod["status"]["initContainerStatuses"] if one["name"] == "rekindle-sidecar")
            return sidecar["restartCount"] > 0 and sidecar.get("started") and ready(pod)

        wait_for(back, 60, f"the sidecar of {name} to come back", pause=0.1)
        seconds = time.monotonic() - at
        wait_for(lambda: self.ranks.last_step(old) > before + 5, 30, "training to go on without its sidecar", pause=0.1)
        if rank_processes(self.kubernetes, self.namespace, name) != ranks:
            raise Failure(f"the ranks of {name} were restarted with their sidecar; they have to go on undisturbed")
        self.story.say(
            f"      The sidecar was killed at step {before} and is back after {seconds:.1f} s; its ranks went on. Now the pod is evicted."
        )
        self.logs.follow(victim)
        return {"sidecar_killed_at_step": before, "sidecar_back_seconds": round(seconds, 1)}

    # what happened

    def _timeline(self, at: float, old: dict, new: dict, restored: float) -> list[Entry]:
        first = self.logs.first_step(new)
        told = [
            *self.logs.recovery_events(old),
            *gone_and_back(list(self.pods.events), _uids(old), _uids(new)),
            ReportedEvent(first.at, "first_step", f"training goes on with step {first.step}", first.step),
            ReportedEvent(restored, "restored", "the Breakpoint says Restored"),
        ]
        return entries_of(at, told)

    def _fault_in_words(self, victim: dict, step: int) -> str:
        fault, target = self.arguments.fault, self.arguments.target
        what = {"evict": "eviction of", "delete": "deletion of", "sigkill": f"SIGKILL to the {target} in"}[fault]
        if fault == "sigkill" and target == "sidecar":
            what = "eviction of"
        return f"{what} pod {victim['metadata']['name']}, which trains at step {step}"

    def _wait_completed(self, job: str) -> None:
        def phase() -> str:
            return self.kubernetes.get(JOBS, self.namespace, job).get("status", {}).get("state", {}).get("phase", "")

        ended = wait_for(
            lambda: phase() if phase() in ("Completed", "Failed", "Aborted", "Terminated") else None,
            180,
            f"job {job} to end",
            pause=0.5,
        )
        if ended != "Completed":
            raise Failure(f"job {job} ended as {ended}; expected Completed")

    def _state(self, name: str, file: str) -> State:
        """The hash by a program that shares no code with what wrote the file, in a pod of its own that sees the claim."""
        text = self._run_in_pod(f"hash-{name}", ["/usr/bin/hash_tensors", f"/results/{file}"])
        return State(file, text)

    def _initial_state(self) -> State:
        """Where a job ends that makes no step."""
        file = f"{PLAIN}-initial.safetensors"
        self._run_in_pod(
            "initial",
            [
                "/usr/bin/digits",
                "--spawn=1",
                "--without-rekindle",
                "--data=/usr/share/digits/digits.csv",
                "--steps=0",
                f"--output=/results/{file}",
            ],
        )
        return self._state("initial", file)

    def _run_in_pod(self, name: str, command: list[str]) -> str:
        """What it printed. Failure when it did not end well."""
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": self.namespace},
            "spec": {
                "restartPolicy": "Never",
                "securityContext": {
                    "runAsNonRoot": True,
                    "runAsUser": 1000,
                    "supplementalGroups": [64532],
                    "seccompProfile": {"type": "RuntimeDefault"},
                },
                "containers": [
                    {
                        "name": name,
                        "image": shipped.DIGITS_IMAGE,
                        "imagePullPolicy": "IfNotPresent",
                        "command": command,
                        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
                        "volumeMounts": [{"name": "results", "mountPath": "/results"}],
                    }
                ],
                "volumes": [{"name": "results", "persistentVolumeClaim": {"claimName": CLAIM}}],
            },
        }
        self.kubernetes.apply(pod)
        wait_for(
            lambda: self.kubernetes.get(PODS, self.namespace, name)["status"].get("phase") in ("Succeeded", "Failed"),
            60,
            f"pod {name} to end",
        )
        text = self.kubernetes.logs(self.namespace, name, name).strip()
        if self.kubernetes.get(PODS, self.namespace, name)["status"]["phase"] != "Succeeded":
            raise Failure(f"pod {name} failed: {text}")
        return text

    def _observe(
        self, what: str, step_at_fault: int, breakpoint_: dict, timeline: list[Entry], old: dict, new: dict
    ) -> Observed:
        """Read when both jobs have ended, and with them every process that could have made a step."""
        ranks = 4
        if self.kubernetes.embedded:
            journals = read_journals(checkpoint_folder(self.namespace), ranks, f"{JOB}-")
        else:
            self.logs.await_ends()
            journals = journals_in_logs([*self.logs.steps(old), *self.logs.steps(new)], ranks)
        lived = self.logs.first_step(new).attempt - 1
        steps = StepLoss(
            last_step_committed=last_committed(journals, lived),
            step_saved=breakpoint_["status"]["step"],
            first_step_after=first_behind(journals, lived).step,
        )
        saved_where = f"Breakpoint {breakpoint_['metadata']['name']}"
        return Observed(
            steps=STEPS,
            journals=journals,
            recoveries=[Recovery(what, lived, step_at_fault, steps, saved_where)],
            states=EndStates(
                self._initial_state(),
                self._state("undisturbed", f"{PLAIN}.safetensors"),
                self._state("disturbed", f"{JOB}.safetensors"),
            ),
            leftovers=[],  # processes of a pod end with it
            timeline=timeline,
            in_order=CLUSTER_EVENTS,
            anywhere=("pods_back", "restored"),
        )


def _uids(pods: dict) -> set[str]:
    return {pod["metadata"]["uid"] for pod in pods.values()}
