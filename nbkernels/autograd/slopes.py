"""Derivatives of element-wise operations of two: scalar functions of (grad, x, y), for `elementwise` to compile.

`op_self` is grad times the derivative in x, `op_other` that in y; of complex numbers it is the derivative's conjugate.
At a kink they are torch's.
"""

import math

from ..scalar.complexes import divide as quotient
from ..scalar.complexes import multiply as product
from ..scalar.complexes import pow as power


def real_part(x):
    return x.real


def times(grad, y):
    """grad times the conjugate of a complex number."""
    return grad * y.conjugate()


def divide_self(grad, x, y):
    return grad / y


def divide_other(grad, x, y):
    return -grad * (x / y / y)


def divide_self_complex(grad, x, y):
    return quotient(complex(grad.real, grad.imag), complex(y.real, -y.imag))


def divide_other_complex(grad, x, y):
    y = complex(y.real, -y.imag)
    ratio = quotient(quotient(complex(x.real, -x.imag), y), y)
    return product(complex(-grad.real, -grad.imag), ratio)


def chosen(grad, mask):
    """grad where the mask is true, else 0, whatever grad is there."""
    return grad if mask else 0.0


def share(grad, loses, ties):
    """What of a result's gradient goes to one of two operands: all, half of it where they are equal, or nothing."""
    return 0.0 if loses else grad * 0.5 if ties else grad


def remainder_other(grad, x, y):
    return -grad * math.floor(x / y)


def fmod_other(grad, x, y):
    return -grad * math.trunc(x / y)


def pow_self(grad, x, y):
    """0 for y = 0, whatever x is."""
    return grad * (y * math.pow(x, y - 1)) if y != 0 else 0.0


def pow_other(grad, x, y):
    """0 for x = 0, but for a negative y."""
    return grad * (math.pow(x, y) * math.log(x)) if x != 0 or y < 0 else 0.0


def pow_self_complex(grad, x, y):
    """0 for y = 0, whatever x is."""
    if y.real == 0 and y.imag == 0:
        return complex(0.0, 0.0)
    slope = product(complex(y.real, y.imag), power(complex(x.real, x.imag), complex(y.real - 1.0, y.imag)))
    return product(complex(grad.real, grad.imag), complex(slope.real, -slope.imag))


def pow_other_complex(grad, x, y):
    """0 for x = 0, but for a y of a negative real part."""
    if x.real == 0 and x.imag == 0 and y.real >= 0:
        return complex(0.0, 0.0)
    log = complex(math.log(math.hypot(x.real, x.imag)), math.atan2(x.imag, x.real))
    slope = product(power(complex(x.real, x.imag), complex(y.real, y.imag)), log)
    return product(complex(grad.real, grad.imag), complex(slope.real, -slope.imag))


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
    return grad * (math.copysign(1, x) * math.copysign(1, y)) if x != 0 else 0.0


def copysign_other(grad, x, y):
    return 0.0


def logaddexp_self(grad, x, y):
    return grad / (1 + math.exp(y - x))


def logaddexp_other(grad, x, y):
    return grad / (1 + math.exp(x - y))


def logaddexp2_self(grad, x, y):
    return grad / (1 + math.exp((y - x) * 0.6931471805599453))


def logaddexp2_other(grad, x, y):
    return grad / (1 + math.exp((x - y) * 0.6931471805599453))


def logaddexp2_fold(grad, x, total):
    return grad * math.exp((x - total) * 0.6931471805599453)


def logaddexp_fold(grad, x, total):
    """Of the fold of many."""
    return grad * math.exp(x - total)


def hypot_fold(grad, x, total):
    return grad * (x / total)
