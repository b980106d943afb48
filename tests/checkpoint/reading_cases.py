"""A checkpoint that real programs wrote, seen by others: by `rekindle checkpoint verify` with one byte flipped, and by
the package `safetensors`."""

import json
import os
import random

from judging import expect
from places import ROOT
from programs import REKINDLE, fresh, run_program, the_checkpoint
from shipped import PROGRAMS

CHUNK_BYTES = 4 << 20
STEPS = 60
ASKED_AT_STEP = 20


def _saved_by_one_program(folder):
    """The checkpoint of every_type, and the folder with the values."""
    (folder / "values").mkdir()
    (folder / "checkpoints").mkdir()
    run_program([PROGRAMS / "every_type", folder / "checkpoints", folder / "values"])
    return the_checkpoint(folder / "checkpoints"), folder / "values"


def _saved_by_three_ranks(folder):
    """A checkpoint that three ranks wrote together in the middle of their training, and its step."""
    (folder / "ranks").mkdir()
    run_program(
        [REKINDLE, "run", "-n", "3", "--checkpoint-dir", folder / "checkpoints", "--", PROGRAMS / "test_rank"],
        environment={
            "TEST_FOLDER": str(folder / "ranks"),
            "TEST_STEPS": str(STEPS),
            "TEST_ASK_STEP": str(ASKED_AT_STEP),
        },
    )
    checkpoint = the_checkpoint(folder / "checkpoints")
    step = json.loads((checkpoint / "manifest.json").read_text())["manifest"]["step"]
    expect(ASKED_AT_STEP <= step < STEPS, f"step {step} was saved, asked for after step {ASKED_AT_STEP} of {STEPS}")
    return checkpoint, step


def verify_names_the_file_and_the_range_of_a_flipped_byte():
    folder = fresh("flipped")
    checkpoint, _ = _saved_by_one_program(folder)
    untouched = run_program([REKINDLE, "checkpoint", "verify", checkpoint])
    expect("fine" in untouched, f"verify said nothing good of an untouched checkpoint: {untouched}")
    seed = int.from_bytes(os.urandom(4), "little")
    chance = random.Random(seed)
    for path in sorted(checkpoint.glob("*.safetensors")):
        whole = path.read_bytes()
        # Anywhere, and for certain behind the first chunk where there is more than one.
        for at in {chance.randrange(len(whole)), chance.randrange(min(CHUNK_BYTES, len(whole) - 1), len(whole))}:
            path.write_bytes(whole[:at] + bytes([whole[at] ^ 1 << chance.randrange(8)]) + whole[at + 1 :])
            said = run_program([REKINDLE, "checkpoint", "verify", checkpoint], code=1)
            begin = at // CHUNK_BYTES * CHUNK_BYTES
            wanted = f"{path.name} bytes {begin} to {min(begin + CHUNK_BYTES, len(whole))}"
            expect(
                wanted in said, f"byte {at} of {path.name} was flipped (seed {seed}); expected '{wanted}' in: {said}"
            )
        path.write_bytes(whole)
    run_program([REKINDLE, "checkpoint", "verify", checkpoint])
    return f"seed {seed}"


def _read(*arguments):
    return run_program(
        [
            ROOT / "build" / "python" / "bin" / "python",
            "-B",
            ROOT / "tests" / "checkpoint" / "read_with_safetensors.py",
            *arguments,
        ]
    ).strip()


def safetensors_finds_the_values_of_every_type():
    return _read("types", *_saved_by_one_program(fresh("types")))


def safetensors_finds_the_values_that_three_ranks_had():
    folder = fresh("ranks")
    checkpoint, step = _saved_by_three_ranks(folder)
    # What one program has that ends after this very step.
    (folder / "alone").mkdir()
    run_program(
        [REKINDLE, "run", "--checkpoint-dir", folder / "unused", "--", PROGRAMS / "test_rank"],
        environment={"TEST_FOLDER": str(folder / "alone"), "TEST_STEPS": str(step)},
    )
    return _read("ranks", checkpoint, folder / "alone" / "weights-0", step)


CASES = [
    (case.__name__, case)
    for case in (
        verify_names_the_file_and_the_range_of_a_flipped_byte,
        safetensors_finds_the_values_of_every_type,
        safetensors_finds_the_values_that_three_ranks_had,
    )
]
