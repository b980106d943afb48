"""The example job as a user applies it (docs/examples/digits), with what a test changes in it."""

import copy
import json

from kubernetes import ROOT

EXAMPLES = ROOT / "docs" / "examples" / "digits"

_read = {}


def example(kubernetes, file):
    """job.yaml or plain.yaml as an object; kubectl reads the YAML."""
    if file not in _read:
        text = (EXAMPLES / file).read_text()
        _read[file] = json.loads(kubernetes.kubectl("create", "--dry-run=client", "-o", "json", "-f", "-", text=text))
    return copy.deepcopy(_read[file])


def digits_job(
    kubernetes,
    namespace,
    *,
    file="job.yaml",
    name=None,
    steps=800,
    replicas=None,
    ranks_per_pod=None,
    policies=None,
    cpu_limit=None,
    annotations=None,
    more_arguments=(),
):
    """`policies`: {event: action}, empty for none, None as the example has them. `annotations`: beside the example's
    own."""
    job = example(kubernetes, file)
    job["metadata"]["namespace"] = namespace
    if name is not None:
        job["metadata"]["name"] = name
    job["metadata"]["annotations"] = {**job["metadata"].get("annotations", {}), **(annotations or {})}
    spec, task = job["spec"], job["spec"]["tasks"][0]
    container = task["template"]["spec"]["containers"][0]
    container["args"] = [
        f"--steps={steps}" if word.startswith("--steps=") else word for word in container["args"]
    ] + list(more_arguments)
    if replicas is not None:
        task["replicas"] = spec["minAvailable"] = replicas
    if ranks_per_pod is not None:
        job["metadata"]["annotations"]["rekindle.dev/ranks-per-pod"] = str(ranks_per_pod)
        command = container["command"]
        command[command.index("-n") + 1] = str(ranks_per_pod)
    if policies is not None:
        spec["policies"] = [{"event": event, "action": action} for event, action in policies.items()]
        if not policies:
            del spec["policies"]
    if cpu_limit is not None:
        container["resources"]["limits"]["cpu"] = cpu_limit
        container["resources"]["requests"]["cpu"] = "50m"
    return job
