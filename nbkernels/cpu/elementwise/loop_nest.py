"""Compiled inner loops over all loops of a plan: outer dimensions, tiles, what is moved to a buffer first.

A context is a header, NEST, and behind it, from word HEADER on,

    address[operands]  mover[operands]  size[ndim]  stride[ndim][operands]  tile_stride[2][operands]

A walker takes it and a task: the task's slice of dimension `split`.
"""

from __future__ import annotations

import functools

from ...jit.abi.address import invoke, pointer, scratch
from ...jit.abi.record import Record
from ...jit.abi.workspaces import acquire, release
from ...jit.compile.cache import compiled
from ...jit.compile.lazy import jit
from ...jit.ir.turn import TILE
from ...jit.ir.vector import LINE

# The inner loops, what they read beside the operands; how many operands, dimensions and tasks; the dimension that tasks
# share; a tile's rows and columns, the columns of a band; how many bytes along columns is asked for ahead, or 0; items
# of a line where rows of the output begin at different places in one, else 0.
NEST = Record("Nest", "loop scalars operands ndim tasks split high wide span soon extra")
nest_at, HEADER = NEST.pointer(), NEST.words
BUFFERS = 120 << 10  # bytes for what is moved
ROOM = 4096  # bytes of stack: two words for each operand, two for each dimension


@jit(forceinline=True)
def _begin(f, task, base, index):
    """Set each operand's base to the first element of the task's slice; the slice's length."""
    size, at = f[HEADER + 2 * f.operands + f.split], HEADER + (2 + f.split) * f.operands + f.ndim
    start, stop = size * task // f.tasks, size * (task + 1) // f.tasks
    for p in range(f.operands):
        base[p] = f[HEADER + p] + start * f[at + p]
    for d in range(f.ndim):
        index[d] = 0
    return stop - start


@jit(forceinline=True)
def _advance(f, base, index, share):
    """The next element of the outer dimensions, the innermost of them fastest: the one that went on, or -1."""
    operands, sizes = f.operands, HEADER + 2 * f.operands
    d, at = f.ndim - 3, sizes + f.ndim + (f.ndim - 3) * operands
    while d >= 0:
        i = index[d] + 1
        turn = i == (f[sizes + d] if d != f.split else share)
        for p in range(operands):
            base[p] += f[at + p] * (1 - i) if turn else f[at + p]
        index[d] = 0 if turn else i
        if not turn:
            break
        d -= 1
        at -= operands
    return d


@jit(forceinline=True)
def _places(f):
    """Words of a context: movers, sizes, the steps of the two innermost dimensions, those within a tile."""
    movers = HEADER + f.operands
    sizes = movers + f.operands
    row_steps = sizes + f.ndim + (f.ndim - 2) * f.operands
    return movers, sizes, row_steps, row_steps + f.operands, row_steps + 2 * f.operands, row_steps + 3 * f.operands


