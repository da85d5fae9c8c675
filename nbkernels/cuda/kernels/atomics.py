"""Elements of global memory that many threads change at a time.

    fold(x, i, value)       x[i] = function(x[i], value), of a pointer x, as one step whatever other threads do to x[i]

One instruction where there is one: sums, extremes and bits of integers of 32 and 64 bits (LLVM's atomicrmw). Else a
loop of compare-and-swap: what becomes of an element takes its place if nobody has changed it meanwhile. None swaps 8
bits, and 16 not on every card: there the aligned 32-bit word is swapped that the element lies in, with its neighbours'
bytes as they are. It may hold bytes beside the array, but none beside the allocation: that ends at a multiple of 4.
"""

from __future__ import annotations

import functools

import numpy as np
from llvmlite import ir
from numba import cuda, types
from numba.cuda.extending import intrinsic

from ...dtypes import HALVES
from .elements import computed, reading, stored, writing
from .functions import device, inlined

I8, I32, I64 = ir.IntType(8), ir.IntType(32), ir.IntType(64)
INSTRUCTIONS = {"add": "add", "subtract": "sub", "bitwise_and": "and", "bitwise_or": "or", "bitwise_xor": "xor",
                "maximum": "max", "minimum": "min", "fmax": "max", "fmin": "min"}  # fmt: skip


def folding(op: str, function, dtype: str, compute):
    """fold(x, i, value) of elements of a dtype, in which the operation is computed, too."""
    X, Y, RESULT = map(computed, compute)
    kind = np.dtype("u2") if dtype == "bfloat16" else np.dtype(dtype)
    if op in INSTRUCTIONS and kind.kind in "iu" and kind.itemsize >= 4:
        name, OUT = INSTRUCTIONS[op], stored(dtype)
        change = _instruction("u" * (kind.kind == "u" and name in ("max", "min")) + name, OUT)

        @inlined
        def fold(x, i, value):
            change(x, i, OUT(Y(value)))

        return fold
    call = device(function, "float32" if compute[0] in HALVES else compute[0])
    again, write, OUT = reading(dtype), writing(dtype), stored(dtype)
    look, swap = _words(OUT)

    @inlined
    def loop(x, i, value):
        pair = cuda.local.array(2, OUT)
        seen = look(x, i, pair)
        while True:
            write(pair, 1, RESULT(call(X(again(pair, 0)), Y(value))))
            before, seen = seen, swap(x, i, pair, seen)
            if before == seen:
                break

    return loop


@functools.cache
def _instruction(name: str, kind):
    @intrinsic
    def change(typing, x, i, value):
        def emit(context, builder, signature, args):
            builder.atomic_rmw(name, builder.gep(args[0], [args[1]]), args[2], "monotonic")
            return context.get_dummy_value()

        return types.none(x, types.int64, kind), emit

    return change


@functools.cache
def _words(kind):
    """look(x, i, pair)         the word that x[i] lies in, as it was some time ago; pair[0] = x[i]
    swap(x, i, pair, seen)   the same word as it is, where pair[1] has taken the place of x[i] if the word was `seen`

    An element that stays as it is needs no swap: its turn was when the word was read.
    """
    size = 8 * np.dtype(str(kind)).itemsize
    raw, whole = ir.IntType(size), ir.IntType(max(size, 32))
    word = types.uint64 if size == 64 else types.uint32

    def cells(context, builder, pair, value):
        """Pointer to the bits of the elements of a local array."""
        return builder.bitcast(context.make_array(pair)(context, builder, value=value).data, raw.as_pointer())

    def container(builder, x, i):
        """(pointer to the word, by how many bits the element is shifted in it)"""
        place = builder.gep(x, [i])
        if size >= 32:
            return builder.bitcast(place, whole.as_pointer()), whole(0)
        past = builder.and_(builder.ptrtoint(place, I64), I64(3))
        start = builder.gep(builder.bitcast(place, I8.as_pointer()), [builder.neg(past)])
        return builder.bitcast(start, whole.as_pointer()), builder.trunc(builder.shl(past, I64(3)), whole)

    def taken(builder, value, shift, cell):
        """Store the element of a word."""
        builder.store(builder.trunc(builder.lshr(value, shift), raw), cell) if size < 32 else builder.store(value, cell)

    @intrinsic
    def look(typing, x, i, pair):
        def emit(context, builder, signature, args):
            place, shift = container(builder, *args[:2])
            value = builder.load(place)
            taken(builder, value, shift, cells(context, builder, pair, args[2]))
            return value

        return word(x, types.int64, pair), emit

    @intrinsic
    def swap(typing, x, i, pair, seen):
        def emit(context, builder, signature, args):
            place, shift = container(builder, *args[:2])
            cell, before = cells(context, builder, pair, args[2]), args[3]
            after = builder.load(builder.gep(cell, [I32(1)]))
            if size < 32:
                mask = builder.shl(whole((1 << size) - 1), shift)
                rest = builder.and_(before, builder.not_(mask))
                after = builder.or_(rest, builder.shl(builder.zext(after, whole), shift))
            start = builder.block
            with builder.if_then(builder.icmp_unsigned("!=", before, after)):
                found = builder.extract_value(builder.cmpxchg(place, before, after, "monotonic"), 0)
                changed = builder.block
            value = builder.phi(whole)
            value.add_incoming(before, start)
            value.add_incoming(found, changed)
            taken(builder, value, shift, cell)
            return value

        return word(x, types.int64, pair, word), emit

    return look, swap
