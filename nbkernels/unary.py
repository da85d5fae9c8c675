"""Element-wise operations of one: shape, dtype and memory order of the result. What they compute,
operations.py says.

Their rules are those of operations of two (binary.py) whose operands are one array.
"""

from __future__ import annotations

from .binary import binary
from .operations import UNARY

DOCSTRING = """\
out = {formula}

{note}
In NumPy 2's dtypes, of any integers, floats (bfloat16 too), complex numbers and bools where the operation is defined.

out      of any dtype that the result may be cast to
where    bools; where False, out keeps what it had (and a new result has anything)
casting  "no", "equiv", "safe", "same_kind" (the default) or "unsafe": what `dtype` and `out` may ask for
order    "K" (the default: as self lies), "C", "F" or "A", of a new result
dtype    what to compute in, NumPy's way

Raises TypeError where the dtype has no such operation. Source: NumPy's {op}, whose RuntimeWarnings for floats are
not given.

>>> import numpy as np, nbkernels
>>> nbkernels.{op}(np.array({example}))
{result}
"""


def rule(op):
    """The meta function of an operation: (self, where, casting, order, dtype) -> Result."""

    if op == "round":

        def meta(self, decimals=0, where=None, casting=None, order=None, dtype=None):
            result = binary(op, self, self, where, casting, order, dtype)
            if decimals and self.dtype.kind == "b":
                raise TypeError(f"round: self is bool, and decimals={decimals} asks for numbers")
            return result
    else:

        def meta(self, where=None, casting=None, order=None, dtype=None):
            return binary(op, self, self, where, casting, order, dtype)

    row = UNARY[op]
    meta.__name__ = meta.__qualname__ = op
    doc = DOCSTRING.format(op=op, **row._asdict())
    meta.__doc__ = doc if row.note else doc.replace("\n\n\nIn", "\n\nIn")
    return meta
