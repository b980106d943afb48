"""The pod webhook: protected pods of every kind run, are Ready and train; all others never see it."""

import shipped
from applying import accepted, example_job, template
from kubernetes import JOBS, PODS, wait_for
from operatorpod import Operator
from stage import Cases, expect, expect_equal

CASES = Cases()
case = CASES.case

HOOK = {"exec": {"command": ["/rekindle/bin/rekindle-hook"]}}
ENDLESS = 1_000_000


def run(scene, edit=None, *, pods=2, **changes):
    """Creates the job for real and waits until it trains: its pods by name."""
    job = example_job(scene, edit, **{"steps": ENDLESS, "cpu_limit": "300m", **changes})
    accepted(scene, job, dry=False)
    return scene.training(job["metadata"]["name"], pods=pods)


def sidecar(pod):
    return pod["spec"]["initContainers"][0]


def main(pod):
    return pod["spec"]["containers"][0]


def environment(container):
    return {one["name"]: one.get("value") for one in container.get("env", [])}


@case()
def protected_pods_run_in_a_restricted_namespace(site, scene):
    """Each piece that docs/formats/injection.md promises, on pods that train."""
    pods = run(scene)
    job = scene.job()
    secret = f"digits-rekindle-{job['metadata']['uid'][:8]}"
    for ordinal, pod in enumerate((pods["digits-worker-0"], pods["digits-worker-1"])):
        spec, annotations = pod["spec"], pod["metadata"]["annotations"]
        expect("rekindle.dev/injected" in annotations, f"the pod should say that it was injected: {annotations}")
        expect_equal(annotations.get("hccl/rankIndex"), str(ordinal), "annotation hccl/rankIndex")
        expect_equal(spec.get("schedulingGates", []), [], "scheduling gates")
        expect_equal(
            (sidecar(pod)["name"], sidecar(pod)["restartPolicy"]),
            ("rekindle-sidecar", "Always"),
            "the first init container",
        )
        expect("startupProbe" in sidecar(pod), "the sidecar should have a startup probe")
        expect_equal(
            (sidecar(pod)["securityContext"]["runAsUser"], sidecar(pod)["securityContext"]["readOnlyRootFilesystem"]),
            (65532, True),
            "the sidecar's security context",
        )
        expect_equal(main(pod)["lifecycle"]["preStop"], HOOK, "the preStop hook of the main container")
        expect(
            64532 in spec["securityContext"]["supplementalGroups"],
            f"the shared group should be there: {spec['securityContext']}",
        )
        expect_equal(spec["terminationGracePeriodSeconds"], 75, "terminationGracePeriodSeconds")
        volumes = {volume["name"]: volume for volume in spec["volumes"]}
        expect_equal(volumes["rekindle-run"]["emptyDir"].get("medium"), "Memory", "the medium of rekindle-run")
        expect_equal(volumes["rekindle-tls"]["secret"]["secretName"], secret, "the Secret of the job's certificate")
        expect_equal(volumes["rekindle-checkpoints"]["persistentVolumeClaim"]["claimName"], "checkpoints", "the claim")
        mounts = {mount["name"]: mount for mount in main(pod)["volumeMounts"]}
        expect("rekindle-tls" not in mounts, "the job's certificate is the sidecar's alone")
        expect_equal(mounts["rekindle-bin"].get("readOnly"), True, "the programs are read-only for the main container")
        variables = environment(main(pod))
        expect_equal(
            {
                name: variables.get(name)
                for name in (
                    "REKINDLE_POD_ORDINAL",
                    "REKINDLE_PODS",
                    "REKINDLE_RANKS_PER_POD",
                    "REKINDLE_WORLD_SIZE",
                    "REKINDLE_JOB",
                    "REKINDLE_NAMESPACE",
                    "REKINDLE_JOB_UID",
                    "REKINDLE_SOCKET",
                )
            },
            {
                "REKINDLE_POD_ORDINAL": str(ordinal),
                "REKINDLE_PODS": "2",
                "REKINDLE_RANKS_PER_POD": "2",
                "REKINDLE_WORLD_SIZE": "4",
                "REKINDLE_JOB": "digits",
                "REKINDLE_NAMESPACE": scene.namespace,
                "REKINDLE_JOB_UID": job["metadata"]["uid"],
                "REKINDLE_SOCKET": "/rekindle/run/sidecar.sock",
            },
            "environment",
        )
        expect("REKINDLE_RANK" not in variables, "with two ranks a pod the launcher numbers them")
        expect_equal(pod["status"].get("qosClass"), "Burstable", "the QoS class")
    owner = scene.kubernetes.get("api/v1/namespaces/{namespace}/secrets", scene.namespace, secret)["metadata"][
        "ownerReferences"
    ]
    expect_equal([one["uid"] for one in owner], [job["metadata"]["uid"]], "the owner of the job's Secret")


