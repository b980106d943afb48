"""The chart by itself, and what the operator's account may not do."""

import json

import shipped
from installation import NAMESPACE
from kubernetes import PODS, ROOT
from operatorpod import DEPLOYMENT
from stage import Cases, expect, expect_equal

CASES = Cases()
case = CASES.case

ACCOUNT = f"system:serviceaccount:{NAMESPACE}:{DEPLOYMENT}"
CHART = str(ROOT / "helm" / "rekindle")

DENIED = (
    "get secrets",
    "list secrets",
    "watch secrets",
    "delete secrets",
    "patch secrets",
    "patch pods",
    "update pods",
    "create pods",
    "deletecollection pods",
    "create pods/exec",
    "create pods/eviction",
    "delete namespaces",
    "create namespaces",
    "patch namespaces",
    "delete jobs.batch.volcano.sh",
    "create jobs.batch.volcano.sh",
    "create commands.bus.volcano.sh",
    "list nodes",
    "patch nodes",
    "get configmaps",
    "create configmaps",
    "create clusterrolebindings.rbac.authorization.k8s.io",
    "patch clusterroles.rbac.authorization.k8s.io",
    "create serviceaccounts/token",
    "impersonate users",
    "delete mutatingwebhookconfigurations.admissionregistration.k8s.io",
    "list mutatingwebhookconfigurations.admissionregistration.k8s.io",
    "delete validatingadmissionpolicies.admissionregistration.k8s.io",
    "patch persistentvolumeclaims",
    "get persistentvolumes",
)
ALLOWED = (
    "list jobs.batch.volcano.sh",
    "watch pods",
    "delete pods",
    "create breakpoints.rekindle.dev",
    "patch breakpoints.rekindle.dev/status",
    "create secrets",
    "create events.events.k8s.io",
)


@case(level=None)
def chart_passes_lint_and_renders(site, scene):
    lint = site.kubernetes.helm("lint", "--strict", CHART, check=False)
    expect(lint.returncode == 0, f"helm lint --strict: {lint.stdout} {lint.stderr}")
    rendered = site.kubernetes.helm(
        "template",
        "x",
        CHART,
        "--namespace",
        "somewhere",
        "--set",
        "storage.claim=models",
        "--set",
        "breakpoint.deadlineSeconds=30",
        "--set",
        "checkpoint.every=10 min",
        "--set",
        "checkpoint.keep=5",
    )
    for words in (
        "kind: CustomResourceDefinition",
        "kind: MutatingWebhookConfiguration",
        "kind: ValidatingAdmissionPolicy",
        '"default_claim": "models"',
        '"deadline_seconds": 30',
        '"every": "10 min"',
        '"keep": "5"',
        "readOnlyRootFilesystem: true",
    ):
        expect(words in rendered, f"the rendered chart should contain {words}")
    bare = site.kubernetes.helm(
        "template",
        "x",
        CHART,
        "--set",
        "crds.enabled=false",
        "--set",
        "rbac.create=false",
        "--set",
        "admission.restrictOperator=false",
        "--set",
        "serviceAccount.create=false",
        "--set",
        "serviceAccount.name=own",
    )
    for words in (
        "kind: CustomResourceDefinition",
        "kind: ClusterRole",
        "kind: ValidatingAdmissionPolicy",
        "kind: ServiceAccount\n",
    ):
        expect(words not in bare, f"switched off, {words} should not be rendered")
    expect("serviceAccountName: own" in bare, "the service account's name should be taken")
    for wrong in (
        "breakpoint.deadlineSeconds=0",
        "operator.logLevel=loud",
        "brekpoint.deadlineSeconds=5",
        "checkpoint.every=often",
        "checkpoint.keep=0",
        "checkpoint.writeBandwidthMax=500",
    ):
        expect(
            site.kubernetes.helm("template", "x", CHART, "--set", wrong, check=False).returncode != 0,
            f"the value {wrong} should be refused",
        )


