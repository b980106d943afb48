"""`./dev demo --local`: the whole story on one machine, without Kubernetes, through `rekindle run`."""

import argparse
import os
import pathlib
import random
import re
import shutil
import signal
import time

import dataset
import drill
import shipped
from building import PLANTED, REPOSITORY, build_programs
from failure import Failure
from faults import Fault, kill_random_rank, signal_launcher
from polling import poll
from processes import Processes
from proof import Recovery, check_lives, check_manifest, hash_of, recovery_of
from story import Stopwatch, Story, write_report
from timeline import timeline_of
from trainingrun import RANKS, ProtectedRun, Setting, UndisturbedRun

# Between two scheduled checkpoints when the launcher itself is killed: nothing else is saved then.
CHECKPOINT_EVERY = 40


def add_arguments(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("with --local")
    group.add_argument(
        "--kills", type=int, default=0, metavar="N", help="a drill: N kills of random ranks at random moments"
    )
    group.add_argument(
        "--seed", type=int, default=None, metavar="S", help="repeats the choices of an earlier run (default: random)"
    )
    group.add_argument(
        "--planted",
        choices=sorted(PLANTED),
        help="with a `rekindle` that does something wrong, to see that the proof notices",
    )
    group.add_argument(
        "--build",
        type=pathlib.Path,
        default=shipped.FOLDER,
        metavar="FOLDER",
        help="build folder (default build/release)",
    )


def run(arguments: argparse.Namespace, story: Story) -> int:
    """The exit code. Failure says what did not hold."""
    watch = Stopwatch()
    arguments.report.unlink(missing_ok=True)  # a proof that fails must not leave an older one standing
    seed = arguments.seed if arguments.seed is not None else int.from_bytes(os.urandom(4), "little")
    folder = REPOSITORY / "build" / "demo" / f"local-{os.getpid()}"
    if arguments.kills:
        headline = f"{arguments.kills} times one of them, chosen at random, is killed at a random moment"
    elif arguments.fault == "evict":
        headline = (
            "in the middle of it all are told to go (SIGTERM, as in an eviction), and later they are started again"
        )
    elif arguments.target == "launcher":
        headline = "in the middle of it `rekindle run` itself is killed together with them (SIGKILL), and later it is started again"
    else:
        headline = "in the middle of it one of them is killed (SIGKILL)"
    story.say(f"Rekindle, local demo. {RANKS} processes train a small network together; {headline}.")
    story.say("The end state has to equal, bit for bit, that of a run which nobody disturbed.")
    story.say()

    step = Stopwatch()
    story.passing("[1/4] Programs: building")
    programs = build_programs(arguments.build.resolve(), story.progress, arguments.planted)
    story.say(f"[1/4] Programs: built in {step.seconds:.0f} s, {programs.digits.parent}")
    if arguments.planted:
        story.say(f"      Planted fault: {arguments.planted}. This demo has to fail.")
    step = Stopwatch()
    story.passing("[2/4] Data: fetching")
    data = dataset.ensure()
    story.say(f"[2/4] Data: 1,797 handwritten digits, {data}")
    setting = Setting(programs=programs, data=data, folder=folder)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)

    with Processes() as processes:
        story.passing("[3/4] Undisturbed run: training")
        undisturbed = UndisturbedRun(processes, setting)
        undisturbed_seconds = undisturbed.finish()
        story.say(
            f"[3/4] Undisturbed run: {setting.steps} steps in {undisturbed_seconds:.1f} s, without Rekindle"
            f"{_accuracy(undisturbed.log)}"
        )
        expected_hash = hash_of(setting, undisturbed.output)

        chance = random.Random(seed)
        if arguments.kills:
            report = drill.run_drill(processes, setting, arguments.kills, chance, seed, expected_hash, story)
        else:
            report = _break_once(arguments, processes, setting, chance, expected_hash, story)

    report = {
        "mode": "local",
        "fault": "sigkill" if arguments.kills else arguments.fault,
        **report,
        "seed": seed,
        "seconds_undisturbed": round(undisturbed_seconds, 1),
        "seconds": round(watch.seconds, 1),
    }
    path = arguments.report
    write_report(path, report)
    if arguments.keep:
        story.say(f"Logs, checkpoints and final states are kept in {folder}")
    else:
        shutil.rmtree(folder, ignore_errors=True)
    if report["faults"]:
        raise Failure(f"{'; '.join(report['faults'])}. Report: {path}")
    story.say(
        f"Nothing was lost. {watch.seconds:.0f} s in all; report: {path}"
        if report["steps_lost"] == 0
        else f"Resumed as promised. {watch.seconds:.0f} s in all; report: {path}"
    )
    return 0


