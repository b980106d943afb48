"""The operator ends, is away, or goes for good: recoveries end as they would have."""

import json
import os
import random
import signal
import time

from chart_cases import CHART
from digitsjob import digits_job
from installation import NAMESPACE, RELEASE, install
from kubernetes import JOBS, condition, ready, wait_for
from operatorlog import aborted_containers, aborts_in
from operatorpod import Operator
from polling import poll
from ranks import process_of
from recovery import expect_no_step_lost, expect_own_grace, expect_recovered, wait_gone
from stage import Cases, expect, expect_equal

CASES = Cases()
case = CASES.case

# Events are news: one may be lost with the process that was about to tell it.
SURE = ("JobResumed",)


def is_restored(one):
    return (condition(one, "Restored") or {}).get("status") == "True"


def names(scene):
    return tuple(one["metadata"]["name"] for one in scene.breakpoint_list())


@case(level=None)
def operator_that_ends_by_itself_is_noticed(site, scene):
    """What the stage looks for in every operator's log and end, in samples: nothing in a healthy one, each sign in a
    broken one."""
    healthy = '{"level":"info","msg":"job digits is Aborted"}\n'
    expect_equal(aborts_in(healthy), [], "signs in a healthy log")
    for sign in (
        "rekindle: bug: at != std::string::npos does not hold at common/base/json_text.cc:34; please report it",
        "terminate called after throwing an instance of 'std::bad_alloc'",
        "==1==ERROR: AddressSanitizer: heap-use-after-free on address 0x602000000010",
    ):
        expect_equal(aborts_in(f"{healthy}{sign}\n"), [sign], "signs in a log")

    def ended(code):
        status = {"state": {"running": {}}, "lastState": {"terminated": {"exitCode": code}}}
        return {"metadata": {"name": "operator"}, "status": {"containerStatuses": [status]}}

    expect_equal(aborted_containers(ended(137)), [], "a container that a test has killed")
    expect_equal(aborted_containers(ended(134)), ["operator ended with SIGABRT"], "a container that aborted")


@case(alone=True, node=True)
def operator_killed_between_durable_and_deletes(site, scene):
    """A job without policies: only the operator restarts it, and it dies with the deletes still to come."""
    operator = Operator(scene.kubernetes)
    scene.submit(policies={})
    pods = scene.training()
    tries = 0
    for tries in range(1, 5):
        seen = names(scene)
        victim = process_of(scene.kubernetes, scene.namespace, "digits-worker-1", "rank")
        pid = operator.process()
        before = scene.last_step(pods)
        os.kill(victim, signal.SIGKILL)
        at, _ = scene.breakpoints.first(
            lambda type_, one: (
                one["metadata"]["name"] not in seen and (condition(one, "Durable") or {}).get("status") == "True"
            ),
            90,
            "the Breakpoint to be durable",
        )
        operator.kill(pid)
        killed = time.monotonic()
        found = expect_recovered(scene, pods, before, retries=0, beyond=seen, story=SURE, survivors=2)
        expect_own_grace(scene, pods)
        uids = {pod["metadata"]["uid"] for pod in pods.values()}
        begun = min(
            moment
            for moment, _, one in list(scene.pods.events)
            if one["metadata"]["uid"] in uids and one["metadata"].get("deletionTimestamp")
        )
        pods = found.pods
        operator.make_anew()
        if begun > killed + 0.5:  # by the next operator, then: the one that was killed had not begun
            return f"killed {1000 * (killed - at):.0f} ms after durable, deletes began {begun - killed:.1f} s later, try {tries}"
    expect(False, f"in {tries} tries no kill landed before the deletes")


