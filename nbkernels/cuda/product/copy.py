"""Global -> shared memory: a slice of A or B through any strides, edges guarded, by the threads that share a tile.

    origin(x)                       what places are counted from
    start(thread, line, k, base)    (place of the thread's first element, where it goes, its line, its step of k)
    fetch(held, x, target, place, line, k, lines, depth)
                                    begins to copy, by strides of lines and k; `lines` and `depth` are those inside the
                                    matrix, counted from the thread's
    land(held, target)              ends it, for loads that convert; asynchronous copies are waited for

Copies beyond the edges read nothing, and what they leave in shared memory is never used.
"""

from __future__ import annotations

import functools

from llvmlite import ir
from numba import types

from ...jit.kind import Kind
from ..kernels.chain import reader, word
from ..kernels.functions import inlined
from . import ptx
from .layout import Slice
from .ptx import ARRAY, primitive

U32, I32, I64 = types.uint32, types.int32, types.int64


def starts(slice_: Slice, scale: int):
    """start(thread, line, k, base), with strides in elements and places in units of which an element is `scale`."""
    PIECES, VECTOR, BY_LINES = slice_.pieces, slice_.access.vector, slice_.by_lines
    LINE, STEP = slice_.line * slice_.size, slice_.step * slice_.size

    @inlined
    def start(thread, line, k, base):
        along, across = U32(thread % PIECES * VECTOR), U32(thread // PIECES)
        i, p = (along, across) if BY_LINES else (across, along)
        place = (I64(i) * line + I64(p) * k) * scale
        return place, U32(base + i * LINE + p * STEP), I32(i), I32(p)

    return start


@functools.cache
def asynchronous(slice_: Slice, threads: int, guarded: bool):
    """Places are addresses, strides bytes."""
    size, vector, by_lines = slice_.size, slice_.access.vector, slice_.by_lines
    constant = functools.partial(ir.Constant, ptx.I32)

    @primitive(types.none, types.uint32, I64, I64, I64, I32, I32)
    def copies(builder, target, place, line, k, lines, depth):
        strides, left = ((line, k), (lines, depth)) if by_lines else ((k, line), (depth, lines))
        source, count, before = place, None, (0, 0)
        for along, across, offset in slice_.copies(threads):
            for distance, stride in zip((along - before[0], across - before[1]), strides):
                if distance:
                    source = ptx.moved(builder, source, builder.mul(stride, ir.Constant(ptx.I64, distance)))
            before = along, across
            if guarded:
                inside = builder.sub(left[0], constant(along))
                inside = ptx.clamp(builder, inside, 0, vector)
                reached = builder.icmp_signed("<", constant(across), left[1])
                count = builder.select(reached, builder.mul(inside, constant(size)), constant(0))
            ptx.copy_async(builder, size * vector, target, offset, source, count)

    @inlined
    def fetch(held, x, target, place, line, k, lines, depth):
        copies(target, place, line, k, lines, depth)

    @inlined
    def land(held, target):
        pass

    @inlined
    def origin(x):
        return ptx.address(x)

    return origin, starts(slice_, size), fetch, land


@functools.cache
def plain(slice_: Slice, threads: int, guarded: bool, dtype: str, kind: Kind):
    """Loads that convert to words, kept in registers from fetch to land. Places and strides are elements."""
    places = slice_.copies(threads)
    ALONG, ACROSS, COUNT = tuple(p[0] for p in places), tuple(p[1] for p in places), len(places)
    PER, ROWS = ALONG.index(max(ALONG)) + 1, max(ACROSS[-1], 1)
    BY_LINES, GUARDED, read, WORD = slice_.by_lines, guarded, reader(dtype, kind), word(kind)
    JUMP = ALONG[1] if PER > 1 else 0
    DOWN = ACROSS[PER] if COUNT > PER else 0
    assert ROWS >= DOWN

    @inlined
    def fetch(held, x, target, place, line, k, lines, depth):
        for q in range(COUNT):
            along, across = q % PER * JUMP, q // PER * DOWN
            i, p = (along, across) if BY_LINES else (across, along)
            held[q] = read(x, place + i * line + p * k) if (not GUARDED) or (i < lines and p < depth) else WORD(0)

    @primitive(types.none, ARRAY, types.uint32)
    def store(builder, held, target):
        for q, (_, _, offset) in enumerate(places):
            value = builder.load(ptx.element(builder, held, q))
            if slice_.size < ptx.BYTES[kind.word]:
                ptx.store_narrow(builder, dtype, target, offset, value)
            else:
                ptx.store_shared(builder, kind.word, target, offset, [value])

    @inlined
    def land(held, target):
        store(held, target)

    @inlined
    def origin(x):
        return I64(0)

    return origin, starts(slice_, 1), fetch, land


def copier(slice_: Slice, threads: int, guarded: bool, dtype: str, kind: Kind):
    """(origin, start, fetch, land) of a slice of elements of a dtype."""
    if slice_.access.plain:
        return plain(slice_, threads, guarded, dtype, kind)
    return asynchronous(slice_, threads, guarded)
