"""Operators, views and sums for arrays without a library of their own: watched arrays, and arrays without data.
A library of ops says by `provide` what they run.
"""

from math import prod

FUNCTIONS = {}  # name -> public function

SYMBOLS = {  # operator -> function
    "add": "add", "sub": "subtract", "mul": "multiply", "truediv": "divide", "floordiv": "floor_divide",
    "mod": "remainder", "pow": "pow", "matmul": "matmul", "and": "bitwise_and", "or": "bitwise_or",
    "xor": "bitwise_xor", "lshift": "bitwise_left_shift", "rshift": "bitwise_right_shift",
}  # fmt: skip
COMPARISONS = {"lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal"}


def provide(functions):
    """What operators run: functions by the names of SYMBOLS and COMPARISONS, `copy` and `sum`."""
    FUNCTIONS.update(functions)


class Operators:
    """`x + y`, `x @ y`, `x > y`, x.T, x.reshape(...), x.sum(...): NumPy's, run by the ops of a library."""

    __slots__ = ()
    __array_ufunc__ = None  # NumPy's arrays and scalars leave `array + x` to x

    def __neg__(self):
        return FUNCTIONS["multiply"](self, -1)

    def __pos__(self):
        return self

    @property
    def size(self):
        return prod(self.shape)

    @property
    def T(self):
        return _views().transpose(self)

    @property
    def mT(self):
        """The matrices of a stack, each transposed."""
        return _views().permute(self, (*range(self.ndim - 2), self.ndim - 1, self.ndim - 2))

    def transpose(self, *axes):
        """Dimensions in another order: reversed, or as `axes` says."""
        axes = axes[0] if len(axes) == 1 and (axes[0] is None or isinstance(axes[0], tuple | list)) else axes
        return _views().permute(self, tuple(axes)) if axes else self.T

    def reshape(self, *shape):
        """self's elements in this shape, in C order; one size may be -1. A copy where self is not in C order."""
        shape = shape[0] if len(shape) == 1 and isinstance(shape[0], tuple | list) else shape
        return _views().reshape(self, tuple(shape), FUNCTIONS["copy"])

    def ravel(self):
        return self.reshape(-1)

    flatten = ravel

    def sum(self, axis=None, dtype=None, out=None, keepdims=False):
        return FUNCTIONS["sum"](self, axis=axis, dtype=dtype, out=out, keepdims=keepdims)

    def mean(self, axis=None, keepdims=False):
        total = self.sum(axis=axis, keepdims=keepdims)
        return FUNCTIONS["divide"](total, self.size // max(prod(total.shape), 1))


def _views():
    """views.py, which looks for arrays' adapters, which know the arrays here."""
    from . import views

    return views


def _enter():
    """The operators themselves."""

    def straight(name):
        return lambda self, other: FUNCTIONS[name](self, other)

    def reflected(name):
        return lambda self, other: FUNCTIONS[name](other, self)

    for symbol, name in {**SYMBOLS, **COMPARISONS}.items():
        setattr(Operators, f"__{symbol}__", straight(name))
    for symbol, name in SYMBOLS.items():
        setattr(Operators, f"__r{symbol}__", reflected(name))


_enter()
