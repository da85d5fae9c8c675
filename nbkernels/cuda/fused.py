"""A user's scalar function over broadcast device arrays of any strides, all of its outputs in one pass."""

from __future__ import annotations

import numpy as np

from ..dtypes import HALVES
from ..jit.user.scalar_function import adopt
from .elementwise import apply
from .memory import uploaded


def run(function, outs, inputs, where=None, fresh=False) -> None:
    """outs[k] = function(*inputs)[k], where `where` is not False; outs do not share memory with one another.

    `fresh`, whether nobody has touched theirs, is for the CPU's stores and changes nothing here.
    """
    dtypes = tuple(x.dtype for x in inputs)
    adopted = adopt(function, dtypes)
    if adopted.raises:
        raise TypeError(f"{function.__name__} may raise, as an index beyond an array does, which kernels cannot report")
    inputs = [x.item() if isinstance(x, np.ndarray) and x.ndim == 0 else x for x in inputs]
    inputs = [uploaded(x, outs[0]) if isinstance(x, np.ndarray) else x for x in inputs]
    names, results = [d.name for d in dtypes], [d.name for d in adopted.results]
    dtype = "float32" if all(name in ("float32", *HALVES) for name in names) else "float64"
    apply(adopted.plain, dtype, outs, inputs, names, results, where)
