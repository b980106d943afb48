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
from failure import Failure
from kubernetes import BREAKPOINTS, JOBS, PODS, Failed, Kubernetes, condition, ready, wait_for
from podlogs import PodLogs
from ranks import Ranks, process_of, rank_processes
from stepjournal import cluster_argument, first_behind, journals_in_logs, last_committed, life_faults, read_journals
from steploss import StepLoss
from story import Stopwatch, Story, write_report
from timeline import milliseconds_since
from workspace import CLAIM, checkpoint_folder, make_workspace, remove_workspace

JOB, PLAIN = "digits", "digits-plain"
# Enough that a fault in the middle is in the middle; few enough that both jobs end soon beside each other.
STEPS = 200


def add_arguments(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("on a cluster")
    group.add_argument(
        "--context",
        metavar="NAME",
        help="a kubeconfig context instead of the embedded cluster (kind-NAME is loaded with the images)",
    )
    group.add_argument("--installed", action="store_true", help="take cluster, images and chart as they are")
    group.add_argument(
        "--pod",
        type=int,
        choices=(0, 1),
        default=0,
        help="which of the two pods is hit; 0 coordinates the save (default 0)",
    )
    group.add_argument(
        "--namespace",
        default="rekindle-demo",
        metavar="NAME",
        help="made for the demo and deleted after it (default rekindle-demo)",
    )


def run(arguments: argparse.Namespace, story: Story) -> int:
    """The exit code. Failure says what did not hold."""
    if arguments.fault == "sigkill" and arguments.context:
        raise Failure(
            "--fault sigkill kills from the node, which only the embedded cluster lets us do; leave --context out"
        )
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
        report["seconds"] = round(watch.seconds, 1)
        write_report(arguments.report, report)
        if report["faults"]:
            raise Failure(f"{'; '.join(report['faults'])}. Report: {arguments.report}")
        if arguments.keep:
            story.say(f"Kept: namespace {arguments.namespace}, logs in {folder}")
        story.say(f"Nothing was lost. {watch.seconds:.0f} s in all; report: {arguments.report}")
    return 0


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
        status = breakpoint_["status"]
        timeline = self._timeline(at, old, new, moment)
        for name in (JOB, PLAIN):
            self._wait_completed(name)
        self.story.say("[4/4] Both jobs have ended")
        self.story.say()
        self._tell(victim, step_at_fault, timeline)
        return self._prove(breakpoint_, step_at_fault, self._steps(status["step"], old, new), timeline, extra)

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

    def _timeline(self, at: float, old: dict, new: dict, restored: float) -> list[dict]:
        entries = []

        def add(moment: float | None, event: str, text: str) -> None:
            if moment is not None:
                entries.append({"milliseconds": milliseconds_since(at, moment, text), "event": event, "text": text})

        uids = {pod["metadata"]["uid"] for pod in old.values()}
        for event in self.logs.recovery_events(old):
            add(event.at, event.name, event.text)
        gone = [
            moment for moment, type_, pod in self.pods.events if type_ == "DELETED" and pod["metadata"]["uid"] in uids
        ]
        add(max(gone, default=None), "pods_gone", "the old pods are gone")
        back = []
        for pod in new.values():
            uid = pod["metadata"]["uid"]
            back.append(
                next(moment for moment, _, seen in self.pods.events if seen["metadata"]["uid"] == uid and ready(seen))
            )
        add(max(back), "pods_back", "the new pods run")
        first = self.logs.first_step(new)
        add(first.at, "first_step", f"training goes on with step {first.step}")
        add(restored, "restored", "the Breakpoint says Restored")
        return sorted(entries, key=lambda entry: entry["milliseconds"])

    def _tell(self, victim: dict, step: int, timeline: list[dict]) -> None:
        what = {
            "evict": "eviction of",
            "delete": "deletion of",
            "sigkill": f"SIGKILL to the {self.arguments.target} in",
        }[self.arguments.fault]
        if self.arguments.fault == "sigkill" and self.arguments.target == "sidecar":
            what = "eviction of"
        self.story.say("  since the fault")
        self.story.say(f"  {0.0:>9.1f} ms  {what} pod {victim['metadata']['name']}, which trains at step {step}")
        for entry in timeline:
            self.story.say(f"  {entry['milliseconds']:>9.1f} ms  {entry['text']}")
        self.story.say()

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

    def _hash(self, name: str, file: str) -> str:
        """By a program that shares no code with what wrote the file, in a pod of its own that sees the claim."""
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
                        "name": "hash",
                        "image": shipped.DIGITS_IMAGE,
                        "imagePullPolicy": "IfNotPresent",
                        "command": ["/usr/bin/hash_tensors", f"/results/{file}"],
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
        text = self.kubernetes.logs(self.namespace, name, "hash").strip()
        if self.kubernetes.get(PODS, self.namespace, name)["status"]["phase"] != "Succeeded":
            raise Failure(f"the final state {file} cannot be hashed: {text}")
        return text

    def _steps(self, saved: int, old: dict, new: dict) -> StepLoss:
        """Read when both jobs have ended, and with them every process that could have made a step."""
        ranks = 4
        if self.kubernetes.embedded:
            journals = read_journals(checkpoint_folder(self.namespace), ranks, f"{JOB}-")
        else:
            journals = journals_in_logs([*self.logs.steps(old), *self.logs.steps(new)], ranks)
        lived = self.logs.first_step(new).attempt - 1
        behind = first_behind(journals, lived).step
        self.life_faults = life_faults(journals, {behind}, STEPS)
        return StepLoss(last_committed(journals, lived), saved, behind)

    def _prove(
        self,
        breakpoint_: dict,
        step_at_fault: int,
        steps: StepLoss,
        timeline: list[dict],
        extra: dict,
    ) -> dict:
        expected, actual = (
            self._hash("hash-undisturbed", f"{PLAIN}.safetensors"),
            self._hash("hash-disturbed", f"{JOB}.safetensors"),
        )
        faults = [*steps.faults(), *self.life_faults]
        if steps.last_step_committed < step_at_fault:
            faults.append(
                f"step {step_at_fault} was seen before the fault, but the journals end with step {steps.last_step_committed}"
            )
        if expected != actual:
            faults.append("the final states differ; expected the same SHA-256 over all parameters and moments")
        self.story.say("  Proof")
        for line in steps.lines(f"Breakpoint {breakpoint_['metadata']['name']}"):
            self.story.say(line)
        self.story.say(f"    final state, undisturbed          {expected}")
        self.story.say(f"    final state, disturbed            {actual}")
        self.story.say()
        return {
            "mode": "cluster",
            "fault": self.arguments.fault,
            "target": self.arguments.target if self.arguments.fault == "sigkill" else "pod",
            "step_at_fault": step_at_fault,
            **steps.report(),
            "weights_sha256": actual,
            "weights_sha256_undisturbed": expected,
            "faults": faults,
            "breakpoint": breakpoint_["metadata"]["name"],
            "timeline": [{"milliseconds": 0.0, "event": "fault"}]
            + [{key: entry[key] for key in ("milliseconds", "event")} for entry in timeline],
            **extra,
        }
