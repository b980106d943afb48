"""What is said about the states at the end of two runs, told by example."""

import dataclasses
import hashlib

from endstates import EndStates, State
from selfcheck import outcomes_of, said


def state(where, content=None):
    return State(where, hashlib.sha256((content or where).encode()).hexdigest())


GOOD = EndStates(state("initial"), state("undisturbed", "trained"), state("disturbed", "trained"))


def with_hashes(initial, undisturbed, disturbed):
    return EndStates(State("initial", initial), State("undisturbed", undisturbed), State("disturbed", disturbed))


def equal_ends_are_well():
    yield GOOD.faults(), []


def different_ends_are_told():
    yield said(dataclasses.replace(GOOD, disturbed=state("disturbed")).faults(), "the final states differ"), True


def zeros_are_no_hash():
    trained = GOOD.undisturbed.sha256
    yield (
        said(
            with_hashes(trained, "0" * 64, "0" * 64).faults(),
            "the undisturbed run's state",
            "the disturbed run's state",
        ),
        True,
    )
    yield said(with_hashes("0" * 64, trained, trained).faults(), "the initial run's state is no SHA-256"), True


def a_hash_of_another_form_is_no_hash():
    initial = GOOD.initial.sha256
    for wrong in ("", "no such file", GOOD.undisturbed.sha256[:-1], GOOD.undisturbed.sha256 + "a"):
        yield len(with_hashes(initial, wrong, wrong).faults()), 2


def the_hash_of_the_initial_state_is_told():
    same = GOOD.initial.sha256
    yield said(with_hashes(same, same, same).faults(), "ended with the state that it began with"), True


def one_file_is_not_compared_with_itself():
    for wrong in (
        dataclasses.replace(GOOD, disturbed=GOOD.undisturbed),
        dataclasses.replace(GOOD, initial=state("undisturbed", "initial")),
        dataclasses.replace(GOOD, initial=state("disturbed", "initial")),
    ):
        yield said(wrong.faults(), "the same file was hashed twice"), True


def hashes_are_reported_and_printed():
    states = with_hashes("a1", "b2", "c3")
    yield (
        states.report(),
        {"weights_sha256": "c3", "weights_sha256_undisturbed": "b2", "weights_sha256_initial": "a1"},
    )
    yield (
        states.lines(),
        [
            "    final state, undisturbed          b2",
            "    final state, disturbed            c3",
        ],
    )


def outcomes():
    return outcomes_of(
        "end-states",
        (
            equal_ends_are_well,
            different_ends_are_told,
            zeros_are_no_hash,
            a_hash_of_another_form_is_no_hash,
            the_hash_of_the_initial_state_is_told,
            one_file_is_not_compared_with_itself,
            hashes_are_reported_and_printed,
        ),
    )