def _break_once(
    arguments: argparse.Namespace,
    processes: Processes,
    setting: Setting,
    chance: random.Random,
    expected_hash: str,
    story: Story,
) -> dict:
    kills_launcher = arguments.fault == "sigkill" and arguments.target == "launcher"
    run = ProtectedRun(
        processes,
        setting,
        "disturbed",
        checkpoint_every=CHECKPOINT_EVERY if kills_launcher else 0,
        shadow_every="1 step" if arguments.planted else "",  # which is where a planted `rekindle` has older steps from
    )
    story.passing("[4/4] Disturbed run: training")
    run.launch()
    run.await_training(0)
    _train_until(run, chance.randint(setting.steps // 5, setting.steps * 7 // 10), story)
    fault = _break(arguments, run, chance)
    started_again_at = None
    if fault.target == "launcher":
        code = run.await_end(90)
        if arguments.fault == "evict" and code != 143:
            raise run.failure(f"`rekindle run` ended with {code} after SIGTERM; expected 143 (stopped, not completed)")
        run.checkpoint_every = 0  # older ones would be cleared away, and the proof looks at the one that was used
        started_again_at = time.monotonic()
        run.launch()
    run.await_training(fault.attempt)
    story.passing("[4/4] Disturbed run: training again")
    run.finish()
    recovery = recovery_of(run, fault)
    entries = timeline_of(run.events(), fault, started_again_at, scheduled=kills_launcher)
    story.say(f"[4/4] Disturbed run: {setting.steps} steps, through `rekindle run`{_accuracy(run.log)}")
    story.say()
    _tell(fault, entries, story)
    return _prove(run, recovery, entries, setting, expected_hash, kills_launcher, story)


def _train_until(run: ProtectedRun, step: int, story: Story, patience_seconds: float = 600) -> None:
    def reached() -> bool:
        if not run.is_running():
            raise run.failure(f"`rekindle run` ended with {run.launcher.returncode} before anything was broken")
        run.launches[-1].follow()
        most = max((word.step for word in run.words(run.rank_processes()).values()), default=0)
        story.passing(f"[4/4] Disturbed run: step {most}")
        return most >= step

    if not poll(reached, patience_seconds, pause=0.01):
        raise run.failure(f"step {step} was not reached within {patience_seconds:.0f} s")


def _break(arguments: argparse.Namespace, run: ProtectedRun, chance: random.Random) -> Fault:
    if arguments.fault == "evict":
        return signal_launcher(run, signal.SIGTERM)
    if arguments.target == "launcher":
        return signal_launcher(run, signal.SIGKILL)
    return kill_random_rank(run, chance)


def _tell(fault: Fault, entries: list[dict], story: Story) -> None:
    target = "`rekindle run`" if fault.target == "launcher" else fault.target
    what = f"{'SIGTERM' if fault.kind == 'evict' else 'SIGKILL'} to {target}"
    story.say("  since the fault")
    story.say(f"  {0.0:>9.1f} ms  {what}, {fault.phase} after step {fault.step_at_fault} at that moment")
    for entry in entries:
        story.say(f"  {entry['milliseconds']:>9.1f} ms  {entry['text']}")
    story.say()


def _prove(
    run: ProtectedRun,
    recovery: Recovery,
    entries: list[dict],
    setting: Setting,
    expected_hash: str,
    kills_launcher: bool,
    story: Story,
) -> dict:
    check_lives(run, [recovery], setting.steps)
    check_manifest(recovery, run.checkpoints)
    actual_hash = hash_of(setting, run.output)
    fault = recovery.fault
    steps = recovery.steps
    faults = steps.faults(lost_allowed=kills_launcher)
    story.say("  Proof")
    for line in steps.lines(f"manifest of {pathlib.Path(recovery.path).name}"):
        story.say(line)
    story.say(f"    final state, undisturbed          {expected_hash}")
    story.say(f"    final state, disturbed            {actual_hash}")
    story.say()
    if actual_hash != expected_hash:
        faults.append("the final states differ; expected the same SHA-256 over all parameters and moments")
    if kills_launcher:
        story.say(
            f"  Nobody is left to save anything when `rekindle run` itself is killed: promised is the newest complete checkpoint\n"
            f"  (here one every {CHECKPOINT_EVERY} steps). The {steps.steps_lost} steps behind it were made again."
        )
        story.say()
    names = {entry["event"] for entry in entries}
    expected = {"restored", "first_step"} if kills_launcher else {"agreed", "durable", "restored", "first_step"}
    if not expected <= names:
        faults.append(f"`rekindle run` did not report {', '.join(sorted(expected - names))} after the fault")
    return {
        "target": fault.target,
        "phase": fault.phase,
        "step_at_fault": fault.step_at_fault,
        **steps.report(),
        "weights_sha256": actual_hash,
        "weights_sha256_undisturbed": expected_hash,
        "faults": faults,
        "timeline": [{"milliseconds": 0.0, "event": "fault", "step": fault.step_at_fault}]
        + [{key: entry[key] for key in ("milliseconds", "event", "step")} for entry in entries],
    }


def _accuracy(log: pathlib.Path) -> str:
    found = re.findall(r"([\d.]+) % of the held-out digits", log.read_text(errors="replace"))
    return f", {float(found[-1]):.1f} % of the digits held out are recognised" if found else ""