def _walk(context, task):
    """Tiles of high x wide of the two innermost dimensions, one call of the inner loops each, in bands of span columns.

    An operand with a mover is transposed first, so that the inner loops find it contiguous, and what follows `soon` in
    each column is asked for meanwhile. Where there are `extra` items tiles part at the lines of each row of the output,
    and what is transposed is a line wider.
    """
    f, room, buffers = nest_at(context), scratch(ROOM), 0
    operands, ndim, split = f.operands, f.ndim, f.split
    turners, sizes, row_steps, column_steps, tile_rows, tile_columns = _places(f)
    cell, base, index = pointer(room), pointer(room + 8 * operands + 16), pointer(room + 16 * operands + 16)
    share = _begin(f, task, base, index)
    if share == 0:
        return
    rows = f[sizes + ndim - 2] if split != ndim - 2 else share
    columns = f[sizes + ndim - 1] if split != ndim - 1 else share
    high, wide, span, extra, skew, lead, step = f.high, f.wide, f.span, f.extra, 0, 0, f[column_steps]
    if wide < columns and step > 0 and extra == 0:
        skew = (base[0] & (LINE - 1)) // step
    tail = extra if extra > 0 else span // 2  # that is left to the band before
    most = high + LINE if high > TILE else TILE
    for p in range(operands):
        if f[turners + p] != 0:  # rows of it from the start of a line, too
            lead = (-base[p] & (LINE - 1)) // f[row_steps + p]
            buffers = acquire(BUFFERS) if buffers == 0 else buffers
    d = 0
    while d >= 0:
        first, i, j = 0, 0, 0
        while first < columns:  # out[..., j:j+h, i:i+w], before column last; after a row's first, from a line's start
            last, buffer = first + span - (skew if first == 0 else 0), buffers
            last = columns if columns - last < tail else last
            h, w = min(high + (lead if j == 0 else 0), most), min(wide - (skew if i == 0 else 0), last - i)
            h = rows - j if rows - j < h + high and rows - j <= most else h
            more = extra if last < columns else 0
            cell[operands], cell[operands + 1] = -(i > 0), -(more > 0)
            for p in range(operands):
                step = f[column_steps + p]
                at = base[p] + j * f[row_steps + p] + i * step
                if f[turners + p] != 0:
                    pitch = f[tile_rows + p]
                    invoke(f[turners + p], (at, step, buffer, pitch, h, w + more, at + f.soon if f.soon != 0 else 0))
                    at = buffer
                    buffer += h * pitch
                cell[p] = at
            invoke(f.loop, (room, h, w, context + 8 * tile_rows, context + 8 * tile_columns, f.scalars))
            i += w
            if i == last:
                i, j = first, j + h
            if j == rows:
                first, i, j = last, last, 0
        d = _advance(f, base, index, share)
    if buffers != 0:
        release(BUFFERS, buffers)


def _collect(context, task):
    """Short rows end to end: up to high elements in one call of the inner loops, as one row, while out is contiguous.

    An operand with a mover is gathered into wide bytes of a buffer first, once where the mover is negative: all rows of
    that operand are the same. Another operand is contiguous as out is, or one element.
    """
    f, room = nest_at(context), scratch(ROOM)
    operands, ndim, split = f.operands, f.ndim, f.split
    movers, sizes, row_steps, column_steps, tile_rows, tile_columns = _places(f)
    cell, base, index = pointer(room), pointer(room + 8 * operands), pointer(room + 16 * operands)
    share = _begin(f, task, base, index)
    if share == 0:
        return
    rows, columns = f[sizes + ndim - 2] if split != ndim - 2 else share, f[sizes + ndim - 1]
    count, held, d, buffers = 0, 0, 0, acquire(BUFFERS)
    while d >= 0:
        j = 0
        while j < rows:
            h = min((f.high - count) // columns, rows - j)
            if h == 0:
                invoke(f.loop, (room, 1, count, context + 8 * tile_rows, context + 8 * tile_columns, f.scalars))
                count = 0
                continue
            buffer = buffers
            for p in range(operands):
                at, step, mover = base[p] + j * f[row_steps + p], f[column_steps + p], f[movers + p]
                if mover > 0 or (mover < 0 and held < count + h * columns):
                    to = buffer + count * f[tile_columns + p]
                    invoke(abs(mover), (at, f[row_steps + p], step, to, h, columns))
                if mover != 0:
                    at = buffer
                    buffer += f.wide
                if count == 0:
                    cell[p] = at
            count += h * columns
            held = max(held, count)
            j += h
        d = _advance(f, base, index, share)
        if d < split:  # what follows lies beyond the other tasks' slices
            invoke(f.loop, (room, 1, count, context + 8 * tile_rows, context + 8 * tile_columns, f.scalars))
            count = 0
    release(BUFFERS, buffers)


@functools.cache
def walker() -> int:
    return compiled(_walk, "void(int64, int64)", "walk")


@functools.cache
def collector() -> int:
    return compiled(_collect, "void(int64, int64)", "collect")
