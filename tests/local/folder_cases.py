"""Checkpoint folders as they should not be: each with a message that says what to do, and nothing lost."""

import json
import os
import pathlib
import random
import shutil
import signal
import subprocess

from case import Context, Skipped, expect, expect_said
from faults import kill_random_rank
from polling import poll
from processes import Processes
from readings import state_in
from stepjournal import first_behind
from trainingrun import ProtectedRun, Setting, UndisturbedRun

STEPS = 120


def missing_folder_is_made(context: Context, processes: Processes, folder: pathlib.Path) -> None:
    run = ProtectedRun(processes, context.setting(folder, 10), "run", checkpoints=folder / "not" / "yet")
    run.launch()
    run.finish()
    expect((folder / "not" / "yet").is_dir(), "the folder was not made")


def missing_folder_that_cannot_be_made_is_named(context: Context, processes: Processes, folder: pathlib.Path) -> None:
    (folder / "file").write_text("in the way")
    wanted = folder / "file" / "checkpoints"
    run = ProtectedRun(processes, context.setting(folder, STEPS), "run", checkpoints=wanted)
    _expect_refused(run, str(wanted))


def read_only_folder_is_refused_before_training(context: Context, processes: Processes, folder: pathlib.Path) -> None:
    checkpoints = folder / "checkpoints"
    checkpoints.mkdir()
    prefix: tuple = ()
    if os.geteuid() == 0:  # whom modes do not stop
        prefix = _in_own_mounts(checkpoints, 'mount --bind "$0" "$0" && mount -o remount,bind,ro "$0"')
    else:
        checkpoints.chmod(0o555)
    run = ProtectedRun(processes, context.setting(folder, STEPS), "run", checkpoints=checkpoints, prefix=prefix)
    try:
        _expect_refused(run, str(checkpoints), "read-only" if prefix else "permission")
    finally:
        checkpoints.chmod(0o755)


def full_folder_keeps_the_older_checkpoint(context: Context, processes: Processes, folder: pathlib.Path) -> None:
    """There is room for one checkpoint: the next ones fail with a message, training goes on, and after a kill the first
    one serves."""
    checkpoints = folder / "checkpoints"
    checkpoints.mkdir()
    prefix = _in_own_mounts(checkpoints, 'mount -t tmpfs -o size=2m,mode=777 none "$0"')
    setting = context.setting(folder, STEPS)
    run = ProtectedRun(processes, setting, "run", checkpoints=checkpoints, prefix=prefix, checkpoint_every=35)
    run.launch()
    pids, words = run.await_training(0)
    _await_step(run, 80)
    expect(
        run.launches[-1].count("durable") == 1,
        f"{run.launches[-1].count('durable')} checkpoints were reported durable where one has "
        f"room; events: {run.launches[-1].path}",
    )
    fault = kill_random_rank(run, random.Random(1))
    run.await_training(fault.attempt)
    run.finish()
    first = first_behind(run.journals(), fault.attempt).step
    expect(first == 36, f"went on with step {first}; expected 36, behind the one checkpoint that had room")
    expect_said(run.log, "full", str(checkpoints))
    _expect_end_of_undisturbed(processes, setting, run)


