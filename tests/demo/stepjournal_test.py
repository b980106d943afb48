"""What is said about the lives of a job, told by example journals."""

from stepjournal import LoggedStep, life_faults


def life(attempt, first, last):
    return [LoggedStep(attempt, step, 0.0) for step in range(first, last + 1)]


WHOLE = {0: life(1, 1, 100) + life(2, 101, 200), 1: life(1, 1, 99) + life(2, 101, 200)}

# name: (journals, first steps behind the known faults, how many sentences)
EXAMPLES = {
    "one-fault-and-one-life-behind-it": ({0: life(1, 1, 100) + life(2, 101, 200)}, {101}, 0),
    "a-rank-may-have-been-one-step-behind": (WHOLE, {101}, 0),
    "a-restart-that-no-fault-explains": ({0: life(1, 1, 100) + life(2, 101, 160) + life(3, 150, 200)}, {101}, 2),
    "a-restart-without-any-fault": ({0: life(1, 1, 100) + life(2, 41, 200)}, set(), 2),
    "a-gap-within-a-life": ({0: life(1, 1, 60) + life(1, 62, 200)}, set(), 1),
    "a-life-that-begins-late": ({0: life(1, 5, 200)}, set(), 1),
    "a-life-that-ends-early": ({0: life(1, 1, 199)}, set(), 1),
    "an-attempt-that-goes-back": ({0: life(2, 1, 100) + life(1, 101, 200)}, {101}, 1),
}


def outcomes():
    results = []
    for name, (journals, starts, count) in EXAMPLES.items():
        found = life_faults(journals, starts, 200)
        results.append(
            (f"journals-{name}", [] if len(found) == count else [f"expected {count} sentences, got {found}"])
        )
    return results
