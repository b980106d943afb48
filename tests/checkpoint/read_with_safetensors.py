"""Opens a checkpoint's data files with the package `safetensors` as its users do, and compares every value with what
the program had. Runs in build/python.

read_with_safetensors.py types CHECKPOINT VALUES     every_type's: VALUES/NAME has the bytes of each tensor
read_with_safetensors.py ranks CHECKPOINT WEIGHTS STEP   test_rank's: weights and moments as one program ended with them
after STEP steps
"""

import json
import pathlib
import re
import sys

import numpy
import safetensors
from safetensors.numpy import load_file

# Types that numpy has no name for; their bytes are compared through the package's own parser alone.
NOT_IN_NUMPY = {"BF16", "F8_E4M3", "F8_E5M2", "F8_E8M0", "F8_E4M3FNUZ", "F8_E5M2FNUZ", "F6_E2M3", "F6_E3M2", "F4"}
IN_NUMPY = {"BOOL", "U8", "I8", "I16", "U16", "F16", "I32", "U32", "F32", "C64", "F64", "I64", "U64"}


def parsed(folder):
    """{key: (type, shape, bytes)} of all data files, by the package's parser."""
    found = {}
    for path in sorted(folder.glob("*.safetensors")):
        for key, tensor in safetensors.deserialize(path.read_bytes()):
            assert key not in found, f"{key} is in two files"
            found[key] = (tensor["dtype"], tuple(tensor["shape"]), bytes(tensor["data"]))
    assert found, f"{folder} has no data files"
    return found


def loaded(folder):
    """{key: array}, for types that numpy knows, through safe_open."""
    arrays = {}
    for path in sorted(folder.glob("*.safetensors")):
        with safetensors.safe_open(path, framework="np") as file:
            for key in file.keys():
                if file.get_slice(key).get_dtype() not in NOT_IN_NUMPY:
                    arrays[key] = file.get_tensor(key)
    return arrays


def compare_types(folder, values):
    found = parsed(folder)
    arrays = loaded(folder)
    manifest = json.loads((folder / "manifest.json").read_text())["manifest"]
    registered = {tensor["name"]: (tensor["dtype"], tuple(tensor["global_shape"])) for tensor in manifest["tensors"]}
    names = sorted(path.name for path in values.iterdir())
    assert len(found) == len(names), f"{len(found)} entries, {len(names)} values"
    for name in names:
        key = "state/0/sampler" if name == "state" else name
        dtype, shape, data = found[key]
        assert name == "state" or (dtype, shape) == registered[name], (
            f"{key} is {dtype} {shape}, registered was {registered[name]}"
        )
        expected = (values / name).read_bytes()
        assert data == expected, f"{key} holds other bytes than the program had"
        if dtype not in NOT_IN_NUMPY:
            assert arrays[key].tobytes() == expected, f"{key} is another array than the program had"
    assert {dtype for dtype, _, _ in found.values()} == NOT_IN_NUMPY | IN_NUMPY, "a type is missing"
    print(f"{len(names)} arrays of {len({dtype for dtype, _, _ in found.values()})} types")


def joined(arrays, name):
    """The pieces name[begin:end] in order; they leave no gap."""
    pieces = sorted(
        (int(match[1]), int(match[2]), key)
        for key in arrays
        if (match := re.fullmatch(re.escape(name) + r"\[(\d+):(\d+)\]", key))
    )
    if not pieces:
        return arrays[name]
    ends = [0] + [end for _, end, _ in pieces]
    assert [begin for begin, _, _ in pieces] == ends[:-1], f"the pieces of {name} do not join: {pieces}"
    return numpy.concatenate([arrays[key] for _, _, key in pieces])


def compare_ranks(folder, weights, step):
    arrays = {}
    for path in sorted(folder.glob("*.safetensors")):
        arrays.update(load_file(path))
    expected = numpy.fromfile(weights, dtype="<f8").reshape(2, 64, 33)
    for index, name in enumerate(("weights", "moments")):
        assert numpy.array_equal(joined(arrays, name), expected[index]), (
            f"{name} holds other values than the program had after step {step}"
        )
    states = {key: array for key, array in arrays.items() if key.startswith("state/")}
    assert len(states) == 3, f"state of three ranks was expected: {sorted(states)}"
    for key, array in states.items():
        assert int.from_bytes(array.tobytes(), "little") == 7 * step, (
            f"{key} is not what the program had after step {step}"
        )
    print(f"{len(arrays)} arrays in {len(list(folder.glob('*.safetensors')))} files, step {step}")


if __name__ == "__main__":
    checkpoint = pathlib.Path(sys.argv[2])
    if sys.argv[1] == "types":
        compare_types(checkpoint, pathlib.Path(sys.argv[3]))
    else:
        compare_ranks(checkpoint, sys.argv[3], int(sys.argv[4]))
