"""Operations of one, for numbers of every kind. They get their operand twice: loops and entries serve two."""


def positive(x, _):
    return x


conj = real = positive


def imag(x, _):
    """0."""
    return 0


def negative(x, _):
    return -x


def square(x, _):
    return x * x


def logical_not(x, _):
    """Whether it is 0; NaN is not."""
    return x == 0


def isnan(x, _):
    return x != x


def isinf(x, _):
    """Integers are not."""
    return False


def isfinite(x, _):
    """Integers are."""
    return True
