"""Read an ndarray's fields from jitted code, given its `id`.

An entry that takes arrays is compiled anew for every combination of dimensions, layouts and read-only flags, and Numba
spends 30 ns on typing each. An entry that takes addresses is compiled once. NumPy documents the layout behind them
(`PyArrayObject_fields`, unchanged since 1.7): head, data, nd, dimensions, strides, base, descr, flags. The caller has
checked that the object is an ndarray and keeps it alive.
"""

from __future__ import annotations

import contextlib
import functools
import sys

import numpy as np
from llvmlite import ir

from ..compile.lazy import cgutils, emits, intrinsic, types
from ..ir.vector import I8, I32, I64
from .new_arrays import COMPLEX, FLOAT, INT, NDARRAY, SCALARS
from .record import Record

HEAD = object.__basicsize__  # 16, or 32 where Python runs without the GIL
C_CONTIGUOUS, F_CONTIGUOUS, ALIGNED, WRITEABLE = 0x1, 0x2, 0x100, 0x400
SWAPPED = ">" if sys.byteorder == "little" else "<"


@intrinsic
def address_of(typing, value):
    """The `id` of an object."""
    return types.int64(value), lambda context, builder, signature, args: args[0]


def _field(name: str, offset: int, width: ir.Type = I64):
    """An intrinsic that loads the field at `offset`."""

    def field(builder, array):
        value = builder.load(builder.inttoptr(builder.add(array, I64(HEAD + offset)), width.as_pointer()))
        return value if width is I64 else builder.sext(value, I64)

    field.__name__ = name
    return emits("int64(int64)")(field)


def _item(name: str, offset: int):
    """An intrinsic that loads word i of those that the field at `offset` points to."""

    def item(builder, array, index):
        words = builder.load(builder.inttoptr(builder.add(array, I64(HEAD + offset)), I64.as_pointer()))
        place = builder.add(words, builder.shl(index, I64(3)))
        return builder.load(builder.inttoptr(place, I64.as_pointer()))

    item.__name__ = name
    return emits("int64(int64, int64)")(item)


data = _field("data", 0)
ndim = _field("ndim", 8, I32)
shape = _item("shape", 16)
stride = _item("stride", 24)
dims, steps = _field("dims", 16), _field("steps", 24)  # where these are
descr = _field("descr", 40)
flags = _field("flags", 48, I32)

MOST = 32  # dimensions of an array that has no object
# Such an array's header: the fields of an ndarray that compiled code reads, then its sizes and strides.
HEADER = Record("Array", f"head[{HEAD // 8}] data ndim dims steps shape[{MOST}] strides[{MOST}]")
header_at, SHAPE, STRIDES = HEADER.pointer(), 8 * HEADER["shape"], 8 * HEADER["strides"]
ZERO_D = 80 + HEAD  # bytes that an array of no dimensions and its element take, as `as_array` makes it


