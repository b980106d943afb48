"""Checkpoints on file systems of other kinds, and in too little memory: real programs, real limits. What is mounted is
in a namespace of the case's own and gone after it.

`place_cases.py CASE` is the inside of a case: process 1 of its namespace, so that nothing it starts outlives it.
"""

import hashlib
import os
import pathlib
import resource
import subprocess
import sys
import traceback

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[1] / folder) for folder in ("support", "demo", "cluster")]

import memory_groups
import volumes
from judging import Unmet, expect
from programs import REKINDLE, checkpoints_in, fresh, run_program
from shipped import PROGRAMS
from training import Training

BALLAST_MIB = 16
MIB = 1 << 20
CASE_SECONDS_MAX = 240


def _digests(folder):
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(folder.iterdir())}


def _verify(checkpoint):
    said = run_program([REKINDLE, "checkpoint", "verify", checkpoint])
    expect("fine" in said, f"verify said nothing good of {checkpoint}: {said}")


def _saved(run):
    event = run.save()
    expect(event["event"] == "durable", f"the save failed: {event.get('message')}")
    return event


def _restore(folder, place, step):
    """One rank alone goes on after `step`; it compares every value with what training computes, to the last bit. The
    ways in which it read."""
    with Training(folder / f"after-{step}", place, ranks=1, steps=step + 10, ballast_mib=BALLAST_MIB) as run:
        run.wait()
        restored = run.events("restored")[0]["step"]
        expect(restored == step, f"step {restored} was restored, {step} was saved last")
        return run.ways_read()


def _check_ways(place, wrote, read):
    """What is said about the ways, after a look at whether they are what the place can."""
    direct = volumes.takes_direct_writes(place)
    for done, ways, past_cache in (("written", wrote, {"direct", "queued"}), ("read", read, {"direct", "queued"})):
        expected = past_cache if direct else {"plain"}
        expect(
            ways and ways <= expected,
            f"{done} in the ways {sorted(ways)}; the place {'takes' if direct else 'does not take'} writes past the page cache",
        )
    return f"written {', '.join(sorted(wrote))}, read {', '.join(sorted(read))}"


def _save_and_restore(folder, place):
    """Two ranks save while they train and when they are ended; every checkpoint verifies, and one rank goes on from the
    last."""
    with Training(folder / "ranks", place, ballast_mib=BALLAST_MIB) as run:
        run.wait_for_training()
        run.wait_for_step(_saved(run)["step"] + 1)
        run.stop()
        wrote = run.ways_written()
        last = run.events("durable")[-1]["step"]
    found = checkpoints_in(place)
    expect(len(found) == 2, f"two checkpoints were expected, there are {sorted(path.name for path in found)}")
    for checkpoint in found:
        _verify(checkpoint)
    return _check_ways(place, wrote, _restore(folder, place, last))


def _files_besides(checkpoint):
    """What other checkpoints of its job hold."""
    return sorted(
        str(path)
        for path in checkpoint.parent.rglob("*")
        if path.is_file() and path.parent not in (checkpoint, checkpoint.parent, checkpoint.parent / "attempts")
    )


def _become_full(folder, place, fill, words):
    """`fill()` takes the space away and answers with what gives it back. There is room for the part of one of two ranks
    then."""
    with Training(folder / "ranks", place, ballast_mib=BALLAST_MIB) as run:
        run.wait_for_training()
        first = _saved(run)
        (checkpoint,) = checkpoints_in(place)
        before = _digests(checkpoint)
        run.wait_for_step(first["step"] + 1)
        give_back = fill()
        free = volumes.free_bytes(place)
        event = run.save()
        expect(event["event"] == "failed", f"there was no room, and the save ended as {event}")
        expect(words in event["message"], f"expected '{words}' in the message of the save: {event['message']}")
        expect(_digests(checkpoint) == before, "the checkpoint of before has changed")
        # A file that a rank still has open when it is removed is gone a moment later. Where the storage keeps its name
        # that long (FUSE, NFS), the empty folder stays until the job's next start.
        run.wait_until(lambda: free - volumes.free_bytes(place) < MIB, "the space that the save had taken")
        run.wait_until(
            lambda: _files_besides(checkpoint) == [],
            f"the end of the last file of the save ({_files_besides(checkpoint)})",
        )
        _verify(checkpoint)
        give_back()
        later = _saved(run)
        expect(later["step"] > first["step"], f"step {later['step']} was saved after step {first['step']}")
        run.stop()
        wrote = run.ways_written()
        last = run.events("durable")[-1]["step"]
    return f"{event['message']} ({_check_ways(place, wrote, _restore(folder, place, last))})"


