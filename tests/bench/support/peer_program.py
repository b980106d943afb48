"""tests/bench/durable/peer.py, driven, with the Python that has the packages."""

import subprocess

import report

# What a person may make by hand (the packages are gigabytes), and what ./dev setup makes.
WITH_TORCH = report.ROOT / "build" / "python-torch" / "bin" / "python"
WITH_SAFETENSORS = report.ROOT / "build" / "python" / "bin" / "python"


class PeerProgram:
    """`names` of those that can be asked; none where there is no such Python."""

    def __init__(self, folder, mebibytes):
        self.process = None
        self.names = []
        python = next((path for path in (WITH_TORCH, WITH_SAFETENSORS) if path.exists()), None)
        if python is None:
            return
        program = report.ROOT / "tests" / "bench" / "durable" / "peer.py"
        self.process = subprocess.Popen([python, program, folder, str(mebibytes)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.names = self.answer().split()
        if "torch.save" in self.names:
            self.names.remove("pickle")  # only stands in where there is no torch

    def answer(self):
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit("bench: peer.py ended before its time")
        return line

    def milliseconds(self, name):
        self.process.stdin.write(name + "\n")
        self.process.stdin.flush()
        return float(self.answer())

    def end(self):
        if self.process is not None:
            self.process.stdin.close()
            self.process.wait()
