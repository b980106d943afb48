"""The programs that a run has started, so that nothing of them is left when it ends early."""

import concurrent.futures
import os
import signal
import subprocess
import threading
import time

# Programs clean up behind themselves on SIGTERM: pods, namespaces, mounts.
CLEAN_UP_SECONDS_MAX = 120


class Children:
    """Each child is a process group of its own, so that what it starts ends with it. Threads may start and wait beside
    each other."""

    def __init__(self, clean_up_seconds_max=CLEAN_UP_SECONDS_MAX):
        self._lock = threading.Lock()
        self._running = set()
        self._ended = False
        self._clean_up_seconds_max = clean_up_seconds_max

    def start(self, command, **options):
        """As subprocess.Popen. Raises Ended once the run is over."""
        # In a thread of its own, which no signal's handler interrupts: an exception between the
        # program's start and the line that notes it would leave it running.
        with concurrent.futures.ThreadPoolExecutor(1) as starting:
            return starting.submit(self._start, command, options).result()

    def _start(self, command, options):
        with self._lock:
            if self._ended:
                raise Ended
            process = subprocess.Popen(command, start_new_session=True, **options)
            self._running = {one for one in self._running if one.poll() is None} | {process}
            return process

    def run(self, command, seconds_max, **options):
        """Exit code; None when it ran for longer than `seconds_max` and has been ended."""
        process = self.start(command, **options)
        try:
            return process.wait(seconds_max)
        except subprocess.TimeoutExpired:
            self.end(process)
            return None

    def end(self, process):
        """Asks it to end, and ends what is left of its group after a while."""
        _signal(process, signal.SIGTERM)
        try:
            process.wait(self._clean_up_seconds_max)
        except subprocess.TimeoutExpired:
            pass
        _signal(process, signal.SIGKILL)
        process.wait()

    def end_all(self):
        """Ends them beside each other; none starts any more."""
        with self._lock:
            self._ended = True
            running = [process for process in self._running if process.poll() is None]
        for process in running:
            _signal(process, signal.SIGTERM)
        until = time.monotonic() + self._clean_up_seconds_max
        for process in running:
            try:
                process.wait(max(0, until - time.monotonic()))
            except subprocess.TimeoutExpired:
                pass
            _signal(process, signal.SIGKILL)
            process.wait()


class Ended(Exception):
    """The run is over; nothing starts any more."""


def _signal(process, number):
    try:
        os.killpg(process.pid, number)
    except ProcessLookupError:
        pass
