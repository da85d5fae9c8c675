"""Operations that are one expression for numbers of every kind."""


def add(x, y):
    return x + y


def add_scaled(x, y, alpha):
    """x + alpha*y, rounded after each step."""
    return x + alpha * y


def subtract(x, y):
    return x - y


def subtract_scaled(x, y, alpha):
    """x - alpha*y, rounded after each step."""
    return x - alpha * y


def multiply(x, y):
    return x * y


def divide(x, y):
    return x / y


def equal(x, y):
    return x == y


def not_equal(x, y):
    return x != y


def less(x, y):
    return x < y


def less_equal(x, y):
    return x <= y


def greater(x, y):
    return x > y


def greater_equal(x, y):
    return x >= y


def logical_and(x, y):
    return (x != 0) and (y != 0)


def logical_or(x, y):
    return (x != 0) or (y != 0)


def logical_xor(x, y):
    return (x != 0) != (y != 0)


def first(x, y):
    """x: what a copy computes."""
    return x
