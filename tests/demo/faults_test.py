"""What a kill knows of what it has hit, with a process that is no rank."""

import contextlib
import pathlib
import random
import signal
import struct
import tempfile

from controlblock import DOINGS, PHASES, ControlBlock, Word, doing_of
from failure import Failure
from faults import Fault, committed_step, kill_random_rank, signal_launcher
from processes import Processes
from selfcheck import outcomes_of, refused

COMPUTING, UPDATING = PHASES.index("computing"), PHASES.index("updating")


class Run:
    """Two ranks: one is the process; each look at their words brings the next ones."""

    def __init__(self, process, *looks):
        self.launcher = process
        self._looks = list(looks)

    def rank_processes(self):
        return {1: self.launcher.pid}

    def words(self, pids):
        return self._looks.pop(0) if len(self._looks) > 1 else self._looks[0]

    def doing(self, rank):
        return f"doing of {rank}"

    def signal_launcher(self, number):
        self.launcher.send_signal(number)

    def failure(self, sentence):
        return Failure(sentence)


@contextlib.contextmanager
def sleeping():
    with tempfile.TemporaryDirectory() as folder, Processes() as processes:
        yield processes.start(["sleep", "60"], pathlib.Path(folder) / "log")


BEFORE = {0: Word(2, 10, COMPUTING), 1: Word(2, 9, COMPUTING)}
AFTER = {0: Word(2, 11, COMPUTING), 1: Word(2, 10, UPDATING)}


def a_killed_rank_is_gone_and_known():
    with sleeping() as process:
        fault = kill_random_rank(Run(process, BEFORE, AFTER), random.Random(1))
        yield process.wait(), -signal.SIGKILL
        yield (
            (fault.kind, fault.target, fault.attempt, fault.step_at_fault, fault.phase, fault.word),
            ("sigkill", "rank 1", 2, 11, "doing of 1", "updating"),
        )
        yield fault.at > 0, True


def a_rank_can_be_hit_in_a_phase():
    with sleeping() as process:
        fault = kill_random_rank(Run(process, BEFORE, BEFORE, BEFORE, AFTER), random.Random(1), aim="updating")
        yield fault.word, "updating"


def a_rank_without_a_word_is_not_killed():
    with sleeping() as process:
        run = Run(process, {0: BEFORE[0]})
        yield refused(lambda: kill_random_rank(run, random.Random(1)), Failure, "rank 1 (process"), True
        yield refused(lambda: signal_launcher(Run(process, {}), signal.SIGTERM), Failure, "no rank has"), True
        yield process.poll(), None


def a_signalled_launcher_is_known():
    for number, kind in ((signal.SIGTERM, "evict"), (signal.SIGKILL, "sigkill")):
        with sleeping() as process:
            fault = signal_launcher(Run(process, BEFORE, AFTER), number)
            yield process.wait(), -number
            yield (
                (fault.kind, fault.target, fault.attempt, fault.step_at_fault, fault.phase, fault.word),
                (kind, "launcher", 2, 11, "doing of 0", "computing"),
            )


def the_step_is_the_largest_of_that_life():
    yield committed_step(2, BEFORE, AFTER), 11
    yield committed_step(2, AFTER, BEFORE), 11
    yield committed_step(2, BEFORE, {1: Word(3, 50, COMPUTING)}), 10


def a_fault_is_told():
    fault = Fault("evict", "launcher", 1.0, 1, 7, "reducing", "computing")
    yield str(fault), "SIGTERM to `rekindle run`, reducing after step 7"
    yield str(Fault("sigkill", "rank 2", 1.0, 1, 7, "reducing", "")), "SIGKILL to rank 2, reducing after step 7"


def a_control_block_is_read():
    block = bytearray(256)
    block[:8] = b"RKCTRL01"
    struct.pack_into("<I", block, 16, 3)
    struct.pack_into("<Q", block, 24, 99)
    struct.pack_into("<QQ", block, 64, 1234 << 16 | UPDATING << 8 | 0x7F, 5)
    with tempfile.TemporaryDirectory() as name:
        path = pathlib.Path(name) / "rank-3.control"
        path.write_bytes(block)
        read = ControlBlock(path)
        word = read.read()
        yield (read.rank, read.incarnation, word), (3, 99, Word(5, 1234, UPDATING))
        read.close()
        path.write_bytes(bytes(256))
        yield refused(lambda: ControlBlock(path), ValueError, "is not a control block"), True


def a_rank_trains_between_restoring_and_its_end():
    yield [Word(1, 0, phase).is_training for phase in (0, 1, 2, COMPUTING)], [False, False, True, True]
    yield Word(0, 0, COMPUTING).is_training, False
    yield Word(1, 0, len(PHASES)).is_training, False
    yield (Word(1, 0, UPDATING).phase_name, Word(1, 0, 99).phase_name), ("updating", "phase 99")


def a_status_page_is_read():
    with tempfile.TemporaryDirectory() as name:
        page = pathlib.Path(name) / "status-0"
        yield doing_of(page), "unknown"
        for number, expected in ((3, DOINGS[3]), (len(DOINGS), "unknown")):
            page.write_bytes(struct.pack("<I", number) + bytes(60))
            yield doing_of(page), expected
        page.write_bytes(b"x")
        yield doing_of(page), "unknown"


def outcomes():
    return outcomes_of(
        "faults",
        (
            a_killed_rank_is_gone_and_known,
            a_rank_can_be_hit_in_a_phase,
            a_rank_without_a_word_is_not_killed,
            a_signalled_launcher_is_known,
            the_step_is_the_largest_of_that_life,
            a_fault_is_told,
            a_control_block_is_read,
            a_rank_trains_between_restoring_and_its_end,
            a_status_page_is_read,
        ),
    )