def _filler(place, leave_mib):
    def fill():
        return volumes.fill(place, leave_mib * MIB).unlink

    return fill


def a_tmpfs_keeps_checkpoints(folder):
    return _save_and_restore(folder, volumes.tmpfs(folder))


def an_overlay_keeps_checkpoints(folder):
    return _save_and_restore(folder, volumes.overlay(folder))


def fuse_keeps_checkpoints_where_modes_cannot_be_changed(folder):
    return _save_and_restore(folder, volumes.bindfs(folder))


def a_fuse_overlay_keeps_checkpoints(folder):
    return _save_and_restore(folder, volumes.fuse_overlay(folder))


def ext4_keeps_checkpoints(folder):
    return _save_and_restore(folder, volumes.ext4(folder))


def btrfs_keeps_checkpoints(folder):
    return _save_and_restore(folder, volumes.btrfs(folder))


def a_full_tmpfs_costs_one_save(folder):
    place = volumes.tmpfs(folder)
    return _become_full(folder, place, _filler(place, 12), "The storage is full")


def a_full_ext4_costs_one_save(folder):
    place = volumes.ext4(folder)
    return _become_full(folder, place, _filler(place, 12), "The storage is full")


def a_full_place_behind_fuse_costs_one_save(folder):
    """No space can be reserved through bindfs: it ends in the middle of a file."""
    below = volumes.tmpfs(folder)
    return _become_full(folder, volumes.bindfs(folder, below), _filler(below, 12), "The storage is full")


def a_read_only_place_is_refused_by_name(folder):
    place = folder / "place"
    place.mkdir()
    with Training(folder / "ranks", place) as run:
        run.wait_for_training()
        _saved(run)
        run.stop()
    view = volumes.read_only(place)
    with Training(folder / "again", view) as run:
        run.wait(8)
        said = run.said()
    expect(
        "mounted read-only" in said and str(view) in said, f"it was not said that {view} is read-only: {said[-600:]}"
    )
    for checkpoint in checkpoints_in(view):
        _verify(checkpoint)
    return next(line for line in said.splitlines() if "read-only" in line)


def a_quota_that_is_used_up_costs_one_save(folder):
    """Of btrfs: what counts the space of one user is not in every kernel."""
    place = volumes.btrfs(folder, quota_mib=80)

    def fill():
        filler = place / "filler"
        with filler.open("wb") as file:
            file.write(os.urandom(52 * MIB))
            os.fsync(file.fileno())
        return lambda: volumes.remove_at_once(filler)

    return _become_full(folder, place, fill, "The quota is used up")


