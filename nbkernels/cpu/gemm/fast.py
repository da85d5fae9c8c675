"""Small products of plain arrays, and those that compiled code does at once: the fast paths of mm and addmm.

An entry (entry.py, general_entry.py) is asked first. What it declines goes to the path that it names, or to the checks.
"""

from __future__ import annotations

import functools
import sys

import numpy as np
from numpy import empty, ndarray

from ... import background
from ...dtypes import asked
from ...jit.abi.ndarray import layout_is_known
from ...jit.ir.kind import BYTES, SIGNLESS, wrapped
from ...jit.ir.vector import SIZE
from ..runtime.status import DECLINED, SYMMETRIC
from . import first_products
from .entry import small_entry, small_table
from .gemm import NAMES, ONE, REAL, UNIT, by_entry, gemm
from .general_entry import MATRICES, general, known
from .kinds import WIDENED, kind_of, takes
from .syrk import mirrored

OTHERS = {np.dtype(name): name for name in BYTES if name not in (*SIZE, "bfloat16")}
OTHERS |= {np.dtype(name): name for name in SIGNLESS}

# dtype -> the small entry, its table's address and the table, once the layout of ndarray is known to be what it reads;
# of other dtypes the general entry for matrices, what it reads, and None.
_entries = {}
_others = {}  # dtype -> general_entry.General of all other products, with factors of 1
_worded = {}  # dtypes of a and b, out_dtype, mode and conj -> the same


def _entry(dtype):
    """The entry for float32 or float64, compiled or loaded at its first use; else None."""
    if not layout_is_known():
        return None
    table = small_table(NAMES[dtype])
    return background.kept(_entries, dtype, (small_entry(), table.buffer_info()[0], table))


@functools.lru_cache(512, typed=True)
def _general(dtype, beta, alpha, second=None, out_dtype=None, mode=None, conj=None):
    """The entry for a kind of product with factors and keywords; None where they cannot be had."""
    second, wanted = second or dtype, dtype.name if out_dtype is None else asked(out_dtype)
    names = [NAMES.get(each) or OTHERS.get(each) or (each.name if each.name == "bfloat16" else None)
             for each in (dtype, second)]  # fmt: skip
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
    kind, result = kind_of(*names, wanted, conj, mode), dtype if alike else np.dtype(wanted)
    return general(kind, wrapped(beta, kind), wrapped(alpha, kind), result, not alike)


def forget() -> None:
    """Plan anew what other dtypes go by: modes or tiles have changed."""
    _general.cache_clear()
    known.cache_clear()
    _worded.clear()
    while _others:
        _entries.pop(_others.popitem()[0], None)


def _product(out, a, b) -> None:
    """out = a @ b, at once where that can be."""
    if mm_fast(a, b, out) is not out:
        gemm(out, None, a, b, 0, 1)


def addmm_fast(self, mat1, mat2, beta, alpha, out):
    """addmm of small plain arrays in few calls; None, with nothing written, where more care is needed."""
    if beta is ONE and alpha is ONE:
        return mm_fast(mat1, mat2, out, self, UNIT)
    return mm_fast(mat1, mat2, out, self, beta, alpha) if type(beta) in REAL and type(alpha) in REAL else None


def mm_fast(a, b, out, x=None, beta=0.0, alpha=UNIT):
    """mm, likewise; and what addmm adds."""
    try:
        found = _entries.get(a.dtype)
        if found is None:
            if a.dtype not in NAMES:
                return general_fast(a, b, out, x, beta, alpha, MATRICES)
            if a.dtype != b.dtype or first_products.first(a, b, x is None and alpha is UNIT):
                return None
            found = _entry(a.dtype)
            if found is None:
                return None
        entry, words, table = found
        if table is None and not (alpha is UNIT and (x is None or beta is UNIT)):  # words have other factors
            return general_fast(a, b, out, x, beta, alpha, MATRICES)
        if out is not None and type(out) is not ndarray:
            return None
        status = entry(words, out, x, a, b, beta, alpha)
        if type(status) is ndarray:
            return status
        if status == DECLINED:
            return None
        if table is None:
            return general_fast(a, b, out, x, beta, alpha, MATRICES)
        if out is None:
            out = empty((len(a), b.shape[1]), a.dtype)
        if status == SYMMETRIC:
            mirrored(_product, out, a, b)
            return out
        return out if by_entry(out, x, a, b, beta, alpha, found=status) else None
    except (TypeError, IndexError, OverflowError):  # not a float, not a matrix: the checks will say it properly
        return None


