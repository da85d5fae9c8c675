"""Run compiled inner loops over a StridedPlan: outer dimensions, tiles, transposed operands, a slice for each task.

A context is an array of int64: a header, address and turner of each operand, sizes and strides, room for each task.

    LOOP SCALARS OPERANDS NDIM TASKS SPLIT HIGH WIDE ROOM
    address[operands]  turner[operands]  size[ndim]  stride[ndim][operands]  tile_stride[2][operands]  room[tasks][ROOM]

The two innermost dimensions are walked in tiles of HIGH x WIDE, one call of the inner loops each. An operand with a
turner is transposed into the task's room first, so that the inner loops find it contiguous.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, field

import numpy as np

from ..jit.address import call, set_word, word
from ..jit.cache import compiled, entry
from ..jit.loops import LINE, call_loop
from ..jit.ndarray import data, ndim, shape, stride
from ..jit.turn import MOVED, TILE, call_turn, turner
from ..strides import StridedPlan
from . import threads
from .small import apart

LOOP, SCALARS, OPERANDS, NDIM, TASKS, SPLIT, HIGH, WIDE, ROOM, HEADER = range(0, 80, 8)

# Elements from which on threads share the work: 10 us of an addition where nothing is contiguous, a launch takes 2.
PARALLEL = 1 << 16
# Elements in all and in a row from which on loops are made for the very steps of the inputs, in 0.1 s, and the most
# elements that may lie between two neighbours for it.
MANY, NARROW, NEAR = 1 << 12, 64, 4
# Bytes in a row of a transposed tile, at most; it has TILE rows.
ROW = 1024
# Bytes of an output from which on streaming stores win over reading each line before it is overwritten: a + b of f32 on
# two threads, 16 MB of output 46 against 45 GB/s, 32 MB 44 against 37, 64 MB 54 against 34 (2026-11, Sapphire Rapids).
STREAMED = 1 << 25


def _walk(context, task):
    """The task's slice of all loops."""
    operands, ndim, split = word(context + OPERANDS), word(context + NDIM), word(context + SPLIT)
    loop, scalars = word(context + LOOP), word(context + SCALARS)
    turners = context + HEADER + 8 * operands
    sizes = turners + 8 * operands
    strides = sizes + 8 * ndim
    row_steps, column_steps = strides + 8 * (ndim - 2) * operands, strides + 8 * (ndim - 1) * operands
    tile_rows, tile_columns = column_steps + 8 * operands, column_steps + 16 * operands
    base = column_steps + 24 * operands + task * word(context + ROOM)
    cell, size, index = base + 8 * operands, base + 16 * operands, base + 16 * operands + 8 * ndim
    buffers = (index + 8 * ndim + LINE - 1) & -LINE

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

    rows, columns = word(size + 8 * (ndim - 2)), word(size + 8 * (ndim - 1))
    high, wide, skew = word(context + HIGH), word(context + WIDE), 0
    if wide < columns:
        skew = (word(base) & (LINE - 1)) // word(column_steps) if word(column_steps) > 0 else 0
    d = 0
    while d >= 0:
        for j in range(0, rows, high):
            i = 0
            while i < columns:  # out[..., j:j+high, i:i+w]; after the first, from the start of a line
                h, w, buffer = min(high, rows - j), min(wide - (skew if i == 0 else 0), columns - i), buffers
                for p in range(operands):
                    row_step, step = word(row_steps + 8 * p), word(column_steps + 8 * p)
                    at, turn = word(base + 8 * p) + j * row_step + i * step, word(turners + 8 * p)
                    if turn != 0:
                        pitch = word(tile_rows + 8 * p)
                        call_turn(turn, at, step, buffer, pitch, h, w)
                        at = buffer
                        buffer += high * pitch
                    set_word(cell + 8 * p, at)
                call_loop(loop, cell, h, w, tile_rows, tile_columns, scalars)
                i += w
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
def binder():
    def bind(context, scalars, out, first, second, third, width, walker):
        """Add the arrays' addresses to the context's offsets; walk at once if given a walker. The context's address.

        0, and nothing is done, where an input's extent meets out's and it is not out element for element; `width` is
        the widest item, or 0 to leave this out. `third` is 0 where there are two inputs.
        """
        for x in (first, second, third if third != 0 else out) if width != 0 else (out, out, out):
            same = data(x) == data(out) and ndim(x) == ndim(out)
            for d in range(ndim(out) if same else 0):
                own = shape(x, d) == shape(out, d) and stride(x, d) == stride(out, d) and abs(stride(x, d)) >= width
                same = same and own
            if not (same or apart(out, x, width)):
                return 0
        context = data(context)
        set_word(context + SCALARS, data(scalars))
        at = context + HEADER
        set_word(at, word(at) + data(out))
        set_word(at + 8, word(at + 8) + data(first))
        set_word(at + 16, word(at + 16) + data(second))
        if third != 0:
            set_word(at + 24, word(at + 24) + data(third))
        if walker != 0:
            call(walker, context, 0)
        return context

    return entry(bind, "int64(int64, int64, int64, int64, int64, int64, int64, int64)", "nest_bind")