def damaged_checkpoints_give_way_to_the_older_one(context: Context, processes: Processes, folder: pathlib.Path) -> None:
    """Two complete checkpoints; the newer one is damaged in one way after the other. Each time the older one is taken,
    and said why."""
    setting = context.setting(folder, STEPS)
    older, newer = _two_checkpoints(processes, setting, folder)
    damages = {
        "manifest-cut-short": lambda at: _truncate(at / "manifest.json"),
        "manifest-with-a-wrong-hash": lambda at: _change_manifest(at / "manifest.json"),
        "manifest-empty": lambda at: (at / "manifest.json").write_text(""),
        "data-cut-short": lambda at: _truncate(next(at.glob("rank-*.safetensors"))),
        "data-with-one-bit-changed": lambda at: _flip_bit(next(at.glob("rank-*.safetensors"))),
        "data-missing": lambda at: next(at.glob("rank-*.safetensors")).unlink(),
    }
    problems = []
    for name, damage in damages.items():
        checkpoints = folder / f"checkpoints-{name}"
        shutil.copytree(older.parents[1], checkpoints)
        damage(checkpoints / newer.parent.name / newer.name)
        run = ProtectedRun(processes, setting, name, checkpoints=checkpoints)
        run.launch()
        run.finish()
        first = first_behind(run.journals(), 0).step
        expected = _step_of(older) + 1
        if first != expected:
            problems.append(f"{name}: went on with step {first}; expected {expected}, behind the older checkpoint")
        if newer.name not in run.log.read_text(errors="replace"):
            problems.append(f"{name}: the output does not say that {newer.name} was not used")
        _expect_end_of_undisturbed(processes, setting, run)
    expect(not problems, f"{'; '.join(problems)}. Logs: {folder}")


def damage_of_every_checkpoint_stops_the_run(context: Context, processes: Processes, folder: pathlib.Path) -> None:
    """Starting from nothing would look like success and lose everything, so it is left to a human."""
    setting = context.setting(folder, STEPS)
    older, newer = _two_checkpoints(processes, setting, folder)
    for checkpoint in (older, newer):
        _truncate(checkpoint / "manifest.json")
    run = ProtectedRun(processes, setting, "run", checkpoints=older.parents[1], max_restarts=0)
    run.launch()
    code = run.await_end(240)
    expect(code not in (0, 143), f"`rekindle run` ended with {code} although no checkpoint is whole")
    expect(not run.has_trained(), "training began although no checkpoint is whole")
    expect_said(run.log, older.name, newer.name)


def second_run_on_one_folder_is_refused(context: Context, processes: Processes, folder: pathlib.Path) -> None:
    setting = context.setting(folder, STEPS)
    first = ProtectedRun(processes, setting, "first")
    first.launch()
    first.await_training(0)
    second = ProtectedRun(processes, setting, "second", checkpoints=first.checkpoints)
    _expect_refused(second, str(first.checkpoints))
    first.finish()
    _expect_end_of_undisturbed(processes, setting, first)


def two_jobs_of_different_names_share_a_folder(context: Context, processes: Processes, folder: pathlib.Path) -> None:
    setting = context.setting(folder, STEPS)
    first = ProtectedRun(processes, setting, "first", job="first")
    second = ProtectedRun(processes, setting, "second", job="second", checkpoints=first.checkpoints)
    for run in (first, second):
        run.launch()
    chance = random.Random(2)
    faults = []
    for run in (first, second):
        run.await_training(0)
    for run in (first, second):
        faults.append(kill_random_rank(run, chance))
    for run, fault in zip((first, second), faults):
        run.await_training(fault.attempt)
    for run in (first, second):
        run.finish()
    _expect_end_of_undisturbed(processes, setting, first)
    expect(
        _hash_of(setting, first.output) == _hash_of(setting, second.output), "the two jobs ended with different states"
    )


def ended_run_leaves_nothing_behind(context: Context, processes: Processes, folder: pathlib.Path) -> None:
    before = _run_folders()
    run = ProtectedRun(processes, context.setting(folder, STEPS), "run")
    run.launch()
    run.await_training(0)
    expect(bool(_run_folders() - before), "a run that trains has no folder that could be left behind")
    run.finish()
    expect(_run_folders() <= before, f"left behind: {_run_folders() - before}")


# --- helpers


def _expect_refused(run: ProtectedRun, *words: str) -> None:
    run.launch()
    code = run.await_end(240)
    expect(code not in (0, 143), f"`rekindle run` ended with {code}; expected an error")
    expect(not run.has_trained(), f"training began all the same; logs: {run.folder}")
    expect_said(run.log, *words)


