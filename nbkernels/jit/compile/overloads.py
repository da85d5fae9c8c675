"""Functions that Numba is told of, by known.py: those of elementary/real.py, what is written in them, and math.fmod."""

from __future__ import annotations

import inspect
import math

import numpy as np

from ... import scalar  # noqa: F401, as it enters its functions below, and so do these, of which it imports all but one
from ...elementary import activations, circular, hyperbolic, powers, transcendental  # noqa: F401
from ...elementary.real import HELPERS, KERNELS, bits, floor, fma, number, shift_left, shift_right
from ..abi.address import fma as fused
from .lazy import intrinsic, overload, types

# A loop with a call in it is not vectorised.
OPTIONS = {"forceinline": True, "error_model": "numpy", "_nrt": False}


def enter(function, choose) -> None:
    """Compile a call of a plain function as one of `choose(*types of its arguments)`, a function like it, or None."""

    def typed(*args):
        return choose(*args)

    typed.__signature__ = inspect.signature(function)
    overload(function, **OPTIONS)(typed)


def generic(function, kernels):
    """Numbers of one float dtype go to its kernel, any others through float64."""
    names = ", ".join(inspect.signature(function).parameters)
    scope = {"function": function, "float64": np.float64}
    converted = ", ".join(f"float64({name})" for name in names.split(", "))
    exec(f"def through({names}):\n    return function({converted})", scope)

    def choose(*args):
        if all(isinstance(a, types.Float) and a == args[0] for a in args) and str(args[0]) in kernels:
            return kernels[str(args[0])]
        return scope["through"] if all(isinstance(a, types.Number | types.Boolean) for a in args) else None

    enter(function, choose)


@intrinsic
def cast(typing, x, like):
    """The bits of x as another type of its width."""

    def emit(context, builder, signature, args):
        return builder.bitcast(args[0], context.get_value_type(signature.return_type))

    return like.dtype(x, like), emit


@overload(bits, **OPTIONS)
def _bits(x):
    whole = {types.float32: np.int32, types.float64: np.int64}.get(x)
    return None if whole is None else lambda x: cast(x, whole)


@overload(number, **OPTIONS)
def _number(word):
    real = {types.int32: np.float32, types.int64: np.float64}.get(word)
    return None if real is None else lambda word: cast(word, real)


def _shift(name):
    @intrinsic
    def shift(typing, x, y):
        return x(x, x), lambda context, builder, signature, args: getattr(builder, name)(*args)

    return lambda x, y: (lambda x, y: shift(x, y)) if x == y else None


enter(shift_left, _shift("shl"))
enter(shift_right, _shift("lshr"))
enter(floor, lambda x: lambda x: np.floor(x))
enter(fma, lambda a, b, c: lambda a, b, c: fused(a, b, c))
for _function in HELPERS:
    enter(_function, lambda *args, body=_function: body)
for _function, _kernels in KERNELS.items():
    generic(_function, _kernels)


@intrinsic
def _rest(typing, x, y):
    return x(x, x), lambda context, builder, signature, args: builder.frem(*args)


overload(math.fmod)(lambda x, y: (lambda x, y: _rest(x, y)) if x == y and isinstance(x, types.Float) else None)
