"""out = x folded by an associative operation, in one order for each result whatever the layout, tiles or threads.

The terms of a result are counted in C order of the dimensions that are folded, and cut into blocks of 256. A block of
fewer than 32 terms is a chain, first to last; a longer one is 16 chains, chain l of the terms l, l + 16, l + 32 ...,
folded by halves: l with l + 8, then with l + 4, + 2, + 1. Blocks are folded in pairs as they are complete, pairs in
pairs and so on; what is left over at the end is folded from the last to the first. The error of a sum grows with the
logarithm of its length. Where no order shows in the bits (integers, bools, the larger of two) there are no blocks.

    rows      terms that touch, or are nearer than the results are: compiled code folds whole rows of them, at once
              from where they lie, or from a buffer in L1 to which GATHER of them are copied; those of one result
              whose outermost dimension touches are transposed, some rows at a time, or go by row_blocks.py
    columns   neighbouring results at once: a chain is a row of partial results, to which rows of terms are
              added; so go whole blocks, as results of their own, where rows across memory have no others
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from ... import scalar
from ...dtypes import HALVES, SIGNLESS, known, neutral
from ...jit.ir.short_rows import NEAR
from ...jit.ir.turn import TILE, turner
from ...jit.ir.vector import LINE
from ...operations import ANY_ORDER, BINARY
from ...strides import reduce_plan, rows
from ..elementwise.gates import MANY
from ..elementwise.loop import Loop
from ..elementwise.loops import address
from ..runtime import threads
from . import first_folds, row_blocks
from .fold_loop import BLOCK, Fold
from .fold_loop import address as fold_address
from .loops import FOLD, FUSED, MERGING, SMALL, at_once, together, walker
from .plan import SHARE, cut, shared, turned, whole_blocks, workers

FIRST = first_folds.patience
NOWHERE = np.empty(0, np.int64)
# Operations whose results have the same bits in any order, of floats too.
EXACT = frozenset(op for op, row in BINARY.items() if row.fold == ANY_ORDER)


class Ready(NamedTuple):
    """A fold but for its arrays: a context without their addresses, its size with a room for each task, and what does
    all of a small one.

    Where there is a `merging` (see loops.MERGING) parts of each result are folded apart, then merged as the pairs of
    blocks are: a part is a power of two of SHAREs, or a block, so its result is one that a single thread would have on
    its stack. What is over is folded with them, or by the words of a `rest`.
    """

    words: np.ndarray
    size: int
    nothing: np.ndarray
    tasks: int
    at_once: Callable | None = None
    walker: Callable = walker
    merging: np.ndarray = NOWHERE
    rest: np.ndarray = NOWHERE

    def run(self, out, x) -> None:
        if self.at_once is not None:
            self.at_once(out, x)
            return
        results, made = NOWHERE, out
        if self.merging.size:
            f = MERGING.array(self.merging.tobytes())
            results = np.empty(f.rows * f.columns * f.width, np.uint8)
            made = out if out.flags.c_contiguous else np.empty(out.shape, out.dtype)
        if self.tasks > 1:
            threads.open_up()
        context, go = np.empty(self.size, np.int64), self.walker()
        together()(self.words, self.rest, self.merging, self.nothing, go, context, results, made, x)
        if made is not out:
            np.copyto(out, made)


def _exact(op, work) -> bool:
    """Whether no order shows in the bits of a fold."""
    return work.kind in "biu" or (op in EXACT and work.kind != "c")  # of two complex NaNs the first one comes out


@functools.lru_cache(maxsize=4096)
def prepared(op, shapes, strides, out: np.dtype, dtype: np.dtype, work: np.dtype, tasks: int) -> Ready:
    """A fold of an input into an output of these dtypes, in `work`, by so many tasks."""
    exact = _exact(op, work)
    loops = reduce_plan(shapes, strides, dtype.itemsize, ordered=not exact)
    kept = rows(loops.kept.shape, loops.kept.strides) or [1, 0, 0]
    reduced = rows(loops.sizes, (loops.steps,)) or [1, dtype.itemsize]
    f, dims = FOLD.array(), kept + reduced
    f.kept, f.reduced, f.tasks, f.launch = len(kept) // 3, len(reduced) // 2, tasks, threads.WORDS
    f.item, f.width, f.high = dtype.itemsize, work.itemsize, turned(loops, dtype.itemsize)
    f.turn = turner(dtype.itemsize) if f.high else 0
    across = cut(f, dims, exact)
    f.rooms, (f.out, f.x) = FOLD.bytes + 8 * len(dims), loops.kept.offsets
    if not across:
        many = loops.terms * loops.kept.size >= MANY
        f.copy = copies_of_items(f.item, reduced[-1] if many else f.item)
        f.fold = _rows_of(op, dtype, work, exact)
    f.give = _loop(op, work, work, out) if loops.terms == 1 and op in SIGNLESS else copies(work, work, out)
    if across and loops.terms > 1:
        f.take, f.chain = (_loop(op, work, dtype, work, n) for n in (1, FUSED))
    f.first, f.merge = copies(dtype if across else work, work, work), _loop(op, work, work, work)
    context, nothing = np.array((*f, *dims), np.int64), neutral(op, work)
    size = len(context) + (tasks * f.room + LINE) // 8
    small = tasks == 1 and 8 * size <= SMALL
    return Ready(context, size, nothing, tasks, partial(at_once(), context, nothing, walker()) if small else None)


def _by_blocks(op, loops, out, dtype, work, tasks) -> Ready:
    """One result of terms that are neighbours only across their rows, of whole blocks each: sums of all blocks, which
    are neighbours then, and of these the result."""
    *outer, last = zip(loops.sizes, loops.steps)
    sizes, steps = zip(*outer, (last[0] // BLOCK, last[1] * BLOCK))
    shapes = (*sizes, 1), (*sizes, BLOCK)
    count, strides = loops.terms // BLOCK, (np.empty(shapes[0], work).strides, (*steps, last[1]))
    each = prepared(op, shapes, strides, work, dtype, work, tasks)
    return each._replace(at_once=None, merging=_merging(op, count, count, 1, work, out))


@functools.cache
def _loop(op, work, dtype, out, terms=1):
    """The loops of op(a partial result, a term), or of a chain of several terms, as what goes to `out`."""
    names = (work.name,) + (dtype.name,) * terms
    return address(Loop(scalar.find(op, work), names, (work.name,) * (terms + 2), out.name, chained=terms > 1))


@functools.cache
def copies(dtype, work, out, **how):
    """The loops of a copy by way of the dtype `work`."""
    return address(Loop(scalar.common.first, (dtype.name,) * 2, (work.name,) * 3, out.name, **how))


def copies_of_items(size, apart):
    """The loops of a copy of items of so many bytes, whatever they mean; of what lies so far apart by vectors."""
    kind, (near, rest) = np.dtype({1: "u1", 2: "u2", 4: "u4", 8: "u8", 16: "c16"}[size]), divmod(apart, size)
    how = {"steps": (near, near), "light": True} if near != 1 and abs(near) <= NEAR and size < 16 and not rest else {}
    return copies(kind, kind, kind, **how)


@functools.cache
def _rows_of(op, dtype, work, exact):
    return fold_address(Fold(scalar.find(op, work), dtype.name, work.name, exact))


def sum_to_fast(self, size, out):
    """The sum in a new array; None where the general path has to do it or say what is wrong."""
    if out is not None or type(size) is not tuple or (FIRST.waits and first_folds.first("add", self)):
        return None
    plan = _planned(self.dtype, self.shape, self.strides, size, workers(self))
    if plan is None:
        return None
    if size == self.shape:
        return self
    out = np.zeros(size, self.dtype) if self.size == 0 else np.empty(size, self.dtype)
    if self.size:
        plan.run(out, self)
    return out if size else out[()]


@functools.lru_cache(maxsize=4096)
def _planned(dtype, shape, strides, size, tasks):
    """A sum to a shape, which is made where that is smaller and not of nothing; or None."""
    lead = len(shape) - len(size)
    fits = lead >= 0 and all(type(n) is int and n in (1, m) for n, m in zip(size, shape[max(lead, 0) :]))
    if not fits or not known(dtype) or dtype.kind == "b":
        return None
    if shape == size or 0 in shape:
        return ()
    out = np.empty(size, dtype)
    return planned("add", (size, shape), (out.strides, strides), dtype, dtype, working(dtype), tasks)


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
    if first_folds.fold(op, out, x, work):
        return
    planned(op, (out.shape, x.shape), (out.strides, x.strides), out.dtype, x.dtype, work, workers(x)).run(out, x)


@functools.lru_cache(maxsize=4096)
def planned(op, shapes, strides, out: np.dtype, dtype: np.dtype, work: np.dtype, tasks: int) -> Ready:
    """Plan a fold: by blocks, by row_blocks.py, or by shares where threads share few results, else as `prepared`."""
    results, found = math.prod(shapes[0]), None
    loops = reduce_plan(shapes, strides, dtype.itemsize)
    if whole_blocks(loops, dtype.itemsize) and not _exact(op, work):
        found = _by_blocks(op, loops, out, dtype, work, tasks)
    elif row_blocks.takes(op, loops, dtype, work):
        found = _by_rows(op, loops, out, dtype, tasks)
    elif tasks > 1 and results < 64 and math.prod(shapes[1]) // results >= 2 * SHARE:
        found = _shares(op, *shapes, *strides, out, dtype, work, tasks)
    return found or prepared(op, shapes, strides, out, dtype, work, tasks)


def _by_rows(op, loops, out, dtype, tasks) -> Ready:
    """One result of rows that touch: its blocks by row_blocks.py."""
    copy, fold = copies_of_items(dtype.itemsize, dtype.itemsize), _rows_of(op, dtype, dtype, False)
    words, size, count = row_blocks.words(op, loops, dtype, copy, fold, tasks)
    merging = _merging(op, loops.terms // BLOCK, count, 1, dtype, out)
    return Ready(words, size, neutral(op, dtype), tasks, walker=row_blocks.walker, merging=merging)


def _merging(op, whole, rows, columns, work, out):
    """Return the MERGING record of `rows` partial results in `work`, the first `whole` of them of whole shares."""
    f = MERGING.array()
    f.merge, f.give = _loop(op, work, work, work), copies(work, work, out)
    f.whole, f.rows, f.columns, f.width, f.wide = whole, rows, columns, work.itemsize, out.itemsize
    return np.array(f, np.int64)


def _shares(op, target, source, to, strides, out, dtype, work, tasks) -> Ready | None:
    """How a fold is shared out; None where its terms are neither at one distance nor to be transposed."""

    def made(whole, over, each, rest=NOWHERE, size=0):
        merging = _merging(op, whole, whole + over, math.prod(target), work, out)
        return each._replace(size=max(each.size, size), merging=merging, rest=rest)

    flat = reduce_plan((target, source), (to, strides), dtype.itemsize)
    share, terms = shared(flat.terms, tasks), flat.terms
    whole, lead = terms // share, len(source) - len(target)
    if len(flat.sizes) != 1:
        alone = prepared(op, (target, source), (to, strides), work, dtype, work, 1)
        if not alone.words[FOLD["turn"]]:
            return None
        while share < TILE * flat.terms // flat.sizes[0]:  # a share turns whole rows, and those at its ends in vain
            share *= 2
        whole = terms // share
        if whole < tasks:
            return None
        over = terms > whole * share
        return made(whole, over, _turned_shares(alone, whole + over, share, tasks))
    (step,) = flat.steps
    kept = [d for d in range(len(source)) if d >= lead and target[d - lead] == source[d]]
    sizes, paces = tuple(source[d] for d in kept), tuple(strides[d] for d in kept)
    dense = np.empty((whole, *sizes, 1), work).strides

    def folds(count, length, tasks):
        shapes = (*count, *sizes, 1), (*count, *sizes, length)
        steps = dense[-len(shapes[0]) :], (*(share * step for _ in count), *paces, step)
        return prepared(op, shapes, steps, work, dtype, work, tasks)

    each = folds((whole,), share, tasks)
    if terms == whole * share:
        return made(whole, 0, each)
    rest = folds((), terms - whole * share, 1)
    words = rest.words.copy()
    words[FOLD["x"]] += whole * share * step
    return made(whole, 1, each, words, rest.size)


def _turned_shares(alone, count, share, tasks) -> Ready:
    """The shares of a fold of terms that are to be transposed: a job each, whose results lie side by side."""
    f, levels = FOLD.array(alone.words[: FOLD.words].tobytes()), share // BLOCK + 1
    f.room -= (f.levels - levels) * f.width // LINE * LINE  # room of blocks of the others
    f.jobs, f.tasks, f.length, f.levels = count, tasks, share, levels
    dims = count, f.width, 0, *alone.words[FOLD.words + 3 :]  # the one kept dimension: size, steps
    words = np.array((*f, *dims), np.int64)
    size = len(words) + (tasks * f.room + LINE) // 8
    return alone._replace(words=words, size=size, tasks=tasks, at_once=None)
