"""How a case says that something is not as it should be."""


class Unmet(Exception):
    """What was expected, what came, where to look."""


def expect(holds, sentence):
    if not holds:
        raise Unmet(sentence)


def expect_unmet(words, what, case):
    """That the case fails as it has to, and says so in these words."""
    try:
        seen = case()
    except Unmet as why:
        expect(words in str(why), f"{what} is to be told as '{words}' and was told as: {why}")
    else:
        raise Unmet(f"{what} was not noticed: '{seen}'")
