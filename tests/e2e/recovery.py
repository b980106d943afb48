"""What has to hold after every recovery, whatever the fault was."""

import re

from kubernetes import condition, wait_for
from polling import poll
from stage import expect, expect_equal
from stepjournal import committed_by_all, first_behind, last_committed, life_faults
from steploss import StepLoss

COLUMNS = ("NAME", "JOB", "TRIGGER", "STEP", "RANKS", "BYTES", "AGREED", "DURABLE", "STATUS", "AGE")
TIMES = ("AGREED", "DURABLE")
STORY = ("FaultSeen", "BreakpointDurable", "JobResumed")


def expect_recovered(
    scene,
    old,
    step_before,
    *,
    job="digits",
    retries,
    pods=2,
    ranks=4,
    survivors=None,
    seconds=150,
    beyond=(),
    story=STORY,
    timed=True,
    nobody_left=False,
):
    """Back in new pods, at the step after the saved one, nothing lost, one Breakpoint, and told so. `survivors`: the
    fewest ranks that may have been left to save, all by default. `timed`: somebody was there to hear how long the save
    took. `nobody_left`: every process that held the model is dead. The recovery."""
    found = scene.recovered(old, job, beyond=beyond, pods=pods, seconds=seconds)
    status, name = found.status, found.breakpoint["metadata"]["name"]
    saved = status.get("step", 0)
    expect_no_step_lost(scene, step_before, found, saved, nobody_left=nobody_left, job=job, ranks=ranks)
    expect_equal(found.first_step, saved + 1, f"the first step in the new pods' logs, step {saved} being saved")
    expect_equal(status.get("firstStep"), saved + 1, f"status.firstStep of Breakpoint {name}")
    expect_equal(status.get("state"), "Restored", f"status.state of Breakpoint {name}")
    for type_ in ("Agreed", "Durable", "Restored"):
        one = condition(found.breakpoint, type_)
        expect(
            one is not None and one["status"] == "True",
            f"condition {type_} of Breakpoint {name} should be True; it is {one}",
        )
    expect_equal(status.get("ranksExpected"), ranks, f"the ranks expected by Breakpoint {name}")
    expect(
        (ranks if survivors is None else survivors) <= status.get("ranksSaved", 0) <= ranks,
        f"the ranks that saved Breakpoint {name}: {status.get('ranks')}",
    )
    expect(
        status.get("bytes", 0) > 0 and status.get("path") and status.get("manifestHash"),
        f"Breakpoint {name} should tell bytes, path and hash; it says {status}",
    )
    scene.trains_on(found.pods, scene.last_step(found.pods))
    fresh = [one["metadata"]["name"] for one in scene.breakpoint_list(job) if one["metadata"]["name"] not in beyond]
    expect_equal(fresh, [name], "the Breakpoints of the job that this fault made")
    owners = found.breakpoint["metadata"].get("ownerReferences", [])
    expect_equal(
        [owner["uid"] for owner in owners], [scene.job(job)["metadata"]["uid"]], f"the owners of Breakpoint {name}"
    )
    expect_columns(scene, name, timed)
    expect_retries(scene, job, retries)
    expect_told(scene, job, story)
    return found


def count_steps(scene, found, saved, *, job="digits", ranks=4, ranks_after=None):
    """What the recovery `found` has cost, counted from the ranks' own journals; `saved` None: nobody has told what was
    saved. In the case's line. The job must not have lived otherwise than by the recoveries that were counted."""
    journals = scene.journals(job, ranks)
    steps = steps_lost(journals, found.attempt - 1, saved, ranks_after or ranks)
    scene.losses.append(steps)
    expect_no_other_life(scene, journals, None)
    return steps


def steps_lost(journals, lived, saved, ranks_after):
    """Of the life `lived` of the job; `ranks_after`: how many went on."""
    first = first_behind({rank: journals[rank] for rank in range(ranks_after)}, lived).step
    return StepLoss(last_committed(journals, lived), first - 1 if saved is None else saved, first)


def expect_no_other_life(scene, journals, steps):
    """Every life began behind a recovery that was counted, and no step of it was left out or made twice. `steps`: with
    which the job has ended, None when it has not."""
    faults = life_faults(journals, {loss.first_step_after for loss in scene.losses}, steps)
    expect(not faults, "; ".join(faults[:3]))


