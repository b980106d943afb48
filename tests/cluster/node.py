"""A worker node: its files, its start, its sudden end, and the images it holds."""

import json
import os
import subprocess
import sys
from pathlib import Path

import certificates
import cgroups
import identity
import process
from failure import Failure

import build

HERE = Path(__file__).resolve().parent
# Each node mounts a folder of its own here, in its own mount namespace; on the host they stay empty.
MOUNT_POINTS = (Path("/var/lib/cni"), Path("/var/lib/kubelet"))
PLUGIN_FOLDERS = (Path("/usr/lib/cni"), Path("/opt/cni/bin"))

CONTAINERD = """version = 2
root = "{state}/containerd"
state = "/run/containerd"

[grpc]
  address = "{socket}"

[plugins."io.containerd.internal.v1.opt"]
  path = "{state}/opt"

[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{pause}"
  netns_mounts_under_state_dir = true
  # A root without CAP_SYS_RESOURCE, as in many containers and small machines, cannot lower the score.
  restrict_oom_score_adj = true

  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "overlayfs"
    default_runtime_name = "runc"

    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"

      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        SystemdCgroup = false

  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{plugins}"
    conf_dir = "{state}/cni.d"
"""


def plugin_folder():
    for folder in PLUGIN_FOLDERS:
        if (folder / "ptp").exists():
            return folder
    return None


def network_configuration(node):
    """Point to point links, not a bridge: between two pods on one bridge a reply would go past the node's
    routing, and the rewriting of service addresses would not be undone."""
    return {
        "cniVersion": "0.4.0",
        "name": f"{identity.NAME}-{node.name}",
        "plugins": [
            {
                "type": "ptp",
                "ipMasq": False,
                "ipam": {
                    "type": "host-local",
                    "dataDir": str(node.state / "addresses"),
                    "ranges": [[{"subnet": node.pod_range}]],
                    "routes": [{"dst": "0.0.0.0/0"}],
                },
            }
        ],
    }


def memory_to_reserve():
    """Both nodes see the whole machine; each offers pods half of it."""
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemTotal:"):
            return f"{int(line.split()[1]) // 2}Ki"
    return "0"


def kubelet_configuration(node):
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": node.address,
        "readOnlyPort": 0,
        "healthzBindAddress": node.address,
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": str(certificates.path("authority"))},
        },
        "authorization": {"mode": "Webhook"},
        "tlsCertFile": str(certificates.path(node.name)),
        "tlsPrivateKeyFile": str(certificates.path(node.name, "key")),
        "containerRuntimeEndpoint": f"unix://{node.containerd_socket}",
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": f"/{node.pod_cgroup}",
        "enforceNodeAllocatable": [],
        "failSwapOn": False,
        "failCgroupV1": False,
        "makeIPTablesUtilChains": False,
        "systemReserved": {"memory": memory_to_reserve()},
        # The disk and the memory are the whole machine's: its other use must not evict a test's pods.
        "evictionHard": {
            "memory.available": "50Mi",
            "nodefs.available": "1%",
            "nodefs.inodesFree": "1%",
            "imagefs.available": "1%",
        },
        "imageGCHighThresholdPercent": 100,
        "imageGCLowThresholdPercent": 99,
        "resolvConf": str(node.state / "resolv.conf"),
        "clusterDNS": [identity.DNS_ADDRESS],
        "clusterDomain": identity.CLUSTER_DOMAIN,
        "volumePluginDir": str(node.state / "volume-plugins"),
        # Renewed every second, for the controller manager gives a silent node ten seconds.
        "nodeStatusUpdateFrequency": "2s",
        "nodeStatusReportFrequency": "10s",
        "nodeLeaseDurationSeconds": 4,
        "syncFrequency": "10s",
        "serializeImagePulls": False,
        "registryPullQPS": 0,
    }


def write_configuration(node):
    for folder in ("cni.d", "volume-plugins", "log", "cni", "kubelet"):
        (node.state / folder).mkdir(parents=True, exist_ok=True)
    (node.state / "containerd.toml").write_text(
        CONTAINERD.format(
            state=node.state, socket=node.containerd_socket, pause=identity.PAUSE_IMAGE, plugins=plugin_folder()
        )
    )
    (node.state / "cni.d" / "10-pods.conflist").write_text(json.dumps(network_configuration(node), indent=1))
    (node.state / "kubelet.json").write_text(json.dumps(kubelet_configuration(node), indent=1))
    (node.state / "resolv.conf").write_text(f"nameserver {identity.DNS_ADDRESS}\n")
    (node.state / "node.json").write_text(
        json.dumps(
            {
                "state": str(node.state),
                "containerd_socket": str(node.containerd_socket),
                "api": identity.API_URL,
                "authority": str(certificates.path("authority")),
                "containerd": {
                    "log": str(process.log_path(f"{node.name}-containerd")),
                    "command": ["containerd", "--config", str(node.state / "containerd.toml")],
                },
                "kubelet": {
                    "log": str(process.log_path(f"{node.name}-kubelet")),
                    "command": [
                        str(build.binary("kubelet")),
                        f"--config={node.state}/kubelet.json",
                        f"--kubeconfig={identity.KUBECONFIGS / node.name}",
                        f"--hostname-override={node.name}",
                        f"--node-ip={node.address}",
                        "--v=2",
                    ],
                },
            },
            indent=1,
        )
    )


def start(node):
    write_configuration(node)
    cgroups.make(node.pod_cgroup)
    for folder in MOUNT_POINTS:
        folder.mkdir(parents=True, exist_ok=True)
    node.containerd_socket.unlink(missing_ok=True)
    process.start(
        node.component,
        [
            "unshare",
            "--mount",
            "--pid",
            "--fork",
            "--kill-child",
            "--mount-proc",
            "--propagation",
            "slave",
            "--",
            sys.executable,
            HERE / "nodeinit.py",
            node.state / "node.json",
        ],
        {"PYTHONDONTWRITEBYTECODE": "1"},
    )


def kill(node):
    """Everything of the node at once, without a warning, as when its power fails."""
    process.kill_group(cgroups.component_path(node.component))
    process.kill_group(node.pod_cgroup)


def is_running(node):
    return process.running(node.component)


def containerd_answers(node):
    return (
        node.containerd_socket.exists()
        and subprocess.run(["ctr", "--address", node.containerd_socket, "version"], capture_output=True).returncode == 0
    )


def wait_for_containerd(node):
    process.wait_until(lambda: containerd_answers(node), 30, f"containerd of {node.name}", alive=[node.component])


def load(archives):
    """Import image archives on every running node, all nodes at once."""
    for archive in archives:
        if not Path(archive).is_file():
            raise Failure(f"there is no image archive {archive}")
    running = [node for node in identity.NODES if is_running(node)]
    if not running:
        raise Failure("no node is running: start the cluster with `dev cluster up`")
    for archive in archives:
        imports = [
            (
                node,
                subprocess.Popen(
                    [
                        "ctr",
                        "--address",
                        str(node.containerd_socket),
                        "--namespace",
                        "k8s.io",
                        "images",
                        "import",
                        os.path.abspath(archive),
                    ],
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    text=True,
                ),
            )
            for node in running
        ]
        for node, importing in imports:
            words, _ = importing.communicate()
            if importing.returncode != 0:
                raise Failure(f"{node.name} cannot import {archive}: {words.strip().splitlines()[-1]}")
