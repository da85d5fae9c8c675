"""AMX, the matrix unit of Intel's server processors: its instructions as LLVM IR.
For other processors there are functions over memory that do the same.

Eight tile registers of up to 16 rows x 64 bytes. A tile of C += the products of a tile of A, whose rows hold 64 bytes
of k, and a tile of B, whose rows hold 4 bytes of k for each column (Intel, "Intel 64 and IA-32 Architectures Software
Developer's Manual", volume 2: LDTILECFG, TILELOADD, TDPBSSD, TDPBF16PS, TDPFP16PS).
"""

from __future__ import annotations

import ctypes
import functools
import platform
import sys

from llvmlite import ir

from ..compile.lazy import cgutils
from .convert import widen
from .vector import I8, I16, I32, I64, VOID, library, loop, once, opaque

TILES, ROWS, ROW = 8, 16, 64  # tile registers, the rows of each, and bytes of a row
BYTES = I8.as_pointer()
FEATURE = {"bfloat16": "amx-bf16", "float16": "amx-fp16"}  # what multiplies elements of a dtype, if not amx-int8
DOT = {"bfloat16": "tdpbf16ps", "float16": "tdpfp16ps"}  # for pairs of halves
_PERMISSION, _COMPONENT, _CALL = 0x1023, 18, 158  # Linux, arch/x86: ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA, arch_prctl


@functools.cache
def permitted() -> bool:
    """Whether the operating system lets this process use tile registers: Linux asks to be asked, once (2021, 5.16)."""
    if sys.platform != "linux" or platform.machine() != "x86_64":
        return False
    return ctypes.CDLL(None).syscall(_CALL, _PERMISSION, _COMPONENT) == 0


def available(dtype: str) -> bool:
    """Tell whether this processor's unit multiplies elements of a dtype, of one byte or halves, and may be used."""
    from ..disk.levels import building, target

    _, _, features = target()
    return not building and {"amx-tile", FEATURE.get(dtype, "amx-int8")} <= features and permitted()


class Unit:
    """The unit's instructions, emitted through `builder`. Tiles are known by their numbers; addresses are pointers to
    bytes, strides are in bytes."""

    name = "amx"

    def __init__(self, builder: ir.IRBuilder, rows=(ROWS,) * TILES):
        self.builder, self.rows = builder, rows  # rows that the configuration gives to each tile

    def _call(self, name: str, *args) -> None:
        library(self.builder, f"llvm.x86.{name}", VOID, *args)

    def begin(self) -> None:
        """Tiles have their rows from now on, whole ones; they hold nothing."""
        builder, words = self.builder, bytearray(64)
        words[0] = 1  # the palette
        words[16:32] = ROW.to_bytes(2, "little") * TILES  # bytes of a row
        words[48:56] = bytes(self.rows)
        constant = ir.Constant(ir.ArrayType(I8, 64), words)
        configuration = cgutils.global_constant(builder, "configuration", constant)
        self._call("ldtilecfg", builder.bitcast(configuration, BYTES))

    def end(self) -> None:
        """No tile is in use any more: switches of threads need not keep them."""
        self._call("tilerelease")

    def zero(self, tile: int) -> None:
        self._call("tilezero", I8(tile))

    def load(self, tile: int, address, stride) -> None:
        self._call("tileloadd64", I8(tile), address, stride)

    def store(self, tile: int, address, stride) -> None:
        self._call("tilestored64", I8(tile), address, stride)

    def dot(self, a: str, b: str, tile: int, left: int, right: int) -> None:
        """A tile of C takes in the products of tiles of A and B, whose elements are of these dtypes."""
        self._call(_dot(a, b), *map(I8, (tile, left, right)))


def _dot(a: str, b: str) -> str:
    """The instruction for elements of these dtypes.

    >>> _dot("int8", "uint8"), _dot("bfloat16", "bfloat16")
    ('tdpbsud', 'tdpbf16ps')
    """
    return DOT.get(a) or "tdpb{}{}d".format(*("s" if each == "int8" else "u" for each in (a, b)))


