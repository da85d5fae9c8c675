"""Small products of plain arrays, and those that compiled code does at once: the fast paths of mm and addmm.

An entry (entry.py, single_thread.py) is asked first. What it declines goes to the path that it names, or to the checks.
"""

from __future__ import annotations

import functools
import sys

import numpy as np
from numpy import empty

from ... import background
from ...dtypes import asked
from ...jit.abi.ndarray import layout_is_known
from ...jit.ir.kind import BYTES, SIGNLESS, wrapped
from ...jit.ir.vector import SIZE
from ..runtime import threads
from ..runtime.status import DECLINED, DONE, LACKING, LARGE, PATHS, SYMMETRIC, UNMADE
from . import first_products
from .entry import small_entry, small_table, supplied
from .gemm import NAMES, REAL, by_path, gemm
from .kernels import supply
from .kinds import SHALLOW, WIDENED, kind_of, takes, tiles_of
from .packed import packed
from .paths import PARALLEL
from .single_thread import planned
from .syrk import mirrored, symmetric
from .tuned import slot_of

OTHERS = {np.dtype(name): name for name in BYTES if name not in (*SIZE, "bfloat16")}
OTHERS |= {np.dtype(name): name for name in SIGNLESS}

ONE = 1
UNIT = 1.0  # the same factor as an entry takes it: to convert a Python int takes 15 ns

# dtype -> the small entry, its table's address and the table, once the layout of ndarray is known to be what it reads;
# or a plan, 0 and None.
_entries = {}


def _entry(dtype):
    """The entry for a supported dtype, compiled or loaded at its first use; else None."""
    if not layout_is_known():
        return None
    if dtype in NAMES:
        table = small_table(NAMES[dtype])
        found = small_entry(), table.buffer_info()[0], table
    else:
        entry = _planned(dtype, 1, 1)
        found = entry and (entry, 0, None)
    return found and background.kept(_entries, dtype, found)


@functools.lru_cache(512, typed=True)
def _planned(dtype, beta, alpha, second=None, out_dtype=None, mode=None, conj=None):
    """The entry for other dtypes, with factors and keywords in its plan; None where they cannot be had."""
    second, wanted = second or dtype, dtype.name if out_dtype is None else asked(out_dtype)
    names = [OTHERS.get(each) or (each.name if each.name == "bfloat16" else None) for each in (dtype, second)]
    allowed = {int, bool} if dtype.kind in "biu" else REAL
    if None in names or alpha == 0 or type(beta) not in allowed or type(alpha) not in allowed:
        return None
    widened = {WIDENED.get(name) for name in names} == {wanted} and (dtype == second or wanted == "int32")
    alike = dtype == second and dtype.name == wanted
    if not (widened or alike) or (conj and (dtype.kind != "c" or conj not in ("a", "b", "ab"))):
        return None
    if mode is not None and not takes(names[0], mode):
        return None
    if max(abs(beta), abs(alpha)) > sys.float_info.max or not layout_is_known():
        return None
    kind, result = kind_of(*names, wanted, conj or "", mode), dtype if alike else np.dtype(wanted)
    return planned(kind, wrapped(beta, kind), wrapped(alpha, kind), result, mixed=not alike)


def forget() -> None:
    """Plan anew what other dtypes go by: modes or tiles have changed."""
    _planned.cache_clear()
    for dtype, (*_, table) in list(_entries.items()):
        if table is None:
            _entries.pop(dtype, None)


def _product(out, a, b) -> None:
    """out = a @ b, at once where that can be."""
    if mm_fast(a, b, out) is not out:
        gemm(out, None, a, b, 0, 1)


def addmm_fast(self, mat1, mat2, beta, alpha, out):
    """addmm of small plain arrays in few calls; None, with nothing written, where more care is needed."""
    if beta is ONE and alpha is ONE:
        return mm_fast(mat1, mat2, out, self, UNIT)
    return mm_fast(mat1, mat2, out, self, beta, alpha) if type(beta) in REAL and type(alpha) in REAL else None


