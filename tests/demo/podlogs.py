"""The logs of a job's pods, followed while they live: a log is gone with its pod."""

import dataclasses
import json
import pathlib
import subprocess
import time

from failure import Failure
from kubernetes import Kubernetes, wait_for, wall
from polling import poll
from timeline import ReportedEvent

CONTAINERS = ("worker", "rekindle-sidecar")

# Lines of the sidecars' logs that make the story of a recovery: (msg, state) to (event, text). The first of each after
# the fault counts.
_TOLD = {
    ("a preStop hook asks for a breakpoint", None): ("hook", "the preStop hook asks for a breakpoint"),
    ("a rank died", None): ("rank_died", "the death of a rank is noticed"),
    ("breakpoint", "collecting"): ("hold", "every rank is asked to hold still"),
    ("breakpoint", "writing"): ("agreed", "the living ranks agree on step {step}"),
    ("breakpoint", "durable"): ("durable", "the checkpoint of step {step} is complete on disk"),
}


@dataclasses.dataclass(frozen=True)
class FirstStep:
    at: float
    step: int
    attempt: int


class PodLogs:
    """`kubectl logs --follow` for each container, into files of `folder`."""

    def __init__(self, kubernetes: Kubernetes, namespace: str, folder: pathlib.Path) -> None:
        self._kubernetes = kubernetes
        self._namespace = namespace
        self._folder = folder
        self._followers: list[subprocess.Popen] = []

    def follow(self, pod: dict) -> None:
        """Again for the same pod when a container of it was restarted: the lines are appended."""
        for container in CONTAINERS:
            with self._file(pod, container).open("ab") as output:
                self._followers.append(
                    self._kubernetes.start_kubectl(
                        "-n",
                        self._namespace,
                        "logs",
                        "--follow",
                        "--timestamps",
                        pod["metadata"]["name"],
                        "-c",
                        container,
                        output=output,
                    )
                )

    def await_ends(self, patience_seconds: float = 20) -> None:
        """Until every container that is followed has ended and all that it said was read."""
        if not poll(lambda: all(one.poll() is not None for one in self._followers), patience_seconds):
            raise Failure(f"{patience_seconds:.0f} s after the end of the job, not all of its logs have come to theirs")

    def close(self) -> None:
        for follower in self._followers:
            follower.terminate()
        for follower in self._followers:
            follower.wait()

    def steps(self, pods: dict) -> list[dict]:
        """What the training program of these pods logged, a step each."""
        return [line for _, line in steps_in(self._lines(pods, "worker"))]

    def recovery_events(self, pods: dict) -> list[ReportedEvent]:
        """What the sidecars of these pods say of the recovery."""
        return recovery_told(self._lines(pods, "rekindle-sidecar"))

    def first_step(self, pods: dict) -> FirstStep:
        """The first step that any rank of these pods made."""
        return wait_for(lambda: first_made(self._lines(pods, "worker")), 30, "the first step in the new pods' logs")

    def _file(self, pod: dict, container: str) -> pathlib.Path:
        return self._folder / f"{pod['metadata']['name']}-{pod['metadata']['uid'][:8]}-{container}.log"

    def _lines(self, pods: dict, container: str) -> list[tuple]:
        offset = time.monotonic() - time.time()
        lines = []
        for pod in pods.values():
            try:
                text = self._file(pod, container).read_text(errors="replace")
            except FileNotFoundError:
                raise Failure(f"the log of pod {pod['metadata']['name']} was not followed") from None
            lines += lines_of(text, offset)
        return lines


def lines_of(text: str, offset: float) -> list[tuple]:
    """(moment, object) of each line that is a JSON object; the rest is for people. `offset`: from seconds since 1970 to
    the clock of the moments."""
    lines = []
    for line in text.splitlines():
        stamp, _, rest = line.partition(" ")
        if not rest.startswith("{"):
            continue
        try:
            entry = json.loads(rest)
            # Our own stamp where there is one: the runtime's is of when it read the line.
            lines.append((wall(entry.get("ts", stamp)) + offset, entry))
        except ValueError:
            continue  # cut short by the end of the pod
    return lines


def steps_in(lines: list[tuple]) -> list[tuple]:
    return [(moment, line) for moment, line in lines if "step" in line and "rank" in line]


def first_made(lines: list[tuple]) -> FirstStep | None:
    made = [FirstStep(moment, line["step"], line["attempt"]) for moment, line in steps_in(lines)]
    return min(made, key=lambda step: (step.step, step.at), default=None)


def recovery_told(lines: list[tuple]) -> list[ReportedEvent]:
    """Each event once. A fault is the only one of its job, so none belongs to another."""
    first: dict[str, ReportedEvent] = {}
    for moment, line in lines:
        name, text = _TOLD.get((line.get("msg"), line.get("state")), (None, ""))
        if name is None or (name in first and first[name].at <= moment):
            continue
        first[name] = ReportedEvent(moment, name, text.format(step=line.get("step")))
    # What dies once the checkpoint is complete is ended on purpose.
    if "rank_died" in first and "durable" in first and first["rank_died"].at > first["durable"].at:
        del first["rank_died"]
    return list(first.values())