@emits("int64(int64, int64, int64, int64)")
def as_array(builder, value, like, kinds, room):
    """The address of an array: `value`'s own, or that of one of no dimensions, made of ZERO_D bytes at `room`, where
    `value` is a NumPy scalar, or a Python float, a complex or an int of at most 30 bits that the dtype of `like` holds,
    which it then has; 0 where there is none.

    `kinds` is the address of made.words(); `value` and `like` are those of any objects: where an array alone will do,
    `like` is `value`, and there is no room. Fields that are not read here are not made.
    """

    def at(address, offset, kind=I64):
        return builder.inttoptr(builder.add(address, I64(offset)), kind.as_pointer())

    def type_of(address):
        return builder.load(at(address, HEAD - 8))

    def kind_is(address, i):
        return builder.icmp_signed("==", type_of(address), builder.load(at(kinds, 8 * i)))

    f32, f64 = ir.FloatType(), ir.DoubleType()
    result = cgutils.alloca_once_value(builder, value)
    element = HEAD + 64

    def keep(fits, number, imaginary=None):
        """The number is the element, where it fits."""
        with builder.if_then(fits):
            builder.store(number, at(room, element, number.type))
            if imaginary is not None:
                width = 4 if imaginary.type == f32 else 8
                builder.store(imaginary, at(room, element + width, imaginary.type))
            builder.store(room, result)

    def rounded(number):
        """The number as a float32, and whether that is finite: others may be overflows."""
        small = builder.fptrunc(number, f32)
        bits = builder.and_(builder.bitcast(small, I32), I32(0x7FFFFFFF))
        return small, builder.icmp_signed("<", bits, I32(0x7F800000))

    with builder.if_then(builder.not_(kind_is(value, NDARRAY))):
        builder.store(I64(0), result)
        is_float, is_int, is_complex = (kind_is(value, i) for i in (FLOAT, INT, COMPLEX))
        with builder.if_then(kind_is(like, NDARRAY)):
            dtype = builder.load(at(like, HEAD + 40))
            builder.store(dtype, at(room, HEAD + 40))
            builder.store(I32(0), at(room, HEAD + 8, I32))
            plain = builder.or_(builder.or_(is_float, is_int), is_complex)
            with builder.if_then(builder.not_(plain)):  # a NumPy scalar holds its element
                builder.store(builder.add(value, I64(HEAD)), at(room, HEAD))
                entries, own = _entries(builder, builder.add(kinds, I64(8 * SCALARS))), type_of(value)
                with entries as (kind, its), builder.if_then(builder.icmp_signed("==", kind, own)):
                    builder.store(its, at(room, HEAD + 40))
                    builder.store(room, result)
            with builder.if_then(plain):
                builder.store(builder.add(room, I64(element)), at(room, HEAD))
                digits, short = _digits(builder, lambda offset, kind: builder.load(at(value, offset, kind)))
                number = builder.load(at(value, HEAD, f64))
                number = builder.select(is_int, builder.sitofp(digits, f64), number)
                second = builder.select(is_complex, I64(HEAD + 8), I64(HEAD))
                second = builder.load(builder.inttoptr(builder.add(value, second), f64.as_pointer()))
                second, whole = builder.select(is_complex, second, f64(0)), builder.and_(is_int, short)
                usable = builder.or_(is_float, whole)
                either = builder.or_(usable, is_complex)
                native = builder.icmp_signed("!=", builder.load(at(dtype, HEAD + 10, I8)), I8(ord(SWAPPED)))
                end = builder.append_basic_block("end")
                switch = builder.switch(builder.select(native, builder.load(at(dtype, HEAD + 12, I32)), I32(-1)), end)
                for char in "fdFDbBhHiIlLqQ":
                    kind, block = np.dtype(char), builder.append_basic_block(char)
                    switch.add_case(I32(kind.num), block)
                    builder.position_at_end(block)
                    if char == "d":
                        keep(usable, number)
                    elif char == "D":
                        keep(either, number, second)
                    elif char == "f":
                        small, finite = rounded(number)
                        keep(builder.and_(usable, finite), small)
                    elif char == "F":
                        (small, finite), (other, too) = rounded(number), rounded(second)
                        keep(builder.and_(either, builder.and_(finite, too)), small, other)
                    else:
                        narrow = builder.trunc(digits, ir.IntType(8 * kind.itemsize))
                        again = (builder.sext if kind.kind == "i" else builder.zext)(narrow, I64)
                        held = builder.icmp_signed("==", again, digits)
                        held = builder.and_(held, builder.icmp_signed(">=", digits, I64(np.iinfo(kind).min)))
                        keep(builder.and_(whole, held), narrow)
                    builder.branch(end)
                builder.position_at_end(end)
    return builder.load(result)


@contextlib.contextmanager
def _entries(builder, address):
    """Code for each pair of words from `address` on, up to one that begins with 0."""
    at = cgutils.alloca_once_value(builder, address)
    first, again, end = (builder.append_basic_block(name) for name in ("first", "again", "end"))
    builder.branch(first)
    builder.position_at_end(first)
    pair = builder.inttoptr(builder.load(at), I64.as_pointer())
    key = builder.load(pair)
    builder.cbranch(builder.icmp_signed("!=", key, I64(0)), again, end)
    builder.position_at_end(again)
    yield key, builder.load(builder.gep(pair, [I32(1)]))
    builder.store(builder.add(builder.load(at), I64(16)), at)
    builder.branch(first)
    builder.position_at_end(end)


def _digits(builder, load):
    """A Python int of at most one digit of 30 bits, and whether it is one: its layout is from 3.12 on another."""
    first, digit = load(HEAD, I64), builder.zext(load(HEAD + 8, I32), I64)
    if sys.version_info >= (3, 12):  # three bits, of which two say 0 plus, 1 zero, 2 minus; then the number of digits
        sign, short = builder.sub(I64(1), builder.and_(first, I64(3))), builder.icmp_unsigned("<", first, I64(16))
    else:  # the number of digits, with the sign
        sign, short = first, builder.icmp_unsigned("<=", builder.add(first, I64(1)), I64(2))
    return builder.mul(sign, digit), short


@functools.cache
def layout_is_known() -> bool:
    """Whether this NumPy keeps an ndarray's fields where this module reads them."""
    import ctypes

    array = np.zeros((3, 5), np.float32)[::2, ::-1]
    words = (ctypes.c_int64 * 7).from_address(id(array) + HEAD)
    sizes, steps = ((ctypes.c_int64 * 2).from_address(words[i]) for i in (2, 3))
    return (
        words[0] == array.__array_interface__["data"][0]
        and words[1] & 0xFFFFFFFF == 2
        and tuple(sizes) == array.shape
        and tuple(steps) == array.strides
        and words[5] == id(array.dtype)
        and words[6] & 0xFFFFFFFF == array.flags.num
    )
