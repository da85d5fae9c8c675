"""Folds in order along one dimension of device arrays.

accumulate   out[0] = x[0], out[k] = op(out[k - 1], x[k])
in_order     the last of these alone, where a mask says so, from x[0] or from what out has

accumulate of many rows keeps NumPy's order, one step after the other. Few long rows (`way`) of an operation of
IN_CHUNKS have an order that depends on their length n alone, halves in float32 and rounded once. A row is cut into
chunks of 4096 * ceil(n / 2**21) elements, a chunk into segments of 512, a segment into pieces of 128, a piece into 32
lanes of 4 elements. Then, from the left and without what is not there,

    out[k] = chunks . segments . ... . segments . pieces . ... . pieces . lanes . elements

what comes before it: all chunks before, each segment before in the chunk, each piece before in the segment, all lanes
before in the piece, and its lane's elements up to k. What elements of a lane come to, pieces of a segment, and segments
of a chunk, is folded in order; lanes of a piece by Kogge and Stone, t[l] = t[l - d] . t[l] for d = 1, 2, 4, 8, 16 where
there is a lane l - d; chunks as if they were the elements of one segment.
"""

from __future__ import annotations

import functools

import numpy as np

from .. import scalar
from ..dispatch.driver import simulated
from ..dtypes import ASSOCIATIVE, HALVES, resolve
from ..operations import BINARY, CHAINED, COSTLY
from ..strides import broadcast_strides, plan
from .elementwise import fill, run
from .launch import KERNELS, Kernel, capability, elements, launch, multiprocessors, pointer
from .memory import clash, empty

THREADS, BLOCKS = 128, 16
# Operations of a few instructions, which kernels unroll.
IN_CHUNKS = frozenset(op for op in ASSOCIATIVE if BINARY[op].cost not in (COSTLY, CHAINED))
SHORT = IN_CHUNKS | {"subtract"}
WIDEST = 16  # bytes that one instruction copies at most

# kernels/staged.py: rows of a block, and the threads that copy for the one warp that folds: 16 bytes each of 4 KiB. A
# first version took 57 us for 4096 x 4096 of float32 along either axis, copies 45 (H100, 2026-11).
ROWS, MOVERS = 32, 256
LINE, STEPS = 128, 64  # bytes of a row in a stage, and its steps, at most
TOGETHER = 16  # steps that are read before the first is folded: 30 cycles of waiting for 64 of adding

# kernels/chunked.py: neighbours of a lane, pieces of a warp, warps of a block; elements that a warp and a block scan at
# once; chunks of a row at most: a warp scans what they come to, and 128 multiprocessors run as many blocks at once.
EACH, PIECES, WARPS = 4, 4, 8
SEGMENT = 32 * EACH * PIECES
TILE = SEGMENT * WARPS
CHUNKS = SEGMENT


@functools.cache
def kernel(function, item: str, work: str, compute, ndim: int, started=False, masked=False) -> Kernel:
    """Rows of `count` steps at each index of `ndim` loops; of an out_step of 0 the last stays.

    started: out has what comes before the first of x; masked: steps are made where a mask is.
    """
    return Kernel(f"{KERNELS}.scan:steps", (function, item, work, compute, ndim, started, masked), THREADS)


@functools.cache
def staged(function, item: str, work: str, compute, ndim: int, source, target, steps, together, copies) -> Kernel:
    """Scans of rows in order, without a mask or start, through shared memory: `steps` steps of ROWS rows at a time.

    source, target: (across, width) of x and of out: neighbours that are copied at once, and whether of other rows.
    """
    arguments = function, item, work, compute, ndim, source, target, steps, together, copies
    return Kernel(f"{KERNELS}.staged:make", arguments, ROWS + MOVERS)


