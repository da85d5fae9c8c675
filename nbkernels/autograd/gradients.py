"""Derivatives of every op: the gradient of each tensor argument, as a formula over library ops.
Those of matrix products are in products.py, those of folds in folds.py.

`grad` is the gradient of the result. A formula names what it needs of grad and of the op's arguments; `op.gradient`
calls those that are wanted, and `fit` gives what comes out the argument's shape, dtype and layout.
"""

import functools
import inspect

from numpy import ndarray

from .. import ops
from ..dispatch.traced import Traced
from ..dispatch.views import empty, expand, spec, turned
from ..fusion import NUMBERS, elementwise
from ..operations import BY_NAME, ELEMENTWISE, UNARY
from ..ops import equal, greater, greater_equal, less, less_equal, multiply, not_equal, sum_to
from . import slopes


def keeps(grad, x):
    return grad


def keeps_product(grad, x, y):
    """Of x times the conjugate of y."""
    return grad * y, x * grad.conjugate()


OWN = {"real_part": keeps, "times": keeps_product}  # a conjugate or a part has no derivative to be found
PARTIAL = {
    name: elementwise(function, gradient=OWN.get(name))
    for name, function in vars(slopes).items()
    if inspect.isfunction(function) and function.__module__ == slopes.__name__
}
chosen, share, times = PARTIAL["chosen"], PARTIAL["share"], PARTIAL["times"]


def upright(x):
    """Whether the matrices of x are column-major, or x repeats its columns: strides that are no answer are None."""
    s = spec(x)
    shape, strides = s.shape, s.strides
    if len(shape) < 2 or 1 in shape[-2:] or 0 in shape or 0 in strides[-2:]:
        return None
    return abs(strides[-2]) < abs(strides[-1])


def cast(x, dtype, columns=None):
    """x in another dtype, the real part of a complex one where that is real; its matrices in the order that is said."""
    if spec(x).dtype.kind == "c" != dtype.kind:
        x = PARTIAL["real_part"](x)
    s = spec(x)
    lies = columns is None or upright(x) in (None, columns)
    if s.dtype == dtype and lies:
        return x
    if isinstance(x, Traced):  # an order is no part of what its derivative says
        return ops.copy(x, dtype=dtype)
    if lies:
        columns = upright(x)
    if columns:
        return ops.copy(x, out=turned(empty(x, s.shape[:-2] + s.shape[:-3:-1], dtype)))
    return ops.copy(x, out=empty(x, s.shape, dtype))


def fit(grad, x):
    """A gradient as x's: summed to its shape, which undoes broadcasting, in its dtype, column-major if x is."""
    if type(grad) is type(x) is ndarray:  # the same as below, sooner
        grad = grad if grad.shape == x.shape else sum_to(grad, x.shape)
        if grad.dtype is x.dtype and (grad.strides == x.strides or grad.ndim < 2):
            return grad
    s, wanted = spec(grad), spec(x)
    if s == wanted:
        return grad
    if s.shape != wanted.shape:
        grad = sum_to(grad, wanted.shape)
    return cast(grad, wanted.dtype, upright(x))


def scale(grad, factor):
    """The factor's conjugate * grad; grad itself for 1."""
    return grad if factor == 1 else multiply(grad, factor.conjugate())


def by(grad, y):
    """grad times y, or its conjugate where it is complex."""
    kind = "c" if type(y) is complex else getattr(getattr(spec(y), "dtype", None), "kind", "")
    return times(grad, y) if kind == "c" else multiply(grad, y)


def slope(name, alone=False):
    """The formula that is a function of slopes.py: of complex numbers one of its own."""

    def found(grad):
        own = f"{name}_complex" if spec(grad).dtype.kind == "c" else name
        return PARTIAL.get(own, PARTIAL[name])

    def of_one(grad, self):
        return found(grad)(grad, self)

    def of_two(grad, self, other):
        return found(grad)(grad, self, other)

    formula = of_one if alone else of_two
    formula.__name__ = name
    return formula


def slopes_of(op):
    return {name: slope(f"{op}_{name}", op in UNARY) for name in ("self", "other")[: 1 if op in UNARY else 2]}


def first(compare, x, y):
    """Where fmax or fmin takes x."""
    return ops.logical_or(compare(x, y), y != y if type(y) in NUMBERS else not_equal(y, y))


def of_masked(formulas):
    """Formulas that know of `where`: what it leaves out does not depend on the operands."""

    def known(formula):
        told = inspect.signature(formula)
        where = inspect.Parameter("where", inspect.Parameter.POSITIONAL_OR_KEYWORD)

        @functools.wraps(formula)
        def masked(grad, where, **needed):
            found = formula(grad, **needed)
            return found if found is None or where is None or where is True else chosen(found, where)

        masked.__signature__ = told.replace(parameters=[*told.parameters.values(), where])
        return masked

    return {name: known(formula) for name, formula in formulas.items()}


def over(grad, y):
    """grad divided by y, or by its conjugate where it is complex."""
    return ops.divide(grad, ops.conj(y) if spec(y).dtype.kind == "c" else y)


