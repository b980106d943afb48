#!/usr/bin/env python3
"""peer.py FOLDER MEBIBYTES: how long others take to make the same amount of training state durable. Prints the names of those that are installed; then, for each name on
standard input, saves once, syncs the file, and prints the milliseconds. All of them save the same arrays.
"""

import os
import pickle
import sys
import time

import numpy

TENSOR_BYTES = 64 << 20


def make_arrays(mebibytes):
    random = numpy.random.default_rng(1)
    sizes = [min(TENSOR_BYTES, (mebibytes << 20) - begin) for begin in range(0, mebibytes << 20, TENSOR_BYTES)]
    return {f"tensor.{index}": random.integers(0, 2**63, size // 8, dtype=numpy.int64) for index, size in enumerate(sizes)}


def savers(arrays):
    """{name: save(path)}, of what is installed."""
    found = {}
    try:
        from safetensors.numpy import save_file

        found["safetensors"] = lambda path: save_file(arrays, path)
    except ImportError:
        pass
    try:
        import torch

        tensors = {name: torch.from_numpy(array) for name, array in arrays.items()}
        found["torch.save"] = lambda path: torch.save(tensors, path)
    except (ImportError, OSError):
        pass

    def save_pickle(path):
        with open(path, "wb") as file:
            pickle.dump(arrays, file, protocol=5)

    found["pickle"] = save_pickle
    return found


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
    folder, mebibytes = sys.argv[1], int(sys.argv[2])
    found = savers(make_arrays(mebibytes))
    print(" ".join(found), flush=True)
    for line in sys.stdin:
        print(timed_milliseconds(found[line.strip()], os.path.join(folder, "peer")), flush=True)


if __name__ == "__main__":
    main()