@functools.cache
def chunked(function, item: str, work: str, compute, ndim: int, width: int, out_width: int, last: bool) -> Kernel:
    """What the chunks of each row come to, or as the `last` pass their scans."""
    arguments = function, item, work, compute, ndim, width, out_width, last
    words = 1 if work in HALVES else max(1, np.dtype(work).itemsize // 4)
    blocks = 2 if words == 1 and 1 in (width, out_width) else 4 // words  # single elements take an address each
    return Kernel(f"{KERNELS}.chunked:make", arguments, 32 * WARPS, blocks)


def accumulate(op: str, out, x, axis: int, work) -> None:
    """out[k] = op(out[k - 1], x[k]) along an axis, in `work`; both have one shape."""
    if x.size:
        _held(op, out, x, axis, work, tuple(out.strides))


def in_order(op: str, out, x, axis: int, work, initial=None, where=None) -> None:
    """out = x folded along an axis, from its first element on or from `initial`; out has x's shape without it, and is
    not empty."""
    strides = list(out.strides)
    strides.insert(axis, 0)
    _held(op, out, x, axis, work, tuple(strides), initial, where)


def _held(op, out, x, axis, work, strides, initial=None, where=None):
    """Straight to out, or by way of an array of the dtype `work` where out has another or shares memory with inputs."""
    if out.dtype == work and not clash(out, x) and (where is None or not clash(out, where)):
        _scan(op, out, x, axis, work, strides, initial, where)
        return
    held = empty(out.shape, out, work)
    inner = list(held.strides)
    if len(inner) < len(strides):
        inner.insert(axis, 0)
    _scan(op, held, x, axis, work, tuple(inner), initial, where)
    run(scalar.find("first", work), out, held, held, (work, work, out.dtype))


def way(op: str, rows: int, count: int) -> str:
    """Which kernel folds `rows` rows of `count` steps: a matter of the shape alone, as results are.

    chunks  few long rows. Steps one after the other would take 4 ns each (an estimate: 7 cycles), and so would those of
            1024 rows in chunks, at 4 TB/s
    staged  other rows of at least 32 steps
    steps   the others, a thread for each row
    """
    if op in IN_CHUNKS and rows <= 1024 and count >= max(TILE, 8 * rows):
        return "chunks"
    return "staged" if count >= ROWS else "steps"


def _scan(op, out, x, axis, work, strides, initial, where):
    """Into an out of the dtype `work`, whose strides along the axis of x may be 0."""
    names = resolve(op, work, x.dtype, None if work.kind == "b" else work, "unsafe")
    if initial is not None:
        fill(out, initial)
    arrays, steps = [out, x], [strides, x.strides]
    if where is not None:
        arrays.append(where)
        steps.append(broadcast_strides(x.shape, where.shape, where.strides))
    rest, *paces = (tuple(v for d, v in enumerate(part) if d != axis) for part in (x.shape, *steps))
    loops = plan((rest,) * len(arrays), tuple(paces), tuple(a.dtype.itemsize for a in arrays))
    shape, count = loops.shape or (1,), x.shape[axis]
    walks = [(pointer(a, offset), elements(a, p) or (0,), elements(a, (s[axis],))[0])
             for a, s, p, offset in zip(arrays, steps, loops.strides, loops.offsets)]  # fmt: skip
    rows = int(np.prod(shape, dtype=int))
    made = scalar.find(op, *names[:2]), x.dtype.name, work.name, tuple(d.name for d in names), len(shape)
    given = rows, count, *(part for walk in walks for part in walk)
    if walks[0][2] != 0 and initial is None and where is None:
        at = (0, 0) if simulated() else tuple(int(walk[0]) % WIDEST for walk in walks)
        ends = [(a.dtype.itemsize, place, *walk[1:]) for a, place, walk in zip(arrays, at, walks)]
        how = way(op, rows, count)
        if how == "chunks" and not simulated():  # which has no shuffles
            _in_chunks(made, given, shape, ends, out)
            return
        if how != "steps":
            _in_stages(made, op in SHORT, given, shape, ends, out)
            return
    if where is None:
        given = *given, pointer(out), (0,) * len(shape), 0
    blocks = min(-(-rows // THREADS), multiprocessors() * BLOCKS)
    launch(kernel(*made, initial is not None, where is not None), blocks, *given, shape, stream=out.stream)


def _in_stages(made, short, given, shape, ends, out) -> None:
    """By the staged kernel. `ends` are of out and x: (size of an element, place, steps of rows, step)."""
    steps = min(STEPS, LINE // max(size for size, *_ in ends))
    target, source = (side(steps, shape, *end) for end in ends)
    copies = capability() >= (8, 0) and ends[1][0] * source[1] >= 4
    compiled = staged(*made, source, target, steps, min(TOGETHER, steps) if short else 1, copies)
    launch(compiled, -(-given[0] // ROWS), *given, shape, stream=out.stream)


def _in_chunks(made, given, shape, ends, out) -> None:
    """What chunks come to, where a row has several, and their scans."""
    rows, count, *_ = given
    length = TILE * -(-count // (TILE * CHUNKS))
    chunks = -(-count // length)
    out_width, width = (min(EACH, touching(*end)) for end in ends)
    held = np.dtype("f4") if out.dtype.name in HALVES else out.dtype
    totals = empty((rows, chunks), out, held) if chunks > 1 else out
    for last in (False, True) if chunks > 1 else (True,):
        compiled = chunked(*made, width, out_width, last)
        launch(compiled, rows * chunks, rows, count, length, chunks, *given[2:], pointer(totals), shape,
               stream=out.stream)  # fmt: skip


@functools.lru_cache(maxsize=4096)
def side(steps: int, shape, size: int, place: int, row_steps, step: int) -> tuple[bool, int]:
    """(across, width) of an array in the staged kernel: its neighbours in memory that are copied at once, at most, are
    those of other rows or of other steps, whichever are closer. `place` is its address modulo WIDEST, steps count
    elements of `size` bytes.

    >>> side(32, (64,), 4, 0, (8192,), 1), side(32, (8192,), 4, 0, (1,), 8192), side(32, (9,), 4, 8, (1,), 9)
    ((False, 4), (True, 4), (True, 1))
    """
    if not 0 < abs(row_steps[-1]) < abs(step):
        return False, min(steps, touching(size, place, row_steps, step))
    width = touching(size, place, (*row_steps[:-1], step), row_steps[-1])
    while len(shape) > 1 and shape[-1] % width:  # neighbours of one row of rows
        width //= 2
    return True, width


def touching(size: int, place: int, others, step: int) -> int:
    """Neighbours that one instruction copies: as many as the places of all that are copied are multiples of."""
    width = WIDEST // size
    while step != 1 or any(at % (width * size) for at in (place, *(other * size for other in others))):
        if width == 1:
            break
        width //= 2
    return width
