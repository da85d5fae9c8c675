"""sum_to in one call, plan and folds, for jitted code of others: by one thread, compiled once for all dtypes."""

from __future__ import annotations

import functools

from ... import strides
from ...jit.address import copy, invoke, pointer, scratch
from ...jit.cache import compiled, jit
from ...jit.record import Record
from ...jit.rooms import bought, sold
from ...jit.vector import LINE
from . import plan
from .loops import HEADER, SMALL, fold_at

# A sum: its operands' addresses, the bytes of an item and of a partial result, whether any order will do, the loops as
# loops.py has them. DIMENSION words follow for each of x's: its size, that of out or 1, the strides of both in bytes.
SUM = Record("Sum", "out x item width exact ndim walker fold copy take chain merge first give")
DIMENSION = 4
sum_at, SUM_BYTES = SUM.pointer(), SUM.bytes

join, cut = jit(strides.join, forceinline=True), jit(plan.cut, forceinline=True)


def _run(facts):
    """Plan the sum at an address, and do it."""
    f, source, context = sum_at(facts), pointer(facts + SUM_BYTES), scratch(SMALL)
    g, dims, keeps, folds = fold_at(context), pointer(context + HEADER), 0, 0
    for d in range(0, DIMENSION * f.ndim, DIMENSION):
        if source[d] == source[d + 1] != 1:
            dims[3 * keeps], dims[3 * keeps + 1], dims[3 * keeps + 2] = source[d], source[d + 2], source[d + 3]
            keeps += 1
    keeps = join(dims, keeps, 2) if keeps > 1 else keeps
    if keeps == 0:
        dims[0], dims[1], dims[2], keeps = 1, 0, 0, 1
    terms = pointer(context + HEADER + 24 * keeps)
    for d in range(0, DIMENSION * f.ndim, DIMENSION):
        if source[d] != source[d + 1]:
            terms[2 * folds], terms[2 * folds + 1] = source[d], source[d + 3]
            folds += 1
    folds = join(terms, folds, 1) if folds > 1 else folds
    if folds == 0:
        terms[0], terms[1], folds = 1, f.item, 1
    g.kept, g.reduced, g.tasks, g.item, g.width, g.turn = keeps, folds, 1, f.item, f.width, 0
    g.fold = 0 if cut(g, dims, f.exact) else f.fold
    g.copy, g.take, g.chain, g.merge, g.first, g.give = f.copy, f.take, f.chain, f.merge, f.first, f.give
    g.out, g.x, g.neutral, g.rooms = f.out, f.x, context, HEADER + 24 * keeps + 16 * folds
    if g.rooms + g.room + LINE <= SMALL:
        invoke(f.walker, (context, 0))
    else:
        large = bought(g.rooms + g.room + LINE)
        copy(large, context, g.rooms)
        invoke(f.walker, (large, 0))
        sold(large)


@functools.cache
def run() -> int:
    """The address of void(address of a sum)."""
    return compiled(_run, "void(int64)", "sum_run")
