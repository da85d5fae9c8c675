"""Functions of Python's math that Numba has for CUDA only."""

from __future__ import annotations

import math

from .lazy import intrinsic, overload, types


@intrinsic
def _rest(typing, x, y):
    def emit(context, builder, signature, args):
        return builder.frem(*args)

    return x(x, x), emit


@overload(math.fmod)
def _fmod(x, y):
    if isinstance(x, types.Float) and x == y:
        return lambda x, y: _rest(x, y)
    return None
