"""tests/bench/durable/peer.py, driven, with the Python that has the package."""

import subprocess

import report

# What ./dev setup python makes, and Debian's own with its python3-torch (./dev setup torch).
PYTHON_OF = {"safetensors": report.ROOT / "build" / "python" / "bin" / "python", "torch.save": "/usr/bin/python3"}


class PeerProgram:
    def __init__(self, name, folder, mebibytes):
        program = report.ROOT / "tests" / "bench" / "durable" / "peer.py"
        self.process = subprocess.Popen(
            [PYTHON_OF[name], program, name, folder, str(mebibytes)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.version = self.answer().strip()

    def answer(self):
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit("bench: peer.py ended before its time; what it says is above")
        return line

    def milliseconds(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return float(self.answer())

    def end(self):
        self.process.stdin.close()
        self.process.wait()
