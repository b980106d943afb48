"""Every name and address of one cluster, derived from the path of its checkout.

Two checkouts get two ids, so their state folders, network namespaces and cgroups never meet. Addresses
are the same in each cluster: they exist only inside the cluster's own network namespace.
"""

import hashlib
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
ID = hashlib.sha256(str(CHECKOUT).encode()).hexdigest()[:8]
NAME = f"rekindle-{ID}"

# Unix socket paths end at 107 bytes and the kubelet nests them deep, so the state folder is not in the checkout.
STATE = Path("/var/lib/rekindle-cluster") / ID
SHARED = STATE / "shared"
CONFIGURATION = STATE / "configuration"
CERTIFICATES = STATE / "certificates"
KUBECONFIGS = STATE / "kubeconfigs"
ADMINISTRATOR_KUBECONFIG = KUBECONFIGS / "administrator"

# Logs and the report outlive `down`: they are what one reads after a failed test.
LOGS = CHECKOUT / "build" / "cluster" / "logs"
REPORT = CHECKOUT / "build" / "reports" / "cluster.json"

NETWORK_NAMESPACE = NAME
NETWORK_NAMESPACE_PATH = Path("/run/netns") / NETWORK_NAMESPACE

CONTROL_ADDRESS = "10.80.0.1"
DNS_ADDRESS = "10.80.0.53"
POD_RANGE = "10.81.0.0/16"
SERVICE_RANGE = "10.82.0.0/16"
KUBERNETES_SERVICE_ADDRESS = "10.82.0.1"
API_PORT = 6443
API_URL = f"https://{CONTROL_ADDRESS}:{API_PORT}"
WEBHOOK_PORT = 8443
CLUSTER_DOMAIN = "cluster.local"
VOLCANO_NAMESPACE = "volcano-system"

PAUSE_IMAGE = "rekindle.test/pause:1"


class Node:
    """One worker: a kubelet and a containerd with a process tree, mounts and cgroups of their own."""

    def __init__(self, name, number):
        self.name = name
        self.address = f"10.80.0.{10 + number}"
        self.pod_range = f"10.81.{number}.0/24"
        self.state = STATE / name
        self.containerd_socket = self.state / "containerd.sock"
        self.pod_cgroup = f"{NAME}/{name}"
        self.component = name


NODES = (Node("node-a", 1), Node("node-b", 2))


def node_named(name):
    for node in NODES:
        if node.name == name:
            return node
    return None
