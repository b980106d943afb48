"""kubectl as a person uses it: what it prints is part of what is tested."""

import dataclasses
import json

from digitsjob import digits_job
from stage import expect


@dataclasses.dataclass(frozen=True)
class Answer:
    accepted: bool
    object: dict  # as it would be stored
    errors: str  # standard error: warnings, or why it was refused


def example_job(scene, edit=None, **changes):
    """The example, after edit(job, container)."""
    job = digits_job(scene.kubernetes, scene.namespace, **changes)
    if edit is not None:
        edit(job, job["spec"]["tasks"][0]["template"]["spec"]["containers"][0])
    return job


def create(scene, object_, dry=True):
    """kubectl create; dry: the server decides as ever and stores nothing."""
    words = ["create", "-f", "-", "-o", "json"] + (["--dry-run=server"] if dry else [])
    done = scene.kubernetes.kubectl(*words, text=json.dumps(object_), check=False)
    return Answer(done.returncode == 0, json.loads(done.stdout) if done.returncode == 0 else {}, done.stderr.strip())


def accepted(scene, object_, dry=True):
    answer = create(scene, object_, dry)
    expect(answer.accepted, f"expected the job to be admitted; it was refused: {answer.errors}")
    return answer


def refused(scene, object_, *words):
    """Refused by our webhook, in a sentence with these words."""
    answer = create(scene, object_)
    expect(not answer.accepted, f"expected the job to be refused with {', '.join(words)}; it was admitted")
    expect(
        "jobs.rekindle.dev" in answer.errors,
        f"expected our webhook to refuse it, and not somebody else: {answer.errors}",
    )
    missing = [word for word in words if word not in answer.errors]
    expect(not missing, f"expected the refusal to say {missing}: {answer.errors}")


def template(job):
    return job["spec"]["tasks"][0]["template"]
