"""The one exception that reaches the user: a sentence that says what to do."""


class Failure(Exception):
    """Something the user can act on. The command prints it and exits with `code`."""

    def __init__(self, sentence, code=1):
        super().__init__(sentence)
        self.code = code


def say(line):
    """One progress line, on stderr so that stdout stays for answers (paths, JSON)."""
    import sys

    print(line, file=sys.stderr, flush=True)