@case()
def one_rank_a_pod_gets_its_number(site, scene):
    """RANK_ID and RANK_SIZE as the seeds' scripts read them; no launcher is needed."""

    def direct(job, container):
        container["command"], container["args"] = ["/usr/bin/digits"], container["args"][1:]
        container["env"].append({"name": "RANK_SIZE", "value": "2"})

    pods = run(scene, direct, ranks_per_pod=1)
    for ordinal in (0, 1):
        variables = environment(main(pods[f"digits-worker-{ordinal}"]))
        expect_equal(
            {name: variables.get(name) for name in ("REKINDLE_RANK", "RANK_ID", "RANK_SIZE")},
            {"REKINDLE_RANK": str(ordinal), "RANK_ID": str(ordinal), "RANK_SIZE": "2"},
            "environment",
        )


def as_user(pod_context, container_context):
    def edit(job, container):
        template(job)["spec"]["securityContext"] = pod_context
        container["securityContext"] = container_context

    return edit


def expect_saves(scene, pods):
    """The point of it all: sidecar and program can write each other's files."""
    before = scene.last_step(pods)
    scene.kubernetes.evict(scene.namespace, "digits-worker-0")
    found = scene.recovered(pods)
    expect(found.status["step"] >= before, f"step {before} was made before the eviction, and {found.status} was saved")
    expect_equal(found.first_step, found.status["step"] + 1, "the first step after the recovery")


@case(level="privileged")
def main_container_as_root(site, scene):
    expect_saves(scene, run(scene, as_user({}, {})))


@case()
def main_container_as_user_2002_without_a_group(site, scene):
    """Another user than the sidecar's and, with no runAsGroup, group 0: in a namespace that enforces `restricted`."""
    pods = run(
        scene,
        as_user(
            {"runAsNonRoot": True, "runAsUser": 2002, "seccompProfile": {"type": "RuntimeDefault"}},
            {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}},
        ),
    )
    expect_saves(scene, pods)


@case()
def existing_init_containers_volumes_and_groups_stay(site, scene):
    confined = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}

    def crowded(job, container):
        spec = template(job)["spec"]
        spec["initContainers"] = [
            {
                "name": "prepare",
                "image": container["image"],
                "imagePullPolicy": "IfNotPresent",
                "command": ["/usr/bin/digits", "--help"],
                "securityContext": confined,
            }
        ]
        spec["volumes"] = [{"name": "scratch", "emptyDir": {}}]
        spec["securityContext"]["supplementalGroups"] = [4000]
        container["volumeMounts"] = [{"name": "scratch", "mountPath": "/scratch"}]
        container["env"].append({"name": "REKINDLE_WORLD_SIZE", "value": "99"})
        template(job)["metadata"]["annotations"] = {"hccl/rankIndex": "7", "team": "vision"}

    pods = run(scene, crowded)
    for pod in pods.values():
        spec = pod["spec"]
        expect_equal(
            [one["name"] for one in spec["initContainers"]], ["rekindle-sidecar", "prepare"], "init containers in order"
        )
        expect_equal(spec["securityContext"]["supplementalGroups"], [4000, 64532], "supplementalGroups")
        expect("scratch" in {volume["name"] for volume in spec["volumes"]}, "the user's volume should stay")
        expect(
            "/scratch" in {mount["mountPath"] for mount in main(pod)["volumeMounts"]}, "the user's mount should stay"
        )
        expect_equal(environment(main(pod))["REKINDLE_WORLD_SIZE"], "4", "a REKINDLE_ variable that the user set")
        expect_equal(
            (pod["metadata"]["annotations"]["hccl/rankIndex"], pod["metadata"]["annotations"]["team"]),
            ("7", "vision"),
            "the user's annotations",
        )


