"""What `./dev demo` is told, and which words do not go together."""

import argparse
import pathlib

from building import PLANTED, REPOSITORY
from shipped import FOLDER

FAULTS = ("evict", "delete", "sigkill")
LOCAL_ONLY = ("kills", "seed", "planted", "build")
CLUSTER_ONLY = ("context", "installed", "pod", "namespace")
# Filled in last, so that what was not said can be told from what was.
DEFAULTS = {"fault": "evict", "build": FOLDER, "pod": 0, "namespace": "rekindle-demo"}


def demo_parser(description: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="./dev demo", description=description)
    parser.add_argument(
        "--local", action="store_true", help="without Kubernetes, through `rekindle run`, on this machine"
    )
    parser.add_argument("--fault", help="what breaks: evict (default), delete (not with --local), sigkill")
    parser.add_argument(
        "--target",
        choices=("rank", "launcher", "sidecar"),
        default="rank",
        help="what --fault sigkill hits (default rank; the sidecar only on a cluster)",
    )
    parser.add_argument("--keep", action="store_true", help="keep logs, checkpoints and final states")
    parser.add_argument(
        "--report",
        type=pathlib.Path,
        default=REPOSITORY / "build" / "reports" / "demo.json",
        metavar="FILE",
        help="where the report goes (default build/reports/demo.json)",
    )
    _add_local(parser.add_argument_group("with --local"))
    _add_cluster(parser.add_argument_group("on a cluster"))
    return parser


def _add_local(group) -> None:
    group.add_argument("--kills", type=int, metavar="N", help="a drill: N kills of random ranks at random moments")
    group.add_argument("--seed", type=int, metavar="S", help="repeats the choices of an earlier run (default: random)")
    group.add_argument(
        "--planted",
        choices=sorted(PLANTED),
        help="with a `rekindle` that does something wrong, to see that the proof notices",
    )
    group.add_argument("--build", type=pathlib.Path, metavar="FOLDER", help="build folder (default build/release)")


def _add_cluster(group) -> None:
    group.add_argument(
        "--context",
        metavar="NAME",
        help="a kubeconfig context instead of the embedded cluster (kind-NAME is loaded with the images)",
    )
    group.add_argument(
        "--installed", action="store_true", default=None, help="take cluster, images and chart as they are"
    )
    group.add_argument(
        "--pod",
        type=int,
        choices=(0, 1),
        help="which of the two pods is hit; 0 coordinates the save (default 0)",
    )
    group.add_argument(
        "--namespace",
        metavar="NAME",
        help="made for the demo and deleted after it (default rekindle-demo)",
    )


def refusal(words: argparse.Namespace) -> str:
    """Why these words do not go together; empty when they do."""
    if words.fault not in (None, *FAULTS):
        return f"there is no fault {words.fault}; evict, delete and sigkill are there"
    for name in CLUSTER_ONLY if words.local else LOCAL_ONLY:
        if getattr(words, name) is not None:
            return f"--{name} {'does not go' if words.local else 'goes'} with --local"
    if words.kills is not None:
        if words.kills <= 0:
            return "--kills needs a number above 0"
        if words.fault not in (None, "sigkill") or words.target != "rank":
            return "--kills kills ranks with SIGKILL; leave --fault and --target out"
    if words.target != "rank" and words.fault != "sigkill" and words.kills is None:
        return f"--target {words.target} goes with --fault sigkill"
    if words.local and words.fault == "delete":
        return "--local knows the faults evict and sigkill, not delete"
    if words.local and words.target == "sidecar":
        return "--local has no sidecar of its own: `rekindle run` plays it; --target launcher kills that"
    if words.planted == "lose-a-step" and words.target == "launcher":
        return (
            "--planted lose-a-step does not go with --target launcher: nobody is left to save anything then, so steps may "
            "be lost and the proof has no reason to fail; leave --target out"
        )
    if words.fault == "sigkill" and words.context:
        return "--fault sigkill kills from the node, which only the embedded cluster lets us do; leave --context out"
    return ""


def read_arguments(description: str, arguments: list[str] | None = None) -> argparse.Namespace:
    parser = demo_parser(description)
    words = parser.parse_args(arguments)
    if why := refusal(words):
        parser.error(why)
    if words.kills:
        words.fault = "sigkill"
    for name, value in DEFAULTS.items():
        if getattr(words, name) is None:
            setattr(words, name, value)
    return words