@dataclass(frozen=True, eq=False)
class Nest:
    """Inner loops (their address) over a plan, of operands of `itemsizes`; `parallel` elements are worth threads."""

    plan: StridedPlan
    loop: int
    itemsizes: tuple[int, ...]
    parallel: int = PARALLEL
    contexts: dict[int, np.ndarray] = field(default_factory=dict, repr=False)

    @functools.cached_property
    def turned(self) -> tuple[int, ...]:
        """For each operand the width of its items, if tiles of it are to be transposed, else 0."""
        if self.plan.kind != "transposed":
            return (0,) * len(self.itemsizes)
        steps = zip(self.plan.strides, self.itemsizes)
        return tuple(w if s[-2] == w and abs(s[-1]) > w and w in MOVED else 0 for s, w in steps)

    def context(self, tasks: int) -> np.ndarray:
        """All of a context but the arrays and scalars."""
        operands, lead = len(self.itemsizes), max(0, 2 - len(self.plan.shape))
        sizes = (1,) * lead + self.plan.shape
        steps = [(0,) * lead + strides for strides in self.plan.strides]
        turned, ndim = self.plan.kind == "transposed", len(sizes)
        high, wide = (TILE, ROW // max(self.itemsizes)) if turned else sizes[-2:]
        tile = [(wide * w, w) if w else s[-2:] for s, w in zip(steps, self.turned)]
        split = next((d for d, n in enumerate(sizes) if n >= 8 * tasks), sizes.index(max(sizes)))
        buffers = high * wide * sum(self.turned)
        room = 8 * (2 * operands + 2 * ndim) + buffers + 2 * LINE  # a line apart from the next task's
        header = (self.loop, 0, operands, ndim, tasks, split, high, wide, room)
        turners = [turner(w) if w else 0 for w in self.turned]
        strides = [s[d] for d in range(ndim) for s in steps] + [s[d] for d in range(2) for s in tile]
        words = (*header, *self.plan.offsets, *turners, *sizes, *strides)
        context = np.empty(len(words) + tasks * room // 8, np.int64)
        context[: len(words)] = words
        return context

    def run(self, scalars: np.ndarray, out: np.ndarray, inputs: tuple[np.ndarray, ...], apart: bool) -> bool:
        """Run over two or three inputs; False, and nothing is done, where an input may overlap out.

        `apart` says that none does, other than element for element.
        """
        small = self.plan.size < self.parallel
        tasks = 1 if small else threads.count()
        if tasks not in self.contexts:
            self.contexts[tasks] = self.context(tasks)
        context, walker = self.contexts[tasks].copy(), _walker()
        width, alone = 0 if apart else max(self.itemsizes), walker if small else 0
        third = id(inputs[2]) if len(inputs) > 2 else 0
        at = binder()(id(context), id(scalars), id(out), id(inputs[0]), id(inputs[1]), third, width, alone)
        if at and not small:
            threads.launch(walker, at, tasks)
        return at != 0

    def run_all(self, arrays: tuple[np.ndarray, ...]) -> None:
        """Run over any number of operands, outputs first, of which no input overlaps an output other than element for
        element."""
        tasks = 1 if self.plan.size < self.parallel else threads.count()
        if tasks not in self.contexts:
            self.contexts[tasks] = self.context(tasks)
        context, start = self.contexts[tasks].copy(), HEADER // 8
        context[start : start + len(arrays)] += [x.__array_interface__["data"][0] for x in arrays]
        threads.launch(_walker(), context.ctypes.data, tasks)


def streamed(plan: StridedPlan, itemsize: int) -> bool:
    """Whether the output should be stored past the caches: large, and written in runs of whole lines."""
    large = plan.size * itemsize >= STREAMED
    return large and plan.strides[0][-1] == itemsize and plan.shape[-1] * itemsize >= 8 * LINE


def steps(plan: StridedPlan, itemsizes) -> tuple[int, ...]:
    """The inputs' steps in elements, where loops made for them vectorise and those for any steps would not; else ()."""
    if plan.kind != "strided" or plan.size < MANY or plan.shape[-1] < NARROW or plan.strides[0][-1] != itemsizes[0]:
        return ()
    apart = [divmod(s[-1], w) for s, w in zip(plan.strides[1:], itemsizes[1:])]
    whole = all(rest == 0 and abs(n) <= NEAR for n, rest in apart) and max(itemsizes) <= 8
    return tuple(n for n, _ in apart) if whole else ()