class Emulated(Unit):
    """The unit's instructions as loops over memory, for tests on any processor: each is a function of its own."""

    name = "amx_emulated"

    def __init__(self, builder, *rows):
        super().__init__(builder, *rows)
        self.file = builder.alloca(ir.ArrayType(I8, TILES * ROWS * ROW))

    def begin(self) -> None:
        pass

    end = begin

    def _call(self, name: str, *args) -> None:
        tiles = [self._tile(each.constant) if each.type is I8 else each for each in args]
        tiles.insert(0, I64(self.rows[args[0].constant]))
        kinds = [each.type for each in tiles]
        function, inside = once(self.builder.module, f"{self.name}_{name}", kinds)
        if inside is not None:
            _INSTRUCTIONS.get(name, _Dot(name))(inside, *function.args)
            inside.ret_void()
        self.builder.call(function, tiles)

    def _tile(self, number: int):
        return self.builder.gep(self.builder.bitcast(self.file, BYTES), [I64(number * ROWS * ROW)])


def _each(builder, rows, columns: int, body) -> None:
    """body(i, j) for every i < rows and j < columns."""

    def row(i, _):
        loop(builder, inner, [], lambda j, _: [body(i, j)][:0])
        return []

    inner = opaque(builder, I64(columns))  # unrolled it takes seconds to compile
    loop(builder, rows, [], row)


def _at(builder, start, row, stride, byte):
    return builder.gep(start, [builder.add(builder.mul(row, stride), byte)])


def _zero(builder, rows, tile) -> None:
    _each(builder, rows, ROW, lambda i, j: builder.store(I8(0), _at(builder, tile, i, I64(ROW), j)))


def _copy(loads: bool, builder, rows, tile, address, stride) -> None:
    def copy(i, j):
        ends = _at(builder, tile, i, I64(ROW), j), _at(builder, address, i, stride, j)
        builder.store(builder.load(ends[loads]), ends[not loads])

    _each(builder, rows, ROW, copy)


_INSTRUCTIONS = {"tilezero": _zero, "tileloadd64": functools.partial(_copy, True),
                 "tilestored64": functools.partial(_copy, False)}  # fmt: skip


class _Dot:
    """A tile of C takes in the products of tiles of A and B, by the instruction of that name."""

    def __init__(self, name: str):
        self.halves, self.signs = next((dtype for dtype in DOT if DOT[dtype] == name), ""), name[4:6]

    def __call__(self, builder, rows, tile, left, right) -> None:
        depth = opaque(builder, I64(ROWS))

        def cell(i, j):
            across = builder.mul(j, I64(4))
            at = builder.bitcast(_at(builder, tile, i, I64(ROW), across), I32.as_pointer())
            before = builder.load(at, align=1)

            def step(p, sums):
                sums, down = list(sums), builder.mul(p, I64(4))
                for q in range(2 if self.halves else 4):
                    x = self._element(builder, _at(builder, left, i, I64(ROW), down), q, 0)
                    y = self._element(builder, _at(builder, right, p, I64(ROW), across), q, 1)
                    if self.halves:
                        sums[q] = _flushed(builder, library(builder, "llvm.fma.f32", x.type, x, y, sums[q]))
                    else:
                        sums[0] = builder.add(sums[0], builder.mul(x, y))
                return sums

            if not self.halves:
                (total,) = loop(builder, depth, [before], step)
            else:
                even, odd = loop(builder, depth, [ir.FloatType()(0.0)] * 2, step)
                both = _flushed(builder, builder.fadd(even, odd))
                total = builder.bitcast(_flushed(builder, builder.fadd(_flushed(builder, before), both)), I32)
            builder.store(total, at, align=1)

        _each(builder, rows, ROW // 4, cell)

    def _element(self, builder, word, q: int, operand: int):
        """Item q of a word of four bytes."""
        if self.halves:
            bits = builder.load(builder.bitcast(builder.gep(word, [I64(2 * q)]), I16.as_pointer()), align=1)
            value = widen(builder, bits, self.halves, "float32")
            return _flushed(builder, value) if self.halves == "bfloat16" else value  # of float16 none is a float32's
        value = builder.load(builder.gep(word, [I64(q)]))
        return (builder.sext if self.signs[operand] == "s" else builder.zext)(value, I32)


def _flushed(builder, value):
    """A float32, or its bits, with 0 of its sign in the place of a subnormal number."""
    bits = builder.bitcast(value, I32)
    small = builder.icmp_unsigned("<", builder.shl(bits, I32(1)), I32(1 << 24))
    bits = builder.select(small, builder.and_(bits, I32(-(1 << 31))), bits)
    return builder.bitcast(bits, ir.FloatType())


def unit(dtype: str) -> type[Unit]:
    """What multiplies elements of a dtype here: the unit, or, where there is none, its emulation."""
    return Unit if available(dtype) else Emulated
