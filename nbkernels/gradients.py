"""Derivatives: for each op, the gradient of each tensor argument as a formula over library ops (of matrix products:
product_gradients.py).

`grad` is the gradient of the result. A formula names what it needs of grad and of the op's arguments; `op.gradient`
calls those that are wanted. What broadcasting repeated is summed back by sum_to.
"""

import functools
import inspect

from . import ops, slopes
from .dispatch.views import expand, spec
from .fusion import elementwise
from .ops import divide, maximum, minimum, multiply, subtract, sum_to


def fit(grad, x):
    """grad summed to x's shape: undoes x's broadcasting."""
    return sum_to(grad, spec(x).shape)


def scale(grad, factor):
    """The factor's conjugate * grad; grad itself for 1."""
    return grad if factor == 1 else multiply(grad, factor.conjugate())


def of_masked(formulas):
    """Formulas that know of `where`: what it leaves out does not depend on the operands."""

    def known(formula):
        told = inspect.signature(formula)
        where = inspect.Parameter("where", inspect.Parameter.POSITIONAL_OR_KEYWORD)

        @functools.wraps(formula)
        def masked(grad, where, **needed):
            return formula(grad if where is None or where is True else chosen(grad, where), **needed)

        masked.__signature__ = told.replace(parameters=[*told.parameters.values(), where])
        return masked

    return {name: known(formula) for name, formula in formulas.items()}


def chosen(grad, where):
    """grad where the mask is true, else 0, whatever grad is there."""
    return multiply(grad, 1, where=where, out=ops.fmax(ops.fmin(grad, 0), 0))


def wins(x, y):
    """1 where x > y, 1/2 where they are equal, 0 where x < y.

    (1 + d/|d|) / 2, with d the difference clipped to +-1 so that nothing overflows. Two unequal floats have no zero
    difference, so with the smallest subnormal in place of |0| the quotient is exactly +-1, or 0 for equal ones.
    """
    d = minimum(maximum(subtract(x, y), -1), 1)
    smallest = {4: 2.0**-149, 8: 2.0**-1074}[spec(d).dtype.itemsize]
    size = maximum(maximum(d, multiply(d, -1)), smallest)
    return multiply(ops.add(divide(d, size), 1), 0.5)


PARTIAL = {name: elementwise(function) for name, function in vars(slopes).items() if inspect.isfunction(function)}

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
REMAINDER = {
    "self": lambda grad, self: fit(grad, self),
    "other": lambda grad, self, other: fit(PARTIAL["remainder_other"](grad, self, other), other),
}
FMOD = {
    "self": lambda grad, self: fit(grad, self),
    "other": lambda grad, self, other: fit(PARTIAL["fmod_other"](grad, self, other), other),
}
POW = {
    "self": lambda grad, self, other: fit(PARTIAL["pow_self"](grad, self, other), self),
    "other": lambda grad, self, other: fit(PARTIAL["pow_other"](grad, self, other), other),
}
ATAN2 = {
    "self": lambda grad, self, other: fit(PARTIAL["atan2_self"](grad, self, other), self),
    "other": lambda grad, self, other: fit(PARTIAL["atan2_other"](grad, self, other), other),
}
HYPOT = {
    "self": lambda grad, self, other: fit(PARTIAL["hypot_self"](grad, self, other), self),
    "other": lambda grad, self, other: fit(PARTIAL["hypot_other"](grad, self, other), other),
}
COPYSIGN = {
    "self": lambda grad, self, other: fit(PARTIAL["copysign_self"](grad, self, other), self),
    "other": lambda grad, self, other: fit(PARTIAL["copysign_other"](grad, self, other), other),
}
LOGADDEXP = {
    "self": lambda grad, self, other: fit(PARTIAL["logaddexp_self"](grad, self, other), self),
    "other": lambda grad, self, other: fit(PARTIAL["logaddexp_other"](grad, self, other), other),
}
FMAX = {
    "self": lambda grad, self, other: fit(PARTIAL["fmax_self"](grad, self, other), self),
    "other": lambda grad, self, other: fit(PARTIAL["fmax_other"](grad, self, other), other),
}
FMIN = {
    "self": lambda grad, self, other: fit(PARTIAL["fmin_self"](grad, self, other), self),
    "other": lambda grad, self, other: fit(PARTIAL["fmin_other"](grad, self, other), other),
}
LDEXP = {"self": lambda grad, self, other: fit(ops.ldexp(grad, other), self)}
for _formulas in (ADD, SUBTRACT, MULTIPLY, DIVIDE, MAXIMUM, MINIMUM, REMAINDER, FMOD, POW, ATAN2, HYPOT, COPYSIGN,
                  LOGADDEXP, FMAX, FMIN, LDEXP):  # fmt: skip
    _formulas.update(of_masked(_formulas))
SUM_TO = {"self": lambda grad, self: expand(grad, spec(self).shape)}