def of_sign(grad, self):
    """0 of real numbers; of complex ones what turns them: grad without its part along them, over the size."""
    if spec(self).dtype.kind != "c":
        return ops.multiply(grad, 0)
    way = ops.sign(self)
    along = ops.real(ops.multiply(ops.conj(way), grad))
    turn = ops.divide(ops.subtract(grad, ops.multiply(way, along)), ops.abs(self))
    return chosen(turn, not_equal(self, 0))


def of_asin(grad, self):
    return over(grad, ops.sqrt(multiply(ops.subtract(1, self), ops.add(self, 1))))


def of_imag(grad, self):
    return multiply(grad, 1j if spec(self).dtype.kind == "c" else 0)


# Formulas by the names of operations; those that have none are slopes_of.
ADD = {"self": lambda grad: grad, "other": lambda grad, alpha: scale(grad, alpha)}
SUBTRACT = {"self": lambda grad: grad, "other": lambda grad, alpha: scale(grad, -alpha)}
MULTIPLY = {"self": lambda grad, other: by(grad, other), "other": lambda grad, self: by(grad, self)}
MAXIMUM = {
    "self": lambda grad, self, other: share(grad, less(self, other), equal(self, other)),
    "other": lambda grad, self, other: share(grad, less(other, self), equal(self, other)),
}
MINIMUM = {
    "self": lambda grad, self, other: share(grad, greater(self, other), equal(self, other)),
    "other": lambda grad, self, other: share(grad, greater(other, self), equal(self, other)),
}
# All of it to self where both are equal; what is not NaN wins. Of the same array twice, which is a copy, it is grad.
FMAX = {
    "self": lambda grad, self, other: grad if self is other else chosen(grad, first(greater_equal, self, other)),
    "other": lambda grad, self, other: None if self is other else share(grad, first(greater_equal, self, other), False),
}
FMIN = {
    "self": lambda grad, self, other: chosen(grad, first(less_equal, self, other)),
    "other": lambda grad, self, other: share(grad, first(less_equal, self, other), False),
}
REMAINDER = {"self": lambda grad: grad, "other": slope("remainder_other")}
FMOD = {"self": lambda grad: grad, "other": slope("fmod_other")}
POW = FLOAT_POWER = slopes_of("pow")
LDEXP = {"self": lambda grad, other: ops.ldexp(grad, other)}
# Of one. They do not read the result: `where` may leave it unwritten.
LN2, LN10 = 0.6931471805599453, 2.302585092994046
ABS = {"self": lambda grad, self: multiply(grad, ops.sign(self))}
NEGATIVE = {"self": lambda grad: ops.negative(grad)}
POSITIVE = {"self": lambda grad: grad}
SIGN, IMAG = {"self": of_sign}, {"self": of_imag}
CONJ = {"self": lambda grad: ops.conj(grad)}
REAL = {"self": lambda grad: grad}
SQUARE = {"self": lambda grad, self: by(grad, multiply(self, 2))}
RECIPROCAL = {"self": lambda grad, self: over(ops.negative(grad), ops.square(self))}
SQRT = {"self": lambda grad, self: over(grad, multiply(ops.sqrt(self), 2))}
CBRT = {"self": lambda grad, self: over(grad, multiply(ops.square(ops.cbrt(self)), 3))}
EXP = {"self": lambda grad, self: by(grad, ops.exp(self))}
EXP2 = {"self": lambda grad, self: by(grad, multiply(ops.exp2(self), LN2))}
EXPM1 = {"self": lambda grad, self: by(grad, ops.exp(self))}
LOG = {"self": lambda grad, self: over(grad, self)}
LOG2 = {"self": lambda grad, self: over(grad, multiply(self, LN2))}
LOG10 = {"self": lambda grad, self: over(grad, multiply(self, LN10))}
LOG1P = {"self": lambda grad, self: over(grad, ops.add(self, 1))}
SIN = {"self": lambda grad, self: by(grad, ops.cos(self))}
COS = {"self": lambda grad, self: by(grad, ops.negative(ops.sin(self)))}
TAN = {"self": lambda grad, self: by(grad, ops.add(ops.square(ops.tan(self)), 1))}
ASIN = {"self": lambda grad, self: of_asin(grad, self)}
ACOS = {"self": lambda grad, self: ops.negative(of_asin(grad, self))}
ATAN = {"self": lambda grad, self: over(grad, ops.add(ops.square(self), 1))}
SINH = {"self": lambda grad, self: by(grad, ops.cosh(self))}
COSH = {"self": lambda grad, self: by(grad, ops.sinh(self))}
TANH = {"self": lambda grad, self: by(grad, ops.subtract(1, ops.square(ops.tanh(self))))}
ASINH = {"self": lambda grad, self: over(grad, ops.sqrt(ops.add(ops.square(self), 1)))}
ACOSH = {"self": lambda grad, self: over(grad, multiply(ops.sqrt(ops.subtract(self, 1)), ops.sqrt(ops.add(self, 1))))}
ATANH = {"self": lambda grad, self: over(grad, multiply(ops.subtract(1, self), ops.add(self, 1)))}
for _op, _row in ELEMENTWISE.items():
    if _row.slope == BY_NAME:
        globals()[_op.upper()] = of_masked(globals().get(_op.upper()) or slopes_of(_op))
SUM_TO = {"self": lambda grad, self: expand(grad, spec(self).shape)}
