"""Operations of one on unsigned integers."""


def abs(x, _):
    return x


def sign(x, _):
    return 1 if x > 0 else 0


def reciprocal(x, _):
    """1 / x, cut to a whole number; 0 of 0, with a warning."""
    return 1 if x == 1 else 0
