"""How a case says that something is not as it should be."""


class Unmet(Exception):
    """What was expected, what came, where to look."""


def expect(holds, sentence):
    if not holds:
        raise Unmet(sentence)
