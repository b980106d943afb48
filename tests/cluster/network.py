"""The cluster's network: one namespace, no way out, nothing on the host.

Both nodes, the control plane and all pods live in it. The node addresses sit on one veth pair (the
kernel of a small machine may lack the dummy device). Deleting the namespace deletes all of it.
"""

import identity
from process import inside, run

LINK = "nodes"


def exists():
    return identity.NETWORK_NAMESPACE_PATH.exists()


def make():
    run(["ip", "netns", "add", identity.NETWORK_NAMESPACE], "making the network namespace")
    addresses = [identity.CONTROL_ADDRESS, identity.DNS_ADDRESS, *(node.address for node in identity.NODES)]
    commands = [
        "link set lo up",
        f"link add {LINK} type veth peer name {LINK}-peer",
        f"link set {LINK} up",
        f"link set {LINK}-peer up",
        *(f"address add {address}/24 dev {LINK}" for address in addresses),
        # A service address needs some route, or connect() fails before kube-proxy's rules can rewrite it.
        f"route add {identity.SERVICE_RANGE} dev {LINK} src {identity.CONTROL_ADDRESS}",
    ]
    run(inside("ip", "-batch", "-"), "setting up the network", input="\n".join(commands) + "\n")
    run(inside("sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward"), "switching on forwarding")


def remove():
    if exists():
        run(["ip", "netns", "delete", identity.NETWORK_NAMESPACE], "deleting the network namespace")
