"""Loops over operands of any strides, planned and walked by one thread without Python: what users' jitted code calls.

An operand is a block of words that its caller fills in, the output first, then two inputs and a mask, which is a
number where the loops read none:

    DATA  WIDTH (bytes of an item)  NDIM  SHAPE[MOST]  STEP[MOST] (bytes)

`fit` says what comes out; `run` makes the plan of strides.py, at every call, and walks it. A plan is words, too:

    address[OPERANDS]  size[MOST]  stride[MOST][OPERANDS]
"""

from __future__ import annotations

import functools

from ...jit.address import copy, pointer, scratch, word
from ...jit.cache import c_function, compact, jit
from ...jit.calling import call_loop
from ...strides import LINE
from .gates import SQUARE

OPERANDS, MOST = 4, 32  # dimensions, at most
DATA, WIDTH, NDIM, SHAPE = range(4)
STEP = SHAPE + MOST
BLOCK = STEP + MOST
SIZES = OPERANDS
STRIDES = SIZES + MOST + 1  # one loop stands before those of the dimensions
CELL = 8 * OPERANDS
PLAN = 8 * (STRIDES + OPERANDS * (MOST + 1))  # bytes
ORDER = 8 * MOST

DONE, MISMATCH, RESHAPED, SHARED = range(4)


# -- what comes out ---------------------------------------------------------------------------------------------------


@jit
def _distinct(out):
    """Whether every dimension steps over all that lies inside it, as strides.distinct."""
    for d in range(out[NDIM]):
        reach, step = out[WIDTH], abs(out[STEP + d])
        for e in range(out[NDIM]):
            inner = abs(out[STEP + e])
            if out[SHAPE + e] > 1 and (inner < step or (inner == step and e < d)):
                reach += inner * (out[SHAPE + e] - 1)
        if out[SHAPE + d] > 1 and step < reach:
            return False
    return True


def _fit(words, given):
    """The inputs' common shape becomes out's; one that is given must have it, and elements that share no memory."""
    compact()
    out, ndim = pointer(words), 0
    for p in range(1, OPERANDS):
        ndim = max(ndim, pointer(words + 8 * BLOCK * p)[NDIM])
    if given == 0:
        out[NDIM] = ndim
    for d in range(ndim):
        size = 1
        for p in range(1, OPERANDS):
            x = pointer(words + 8 * BLOCK * p)
            own = d - ndim + x[NDIM]
            beside = x[SHAPE + own] if own >= 0 else 1
            if size != beside and size != 1 and beside != 1:
                return MISMATCH
            size = beside if size == 1 else size
        if given == 0:
            out[SHAPE + d] = size
        elif out[NDIM] != ndim or out[SHAPE + d] != size:
            return RESHAPED
    return DONE if given == 0 or _distinct(out) else SHARED


# -- inputs that overlap the output -----------------------------------------------------------------------------------


@jit
def _meet(out, x):
    """Whether an input shares memory with out (by their extents) otherwise than element for element."""
    low, high, first, last = out[DATA], out[DATA] + out[WIDTH], x[DATA], x[DATA] + x[WIDTH]
    same = out[DATA] == x[DATA] and out[NDIM] == x[NDIM] and out[WIDTH] == x[WIDTH]
    for d in range(out[NDIM]):
        reach = (out[SHAPE + d] - 1) * out[STEP + d]
        low, high = low + min(reach, 0), high + max(reach, 0)
        same = same and out[SHAPE + d] == x[SHAPE + d] and out[STEP + d] == x[STEP + d]
    for d in range(x[NDIM]):
        reach = (x[SHAPE + d] - 1) * x[STEP + d]
        first, last = first + min(reach, 0), last + max(reach, 0)
    return first < high and low < last and not same


@jit
def _size(x):
    """Bytes of an input's items."""
    size = x[WIDTH]
    for d in range(x[NDIM]):
        size *= x[SHAPE + d]
    return size


