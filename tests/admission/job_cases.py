"""The Job webhook: what is marked, what is left alone, what is refused and in which words."""

import copy

from applying import accepted, create, example_job, refused, template
from kubernetes import EVENTS, JOBS, PODS, wait_for
from operatorpod import operator_has_caught_up
from stage import Cases, expect, expect_equal

CASES = Cases()
case = CASES.case

GATE = {"name": "rekindle.dev/injection"}


def gated(job):
    return GATE in template(job)["spec"].get("schedulingGates", [])


def marked(job):
    return template(job).get("metadata", {}).get("labels", {}).get("rekindle.dev/protected") == "true"


def expect_untouched(scene, label):
    """Stored as it would be without Rekindle: compared with the same job without the label."""

    def labelled(job, _):
        job["metadata"]["labels"].update({"fault-scheduling": label} if label else {})
        if not label:
            del job["metadata"]["labels"]["fault-scheduling"]

    answer = accepted(scene, example_job(scene, labelled))
    plain = accepted(scene, example_job(scene, lambda job, _: job["metadata"]["labels"].pop("fault-scheduling")))
    expect_equal(
        answer.object["spec"],
        plain.object["spec"],
        f"the spec with fault-scheduling: {label}, compared with the one without the label",
    )
    return answer


@case()
def protected_job_is_marked_and_gated(site, scene):
    job = example_job(scene)
    answer = accepted(scene, job)
    stored = answer.object
    expect(
        marked(stored),
        f"the template should carry the label rekindle.dev/protected: {template(stored).get('metadata')}",
    )
    expect(gated(stored), f"the template should have the gate: {template(stored)['spec'].get('schedulingGates')}")
    expect_equal(stored["spec"]["maxRetry"], 100, "maxRetry")
    names = [one["name"] for one in template(stored)["spec"]["containers"]]
    expect_equal(names, ["worker"], "the containers of the template: the sidecar comes with the pod")
    again = accepted(
        scene,
        {
            **stored,
            "metadata": {
                key: value
                for key, value in stored["metadata"].items()
                if key in ("name", "namespace", "labels", "annotations")
            },
        },
    )
    expect_equal(again.object["spec"], stored["spec"], "what a second pass makes of what the first one made")


@case()
def every_task_is_marked(site, scene):
    def two_tasks(job, _):
        second = copy.deepcopy(job["spec"]["tasks"][0])
        second["name"] = "evaluator"
        job["spec"]["tasks"].append(second)
        job["spec"]["minAvailable"] = 4

    stored = accepted(scene, example_job(scene, two_tasks)).object
    for task in stored["spec"]["tasks"]:
        expect(
            task["template"]["metadata"]["labels"].get("rekindle.dev/protected") == "true",
            f"task {task['name']} should be marked",
        )
        expect(GATE in task["template"]["spec"].get("schedulingGates", []), f"task {task['name']} should be gated")


@case()
def force_is_protected_too(site, scene):
    answer = accepted(
        scene, example_job(scene, lambda job, _: job["metadata"]["labels"].update({"fault-scheduling": "force"}))
    )
    expect(marked(answer.object) and gated(answer.object), "a job with force should be marked and gated")


@case()
def max_retry_that_is_higher_stays(site, scene):
    stored = accepted(scene, example_job(scene, lambda job, _: job["spec"].update(maxRetry=500))).object
    expect_equal(stored["spec"]["maxRetry"], 500, "maxRetry")


@case()
def strict_retries_leaves_max_retry(site, scene):
    stored = accepted(
        scene,
        example_job(
            scene, lambda job, _: job["metadata"]["annotations"].update({"rekindle.dev/strict-retries": "true"})
        ),
    ).object
    expect_equal(stored["spec"]["maxRetry"], 3, "maxRetry")
    expect(marked(stored), "it should be protected all the same")


@case()
def pre_stop_hook_of_the_user_is_refused(site, scene):
    def hook(job, container):
        container["lifecycle"] = {"preStop": {"exec": {"command": ["/bin/true"]}}}

    refused(scene, example_job(scene, hook), "preStop", "container worker", "SIGTERM")


@case()
def pod_failed_terminate_job_is_refused_at_the_job(site, scene):
    refused(
        scene,
        example_job(scene, policies={"PodFailed": "TerminateJob"}),
        "PodFailed: TerminateJob",
        "the job",
        "RestartJob",
    )


@case()
def pod_failed_terminate_job_is_refused_at_a_task(site, scene):
    def policy(job, _):
        job["spec"]["tasks"][0]["policies"] = [{"event": "PodFailed", "action": "TerminateJob"}]

    refused(scene, example_job(scene, policy), "PodFailed: TerminateJob", "task worker", "RestartJob")


@case()
def wrong_annotation_values_are_refused(site, scene):
    for name, value in (
        ("deadline-seconds", "soon"),
        ("deadline-seconds", "0"),
        ("deadline-seconds", "3601"),
        ("deadline-seconds", "30s"),
        ("ranks-per-pod", "0"),
        ("ranks-per-pod", "two"),
        ("strict-retries", "yes"),
        ("checkpoint-claim", "Not A Name"),
        ("checkpoint-path", "relative/path"),
    ):
        refused(
            scene,
            example_job(scene, lambda job, _: job["metadata"]["annotations"].update({f"rekindle.dev/{name}": value})),
            f"rekindle.dev/{name}",
            value,
        )


@case()
def job_without_storage_is_refused(site, scene):
    refused(
        scene,
        example_job(scene, lambda job, _: job["metadata"]["annotations"].pop("rekindle.dev/checkpoint-claim")),
        "checkpoint-claim",
        "checkpoint-path",
        "storage.claim",
    )


