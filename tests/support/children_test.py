"""What becomes of the programs of a run when it ends early."""

import pathlib
import subprocess
import sys
import tempfile
import threading

from children import Children, Ended

# Says that it has begun, and when it is asked to end, writes that down.
POLITE = """
import signal, sys
def end(*_):
    open(sys.argv[1], "w").write("cleaned up")
    sys.exit(0)
signal.signal(signal.SIGTERM, end)
print("ready", flush=True)
signal.pause()
"""
STUBBORN = """
import signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("ready", flush=True)
while True:
    signal.pause()
"""


def started(children, program, *words):
    process = children.start([sys.executable, "-c", program, *words], stdout=subprocess.PIPE, text=True)
    process.stdout.readline()
    return process


def all_end_and_clean_up_first():
    with tempfile.TemporaryDirectory() as folder:
        children = Children()
        files = [pathlib.Path(folder) / name for name in ("one", "two")]
        processes = [started(children, POLITE, str(file)) for file in files]
        children.end_all()
        codes = [process.poll() for process in processes]
        return [] if codes == [0, 0] and all(file.read_text() == "cleaned up" for file in files) else [f"{codes}"]


def one_that_does_not_end_is_killed():
    children = Children(clean_up_seconds_max=0.2)
    process = started(children, STUBBORN)
    children.end_all()
    return [] if process.poll() == -9 else [f"ended with {process.poll()}"]


def what_a_child_started_ends_with_it():
    children = Children()
    # The grandchild holds the pipe: it ends only when both are gone.
    process = started(children, "import subprocess\nprint('ready', flush=True)\nsubprocess.run(['sleep', '600'])")
    reader = threading.Thread(target=process.stdout.read, daemon=True)
    reader.start()
    children.end_all()
    reader.join(20)
    return ["the program that the child started is still there"] if reader.is_alive() else []


def nothing_starts_after_the_end():
    children = Children()
    children.end_all()
    try:
        children.start(["true"])
    except Ended:
        return []
    return ["a program was started"]


def one_that_takes_too_long_is_ended():
    code = Children().run(["sleep", "600"], 0.1)
    return [] if code is None else [f"ended with {code}"]


# Is signalled as soon as the child is there, before it is known to be.
SIGNALLED = """
import os, signal, subprocess, sys
sys.path.insert(0, {support!r})
from children import Children
class Signalled(subprocess.Popen):
    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        os.kill(os.getpid(), signal.SIGTERM)
signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
subprocess.Popen = Signalled
children = Children()
try:
    children.start(["sleep", "60"])
finally:
    children.end_all()
"""


def one_that_has_just_started_ends_with_the_run():
    # The child holds the pipe: it ends only when both are gone.
    program = SIGNALLED.format(support=str(pathlib.Path(__file__).parent))
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE)
    reader = threading.Thread(target=process.stdout.read, daemon=True)
    reader.start()
    reader.join(20)
    return ["the child is still there"] if reader.is_alive() else []


def outcomes():
    return [
        (f"children-{test.__name__.replace('_', '-')}", test())
        for test in (
            all_end_and_clean_up_first,
            one_that_does_not_end_is_killed,
            what_a_child_started_ends_with_it,
            nothing_starts_after_the_end,
            one_that_takes_too_long_is_ended,
            one_that_has_just_started_ends_with_the_run,
        )
    ]
