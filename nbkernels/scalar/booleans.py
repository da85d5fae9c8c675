"""Operations that mean something else on bool: + is "or", * is "and", and the larger of two is "or" again."""


def add(x, y):
    return x or y


def add_scaled(x, y, alpha):
    return x or (alpha and y)


def multiply(x, y):
    return x and y


maximum = fmax = add
minimum = fmin = multiply


def bitwise_and(x, y):
    return x and y


def bitwise_or(x, y):
    return x or y


def bitwise_xor(x, y):
    return x != y


def less(x, y):
    return y and not x


def less_equal(x, y):
    return y or not x


def greater(x, y):
    return x and not y


def greater_equal(x, y):
    return x or not y
