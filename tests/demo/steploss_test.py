"""What is said about steps that a fault has cost, told by example."""

from steploss import StepLoss

NOTHING = StepLoss(last_step_committed=7, step_saved=7, first_step_after=8)
ONE = StepLoss(last_step_committed=8, step_saved=7, first_step_after=8)
TWO = StepLoss(last_step_committed=9, step_saved=7, first_step_after=8)
IMPOSSIBLE = StepLoss(last_step_committed=6, step_saved=7, first_step_after=8)
REPEATED = StepLoss(last_step_committed=7, step_saved=7, first_step_after=7)
SKIPPED = StepLoss(last_step_committed=7, step_saved=7, first_step_after=9)

# name: (what comes, what should)
EXAMPLES = {
    "nothing-is-lost": (NOTHING.faults(), []),
    "a-step-is-lost": (
        ONE.faults(),
        ["1 step was lost: a rank had committed step 8, and saved was step 7"],
    ),
    "a-step-may-be-lost": (ONE.faults(lost_max=1), []),
    "more-are-lost-than-may-be": (
        TWO.faults(lost_max=1),
        [
            "2 steps were lost: a rank had committed step 9, and saved was step 7; no more than 1 may be lost",
        ],
    ),
    # The readings contradict each other: a reader that is broken is not taken for a loss of nothing.
    "more-is-saved-than-was-made": (
        IMPOSSIBLE.faults(),
        ["step 7 is said to be saved, but no rank's journal knows a step after 6: one of the two is wrong"],
    ),
    "also-where-a-loss-is-allowed": (len(IMPOSSIBLE.faults(lost_max=5)), 1),
    "a-step-is-made-twice": (
        REPEATED.faults(),
        ["step 7 was saved, so step 8 was expected first; training went on with step 7"],
    ),
    "a-step-is-left-out": (
        SKIPPED.faults(),
        ["step 7 was saved, so step 8 was expected first; training went on with step 9"],
    ),
    "figures-are-reported": (
        TWO.report(),
        {"last_step_committed": 9, "step_saved": 7, "first_step_after": 8, "steps_lost": 2},
    ),
    "figures-are-told": (
        str(TWO),
        "steps_lost 2 (last_step_committed 9, step_saved 7, first_step_after 8)",
    ),
    "figures-are-printed": (
        TWO.lines("manifest x"),
        [
            "    last_step_committed          9   (the ranks' own journals, read after they had ended)",
            "    step_saved                   7   (manifest x)",
            "    first_step_after             8   (the ranks' own journals)",
            "    steps_lost                   2",
        ],
    ),
}


def outcomes():
    return [
        (f"step-loss-{name}", [] if actual == expected else [f"expected {expected!r}, got {actual!r}"])
        for name, (actual, expected) in EXAMPLES.items()
    ]