@case()
def volume_of_the_users_own_holds_the_checkpoints(site, scene):
    def own(job, container):
        annotations = job["metadata"]["annotations"]
        del annotations["rekindle.dev/checkpoint-claim"]
        annotations["rekindle.dev/checkpoint-path"] = "/data/checkpoints"
        template(job)["spec"]["volumes"] = [{"name": "mine", "persistentVolumeClaim": {"claimName": "checkpoints"}}]
        container["volumeMounts"] = [{"name": "mine", "mountPath": "/data/checkpoints"}]
        container["args"] = [word.replace("/rekindle/checkpoints", "/data/checkpoints") for word in container["args"]]

    pods = run(scene, own)
    for pod in pods.values():
        expect(
            "rekindle-checkpoints" not in {volume["name"] for volume in pod["spec"]["volumes"]},
            "no second volume is needed",
        )
        expect_equal(environment(main(pod))["REKINDLE_CHECKPOINT_DIR"], "/data/checkpoints", "REKINDLE_CHECKPOINT_DIR")
    expect_saves(scene, pods)


@case(level="privileged")
def pods_on_the_hosts_network(site, scene):
    """Two jobs may meet on a host's ports: the sidecars take others."""

    def host(job, container):
        template(job)["spec"]["hostNetwork"] = True
        template(job)["spec"]["dnsPolicy"] = "ClusterFirstWithHostNet"
        for one in container["env"]:
            if one["name"] == "MASTER_PORT":
                one["value"] = "29777"

    pods = run(scene, host)
    expect(all(pod["spec"]["hostNetwork"] for pod in pods.values()), "the pods should be on the host's network")
    expect_saves(scene, pods)


@case(level="privileged")
def job_with_env_svc_and_ssh(site, scene):
    """ssh mounts a key at /root/.ssh of each container and hooks nothing of ours."""

    def plugins(job, _):
        job["spec"]["plugins"] = {"env": [], "svc": [], "ssh": []}

    pods = run(scene, plugins)
    for pod in pods.values():
        variables = environment(main(pod))
        expect(
            "VC_TASK_INDEX" in variables
            and "VC_WORKER_HOSTS" in variables
            or any(one["name"] == "VC_WORKER_HOSTS" for one in main(pod)["env"]),
            f"Volcano's plugins should have done their part: {sorted(variables)}",
        )
        expect(
            any("ssh" in volume["name"] for volume in pod["spec"]["volumes"]), "the ssh plugin's volume should be there"
        )
        expect_equal(main(pod)["lifecycle"]["preStop"], HOOK, "the preStop hook")


@case()
def two_mains_are_both_protected(site, scene):
    """A second main container beside the trainer gets hook, mounts and environment as well."""

    def two(job, container):
        second = {
            **container,
            "name": "helper",
            "command": ["/usr/bin/digits"],
            "args": ["--without-rekindle", "--data=/usr/share/digits/digits.csv", f"--steps={ENDLESS}", "--batch=1"],
            "env": [
                {"name": "RANK_ID", "value": "0"},
                {"name": "RANK_SIZE", "value": "1"},
                {"name": "REKINDLE_RANK", "value": "0"},
            ],
            "resources": {"limits": {"cpu": "50m", "memory": "64Mi"}},
        }
        template(job)["spec"]["containers"].append(second)

    answer = accepted(scene, example_job(scene, two))
    expect("Warning" not in answer.errors or "helper" not in answer.errors, f"nothing to warn of: {answer.errors}")
    accepted(scene, example_job(scene, two, steps=ENDLESS, cpu_limit="300m"), dry=False)
    pods = wait_for(lambda: scene.kubernetes.pods_of(scene.namespace, "digits"), 30, "the pods")
    for pod in pods:
        for container in pod["spec"]["containers"]:
            expect_equal(container["lifecycle"]["preStop"], HOOK, f"the hook of container {container['name']}")
            expect(
                "/rekindle/run" in {mount["mountPath"] for mount in container["volumeMounts"]},
                f"container {container['name']} should see the socket",
            )


