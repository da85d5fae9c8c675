"""Numbers that carry a derivative, as a Numba type: forward differentiation of any scalar function that compiles.

A dual number is (value, tangent), and f(v, t) = (f(v), t f'(v)): W. K. Clifford, 1873; for programs R. E. Wengert,
CACM 7 (1964). A comparison looks at values; at a kink the branch that is taken counts. A function without a rule here
is an error of the compiler, never a derivative of zero.
"""

from __future__ import annotations

import math
import operator

import numpy as np
from numba import types
from numba.extending import (
    intrinsic,
    lower_cast,
    make_attribute_wrapper,
    models,
    overload,
    register_jitable,
    register_model,
)

from ...elementary import powers, transcendental
from ...elementary.real import dual, tangent
from ..compile.numba_internals import cgutils

OPTIONS = {"forceinline": True, "error_model": "numpy"}


class Dual(types.Type):
    """A real or complex number and its derivative, both of type `real`."""

    def __init__(self, real):
        self.real = real
        super().__init__(name=f"Dual({real})")

    def unify(self, typing, other):
        """What both are where branches meet: numbers are constants."""
        other = other.real if isinstance(other, Dual) else types.unliteral(other)
        if isinstance(other, types.Number | types.Boolean):
            real = typing.unify_types(self.real, other)
            return None if real is None else Dual(real)
        return None


@register_model(Dual)
class _Model(models.StructModel):
    def __init__(self, manager, kind):
        super().__init__(manager, kind, [("value", kind.real), ("slope", kind.real)])


make_attribute_wrapper(Dual, "value", "value")
make_attribute_wrapper(Dual, "slope", "slope")


def _made(context, builder, kind, value, slope):
    struct = cgutils.create_struct_proxy(kind)(context, builder)
    struct.value, struct.slope = value, slope
    return struct._getvalue()


@intrinsic
def make(typing, value, slope):
    """The dual number of two real ones."""
    value, slope = types.unliteral(value), types.unliteral(slope)
    real = typing.unify_types(value, slope)
    if not isinstance(real, types.Float | types.Complex):
        return None

    def emit(context, builder, signature, args):
        parts = (context.cast(builder, x, kind, real) for x, kind in zip(args, signature.args))
        return _made(context, builder, signature.return_type, *parts)

    return Dual(real)(value, slope), emit


@lower_cast(types.Number, Dual)
@lower_cast(types.Boolean, Dual)
def _constant(context, builder, source, target, x):
    slope = context.get_constant_null(target.real)
    return _made(context, builder, target, context.cast(builder, x, source, target.real), slope)


@lower_cast(Dual, Dual)
def _wider(context, builder, source, target, x):
    struct = cgutils.create_struct_proxy(source)(context, builder, x)
    parts = (context.cast(builder, part, source.real, target.real) for part in (struct.value, struct.slope))
    return _made(context, builder, target, *parts)


@overload(dual, jit_options=OPTIONS)
def _dual(x):
    if isinstance(x, types.Float | types.Complex):
        one = np.float32(1) if x in (types.float32, types.complex64) else 1.0
        return lambda x: make(x, one)
    return None


@overload(tangent, jit_options=OPTIONS)
def _tangent(y):
    if isinstance(y, Dual):
        return lambda y: y.slope
    return (lambda y: 0.0) if isinstance(y, types.Number | types.Boolean) else None


# -- the rules --------------------------------------------------------------------------------------------------------


@register_jitable
def _sign(x):
    return 1.0 if x > 0 else -1.0 if x < 0 else 0.0


