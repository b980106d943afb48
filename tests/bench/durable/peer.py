#!/usr/bin/env python3
"""peer.py NAME FOLDER MEBIBYTES: how long another one takes to make the same amount of training state durable. NAME is
safetensors or torch.save; both save the same arrays. Prints its version; then, for each line of standard input, saves
once, syncs the file, and prints the milliseconds.
"""

import os
import sys
import time

import numpy

TENSOR_BYTES = 64 << 20


def make_arrays(mebibytes):
    random = numpy.random.default_rng(1)
    sizes = [min(TENSOR_BYTES, (mebibytes << 20) - begin) for begin in range(0, mebibytes << 20, TENSOR_BYTES)]
    return {
        f"tensor.{index}": random.integers(0, 2**63, size // 8, dtype=numpy.int64) for index, size in enumerate(sizes)
    }


def saver(name, arrays):
    """Its version, and save(path)."""
    if name == "safetensors":
        import safetensors
        from safetensors.numpy import save_file

        return safetensors.__version__, lambda path: save_file(arrays, path)
    import torch

    tensors = {key: torch.from_numpy(array) for key, array in arrays.items()}
    return torch.__version__, lambda path: torch.save(tensors, path)


def timed_milliseconds(save, path):
    begin = time.monotonic()
    save(path)
    file = os.open(path, os.O_RDONLY)
    os.fsync(file)
    os.close(file)
    milliseconds = (time.monotonic() - begin) * 1000
    os.unlink(path)
    return milliseconds


def main():
    name, folder, mebibytes = sys.argv[1], sys.argv[2], int(sys.argv[3])
    version, save = saver(name, make_arrays(mebibytes))
    print(version, flush=True)
    for _ in sys.stdin:
        print(timed_milliseconds(save, os.path.join(folder, "peer")), flush=True)


if __name__ == "__main__":
    main()
