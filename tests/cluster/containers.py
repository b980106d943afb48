"""The processes of a pod's containers, as the node sees them.

For tests that end a process from outside, as a crash would: the ids are those of the host.
"""

import json

import cgroups
import controlplane
import identity
import process
from failure import Failure


def pod_processes(namespace, pod, container=None):
    """[{container, id, pid, command}] of the running containers of a pod."""
    answer = controlplane.kubectl("get", "pod", pod, "--namespace", namespace, "-o", "json")
    if answer.returncode != 0:
        raise Failure(f"there is no pod {namespace}/{pod}: {answer.stderr.strip()}")
    status = json.loads(answer.stdout).get("status", {})
    reported = [
        *status.get("initContainerStatuses", []),
        *status.get("containerStatuses", []),
        *status.get("ephemeralContainerStatuses", []),
    ]
    if container and container not in [one["name"] for one in reported]:
        raise Failure(
            f"the pod {namespace}/{pod} has no container {container}: it has "
            f"{', '.join(one['name'] for one in reported) or 'none yet'}"
        )
    folders = {folder.name: folder for folder in cgroups.folders(identity.NAME)}
    found = []
    for one in reported:
        container_id = one.get("containerID", "").rpartition("/")[2]
        if (container and one["name"] != container) or container_id not in folders:
            continue
        inside = {int(line) for line in cgroups.read(folders[container_id] / "cgroup.procs").split()}
        found += [
            {"container": one["name"], "id": container_id, "pid": pid, "command": process.command_line(pid)}
            for pid in sorted(inside, key=process.start_time)
            if not cgroups.is_zombie(pid)
        ]
    return found
