"""A demo's report is read anew, and decides how the demo ends."""

import contextlib
import io
import json
import pathlib
import tempfile

from failure import Failure
from proof_test import GOOD
from reportcheck import FIELDS, report_faults
from selfcheck import outcomes_of, refused, said
from story import Story, conclude
from timeline import SAVED_EVENTS, timeline_lines

REPORT = {"fault": "sigkill", **GOOD.report(), "seconds": 12.0}
PRINTED = "\n".join([*timeline_lines("SIGKILL", GOOD.timeline), *GOOD.lines()])


def wrong(printed=PRINTED, lost_max=0, **changes):
    return report_faults({**REPORT, **changes}, printed, SAVED_EVENTS, lost_max=lost_max)


def a_good_report_is_well():
    yield wrong(), []


def a_missing_field_is_told():
    for field in FIELDS:
        report = {name: value for name, value in REPORT.items() if name != field}
        yield said(report_faults(report, PRINTED, SAVED_EVENTS), f"the report lacks {field}"), True


def each_wrong_figure_is_told():
    yield said(wrong(faults=["x"]), "x"), True
    yield said(wrong(steps_lost=1), "the report says steps_lost 1, its other figures 0"), True
    yield said(wrong(step_at_fault=41), "step 41 was seen, step 40 is said to be last"), True
    yield wrong(step_at_fault=40), []
    zeros = {"weights_sha256": "0" * 64, "weights_sha256_undisturbed": "0" * 64}
    yield any("is no SHA-256" in fault for fault in wrong(**zeros)), True
    initial = REPORT["weights_sha256_initial"]
    yield any("the final states differ" in fault for fault in wrong(weights_sha256=initial)), True
    yield any("step 42 was expected first" in fault for fault in wrong(step_saved=41)), True


def a_loss_is_told_unless_it_may_be():
    lost = {"last_step_committed": 42, "steps_lost": 2}
    printed = PRINTED.replace("last_step_committed         40", "last_step_committed         42").replace(
        "steps_lost                   0", "steps_lost                   2"
    )
    yield said(wrong(printed, **lost), "2 steps were lost"), True
    yield said(wrong(printed, lost_max=1, **lost), "2 steps were lost"), True
    yield wrong(printed, lost_max=2, **lost), []


def a_wrong_timeline_is_told():
    timeline = REPORT["timeline"]
    zeros = [{**one, "milliseconds": 0.0} for one in timeline]
    yield any("at the very moment of the fault" in fault for fault in wrong(timeline=zeros)), True
    yield said(wrong(timeline=timeline[:-1]), "nobody told of first_step"), True
    yield said(wrong(timeline=timeline[1:]), "nobody told of fault"), True


def what_was_not_printed_is_told():
    lines = PRINTED.splitlines()
    for word in ("last_step_committed", "step_saved", "first_step_after", "steps_lost", "undisturbed", " disturbed"):
        without = "\n".join(line for line in lines if f"{word} " not in line)
        yield len(wrong(without)), 1
    # All times printed as 0.0, which the fault itself may be.
    yield len(wrong(PRINTED.replace("     9.5 ms", "     0.0 ms"))), 1


def concluded(**changes):
    """What was printed, and the report that was written."""
    with tempfile.TemporaryDirectory() as name:
        path = pathlib.Path(name) / "reports" / "demo.json"
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            failed = None
            try:
                conclude({**REPORT, **changes}, path, Story())
            except Failure as failure:
                failed = str(failure)
        return failed, printed.getvalue(), json.loads(path.read_text())


def a_demo_without_faults_ends_well():
    failed, printed, report = concluded()
    yield (failed, report), (None, REPORT)
    yield printed.startswith("Nothing was lost. 12 s in all"), True
    yield concluded(steps_lost=3)[1].startswith("Resumed as promised."), True


def a_demo_with_faults_fails_with_a_report():
    failed, printed, report = concluded(faults=["1 step was lost", "and a pen"])
    yield failed.startswith("1 step was lost; and a pen. Report: "), True
    yield (printed, report["faults"]), ("", ["1 step was lost", "and a pen"])


def a_demo_that_was_not_judged_does_not_end_well():
    report = {name: value for name, value in REPORT.items() if name != "faults"}
    with tempfile.TemporaryDirectory() as name:
        yield refused(lambda: conclude(report, pathlib.Path(name) / "demo.json", Story()), KeyError), True


def outcomes():
    return outcomes_of(
        "demo-report",
        (
            a_good_report_is_well,
            a_missing_field_is_told,
            each_wrong_figure_is_told,
            a_loss_is_told_unless_it_may_be,
            a_wrong_timeline_is_told,
            what_was_not_printed_is_told,
            a_demo_without_faults_ends_well,
            a_demo_with_faults_fails_with_a_report,
            a_demo_that_was_not_judged_does_not_end_well,
        ),
    )
