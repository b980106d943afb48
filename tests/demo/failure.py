"""Why a demo or a local test ends: one sentence for people, and where to look."""


class DemoFailure(Exception):
    """`str()` says what was expected and what came instead."""
