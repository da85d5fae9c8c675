"""The plan of a fold: rows or columns, blocks and runs of them, workspaces, threads. One function, `cut`, makes it for
every fold, in Python and compiled for jitted callers (sums.py); the order of the terms is reduce.py's.
"""

from __future__ import annotations

from ...jit.ir.turn import MOVED
from ...jit.ir.vector import LINE
from ..runtime import threads
from .fold_loop import BLOCK, DEALT, LANES
from .loops import DESK, FEW, GATHER

# Bytes of terms from which on threads pay: 60 us of one thread's.
PARALLEL = 1 << 21
# Bytes of 16 transposed rows, at most: 3 x 300000 float32 by 16 rows takes twice as long.
STAGE = 1 << 22
# Terms of one result that a thread folds at a time, at least, and from which on sums of all blocks are made first, for
# two more calls.
SHARE = BLOCK << 6
# Bytes of a row of partial results: the longer rows are, the better memory streams, and L2 holds 16 of 16 KB
# (4096 x 4096 f32 by columns: of 1 KB 7.0 ms, of 4 KB 5.7, of 16 KB 4.2); of short rows that are transposed at a time.
WIDE = 16384


def cut(f, dims, exact) -> bool:
    """Cut a fold of these loops, as loops.py reads them; whether columns go together, else rows do.

    f is its Fold, of which kept, reduced, tasks, item and width are known, `turn`, and `high` where terms are turned.
    """
    inner, first = 3 * (f.kept - 1), 3 * f.kept
    last, columns, terms, jobs, nearest = first + 2 * (f.reduced - 1), dims[inner], 1, 1, abs(dims[first + 1])
    for d in range(0, inner, 3):
        jobs *= dims[d]
    for d in range(first, last + 2, 2):
        terms *= dims[d]
        nearest = min(nearest, abs(dims[d + 1]))
    across = columns > 1 and abs(dims[inner + 2]) <= nearest
    wide = exact != 0 and LANES * columns * f.width > WIDE  # of short rows LANES are folded as one
    lanes = 1 if wide or terms < DEALT else LANES
    chunk = min(-(-columns // f.tasks), max(16, WIDE // f.width))
    length, levels = GATHER, 1
    if across:
        length = terms if exact != 0 else BLOCK
    else:  # a power of two of blocks: as many as a run has, where that is whole
        while length > BLOCK and dims[last] & (length - 1) != 0:
            length //= 2
        length = length if dims[last] & (length - 1) == 0 else GATHER
    while terms // length >> levels - 1 > 0:
        levels += 1
    plain = f.reduced == 1 and dims[first + 1] == f.item
    held = 0 if plain else min(GATHER, chunk * terms) * f.item  # bytes that are copied
    if f.turn != 0:
        stage = (f.high + 2 * FEW) * (terms // dims[first])
        length, levels, held = terms, terms // BLOCK + 1, (BLOCK + stage) * f.item
    room = levels * chunk * f.width + (DESK + lanes * chunk * f.width if across else held)
    f.terms, f.lanes, f.chunk, f.length, f.levels = terms, lanes, chunk, length, levels
    f.room, f.jobs = -(-room // LINE) * LINE + 2 * LINE, -(-columns // chunk) * jobs
    return across


def turned(loops, item) -> int:
    """How many rows of the terms of one result are transposed at a time, where the outermost of their dimensions
    touches; 0 where they are not: 16, or as many short ones as half of L1 holds. By 8 of float64, one line of the
    source, 128 x 128 x 64 take 1.2 times as long."""
    if loops.kept.shape or len(loops.sizes) < 2 or item not in MOVED or loops.steps[0] != item:
        return 0
    row = loops.terms // loops.sizes[0] * item
    if 16 * row > STAGE or (loops.sizes[0] < FEW and loops.terms <= GATHER):
        return 0
    return max(16, WIDE // row // 16 * 16)


def whole_blocks(loops, item) -> bool:
    """Whether there is one result, of many terms that are nearer across their rows than along them, and rows of whole
    blocks."""
    near = len(loops.sizes) > 1 and min(map(abs, loops.steps)) < min(abs(loops.steps[-1]), LINE)
    return near and not loops.kept.shape and loops.sizes[-1] % BLOCK == 0 and loops.terms >= SHARE


def workers(x) -> int:
    """How many threads a fold of an array is worth."""
    return threads.count() if x.nbytes >= PARALLEL else 1


def shared(terms: int, tasks: int) -> int:
    """Terms of one result that a thread folds at a time: a power of two of SHAREs, some eight of them for each."""
    share = SHARE
    while terms // (2 * share) >= 8 * tasks:
        share *= 2
    return share
