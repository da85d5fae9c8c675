"""out = x folded by an associative operation, in one order for each result whatever the layout, tiles or threads.

The terms of a result are counted in C order of the dimensions that are folded, and cut into blocks of 256. A block of
fewer than 32 terms is a chain, first to last; a longer one is 16 chains, chain l of the terms l, l + 16, l + 32 ...,
folded by halves: l with l + 8, then with l + 4, + 2, + 1. Blocks are folded in pairs as they are complete, pairs in
pairs and so on; what is left over at the end is folded from the last to the first. The error of a sum grows with the
logarithm of its length. Where no order shows in the bits (integers, bools, the larger of two) there are no blocks.

    rows      terms that touch, or are nearer than the results are: compiled code folds whole rows of them, at once
              from where they lie, or from a buffer in L1 to which GATHER of them are copied
    columns   neighbouring results at once: a chain is a row of partial results, to which rows of terms are added
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np
from numba import types

from .. import scalar
from ..dtypes import HALVES, known, neutral
from ..jit.address import call, invoke, pointer, scratch, set_word, word
from ..jit.cache import compiled, entry, jit
from ..jit.fold import BLOCK, DEALT, LANES, Fold, call_fold
from ..jit.fold import address as fold_address
from ..jit.loops import Loop, address, call_binary, call_loop
from ..jit.ndarray import OBJECT, address_of, data, shape
from ..jit.turn import MOVED, TILE, turner
from ..jit.vector import LINE
from ..strides import reduce_plan
from . import threads, walk
from .nest import binder

# Bytes of terms from which on threads pay: 60 us of one thread's.
PARALLEL = 1 << 21
# Terms that are copied together where they do not touch, a power of two of blocks.
GATHER = 4096
# Bytes of a context and a room that go to the stack.
SMALL = 1 << 15
# Bytes of transposed rows, at most, and of those that more than 16 rows may take.
STAGE, NARROW = 1 << 20, 1 << 20
# Terms of one result that a thread folds at a time, at least.
SHARE = BLOCK << 6
# Bytes of a row of partial results, one of 16 or alone: the longer rows are, the better memory streams, and L2 holds 16
# of 16 KB (4096 x 4096 f32 by columns: of 1 KB 7.0 ms, of 4 KB 5.7, of 16 KB 4.2).
WIDE, ALONE = 16384, 4096
# Rows of terms that go to a row of partial results at once, with one store in place of five: 16 + 3 * 5 * 16 = 256.
FUSED = 5
DESK = 192  # bytes of what a call of fused loops reads: addresses and steps
# Operations whose results have the same bits in any order, of floats too.
EXACT = ("maximum", "minimum", "fmax", "fmin", "logical_and", "logical_or", "logical_xor")

# The context: words in the order of these names, then for each kept dimension size, output and input stride, for each
# reduced one size and stride. NEUTRAL and OUT are where the binder puts addresses. FOLD is 0 for columns; TAKE, CHAIN,
# MERGE, FIRST and GIVE are loops: one row of terms or FUSED of them to partial results, partial results to others, the
# first terms, results to the output. TURN is 0, or what transposes the terms of one result where the outermost of its
# dimensions is the one that touches, HIGH rows of the others at a time.
FOLD, NEUTRAL, JOBS, TASKS, COPY, WIDTH, CHUNK, LENGTH, ROOM, OUT, IN, _, KEPT, REDUCED, TERMS = range(0, 120, 8)
TAKE, CHAIN, MERGE, FIRST, GIVE, ITEM, LANE, LEVELS, ROOMS, TURN, HIGH, HEADER = range(120, 216, 8)
assert (NEUTRAL, OUT) == (8 * walk.SCALARS, 8 * walk.HEADER)


@jit
def _place(context, x, first):
    """Address of term `first` of the result whose terms begin at x."""
    dimensions = word(context + REDUCED)
    inner = context + HEADER + 24 * word(context + KEPT) + 16 * (dimensions - 1)
    for d in range(dimensions):
        size = word(inner - 16 * d)
        x += first % size * word(inner - 16 * d + 8)
        first //= size
    return x


@jit
def _merge(context, stack, top, count, columns):
    """Fold the pairs that are complete after `count` results were pushed; the new top."""
    width = word(context + WIDTH)
    pitch = columns * width
    while count % 2 == 0:
        x = stack + (top - 2) * pitch
        call_binary(word(context + MERGE), x, x, x + pitch, 1, columns, 0, 0, 0, width, width, width)
        top -= 1
        count //= 2
    return top


@jit
def _gather(context, x, first, length, buffer):
    """Copy terms to a buffer, run by run."""
    item, dimensions = word(context + ITEM), word(context + REDUCED)
    inner = context + HEADER + 24 * word(context + KEPT) + 16 * (dimensions - 1)
    longest, pace = word(inner), word(inner + 8)
    while length > 0:
        run, at = min(length, longest - first % longest), _place(context, x, first)
        call_binary(word(context + COPY), buffer, at, at, 1, run, 0, 0, 0, item, pace, pace)
        first, length, buffer = first + run, length - run, buffer + run * item


@jit
def _rows(context, x, columns, step, stack):
    """`columns` results, whose first terms are `step` bytes apart, to a row at `stack`."""
    fold, terms, item, width = word(context + FOLD), word(context + TERMS), word(context + ITEM), word(context + WIDTH)
    buffer = stack + word(context + LEVELS) * word(context + CHUNK) * width
    dimensions = word(context + REDUCED)
    inner = context + HEADER + 24 * word(context + KEPT) + 16 * (dimensions - 1)
    longest, pace = word(inner), word(inner + 8)
    if dimensions == 1 and pace == item:
        call_fold(fold, x, step, columns, terms, stack)
    elif word(context + TURN) != 0:
        _turned(context, x, stack, buffer)
    elif terms <= GATHER:
        several = GATHER // terms
        for i in range(0, columns, several):
            n, first = min(several, columns - i), x + i * step
            if dimensions == 1:
                copy = word(context + COPY)
                call_binary(copy, buffer, first, first, n, terms, terms * item, step, step, item, pace, pace)
            else:
                for j in range(n):
                    _gather(context, first + j * step, 0, terms, buffer + j * terms * item)
            call_fold(fold, buffer, terms * item, n, terms, stack + i * width)
    else:
        pitch, group, top = columns * width, word(context + LENGTH), 0
        for start in range(0, terms, group):
            length = min(group, terms - start)
            direct = pace == item and longest - start % longest >= length
            source = _place(context, x, start)
            for i in range(columns):
                if not direct:
                    _gather(context, x + i * step, start, length, buffer)
                at = source + i * step if direct else buffer
                call_fold(fold, at, 0, 1, length, stack + top * pitch + i * width)
            top = _merge(context, stack, top + 1, start // group + 1, columns) if length == group else top + 1
        while top > 1:
            top = _merge(context, stack, top, 2, columns)


@jit
def _turned(context, x, stack, stage):
    """One result of terms that are to be transposed: rows of them at a time to a stage in L2."""
    fold, terms, item, width = word(context + FOLD), word(context + TERMS), word(context + ITEM), word(context + WIDTH)
    dims = context + HEADER + 24 * word(context + KEPT)
    inner = dims + 16 * (word(context + REDUCED) - 1)
    longest, pace, rows, high, group = word(inner), word(inner + 8), word(dims), word(context + HIGH), GATHER
    row_terms = terms // rows
    buffer, top, staged = stage + high * row_terms * item, 0, -1
    for start in range(0, terms, group):
        length, done, source = min(group, terms - start), 0, buffer
        while done < length:
            first = start + done
            row = first // row_terms // high * high
            if row != staged:
                for part in range(0, row_terms, longest):
                    at, to = _place(context, x, row * row_terms + part), stage + part * item
                    h = min(high, rows - row)
                    invoke(word(context + TURN), (at, pace, to, row_terms * item, h, longest, 0, 0))
                staged = row
            run = min(length - done, (row + high) * row_terms - first)
            at = stage + (first - row * row_terms) * item
            if run == length:
                source = at
            else:
                call_binary(word(context + COPY), buffer + done * item, at, at, 1, run, 0, 0, 0, item, item, item)
            done += run
        call_fold(fold, source, 0, 1, length, stack + top * width)
        top = _merge(context, stack, top + 1, start // group + 1, 1) if length == group else top + 1
    while top > 1:
        top = _merge(context, stack, top, 2, 1)


@jit
def _block(context, x, first, length, columns, step, desk, partial, target):
    """Folds of `length` terms from `first` on, of `columns` results `step` bytes apart, to a row at `target`."""
    width, lanes = word(context + WIDTH), word(context + LANE)
    if length < DEALT or lanes == 1:
        lanes, partial = 1, target
    pitch = columns * width
    dimensions = word(context + REDUCED)
    inner = context + HEADER + 24 * word(context + KEPT) + 16 * (dimensions - 1)
    longest, pace = word(inner), word(inner + 8)
    k = 0
    while k < length:
        lane, run = k % lanes, min(length - k, longest - (first + k) % longest)
        at, to = _place(context, x, first + k), partial + lane * pitch
        if k >= lanes and lane == 0 and run >= FUSED * lanes:
            one = pace == columns * step
            for p in range(FUSED):
                set_word(desk + 16 + 8 * p, at + p * lanes * pace)
                set_word(desk + 80 + 8 * p, pace)
                set_word(desk + 144 + 8 * p, step)
            for p in range(0, 16, 8):
                set_word(desk + p, partial)
                set_word(desk + 64 + p, pitch)
                set_word(desk + 128 + p, width)
            rows, wide = (1, lanes * columns) if one else (lanes, columns)
            call_loop(word(context + CHAIN), desk, rows, wide, desk + 64, desk + 128, 0)
            k += FUSED * lanes
            continue
        rows = min(lanes - lane, run)
        if k < lanes:
            call_binary(word(context + FIRST), to, at, at, rows, columns, pitch, pace, pace, width, step, step)
        else:
            call_binary(word(context + TAKE), to, to, at, rows, columns, pitch, pitch, pace, width, width, step)
        k += rows
    merge, half = word(context + MERGE), lanes // 2
    while half > 0:
        out = partial if half > 1 else target
        call_binary(merge, out, partial, partial + half * pitch, 1, half * columns, 0, 0, 0, width, width, width)
        half //= 2


@jit
def _columns(context, x, columns, step, stack):
    """The same, `columns` results side by side."""
    width, terms, longest = word(context + WIDTH), word(context + TERMS), word(context + LENGTH)
    pitch = columns * width
    desk = stack + (word(context + LEVELS) * word(context + CHUNK) * width + LINE - 1) // LINE * LINE
    partial = desk + DESK
    top, start, count = 0, 0, 0
    while start < terms:
        length = min(longest, terms - start)
        _block(context, x, start, length, columns, step, desk, partial, stack + top * pitch)
        start += length
        count += 1
        top = _merge(context, stack, top + 1, count, columns) if length == longest else top + 1
    while top > 1:
        top = _merge(context, stack, top, 2, columns)


def _walk(context, task):
    """The task's share of the jobs: chunks of the innermost kept dimension, for each place in the outer ones."""
    chunk, kept, jobs, tasks = word(context + CHUNK), word(context + KEPT), word(context + JOBS), word(context + TASKS)
    dims, width = context + HEADER, word(context + WIDTH)
    inner = dims + 24 * (kept - 1)
    length, out_step, step = word(inner), word(inner + 8), word(inner + 16)
    room = (context + word(context + ROOMS) + LINE) // LINE * LINE + task * word(context + ROOM)
    for job in range(jobs * task // tasks, jobs * (task + 1) // tasks):
        chunks = (length + chunk - 1) // chunk
        first, rest = job % chunks * chunk, job // chunks
        out, x = word(context + OUT) + first * out_step, word(context + IN) + first * step
        for d in range(kept - 2, -1, -1):
            i = rest % word(dims + 24 * d)
            rest //= word(dims + 24 * d)
            out += i * word(dims + 24 * d + 8)
            x += i * word(dims + 24 * d + 16)
        columns = min(chunk, length - first)
        if word(context + FOLD) != 0:
            _rows(context, x, columns, step, room)
        else:
            _columns(context, x, columns, step, room)
        call_binary(word(context + GIVE), out, room, word(context + NEUTRAL), 1, columns, 0, 0, 0, out_step, width, 0)


@functools.cache
def _walker() -> int:
    return compiled(_walk, "void(int64, int64)", "reduce_walk")


class Ready(NamedTuple):
    """A fold but for its arrays: a context without their addresses, and its size with a room for each task."""

    words: np.ndarray
    size: int
    nothing: np.ndarray
    tasks: int

    def run(self, out, x) -> None:
        if self.tasks == 1 and 8 * self.size <= SMALL:
            _at_once()(self.words, self.nothing, out, x, _walker())
            return
        context, walker = np.empty(self.size, np.int64), _walker()
        context[: len(self.words)] = self.words
        alone = walker if self.tasks == 1 else 0
        at = binder()(id(context), id(self.nothing), id(out), id(x), id(x), 0, 0, alone)
        if not alone:
            threads.launch(walker, at, self.tasks)


@functools.cache
def _at_once():
    def at_once(words, nothing, out, x, walker):
        """One thread's fold, with a context and a room on the stack."""
        words, context = address_of(words), scratch(SMALL)
        source, f = pointer(data(words)), pointer(context)
        for i in range(shape(words, 0)):
            f[i] = source[i]
        f[walk.SCALARS] = data(address_of(nothing))
        f[walk.HEADER] += data(address_of(out))
        f[walk.HEADER + 1] += data(address_of(x))
        call(walker, context, 0)

    return entry(at_once, types.void(OBJECT, OBJECT, OBJECT, OBJECT, types.int64), "reduce_at_once")


@functools.lru_cache(maxsize=4096)
def prepared(op, shapes, strides, out: np.dtype, dtype: np.dtype, work: np.dtype, tasks: int) -> Ready:
    """A fold of an input into an output of these dtypes, in `work`, by so many tasks."""
    loops = reduce_plan(shapes, strides, dtype.itemsize)
    lead = () if loops.kept.shape else (1,)
    kept = (*lead, *loops.kept.shape)
    to, steps = ((0,) * len(lead) + s for s in loops.kept.strides)
    sizes, paces = loops.sizes or (1,), loops.steps or (dtype.itemsize,)
    width, item, exact = work.itemsize, dtype.itemsize, work.kind in "biu" or op in EXACT
    across = kept[-1] > 1 and abs(steps[-1]) <= min(abs(p) for p in paces)
    lanes = 1 if exact or loops.terms < DEALT else LANES
    chunk = min(kept[-1], -(-kept[-1] // tasks), max(16, (WIDE if lanes > 1 else ALONE) // width))
    if across:
        length = loops.terms if exact else BLOCK
    else:  # a power of two of blocks: as many as a run has, where that is whole
        length = next((n for n in (GATHER >> i for i in range(5)) if sizes[-1] % n == 0), GATHER)
    row = loops.terms // sizes[0] * item
    turn = np.prod(kept) == 1 and len(sizes) > 1 and item in MOVED and paces[0] == item and loops.terms > GATHER
    turn, high = turn and 16 * row <= STAGE, TILE if TILE * row <= NARROW else 16
    length = GATHER if turn else length
    levels = (loops.terms // length).bit_length() + 1
    room = levels * chunk * width + (DESK + lanes * chunk * width if across else GATHER * item + turn * high * row)
    room = -(-room // LINE) * LINE + 2 * LINE
    jobs = -(-kept[-1] // chunk) * int(np.prod(kept[:-1], dtype=int))
    inner = 0 if across else _rows_of(op, dtype, work, exact)
    copy = 0 if across else _copies(*(np.dtype(f"V{item}"),) * 3)
    give = _loop(op, work, work, out) if loops.terms == 1 and op in ("hypot", "gcd") else _copies(work, work, out)
    take, chain = (_loop(op, work, dtype, work, n) if across and loops.terms > 1 else 0 for n in (1, FUSED))
    first = _copies(dtype if across else work, work, work)
    merge = _loop(op, work, work, work)
    header = (inner, 0, jobs, tasks, copy, width, chunk, length, room, *loops.kept.offsets, 0)
    counts = (len(kept), len(sizes), loops.terms, take, chain, merge, first, give, item, lanes, levels)
    dims = [v for d in zip(kept, to, steps) for v in d] + [v for d in zip(sizes, paces) for v in d]
    words = 8 * (HEADER // 8 + len(dims))
    context = np.array((*header, *counts, words, turner(item) if turn else 0, high, *dims), np.int64)
    return Ready(context, len(context) + (tasks * room + LINE) // 8, neutral(op, work), tasks)


@functools.cache
def _loop(op, work, dtype, out, terms=1):
    """The loops of op(a partial result, a term), or of a chain of several terms, as what goes to `out`."""
    names = (work.name,) + (dtype.name,) * terms
    return address(Loop(scalar.find(op, work), names, (work.name,) * (terms + 2), out.name, chained=terms > 1))


@functools.cache
def _copies(dtype, work, out):
    """The loops of a copy by way of the dtype `work`; of items without one, whatever their bits mean."""
    if dtype.kind == "V" and dtype.name not in HALVES:
        dtype = work = out = np.dtype({1: "u1", 2: "u2", 4: "u4", 8: "u8", 16: "c16"}[dtype.itemsize])
    return address(Loop(scalar.common.first, (dtype.name,) * 2, (work.name,) * 3, out.name))


@functools.cache
def _rows_of(op, dtype, work, exact):
    return fold_address(Fold(scalar.find(op, work), dtype.name, work.name, exact))


def sum_to_fast(self, size, out):
    """The sum in a new array; None where the general path has to do it or say what is wrong."""
    plan = _planned(self.dtype, self.shape, self.strides, tuple(size)) if out is None and type(size) is tuple else None
    if plan is None:
        return None
    out = np.empty(size, self.dtype)
    if self.nbytes < PARALLEL:
        plan.run(out, self)
    else:
        fold("add", out, self, working(self.dtype))
    return out if size else out[()]


@functools.lru_cache(maxsize=4096)
def _planned(dtype, shape, strides, size):
    """A sum to a smaller shape, or None."""
    lead = len(shape) - len(size)
    fits = lead >= 0 and all(type(n) is int and n in (1, m) for n, m in zip(size, shape[max(lead, 0) :]))
    if not fits or shape == size or 0 in shape or not known(dtype) or dtype.kind == "b":
        return None
    out = np.empty(size, dtype)
    return prepared("add", (size, shape), (out.strides, strides), dtype, dtype, working(dtype), 1)


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
    tasks = threads.count() if x.nbytes >= PARALLEL else 1
    if tasks > 1 and out.size < 64 and x.size // out.size >= 2 * SHARE:
        shares = _shares(op, out.shape, x.shape, out.strides, x.strides, x.dtype, work, tasks)
        if shares is not None:
            shares.run(op, out, x, work)
            return
    prepared(op, (out.shape, x.shape), (out.strides, x.strides), out.dtype, x.dtype, work, tasks).run(out, x)


class Shares(NamedTuple):
    """Few results by many threads: shares of their terms are folded apart, then merged as the pairs of blocks are.

    A share is a power of two of SHAREs, so its result is one that a single thread would have on its stack. `whole` of
    them, and the rest, None where there is none.
    """

    whole: int
    each: Ready
    rest: Ready | None

    def run(self, op, out, x, work) -> None:
        results = np.empty((self.whole + 1, out.size), work)
        self.each.run(results, x)
        if self.rest is not None:
            self.rest.run(results[self.whole], x)
        loops = _loop(op, work, work, work)
        _merger()(loops, id(results), self.whole, self.rest is not None, out.size, work.itemsize)
        np.copyto(out, results[0].reshape(out.shape), casting="unsafe")


@functools.lru_cache(maxsize=1024)
def _shares(op, target, source, to, strides, dtype, work, tasks) -> Shares | None:
    """How a fold is shared out; None where its terms are not at one distance."""
    flat = reduce_plan((target, source), (to, strides), dtype.itemsize)
    if len(flat.sizes) != 1:
        return None
    share, terms, (step,) = SHARE, flat.terms, flat.steps
    while terms // (2 * share) >= 8 * tasks:
        share *= 2
    whole, lead = terms // share, len(source) - len(target)
    kept = [d for d in range(len(source)) if d >= lead and target[d - lead] == source[d]]
    sizes, paces = tuple(source[d] for d in kept), tuple(strides[d] for d in kept)
    dense = np.empty((whole, *sizes, 1), work).strides

    def folds(count, length, tasks):
        shapes = (*count, *sizes, 1), (*count, *sizes, length)
        steps = dense[-len(shapes[0]) :], (*(share * step for _ in count), *paces, step)
        return prepared(op, shapes, steps, work, dtype, work, tasks)

    rest = folds((), terms - whole * share, 1) if terms > whole * share else None
    if rest is not None:
        words = rest.words.copy()
        words[IN // 8] += whole * share * step
        rest = rest._replace(words=words)
    return Shares(whole, folds((whole,), share, tasks), rest)


@functools.cache
def _merger():
    def merge(loops, results, whole, rest, columns, width):
        """Fold `whole` rows of results, and one of a rest, into the first: in pairs, pairs in pairs and so on; what is
        left over from the last to the first."""
        results, pitch, apart = data(results), columns * width, 1
        while 2 * apart <= whole:
            for i in range(0, whole - 2 * apart + 1, 2 * apart):
                x = results + i * pitch
                call_binary(loops, x, x, x + apart * pitch, 1, columns, 0, 0, 0, width, width, width)
            apart *= 2
        last = whole if rest else -1
        for k in range(63):
            if whole >> k & 1:
                x = results + (whole >> k + 1 << k + 1) * pitch
                if last >= 0:
                    call_binary(loops, x, x, results + last * pitch, 1, columns, 0, 0, 0, width, width, width)
                last = whole >> k + 1 << k + 1

    return entry(merge, "void(int64, int64, int64, boolean, int64, int64)", "reduce_merge")
