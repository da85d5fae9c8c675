"""Run compiled inner loops over a StridedPlan: outer dimensions, tiles, streaming stores, a slice for each task.

A context is an array of int64: a header, the operands' addresses, the loops' sizes and strides, room for each task.

    LOOP SCALARS OPERANDS NDIM TASKS SPLIT ROWS COLUMNS ROOM
    address[operands]  size[ndim]  stride[ndim][operands]  room[tasks][ROOM]

The two innermost dimensions are walked in tiles of ROWS x COLUMNS, one call of the inner loops each.
"""

from __future__ import annotations

import functools

import numpy as np

from ..jit.address import call
from ..jit.cache import compiled, entry
from ..jit.loops import LINE, call_loop, set_word, word
from ..jit.ndarray import data
from ..strides import StridedPlan
from . import threads

LOOP, SCALARS, OPERANDS, NDIM, TASKS, SPLIT, ROWS, COLUMNS, ROOM, HEADER = range(0, 80, 8)

# Rows and columns of a tile where an operand is transposed.
TILE = 32
# Elements below which one thread is faster than waking two.
PARALLEL = 1 << 17
# Bytes of an output from which on streaming stores win over reading each line before it is overwritten: a + b of f32 on
# two threads, 16 MB of output 46 against 45 GB/s, 32 MB 44 against 37, 64 MB 54 against 34 (2026-11, Sapphire Rapids).
STREAMED = 1 << 25


def _walk(context, task):
    """The task's slice of all loops."""
    operands, ndim, split = word(context + OPERANDS), word(context + NDIM), word(context + SPLIT)
    loop, scalars = word(context + LOOP), word(context + SCALARS)
    sizes = context + HEADER + 8 * operands
    strides = sizes + 8 * ndim
    room = strides + 8 * ndim * operands + task * word(context + ROOM)
    base, cell, size, index = room, room + 8 * operands, room + 16 * operands, room + 16 * operands + 8 * ndim

    whole, tasks = word(sizes + 8 * split), word(context + TASKS)
    start, stop = whole * task // tasks, whole * (task + 1) // tasks
    if start == stop:
        return
    for p in range(operands):
        step = word(strides + 8 * (split * operands + p))
        set_word(base + 8 * p, word(context + HEADER + 8 * p) + start * step)
    for d in range(ndim):
        set_word(size + 8 * d, word(sizes + 8 * d) if d != split else stop - start)
        set_word(index + 8 * d, 0)

    column_steps = strides + 8 * (ndim - 1) * operands
    row_steps = column_steps - 8 * operands
    rows, columns = word(size + 8 * (ndim - 2)), word(size + 8 * (ndim - 1))
    high, wide = word(context + ROWS), word(context + COLUMNS)
    d = 0
    while d >= 0:
        for j in range(0, rows, high):  # out[..., j:j+high, i:i+wide]
            for i in range(0, columns, wide):
                for p in range(operands):
                    ahead = j * word(row_steps + 8 * p) + i * word(column_steps + 8 * p)
                    set_word(cell + 8 * p, word(base + 8 * p) + ahead)
                h, w = min(high, rows - j), min(wide, columns - i)
                call_loop(loop, cell, h, w, row_steps, column_steps, scalars)
        d = ndim - 3  # the next element of the outer dimensions, the innermost of them fastest
        while d >= 0:
            i = word(index + 8 * d) + 1
            turn = i == word(size + 8 * d)
            for p in range(operands):
                step = word(strides + 8 * (d * operands + p))
                set_word(base + 8 * p, word(base + 8 * p) + (step * (1 - i) if turn else step))
            set_word(index + 8 * d, 0 if turn else i)
            if not turn:
                break
            d -= 1


@functools.cache
def _walker() -> int:
    return compiled(_walk, "void(int64, int64)", "walk")


@functools.cache
def _binder():
    def bind(context, scalars, first, second, third, walker):
        """Add the arrays' addresses to the context's offsets; walk at once if given a walker. The context's address."""
        context = data(context)
        set_word(context + SCALARS, data(scalars))
        at = context + HEADER
        set_word(at, word(at) + data(first))
        set_word(at + 8, word(at + 8) + data(second))
        if word(context + OPERANDS) > 2:
            set_word(at + 16, word(at + 16) + data(third))
        if walker != 0:
            call(walker, context, 0)
        return context

    return entry(bind, "int64(int64, int64, int64, int64, int64, int64)", "nest_bind")


@functools.lru_cache(maxsize=4096)
def template(plan: StridedPlan, loop: int, tasks: int) -> np.ndarray:
    """A context over `plan` that lacks only the arrays and scalars."""
    operands = len(plan.strides)
    lead = max(0, 2 - len(plan.shape))
    sizes = (1,) * lead + plan.shape
    steps = [(0,) * lead + strides for strides in plan.strides]
    ndim, (rows, columns) = len(sizes), sizes[-2:]
    split = next((d for d, n in enumerate(sizes) if n >= 8 * tasks), sizes.index(max(sizes)))
    if plan.kind == "transposed":
        rows = columns = TILE
    room = 8 * (2 * operands + 2 * ndim) + 64  # a line apart from the next task's
    header = (loop, 0, operands, ndim, tasks, split, rows, columns, room)
    words = (*header, *plan.offsets, *sizes, *(s[d] for d in range(ndim) for s in steps))
    context = np.empty(len(words) + tasks * room // 8, np.int64)
    context[: len(words)] = words
    return context


def streamed(plan: StridedPlan, itemsize: int) -> bool:
    """Whether the output should be stored past the caches: large, and written in runs of whole lines."""
    large = plan.kind in ("contiguous", "scalar") and plan.size * itemsize >= STREAMED
    return large and plan.shape[-1] * itemsize >= 8 * LINE


def run(plan: StridedPlan, loop: int, scalars: np.ndarray, out: np.ndarray, *inputs: np.ndarray) -> None:
    """Run the loops at address `loop` over `plan`: out, one or two inputs, and the scalars in the computing dtype."""
    if plan.kind == "empty":
        return
    small = plan.size < PARALLEL
    tasks = 1 if small else threads.count()
    context = template(plan, loop, tasks).copy()
    at = _binder()(id(context), id(scalars), id(out), id(inputs[0]), id(inputs[-1]), _walker() if small else 0)
    if not small:
        threads.launch(_walker(), at, tasks)
