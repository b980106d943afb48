"""The stage `demo` (tests/demo/run) with a small program in place of the demo: it ends with 0 only for a report that is
well."""

import contextlib
import io
import json
import pathlib
import re
import tempfile
from unittest.mock import patch

from kubernetes import Failed
from proof_test import GOOD
from selfcheck import outcomes_of
from storytests import entered, program
from timeline import CLUSTER_EVENTS, Entry, timeline_lines

RUN = program("demo/run")
# As the watch and the sidecars tell it.
TIMELINE = [Entry(1.0 + place, name, name) for place, name in enumerate(CLUSTER_EVENTS)]
REPORT = {
    "fault": "evict",
    **GOOD.report(),
    "timeline": [{"milliseconds": 0.0, "event": "fault"}, *(one.report() for one in TIMELINE)],
}
PRINTED = "\n".join([*timeline_lines("evicted", TIMELINE), *GOOD.lines()])
DEMO = """import pathlib, sys
folder = pathlib.Path(__file__).parent
words = sys.argv[1:]
(folder / "words").open("a").write(" ".join(words) + "\\n")
print((folder / "printed").read_text())
report = folder / "report"
if report.exists():
    pathlib.Path(words[words.index("--report") + 1]).write_text(report.read_text())
sys.exit(int((folder / "code").read_text()))
"""


class Stage:
    """`report` None: the demo leaves none."""

    def __init__(self, *words, report=REPORT, printed=PRINTED, code=0, set_up=None):
        @contextlib.contextmanager
        def installed(*_, **__):
            if set_up:
                raise Failed(set_up)
            yield

        output = io.StringIO()
        with tempfile.TemporaryDirectory() as name:
            root = pathlib.Path(name)
            folder = root / "tests" / "demo"
            folder.mkdir(parents=True)
            (folder / "demo").write_text(DEMO)
            (folder / "printed").write_text(printed)
            (folder / "code").write_text(str(code))
            if report is not None:
                (folder / "report").write_text(json.dumps(report))
            with (
                entered(
                    [
                        patch.object(RUN, "TESTS", root / "tests"),
                        patch.object(RUN, "REPOSITORY", root),
                        patch.object(RUN, "LOGS", root / "logs"),
                        patch.object(RUN, "REPORTS", root / "reports"),
                        patch.object(RUN.installation, "installed", installed),
                        patch.object(RUN.signal, "signal"),
                        patch("sys.argv", ["run", *words]),
                    ]
                ),
                contextlib.redirect_stdout(output),
            ):
                self.code = RUN.main()
            asked = folder / "words"
            self.asked = asked.read_text().splitlines() if asked.exists() else []
        self.lines = re.sub(r": \d+ s,", ": N s,", output.getvalue()).splitlines()


def every_fault_is_demonstrated():
    stage = Stage()
    yield stage.code, 0
    told = "N s, steps_lost 0 (last_step_committed 40, step_saved 40, first_step_after 41)"
    yield (
        stage.lines,
        [
            *(f"ok {fault}_loses_no_step: {told}" for fault in ("evict", "delete", "sigkill")),
            "3 passed, 0 failed, 0 skipped",
        ],
    )
    yield (
        [words.split()[:5] for words in stage.asked][1],
        ["--installed", "--fault", "delete", "--namespace", "rekindle-demo-delete"],
    )


def a_context_has_no_nodes_to_kill_from():
    stage = Stage("--context", "kind")
    yield (stage.code, stage.lines[-1]), (0, "2 passed, 0 failed, 0 skipped")
    yield all(words.endswith("--context kind") for words in stage.asked), True


def a_demo_that_fails_is_a_failure():
    stage = Stage("evict", code=1, printed="The demo failed: 1 step was lost")
    yield stage.code, 1
    yield stage.lines[0].startswith("FAIL evict_loses_no_step: ended with 1; log logs/demo-evict.log"), True
    yield "The demo failed: 1 step was lost" in stage.lines[0], True
    yield stage.lines[-1], "0 passed, 1 failed, 0 skipped"
    # Also with a report in which all is well.
    yield Stage("evict", code=3).code, 1


def a_report_that_is_not_well_is_a_failure():
    for changes, words in (
        ({"faults": ["1 step was lost"]}, "ended with 0 although 1 step was lost"),
        ({"step_at_fault": 41}, "step 41 was seen"),
        ({"timeline": REPORT["timeline"][:-1]}, "nobody told of first_step"),
    ):
        stage = Stage("evict", report={**REPORT, **changes})
        yield (stage.code, stage.lines[0].startswith("FAIL evict") and words in stage.lines[0]), (1, True)
    yield Stage("evict", printed="Nothing was lost.").code, 1


def a_demo_without_a_report_is_a_failure():
    stage = Stage("evict", report=None)
    yield (stage.code, stage.lines[-1]), (1, "0 passed, 1 failed, 0 skipped")


def what_cannot_be_set_up_is_a_failure():
    stage = Stage(set_up="no root\nhere")
    yield (stage.code, stage.asked), (1, [])
    yield stage.lines, ["FAIL set_up: no root / here", "0 passed, 1 failed, 0 skipped"]


def a_name_of_no_fault_is_a_failure():
    yield (Stage("flood").code, Stage("flood").asked), (1, [])


def outcomes():
    return outcomes_of(
        "stage-demo",
        (
            every_fault_is_demonstrated,
            a_context_has_no_nodes_to_kill_from,
            a_demo_that_fails_is_a_failure,
            a_report_that_is_not_well_is_a_failure,
            a_demo_without_a_report_is_a_failure,
            what_cannot_be_set_up_is_a_failure,
            a_name_of_no_fault_is_a_failure,
        ),
    )
