"""One result of terms whose outermost dimension touches, in reduce.py's order, with nothing moved: rows side by side.

Blocks begin in row r at each column q where r * ROW + q is a multiple of 256; the last one goes on in the row below,
and so do its chains: columns from ROW on are the first ones, one row down. A row begins with the end of a block that
began before, which is dropped. The results of all blocks lie side by side, to be merged.

Where rows have parts that lie side by side, too, of a dimension that is neither the first nor the last, these are what
goes abreast: more of memory at once. Those of part p of PARTS of row r begin at term (r * PARTS + p) * ROW, so below it
is the next part of the same row, or the first one of the next.
"""

from __future__ import annotations

import functools

import numpy as np

from ...jit.abi.address import invoke, pointer, word
from ...jit.compile.cache import compiled
from ...jit.compile.lazy import jit
from ...jit.ir.vector import LINE
from ..elementwise.lines import AHEAD
from ..runtime import threads
from .fold_loop import BLOCK, LANES
from .loops import FOLD, HEADER, _gather, _innermost, _place, fold_at
from .row_vectors import END, ender, real, taker

# Bytes of a column that go together, so that L1 keeps their chains.
TALL = 1024
SHARE = 2048  # columns of a job, at least, where there are several: BLOCK more are read
# Bytes of the array and terms of a row from which turning rows is slower: 64^3 float32 248 us, so 71.
ENOUGH, LONG = 1 << 18, 1000
# Where rows have parts of a BLOCK of terms or more, and columns not so many bytes, parts go as rows: 3 x 400 x 400
# float64 620 us, so 272.
SLIM = 2 * LINE


def takes(op, loops, dtype, work) -> bool:
    """Whether a fold goes so: of one result, of rows that touch, and are long."""
    rows, item, terms = loops.sizes[0] if loops.sizes else 0, dtype.itemsize, loops.terms
    if dtype != work or not real(op, work.name) or loops.kept.shape or len(loops.sizes) < 2:
        return False
    return loops.steps[0] == item and terms * item >= ENOUGH and terms // rows >= LONG


def _beside(loops, item) -> int:
    """How many parts of a row lie side by side, and go so, as rows of their own, which are long."""
    column = loops.sizes[0] * item
    parted = len(loops.sizes) == 3 and loops.steps[1] == column <= SLIM and loops.sizes[2] >= BLOCK
    return loops.sizes[1] if parted else 1


def _dense(loops, item) -> bool:
    """Whether columns touch, and go together."""
    column = loops.sizes[0] * _beside(loops, item) * item
    return loops.terms * item == column * loops.sizes[-1] and loops.steps[-1] == column <= TALL


