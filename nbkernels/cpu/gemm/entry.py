"""The small path: one compiled call from Python to the finished product.

The entry takes the arrays, checks what it can, declines what is unusual and makes the result, so that a 4x4 product
costs one call. It is compiled once for all dtypes, and reads from a table what differs: a register tile's numbers, and
the kernels of the paths. What it lacks is its answer, is compiled by `supplied`, and it is asked again.
"""

from __future__ import annotations

import functools
from array import array

import numpy as np

from ...jit.abi import new_arrays
from ...jit.abi.address import answered, asked, scratch
from ...jit.abi.ndarray import address_of, descr, ndim
from ...jit.abi.new_arrays import answer
from ...jit.abi.record import Record
from ...jit.compile.cache import compiled, entry
from ..gemv.gemv import whole as gemv_whole
from ..runtime import status, threads
from ..runtime.arrays import alike, new_matrix, optional
from ..runtime.launch import launchable
from ..runtime.machine import l2
from ..runtime.workspace import make_room
from . import block, columns, deep, short, thin
from .blocking import small
from .checks import unsound
from .context import BYTES, ROWWISE, WORDS, operands, oriented, shift, words_at
from .cost import known
from .kernels import supply
from .packed import whole as packed_whole
from .paths import AWAKE, choose, little, longest, mirrors
from .store import PLAIN, ending

SERIALLY = 1  # the bit of the table's address, free in one, that asks for this path
# threads.WORDS; by status from GEMV to CHOICE what `WHOLE` says, or zeros; the tile; the address of made.words().
TABLE = Record("Small", f"launch ways[{2 * (status.CHOICE - status.GEMV + 1)}] mr nr lanes itemsize narrow numpy")
table_at, WAYS = TABLE.pointer(), TABLE["ways"]


@functools.cache
def _choice() -> int:
    """int64(table, words, rows, workers): the path, as paths.choose says."""

    def run(t, f, rows, workers):
        product = f.m, f.n, f.k, f.rsa, f.csa, f.rsb, f.csb
        return choose(t, product, rows != 0, workers, l2(), known())

    return compiled(run, f"int64({TABLE}, {WORDS}, int64, int64)", "gemm_choice")


# Paths with an entry of the same make.
DOORS = {status.THIN: thin.door, status.DEEP: deep.door, status.SHORT: short.door, status.COLUMNS: columns.door}
# What does a product, or a part of one, by what the entry answers where it has no such kernel yet: of a dtype its
# address, and the first argument of a path's whole call.
WHOLE = {
    **{way: lambda dtype, door=door: door(dtype).whole() for way, door in DOORS.items()},
    status.GEMV: gemv_whole,
    status.PACKED: packed_whole,
    status.SMALL: block.block,
    status.BY_ROWS: lambda dtype: block.straight(dtype, False),
    status.BY_COLUMNS: lambda dtype: block.straight(dtype, True),
    status.CHOICE: lambda dtype: (_choice(), 0),
}


@functools.cache
def small_entry():
    """The call from Python for small products: checks what it can, declines what is unusual, keeps the GIL.

    answer(address of the table, out or None, x or None, a, b, beta, alpha): out, or made; else a status. Another path's
    product it hands on to that path's `whole`, if it is known; else the path is the answer.
    """

    def run(table, out, x, a, b, beta, alpha):
        serially, table = table & SERIALLY != 0, table & ~SERIALLY
        t = table_at(table)
        given, x, a, b, made = optional(t.numpy, out), optional(t.numpy, x), address_of(a), address_of(b), 0
        if given == 0:
            if ndim(a) != 2 or ndim(b) != 2:
                return answer(status.DECLINED, 0, 0)
            made = new_matrix(t.numpy, descr(a), a, b)
            if made == 0:
                return answer(status.DONE, 0, 0)
        out, words = given + made, scratch(BYTES)
        f, size = words_at(words), t.itemsize
        if alpha == 0 or ndim(a) != 2 or ndim(b) != 2 or not alike(out, x, a, b):
            return answer(status.DECLINED, given, made)
        if unsound(out, x, a, b, (size, size, size), beta, made != 0):
            return answer(status.DECLINED, given, made)
        f.reads, f.sides, f.size_b, f.size_c = beta != 0, ROWWISE, size, size
        f.shift_a = f.shift_b = f.shift_c = shift(size)
        operands(f, out, x, a, b)
        m, n, k, rows = f.m, f.n, f.k, f.csc == 1 and (f.x == 0 or f.csx == 1)
        if serially:
            if k > longest(t):
                return answer(status.LARGE, given, made)
        elif not little(m, n, k):
            workers = launchable(table) if m * n * k > AWAKE else 1
            workers = workers if workers > 0 else 2  # nothing says how many there are
            itself = f.a == f.b and f.rsa == f.csb and f.csa == f.rsb
            if x == 0 and alpha == 1 and itself and mirrors(m, n, k, workers):
                return answer(status.SYMMETRIC, given, made)
            if t.ways[2 * (status.CHOICE - status.GEMV)] == 0:
                return answer(status.CHOICE, given, made)
            path = asked(t.ways[2 * (status.CHOICE - status.GEMV)], (table, words, rows, workers))
            if path != status.SMALL:
                oriented(f, path)
                way = table + 8 * (WAYS + 2 * (path - status.GEMV))
                found = answered(way, path, words, beta, alpha)
                return answer(path if found == status.LARGE else found, given, made)
        plain = ending(f.csc, f.x, f.csx, alpha == 1) == PLAIN
        way = block.kernel_for(t, plain, m, n, k, f.rsa, f.csa, f.rsb, f.csb)
        kernel = t.ways[2 * (way - status.GEMV)]
        if kernel == 0:
            return answer(way, given, made)
        return answer(asked(kernel, (words, beta, alpha)), given, made)

    kind = "answer(int64, object, object, object, object, float64, float64)"
    return entry(run, kind, "gemm_small")


@functools.cache
def small_table(dtype: str, kind=np.ndarray):
    """The entry's first argument is the address of these words. `kind`: of the arrays that it takes and makes."""
    t, tile = TABLE.array(), small(dtype)
    t.launch, t.numpy = threads.WORDS, new_arrays.words(True, kind).ctypes.data
    t.mr, t.nr, t.lanes, t.itemsize, t.narrow = tile.mr, tile.nr, tile.lanes, tile.itemsize, tile.narrow
    return t


def supplied(found: int, dtype: str, table) -> bool:
    """Whether the entry is to be asked again: what it lacked, by its answer, is there now and was not before."""
    if found >= status.WANTED:
        return make_room(found - status.WANTED)
    if found >= status.LACKING:
        supply(small(dtype), found - status.LACKING)
        return True
    ways, at = table.ways, 2 * (found - status.GEMV)
    if found not in WHOLE or ways[at]:
        return False
    ways[at : at + 2] = array("q", WHOLE[found](dtype))
    return True
