"""Loops over operands of any strides, planned and walked by one thread without Python: what users' jitted code calls.

An operand is an Operand that its caller fills in, the output first, then two inputs and a mask, which is a number where
the loops read none. `fit` says what comes out; `run` makes the plan of strides.py, at every call, and walks it.
"""

from __future__ import annotations

import functools

from ... import strides
from ...jit.abi.address import copy, invoke, pointer, scratch
from ...jit.abi.record import Record, address
from ...jit.compile.cache import c_function
from ...jit.compile.lazy import compact, jit
from ...jit.ir.turn import TILE

OPERANDS, MOST = 4, 32  # dimensions, at most
ROW = 1 + OPERANDS
# An array: its address, bytes of an item, dimensions; sizes and strides in bytes.
OPERAND = Record("Operand", f"data width ndim shape[{MOST}] step[{MOST}]")
# A plan: addresses of the first elements, a loop that goes once, and those of the dimensions.
LOOPS = Record("Loops", f"base[{OPERANDS}] lead[{ROW}] dims[{ROW * MOST}]")
operand_at, loops_at, BLOCK, PLAN = OPERAND.pointer(), LOOPS.pointer(), OPERAND.bytes, LOOPS.bytes
CELL, ORDER = 8 * OPERANDS, 8 * MOST

DONE, MISMATCH, RESHAPED, SHARED = range(4)

sort, forward, join, pair, steps_over = map(
    jit, (strides.sort, strides.forward, strides.join, strides.pair, strides.steps_over)
)


# -- what comes out ---------------------------------------------------------------------------------------------------


def _fit(words, given):
    """The inputs' common shape becomes out's; one that is given must have it, and elements that share no memory."""
    compact()
    out, ndim = operand_at(words), 0
    for p in range(1, OPERANDS):
        ndim = max(ndim, operand_at(words + BLOCK * p).ndim)
    if given == 0:
        out.ndim = ndim
    for d in range(ndim):
        size = 1
        for p in range(1, OPERANDS):
            x = operand_at(words + BLOCK * p)
            own = d - ndim + x.ndim
            beside = x.shape[own] if own >= 0 else 1
            if size != beside and size != 1 and beside != 1:
                return MISMATCH
            size = beside if size == 1 else size
        if given == 0:
            out.shape[d] = size
        elif out.ndim != ndim or out.shape[d] != size:
            return RESHAPED
    return DONE if given == 0 or steps_over(out.shape, out.step, out.ndim, out.width) else SHARED


# -- inputs that overlap the output -----------------------------------------------------------------------------------


@jit
def _meet(out, x):
    """Whether an input shares memory with out (by their extents) otherwise than element for element."""
    low, high, first, last = out.data, out.data + out.width, x.data, x.data + x.width
    same = out.data == x.data and out.ndim == x.ndim and out.width == x.width
    for d in range(out.ndim):
        reach = (out.shape[d] - 1) * out.step[d]
        low, high = low + min(reach, 0), high + max(reach, 0)
        same = same and out.shape[d] == x.shape[d] and out.step[d] == x.step[d]
    for d in range(x.ndim):
        reach = (x.shape[d] - 1) * x.step[d]
        first, last = first + min(reach, 0), last + max(reach, 0)
    return first < high and low < last and not same


@jit
def _size(x):
    """Bytes of an input's items."""
    size = x.width
    for d in range(x.ndim):
        size *= x.shape[d]
    return size


@jit
def _move(x, to):
    """Copy an input's items to `to`, in the order of indices; the first byte after them."""
    index, at, d = pointer(scratch(ORDER)), x.data, 0
    x.data = to
    for e in range(x.ndim):
        index[e] = 0
    while d >= 0:
        copy(to, at, x.width)
        to, d = to + x.width, x.ndim - 1
        while d >= 0:
            index[d] += 1
            at += x.step[d]
            if index[d] < x.shape[d]:
                break
            at -= x.step[d] * x.shape[d]
            index[d] = 0
            d -= 1
    step = x.width
    for e in range(x.ndim - 1, -1, -1):
        x.step[e] = step
        step *= x.shape[e]
    return to


# -- the plan ---------------------------------------------------------------------------------------------------------


@jit
def _planned(words, f):
    """The plan f of the operands at `words`: how many loops, and whether an input is transposed."""
    out = operand_at(words)
    for p in range(OPERANDS):
        x = operand_at(words + BLOCK * p)
        f.base[p] = x.data
        for d in range(out.ndim):
            own = d - out.ndim + x.ndim
            repeated = own < 0 or x.shape[own] == 1
            f.dims[d * ROW + 1 + p] = 0 if repeated else x.step[own]
    for d in range(out.ndim):
        f.dims[d * ROW] = out.shape[d]
    sort(f.dims, out.ndim, OPERANDS)
    forward(f.base, f.dims, out.ndim, OPERANDS)
    count = join(f.dims, out.ndim, OPERANDS)
    for i in range(ROW if count > 0 else 2 * ROW):
        f.lead[i] = 0
    f.lead[0], f.lead[ROW] = 1, f.dims[0] if count > 0 else 1
    return max(count, 1) + 1, pair(f.dims, count, OPERANDS)


# -- the walk ---------------------------------------------------------------------------------------------------------


@jit
def _walk(f, loops, high, wide, inner, scalars):
    """Tiles of high x wide elements of the two innermost loops, one call of the inner loops each."""
    room, index, g, steps = scratch(CELL), pointer(scratch(ORDER)), f.lead, address(f.lead) + 8
    cell, down, across = pointer(room), (loops - 2) * ROW, (loops - 1) * ROW
    rows, columns = g[down], g[across]
    for d in range(loops - 2):
        index[d] = 0
    d = 0
    while d >= 0:
        for j in range(0, rows, high):
            for i in range(0, columns, wide):
                for p in range(OPERANDS):
                    cell[p] = f.base[p] + j * g[down + 1 + p] + i * g[across + 1 + p]
                h, w = min(high, rows - j), min(wide, columns - i)
                invoke(inner, (room, h, w, steps + 8 * down, steps + 8 * across, scalars))
        d = loops - 3
        while d >= 0:
            at = d * ROW
            index[d] += 1
            turn = index[d] == g[at]
            for p in range(OPERANDS):
                f.base[p] += g[at + 1 + p] * (1 - g[at] if turn else 1)
            if not turn:
                break
            index[d] = 0
            d -= 1


def _run(words, inner, scalars, room):
    """Call inner loops of two inputs, or of these and a mask, over the operands at `words`. Inputs that overlap the
    output are copied to `room`; without one, its size in bytes is the answer and nothing is done, else 0."""
    compact()
    out, need = operand_at(words), 0
    for d in range(out.ndim):
        if out.shape[d] == 0:
            return 0
    for p in range(1, OPERANDS):
        x = operand_at(words + BLOCK * p)
        if _meet(out, x):
            if room == 0:
                need += _size(x)
            else:
                room = _move(x, room)
    if need > 0:
        return need
    f = loops_at(scratch(PLAN))
    loops, transposed = _planned(words, f)
    high, wide = (TILE, TILE) if transposed else (f.lead[(loops - 2) * ROW], f.lead[(loops - 1) * ROW])
    _walk(f, loops, high, wide, inner, scalars)
    return 0


@functools.cache
def fit():
    """int64(address of words, whether out is given): DONE, or what is wrong."""
    return c_function(_fit, "int64(int64, int64)", "within_fit")


@functools.cache
def run():
    """int64(address of words, address of loops, of their scalars, of room or 0): 0, or bytes of room."""
    return c_function(_run, "int64(int64, int64, int64, int64)", "within_run")
