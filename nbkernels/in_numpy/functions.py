"""NumPy's functions of two arrays, patched to run here: dot, inner, tensordot, einsum of two, linalg.multi_dot.

Their names in `numpy` and `numpy.linalg` are replaced, so that who has imported one by its name before keeps NumPy's.
Methods, as `x.dot(y)`, are NumPy's. What numpy_functions.py declines, what is small, and floats that BLAS takes, unless
dtypes= asks for them, NumPy does: scikit-learn's MLP took 1.25 times as long by our products (AVX2, 2026-11).
"""

from __future__ import annotations

import functools
from collections import Counter

import numpy as np

from ..watch import watching
from .which import FLOATS, HALF, Wish

NAMES = {"dot": np, "inner": np, "tensordot": np, "einsum": np, "multi_dot": np.linalg}
# Elements of the arrays below which NumPy does it: the way to a kernel takes 5 to 15 us (AVX2, 2026-11).
SMALL = 4096
TINY = 64  # elements of an array, of which nothing is asked
_left: set[str] = set()  # letters of dtypes that are left to NumPy
_own = {name: getattr(home, name) for name, home in NAMES.items()}
_wishes: list[Wish] = []
counts: Counter = Counter()  # (name, dtype, "" or why it ran in NumPy) -> calls


def patch(wishes: list[Wish]) -> None:
    """Patch the functions as these ask for, or give NumPy its own back."""
    if bool(wishes) != bool(_wishes):
        for name, home in NAMES.items():
            if getattr(home, name) in (_own[name], _ours(name)):  # else somebody else has patched it since
                setattr(home, name, _ours(name) if wishes else _own[name])
    _wishes[:] = wishes
    _left.clear()
    _left.update(np.dtype(name).char for name in FLOATS if not any(_asked(each, name) for each in wishes))


@functools.cache
def _ours(name):
    """The function that tries ours."""
    own, ndarray = _own[name], np.ndarray

    @functools.wraps(own)
    def function(*args, **keywords):
        if not watching():  # what is soon known to be NumPy's: 0.2 us
            for x in args:
                if type(x) is ndarray and (x.dtype.char in _left or x.size < TINY):
                    return own(*args, **keywords)
        dtype, why = _why(args)
        if not why:
            from ..numpy_functions import attempt

            result, why = attempt(own, args, keywords)
        counts[name, dtype, why] += 1
        return own(*args, **keywords) if why else result

    return function


def _why(args) -> tuple[str, str]:
    """(dtype, "") of a call that is worth trying, else (dtype, why not)."""
    found = args[0] if len(args) == 1 and isinstance(args[0], list | tuple) else args
    arrays = [x for x in found if isinstance(x, np.ndarray)]
    if not arrays:
        return "", "no arrays are given"
    dtype = arrays[0].dtype.name
    if any(type(x) is not np.ndarray for x in arrays):
        return dtype, "an operand is of a subclass"
    if len({x.dtype for x in arrays}) > 1:
        return dtype, "the dtypes differ"
    if sum(x.size for x in arrays) < SMALL:
        return dtype, "it is small"
    if not any(_asked(each, dtype) for each in _wishes):
        return dtype, "BLAS is as fast: asked for by dtypes=" if dtype in FLOATS else "not among dtypes="
    return dtype, ""


def _asked(wish: Wish, dtype: str) -> bool:
    if wish.dtypes is not None:
        return dtype in wish.dtypes
    return dtype in HALF or "int" in dtype
