"""Derivatives of element-wise operations of two: scalar functions of (grad, x, y), for `elementwise` to compile.

`op_self` is grad times the derivative in x, `op_other` that in y. At a kink they are torch's.
"""

import math


def remainder_other(grad, x, y):
    return -grad * math.floor(x / y)


def fmod_other(grad, x, y):
    return -grad * math.trunc(x / y)


def pow_self(grad, x, y):
    """0 for y = 0, whatever x is."""
    return grad * (y * math.pow(x, y - 1)) if y != 0 else 0 * grad


def pow_other(grad, x, y):
    """0 for x = 0, but for a negative y."""
    return grad * (math.pow(x, y) * math.log(x)) if x != 0 or y < 0 else 0 * grad


def atan2_self(grad, x, y):
    size = math.hypot(x, y)
    return grad * (y / size / size)


def atan2_other(grad, x, y):
    size = math.hypot(x, y)
    return -grad * (x / size / size)


def hypot_self(grad, x, y):
    return grad * (x / math.hypot(x, y))


def hypot_other(grad, x, y):
    return grad * (y / math.hypot(x, y))


def copysign_self(grad, x, y):
    """0 at x = 0."""
    return grad * (math.copysign(1, x) * math.copysign(1, y)) if x != 0 else 0 * grad


def copysign_other(grad, x, y):
    return 0 * grad


def logaddexp_self(grad, x, y):
    return grad / (1 + math.exp(y - x))


def logaddexp_other(grad, x, y):
    return grad / (1 + math.exp(x - y))


def fmax_self(grad, x, y):
    """All of it where both are equal."""
    return grad if x >= y or y != y else 0 * grad


def fmax_other(grad, x, y):
    return 0 * grad if x >= y or y != y else grad


def fmin_self(grad, x, y):
    """All of it where both are equal."""
    return grad if x <= y or y != y else 0 * grad


def fmin_other(grad, x, y):
    return 0 * grad if x <= y or y != y else grad
