"""How e2e judges a recovery (tests/e2e/recovery.py), with a scene that has only journals."""

import sys
import types

from stage import Unmet
from stepjournal import LoggedStep
from steploss import StepLoss
from storytests import TESTS, outcomes_of_stories, refusal_of

sys.path.append(str(TESTS / "e2e"))
from recovery import count_steps, expect_columns, expect_no_step_lost, expect_retries


def life(attempt, first, last):
    return [LoggedStep(attempt, step, 0.0) for step in range(first, last + 1)]


class Scene:
    """`lives`: of every rank; `others`: {rank: its own}."""

    def __init__(self, *lives, others=None, losses=()):
        self.losses = list(losses)
        self._journals = {rank: sum(lives, []) for rank in range(4)} | (others or {})

    def journals(self, job, ranks):
        assert job == "digits"
        return {rank: self._journals[rank] for rank in range(ranks)}


FIRST, SECOND = life(1, 1, 40), life(2, 41, 60)
ONE_FAULT = (FIRST, SECOND)


def judged(scene, step_before=40, saved=40, attempt=2, **more):
    found = types.SimpleNamespace(attempt=attempt)
    return refusal_of(lambda: expect_no_step_lost(scene, step_before, found, saved, **more), Unmet)


def a_recovery_that_lost_nothing_is_well():
    scene = Scene(*ONE_FAULT)
    yield judged(scene), None
    yield scene.losses, [StepLoss(last_step_committed=40, step_saved=40, first_step_after=41)]
    # Nobody has told what was saved.
    yield judged(Scene(*ONE_FAULT), saved=None), None
    # One rank was killed inside of its update.
    yield judged(Scene(*ONE_FAULT, others={1: life(1, 1, 39) + SECOND})), None


def a_lost_step_is_told():
    yield (
        judged(Scene(life(1, 1, 41), SECOND)),
        ("1 step was lost: a rank had committed step 41, and saved was step 40"),
    )
    # By a single rank, also where nobody has told what was saved.
    yield (
        judged(Scene(*ONE_FAULT, others={3: life(1, 1, 42) + SECOND}), saved=None),
        ("2 steps were lost: a rank had committed step 42, and saved was step 40"),
    )


def where_nobody_is_left_what_all_had_committed_counts():
    ahead = {3: life(1, 1, 41) + SECOND}
    yield judged(Scene(*ONE_FAULT, others=ahead), nobody_left=True), None
    # The same where somebody lived who could have passed it on; and a step that all had.
    yield "1 step was lost" in judged(Scene(*ONE_FAULT, others=ahead)), True
    yield "1 step was lost" in judged(Scene(life(1, 1, 41), SECOND), nobody_left=True), True
    yield (
        judged(Scene(*ONE_FAULT, others={3: life(1, 1, 42) + SECOND}), nobody_left=True),
        "ranks that meet in every step were 2 steps apart when they died",
    )


def training_that_goes_on_elsewhere_is_told():
    yield "2 steps were lost" in judged(Scene(*ONE_FAULT), saved=38), True
    yield "training went on with step 41" in judged(Scene(*ONE_FAULT), saved=38), True


def a_step_that_was_seen_and_is_in_no_journal_is_told():
    yield (
        judged(Scene(*ONE_FAULT), step_before=41),
        ("step 41 was seen before the fault, but the ranks' journals end with step 40"),
    )


def each_recovery_is_of_the_life_before_it():
    scene = Scene(FIRST, SECOND, life(3, 61, 90), losses=[StepLoss(40, 40, 41)])
    yield judged(scene, step_before=60, saved=60, attempt=3), None
    yield scene.losses[-1], StepLoss(last_step_committed=60, step_saved=60, first_step_after=61)
    # What the second recovery lost is no loss of the first, and the other way round.
    yield (
        judged(Scene(FIRST, life(2, 41, 61), life(3, 61, 90), losses=[StepLoss(40, 40, 41)]), 60, 60, 3),
        ("1 step was lost: a rank had committed step 61, and saved was step 60"),
    )


def a_life_that_no_recovery_explains_is_told():
    # Nobody asked for attempt 2, which makes 29 steps again and ends before the first one did.
    scene = Scene(life(1, 1, 60), life(2, 31, 59), life(3, 61, 89))
    yield judged(scene, step_before=60, saved=60, attempt=3).startswith("rank 0 began attempt 2 with step 31"), True
    yield judged(Scene(life(1, 1, 20) + life(1, 22, 40), SECOND)).startswith("rank 0 made step 22 after step 20"), True
    yield judged(Scene(life(1, 1, 20) + life(1, 20, 40), SECOND)).startswith("rank 0 made step 20 after step 20"), True


def ranks_that_were_scaled_away_need_not_go_on():
    scene = Scene(*ONE_FAULT, others={2: FIRST})
    yield judged(scene, saved=None, ranks=3, ranks_after=2), None
    yield count_steps(Scene(*ONE_FAULT), types.SimpleNamespace(attempt=2), 39).steps_lost, 1


def restarts_are_counted():
    def said(count, wanted, limit=100, phase="Running"):
        job = {"status": {"retryCount": count}, "spec": {"maxRetry": limit}}
        scene = types.SimpleNamespace(job=lambda _: job, phase=lambda _: phase)
        return refusal_of(lambda: expect_retries(scene, "digits", wanted), Unmet)

    yield (said(1, 1), said(2, (1, 3))), (None, None)
    yield said(2, 1), "status.retryCount of the job: expected 1, got 2"
    yield said(0, (1, 3)), "status.retryCount of the job: expected 1 to 3, got 0"
    yield said(1, 1, limit=3), "spec.maxRetry of the job: expected 100, got 3"
    yield said(1, 1, phase="Restarting"), "the job's phase: expected 'Running', got 'Restarting'"


def columns_are_filled():
    header = "NAME  JOB     TRIGGER  STEP  RANKS  BYTES  AGREED  DURABLE  STATUS    AGE"
    whole = "one   digits  PreStop  40    4/4    1 MB   0.1 s   0.2 s    Restored  5s"
    blank = "one   digits  PreStop  40    4/4    1 MB   <none>           Restored  5s"

    def said(row, timed=True, first=header):
        kubernetes = types.SimpleNamespace(kubectl=lambda *_: f"{first}\n{row}\n")
        scene = types.SimpleNamespace(kubernetes=kubernetes, namespace="x")
        return (refusal_of(lambda: expect_columns(scene, "one", timed), Unmet) or "").partition(":")[0]

    yield (said(whole), said(blank, timed=False)), ("", "")
    yield said(blank), "columns AGREED, DURABLE should be filled"
    yield said(whole.replace("40", "  ")), "columns STEP should be filled"
    yield said(whole.replace("one", "two")).startswith("columns NAME, JOB, TRIGGER"), True
    yield said(whole, first=header.replace("STEP", "SEED")), "the columns of kubectl get breakpoints"


def outcomes():
    return outcomes_of_stories(
        "recovery",
        (
            a_recovery_that_lost_nothing_is_well,
            a_lost_step_is_told,
            where_nobody_is_left_what_all_had_committed_counts,
            training_that_goes_on_elsewhere_is_told,
            a_step_that_was_seen_and_is_in_no_journal_is_told,
            each_recovery_is_of_the_life_before_it,
            a_life_that_no_recovery_explains_is_told,
            ranks_that_were_scaled_away_need_not_go_on,
            restarts_are_counted,
            columns_are_filled,
        ),
    )
