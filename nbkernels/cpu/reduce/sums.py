"""sum_to in one call, plan and folds, for jitted code of others: by one thread, compiled once for all dtypes."""

from __future__ import annotations

import functools

from ...jit.address import call, pointer, scratch
from ...jit.cache import compiled
from ...jit.fold import BLOCK, DEALT, LANES
from ...jit.record import Record
from ...jit.rooms import bought, sold
from ...jit.vector import LINE
from .loops import DESK, FOLD, GATHER, HEADER, SMALL, fold_at
from .reduce import ALONE, WIDE

MOST = 64  # dimensions of an array, as NumPy has it
# A sum: its operands' addresses, the bytes of an item and of a partial result, whether any order will do, the loops as
# loops.py has them. DIMENSION words follow for each of x's: its size, that of out or 1, the strides of both in bytes.
SUM = Record("Sum", "out x item width exact ndim walker fold copy take chain merge first give")
DIMENSION = 4
sum_at, SUM_BYTES = SUM.pointer(), SUM.bytes
FOLD_WORDS = FOLD.words
KEPT, FOLDED = 24 * MOST, 16 * MOST  # bytes of what loops.py reads of kept and of folded dimensions


def _run(facts):
    """Plan the sum at an address, and do it."""
    f, source = sum_at(facts), pointer(facts + SUM_BYTES)
    kept, folded = pointer(scratch(KEPT)), pointer(scratch(FOLDED))
    keeps, folds, count = 0, 0, 1
    for d in range(f.ndim):
        n, to, step = source[DIMENSION * d], source[DIMENSION * d + 2], source[DIMENSION * d + 3]
        if n == 1:
            continue
        if source[DIMENSION * d + 1] == n:
            at = 3 * (keeps - 1)
            if keeps > 0 and kept[at + 1] == n * to and kept[at + 2] == n * step:  # one walk with the one before
                n *= kept[at]
            else:
                at += 3
                keeps += 1
            kept[at], kept[at + 1], kept[at + 2] = n, to, step
        else:
            at = 2 * (folds - 1)
            count *= n
            if folds > 0 and folded[at + 1] == n * step:
                n *= folded[at]
            else:
                at += 2
                folds += 1
            folded[at], folded[at + 1] = n, step
    if keeps == 0:
        kept[0], kept[1], kept[2], keeps = 1, 0, 0, 1
    if folds == 0:
        folded[0], folded[1], folds = 1, f.item, 1
    columns, width, nearest, jobs = kept[3 * keeps - 3], f.width, abs(folded[1]), 1
    for d in range(1, folds):
        nearest = min(nearest, abs(folded[2 * d + 1]))
    across = columns > 1 and abs(kept[3 * keeps - 1]) <= nearest
    lanes = 1 if f.exact != 0 or count < DEALT else LANES
    chunk = min(columns, max(16, (WIDE if lanes > 1 else ALONE) // width))
    length, levels = GATHER, 1
    if across:
        length = count if f.exact != 0 else BLOCK
    while count // length >> levels - 1 > 0:
        levels += 1
    held = 0 if folds == 1 and folded[1] == f.item else min(GATHER, chunk * count)
    room = levels * chunk * width + (DESK + lanes * chunk * width if across else held * f.item)
    room = (room + LINE - 1) // LINE * LINE + 2 * LINE
    for d in range(keeps - 1):
        jobs *= kept[3 * d]

    words = HEADER + 24 * keeps + 16 * folds  # in bytes
    small = words + room + LINE <= SMALL
    context = scratch(SMALL) if small else bought(words + room + LINE)
    g, dims = fold_at(context), pointer(context + HEADER)
    for i in range(FOLD_WORDS):
        g[i] = 0
    g.fold, g.copy, g.take, g.chain = 0 if across else f.fold, f.copy, f.take, f.chain
    g.merge, g.first, g.give, g.neutral, g.out, g.x = f.merge, f.first, f.give, context, f.out, f.x
    g.jobs, g.tasks, g.chunk, g.length, g.levels = (columns + chunk - 1) // chunk * jobs, 1, chunk, length, levels
    g.width, g.item, g.lanes, g.high, g.room, g.rooms = width, f.item, lanes, 16, room, words
    g.kept, g.reduced, g.terms = keeps, folds, count
    for i in range(3 * keeps):
        dims[i] = kept[i]
    for i in range(2 * folds):
        dims[3 * keeps + i] = folded[i]
    call(f.walker, context, 0)
    if not small:
        sold(context)


@functools.cache
def run() -> int:
    """The address of void(address of a sum)."""
    return compiled(_run, "void(int64)", "sum_run")
