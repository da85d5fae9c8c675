"""register(): dask's own products of NumPy chunks run by this library."""

from __future__ import annotations

import functools
import warnings
import weakref
from _thread import RLock

import numpy as np
from dask.array.dispatch import einsum_lookup, tensordot_lookup

from ..dtypes import DTYPES
from ..in_numpy.table import UnknownNumPy
from ..in_numpy.use import use_in_numpy
from ..in_numpy.which import FLOATS, PRODUCTS
from ..numpy_functions import attempt
from ..shield import Block, Step

# Of chunks, which are large, NumPy's products of these are slower on every processor.
SLOW = tuple(dtype for dtype in DTYPES if dtype not in (*FLOATS, "bfloat16"))
_lock = RLock()
_own = {tensordot_lookup: tensordot_lookup.dispatch(np.ndarray), einsum_lookup: einsum_lookup.dispatch(np.ndarray)}
_standing: list[register] = []  # those that hold until their `close`
_open: list[weakref.ref[register]] = []  # those whose block is open


def _all():
    return _standing + [each for found in _open if (each := found()) is not None]


def _look(_=None) -> None:
    """Register ours with dask where somebody asks for it, else its own."""
    with _lock:
        for lookup, own in _own.items():
            if lookup.dispatch(np.ndarray) in (own, _ours(lookup)):  # else somebody else has registered one since
                lookup.register(np.ndarray, _ours(lookup) if _all() else own)


@functools.cache
def _ours(lookup):
    """The function that tries ours, while somebody asks for it: dask keeps it for subclasses that it has met."""
    own = _own[lookup]

    @functools.wraps(own)
    def function(*args, **keywords):
        asked = _all()
        left = () if any(each.floats for each in asked) else FLOATS
        operands = [x for x in args if isinstance(x, np.ndarray)]
        if not asked or any(type(x) is not np.ndarray or x.dtype.name in left for x in operands):
            return own(*args, **keywords)
        result, why = attempt(own, args, keywords)
        return own(*args, **keywords) if why else result

    return function


class register(Block):
    """register() or with register(): dask's products of arrays with NumPy chunks run here, in this process

    These are `x @ y` and `dask.array.matmul`, `dot`, `tensordot`, `vdot` and `einsum` of two. They are looked up when
    chunks are computed, so a block has to hold `compute()`; on a cluster `Plugin` does it in each worker. It holds for
    all threads until the block ends, or, without a block, until `close()`. `@` goes through `use_in_numpy`, which
    replaces NumPy's own loops of `matmul`; for a NumPy whose loops it does not know there is a RuntimeWarning, and
    only the other products run here.

    floats: also products of float32, float64 and complex numbers, which BLAS does as fast. Without it integers, bool
    and float16 run here.

    >>> import dask.array as da, nbkernels.dask                                     # doctest: +SKIP
    >>> x = da.ones((2048, 2048), chunks=1024, dtype="int32")                       # doctest: +SKIP
    >>> with nbkernels.dask.register():                                             # doctest: +SKIP
    ...     (x @ x).sum().compute()
    np.int64(8589934592)
    """

    def __init__(self, *, floats: bool = False):
        self.floats = floats
        self._loops = []
        try:
            for asked in ({"dtypes": SLOW}, {"floats": True})[: 1 + bool(floats)]:
                self._loops.append(use_in_numpy(names=PRODUCTS, **asked))
        except UnknownNumPy as error:
            warnings.warn(f"nbkernels.dask: `@` of dask arrays stays NumPy's: {error}", RuntimeWarning, stacklevel=2)
        try:
            Step(self._ask).make()
        except BaseException:
            self.close()
            raise

    def _ask(self):
        with _lock:
            _standing.append(self)
            _look()

    def close(self) -> None:
        """Give dask and NumPy their own back, where no other `register` holds."""
        with _lock:
            if self in _standing:
                _standing.remove(self)
            _look()
            for loops in self._loops:
                loops._take_back()

    def _begin(self) -> register:
        with _lock:
            if self in _standing:
                _standing.remove(self)
            _open.append(weakref.ref(self, _look))
            for loops in self._loops:
                loops._begin()
            _look()
        return self

    def _end(self) -> None:
        with _lock:
            found = [each for each in _open if each() is self]
            if found:
                _open.remove(found[-1])
            for loops in self._loops:
                loops._end()
            _look()

    _skip = close
