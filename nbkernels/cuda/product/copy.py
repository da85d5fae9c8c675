"""Copies from global to shared memory: a slice of A or B through any strides, by the threads that share a tile.

    origin(x)                       what places are counted from
    start(thread, line, k, base)    (place of the thread's first element, where it goes, its line, its step of k)
    fetch(held, x, target, place, line, k, lines, depth)
                                    begins to copy, by strides of lines and k; `lines` and `depth` are those inside the
                                    matrix, counted from the thread's
    land(held, target)              ends it, for loads into registers; asynchronous copies are waited for

Copies beyond the edges read nothing, and what they leave in shared memory is never used.
"""

from __future__ import annotations

import functools

from llvmlite import ir
from numba import types

from ...jit.ir.kind import BYTES, Kind
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


def places(builder, slice_: Slice, threads: int, place, line, k):
    """(source, along, across, offset) of each copy of a thread, by strides in bytes."""
    strides, before = (line, k) if slice_.by_lines else (k, line), (0, 0)
    for along, across, offset in slice_.copies(threads):
        for distance, stride in zip((along - before[0], across - before[1]), strides):
            if distance:
                place = ptx.moved(builder, place, builder.mul(stride, ir.Constant(ptx.I64, distance)))
        before = along, across
        yield place, along, across, offset


def extent(builder, slice_: Slice, lines, depth, along: int, across: int):
    """(elements in the direction of a copy that are inside from its first on, whether any are across)"""
    left = (lines, depth) if slice_.by_lines else (depth, lines)
    inside = builder.sub(left[0], ir.Constant(ptx.I32, along))
    return inside, builder.icmp_signed("<", ir.Constant(ptx.I32, across), left[1])


@functools.cache
def asynchronous(slice_: Slice, threads: int, guarded: bool):
    """cp.async. Places are addresses, strides bytes."""
    size, vector = slice_.size, slice_.access.vector

    @primitive(types.none, types.uint32, I64, I64, I64, I32, I32)
    def copies(builder, target, place, line, k, lines, depth):
        for source, along, across, offset in places(builder, slice_, threads, place, line, k):
            count = None
            if guarded:
                inside, reached = extent(builder, slice_, lines, depth, along, across)
                count = builder.mul(ptx.clamp(builder, inside, 0, vector), ir.Constant(ptx.I32, size))
                count = builder.select(reached, count, ir.Constant(ptx.I32, 0))
            ptx.copy_async(builder, size * vector, target, offset, source, count)

    @inlined
    def fetch(held, x, target, place, line, k, lines, depth):
        copies(target, place, line, k, lines, depth)

    @inlined
    def land(held, target):
        pass

    return ptx.address, starts(slice_, size), fetch, land


@functools.cache
def narrow(slice_: Slice, threads: int, guarded: bool, dtype: str, kind: Kind):
    """Loads of single elements of 1 or 2 bytes, which no asynchronous copy moves, kept in registers from fetch to land
    and converted there where slices hold words. Places are addresses, strides bytes.

    A load outside is left out by its predicate: behind a branch each would wait for the one before.
    """
    size, word = BYTES[dtype], ptx.LLVM[ptx.LETTER[kind.word]]

    @primitive(types.none, ARRAY, I64, I64, I64, I32, I32)
    def loads(builder, held, place, line, k, lines, depth):
        left = (lines, depth) if slice_.by_lines else (depth, lines)
        for q, (source, along, across, _) in enumerate(places(builder, slice_, threads, place, line, k)):
            inside = [(left[0], along), (left[1], across)] if guarded else []
            bits = ptx.load_narrow(builder, size, source, inside, "" if slice_.access.generic else ".global")
            builder.store(bits, ptx.bits(builder, held, q))

    @primitive(types.none, ARRAY, types.uint32)
    def stores(builder, held, target):
        for q, (*_, offset) in enumerate(slice_.copies(threads)):
            bits = builder.load(ptx.bits(builder, held, q))
            if slice_.size == size:
                ptx.store_narrow(builder, size, target, offset, bits)
            else:
                ptx.store_shared(builder, kind.word, target, offset, [ptx.widened(builder, dtype, word, bits)])

    @inlined
    def fetch(held, x, target, place, line, k, lines, depth):
        loads(held, place, line, k, lines, depth)

    @inlined
    def land(held, target):
        stores(held, target)

    return ptx.address, starts(slice_, size), fetch, land


@functools.cache
def converting(slice_: Slice, threads: int, guarded: bool, dtype: str, kind: Kind):
    """Loads that convert to words, kept in registers from fetch to land. Places and strides are elements."""
    copies = slice_.copies(threads)
    PER = max(1, slice_.pieces // threads)
    JUMP, DOWN = (copies[1][0] if PER > 1 else 0), (copies[PER][1] if len(copies) > PER else 0)
    COUNT, BY_LINES, GUARDED = len(copies), slice_.by_lines, guarded
    read, WORD = reader(dtype, kind), word(kind)

    @inlined
    def fetch(held, x, target, place, line, k, lines, depth):
        for q in range(COUNT):
            along, across = q % PER * JUMP, q // PER * DOWN
            i, p = (along, across) if BY_LINES else (across, along)
            held[q] = read(x, place + i * line + p * k) if (not GUARDED) or (i < lines and p < depth) else WORD(0)

    @primitive(types.none, ARRAY, types.uint32)
    def stores(builder, held, target):
        for q, (*_, offset) in enumerate(copies):
            ptx.store_shared(builder, kind.word, target, offset, [builder.load(ptx.element(builder, held, q))])

    @inlined
    def land(held, target):
        stores(held, target)

    @inlined
    def origin(x):
        return I64(0)

    return origin, starts(slice_, 1), fetch, land


def copier(slice_: Slice, threads: int, guarded: bool, dtype: str, kind: Kind):
    """(origin, start, fetch, land) of a slice of elements of a dtype, and what places count of an element."""
    if not slice_.access.plain:
        return *asynchronous(slice_, threads, guarded), slice_.size
    if BYTES[dtype] < 4:
        return *narrow(slice_, threads, guarded, dtype, kind), BYTES[dtype]
    return *converting(slice_, threads, guarded, dtype, kind), 1
