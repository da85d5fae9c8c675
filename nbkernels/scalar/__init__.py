"""What each element-wise operation does to one pair of elements: plain scalar functions, compiled for every device.

Both operands have the dtype that the operation computes in, and the result is converted to the one that comes out;
float16 and bfloat16 are computed in float32. Each function is one fixed expression, never contracted, so an element's
bits do not depend on where it stands in an array or in a loop. `common` holds what is the same for every kind of
number, the other modules what is not.
"""

from __future__ import annotations

import functools

import numpy as np

from . import booleans, common, complexes, integers, reals, unsigned

KINDS = {
    "b": (booleans, common),
    "i": (integers, common),
    "u": (unsigned, integers, common),
    "f": (reals, common),
    "V": (reals, common),  # bfloat16
    "c": (complexes, common),
}


@functools.cache
def find(op: str, dtype: np.dtype, second: np.dtype | None = None):
    """The function of an operation on elements of a dtype: the dtype's own, its kind's, or everyone's; else None.

    A `second` operand of another dtype is there where int64 is compared with uint64, which no dtype holds both.

    >>> find("floor_divide", np.dtype("int8")).__module__, find("add", np.dtype("int8")).__module__
    ('nbkernels.scalar.integers', 'nbkernels.scalar.common')
    """
    if second is not None and {dtype.name, second.name} == {"int64", "uint64"}:
        op += "_mixed"
    names = f"{op}_{dtype.name}", op
    return next((getattr(kind, name) for name in names for kind in KINDS[dtype.kind] if hasattr(kind, name)), None)


def exists(op: str) -> bool:
    """Whether an operation has a function, for numbers of any kind."""
    return any(hasattr(module, op) for kind in KINDS.values() for module in kind)