@case(alone=True)
def pods_without_our_label_never_wait_for_us(site, scene):
    """With no operator at all an ordinary pod starts at once, and so does an unlabelled job; a protected one is refused
    in clear words."""
    with Operator(scene.kubernetes).away():
        for labels in ({}, {"rekindle.dev/protected": "false"}):
            name = f"ordinary-{len(labels)}"
            scene.kubernetes.create(
                PODS,
                scene.namespace,
                {
                    "apiVersion": "v1",
                    "kind": "Pod",
                    "metadata": {"name": name, "namespace": scene.namespace, "labels": labels},
                    "spec": {
                        "restartPolicy": "Never",
                        "terminationGracePeriodSeconds": 1,
                        "securityContext": {
                            "runAsNonRoot": True,
                            "runAsUser": 1000,
                            "seccompProfile": {"type": "RuntimeDefault"},
                        },
                        "containers": [
                            {
                                "name": "x",
                                "image": shipped.DIGITS_IMAGE,
                                "imagePullPolicy": "IfNotPresent",
                                "command": ["/usr/bin/digits", "--help"],
                                "securityContext": {
                                    "allowPrivilegeEscalation": False,
                                    "capabilities": {"drop": ["ALL"]},
                                },
                            }
                        ],
                    },
                },
            )
            pod = wait_for(
                lambda: (lambda one: one if one["status"].get("phase") in ("Running", "Succeeded") else None)(
                    scene.kubernetes.get(PODS, scene.namespace, name)
                ),
                30,
                f"pod {name} to start",
            )
            expect_equal(
                [one["name"] for one in pod["spec"]["containers"]]
                + [one["name"] for one in pod["spec"].get("initContainers", [])],
                ["x"],
                "its containers",
            )
        scene.kubernetes.create(
            JOBS, scene.namespace, example_job(scene, lambda job, _: job["metadata"]["labels"].pop("fault-scheduling"))
        )
        wait_for(
            lambda: (
                len([pod for pod in scene.kubernetes.pods_of(scene.namespace, "digits") if pod["spec"].get("nodeName")])
                == 2
            ),
            60,
            "an unlabelled job's pods to be scheduled",
        )
    scene.kubernetes.delete(JOBS, scene.namespace, "digits")


@case()
def stranger_with_our_label_is_left_alone(site, scene):
    """The label alone does not make a pod ours: a Volcano Job has to control it."""
    scene.kubernetes.create(
        PODS,
        scene.namespace,
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": "pretender",
                "namespace": scene.namespace,
                "labels": {"rekindle.dev/protected": "true"},
            },
            "spec": {
                "restartPolicy": "Never",
                "terminationGracePeriodSeconds": 1,
                "securityContext": {
                    "runAsNonRoot": True,
                    "runAsUser": 1000,
                    "seccompProfile": {"type": "RuntimeDefault"},
                },
                "containers": [
                    {
                        "name": "x",
                        "image": shipped.DIGITS_IMAGE,
                        "imagePullPolicy": "IfNotPresent",
                        "command": ["/usr/bin/digits", "--help"],
                        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
                    }
                ],
            },
        },
    )
    pod = scene.kubernetes.get(PODS, scene.namespace, "pretender")
    expect(
        "initContainers" not in pod["spec"] and "rekindle.dev/injected" not in pod["metadata"].get("annotations", {}),
        "the pod should be as it came",
    )
    wait_for(
        lambda: scene.kubernetes.get(PODS, scene.namespace, "pretender")["status"].get("phase") == "Succeeded",
        60,
        "it to run",
    )
