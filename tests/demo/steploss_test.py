"""What is said about steps that a fault has cost, told by example."""

from steploss import StepLoss

NOTHING = StepLoss(last_step_committed=7, step_saved=7, first_step_after=8)
ONE = StepLoss(last_step_committed=8, step_saved=7, first_step_after=8)
IMPOSSIBLE = StepLoss(last_step_committed=6, step_saved=7, first_step_after=8)
REPEATED = StepLoss(last_step_committed=7, step_saved=7, first_step_after=7)

# name: (what comes, what should)
EXAMPLES = {
    "nothing-is-lost": (NOTHING.faults(), []),
    "a-step-is-lost": (
        ONE.faults(),
        ["1 step was lost: a rank had committed step 8, and saved was step 7"],
    ),
    "a-step-may-be-lost": (ONE.faults(lost_allowed=True), []),
    # The readings contradict each other: a reader that is broken is not taken for a loss of nothing.
    "more-is-saved-than-was-made": (
        IMPOSSIBLE.faults(),
        ["step 7 is said to be saved, but no rank's journal knows a step after 6: one of the two is wrong"],
    ),
    "also-where-a-loss-is-allowed": (len(IMPOSSIBLE.faults(lost_allowed=True)), 1),
    "a-step-is-made-twice": (
        REPEATED.faults(),
        ["step 7 was saved, so step 8 was expected first; training went on with step 7"],
    ),
}


def outcomes():
    return [
        (f"step-loss-{name}", [] if actual == expected else [f"expected {expected!r}, got {actual!r}"])
        for name, (actual, expected) in EXAMPLES.items()
    ]