# function(s): the derivative in each argument, of the arguments' values and the result's
ARITHMETIC = {  # of complex numbers too
    (operator.add, operator.iadd): (lambda x, y, v: 1.0, lambda x, y, v: 1.0),
    (operator.sub, operator.isub): (lambda x, y, v: 1.0, lambda x, y, v: -1.0),
    (operator.mul, operator.imul): (lambda x, y, v: y, lambda x, y, v: x),
    (operator.truediv, operator.itruediv): (lambda x, y, v: 1 / y, lambda x, y, v: -v / y),
    (operator.neg,): (lambda x, v: -1.0,),
    (operator.pos,): (lambda x, v: 1.0,),
}
REAL = {
    (operator.mod, operator.imod, math.fmod, np.remainder, np.fmod): (
        lambda x, y, v: 1.0,
        lambda x, y, v: -((x - v) / y),
    ),
    (operator.pow, operator.ipow, math.pow, powers.pow, pow, np.power): (
        lambda x, y, v: y * math.pow(x, y - 1) if y != 0 else 0.0,
        lambda x, y, v: v * math.log(x) if x != 0 or y < 0 else 0.0,
    ),
    (math.hypot, np.hypot, transcendental.hypot): (lambda x, y, v: x / v, lambda x, y, v: y / v),
    (math.atan2, np.arctan2, transcendental.atan2): (
        lambda x, y, v: y / (x * x + y * y),
        lambda x, y, v: -x / (x * x + y * y),
    ),
    (math.copysign, np.copysign): (lambda x, y, v: _sign(x) * _sign(v), lambda x, y, v: 0.0),
    (max, np.maximum, np.fmax): (lambda x, y, v: 1.0 if v == x else 0.0, lambda x, y, v: 0.0 if v == x else 1.0),
    (min, np.minimum, np.fmin): (lambda x, y, v: 1.0 if v == x else 0.0, lambda x, y, v: 0.0 if v == x else 1.0),
    (np.logaddexp, transcendental.logaddexp): (lambda x, y, v: math.exp(x - v), lambda x, y, v: math.exp(y - v)),
    (abs, math.fabs, np.abs): (lambda x, v: _sign(x),),
    (math.sqrt, np.sqrt): (lambda x, v: 0.5 / v,),
    (np.square,): (lambda x, v: 2 * x,),
    (math.exp, np.exp, transcendental.exp): (lambda x, v: v,),
    (math.expm1, np.expm1, transcendental.expm1): (lambda x, v: v + 1,),
    (math.log, np.log, transcendental.log): (lambda x, v: 1 / x,),
    (math.log1p, np.log1p, transcendental.log1p): (lambda x, v: 1 / (1 + x),),
    (math.log2, np.log2): (lambda x, v: 1.4426950408889634 / x,),
    (math.log10, np.log10): (lambda x, v: 0.4342944819032518 / x,),
    (math.sin, np.sin): (lambda x, v: math.cos(x),),
    (math.cos, np.cos): (lambda x, v: -math.sin(x),),
    (math.tan, np.tan): (lambda x, v: 1 + v * v,),
    (math.asin, np.arcsin): (lambda x, v: 1 / math.sqrt(1 - x * x),),
    (math.acos, np.arccos): (lambda x, v: -1 / math.sqrt(1 - x * x),),
    (math.atan, np.arctan): (lambda x, v: 1 / (1 + x * x),),
    (math.sinh, np.sinh): (lambda x, v: math.cosh(x),),
    (math.cosh, np.cosh): (lambda x, v: math.sinh(x),),
    (math.tanh, np.tanh, transcendental.tanh): (lambda x, v: 1 - v * v,),
    (math.asinh, np.arcsinh): (lambda x, v: 1 / math.sqrt(1 + x * x),),
    (math.acosh, np.arccosh): (lambda x, v: 1 / math.sqrt(x * x - 1),),
    (math.atanh, np.arctanh): (lambda x, v: 1 / (1 - x * x),),
    (math.erf, transcendental.erf): (lambda x, v: 1.1283791670955126 * math.exp(-x * x),),
    (math.erfc,): (lambda x, v: -1.1283791670955126 * math.exp(-x * x),),
    (float,): (lambda x, v: 1.0,),
}
# What looks at values alone, or jumps between constants: no derivative comes of it.
FLAT = (
    operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne, operator.floordiv, operator.not_,
    operator.truth, bool, int, math.floor, math.ceil, math.trunc, np.floor, np.ceil, np.trunc, np.rint, np.sign,
    math.isnan, math.isinf, math.isfinite, np.isnan, np.isinf, np.isfinite, np.signbit,
)  # fmt: skip


def _enter(function, names, partials=(), numbers=types.Float | types.Complex):
    """Compile a call of the function with a dual number among its arguments, real or also complex as `numbers` says, by
    its derivative in each one; without `partials`, by the values alone."""
    partials = [register_jitable(partial) for partial in partials]

    def choose(args):
        duals = [isinstance(a, Dual) for a in args]
        if not any(duals) or not all(isinstance(a.real, numbers) for a, d in zip(args, duals) if d):
            return None
        if not all(d or isinstance(a, types.Number | types.Boolean) for a, d in zip(args, duals)):
            return None
        if numbers is types.Float and any(isinstance(a, types.Complex) for a in args):
            return None
        values = ", ".join(f"{n}.value" if d else n for n, d in zip(names, duals))
        slopes = " + ".join(f"{n}.slope * d{n}({values}, v)" for n, d in zip(names, duals) if d)
        scope = {"f": function, "make": make} | {f"d{n}": p for n, p in zip(names, partials)}
        result = f"make(v, {slopes})" if partials else "v"
        exec(f"def rule({', '.join(names)}):\n    v = f({values})\n    return {result}", scope)
        return scope["rule"]

    exec(f"def typed({', '.join(names)}):\n    return choose(({', '.join(names)},))", scope := {"choose": choose})
    overload(function, jit_options=OPTIONS)(scope["typed"])


for _rules, _numbers in ((ARITHMETIC, types.Float | types.Complex), (REAL, types.Float)):
    for _functions, _partials in _rules.items():
        for _function in _functions:
            _enter(_function, "xy"[: len(_partials)], _partials, _numbers)
for _function in FLAT:
    _enter(_function, "xy" if _function in FLAT[:7] else "x")


@overload(operator.pow, jit_options=OPTIONS)
def _whole_power(x, y):
    """Of complex numbers, by a constant."""
    if isinstance(x, Dual) and isinstance(x.real, types.Complex) and isinstance(y, types.Number):
        return lambda x, y: make(x.value**y, x.slope * (y * x.value ** (y - 1)))
    return None
