"""Self-tests that tell stories: functions that yield (what comes, what should)."""

import contextlib
import importlib.machinery
import importlib.util
import pathlib

TESTS = pathlib.Path(__file__).resolve().parents[1]


class Exited(Exception):
    """In place of the end of the process."""

    def __init__(self, code):
        super().__init__(code)
        self.code = code


def outcomes_of_stories(subject, stories):
    """(name, faults) of each."""
    results = []
    for story in stories:
        try:
            faults = [f"expected {expected!r}, got {actual!r}" for actual, expected in story() if actual != expected]
        except Exception as error:
            faults = [f"expected no exception, got {error!r}"]
        results.append((f"{subject}-{story.__name__.replace('_', '-')}", faults))
    return results


def program(path):
    """A program of the tests as a module; `path` is below tests/."""
    name = path.replace("/", "_")
    loader = importlib.machinery.SourceFileLoader(name, str(TESTS / path))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
    loader.exec_module(module)
    return module


def refusal_of(call, kind):
    """The sentence of the exception of this kind that a call raises; None when it raises none."""
    try:
        call()
    except kind as error:
        return str(error)
    return None


@contextlib.contextmanager
def entered(patches):
    """Several patches at once."""
    with contextlib.ExitStack() as stack:
        for patch in patches:
            stack.enter_context(patch)
        yield
