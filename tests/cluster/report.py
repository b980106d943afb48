"""What is running: for the user as a table, for programs as build/reports/cluster.json."""

import json
import re
import subprocess
from pathlib import Path

import cgroups
import controlplane
import identity
import process
import volcano

COMPONENTS = (*controlplane.COMPONENTS, *volcano.COMPONENTS, *(node.component for node in identity.NODES))
MODULES = {
    "etcd": "go.etcd.io/etcd/server/v3",
    "kube": "k8s.io/kubernetes",
    "volcano": "volcano.sh/volcano",
    "coredns": "github.com/coredns/coredns",
    "node": "k8s.io/kubernetes",
}


def module_version(module):
    folder = Path(__file__).resolve().parent / "gomod"
    for file in sorted(folder.glob("*/go.mod")):
        found = re.search(rf"^\s*(?:require )?{re.escape(module)} (v\S+)", file.read_text(), re.MULTILINE)
        if found:
            return found[1]
    return "unknown"


def version(component):
    found = module_version(MODULES[component.partition("-")[0]])
    if component in [node.component for node in identity.NODES]:
        words = subprocess.run(["containerd", "--version"], capture_output=True, text=True).stdout.split()
        return f"kubelet {found}, containerd {words[2] if len(words) > 2 else 'unknown'}"
    return found


def rows():
    return [
        {
            "component": component,
            "pid": process.main_process(component),
            "version": version(component),
            "memory_mib": round(cgroups.memory_bytes(cgroups.component_path(component)) / 2**20),
            "log": str(process.log_path(component)),
        }
        for component in COMPONENTS
    ]


def write(seconds, build_seconds):
    """`seconds`: {component or milestone: seconds after the start of `up` at which it was ready}."""
    components = [{**row, "seconds_to_ready": seconds.get(row["component"])} for row in rows()]
    content = {
        "id": identity.ID,
        "kubeconfig": str(identity.ADMINISTRATOR_KUBECONFIG),
        "shared": str(identity.SHARED),
        "seconds_to_ready": seconds.get("cluster"),
        "build_seconds": build_seconds,
        "memory_mib": round(cgroups.memory_bytes(identity.NAME) / 2**20),
        "components": components,
    }
    identity.REPORT.parent.mkdir(parents=True, exist_ok=True)
    temporary = identity.REPORT.with_suffix(".part")
    temporary.write_text(json.dumps(content, indent=2) + "\n")
    temporary.rename(identity.REPORT)


def table():
    lines = [f"{'COMPONENT':28}{'PID':>9}{'MEMORY':>10}  VERSION"]
    for row in rows():
        memory = f"{row['memory_mib']} MiB" if row["pid"] else "-"
        lines.append(f"{row['component']:28}{row['pid'] or 'ended':>9}{memory:>10}  {row['version']}")
    return "\n".join(lines)
