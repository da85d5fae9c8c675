"""Plain scalar functions, one for each element-wise operation and kind of number, compiled for every device.

Operands have the dtype that the operation computes in, and the result is converted to the one that comes out; float16
and bfloat16 are computed in float32. Operations of one get their operand twice. Each function is one fixed expression,
never contracted, so an element's bits do not depend on where it stands in an array or in a loop. `common` holds what is
the same for every kind of number, the other modules what is not.
"""

from __future__ import annotations

import functools

import numpy as np

from . import (
    booleans,
    common,
    complexes,
    integers,
    one,
    one_boolean,
    one_complex,
    one_integer,
    one_real,
    one_unsigned,
    reals,
    unsigned,
)

# Those of one stand first: their names, as floor, are also those of functions that the others import.
KINDS = {
    "b": (one_boolean, booleans, common, one),
    "i": (one_integer, integers, common, one),
    "u": (one_unsigned, one_integer, unsigned, integers, common, one),
    "f": (one_real, reals, common, one),
    "V": (one_real, reals, common, one),  # bfloat16
    "c": (one_complex, complexes, common, one),
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
