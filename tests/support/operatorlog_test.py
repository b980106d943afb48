"""What is found in the operators' logs, with a cluster that tells of pods as the test says."""

import pathlib
import tempfile

from operatorlog import OperatorLogs
from storytests import outcomes_of_stories

HEALTHY = '{"level":"info","msg":"job digits is Aborted"}\n'
BUG = "rekindle: bug: at != end does not hold at common/base/x.cc:34; please report it"


class Cluster:
    """Says `text` in every log that is followed."""

    def __init__(self, text):
        self._text = text
        self.closed = 0

    def watch(self, kind, namespace, on_event):
        self.tell = on_event
        return self

    def follow_log(self, namespace, pod, container, path):
        if self._text is not None:
            path.write_text(self._text)
        return self

    def close(self):
        self.closed += 1


def operator(*, ended_with=None, restarts=0, name="rekindle"):
    last = {} if ended_with is None else {"terminated": {"exitCode": ended_with}}
    status = {
        "name": "operator",
        "containerID": f"container-{restarts}",
        "restartCount": restarts,
        "state": {"running": {}},
        "lastState": last,
    }
    return {
        "metadata": {"name": "rekindle-operator-abcde", "labels": {"app.kubernetes.io/name": name}},
        "status": {"containerStatuses": [status]},
    }


def faults_of(text, *pods):
    """What is found, and what is said of it all."""
    with tempfile.TemporaryDirectory() as folder:
        cluster = Cluster(text)
        logs = OperatorLogs(cluster, pathlib.Path(folder))
        for pod in pods:
            cluster.tell("MODIFIED", pod)
        found, summary = logs.faults(), logs.summary() if text is not None else ""
        logs.close()
        return found, summary, cluster.closed


def a_healthy_operator_has_no_faults():
    yield faults_of(HEALTHY, operator()), ([], "1 lines of 1 containers", 2)
    # Killed by a test, and there again; the same container is told of twice.
    yield (
        faults_of(HEALTHY, operator(), operator(), operator(ended_with=137, restarts=1))[:2],
        (
            [],
            "2 lines of 2 containers",
        ),
    )


def what_a_process_says_that_ends_itself_is_a_fault():
    yield faults_of(f"{HEALTHY}{BUG}\n", operator())[0], [f"operator-abcde-0.log: {BUG}"]


def an_end_by_a_signal_is_a_fault():
    yield faults_of(HEALTHY, operator(ended_with=139))[0], ["rekindle-operator-abcde ended with SIGSEGV"]


def a_log_of_which_nothing_was_read_is_a_fault():
    nothing = ["nothing was read of what an operator said (operator-abcde-0.log)"]
    yield faults_of("", operator())[0], nothing
    yield faults_of(None, operator())[0], nothing


def no_operator_is_a_fault():
    yield faults_of(HEALTHY)[0], ["no operator was seen in rekindle-system"]
    yield faults_of(HEALTHY, operator(name="another"))[0], ["no operator was seen in rekindle-system"]


def outcomes():
    return outcomes_of_stories(
        "operator-logs",
        (
            a_healthy_operator_has_no_faults,
            what_a_process_says_that_ends_itself_is_a_fault,
            an_end_by_a_signal_is_a_fault,
            a_log_of_which_nothing_was_read_is_a_fault,
            no_operator_is_a_fault,
        ),
    )