@jit
def _move(x, to):
    """Copy an input's items to `to`, in the order of indices; the first byte after them."""
    index, at, d = pointer(scratch(ORDER)), x[DATA], 0
    x[DATA] = to
    for e in range(x[NDIM]):
        index[e] = 0
    while d >= 0:
        copy(to, at, x[WIDTH])
        to, d = to + x[WIDTH], x[NDIM] - 1
        while d >= 0:
            index[d] += 1
            at += x[STEP + d]
            if index[d] < x[SHAPE + d]:
                break
            at -= x[STEP + d] * x[SHAPE + d]
            index[d] = 0
            d -= 1
    step = x[WIDTH]
    for e in range(x[NDIM] - 1, -1, -1):
        x[STEP + e] = step
        step *= x[SHAPE + e]
    return to


# -- the plan ---------------------------------------------------------------------------------------------------------


@jit
def _described(words, f):
    """Operands as a plan's words f, dimensions as they are indexed: strides are 0 where an input is repeated."""
    out = pointer(words)
    for p in range(OPERANDS):
        x = pointer(words + 8 * BLOCK * p)
        f[p] = x[DATA]
        for d in range(out[NDIM]):
            own = d - out[NDIM] + x[NDIM]
            repeated = own < 0 or x[SHAPE + own] == 1
            f[STRIDES + d * OPERANDS + p] = 0 if repeated else x[STEP + own]
    for d in range(out[NDIM]):
        f[SIZES + d] = out[SHAPE + d]


@jit
def _outside(f, d, e):
    """1 where dimension d belongs outside e, -1 where inside, 0 where no operand tells."""
    for p in range(OPERANDS):
        a, b = abs(f[STRIDES + d * OPERANDS + p]), abs(f[STRIDES + e * OPERANDS + p])
        if a != 0 and b != 0 and a != b:
            return 1 if a > b else -1
    return 0


@jit
def _sorted(f, ndim, order):
    """Write the dimensions of more than one element to `order`, the fastest last; how many they are."""
    count = 0
    for d in range(ndim):
        if f[SIZES + d] == 1:
            continue
        at = count
        for i in range(count - 1, -1, -1):
            side = _outside(f, d, order[i])
            if side > 0:
                at = i
            elif side < 0:
                break
        for i in range(count, at, -1):
            order[i] = order[i - 1]
        order[at] = d
        count += 1
    return count


@jit
def _forward(f, d):
    """Turn dimension d round where the output (or, where that stands, the first input that does not) runs backwards."""
    at, first = STRIDES + d * OPERANDS, 0
    for p in range(OPERANDS - 1, -1, -1):
        first = f[at + p] if f[at + p] != 0 else first
    for p in range(OPERANDS if first < 0 else 0):
        f[p] += (f[SIZES + d] - 1) * f[at + p]
        f[at + p] = -f[at + p]


@jit
def _merged(f, order, count, g):
    """Dimensions in order as loops g, neighbours that are one walk joined: how many loops, the first of which, and the
    second where there is no other, goes once."""
    loops = 1 if count > 0 else 2
    for d in range(2):
        g[SIZES + d] = 1
        for p in range(OPERANDS):
            g[STRIDES + d * OPERANDS + p] = 0
    for i in range(count):
        d, last = order[i], loops - 1
        _forward(f, d)
        size, joined = f[SIZES + d], i > 0
        for p in range(OPERANDS):
            joined = joined and g[STRIDES + last * OPERANDS + p] == size * f[STRIDES + d * OPERANDS + p]
        if not joined:
            loops, last = loops + 1, loops
        g[SIZES + last] = size * (g[SIZES + last] if joined else 1)
        for p in range(OPERANDS):
            g[STRIDES + last * OPERANDS + p] = f[STRIDES + d * OPERANDS + p]
    for p in range(OPERANDS):
        g[p] = f[p]
    return loops


