"""What the tests of the proof share. A case is a function that yields (what comes, what should)."""


def outcomes_of(subject, cases):
    """(name, faults) of each case."""
    results = []
    for case in cases:
        try:
            faults = [f"expected {expected!r}, got {actual!r}" for actual, expected in case() if actual != expected]
        except Exception as error:
            faults = [f"expected no exception, got {error!r}"]
        results.append((f"{subject}-{case.__name__.replace('_', '-')}", faults))
    return results


def refused(wrong, kind, *words):
    """Whether a call raises this kind of exception and its sentence says the words; else what came."""
    try:
        return f"no refusal, but {wrong()!r}"
    except kind as error:
        missing = [word for word in words if word not in str(error)]
        return True if not missing else f"{missing} is not in '{error}'"


def said(faults, *beginnings):
    """True when there is one sentence for each of these words, in this order; else the sentences."""
    fits = len(faults) == len(beginnings) and all(words in fault for words, fault in zip(beginnings, faults))
    return True if fits else faults
