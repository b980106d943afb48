"""`./dev demo --local` as a newcomer calls it, with every fault that it knows."""

import dataclasses
import json
import os
import pathlib
import random
import re
import subprocess
import sys

from building import REPOSITORY, build_programs
from case import Context, expect
from faults import Fault, kill_random_rank
from local import CHECKPOINT_EVERY, Twin, drill_beside
from polling import poll
from processes import Processes, end_process, processes_about
from readings import observe_drill, state_in
from reportcheck import report_faults
from story import Story
from timeline import RESUMED_EVENTS, SAVED_EVENTS
from trainingrun import ProtectedRun, Setting, UndisturbedRun, initial_state


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


def _expect_proven(report: dict, printed: str, in_order: tuple = SAVED_EVENTS, *, lost_max: int = 0) -> None:
    wrong = report_faults(report, printed, in_order, lost_max=lost_max)
    expect(not wrong, "; ".join(wrong))


def evicted_run_resumes_at_the_next_step(context: Context, processes: Processes, folder: pathlib.Path) -> None:
    _expect_proven(*_demo(context, processes, folder, "--fault", "evict"))


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


def lost_step_makes_the_drill_fail(context: Context, processes: Processes, folder: pathlib.Path) -> None:
    setting = dataclasses.replace(
        context.setting(folder, 200), programs=build_programs(context.build, planted="lose-a-step")
    )
    # The first wait of this seed is 46 steps: enough to have one to lose, and far from the end.
    chance = random.Random(30)
    report = drill_beside(_twin(processes, setting), 1, chance, Story(), planted="lose-a-step")
    expect(
        report["steps_lost"] == 1 and [fault.partition(":")[0] for fault in report["faults"]] == ["1 step was lost"],
        f"expected 1 lost step to be all that is wrong; the drill says {report}",
    )


def killed_rank_costs_no_step(context: Context, processes: Processes, folder: pathlib.Path) -> None:
    report, printed = _demo(context, processes, folder, "--fault", "sigkill")
    _expect_proven(report, printed)
    expect(report["target"].startswith("rank "), f"killed was {report['target']}; expected a rank")


def killed_launcher_resumes_from_the_newest_complete_checkpoint(
    context: Context, processes: Processes, folder: pathlib.Path
) -> None:
    """What is promised when nobody is left to save: what was durable stands, the steps behind it are made again to the
    same end."""
    report, printed = _demo(context, processes, folder, "--fault", "sigkill", "--target", "launcher")
    expect(report["step_saved"] > 0, "no checkpoint was there to resume from")
    lost_max = report["lost_max"]  # a schedule's steps, and those that were made during one write
    expect(
        CHECKPOINT_EVERY <= lost_max < 2 * CHECKPOINT_EVERY,
        f"the demo would let {lost_max} steps be lost with a checkpoint every {CHECKPOINT_EVERY}",
    )
    _expect_proven(report, printed, RESUMED_EVENTS, lost_max=lost_max)


def ten_random_kills_cost_no_step(context: Context, processes: Processes, folder: pathlib.Path) -> None:
    report, _ = _demo(context, processes, folder, "--kills", "10", patience_seconds=900)
    expect(report["kills"] == 10 and len(report["recoveries"]) == 10, f"{report['kills']} kills; expected 10")
    expect(report["steps_lost"] == 0, f"{report['steps_lost']} steps lost with seed {report['seed']}; expected 0")


def rank_killed_inside_its_update_costs_no_step(context: Context, processes: Processes, folder: pathlib.Path) -> None:
    """Random kills seldom hit the update, which is short; these aim at it."""
    setting = context.setting(folder, 200)
    twin = _twin(processes, setting)
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
    wrong = observe_drill(run, faults, twin.beside(run)).faults()
    expect(not wrong, f"{'; '.join(wrong)}, seed {seed}; logs: {run.folder}")


def _twin(processes: Processes, setting: Setting) -> Twin:
    undisturbed = UndisturbedRun(processes, setting)
    undisturbed.finish()
    hash_tensors = setting.programs.hash_tensors
    initial = state_in(hash_tensors, initial_state(processes, setting))
    return Twin(processes, setting, initial, state_in(hash_tensors, undisturbed.output))


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
    started = poll(lambda: process.poll() is None and processes_about(f"local-{process.pid}/"), 240)
    expect(bool(started), f"the demo started nothing that could be left behind: {log.read_text()[-500:]}")
    process.terminate()
    code = process.wait(20)
    expect(code != 0, "an interrupted demo ended with 0")
    left = processes_about(f"local-{process.pid}/")
    expect(not left, f"of the processes {started} of the interrupted demo, {left} are still there")


CASES = [
    lost_step_makes_the_demo_fail,
    lost_step_makes_the_drill_fail,
    evicted_run_resumes_at_the_next_step,
    killed_rank_costs_no_step,
    ten_random_kills_cost_no_step,
    rank_killed_inside_its_update_costs_no_step,
    killed_launcher_resumes_from_the_newest_complete_checkpoint,
    demo_that_is_interrupted_ends_what_it_started,
]
