"""MindSpore reads what we write, and we read what MindSpore writes: with its own package, in both directions. For
tests/interop/run."""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tests" / "support"))

import mindspore
import numpy
from mindspore.train.checkpoint_pb2 import Checkpoint
from mindspore.train.node_strategy_pb2 import ParallelGroupMap
from safetensors.numpy import load_file, save_file
from shipped import PROGRAMS

KINDS = [
    "Int8",
    "UInt8",
    "Int16",
    "UInt16",
    "Int32",
    "UInt32",
    "Int64",
    "UInt64",
    "Float16",
    "Float32",
    "Float64",
    "Bool",
    "BFloat16",
]


def rekindle(*arguments, code=0):
    ran = subprocess.run([PROGRAMS / "rekindle", "checkpoint", *map(str, arguments)], capture_output=True, text=True)
    assert ran.returncode == code, f"{arguments}: exit code {ran.returncode}, not {code}: {ran.stdout}{ran.stderr}"
    return ran.stdout


def raw(path):
    """{name: (shape, type, bytes)} as MindSpore's message class reads the file; slices of one tensor are put
    together."""
    checkpoint = Checkpoint()
    checkpoint.ParseFromString(path.read_bytes())
    tensors = {}
    for value in checkpoint.value:
        known = tensors.get(value.tag, (None, None, b""))
        tensors[value.tag] = (list(value.tensor.dims), value.tensor.tensor_type, known[2] + value.tensor.tensor_content)
    return tensors


def model():
    random = numpy.random.default_rng(184)
    arrays = {
        "weight": random.standard_normal((64, 33)).astype(numpy.float32),
        "scalar": numpy.array(3.5, numpy.float32),
        "none": numpy.zeros((0, 4), numpy.float32),
        "mask": random.integers(0, 2, 17).astype(numpy.bool_),
    }
    for kind in KINDS[:11]:
        arrays[f"layer.{kind.lower()}"] = (random.random((3, 5)) * 100).astype(kind.lower())
    return arrays


def save(arrays, path, **more):
    tensors = [{"name": name, "data": mindspore.Tensor(array)} for name, array in arrays.items() if array.size > 0]
    tensors.append({"name": "half", "data": mindspore.Tensor(numpy.arange(9), mindspore.bfloat16)})
    mindspore.save_checkpoint(tensors, str(path), append_dict={"epoch_num": 2, "step_num": 184}, **more)


def import_file(folder, path):
    report = json.loads(rekindle("import", path, "--root", folder, "--job", "team-a.digits", "-o", "json"))
    return folder / "team-a.digits" / report["checkpoint"]


def there_and_back(folder, **more):
    """What MindSpore saved, imported and exported again, is the same for MindSpore's message class and its
    load_checkpoint."""
    save(model(), folder / "theirs.ckpt", **more)
    checkpoint = import_file(folder, folder / "theirs.ckpt")
    rekindle("export", checkpoint, folder, "--format", "mindspore", "--prefix", "ours", "--steps-per-epoch", "100")
    ours = folder / "ours-2_84.ckpt"
    theirs = mindspore.load_checkpoint(str(folder / "theirs.ckpt"))
    loaded = mindspore.load_checkpoint(str(ours))
    assert sorted(theirs) == sorted(loaded), f"{sorted(theirs)} and {sorted(loaded)}"
    for name, value in theirs.items():
        assert loaded[name].dtype == value.dtype and loaded[name].shape == value.shape, (
            f"{name}: {loaded[name]} and {value}"
        )
        assert raw(ours)[name] == raw(folder / "theirs.ckpt")[name], name
    return f"{len(loaded)} tensors and numbers, {len({kind for _, kind, _ in raw(ours).values()})} types"


def there_and_back_with_checksum(folder):
    """With a checksum behind it the file comes back the same, and one bit of a tensor that has changed is found by the
    checksum alone."""
    save(model(), folder / "theirs.ckpt", crc_check=True)
    save(model(), folder / "plain.ckpt")
    whole = (folder / "theirs.ckpt").read_bytes()
    assert b"crc_num" in whole[-64:] and b"crc_num" not in (folder / "plain.ckpt").read_bytes()[-64:], (
        "MindSpore saved no checksum"
    )
    checkpoint = import_file(folder, folder / "theirs.ckpt")
    rekindle("export", checkpoint, folder, "--format", "mindspore", "--prefix", "ours", "--steps-per-epoch", "100")
    # The message class does not know the checksum behind the message: compared by load_checkpoint alone.
    theirs = mindspore.load_checkpoint(str(folder / "theirs.ckpt"), crc_check=True)
    loaded = mindspore.load_checkpoint(str(folder / "ours-2_84.ckpt"))
    assert sorted(theirs) == sorted(loaded), f"{sorted(theirs)} and {sorted(loaded)}"
    for name, value in theirs.items():
        assert loaded[name].dtype == value.dtype and loaded[name].shape == value.shape, name
    for name, array in model().items():
        if array.size > 0:
            assert numpy.array_equal(loaded[name].asnumpy(), array), name
    # The same bit of a tensor's content in both files: without a checksum nobody can know.
    content = model()["weight"].tobytes()
    for name, code in (("theirs.ckpt", 1), ("plain.ckpt", 0)):
        damaged = bytearray((folder / name).read_bytes())
        damaged[damaged.index(content) + 100] ^= 1
        (folder / f"damaged-{name}").write_bytes(damaged)
        rekindle("import", folder / f"damaged-{name}", "--root", folder, "--job", f"team-a.damaged-{code}", code=code)
    return f"{len(loaded)} tensors and numbers, and damage that only the checksum shows"


