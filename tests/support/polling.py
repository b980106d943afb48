"""The one place where tests pause: between two looks at something that announces nothing (another process's memory, a
server's answer)."""

import time


def poll(question, seconds, pause=0.02):
    """The first answer of question() that is true in Python's sense; the last one, which is not, when none was within
    `seconds`."""
    deadline = time.monotonic() + seconds
    while True:
        answer = question()
        left = deadline - time.monotonic()
        if answer or left <= 0:
            return answer
        time.sleep(min(pause, left))
