"""`./dev demo --local` as a newcomer calls it, with every fault that it knows."""

import json
import os
import pathlib
import random
import re
import subprocess
import sys

from building import REPOSITORY
from case import Context, expect
from failure import Failure
from faults import Fault, kill_random_rank
from polling import poll
from processes import Processes, end_process
from proof import hash_of, recovery_of
from stepjournal import first_behind, last_committed, read_journals, steps_of
from steploss import StepLoss
from timeline import milliseconds_since
from trainingrun import ProtectedRun, UndisturbedRun

FIELDS = (
    "fault",
    "step_at_fault",
    "last_step_committed",
    "step_saved",
    "first_step_after",
    "steps_lost",
    "weights_sha256",
    "weights_sha256_undisturbed",
    "timeline",
)


def _demo(
    context: Context,
    processes: Processes,
    folder: pathlib.Path,
    *options: str,
    expected_code: int = 0,
    patience_seconds: float = 900,
) -> tuple[dict, str]:
    """Runs it and gives its report and what it printed."""
    report = folder / "demo.json"
    log = folder / "demo.log"
    process = processes.start(
        [
            sys.executable,
            REPOSITORY / "tests" / "demo" / "demo",
            "--local",
            "--build",
            context.build,
            "--report",
            report,
            *options,
        ],
        log,
    )
    try:
        code = process.wait(patience_seconds)
    except subprocess.TimeoutExpired:
        end_process(process)
        code = "no end"
    output = log.read_text(errors="replace")
    expect(
        code == expected_code,
        f"demo --local {' '.join(options)} ended with {code}; expected {expected_code}. {output[-1500:]}",
    )
    expect(report.exists(), f"the demo left no report at {report}")
    return json.loads(report.read_text()), output


def _expect_nothing_lost(report: dict) -> None:
    missing = [field for field in FIELDS if field not in report]
    expect(not missing, f"the report lacks {', '.join(missing)}")
    expect(report["steps_lost"] == 0, f"{report['steps_lost']} steps were lost; expected 0")
    expect(
        report["step_saved"] == report["last_step_committed"] >= report["step_at_fault"],
        f"step {report['step_saved']} was saved, {report['last_step_committed']} was committed last, and the killer had seen "
        f"{report['step_at_fault']}",
    )
    expect(
        report["first_step_after"] == report["step_saved"] + 1,
        f"went on with step {report['first_step_after']} after saving {report['step_saved']}",
    )
    expect(
        re.fullmatch("[0-9a-f]{64}", report["weights_sha256"]) is not None, f"no SHA-256: {report['weights_sha256']}"
    )
    expect(report["weights_sha256"] == report["weights_sha256_undisturbed"], "the end states differ")
    times = [entry["milliseconds"] for entry in report["timeline"]]
    expect(
        times == sorted(times) and len(times) >= 5, f"the timeline is out of order or too short: {report['timeline']}"
    )


def evicted_run_resumes_at_the_next_step(context: Context, processes: Processes, folder: pathlib.Path) -> None:
    report, _ = _demo(context, processes, folder, "--fault", "evict")
    _expect_nothing_lost(report)


def lost_step_makes_the_demo_fail(context: Context, processes: Processes, folder: pathlib.Path) -> None:
    """A `rekindle` that gives up one step and says nothing of it. The weights of the end cannot show it, so the count
    has to."""
    report, output = _demo(context, processes, folder, "--planted", "lose-a-step", expected_code=1)
    printed = re.search(r"^ *steps_lost +(\d+)$", output, re.MULTILINE)
    expect(printed is not None and printed[1] == "1", f"expected the demo to print 1 lost step: {output[-1500:]}")
    expect("The demo failed: 1 step was lost" in output, f"expected the demo to fail for that: {output[-1500:]}")
    expect(
        [fault.partition(":")[0] for fault in report["faults"]] == ["1 step was lost"],
        f"expected the lost step to be all that is wrong; the report says {report['faults']}",
    )
    expect(
        report["weights_sha256"] == report["weights_sha256_undisturbed"],
        "the planted fault was to lose a step, not to spoil the state: the end states differ",
    )


def proof_refuses_what_cannot_be(context: Context, processes: Processes, folder: pathlib.Path) -> None:
    """More saved than was ever made, training that goes on elsewhere, a time before the fault: each is told and none
    made 0."""
    told = {
        StepLoss(last_step_committed=40, step_saved=40, first_step_after=41): [],
        StepLoss(last_step_committed=42, step_saved=40, first_step_after=41): ["2 steps were lost"],
        StepLoss(last_step_committed=39, step_saved=40, first_step_after=41): [
            "no rank's journal knows a step after 39"
        ],
        StepLoss(last_step_committed=40, step_saved=40, first_step_after=42): ["step 41 was expected first"],
    }
    for steps, expected in told.items():
        said = steps.faults()
        expect(
            len(said) == len(expected) and all(words in sentence for words, sentence in zip(expected, said)),
            f"{steps}: expected {expected}, got {said}",
        )
    expect(milliseconds_since(10.0, 10.25, "x") == 250.0, "a quarter of a second should be 250 ms")
    try:
        milliseconds_since(10.0, 9.999, "every rank is asked to hold still")
    except Failure as failure:
        expect("1.0 ms before the fault" in str(failure), f"the sentence should tell how much: {failure}")
    else:
        expect(False, "a time before the fault should be refused")
    journals = {
        0: steps_of('{"attempt":1,"step":5,"time_ms":1}\n{"attempt":2,"step":6,"time_ms":2}\n', "of rank 0"),
        1: [],
    }
    expect(last_committed(journals, 1) == 5, "step 5 was the last one of attempt 1")
    for wrong in (lambda: first_behind(journals, 1), lambda: read_journals(folder, 1), lambda: steps_of("{}", "x")):
        try:
            wrong()
        except Failure:
            continue
        expect(False, "a journal that is missing, broken or does not go on should be refused")