def general_fast(a, b, out, x=None, beta=ONE, alpha=ONE, how=0, conj=None):
    """Products of stacks, of a stack and a matrix or vector, or a matrix of other dtypes and a matrix or vector,
    likewise, and what is added; not stacks whose products threads share. `how`: STRICT, if they are stacks of matrices
    that are not broadcast; MATRICES, if there are none."""
    try:
        entry, told = _others.get(a.dtype), None
        if conj is not None or not beta is ONE is alpha:
            beta, alpha = ONE if x is None or beta is UNIT else beta, ONE if alpha is UNIT else alpha
            if conj is None and a.dtype in NAMES:  # one entry has all factors
                if type(beta) not in REAL or type(alpha) not in REAL:
                    return None
                told = beta, alpha
            elif conj is not None or not beta is ONE is alpha:
                entry = None
        if entry is None:
            first = x is None and beta is ONE is alpha and conj is None
            entry = _new(a, b, *(beta, alpha) if told is None else (ONE, ONE), conj, first)
        return _asked(entry, out, x, a, b, how, told)
    except (TypeError, IndexError, ValueError, OverflowError):  # no factors, no dimensions: the checks will say it
        return None


def _new(a, b, beta, alpha, conj, first):
    """The entry for general_fast, or None; `first`: of what first products do."""
    if a.dtype != b.dtype:
        return None
    if a.dtype not in _others and first_products.first(_one(a, 0), _one(b, 1), first):
        return None
    entry = _general(a.dtype, beta, alpha, *() if conj is None else (None, None, None, conj))
    if beta is ONE is alpha and conj is None and entry is not None:
        background.kept(_others, a.dtype, entry)
        if a.dtype not in NAMES:
            background.kept(_entries, a.dtype, (entry.run, entry.address | MATRICES, None))
    return entry


def _one(x, axis):
    """The first matrix of a stack, or a vector with a new axis."""
    return np.expand_dims(x, axis) if x.ndim == 1 else x[(0,) * (x.ndim - 2)]


def addmm_keywords(self, mat1, mat2, beta, alpha, out_dtype, mode, conj, tiles, out):
    """addmm_fast where a keyword is given that only some matrices have."""
    return mm_keywords(mat1, mat2, out_dtype, mode, conj, tiles, out, self, beta, alpha)


def mm_keywords(a, b, out_dtype, mode, conj, tiles, out, x=None, beta=ONE, alpha=ONE):
    """mm_fast, likewise."""
    if tiles is not None:
        return None
    try:
        key = a.dtype, b.dtype, out_dtype, mode, conj
        entry = _worded.get(key) if beta is ONE is alpha else None
        if entry is not None and out is None is x:  # else their dtypes are looked at
            found = entry.run(entry.address | MATRICES, None, None, a, b, 1.0, 1.0)
            if type(found) is ndarray:
                return found
        if entry is None:
            if mode is None and first_products.first(a, b, x is None and alpha is ONE, out_dtype):
                return None
            entry = None if a.dtype in NAMES else _general(key[0], beta, alpha, *key[1:])
            if beta is ONE is alpha and entry is not None:
                background.kept(_worded, key, entry)
        return _asked(entry, out, x, a, b, MATRICES)
    except (TypeError, IndexError):  # no dtype, no matrix: the checks will say it properly
        return None


addmm_fast.with_keywords, mm_fast.with_keywords = addmm_keywords, mm_keywords


def _asked(entry, out, x, a, b, how, told=None):
    """A product by an entry, if there is one; `told`: the factors, where they are not the entry's."""
    if entry is None or not (out is None or type(out) is ndarray):
        return None
    if entry.mixed:
        dtype = entry.dtype
        if (out is not None and out.dtype != dtype) or (x is not None and x.dtype != dtype):
            return None
    told, x = told or entry.told, x if x is None or entry.beta != 0 else None
    beta, alpha = told
    found = entry.run(entry.address | how, out, x, a, b, beta, alpha)
    if type(found) is ndarray:
        return found
    found = entry.again(found, out, x, a, b, how, told)
    return None if type(found) is int else found