@case(alone=True, node=True)
def operator_killed_at_random_moments(site, scene):
    operator = Operator(scene.kubernetes)
    chance = random.Random(site.seed)
    scene.submit()
    pods = scene.training()
    told = []
    for round_ in range(1, site.options.operator_kills + 1):
        seen, pid = names(scene), operator.process()
        delay = chance.choice([chance.uniform(0, 0.3), chance.uniform(0.3, 3), chance.uniform(3, 10)])
        before = scene.last_step(pods)
        scene.kubernetes.evict(scene.namespace, f"digits-worker-{chance.randrange(2)}")
        # At that moment, or when nothing is left that a kill could disturb.
        poll(
            lambda: [
                one for one in scene.breakpoint_list() if is_restored(one) and one["metadata"]["name"] not in seen
            ],
            delay,
            pause=0.1,
        )
        operator.kill(pid)
        # Pods that were made while it was away are made anew with their sidecar, which is one restart more.
        found = expect_recovered(
            scene, pods, before, retries=(round_, 2 * round_), beyond=seen, story=SURE, timed=False
        )
        pods = found.pods
        told.append(f"{delay:.2f}")
        operator.make_anew()
    return f"seed {site.seed}, kills after {', '.join(told)} s"


@case(alone=True, node=True)
def operator_killed_while_nothing_happens(site, scene):
    """Training does not notice, and the operator that comes takes nothing for a fault."""
    operator = Operator(scene.kubernetes)
    scene.submit()
    pods = scene.training()
    for _ in range(2):
        restarts = operator.restarts()
        operator.kill(operator.process())
        wait_for(lambda: operator.restarts() > restarts, 60, "the kubelet to start the operator again")
        operator.make_anew()
        scene.trains_on(pods, scene.last_step(pods), steps=20)
    expect_equal([one["spec"].get("reason") for one in scene.breakpoint_list()], [], "Breakpoints")
    after = scene.kubernetes.pods_of(scene.namespace, "digits")
    expect_equal(
        {pod["metadata"]["uid"] for pod in after}, {pod["metadata"]["uid"] for pod in pods.values()}, "the pods"
    )
    parted = [
        name for name in pods if "a peer is gone" in scene.kubernetes.log(scene.namespace, name, "rekindle-sidecar")
    ]
    expect(not parted, f"the sidecars of {', '.join(parted)} lost each other when the operator came back")


@case(alone=True)
def operator_away_in_the_middle_of_a_recovery(site, scene):
    """The new pods are made while no webhook answers: they wait, nothing is lost, and the job comes back protected.
    Others start as ever."""
    seconds = site.options.webhook_away_seconds
    scene.submit()
    old = scene.training()
    before = scene.last_step(old)
    operator = Operator(scene.kubernetes)
    uids = {pod["metadata"]["uid"] for pod in old.values()}
    scene.kubernetes.evict(scene.namespace, "digits-worker-0")
    scene.breakpoints.first(lambda _, one: True, 30, "the Breakpoint")
    with operator.away():
        left = time.monotonic() + seconds
        fresh = wait_for(
            lambda: [
                pod for pod in scene.kubernetes.pods_of(scene.namespace, "digits") if pod["metadata"]["uid"] not in uids
            ],
            90,
            "Volcano to make the pods anew",
            pause=0.5,
        )
        expect(
            all(
                pod["spec"].get("schedulingGates")
                for pod in fresh
                if not pod["metadata"].get("annotations", {}).get("rekindle.dev/injected")
            ),
            "a pod that the webhook missed should wait, gated",
        )
        plain = digits_job(scene.kubernetes, scene.namespace, file="plain.yaml", steps=60, cpu_limit="500m")
        scene.kubernetes.create(JOBS, scene.namespace, plain)
        scene.reached("Completed", "digits-plain", seconds=120)
        late = digits_job(scene.kubernetes, scene.namespace, name="late")
        refused = scene.kubernetes.kubectl("create", "-f", "-", text=json.dumps(late), check=False)
        expect(
            refused.returncode != 0 and "jobs.rekindle.dev" in refused.stderr,
            f"a protected job created now should be refused by name of the webhook: {refused.stderr}",
        )
        ended = ("Failed", "Aborted", "Terminated", "Completed", "")
        poll(lambda: scene.phase() in ended, max(0.0, left - time.monotonic()), pause=2)
        phase = scene.phase()
        expect(phase not in ended, f"the job was lost while the operator was away: it is {phase or 'gone'}")
    found = scene.recovered(old, seconds=180)
    expect_no_step_lost(scene, before, found, found.status["restoredStep"])
    for pod in found.pods.values():
        expect(
            "rekindle.dev/injected" in pod["metadata"].get("annotations", {}),
            f"pod {pod['metadata']['name']} should be protected again",
        )
    expect_equal(len(scene.breakpoint_list("digits")), 1, "the Breakpoints of the job")
    retries = scene.job()["status"].get("retryCount", 0)
    expect(retries <= 3, f"the recovery should cost a few retries at most; retryCount is {retries}")
    before = scene.last_step(found.pods)
    seen = names(scene)
    scene.kubernetes.evict(scene.namespace, "digits-worker-1")
    expect_recovered(scene, found.pods, before, retries=retries + 1, beyond=seen)
    return f"{seconds} s away, {retries} retries"


