"""Fast operators of a subclass of ndarray: the entries of ndarrays, told of that class instead.

`operator(op, kind)` gives call(x, y, out=None): the result, of that class, or None, with nothing written, where another
way has to be found. Both are arrays of the class, or one is a number. `product(kind)` gives the same of matmul.
"""

from __future__ import annotations

import numpy as np

from ...dtypes import resolve
from ..gemm.entry import small_table, supplied
from ..gemm.fast import _entries, _entry
from ..gemm.first_products import suits
from ..gemm.gemm import NAMES
from ..gemv.vectors import matmul_fast
from ..runtime.status import SMALL
from .entry import UNKNOWN, WAITING
from .fast import WEAK, at_first
from .table import Table


def operator(op, kind):
    table = Table(op, kind)

    def at_once(*given):  # until the first calls are made, which go by the function
        nonlocal at_once
        if at_first.lasts():  # which counts it
            return WAITING
        at_once = table.small
        return at_once(*given)

    def call(x, y, out=None):
        result = at_once(x, y, out)
        if type(result) is not kind:
            result = table.again(result, dtypes(x, y) if result is UNKNOWN else None, x, y, out)
        return None if type(result) is int else result

    def dtypes(x, y):
        """The dtypes of result and operands by which loops are entered; None where a number changes the dtype."""
        try:
            if type(x) not in WEAK and type(y) not in WEAK:
                return resolve(op, x.dtype, y.dtype)[2], x.dtype, y.dtype
            dtype, number = (y.dtype, type(x)) if type(x) in WEAK else (x.dtype, type(y))
            first, second, result = resolve(op, dtype, number)
        except (TypeError, AttributeError):
            return None
        return (result, dtype, dtype) if first == second == dtype else None

    return call


def product(kind):
    tables = {}  # dtype -> the small entry, its table's address, by which `kind` is what it makes, and the table

    def call(x, y):
        found = tables.get(x.dtype)
        if found is None and x.ndim == 2 == y.ndim and suits(x, y):
            return None  # to the function
        found = found or enter(x.dtype)
        if found and x.ndim == 2 == y.ndim:
            entry, words, table = found
            result = entry(words, None, None, x, y, 0, 1)
            while type(result) is int and result >= SMALL and supplied(result, NAMES[x.dtype], table):
                result = entry(words, None, None, x, y, 0, 1)  # other paths are matmul_fast's
            if type(result) is kind:
                return result
        result = matmul_fast(x, y, None)
        return result.view(kind) if type(result) is np.ndarray else result

    def enter(dtype):
        found = (_entries.get(dtype) or _entry(dtype)) if dtype in NAMES else None
        if found is None:  # a dtype of another way
            return None
        entry, table = found[0], small_table(NAMES[dtype], kind)
        tables[dtype] = entry, table.buffer_info()[0], table
        return tables[dtype]

    return call
