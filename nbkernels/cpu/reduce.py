from __future__ import annotations

import functools

import numpy as np

from ..dtypes import HALVES
from ..jit.address import word
from ..jit.cache import compiled, jit
from ..jit.loops import LINE, call_binary
from ..jit.turn import MOVED, TILE, call_turn, turner
from ..strides import reduce_plan
from . import threads
from .elementwise import binary, loop
from .nest import PARALLEL, binder

BLOCK, LANES = 256, 16
# Elements summed side by side: the 16 rows of their partial sums are 16 KB of float32.
WIDE = 256
# Elements in a row from which on a row is worth it; else blocks of one element, TILE of them, are summed side by side.
NARROW = 16
# Elements of one result that a thread folds at a time.
SHARE = BLOCK << 9

# The context: words in the order of these names, then for each kept dimension size, output and input stride, for each
# reduced one size and stride, then room for each task. NEUTRAL and OUT are where the binder puts addresses.
ADD, NEUTRAL, JOBS, TASKS, TURNER, WIDTH, CHUNK, GROUPED, ROOM, OUT, IN, _, KEPT, REDUCED, TERMS = range(0, 120, 8)
# The loops from an element and to the output, bytes of an element.
TAKE, GIVE, ITEM, HEADER = range(120, 152, 8)


@jit
def _block(context, x, first, length, columns, step, partial, target):
    """Sums of `length` terms from `first` on, of `columns` elements `step` bytes apart, to a row at `target`."""
    add, turn, width, neutral = (
        word(context + ADD),
        word(context + TURNER),
        word(context + WIDTH),
        word(context + NEUTRAL),
    )
    dimensions = word(context + REDUCED)
    inner = context + HEADER + 24 * word(context + KEPT) + 16 * (dimensions - 1)
    longest, pace = word(inner), word(inner + 8)
    pitch = columns * width
    buffer = partial + LANES * pitch
    lanes = LANES
    take, item = word(context + TAKE), word(context + ITEM)
    while lanes // 2 >= length:  # partial sums without terms change nothing
        lanes //= 2
    call_binary(add, partial, neutral, neutral, 1, lanes * columns, 0, 0, 0, width, 0, 0)
    k = 0
    while k < length:
        rest, at = (first + k) // longest, x + (first + k) % longest * pace
        run = min(length - k, longest - (first + k) % longest)
        for d in range(1, dimensions):
            size = word(inner - 16 * d)
            at += rest % size * word(inner - 16 * d + 8)
            rest //= size
        row_step, column_step = pace, step
        if turn != 0:
            run = min(run, TILE)
            call_turn(turn, at, step, buffer, run, columns)
            at, row_step, column_step = buffer, TILE * item, item
        done = 0
        while done < run:  # rows of terms onto the rows of partial sums that are their turn
            lane = (k + done) % LANES
            rows, to = min(LANES - lane, run - done), partial + lane * pitch
            y = at + done * row_step
            call_binary(take, to, to, y, rows, columns, pitch, pitch, row_step, width, width, column_step)
            done += rows
        k += run
    if lanes == 1:
        call_binary(add, target, partial, neutral, 1, columns, 0, 0, 0, width, width, 0)
    half = lanes // 2
    while half > 0:
        out = partial if half > 1 else target
        call_binary(add, out, partial, partial + half * pitch, 1, half * columns, 0, 0, 0, width, width, width)
        half //= 2


@jit
def _merge(context, stack, top, count, columns):
    """Add the pairs that are complete after `count` sums were pushed; the new top."""
    add, width = word(context + ADD), word(context + WIDTH)
    pitch = word(context + CHUNK) * width
    while count % 2 == 0:
        x = stack + (top - 2) * pitch
        call_binary(add, x, x, x + pitch, 1, columns, 0, 0, 0, width, width, width)
        top -= 1
        count //= 2
    return top


