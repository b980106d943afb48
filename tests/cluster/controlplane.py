"""etcd, the API server, the controllers and scheduler of Kubernetes, kube-proxy and the cluster's DNS."""

import json
import subprocess
import sys

import identity
import process
from certificates import path

import build

ETCD_URL = "http://127.0.0.1:2379"
COMPONENTS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy", "coredns")

DNS_ROLE = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "ClusterRole",
    "metadata": {"name": "rekindle:coredns"},
    "rules": [
        {"apiGroups": [""], "resources": ["endpoints", "services", "pods", "namespaces"], "verbs": ["list", "watch"]},
        {"apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"], "verbs": ["list", "watch"]},
    ],
}
DNS_BINDING = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "ClusterRoleBinding",
    "metadata": {"name": "rekindle:coredns"},
    "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "rekindle:coredns"},
    "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "rekindle:coredns"}],
}

# Names outside the cluster have no answer: nothing leaves the namespace, and a refusal at once beats a timeout.
DNS_CONFIGURATION = """{domain}:53 in-addr.arpa:53 {{
    bind {address}
    errors
    kubernetes {domain} in-addr.arpa {{
        kubeconfig {kubeconfig}
        pods insecure
        ttl 1
    }}
}}
.:53 {{
    bind {address}
    errors
    template ANY ANY {{
        rcode NXDOMAIN
    }}
}}
"""


def kubeconfig(name):
    return identity.KUBECONFIGS / name


def start_etcd():
    process.start(
        "etcd",
        [
            build.binary("etcd"),
            f"--data-dir={identity.STATE}/etcd",
            f"--listen-client-urls={ETCD_URL}",
            f"--advertise-client-urls={ETCD_URL}",
            "--listen-peer-urls=http://127.0.0.1:2380",
            "--unsafe-no-fsync",
            "--log-level=warn",
        ],
    )  # a cluster that is thrown away need not survive a power cut


def start_api_server():
    process.start(
        "kube-apiserver",
        [
            build.binary("kube-apiserver"),
            f"--etcd-servers={ETCD_URL}",
            "--bind-address=0.0.0.0",
            f"--advertise-address={identity.CONTROL_ADDRESS}",
            f"--secure-port={identity.API_PORT}",
            f"--tls-cert-file={path('kube-apiserver')}",
            f"--tls-private-key-file={path('kube-apiserver', 'key')}",
            f"--client-ca-file={path('authority')}",
            f"--cert-dir={identity.CERTIFICATES}",
            f"--service-account-issuer=https://kubernetes.default.svc.{identity.CLUSTER_DOMAIN}",
            f"--service-account-key-file={path('service-account', 'pub')}",
            f"--service-account-signing-key-file={path('service-account', 'key')}",
            f"--service-cluster-ip-range={identity.SERVICE_RANGE}",
            "--authorization-mode=Node,RBAC",
            "--enable-admission-plugins=NodeRestriction",
            "--allow-privileged=true",
            f"--kubelet-client-certificate={path('kube-apiserver-kubelet-client')}",
            f"--kubelet-client-key={path('kube-apiserver-kubelet-client', 'key')}",
            f"--kubelet-certificate-authority={path('authority')}",
            "--kubelet-preferred-address-types=InternalIP",
            "--enable-aggregator-routing",  # webhooks are reached before kube-proxy has written its rules
            "--profiling=false",
            "--v=1",
        ],
    )


def start_controller_manager():
    process.start(
        "kube-controller-manager",
        [
            build.binary("kube-controller-manager"),
            f"--kubeconfig={kubeconfig('kube-controller-manager')}",
            f"--authentication-kubeconfig={kubeconfig('kube-controller-manager')}",
            f"--authorization-kubeconfig={kubeconfig('kube-controller-manager')}",
            f"--root-ca-file={path('authority')}",
            f"--service-account-private-key-file={path('service-account', 'key')}",
            f"--cluster-signing-cert-file={path('authority')}",
            f"--cluster-signing-key-file={path('authority', 'key')}",
            f"--cert-dir={identity.CERTIFICATES}",
            f"--flex-volume-plugin-dir={identity.STATE}/volume-plugins",
            "--use-service-account-credentials",
            "--leader-elect=false",
            # A lost node is noticed in ten seconds, and the first taint is not held back by a rate made for big
            # clusters.
            "--node-monitor-period=1s",
            "--node-monitor-grace-period=10s",
            "--node-eviction-rate=10",
            "--v=1",
        ],
    )