def safetensors_both_ways(folder):
    """What the safetensors package saved comes out the same, by its own reader, and reaches MindSpore."""
    arrays = model()
    save_file(arrays, folder / "theirs.safetensors")
    rekindle("import", folder / "theirs.safetensors", "--root", folder, "--job", "team-a.digits", "--step", 9)
    rekindle("export", folder / "team-a.digits", folder / "ours.safetensors")
    rekindle("export", folder / "team-a.digits", folder, "--format", "mindspore", "--prefix", "m", "--epoch", 1)
    loaded = load_file(folder / "ours.safetensors")
    parameters = mindspore.load_checkpoint(str(folder / "m-1_9.ckpt"))
    for name, array in arrays.items():
        assert loaded[name].dtype == array.dtype and numpy.array_equal(loaded[name], array), name
        assert parameters[name].shape == array.shape and numpy.array_equal(parameters[name].asnumpy(), array), (
            f"{name} in MindSpore"
        )
    return f"{len(arrays)} tensors"


def slices(folder):
    """A tensor above MindSpore's slice size, in both directions."""
    array = numpy.random.default_rng(1).integers(0, 256, (600, 1 << 20), numpy.uint8)
    mindspore.save_checkpoint(
        [{"name": "big", "data": mindspore.Tensor(array)}], str(folder / "theirs.ckpt"), append_dict={"step_num": 7}
    )
    checkpoint = import_file(folder, folder / "theirs.ckpt")
    rekindle("export", checkpoint, folder, "--format", "mindspore", "--prefix", "ours", "--epoch", 1)
    count = [len((folder / name).read_bytes().split(b"UInt8")) - 1 for name in ("theirs.ckpt", "ours-1_7.ckpt")]
    loaded = mindspore.load_checkpoint(str(folder / "ours-1_7.ckpt"))
    assert numpy.array_equal(loaded["big"].asnumpy(), array), "the bytes differ"
    return f"theirs has {count[0]} slices, ours {count[1]}"


def group_info(folder):
    """restore_group_info_list reads ours; `rekindle checkpoint groups` reads what their message class writes."""
    subprocess.run([PROGRAMS / "group_info_writer", folder / "ours.pb", "39", "47", "55", "63"], check=True)
    assert mindspore.restore_group_info_list(str(folder / "ours.pb")) == [39, 47, 55, 63]
    for rank in range(4):
        groups = ParallelGroupMap()
        item = groups.parallel_group_item.add()
        item.group_name = "hccl_world_group"
        item.parallel_group_ranks.dim.extend(range(4))
        groups.ckpt_restore_rank_list.dim.extend([rank % 2, rank % 2 + 2])
        (folder / f"device{rank}").mkdir()
        path = folder / f"device{rank}" / "group_info.pb"
        path.write_bytes(groups.SerializeToString())
        assert mindspore.restore_group_info_list(str(path)) == [rank % 2, rank % 2 + 2]
    report = json.loads(rekindle("groups", folder, "--faulty", 0, "-o", "json"))
    assert report["restore_ranks"] == "1,2" and json.loads(report["restore_ranks_map"]) == {"0,2": 2, "1,3": 1}, report
    return report["restore_ranks_map"]


def rebuild(folder):
    """A lost rank's file, copied from its replica, is what MindSpore loads."""
    group_info(folder)
    for rank in (1, 2, 3):
        (folder / f"rank_{rank}").mkdir()
        name = folder / f"rank_{rank}" / "m-2_84_breakpoint.ckpt"
        arrays = {"weight": numpy.full((4, 4), rank % 2, numpy.float32)}
        save(arrays, name)
    (folder / "checkpoints").mkdir()
    for rank in (1, 2, 3):
        (folder / f"rank_{rank}").rename(folder / "checkpoints" / f"rank_{rank}")
    rekindle("groups", folder, "--faulty", 0, "--checkpoints", folder / "checkpoints", "--rebuild")
    loaded = mindspore.load_checkpoint(str(folder / "checkpoints" / "rank_0" / "m-2_84_breakpoint.ckpt"))
    assert (loaded["weight"].asnumpy() == 0).all() and int(loaded["step_num"].asnumpy()) == 184
    return "rank 0 from rank 2"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--large", action="store_true", help="also a tensor that is cut into slices")
    large = parser.parse_args().large
    failed = 0
    for case in [there_and_back, there_and_back_with_checksum, safetensors_both_ways, group_info, rebuild] + (
        [slices] if large else []
    ):
        with tempfile.TemporaryDirectory() as folder:
            try:
                print(f"ok {case.__name__}: {case(pathlib.Path(folder))}", flush=True)
            except Exception as error:  # every case is to be told about
                failed += 1
                print(
                    f"FAIL {case.__name__}: {type(error).__name__}: {' / '.join(str(error).splitlines())}", flush=True
                )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