@jit
def _sums(context, x, columns, step, out, out_step, room):
    """Sums of all terms of `columns` elements, `step` bytes apart in x and `out_step` in out."""
    add, width, terms = word(context + ADD), word(context + WIDTH), word(context + TERMS)
    pitch = word(context + CHUNK) * width
    stack, row, partial = room, room + 64 * pitch, room + 64 * pitch + 2 * TILE * 16
    top, start = 0, 0
    if word(context + GROUPED) != 0:  # one element, one loop of terms: blocks side by side
        pace = word(context + HEADER + 24 * word(context + KEPT) + 8)
        for group in range((terms // BLOCK + TILE - 1) // TILE):
            blocks = min(TILE, terms // BLOCK - group * TILE)
            _block(context, x + start * pace, 0, BLOCK, blocks, BLOCK * pace, partial, row)
            start += blocks * BLOCK
            if blocks == TILE:
                half, y = TILE // 2, row
                while half > 0:
                    z = stack + top * pitch if half == 1 else (row + TILE * 16 if y == row else row)
                    call_binary(add, z, y, y + width, 1, half, 0, 0, 0, width, 2 * width, 2 * width)
                    y = z
                    half //= 2
                top = _merge(context, stack, top + 1, group + 1, 1)
            else:
                for b in range(blocks):
                    z, neutral = stack + top * pitch, word(context + NEUTRAL)
                    call_binary(add, z, row + b * width, neutral, 1, 1, 0, 0, 0, width, width, 0)
                    top = _merge(context, stack, top + 1, b + 1, 1)
    count = start // BLOCK % TILE if word(context + GROUPED) != 0 else 0
    while start < terms:
        length = min(BLOCK, terms - start)
        _block(context, x, start, length, columns, step, partial, stack + top * pitch)
        start += length
        count += 1
        top = _merge(context, stack, top + 1, count, columns) if length == BLOCK else top + 1
    while top > 1:
        y = stack + (top - 2) * pitch
        call_binary(add, y, y, y + pitch, 1, columns, 0, 0, 0, width, width, width)
        top -= 1
    call_binary(word(context + GIVE), out, stack, word(context + NEUTRAL), 1, columns, 0, 0, 0, out_step, width, 0)


def _walk(context, task):
    """The task's share of the jobs: chunks of the innermost kept dimension, for each place in the outer ones."""
    chunk, kept, jobs, tasks = word(context + CHUNK), word(context + KEPT), word(context + JOBS), word(context + TASKS)
    dims = context + HEADER
    inner = dims + 24 * (kept - 1)
    length, out_step, step = word(inner), word(inner + 8), word(inner + 16)
    room = dims + 24 * kept + 16 * word(context + REDUCED) + task * word(context + ROOM)
    for job in range(jobs * task // tasks, jobs * (task + 1) // tasks):
        chunks = (length + chunk - 1) // chunk
        first, rest = job % chunks * chunk, job // chunks
        out, x = word(context + OUT) + first * out_step, word(context + IN) + first * step
        for d in range(kept - 2, -1, -1):
            i = rest % word(dims + 24 * d)
            rest //= word(dims + 24 * d)
            out += i * word(dims + 24 * d + 8)
            x += i * word(dims + 24 * d + 16)
        _sums(context, x, min(chunk, length - first), step, out, out_step, room)


@functools.cache
def _walker() -> int:
    return compiled(_walk, "void(int64, int64)", "reduce_walk")


@functools.lru_cache(maxsize=4096)
def _context(op, shapes, strides, out: np.dtype, dtype: np.dtype, work: np.dtype, tasks: int) -> np.ndarray:
    """All of a context but the addresses: of an output and an input of these dtypes, folded in `work`."""
    loops = reduce_plan(shapes, strides, dtype.itemsize)
    lead = () if loops.kept.shape else (1,)
    kept = (*lead, *loops.kept.shape)
    to, steps = ((0,) * len(lead) + s for s in loops.kept.strides)
    sizes, paces = loops.sizes or (1,), loops.steps or (0,)
    width, item = work.itemsize, dtype.itemsize
    long = loops.terms >= (2 if kept[-1] < NARROW else TILE) * BLOCK
    grouped = len(sizes) == 1 and long
    apart = BLOCK * paces[-1] if grouped else steps[-1]  # of what is summed side by side
    turned = item in MOVED and paces[-1] == item and apart != item
    chunk = 1 if grouped else TILE if turned else WIDE
    chunk = min(chunk, kept[-1])
    side = TILE if grouped else chunk
    # a stack of row sums, two rows of pairs, partial sums, a tile; a line apart from the next task's
    room = 64 * chunk * width + 2 * TILE * 16 + LANES * side * width + TILE * TILE * item + 2 * LINE
    room = (room + LINE) // 8 * 8
    jobs = -(-kept[-1] // chunk) * int(np.prod(kept[:-1], dtype=int))
    add, take, give = (_loop(op, work, d, to) for d, to in ((work, work), (dtype, work), (work, out)))
    header = (add, 0, jobs, tasks, turner(item) if turned else 0, width, chunk, grouped, room)
    dims = [v for d in zip(kept, to, steps) for v in d] + [v for d in zip(sizes, paces) for v in d]
    counts = (len(kept), len(sizes), loops.terms, take, give, item)
    words = (*header, *loops.kept.offsets, 0, *counts, *dims)
    context = np.empty(len(words) + tasks * room // 8, np.int64)
    context[: len(words)] = words
    return context


def _loop(op, work, dtype, out):
    """The loops of op(a partial result, an element) as what goes to `out`."""
    return loop(op, work, dtype, out, None if work.kind == "b" else work, "unsafe")


@functools.cache
def neutral(op: str, dtype: np.dtype) -> np.ndarray:
    """What leaves every element as it is, as an array of one; -0.0 keeps the sign of a zero."""
    lowest, highest = (-np.inf, np.inf) if dtype.kind in "fcV" else (False, True) if dtype.kind == "b" else (
        np.iinfo(dtype).min, np.iinfo(dtype).max)  # fmt: skip
    nowhere = complex(np.nan, np.nan) if dtype.kind == "c" else np.nan
    value = {
        "add": -0.0 if dtype.kind in "fV" else complex(-0.0, -0.0) if dtype.kind == "c" else 0,
        "multiply": 1,
        "maximum": complex(lowest, lowest) if dtype.kind == "c" else lowest,
        "minimum": complex(highest, highest) if dtype.kind == "c" else highest,
        "fmax": nowhere if dtype.kind in "fcV" else lowest,
        "fmin": nowhere if dtype.kind in "fcV" else highest,
        "logical_and": True,
        "bitwise_and": True if dtype.kind == "b" else ~np.zeros((), dtype) if dtype.kind in "iu" else 0,
        "logaddexp": -np.inf,
    }.get(op, 0)
    return np.full(1, value, dtype)


def sum_to(out, self, size=None) -> None:
    """out = self summed to out's shape; `size`, which is that shape, is not read. Integers wrap."""
    if self.size == 0:
        out[...] = 0
        return
    fold("add", out, self, working(self.dtype))


def working(dtype: np.dtype) -> np.dtype:
    """What partial results are held in."""
    return np.dtype(np.float32) if dtype.name in HALVES else dtype


def fold(op: str, out, x, work: np.dtype) -> None:
    """out = x folded by an associative operation over the dimensions where out's size is 1, or none; not empty.

    What is folded has the dtype `work`; each element is converted to it on the way, the result to out's at the end.
    """
    if np.may_share_memory(out, x):
        x = x.copy()
    tasks = threads.count() if x.size >= PARALLEL else 1
    if tasks > 1 and out.size == 1 and x.size >= 2 * SHARE:
        flat = reduce_plan((out.shape, x.shape), (out.strides, x.strides), x.itemsize)
        if len(flat.sizes) == 1:
            _shared(op, out, x, work, flat.steps[0], tasks)
            return
    _fold(op, out, x, work, tasks)


def _fold(op, out, x, work, tasks):
    layout = (out.shape, x.shape), (out.strides, x.strides)
    context = _context(op, *layout, out.dtype, x.dtype, work, tasks).copy()
    nothing, walker = neutral(op, work), _walker()
    alone = walker if tasks == 1 else 0
    at = binder()(id(context), id(nothing), id(out), id(x), id(x), 0, 0, alone)
    if not alone:
        threads.launch(walker, at, tasks)


def _shared(op, out, x, work, step, tasks):
    """One result by many threads: shares of SHARE elements are folded apart, then merged as the pairs of blocks are.

    SHARE is a power of two of blocks, so a share's result is one that a single thread would have on its stack.
    """
    whole = x.size // SHARE
    first = x[(0,) * x.ndim + (...,)]
    shares = np.lib.stride_tricks.as_strided(first, (whole, SHARE), (SHARE * step, step))
    results = np.empty((whole, 1), work)
    _fold(op, results, shares, work, tasks)
    stack = []

    def merge():
        last = stack.pop()
        binary(op, stack[-1], stack[-1], last, casting="unsafe")

    for count, result in enumerate(results, 1):
        stack.append(result)
        while count % 2 == 0:
            merge()
            count //= 2
    if x.size % SHARE:
        rest = np.lib.stride_tricks.as_strided(first, (whole * SHARE + x.size % SHARE,), (step,))[whole * SHARE :]
        stack.append(np.empty(1, work))
        _fold(op, stack[-1], rest, work, 1)
    while len(stack) > 1:
        merge()
    _fold(op, out, stack[0], work, 1)