def words(op, loops, dtype, copy, fold, tasks):
    """The context, its size with rooms, and how many results it makes: of whole blocks, and of what is left."""
    item, (kind, each), parts = dtype.itemsize, real(op, dtype.name), _beside(loops, dtype.itemsize)
    rows = loops.sizes[0] * parts
    row, tall = loops.terms // rows, TALL // item
    groups = 1 if rows <= tall else -(-(rows + LINE // item) // tall)
    share = max(SHARE, row * groups // (4 * tasks)) if tasks > 1 else row
    share = -(-share // BLOCK) * BLOCK
    tall = min(rows, tall)
    pitch = -(-tall * item // LINE) * LINE + LINE  # and rows do not meet in few sets of L1
    if _dense(loops, item):
        pitch = rows * item
    room = 2 * LANES * pitch + tall * (END + 16) + LANES * 16 + 2 * LINE
    room = -(-max(room, BLOCK * item) // LINE) * LINE
    dims = [v for d in zip(loops.sizes, loops.steps) for v in d]
    f = FOLD.array()
    f.fold, f.copy, f.take, f.chain = fold, copy, taker(op, kind), ender(op, kind, each)
    f.jobs, f.tasks, f.length, f.chunk, f.levels = groups * -(-row // share), tasks, share, tall, parts
    f.item, f.width, f.lanes, f.reduced, f.terms = item, pitch, each, len(loops.sizes), loops.terms
    f.room, f.rooms, f.x, f.launch = room, HEADER + 8 * len(dims), loops.kept.offsets[1], threads.WORDS
    context = np.array((*f, *dims), np.int64)
    return context, len(context) + (tasks * room + LINE) // 8, -(-loops.terms // BLOCK)


@jit
def _before(context, i):
    """Rows or parts of rows whose terms come before those of the one that is number i in memory."""
    f = fold_at(context)
    rows = word(context + HEADER)
    return i % rows * f.levels + i // rows


@jit
def _together(context, x, first, count, start, stop, room):
    """The blocks that begin in `count` rows from the `first` on, in columns from start to stop."""
    f = fold_at(context)
    item, pitch, (_, longest, pace) = f.item, f.width, _innermost(context)
    parts, last = f.levels, (f.levels - 1) * word(context + HEADER)
    rows, numbers = parts * word(context + HEADER), f.lanes
    row, whole = f.terms // rows, f.terms // BLOCK
    done = room + LANES * pitch
    nowhere = done + LANES * pitch
    ends = nowhere + LINE
    firsts = pointer(ends + count * END)  # of the ends in each 16 of 256 columns; how many there are is the next one's
    for k in range(2 * LANES + 1):
        firsts[k] = 0
    for i in range(count):
        firsts[(-_before(context, first + i) * row & BLOCK - 1) // LANES + 1] += 1
    for k in range(LANES):
        firsts[k + 1] += firsts[k]
    stop, end = min(stop, row), 0
    for i in range(count - 1, -1, -1):
        start_of = _before(context, first + i) * row
        phase = -start_of & BLOCK - 1
        before = (start_of + phase) // BLOCK  # blocks that begin before this row's
        most = min((stop - phase - 1) // BLOCK + 1, whole - before)
        k = phase // LANES
        e = pointer(ends + END * (firsts[k + 1] - 1 - firsts[LANES + 1 + k]))
        firsts[LANES + 1 + k] += 1
        e[0], e[1], e[2] = room + i * item, phase % LANES, f.out + (before - 1) * item
        e[3], e[4] = start // BLOCK + 1, most
        end = max(end, phase + BLOCK * most + 1)
    left, at, alike, q = 0, x, row % LANES == 0, start
    while q < end:
        k, m, groups = q // LANES % LANES, 0, 1
        some, entries = firsts[k + 1] - firsts[k], ends + END * firsts[k]
        if some > 0:
            invoke(f.chain, (entries, some, pitch, done, q // BLOCK, nowhere, 2 if alike else 0))
        if pitch == pace and left >= LANES and (parts == 1 or q < row):  # columns touch, and go as one, 16 by 16
            most = min(left, end - q) // LANES if some == 0 or alike else 1  # until blocks end
            most = min(most, LANES - k)
            while groups < most and firsts[k + groups + 1] == firsts[k + groups]:
                groups += 1
            wide = LANES * pitch
            invoke(f.take, (room, 0, at, wide, groups, wide // item * numbers, 0))
            m, left, at = LANES, left - groups * LANES, at + groups * wide
        while m < LANES and q + m < end:
            if left == 0:
                left = longest - (q + m) % longest
                at = _place(context, x, _before(context, first) * row + q + m)
            run, ahead, to = min(LANES - m, left), AHEAD * pace if left > AHEAD else 0, room + m * pitch
            on = count if q + m < row else min(count, last - first)  # that go on in the next part
            if on > 0:
                invoke(f.take, (to, pitch, at, pace, run, on * numbers, ahead))
            over = max(first, last)
            on = min(first + count, rows - 1) - over  # from a last part to the first one of the next row
            if q + m >= row and on > 0:
                over_at = _place(context, x, _before(context, over) * row + q + m)
                to += (over - first) * item
                invoke(f.take, (to, pitch, over_at, pace, run, on * numbers, ahead))
            m, left, at = m + run, left - run, at + run * pace
        if some > 0 and not alike:
            invoke(f.chain, (entries, some, pitch, done, q // BLOCK, nowhere, 1))
        q += LANES * groups


def _walk(context, task):
    """The task's share of the jobs: rows, and columns where blocks of theirs begin."""
    f = fold_at(context)
    jobs, tasks = f.jobs, f.tasks
    tall, share = f.chunk, f.length
    terms, item, x = f.terms, f.item, f.x
    rows = word(context + HEADER) * f.levels
    lead = (x & LINE - 1) // item if rows > tall else 0  # so that the others begin with lines
    groups = jobs // ((terms // rows + share - 1) // share)
    room = (context + f.rooms + LINE) // LINE * LINE + task * f.room
    for job in range(jobs * task // tasks, jobs * (task + 1) // tasks):
        group, start = job % groups, job // groups * share
        first, last = max(0, group * tall - lead), min(rows, (group + 1) * tall - lead)
        if first < last:
            _together(context, x, first, last - first, start, start + share, room)
    rest = terms % BLOCK
    if rest > 0 and task == 0:
        _gather(context, x, terms - rest, rest, room)
        invoke(f.fold, (room, 0, 1, rest, f.out + terms // BLOCK * item))


@functools.cache
def walker() -> int:
    return compiled(_walk, "void(int64, int64)", "abreast_walk")