def expect_no_step_lost(scene, step_before, found, saved=None, *, nobody_left=False, **counted):
    """`step_before`: what was seen from outside before the fault, which the journals have to know as well. `nobody_left`:
    the ranks cannot be killed in one instant, so one of them may have made the step that another was killed in; what
    every rank had committed may not be lost."""
    steps = count_steps(scene, found, saved, **counted)
    expect(
        steps.last_step_committed >= step_before,
        f"step {step_before} was seen before the fault, but the ranks' journals end with step {steps.last_step_committed}",
    )
    lost_max = steps_of_some(scene, found, **counted) if nobody_left else 0
    expect(lost_max <= 1, f"ranks that meet in every step were {lost_max} steps apart when they died")
    expect_nothing_lost(steps, lost_max)


def steps_of_some(scene, found, *, job="digits", ranks=4):
    """How many of the last steps before the recovery only some ranks had committed."""
    journals, lived = scene.journals(job, ranks), found.attempt - 1
    return last_committed(journals, lived) - committed_by_all(journals, lived)


def expect_nothing_lost(steps, lost_max=0):
    faults = steps.faults(lost_max=lost_max)
    expect(not faults, "; ".join(faults))


def expect_retries(scene, job, retries):
    """As many restarts as were needed (a number, or the fewest and the most), counted by Volcano, below a maxRetry that
    leaves room for many."""
    object_ = scene.job(job)
    fewest, most = retries if isinstance(retries, tuple) else (retries, retries)
    count = object_["status"].get("retryCount", 0)
    expect(
        fewest <= count <= most,
        f"status.retryCount of the job: expected {fewest if fewest == most else f'{fewest} to {most}'}, got {count}",
    )
    expect_equal(object_["spec"].get("maxRetry"), 100, "spec.maxRetry of the job")
    expect_equal(scene.phase(job), "Running", "the job's phase")


def expect_columns(scene, name, timed=True):
    """`kubectl get breakpoints` as a person reads it: every column there and filled; the two times only need to be
    where `timed`."""
    text = scene.kubernetes.kubectl("-n", scene.namespace, "get", "breakpoints")
    header, *rows = text.splitlines()
    expect_equal(tuple(header.split()), COLUMNS, "the columns of kubectl get breakpoints")
    row = next((line for line in rows if line.split()[0] == name), "")
    begins = [*(word.start() for word in re.finditer(r"\S+", header)), None]
    empty = [
        column for column, begin, end in zip(COLUMNS, begins, begins[1:]) if row[begin:end].strip() in ("", "<none>")
    ]
    wanted = [column for column in empty if timed or column not in TIMES]
    expect(not wanted, f"columns {', '.join(wanted)} should be filled:\n{header}\n{row}")


def expect_told(scene, job, reasons):
    """The Job's events tell the story."""

    def missing():
        told = {event["reason"] for event in scene.events(job)}
        return [reason for reason in reasons if reason not in told]

    poll(lambda: not missing(), 5, pause=0.3)
    expect(
        not missing(),
        f"events {missing()} on the job are missing; it has {sorted({event['reason'] for event in scene.events(job)})}",
    )


def expect_own_grace(scene, old):
    """Every old pod was deleted with its own termination grace, and seen to be."""
    graces = scene.deletions(old)
    expect_equal(sorted(graces), sorted(old), "the old pods whose deletion was seen")
    for name, pod in old.items():
        expect_equal(
            graces[name], pod["spec"]["terminationGracePeriodSeconds"], f"the grace that pod {name} was deleted with"
        )


def expect_no_restart_by_volcano(scene, job="digits"):
    """Neither counted nor started anew by Volcano: the pods were replaced one by one."""
    expect_equal(
        scene.job(job)["status"].get("version", 0),
        0,
        "status.version of the job, which Volcano raises with each restart of its own",
    )


def expect_quiet(scene, since, job="digits"):
    """Nothing that somebody on call would look at: no Breakpoint, no warning of ours, no error in the operator's
    log."""
    from operatorpod import Operator

    names = [
        f"{one['metadata']['name']} ({one['spec'].get('reason', one['spec']['trigger'])})"
        for one in scene.breakpoint_list()
    ]
    expect(not names, f"expected no Breakpoint, found {', '.join(names)}")
    warnings = [f"{event['reason']}: {event['note']}" for event in scene.events(job) if event.get("type") == "Warning"]
    expect(not warnings, f"expected no warning on the job, found {'; '.join(warnings)}")
    errors = Operator(scene.kubernetes).errors_about(scene.namespace, since)
    expect(not errors, f"expected no error in the operator's log, found {errors[:3]}")


def wait_gone(scene, job="digits", seconds=120):
    wait_for(
        lambda: scene.job(job) is None and not scene.kubernetes.pods_of(scene.namespace, job),
        seconds,
        f"job {job} and its pods to be gone",
        pause=0.3,
    )