def mm_fast(a, b, out, x=None, beta=0.0, alpha=UNIT, ndarray=np.ndarray):
    """mm, likewise; and what addmm adds."""
    try:
        found = _entries.get(a.dtype)
        if found is None:
            if a.dtype != b.dtype or first_products.first(a, b, x is None and alpha is UNIT):
                return None
            found = _entry(a.dtype)
            if found is None:
                return None
        entry, words, table = found
        if words == 0:
            if a.dtype != b.dtype:  # an entry would be compiled to say so
                return None
            plain = x is None or (beta is UNIT and alpha is UNIT)
            return _by_plan(entry if plain else _planned(a.dtype, beta, alpha), x, a, b, out)
        if out is not None and type(out) is not ndarray:
            return None
        status = entry(words, out, x, a, b, beta, alpha)
        if type(status) is ndarray:
            return status
        if status == DECLINED:
            return None
        if out is None:
            out = empty((len(a), b.shape[1]), a.dtype)
            status = entry(words, out, x, a, b, beta, alpha) if status == UNMADE else status
        while status is not out and supplied(status, NAMES[a.dtype], table):
            status = entry(words, out, x, a, b, beta, alpha)
        if status is out:
            return out
        if status == SYMMETRIC:
            mirrored(_product, out, a, b)
            return out
        done = status in PATHS and by_path(status, out, x, a, b, beta, alpha, trusted=False) == DONE
        return out if done else None
    except (TypeError, IndexError, OverflowError):  # not a float, not a matrix: the checks will say it properly
        return None


def column_fast(a, v, out, x=None, beta=0.0, alpha=UNIT):
    """mv, likewise, of dtypes whose order is that of mm; and what addmv adds."""
    if a.ndim != 2 or v.ndim != 1 or not (out is None or (type(out) is np.ndarray and out.ndim == 1)):
        return None
    made = empty(len(a), a.dtype) if out is None else out
    column = x[:, None] if x is not None and x.ndim == 1 else x
    return None if mm_fast(a, v[:, None], made.reshape(-1, 1), column, beta, alpha) is None else made


def addmm_keywords(self, mat1, mat2, beta, alpha, out_dtype, mode, conj, tiles, out):
    """addmm_fast where a keyword is given that only some matrices have."""
    return _keywords(self, mat1, mat2, beta, alpha, out_dtype, mode, conj, out) if tiles is None else None


def mm_keywords(self, mat2, out_dtype, mode, conj, tiles, out):
    """mm_fast, likewise."""
    return _keywords(None, self, mat2, 1, 1, out_dtype, mode, conj, out) if tiles is None else None


addmm_fast.with_keywords, mm_fast.with_keywords = addmm_keywords, mm_keywords


def _keywords(x, a, b, beta, alpha, out_dtype, mode, conj, out):
    try:
        if mode is None and first_products.first(a, b, x is None and alpha is ONE, out_dtype):
            return None
        return _by_plan(_planned(a.dtype, beta, alpha, b.dtype, out_dtype, mode, conj), x, a, b, out)
    except TypeError:  # no dtype
        return None


def _by_plan(entry, x, a, b, out):
    """A product with its factors and keywords in the plan of an entry, if there is one."""
    if entry is None:
        return None
    try:
        if (shallow := entry.shallow) and len(b) <= SHALLOW:
            entry = shallow()
        plan = entry.plan
        dtype = plan.dtype
        if out is not None and (type(out) is not np.ndarray or out.dtype != dtype):
            return None
        if x is not None and x.dtype != dtype:
            return None
        status = entry(out, x, a, b)
        if type(status) is np.ndarray:
            return status
        if status == DECLINED:
            return None
        if out is None:
            out = empty((len(a), b.shape[1]), dtype)
            status = entry(out, x, a, b) if status == UNMADE else status
        if status is not out and status >= LACKING:
            status = _supplied(entry, plan, out, x, a, b)
        if status is out:
            return out
        if status == LARGE and x is None and symmetric(a, b):
            return None  # the general path sees to it
        workers, xid = threads.count() if out.size * a.shape[1] > PARALLEL else 1, 0 if x is None else id(x)
        if status != LARGE:
            return None
        entry = entry.larger()
        kind = entry.plan.kind
        if workers == 1:
            status = _supplied(entry.serially, entry.plan, out, x, a, b)
            if status is out:
                return out
            if status != LARGE:
                return None
        tiles = tiles_of(kind, slot_of(out, a, b))
        return out if packed(out, xid, a, b, plan.beta, plan.alpha, tiles, kind, workers) == DONE else None
    except (TypeError, IndexError):  # not a matrix: the checks will say it properly
        return None


def _supplied(entry, plan, out, x, a, b):
    """What the entry answers when it lacks nothing any more."""
    status = entry(out, x, a, b)
    while status is not out and status >= LACKING:
        supply(plan.tiles.tile(plan.kind), status - LACKING)
        status = entry(out, x, a, b)
    return status