@case(alone=True)
def uninstall_leaves_jobs_running_and_nothing_behind(site, scene):
    scene.submit()
    pods = scene.training()
    kinds = {line.partition("/")[0].partition(".")[0] for line in of_the_chart(site)}
    expect_equal(sorted(kinds), sorted(CHART_KINDS), "the kinds of objects that could be left behind")
    site.kubernetes.helm("uninstall", RELEASE, "--namespace", NAMESPACE, "--wait")
    try:
        ours = of_the_chart(site)
        expect(not ours, f"left behind: {', '.join(ours)}")
        before = scene.last_step(pods)
        scene.trains_on(pods, before, steps=15)
        after = scene.kubernetes.pods_of(scene.namespace, "digits")
        expect_equal(
            {pod["metadata"]["uid"] for pod in after},
            {pod["metadata"]["uid"] for pod in pods.values()},
            "the pods of the running job",
        )
        expect(all(ready(pod) for pod in after), "the pods of the running job should be Ready")
        held = [
            object_["metadata"]["name"]
            for object_ in (*after, scene.job())
            if any("rekindle" in one for one in object_["metadata"].get("finalizers", []))
        ]
        expect(not held, f"finalizers of ours are on {', '.join(held)}")
        # A breakpoint without an operator: the hook and the sidecars alone.
        before = scene.last_step(pods)
        scene.kubernetes.delete(JOBS, scene.namespace, "digits")
        wait_gone(scene)
        plain = digits_job(scene.kubernetes, scene.namespace, name="afterwards", file="plain.yaml", steps=20)
        scene.kubernetes.create(JOBS, scene.namespace, plain)
        scene.reached("Completed", "afterwards")
    finally:
        reinstall(site, scene)
    scene.submit()
    found = scene.resumed(pods)
    expect_no_step_lost(scene, before, found)
    before = scene.last_step(found.pods)
    scene.kubernetes.evict(scene.namespace, "digits-worker-0")
    expect_recovered(scene, found.pods, before, retries=1)


# Cluster-wide, as the names of `kubectl get -o name` begin.
CHART_KINDS = (
    "mutatingwebhookconfiguration",
    "validatingadmissionpolicy",
    "validatingadmissionpolicybinding",
    "clusterrole",
    "clusterrolebinding",
)


def of_the_chart(site):
    """Its objects that belong to no namespace, by name."""
    names = site.kubernetes.kubectl("get", ",".join((*CHART_KINDS, "validatingwebhookconfigurations")), "-o", "name")
    return [line for line in names.splitlines() if "rekindle-system-" in line or "rekindle.dev" in line]


def reinstall(site, scene):
    if site.options.installed:
        site.kubernetes.helm(
            "upgrade",
            "--install",
            RELEASE,
            CHART,
            "--namespace",
            NAMESPACE,
            "--create-namespace",
            "--wait",
            "--timeout",
            "120s",
        )
    else:
        install(site.options.context, scene.folder / "reinstall.log", keep_images=True)