@jit
def _partner(g, loops):
    """The outer loop along which some input is denser than along the innermost, where it is sparse; or -1."""
    for p in range(1, OPERANDS):
        far, best = abs(g[STRIDES + (loops - 1) * OPERANDS + p]), -1
        near = far
        for d in range(1, loops if far > LINE else 1):
            step = abs(g[STRIDES + d * OPERANDS + p])
            if step != 0 and step < near:
                best, near = d, step
        if best >= 0:
            return best
    return -1


@jit
def _beside(g, loops, d):
    """Move loop d next to the innermost."""
    for e in range(d, loops - 2):
        g[SIZES + e], g[SIZES + e + 1] = g[SIZES + e + 1], g[SIZES + e]
        for p in range(STRIDES + e * OPERANDS, STRIDES + (e + 1) * OPERANDS):
            g[p], g[p + OPERANDS] = g[p + OPERANDS], g[p]


@jit
def _planned(words, g):
    """The plan g of the operands at `words`: how many loops, and whether an input is transposed."""
    f, order = pointer(scratch(PLAN)), pointer(scratch(ORDER))
    _described(words, f)
    loops = _merged(f, order, _sorted(f, word(words + 8 * NDIM), order), g)
    partner = _partner(g, loops)
    if partner >= 0:
        _beside(g, loops, partner)
    return loops, partner >= 0


# -- the walk ---------------------------------------------------------------------------------------------------------


@jit
def _walk(plan, loops, high, wide, inner, scalars):
    """Tiles of high x wide elements of the two innermost loops, one call of the inner loops each."""
    f, room, index = pointer(plan), scratch(CELL), pointer(scratch(ORDER))
    cell, rows, columns = pointer(room), f[SIZES + loops - 2], f[SIZES + loops - 1]
    down, across = STRIDES + (loops - 2) * OPERANDS, STRIDES + (loops - 1) * OPERANDS
    for d in range(loops - 2):
        index[d] = 0
    d = 0
    while d >= 0:
        for j in range(0, rows, high):
            for i in range(0, columns, wide):
                for p in range(OPERANDS):
                    cell[p] = f[p] + j * f[down + p] + i * f[across + p]
                h, w = min(high, rows - j), min(wide, columns - i)
                call_loop(inner, room, h, w, plan + 8 * down, plan + 8 * across, scalars)
        d = loops - 3
        while d >= 0:
            index[d] += 1
            turn = index[d] == f[SIZES + d]
            for p in range(OPERANDS):
                step = f[STRIDES + d * OPERANDS + p]
                f[p] += step * (1 - f[SIZES + d]) if turn else step
            if not turn:
                break
            index[d] = 0
            d -= 1


def _run(words, inner, scalars, room):
    """Call inner loops of two inputs, or of these and a mask, over the operands at `words`. Inputs that overlap the
    output are copied to `room`; without one, its size in bytes is the answer and nothing is done, else 0."""
    compact()
    out, need = pointer(words), 0
    for d in range(out[NDIM]):
        if out[SHAPE + d] == 0:
            return 0
    for p in range(1, OPERANDS):
        x = pointer(words + 8 * BLOCK * p)
        if _meet(out, x):
            if room == 0:
                need += _size(x)
            else:
                room = _move(x, room)
    if need > 0:
        return need
    plan = scratch(PLAN)
    g = pointer(plan)
    loops, transposed = _planned(words, g)
    high, wide = g[SIZES + loops - 2], g[SIZES + loops - 1]
    if transposed:
        high = wide = SQUARE
    _walk(plan, loops, high, wide, inner, scalars)
    return 0


@functools.cache
def fit():
    """int64(address of words, whether out is given): DONE, or what is wrong."""
    return c_function(_fit, "int64(int64, int64)", "within_fit")


@functools.cache
def run():
    """int64(address of words, address of loops, of their scalars, of room or 0): 0, or bytes of room."""
    return c_function(_run, "int64(int64, int64, int64, int64)", "within_run")