@case()
def job_with_a_volume_of_its_own_needs_no_claim(site, scene):
    def volume(job, container):
        annotations = job["metadata"]["annotations"]
        del annotations["rekindle.dev/checkpoint-claim"]
        annotations["rekindle.dev/checkpoint-path"] = "/data/checkpoints"
        template(job)["spec"]["volumes"] = [{"name": "mine", "persistentVolumeClaim": {"claimName": "checkpoints"}}]
        container["volumeMounts"] = [{"name": "mine", "mountPath": "/data"}]

    expect(marked(accepted(scene, example_job(scene, volume)).object), "it should be protected")


@case()
def job_without_a_container_is_refused(site, scene):
    def empty(job, _):
        template(job)["spec"]["containers"] = []

    answer = create(scene, example_job(scene, empty))
    expect(
        not answer.accepted and "no container" in answer.errors,
        f"expected a refusal that says so: {answer.errors or 'admitted'}",
    )


@case()
def unknown_value_is_admitted_with_a_warning(site, scene):
    answer = expect_untouched(scene, "gracee")
    expect(
        "Warning:" in answer.errors and '"gracee"' in answer.errors and "without protection" in answer.errors,
        f"kubectl should print a warning: {answer.errors}",
    )
    job = example_job(scene, lambda job, _: job["metadata"]["labels"].update({"fault-scheduling": "gracee"}))
    job["spec"]["tasks"][0]["replicas"] = 0
    job["spec"]["minAvailable"] = 0
    created = create(scene, job, dry=False)
    expect(created.accepted, f"it should be created: {created.errors}")
    wait_for(
        lambda: [event for event in scene.events("digits") if event["reason"] == "NotProtected"],
        30,
        "an event that tells of it on the job",
    )


@case()
def off_and_none_are_untouched(site, scene):
    for label in ("off", "none"):
        answer = expect_untouched(scene, label)
        expect("Warning" not in answer.errors, f"no warning was expected for {label}: {answer.errors}")


@case()
def ignore_action_is_taken_out_with_a_warning(site, scene):
    """MindX DL's example has it, and Volcano's own webhook refuses it."""

    def ignore(job, _):
        job["spec"]["policies"] = [
            {"event": "PodFailed", "action": "Ignore"},
            {"event": "PodEvicted", "action": "RestartJob"},
        ]
        job["spec"]["tasks"][0]["policies"] = [{"event": "TaskCompleted", "action": "Ignore"}]

    answer = accepted(scene, example_job(scene, ignore))
    expect_equal(
        [policy["action"] for policy in answer.object["spec"]["policies"]],
        ["RestartJob"],
        "the job's policies that are left",
    )
    expect(not answer.object["spec"]["tasks"][0].get("policies"), "the task's policies should be gone")
    expect(
        "Warning:" in answer.errors and "Ignore" in answer.errors, f"kubectl should print a warning: {answer.errors}"
    )


@case()
def short_grace_is_warned_of(site, scene):
    def short(job, _):
        template(job)["spec"]["terminationGracePeriodSeconds"] = 5

    answer = accepted(scene, example_job(scene, short))
    expect(
        "terminationGracePeriodSeconds is raised from 5 to 75" in answer.errors,
        f"kubectl should print a warning: {answer.errors}",
    )


@case()
def dry_run_stores_nothing(site, scene):
    accepted(scene, example_job(scene))
    operator_has_caught_up(scene)  # what would be wrong has come by now
    expect_equal(scene.kubernetes.list(JOBS, scene.namespace), [], "jobs after a dry run")
    expect_equal(scene.kubernetes.list(PODS, scene.namespace), [], "pods after a dry run")
    secrets = [
        one["metadata"]["name"]
        for one in scene.kubernetes.list("api/v1/namespaces/{namespace}/secrets", scene.namespace)
    ]
    expect_equal(secrets, [], "Secrets after a dry run")
    events = [one for one in scene.kubernetes.list(EVENTS, scene.namespace) if one["regarding"]["kind"] != "Breakpoint"]
    expect_equal(events, [], "events after a dry run")


@case()
def labelled_later_is_told_and_left_alone(site, scene):
    """A running job that is labelled afterwards keeps its pods as they are, and its owner learns why nothing protects
    it."""

    def plain(job, container):
        job["metadata"]["labels"].pop("fault-scheduling")
        container["command"], container["args"] = (
            ["/usr/bin/digits"],
            [
                "--spawn=2",
                "--without-rekindle",
                "--connect-seconds=300",
                "--data=/usr/share/digits/digits.csv",
                "--steps=100000",
            ],
        )

    scene.kubernetes.create(JOBS, scene.namespace, example_job(scene, plain, cpu_limit="100m"))
    pods = wait_for(
        lambda: (
            [
                pod
                for pod in scene.kubernetes.pods_of(scene.namespace, "digits")
                if pod["status"].get("phase") == "Running"
            ][1:]
            and scene.kubernetes.pods_of(scene.namespace, "digits")
        ),
        60,
        "its pods to run",
    )
    scene.kubernetes.patch(JOBS, scene.namespace, "digits", {"metadata": {"labels": {"fault-scheduling": "grace"}}})
    wait_for(
        lambda: [event for event in scene.events("digits") if event["reason"] == "NotProtected"],
        30,
        "an event NotProtected on the job",
    )
    after = scene.kubernetes.pods_of(scene.namespace, "digits")
    expect_equal({pod["metadata"]["uid"] for pod in after}, {pod["metadata"]["uid"] for pod in pods}, "its pods")