def killed_rank_costs_no_step(context: Context, processes: Processes, folder: pathlib.Path) -> None:
    report, _ = _demo(context, processes, folder, "--fault", "sigkill")
    _expect_nothing_lost(report)
    expect(report["target"].startswith("rank "), f"killed was {report['target']}; expected a rank")


def killed_launcher_resumes_from_the_newest_complete_checkpoint(
    context: Context, processes: Processes, folder: pathlib.Path
) -> None:
    """What is promised when nobody is left to save: what was durable stands, the steps behind it are made again to the
    same end."""
    report, _ = _demo(context, processes, folder, "--fault", "sigkill", "--target", "launcher")
    expect(report["step_saved"] > 0, "no checkpoint was there to resume from")
    expect(
        report["first_step_after"] == report["step_saved"] + 1,
        f"went on with step {report['first_step_after']} after {report['step_saved']}",
    )
    expect(report["weights_sha256"] == report["weights_sha256_undisturbed"], "the end states differ")


def ten_random_kills_cost_no_step(context: Context, processes: Processes, folder: pathlib.Path) -> None:
    report, _ = _demo(context, processes, folder, "--kills", "10", patience_seconds=900)
    expect(report["kills"] == 10 and len(report["recoveries"]) == 10, f"{report['kills']} kills; expected 10")
    expect(report["steps_lost"] == 0, f"{report['steps_lost']} steps lost with seed {report['seed']}; expected 0")


def rank_killed_inside_its_update_costs_no_step(context: Context, processes: Processes, folder: pathlib.Path) -> None:
    """Random kills seldom hit the update, which is short; these aim at it."""
    setting = context.setting(folder, 200)
    undisturbed = UndisturbedRun(processes, setting)
    undisturbed.finish()
    run = ProtectedRun(processes, setting, "run")
    run.launch()
    seed = int.from_bytes(os.urandom(4), "little")
    chance = random.Random(seed)
    faults: list[Fault] = []
    attempt = 0
    while len(faults) < 8 and not sum(fault.word == "updating" for fault in faults) >= 2:
        _, words = run.await_training(attempt)
        attempt = max(word.attempt for word in words.values())
        faults.append(kill_random_rank(run, chance, aim="updating"))
    run.await_training(attempt)
    run.finish()
    hit = sum(fault.word == "updating" for fault in faults)
    expect(
        hit > 0, f"none of {len(faults)} kills hit an update; they hit {[fault.word for fault in faults]}, seed {seed}"
    )
    for fault in faults:
        recovery = recovery_of(run, fault)
        wrong = recovery.steps.faults()
        expect(
            not wrong,
            f"a kill while {fault.word} at step {fault.step_at_fault}: {'; '.join(wrong)}, seed {seed}; logs: {run.folder}",
        )
    expect(
        hash_of(setting, run.output) == hash_of(setting, undisturbed.output),
        f"the end states differ, seed {seed}; logs: {run.folder}",
    )


def demo_that_is_interrupted_ends_what_it_started(context: Context, processes: Processes, folder: pathlib.Path) -> None:
    log = folder / "demo.log"
    process = processes.start(
        [
            sys.executable,
            REPOSITORY / "tests" / "demo" / "demo",
            "--local",
            "--build",
            context.build,
            "--report",
            folder / "demo.json",
        ],
        log,
    )
    started = poll(lambda: process.poll() is None and _processes_of(f"local-{process.pid}/"), 240)
    expect(bool(started), f"the demo started nothing that could be left behind: {log.read_text()[-500:]}")
    process.terminate()
    code = process.wait(20)
    expect(code != 0, "an interrupted demo ended with 0")
    left = _processes_of(f"local-{process.pid}/")
    expect(not left, f"of the processes {started} of the interrupted demo, {left} are still there")


def _processes_of(mark: str) -> list[str]:
    return [entry for entry in os.listdir("/proc") if entry.isdigit() and _belongs_to(int(entry), mark)]


def _belongs_to(pid: int, mark: str) -> bool:
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return mark.encode() in file.read()
    except OSError:
        return False


CASES = [
    proof_refuses_what_cannot_be,
    lost_step_makes_the_demo_fail,
    evicted_run_resumes_at_the_next_step,
    killed_rank_costs_no_step,
    ten_random_kills_cost_no_step,
    rank_killed_inside_its_update_costs_no_step,
    killed_launcher_resumes_from_the_newest_complete_checkpoint,
    demo_that_is_interrupted_ends_what_it_started,
]
