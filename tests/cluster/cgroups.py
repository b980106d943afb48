"""The cluster's control groups: how its processes are found, measured and ended.

Each component is put into a group of its own before it starts, and children never leave it by
themselves, so membership holds where a file of process ids would go stale. Works on cgroup v1 (also
beside an unused v2 mount) and on pure v2.
"""

import os
from pathlib import Path

import identity

# Components join only these v1 hierarchies: one to be found by, one to be measured by. Joining `cpu` too
# would make the whole cluster share one slice of the processor with every other process of the machine.
COMPONENT_CONTROLLERS = ("pids", "memory")


def hierarchies():
    """[(mount point, {controllers})] of every cgroup mount; v2 has the controller name `unified`."""
    found = []
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        before, _, after = line.partition(" - ")
        kind, _, options = after.split(" ", 2)
        mount_point = Path(before.split(" ")[4])
        if kind == "cgroup":
            found.append((mount_point, set(options.split(","))))
        elif kind == "cgroup2":
            found.append((mount_point, {"unified"}))
    return found


def is_pure_v2():
    return all(controllers == {"unified"} for _, controllers in hierarchies())


def read(path):
    try:
        return path.read_text().strip()
    except OSError:
        return ""


def fill_cpuset(folder):
    """A new v1 cpuset is empty, and nothing can join an empty one."""
    for name in ("cpuset.cpus", "cpuset.mems"):
        if not read(folder / name):
            (folder / name).write_text(read(folder.parent / name))


def make(path):
    """Make `path` and its parents in every hierarchy."""
    for mount_point, controllers in hierarchies():
        folder = mount_point
        for part in Path(path).parts:
            if controllers == {"unified"} and is_pure_v2():
                available = read(folder / "cgroup.controllers").split()
                for controller in available:
                    try:
                        (folder / "cgroup.subtree_control").write_text(f"+{controller}")
                    except OSError:
                        pass  # a controller that cannot be delegated here is not one a pod can use
            folder = folder / part
            folder.mkdir(exist_ok=True)
            if "cpuset" in controllers:
                fill_cpuset(folder)


def component_path(component):
    return f"{identity.NAME}/components/{component}"


def make_component(component):
    make(component_path(component))
    return [
        str(mount_point / component_path(component) / "cgroup.procs")
        for mount_point, controllers in hierarchies()
        if controllers & set(COMPONENT_CONTROLLERS) or (controllers == {"unified"} and is_pure_v2())
    ]


def folders(path):
    """Every folder at or below `path` in every hierarchy, deepest first."""
    found = []
    for mount_point, _ in hierarchies():
        for folder, _, _ in os.walk(mount_point / path, topdown=False):
            found.append(Path(folder))
    return found


def process_ids(path):
    found = set()
    for folder in folders(path):
        found.update(int(line) for line in read(folder / "cgroup.procs").split())
    found.discard(0)  # a process of an outer process namespace, which cannot be one of ours
    return {process for process in found if not is_zombie(process)}


def is_zombie(process):
    status = read(Path(f"/proc/{process}/stat"))
    return status.rpartition(")")[2].split()[:1] in ([], ["Z"], ["X"])


def exists(path):
    return any((mount_point / path).exists() for mount_point, _ in hierarchies())


def remove(path):
    """Remove `path` everywhere. True when nothing is left of it."""
    for folder in folders(path):
        try:
            folder.rmdir()
        except OSError:
            pass  # still populated for a moment; the caller asks again
    return not exists(path)


def memory_bytes(path):
    """Memory charged to everything below `path`, without the page cache that can be dropped."""
    for mount_point, controllers in hierarchies():
        if "memory" not in controllers and not (controllers == {"unified"} and is_pure_v2()):
            continue
        used, droppable = 0, 0
        for name in ("memory.usage_in_bytes", "memory.current"):
            used = int(read(mount_point / path / name) or used)
        for line in read(mount_point / path / "memory.stat").splitlines():
            key, value = line.split()
            if key in ("total_inactive_file", "total_active_file", "file"):
                droppable += int(value)
        if used:
            return max(0, used - droppable)
    return 0
