"""The NetworkPolicy that Volcano's svc plugin writes, in force: the bridge CNI of the embedded cluster ignores it, so
it is put into nftables."""

import json
import pathlib
import subprocess
import threading

from kubernetes import EMBEDDED, PODS, wait_for
from recovery import expect_recovered
from stage import Cases, expect, expect_equal

CASES = Cases()
case = CASES.case

POLICIES = "apis/networking.k8s.io/v1/namespaces/{namespace}/networkpolicies"
PEER_PORT = 8471


def in_network(*command, text=None):
    done = subprocess.run([EMBEDDED, "exec", *command], input=text, capture_output=True, text=True)
    expect(done.returncode == 0, f"{' '.join(command)}: {done.stderr.strip()}")
    return done.stdout


class Enforced:
    """Ingress to the job's pods from the job's pods alone, as the policy says, kept up with the pods as they come.
    Traffic between pods of one node is bridged and does not pass the forward hook, so both families get the rule.
    Connections are recognised by their first segment: what a pod dials is answered."""

    def __init__(self, kubernetes, namespace, selector):
        self._table = namespace.replace("-", "_")
        self._known = set()
        self._lock = threading.Lock()
        self._selector = selector
        rules = []
        for family in ("ip", "bridge"):
            match = "ip daddr" if family == "ip" else "ether type ip ip daddr"
            source = "ip saddr"
            rules.append(f"""table {family} {self._table} {{
  set members {{ type ipv4_addr; }}
  counter refused {{ }}
  chain forward {{
    type filter hook forward priority 0; policy accept;
    {match} @members {source} @members accept
    {match} @members tcp flags & (syn | ack) == syn counter name refused drop
    {match} @members meta l4proto != tcp udp sport != 53 counter name refused drop
  }}
}}""")
        in_network("nft", "-f", "-", text="\n".join(rules))
        self._watch = kubernetes.watch(PODS, namespace, on_event=self._take)

    def _take(self, type_, pod):
        labels, address = pod["metadata"].get("labels", {}), pod.get("status", {}).get("podIP")
        if not address or any(labels.get(key) != value for key, value in self._selector.items()):
            return
        with self._lock:
            if address in self._known:
                return
            self._known.add(address)
        in_network(
            "nft",
            "-f",
            "-",
            text="".join(
                f"add element {family} {self._table} members {{ {address} }}\n" for family in ("ip", "bridge")
            ),
        )

    def refused(self):
        """Packets that the rule has dropped."""
        total = 0
        for family in ("ip", "bridge"):
            listed = json.loads(in_network("nft", "-j", "list", "counters", "table", family, self._table))
            total += sum(entry["counter"]["packets"] for entry in listed["nftables"] if "counter" in entry)
        return total

    def end(self):
        self._watch.close()
        subprocess.run(
            [EMBEDDED, "exec", "nft", "-f", "-"],
            capture_output=True,
            text=True,
            input="".join(f"delete table {family} {self._table}\n" for family in ("ip", "bridge")),
        )


@case(node=True)
def network_policy_of_the_svc_plugin_in_force(site, scene):
    scene.submit()
    old = scene.training()
    policies = scene.kubernetes.list(POLICIES, scene.namespace)
    expect_equal(
        [policy["metadata"]["name"] for policy in policies], ["digits"], "the NetworkPolicies that Volcano wrote"
    )
    spec = policies[0]["spec"]
    selector = spec["podSelector"]["matchLabels"]
    expect_equal(spec["ingress"][0]["from"], [{"podSelector": {"matchLabels": selector}}], "whom the policy lets in")
    stranger(scene)
    address = old["digits-worker-0"]["status"]["podIP"]
    wait_for(lambda: reaches(scene, address), 20, "the stranger to reach a sidecar while nothing forbids it")
    rule = Enforced(scene.kubernetes, scene.namespace, selector)
    try:
        refused = wait_for(
            lambda: not reaches(scene, address) and rule.refused(),
            20,
            "the rule to keep the stranger out, and to count it",
        )
        before = scene.last_step(old)
        scene.trains_on(old, before, steps=10)
        scene.kubernetes.evict(scene.namespace, "digits-worker-0")
        found = expect_recovered(scene, old, before, retries=1)
        address = found.pods["digits-worker-1"]["status"]["podIP"]
        expect(not reaches(scene, address), "the rule should hold for the new pods too")
        expect(rule.refused() > refused, "the counter should have gone on")
        return f"{rule.refused()} packets refused"
    finally:
        rule.end()


def stranger(scene):
    """A pod outside the job, with the cluster's own visitor program in it."""
    archive = subprocess.run(
        ["python3", "-c", "import images; print(images.visitor_archive())"],
        capture_output=True,
        text=True,
        cwd=pathlib.Path(EMBEDDED).parent,
    )
    expect(archive.returncode == 0, f"the visitor image cannot be made: {archive.stderr.strip()}")
    loaded = subprocess.run([EMBEDDED, "load", archive.stdout.strip()], capture_output=True, text=True)
    expect(loaded.returncode == 0, f"the visitor image cannot be loaded: {loaded.stderr.strip()}")
    scene.kubernetes.create(
        PODS,
        scene.namespace,
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "stranger", "namespace": scene.namespace},
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
                        "name": "visitor",
                        "image": "rekindle.test/visitor:1",
                        "imagePullPolicy": "Never",
                        "args": ["wait"],
                        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
                    }
                ],
            },
        },
    )
    wait_for(
        lambda: scene.kubernetes.get(PODS, scene.namespace, "stranger")["status"].get("phase") == "Running",
        60,
        "the stranger to run",
    )


def reaches(scene, address):
    """Whether the stranger gets a connection to the sidecar's port. What is dropped has no answer, so a few seconds are
    a no."""
    return (
        scene.kubernetes.kubectl(
            "-n",
            scene.namespace,
            "exec",
            "stranger",
            "--",
            "/visitor",
            "connect",
            address,
            str(PEER_PORT),
            check=False,
            seconds=4,
        ).returncode
        == 0
    )
