"""Volcano: its custom resources, its admission webhooks and its three processes."""

import json
import re
import subprocess

import controlplane
import identity
import process
import storage
from certificates import path
from failure import Failure

import build

COMPONENTS = ("volcano-webhook-manager", "volcano-controller-manager", "volcano-scheduler")
SERVICE = "volcano-admission-service"

# The chart's own configuration and preemption, which evicts pods the way a busy cluster does.
SCHEDULER_CONFIGURATION = """actions: "enqueue, allocate, backfill, preempt"
tiers:
- plugins:
  - name: priority
  - name: gang
  - name: conformance
- plugins:
  - name: overcommit
  - name: drf
  - name: predicates
  - name: proportion
  - name: nodeorder
  - name: binpack
"""


def enabled_admissions():
    """The admissions that the chart switches on: the webhook manager waits for ever on one that is not there."""
    values = (build.volcano_chart() / "values.yaml").read_text()
    return re.search(r'^\s*enabled_admissions:\s*"([^"]+)"', values, re.MULTILINE)[1]


def webhook_configurations():
    outcome = subprocess.run(
        [
            build.binary("helm"),
            "template",
            "volcano",
            build.volcano_chart(),
            "--namespace",
            identity.VOLCANO_NAMESPACE,
            "--show-only",
            "templates/webhooks.yaml",
        ],
        capture_output=True,
        text=True,
        env={"PATH": process.PATH, "HOME": str(identity.STATE)},
    )
    if outcome.returncode != 0:
        raise Failure(f"Volcano's webhooks cannot be rendered: {outcome.stderr.strip()}")
    return outcome.stdout


def service():
    """The webhook manager runs beside the pods, so its service names its address itself."""
    metadata = {"name": SERVICE, "namespace": identity.VOLCANO_NAMESPACE}
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": identity.VOLCANO_NAMESPACE}},
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": metadata,
            "spec": {"ports": [{"name": "webhook", "port": 443, "targetPort": identity.WEBHOOK_PORT}]},
        },
        {
            "apiVersion": "discovery.k8s.io/v1",
            "kind": "EndpointSlice",
            "metadata": {**metadata, "labels": {"kubernetes.io/service-name": SERVICE}},
            "addressType": "IPv4",
            "ports": [{"name": "webhook", "port": identity.WEBHOOK_PORT, "protocol": "TCP"}],
            "endpoints": [{"addresses": [identity.CONTROL_ADDRESS], "conditions": {"ready": True}}],
        },
    ]


def write_manifests():
    """The files that create() hands to the API server, in order: resources before what may use them."""
    folder = identity.CONFIGURATION / "manifests"
    folder.mkdir(parents=True, exist_ok=True)
    definitions = [
        *sorted((build.volcano_chart() / "crd" / "bases").glob("*.yaml")),
        *sorted((build.volcano_chart() / "charts" / "jobflow" / "crd" / "bases").glob("*.yaml")),
    ]
    (folder / "1-definitions.yaml").write_text("\n---\n".join(file.read_text() for file in definitions))
    objects = [controlplane.DNS_ROLE, controlplane.DNS_BINDING, *service(), *storage.objects()]
    (folder / "2-objects.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
    (folder / "3-webhooks.yaml").write_text(webhook_configurations())
    return folder


def create(folder):
    outcome = controlplane.kubectl("create", "--validate=false", "-f", str(folder))
    if outcome.returncode != 0:
        raise Failure(f"the cluster's own objects cannot be made: {outcome.stderr.strip().splitlines()[-1]}")


def start_webhooks():
    process.start(
        "volcano-webhook-manager",
        [
            build.binary("volcano-webhook-manager"),
            f"--kubeconfig={controlplane.kubeconfig('volcano')}",
            f"--enabled-admission={enabled_admissions()}",
            f"--tls-cert-file={path('volcano-webhook')}",
            f"--tls-private-key-file={path('volcano-webhook', 'key')}",
            f"--ca-cert-file={path('authority')}",
            f"--webhook-namespace={identity.VOLCANO_NAMESPACE}",
            f"--webhook-service-name={SERVICE}",
            f"--listen-address={identity.CONTROL_ADDRESS}",
            f"--port={identity.WEBHOOK_PORT}",
            "--logtostderr",
        ],
    )


def start_controllers():
    process.start(
        "volcano-controller-manager",
        [
            build.binary("volcano-controller-manager"),
            f"--kubeconfig={controlplane.kubeconfig('volcano')}",
            "--leader-elect=false",
            "--logtostderr",
        ],
    )


def start_scheduler():
    configuration = identity.CONFIGURATION / "volcano-scheduler.conf"
    configuration.write_text(SCHEDULER_CONFIGURATION)
    process.start(
        "volcano-scheduler",
        [
            build.binary("volcano-scheduler"),
            f"--kubeconfig={controlplane.kubeconfig('volcano')}",
            f"--scheduler-conf={configuration}",
            f"--cache-dump-dir={identity.STATE}",
            "--leader-elect=false",
            "--logtostderr",
        ],
    )


def dry_run(value):
    """Whether `value` would pass admission now. A dry run stores nothing."""
    return (
        controlplane.kubectl(
            "create", "--dry-run=server", "--validate=false", "-f", "-", input=json.dumps(value)
        ).returncode
        == 0
    )


def admission_answers():
    """Asked with a queue: a Job needs the default queue, which the scheduler makes when it starts."""
    return dry_run(
        {
            "apiVersion": "scheduling.volcano.sh/v1beta1",
            "kind": "Queue",
            "metadata": {"name": "admission-probe"},
            "spec": {"weight": 1},
        }
    )


def takes_jobs():
    """The default queue is open and a Job passes admission."""
    queue = controlplane.get("queues.scheduling.volcano.sh", "default")
    return (
        bool(queue)
        and queue.get("status", {}).get("state") == "Open"
        and dry_run(
            {
                "apiVersion": "batch.volcano.sh/v1alpha1",
                "kind": "Job",
                "metadata": {"name": "admission-probe", "namespace": "default"},
                "spec": {
                    "minAvailable": 1,
                    "schedulerName": "volcano",
                    "tasks": [
                        {
                            "name": "probe",
                            "replicas": 1,
                            "template": {
                                "spec": {
                                    "restartPolicy": "Never",
                                    "containers": [{"name": "probe", "image": identity.PAUSE_IMAGE}],
                                }
                            },
                        }
                    ],
                },
            }
        )
    )
