"""Folds in any order in one call, plan and all, for jitted code of others: by one thread, compiled once for all."""

from __future__ import annotations

import functools

from ... import strides
from ...jit.abi.address import copy, invoke, pointer, scratch
from ...jit.abi.record import Record
from ...jit.abi.workspaces import allocate, free
from ...jit.compile.cache import compiled
from ...jit.compile.lazy import jit
from ...jit.ir.vector import LINE
from . import plan
from .loops import HEADER, SMALL, fold_at

# A fold: its operands' addresses, the bytes of an item and of a partial result, whether any order will do, the loops as
# loops.py has them; `first` copies a term, `begin` a partial result. DIMENSION words follow for each of x's: its size,
# that of out or 1, the strides of both in bytes.
SUM = Record("Sum", "out x item width exact ndim walker fold copy take chain merge first begin give")
DIMENSION = 4
sum_at, SUM_BYTES = SUM.pointer(), SUM.bytes

join, cut = jit(strides.join, forceinline=True), jit(plan.cut, forceinline=True)


def _run(facts):
    """Plan the fold at an address, and do it."""
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
    across = cut(g, dims, f.exact)
    g.fold, g.first = (0, f.first) if across else (f.fold, f.begin)
    g.copy, g.take, g.chain, g.merge, g.give = f.copy, f.take, f.chain, f.merge, f.give
    g.out, g.x, g.neutral, g.rooms = f.out, f.x, context, HEADER + 24 * keeps + 16 * folds
    if g.rooms + g.room + LINE <= SMALL:
        invoke(f.walker, (context, 0))
    else:
        large = allocate(g.rooms + g.room + LINE)
        copy(large, context, g.rooms)
        invoke(f.walker, (large, 0))
        free(large)


@functools.cache
def run() -> int:
    """The address of void(address of a fold)."""
    return compiled(_run, "void(int64)", "sum_run")