def _in_own_mounts(folder: pathlib.Path, command: str) -> tuple:
    """A prefix that runs `command` ($0 is the folder) in a mount namespace of its own, and then the program in it."""
    unshare = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--map-root-user", "--mount"]
    prefix = (*unshare, "sh", "-c", f'{command} && exec "$@"', str(folder))
    attempt = subprocess.run([*prefix, "true"], capture_output=True, text=True, check=False)
    if attempt.returncode != 0:
        raise Skipped(f"mounts of one's own are not allowed here: {attempt.stderr.strip()}")
    return prefix


def _await_step(run: ProtectedRun, step: int, patience_seconds: float = 240) -> None:
    def reached() -> bool:
        run.launches[-1].follow()
        words = run.words(run.rank_processes())
        if words and min(word.step for word in words.values()) >= step:
            return True
        expect(run.is_running(), f"`rekindle run` ended before step {step}; logs: {run.folder}")
        return False

    if not poll(reached, patience_seconds):
        raise run.failure(f"step {step} was not reached within {patience_seconds:.0f} s")


def _two_checkpoints(processes: Processes, setting: Setting, folder: pathlib.Path) -> tuple[pathlib.Path, pathlib.Path]:
    """Folders of two breakpoints that two evictions left, the older one first."""
    run = ProtectedRun(processes, setting, "evicted")
    attempt = 0
    for step in (20, 60):
        run.launch()
        _, words = run.await_training(attempt)
        attempt = max(word.attempt for word in words.values())
        _await_step(run, step)
        run.signal_launcher(signal.SIGTERM)
        expect(run.await_end(240) == 143, f"`rekindle run` did not end with 143 after SIGTERM; logs: {run.folder}")
    found = [path for path, _ in run.manifests()]
    expect(len(found) == 2, f"{len(found)} checkpoints in {run.checkpoints}; expected 2")
    return found[0], found[1]


def _step_of(checkpoint: pathlib.Path) -> int:
    return json.loads((checkpoint / "manifest.json").read_text())["manifest"]["step"]


def _truncate(path: pathlib.Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def _flip_bit(path: pathlib.Path) -> None:
    content = bytearray(path.read_bytes())
    content[-100] ^= 4
    path.write_bytes(content)


def _change_manifest(path: pathlib.Path) -> None:
    """A number inside is another one; the hash still is that of the old text."""
    text = path.read_text()
    changed = text.replace('"world_size":4', '"world_size":5')
    expect(changed != text, f"{path} does not name the world size")
    path.write_text(changed)


_undisturbed_hashes: dict[int, str] = {}


def _hash_of(setting: Setting, state: pathlib.Path) -> str:
    return state_in(setting.programs.hash_tensors, state).sha256


def _expect_end_of_undisturbed(processes: Processes, setting: Setting, run: ProtectedRun) -> None:
    if setting.steps not in _undisturbed_hashes:
        undisturbed = UndisturbedRun(processes, setting)
        undisturbed.finish()
        _undisturbed_hashes[setting.steps] = _hash_of(setting, undisturbed.output)
    actual = _hash_of(setting, run.output)
    expect(
        actual == _undisturbed_hashes[setting.steps],
        f"the end state is {actual}, that of an undisturbed run "
        f"{_undisturbed_hashes[setting.steps]}; logs: {run.folder}",
    )


def _run_folders() -> set[str]:
    return {
        f"{root}/{name}"
        for root in ("/dev/shm", "/tmp")
        if os.path.isdir(root)
        for name in os.listdir(root)
        if name.startswith("rekindle-run")
    }


CASES = [
    missing_folder_is_made,
    missing_folder_that_cannot_be_made_is_named,
    read_only_folder_is_refused_before_training,
    full_folder_keeps_the_older_checkpoint,
    damaged_checkpoints_give_way_to_the_older_one,
    damage_of_every_checkpoint_stops_the_run,
    second_run_on_one_folder_is_refused,
    two_jobs_of_different_names_share_a_folder,
    ended_run_leaves_nothing_behind,
]
