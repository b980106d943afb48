"""Which words of `./dev demo` go together."""

import contextlib
import io

from building import PLANTED, Programs
from commandline import demo_parser, read_arguments, refusal
from selfcheck import outcomes_of
from shipped import FOLDER

REFUSED = {
    "--fault nonsense": "there is no fault nonsense",
    "--local --fault delete": "--local knows the faults evict and sigkill",
    "--local --fault sigkill --target sidecar": "--local has no sidecar",
    "--target launcher": "--target launcher goes with --fault sigkill",
    "--local --target launcher --fault evict": "--target launcher goes with --fault sigkill",
    "--local --kills 0": "--kills needs a number above 0",
    "--local --kills -1": "--kills needs a number above 0",
    "--local --kills 2 --fault evict": "--kills kills ranks",
    "--local --kills 2 --target launcher": "--kills kills ranks",
    "--local --kills 2 --fault sigkill --target launcher": "--kills kills ranks",
    "--kills 2": "--kills goes with --local",
    "--seed 2": "--seed goes with --local",
    "--planted lose-a-step": "--planted goes with --local",
    "--build x": "--build goes with --local",
    "--local --context x": "--context does not go with --local",
    "--local --installed": "--installed does not go with --local",
    "--local --pod 0": "--pod does not go with --local",
    "--local --namespace x": "--namespace does not go with --local",
    # Steps may be lost then, so that the proof would have nothing to notice.
    "--local --planted lose-a-step --fault sigkill --target launcher": "--planted lose-a-step does not go with --target",
    "--fault sigkill --context x": "--fault sigkill kills from the node",
}
TAKEN = (
    "",
    "--local",
    "--local --fault sigkill",
    "--local --fault sigkill --target launcher",
    "--local --planted lose-a-step",
    "--local --planted lose-a-step --fault sigkill",
    "--local --planted lose-a-step --kills 3 --seed 0",
    "--local --kills 1 --fault sigkill --build x",
    "--fault sigkill --target sidecar --pod 0",
    "--fault delete --context x --installed --namespace y --pod 1",
)


def parsed(words):
    return demo_parser("").parse_args(words.split())


def words_that_do_not_go_together_are_refused():
    for words, why in REFUSED.items():
        yield (words, why in (came := refusal(parsed(words))), came), (words, True, came)


def words_that_go_together_are_taken():
    for words in TAKEN:
        yield (words, refusal(parsed(words))), (words, "")


def a_refusal_ends_the_demo():
    said = io.StringIO()
    with contextlib.redirect_stderr(said):
        try:
            read_arguments("", ["--kills", "2"])
            yield "taken", "refused"
        except SystemExit as ended:
            yield ended.code, 2
    yield "--kills goes with --local" in said.getvalue(), True


def what_was_not_said_is_filled_in():
    words = read_arguments("", [])
    yield (words.fault, words.build, words.pod, words.namespace), ("evict", FOLDER, 0, "rekindle-demo")
    yield read_arguments("", ["--local", "--kills", "2"]).fault, "sigkill"
    yield read_arguments("", ["--pod", "1", "--fault", "delete"]).pod, 1


def a_planted_program_is_another_one():
    yield Programs(FOLDER).rekindle, FOLDER / "bin" / "rekindle"
    for planted, program in PLANTED.items():
        yield Programs(FOLDER, planted).rekindle, FOLDER / "bin" / program
        yield program != "rekindle", True


def outcomes():
    return outcomes_of(
        "demo-words",
        (
            words_that_do_not_go_together_are_refused,
            words_that_go_together_are_taken,
            a_refusal_ends_the_demo,
            what_was_not_said_is_filled_in,
            a_planted_program_is_another_one,
        ),
    )