def a_limit_of_file_sizes_ends_no_training(folder):
    """ulimit -f; the signal that comes with it would end a program that does not expect it."""
    place = folder / "place"
    place.mkdir()

    # Every file of values is at most as large, the checkpoint's file a little larger.
    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (12 * MIB, 12 * MIB))

    with Training(folder / "ranks", place, ballast_mib=2 * BALLAST_MIB, before=limit) as run:
        run.wait_for_training()
        event = run.save()
        expect(event["event"] == "failed", f"no file may be that large, and the save ended as {event}")
        expect("ulimit -f" in event["message"], f"the message does not name the limit: {event['message']}")
        run.wait_for_step(event["step"] + 10)
    # Without a sidecar the program's own thread writes.
    alone, values = folder / "alone", folder / "values"
    alone.mkdir()
    values.mkdir()
    result = subprocess.run([PROGRAMS / "every_type", alone, values], capture_output=True, text=True, preexec_fn=limit)
    expect(
        result.returncode == 1 and "rk_checkpoint" in result.stderr and "ulimit -f" in result.stderr,
        f"a program by itself ended with {result.returncode} and said {result.stderr[-400:]!r}; expected the error of rk_checkpoint, with the limit",
    )
    return result.stderr.strip()


def copies_beyond_the_memory_limit_are_not_made(folder):
    """The kernel would end a rank. They train on without, and can be saved."""
    place = folder / "place"
    place.mkdir()
    with memory_groups.limited_to(128 * MIB) as group:
        with Training(
            folder / "fits", place, ballast_mib=4, options=["--shadow-every", "1 step"], before=group.join
        ) as run:
            run.wait_for_training()
            run.wait_for_step(10)
            expect("keeps no copy" not in run.said(), f"a shadow of 4 MiB a rank did not fit: {run.said()[-600:]}")
            run.stop()
        with Training(
            folder / "ranks", folder / "other", ballast_mib=40, options=["--shadow-every", "1 step"], before=group.join
        ) as run:
            run.wait_for_training()
            run.wait_for_words("keeps no copy")
            said = next(line for line in run.said().splitlines() if "keeps no copy" in line)
            expect(
                f"the memory limit of {128 * MIB} bytes" in said
                and "raise the memory limit of the training container by" in said,
                f"it was not said what to set: {said}",
            )
            step = run.step()
            run.wait_for_step(step + 20)
            _saved(run)
            run.stop()
        expect(group.kills() == 0, f"the kernel ended {group.kills()} processes")
        return said


_STORIES = [
    a_tmpfs_keeps_checkpoints,
    an_overlay_keeps_checkpoints,
    fuse_keeps_checkpoints_where_modes_cannot_be_changed,
    a_fuse_overlay_keeps_checkpoints,
    ext4_keeps_checkpoints,
    btrfs_keeps_checkpoints,
    a_full_tmpfs_costs_one_save,
    a_full_ext4_costs_one_save,
    a_full_place_behind_fuse_costs_one_save,
    a_quota_that_is_used_up_costs_one_save,
    a_read_only_place_is_refused_by_name,
    a_limit_of_file_sizes_ends_no_training,
    copies_beyond_the_memory_limit_are_not_made,
]
_NAMESPACES = ["unshare", "--mount", "--propagation", "private", "--pid", "--fork", "--mount-proc", "--kill-child"]


def _in_own_namespace(story):
    expect(os.geteuid() == 0, "mounting file systems needs root: run the stage as root, or in a privileged container")
    possible = subprocess.run([*_NAMESPACES, "true"], capture_output=True, text=True)
    expect(
        possible.returncode == 0,
        f"this machine gives no mount namespace of one's own, which this case needs: {possible.stderr.strip()}",
    )
    result = subprocess.run(
        [*_NAMESPACES, sys.executable, "-B", __file__, story.__name__],
        capture_output=True,
        text=True,
        timeout=CASE_SECONDS_MAX,
    )
    said = result.stdout.strip()
    if result.returncode != 0:
        raise Unmet(said or f"the case ended with {result.returncode}: {result.stderr[-600:]}")
    return said


CASES = [(story.__name__, lambda story=story: _in_own_namespace(story)) for story in _STORIES]


def main():
    story = next(story for story in _STORIES if story.__name__ == sys.argv[1])
    try:
        print(story(fresh(story.__name__)))
        return 0
    except Unmet as why:
        print(why)
    except Exception:  # a fault of the test itself
        print(traceback.format_exc())
    return 1


if __name__ == "__main__":
    sys.exit(main())
