"""One plain scalar function per element-wise operation, compiled for every device and called for every element.

Both operands have the operation's computing dtype, and the result is converted back to it. Each function is one fixed
expression, never contracted, so an element's bits do not depend on where it stands in an array or in a loop.
"""

from __future__ import annotations


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


def maximum(x, y):
    """The larger; NaN if either is (the first one's); +0.0 above -0.0 on either side."""
    if x == 0 and y == 0:
        return x + y
    return x if x > y or x != x else y


def minimum(x, y):
    """The smaller; NaN if either is (the first one's); -0.0 below +0.0 on either side."""
    if x == 0 and y == 0:
        return -(-x - y)
    return x if x < y or x != x else y


def logical_or(x, y):
    return x or y


def logical_or_scaled(x, y, alpha):
    return x or (alpha and y)


def logical_and(x, y):
    return x and y


# What an operation means on bool, where it differs: NumPy's + is "or", * is "and". Subtract of two bools is refused.
BOOL = {
    "add": logical_or,
    "add_scaled": logical_or_scaled,
    "multiply": logical_and,
    "maximum": logical_or,
    "minimum": logical_and,
}
