"""Derivatives: for each op, the gradient of each tensor argument as a formula over library ops.

`grad` is the gradient of the result. A formula names what it needs of grad and of the op's arguments; `op.gradient`
calls those that are wanted. Real dtypes; what broadcasting repeated is summed back by sum_to.
"""

from . import ops
from .dispatch.views import spec, transpose
from .ops import divide, maximum, minimum, mm, multiply, subtract, sum_to


def fit(grad, x):
    """grad summed to x's shape: undoes x's broadcasting."""
    return sum_to(grad, spec(x).shape)


def scale(grad, factor):
    """factor * grad; grad itself for 1."""
    return grad if factor == 1 else multiply(grad, factor)


def matmul(a, b, like):
    """a @ b in the memory order of `like`: column-major comes from (bᵀ aᵀ)ᵀ, with the same bits."""
    rows, columns = map(abs, spec(like).strides)
    return transpose(mm(transpose(b), transpose(a))) if rows < columns else mm(a, b)


def wins(x, y):
    """1 where x > y, 1/2 where they are equal, 0 where x < y.

    (1 + d/|d|) / 2, with d the difference clipped to +-1 so that nothing overflows. Two unequal floats have no zero
    difference, so with the smallest subnormal in place of |0| the quotient is exactly +-1, or 0 for equal ones.
    """
    d = minimum(maximum(subtract(x, y), -1), 1)
    smallest = {4: 2.0**-149, 8: 2.0**-1074}[spec(d).dtype.itemsize]
    size = maximum(maximum(d, multiply(d, -1)), smallest)
    return multiply(ops.add(divide(d, size), 1), 0.5)


ADDMM = {
    "self": lambda grad, self, beta: fit(scale(grad, beta), self),
    "mat1": lambda grad, mat1, mat2, alpha: scale(matmul(grad, transpose(mat2), mat1), alpha),
    "mat2": lambda grad, mat1, mat2, alpha: scale(matmul(transpose(mat1), grad, mat2), alpha),
}
MM = {
    "self": lambda grad, self, mat2: matmul(grad, transpose(mat2), self),
    "mat2": lambda grad, self, mat2: matmul(transpose(self), grad, mat2),
}
ADD = {
    "self": lambda grad, self: fit(grad, self),
    "other": lambda grad, other, alpha: fit(scale(grad, alpha), other),
}
SUBTRACT = {
    "self": lambda grad, self: fit(grad, self),
    "other": lambda grad, other, alpha: fit(multiply(grad, -alpha), other),
}
MULTIPLY = {
    "self": lambda grad, self, other: fit(multiply(grad, other), self),
    "other": lambda grad, self, other: fit(multiply(grad, self), other),
}
DIVIDE = {
    "self": lambda grad, self, other: fit(divide(grad, other), self),
    "other": lambda grad, self, other: fit(multiply(divide(multiply(grad, self), multiply(other, other)), -1), other),
}
MAXIMUM = {
    "self": lambda grad, self, other: fit(multiply(grad, wins(self, other)), self),
    "other": lambda grad, self, other: fit(multiply(grad, wins(other, self)), other),
}
MINIMUM = {
    "self": lambda grad, self, other: fit(multiply(grad, wins(other, self)), self),
    "other": lambda grad, self, other: fit(multiply(grad, wins(self, other)), other),
}
SUM_TO = {"self": lambda grad, self: ops.add(ops.subtract(self, self), grad)}
