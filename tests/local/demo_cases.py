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
from faults import Fault, kill_random_rank
from processes import Processes, end_process
from proof import hash_of, recovery_of
from trainingrun import ProtectedRun, UndisturbedRun

FIELDS = (
    "fault",
    "step_at_fault",
    "step_saved",
    "first_step_after",
    "steps_lost",
    "weights_sha256",
    "weights_sha256_undisturbed",
    "timeline",
)


def _demo(
    context: Context, processes: Processes, folder: pathlib.Path, *options: str, patience_seconds: float = 900
) -> dict:
    """Runs it and gives its report."""
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
    expect(code == 0, f"demo --local {' '.join(options)} ended with {code}; expected 0. {output[-1500:]}")
    expect(report.exists(), f"the demo left no report at {report}")
    return json.loads(report.read_text())


def _expect_nothing_lost(report: dict) -> None:
    missing = [field for field in FIELDS if field not in report]
    expect(not missing, f"the report lacks {', '.join(missing)}")
    expect(report["steps_lost"] == 0, f"{report['steps_lost']} steps were lost; expected 0")
    expect(
        report["step_saved"] >= report["step_at_fault"],
        f"step {report['step_saved']} was saved although step {report['step_at_fault']} had been made",
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
    report = _demo(context, processes, folder, "--fault", "evict")
    _expect_nothing_lost(report)


def killed_rank_costs_no_step(context: Context, processes: Processes, folder: pathlib.Path) -> None:
    report = _demo(context, processes, folder, "--fault", "sigkill")
    _expect_nothing_lost(report)
    expect(report["target"].startswith("rank "), f"killed was {report['target']}; expected a rank")


def killed_launcher_resumes_from_the_newest_complete_checkpoint(
    context: Context, processes: Processes, folder: pathlib.Path
) -> None:
    """What is promised when nobody is left to save: what was durable stands, the steps behind it are made again to the same end."""
    report = _demo(context, processes, folder, "--fault", "sigkill", "--target", "launcher")
    expect(report["step_saved"] > 0, "no checkpoint was there to resume from")
    expect(
        report["first_step_after"] == report["step_saved"] + 1,
        f"went on with step {report['first_step_after']} after {report['step_saved']}",
    )
    expect(report["weights_sha256"] == report["weights_sha256_undisturbed"], "the end states differ")


def ten_random_kills_cost_no_step(context: Context, processes: Processes, folder: pathlib.Path) -> None:
    report = _demo(context, processes, folder, "--kills", "10", patience_seconds=900)
    expect(report["kills"] == 10 and len(report["faults"]) == 10, f"{report['kills']} kills; expected 10")
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
        expect(
            recovery.steps_lost == 0,
            f"a kill while {fault.word} at step {fault.step_at_fault} lost {recovery.steps_lost} steps, seed {seed}; "
            f"logs: {run.folder}",
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
    try:
        process.wait(6)
        raise AssertionError(f"the demo was over before it could be interrupted: {log.read_text()[-500:]}")
    except subprocess.TimeoutExpired:
        process.terminate()
    code = process.wait(20)
    expect(code != 0, "an interrupted demo ended with 0")
    left = [
        entry for entry in os.listdir("/proc") if entry.isdigit() and _belongs_to(int(entry), f"local-{process.pid}/")
    ]
    expect(not left, f"processes {left} of the interrupted demo are still there")


def _belongs_to(pid: int, mark: str) -> bool:
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return mark.encode() in file.read()
    except OSError:
        return False


CASES = [
    evicted_run_resumes_at_the_next_step,
    killed_rank_costs_no_step,
    ten_random_kills_cost_no_step,
    rank_killed_inside_its_update_costs_no_step,
    killed_launcher_resumes_from_the_newest_complete_checkpoint,
    demo_that_is_interrupted_ends_what_it_started,
]
