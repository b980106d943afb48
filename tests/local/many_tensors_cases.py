"""Ranks with more tensors than one frame can name (docs/formats/frames.md, long messages)."""

import os
import pathlib
import subprocess

import shipped
from building import REPOSITORY, build_targets
from case import Context, expect, expect_said
from processes import Processes

TENSORS = 20_000


def many_tensors_are_saved_and_restored(context: Context, _processes: Processes, folder: pathlib.Path) -> None:
    """A rank dies; what both held is saved, restored and compared to the last bit by the ranks themselves."""
    build_targets(context.build, shipped.PRESET, ("test_rank",))
    results, checkpoints, log = folder / "results", folder / "checkpoints", folder / "log"
    results.mkdir()
    environment = {
        **os.environ,
        "TEST_FOLDER": str(results),
        "TEST_MANY_TENSORS": str(TENSORS),
        "TEST_STEPS": "8",
        "TEST_FAULT": "1:4:committed",
    }
    with open(log, "wb") as output:
        ended = subprocess.run(
            [
                context.programs.rekindle,
                "run",
                "-n",
                "2",
                "--checkpoint-dir",
                checkpoints,
                "--",
                context.build / "bin" / "test_rank",
            ],
            cwd=REPOSITORY,
            env=environment,
            stdout=output,
            stderr=subprocess.STDOUT,
            timeout=120,
            check=False,
        )
    expect(ended.returncode == 0, f"the run ended with {ended.returncode}: {log.read_text(errors='replace')[-600:]}")
    expect_said(log, "step 4 saved", "goes on with step 5")
    for rank in range(2):
        first = (results / f"first-{rank}-2").read_text().strip()
        expect(first == "5", f"rank {rank} went on with step {first}")
    place = next(path.parent for path in checkpoints.glob("*/*/manifest.json"))
    manifest = (place / "manifest.json").read_text()
    expect(manifest.count('"name":"model.layers.') == TENSORS, "the manifest does not name every tensor")
    verified = subprocess.run(
        [context.programs.rekindle, "checkpoint", "verify", place],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    expect(verified.returncode == 0, f"verify says: {verified.stdout[-300:]} {verified.stderr[-300:]}")


CASES = [many_tensors_are_saved_and_restored]
