"""Summaries of `strace -c`, with and without a column of errors."""

from systemcalls import calls_in

HEAD = """% time     seconds  usecs/call     calls    errors syscall
------ ----------- ----------- --------- --------- ----------------
 75.00    0.000600           6       100         3 read
 25.00    0.000200           4        50           write
------ ----------- ----------- --------- --------- ----------------
"""

# name: (what comes, what should)
EXAMPLES = {
    "with-errors": (calls_in(HEAD + "100.00    0.000800           5       150         3 total\n"), 150),
    "without-errors": (calls_in(HEAD + "100.00    0.000800           5       150           total\n"), 150),
    "none-at-all": (calls_in(HEAD + "100.00    0.000000           0         0           total\n"), 0),
    "a-summary-that-was-cut-off": (calls_in(HEAD), None),
}


def outcomes():
    return [
        (f"system-calls-{name}", [] if actual == expected else [f"expected {expected!r}, got {actual!r}"])
        for name, (actual, expected) in EXAMPLES.items()
    ]