def start_scheduler():
    process.start(
        "kube-scheduler",
        [
            build.binary("kube-scheduler"),
            f"--kubeconfig={kubeconfig('kube-scheduler')}",
            f"--authentication-kubeconfig={kubeconfig('kube-scheduler')}",
            f"--authorization-kubeconfig={kubeconfig('kube-scheduler')}",
            f"--cert-dir={identity.CERTIFICATES}",
            "--leader-elect=false",
            "--v=1",
        ],
    )


def start_proxy():
    """One for both nodes: they share the network namespace, so one set of rules serves both."""
    node = identity.NODES[0]
    configuration = identity.CONFIGURATION / "kube-proxy.json"
    configuration.write_text(
        json.dumps(
            {
                "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
                "kind": "KubeProxyConfiguration",
                "clientConnection": {"kubeconfig": str(kubeconfig("kube-proxy"))},
                "mode": "nftables",
                "clusterCIDR": identity.POD_RANGE,
                "hostnameOverride": node.name,
                "bindAddress": node.address,
                "healthzBindAddress": f"{identity.CONTROL_ADDRESS}:10256",
                "metricsBindAddress": "127.0.0.1:10249",
                "nftables": {"minSyncPeriod": "200ms"},
                "conntrack": {"maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"},
            },
            indent=1,
        )
    )
    process.start("kube-proxy", [build.binary("kube-proxy"), f"--config={configuration}", "--v=1"])


def start_dns():
    configuration = identity.CONFIGURATION / "Corefile"
    configuration.write_text(
        DNS_CONFIGURATION.format(
            domain=identity.CLUSTER_DOMAIN, address=identity.DNS_ADDRESS, kubeconfig=kubeconfig("coredns")
        )
    )
    process.start("coredns", [build.binary("coredns"), "-conf", configuration])


def kubectl(*arguments, **options):
    """Run kubectl as administrator and return the finished process; the caller judges it."""
    return subprocess.run(
        process.inside(build.binary("kubectl"), *arguments),
        capture_output=True,
        text=True,
        env=process.client_environment(),
        **options,
    )


def get(*arguments):
    """What `kubectl get ... -o json` says, or None when it cannot say it."""
    outcome = kubectl("get", "-o", "json", *arguments)
    return json.loads(outcome.stdout) if outcome.returncode == 0 else None


def is_ready():
    return kubectl("get", "--raw", "/readyz").returncode == 0


def ready_nodes():
    """{node name: whether its condition Ready is True}."""
    answer = get("nodes") or {"items": []}
    return {
        item["metadata"]["name"]: any(
            condition["type"] == "Ready" and condition["status"] == "True"
            for condition in item.get("status", {}).get("conditions", [])
        )
        for item in answer["items"]
    }


def resolves(name):
    """Whether the cluster's DNS knows `name`, asked with a query made here: no resolver tool is needed."""
    words = b"".join(bytes([len(part)]) + part.encode() for part in name.split(".")) + b"\0"
    question = b"\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00" + words + b"\x00\x01\x00\x01"
    script = (
        "import socket, sys\n"
        "asked = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
        "asked.settimeout(1)\n"
        f"asked.sendto(bytes.fromhex('{question.hex()}'), ('{identity.DNS_ADDRESS}', 53))\n"
        "answer = asked.recv(512)\n"
        "sys.exit(0 if answer[3] & 15 == 0 and answer[7] > 0 else 1)\n"
    )
    return subprocess.run(process.inside(sys.executable, "-c", script), capture_output=True).returncode == 0


def services_work():
    """Whether the API server is reached through its service address, which only kube-proxy's rules make possible."""
    return (
        kubectl(
            f"--server=https://{identity.KUBERNETES_SERVICE_ADDRESS}", "--request-timeout=2s", "get", "--raw", "/readyz"
        ).returncode
        == 0
    )


def scheduler_is_ready():
    script = (
        "import ssl, urllib.request\n"
        "context = ssl._create_unverified_context()\n"
        "urllib.request.urlopen('https://127.0.0.1:10259/readyz', timeout=2, context=context)\n"
    )
    return subprocess.run(process.inside(sys.executable, "-c", script), capture_output=True).returncode == 0