@case(level=None)
def rendered_chart_is_accepted_by_the_server(site, scene):
    """Everything that the chart brings, as the real API server sees it; nothing is stored."""
    rendered = site.kubernetes.helm("template", "rekindle", CHART, "--namespace", NAMESPACE)
    done = site.kubernetes.kubectl(
        "-n", NAMESPACE, "apply", "--dry-run=server", "--validate=strict", "-f", "-", text=rendered, check=False
    )
    expect(done.returncode == 0, f"the API server refuses the chart: {done.stderr}")
    expect(
        "warning"
        not in done.stderr.lower()
        .replace("missing the kubectl.kubernetes.io/last-applied", "")
        .replace("warning: resource", ""),
        f"the API server warns: {done.stderr}",
    )


def can(kubernetes, what, namespace):
    """One SubjectAccessReview, as `kubectl auth can-i --as` asks."""
    verb, _, resource = what.partition(" ")
    resource, _, subresource = resource.partition("/")
    name, _, group = resource.partition(".")
    attributes = {"verb": verb, "resource": name, "group": group, "subresource": subresource, "namespace": namespace}
    answer = kubernetes.request(
        "POST",
        "apis/authorization.k8s.io/v1/subjectaccessreviews",
        {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "spec": {
                "user": ACCOUNT,
                "groups": ["system:serviceaccounts", f"system:serviceaccounts:{NAMESPACE}", "system:authenticated"],
                "resourceAttributes": attributes,
            },
        },
    )
    return answer["status"].get("allowed", False)


@case(level=None)
def operator_has_only_the_rights_that_it_uses(site, scene):
    wrongly = [what for what in DENIED if can(site.kubernetes, what, "default")]
    expect(not wrongly, f"the operator's account may {', '.join(wrongly)}; it should not")
    missing = [what for what in ALLOWED if not can(site.kubernetes, what, "default")]
    expect(not missing, f"the operator's account may not {', '.join(missing)}")
    inside = [
        what
        for what in ("list secrets", "patch pods", "delete deployments.apps", "patch configmaps")
        if can(site.kubernetes, what, NAMESPACE)
    ]
    expect(not inside, f"in its own namespace the operator's account may {', '.join(inside)}")
    answer = site.kubernetes.kubectl(
        "auth", "can-i", "get", "secrets", "--all-namespaces", f"--as={ACCOUNT}", check=False
    )
    expect_equal(answer.stdout.strip(), "no", "kubectl auth can-i get secrets")


@case()
def operator_deletes_only_pods_with_our_label(site, scene):
    """What RBAC cannot say, the admission policy does: also for the operator's account."""

    def pod(name, labels):
        scene.kubernetes.create(
            PODS,
            scene.namespace,
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": name, "namespace": scene.namespace, "labels": labels},
                "spec": {
                    "restartPolicy": "Never",
                    "schedulingGates": [{"name": "test/never"}],
                    "securityContext": {
                        "runAsNonRoot": True,
                        "runAsUser": 1000,
                        "seccompProfile": {"type": "RuntimeDefault"},
                    },
                    "containers": [
                        {
                            "name": "x",
                            "image": shipped.DIGITS_IMAGE,
                            "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
                        }
                    ],
                },
            },
        )

    pod("ordinary", {})
    pod("close", {"rekindle.dev/protected": "false"})
    pod("ours", {"rekindle.dev/protected": "true"})
    for name in ("ordinary", "close"):
        done = scene.kubernetes.kubectl(
            "-n", scene.namespace, "delete", "pod", name, "--wait=false", f"--as={ACCOUNT}", check=False
        )
        expect(
            done.returncode != 0 and "the operator deletes only pods with the label" in done.stderr,
            f"deleting pod {name} should be denied: {done.stderr or done.stdout}",
        )
    scene.kubernetes.kubectl("-n", scene.namespace, "delete", "pod", "ours", "--wait=false", f"--as={ACCOUNT}")
    scene.kubernetes.kubectl("-n", scene.namespace, "delete", "pod", "ordinary", "--wait=false")
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "anything", "namespace": scene.namespace},
        "stringData": {"a": "b"},
    }
    done = scene.kubernetes.kubectl("create", "-f", "-", f"--as={ACCOUNT}", text=json.dumps(secret), check=False)
    expect(
        done.returncode != 0 and "only its certificate authority" in done.stderr,
        f"creating a Secret should be denied: {done.stderr or done.stdout}",
    )
