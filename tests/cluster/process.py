"""Starting, finding and ending the cluster's processes."""

import os
import signal
import subprocess
import time
from pathlib import Path

import cgroups
import identity
from failure import Failure

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def inside(*command):
    """`command`, to be run in the cluster's network namespace.

    nsenter and not `ip netns exec`: the latter mounts /sys anew, and the cgroups are no longer seen.
    """
    return ["nsenter", f"--net={identity.NETWORK_NAMESPACE_PATH}", "--", *map(str, command)]


def client_environment(base=None):
    """The environment of kubectl and helm: this cluster, a discovery cache that ends with it, and no proxy,
    for nothing outside can be reached from inside."""
    environment = dict(os.environ if base is None else base)
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        environment.pop(name, None)
        environment.pop(name.lower(), None)
    environment["KUBECONFIG"] = str(identity.ADMINISTRATOR_KUBECONFIG)
    environment["KUBECACHEDIR"] = str(identity.STATE / "client-cache")
    return environment


def log_path(component):
    return identity.LOGS / f"{component}.log"


def start(component, command, environment=None):
    """Start `command` as `component`: own session, own cgroup, own log, cluster network."""
    identity.LOGS.mkdir(parents=True, exist_ok=True)
    group_files = cgroups.make_component(component)

    def join_groups():
        for name in group_files:
            with open(name, "w") as group:
                group.write(str(os.getpid()))

    # Nothing of the caller's environment: a proxy setting or a KUBECONFIG would change what is tested.
    clean = {"PATH": PATH, "HOME": str(identity.STATE), "LANG": "C.UTF-8", **(environment or {})}
    with open(log_path(component), "ab") as log:
        return subprocess.Popen(
            inside(*command),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            cwd="/",
            env=clean,
            preexec_fn=join_groups,
        )


def running(component):
    return bool(cgroups.process_ids(cgroups.component_path(component)))


def main_process(component):
    """The id of the component's first process, or None."""
    processes = cgroups.process_ids(cgroups.component_path(component))
    return min(processes, key=start_time) if processes else None


def start_time(process):
    """Kernel ticks since boot at which `process` started; process ids wrap around, this does not."""
    status = cgroups.read(Path(f"/proc/{process}/stat")).rpartition(")")[2].split()
    return (int(status[19]) if len(status) > 19 else 0, process)


def command_line(process):
    try:
        raw = Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:
        return ""
    return " ".join(part.decode(errors="replace") for part in raw.split(b"\0") if part)


def kill_group(path, timeout=30):
    """SIGKILL every process below the cgroup `path`, until none is left."""

    def none_left():
        remaining = cgroups.process_ids(path)
        for process in remaining:
            try:
                os.kill(process, signal.SIGKILL)
            except ProcessLookupError:
                pass
        return not remaining

    wait_until(none_left, timeout, f"the processes of {path} to end")


def wait_until(condition, timeout, what, interval=0.05, alive=()):
    """Poll `condition` until it is true. `alive` names components whose death ends the wait at once."""
    deadline = time.monotonic() + timeout
    while True:
        answer = condition()
        if answer:
            return answer
        for component in alive:
            if not running(component):
                raise Failure(f"{component} ended while waiting for {what}: {last_words(component)}")
        if time.monotonic() > deadline:
            raise Failure(f"waited {timeout} s in vain for {what}: see `dev cluster logs`")
        time.sleep(interval)


def last_words(component):
    lines = cgroups.read(log_path(component)).splitlines()
    return f"{lines[-1].strip() if lines else 'it said nothing'} (all of it: {log_path(component)})"


def run(command, what, **options):
    """Run a short host command, turning its failure into one sentence."""
    try:
        outcome = subprocess.run([str(part) for part in command], capture_output=True, text=True, **options)
    except FileNotFoundError:
        raise Failure(f"{command[0]} is not installed: run `dev cluster setup`") from None
    if outcome.returncode != 0:
        words = outcome.stderr.strip().splitlines()
        raise Failure(f"{what} failed: {words[-1] if words else 'exit ' + str(outcome.returncode)}")
    return outcome.stdout
