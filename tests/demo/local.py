"""`./dev demo --local`: the whole story on one machine, without Kubernetes, through `rekindle run`."""

import argparse
import dataclasses
import os
import pathlib
import random
import re
import shutil
import signal
import time

import dataset
import drill
from building import REPOSITORY, build_programs
from endstates import EndStates, State
from faults import Fault, kill_random_rank, signal_launcher
from polling import poll
from processes import Processes
from proof import Observed
from readings import observe, observe_drill, state_in
from story import Stopwatch, Story, conclude
from timeline import timeline_lines
from trainingrun import RANKS, ProtectedRun, Setting, UndisturbedRun, initial_state

# Between two scheduled checkpoints when the launcher itself is killed: nothing else is saved then.
CHECKPOINT_EVERY = 40


@dataclasses.dataclass(frozen=True)
class Plan:
    """How a run is protected. Checkpoints on a schedule: nobody is left to save when the fault comes."""

    checkpoint_every: int
    shadow_every: str


def plan_of(fault: str, target: str, planted: str | None) -> Plan:
    kills_launcher = fault == "sigkill" and target == "launcher"
    return Plan(
        checkpoint_every=CHECKPOINT_EVERY if kills_launcher else 0,
        shadow_every="1 step" if planted else "",  # which is where a planted `rekindle` has older steps from
    )


def run(arguments: argparse.Namespace, story: Story) -> None:
    """Failure says what did not hold."""
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
        initial = state_in(programs.hash_tensors, initial_state(processes, setting))
        undisturbed = UndisturbedRun(processes, setting)
        undisturbed_seconds = undisturbed.finish()
        story.say(
            f"[3/4] Undisturbed run: {setting.steps} steps in {undisturbed_seconds:.1f} s, without Rekindle"
            f"{_accuracy(undisturbed.log)}"
        )
        twin = Twin(processes, setting, initial, state_in(programs.hash_tensors, undisturbed.output))
        chance = random.Random(seed)
        if arguments.kills:
            story.say(
                f"[4/4] Disturbed runs: {arguments.kills} kills, seed {seed} "
                f"(repeat with --kills {arguments.kills} --seed {seed})"
            )
            report = drill_beside(twin, arguments.kills, chance, story, planted=arguments.planted)
        else:
            report = _break_once(arguments, twin, chance, story)

    if arguments.keep or report["faults"]:
        story.say(f"Logs, checkpoints and final states are kept in {folder}")
    else:
        shutil.rmtree(folder, ignore_errors=True)
    report = {
        "mode": "local",
        "fault": arguments.fault,
        **report,
        "seed": seed,
        "seconds_undisturbed": round(undisturbed_seconds, 1),
        "seconds": round(watch.seconds, 1),
    }
    conclude(report, arguments.report, story)


class Twin:
    """What disturbed runs are compared with."""

    def __init__(self, processes: Processes, setting: Setting, initial: State, undisturbed: State) -> None:
        self.processes = processes
        self.setting = setting
        self._initial = initial
        self._undisturbed = undisturbed

    def beside(self, run: ProtectedRun) -> EndStates:
        return EndStates(self._initial, self._undisturbed, state_in(self.setting.programs.hash_tensors, run.output))


def drill_beside(twin: Twin, kills: int, chance: random.Random, story: Story, *, planted: str | None) -> dict:
    plan = plan_of("sigkill", "rank", planted)

    def one_run(number: int, kills_left: int, before: int) -> tuple[list[Fault], Observed]:
        run = ProtectedRun(
            twin.processes,
            twin.setting,
            f"disturbed-{number}",
            max_restarts=kills + 10,
            shadow_every=plan.shadow_every,
        )
        faults = drill.kill_again_and_again(run, kills_left, chance, story, before)
        return faults, observe_drill(run, faults, twin.beside(run))

    return drill.run_drill(kills, one_run, story)


def _break_once(arguments: argparse.Namespace, twin: Twin, chance: random.Random, story: Story) -> dict:
    plan = plan_of(arguments.fault, arguments.target, arguments.planted)
    steps = twin.setting.steps
    run = ProtectedRun(
        twin.processes,
        twin.setting,
        "disturbed",
        checkpoint_every=plan.checkpoint_every,
        shadow_every=plan.shadow_every,
    )
    story.passing("[4/4] Disturbed run: training")
    run.launch()
    run.await_training(0)
    _train_until(run, chance.randint(steps // 5, steps * 7 // 10), story)
    fault = break_run(arguments.fault, arguments.target, run, chance)
    started_again_at = None
    if fault.target == "launcher":
        await_stopped(arguments.fault, run)
        run.checkpoint_every = 0  # older ones would be cleared away, and the proof looks at the one that was used
        started_again_at = time.monotonic()
        run.launch()
    run.await_training(fault.attempt)
    story.passing("[4/4] Disturbed run: training again")
    run.finish()
    observed = observe(run, fault, twin.beside(run), started_again_at, checkpoint_every=plan.checkpoint_every)
    story.say(f"[4/4] Disturbed run: {steps} steps, through `rekindle run`{_accuracy(run.log)}")
    story.say()
    for line in timeline_lines(f"{fault} at that moment", observed.timeline) + observed.lines():
        story.say(line)
    if plan.checkpoint_every:
        story.say(
            f"  Nobody is left to save anything when `rekindle run` itself is killed: promised is the newest complete checkpoint\n"
            f"  (here one every {plan.checkpoint_every} steps, so that {observed.lost_max} may be lost). The steps behind it were made again."
        )
        story.say()
    return {"target": fault.target, "phase": fault.phase, **observed.report()}


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


def break_run(fault: str, target: str, run: ProtectedRun, chance: random.Random) -> Fault:
    if fault == "evict":
        return signal_launcher(run, signal.SIGTERM)
    if target == "launcher":
        return signal_launcher(run, signal.SIGKILL)
    return kill_random_rank(run, chance)


def await_stopped(fault: str, run: ProtectedRun) -> None:
    """Until `rekindle run` itself has ended, as one does that is stopped and has not completed."""
    code, expected = run.await_end(90), 143 if fault == "evict" else -signal.SIGKILL
    if code != expected:
        raise run.failure(f"`rekindle run` ended with {code} when it was ended by us; expected {expected}")


def _accuracy(log: pathlib.Path) -> str:
    found = re.findall(r"([\d.]+) % of the held-out digits", log.read_text(errors="replace"))
    return f", {float(found[-1]):.1f} % of the digits held out are recognised" if found else ""
