"""Operands that are packed first: copied into rows, or columns, that begin at multiples of 16 bytes.

Tensor maps and copies of 16 bytes reach no others, and wgmma multiplies bytes and tfloat32 along k alone. A packed
operand keeps the direction that is closer in memory, so that the copy is a straight one, unless it has to be turned;
what all items share is copied once. The product is that of the same numbers in the same order, so its bits do not
depend on the copy.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from ...dispatch.driver import DeviceView
from ...jit.ir.kind import BYTES, Kind
from ...scalar import find
from ..elementwise import run
from ..launch import Place
from ..memory import empty
from .choose import LAUNCH
from .config import PIECE, SEGMENT, WARP
from .layout import Access
from .matrix import Matrix, access
from .tensor import choose, cost, mixed
from .tensormap import LINE, contiguous

# Cycles of a copy's launch: 3 us on the device, and 6 of the host, which makes the room and prepares it: calls of less
# than 26 us are as fast as the host calls (H200, mm of 256 to 1024).
START = 3 * LAUNCH
# RATE: bytes that a multiprocessor reads and writes in a cycle of a copy, by compute capability (0.8 of 4.3 TB/s on an
# H200, measured; 0.75 of data sheets), REST on others. ELEMENTS: how many, where they move one by one or by tiles (an
# H200 adds 2.9 strided float16 and 1.7 transposed ones).
RATE, REST, ELEMENTS = {(9, 0): 15, (8, 0): 8}, 3, 2
# mma.sync has at most 0.62 of wgmma's rate on compute capability 9.0 (W. Luo et al., Benchmarking and Dissecting the
# Nvidia Hopper GPU Architecture, 2024).
SLOWER = 1.6
# Cycles that copies of single elements add to a slice of tier M: seven instructions of a warp each, over four
# schedulers, and the latency of L2, of which multiplications hide little because the loads run one slice ahead.
# Predicted from the machine code of a slice of 128x64x32: 405 instructions of a warp, 192 of which load and store.
ISSUE, LATENCY = 7 / 4, 600


@dataclass(frozen=True)
class Packed(Matrix):
    """A matrix that is to be copied from `source`: items, rows and columns of its `shape`; the address counts from the
    room that is made for the packed operands of a product, of which `operand` says which one this is."""

    operand: str
    source: Matrix
    shape: tuple[int, int, int]

    @property
    def transposed(self) -> Packed:
        items, rows, columns = self.shape
        shape, source = (items, columns, rows), self.source.transposed
        return replace(self, row=self.column, column=self.row, source=source, shape=shape)

    @property
    def end(self) -> int:
        """Bytes of the room up to here."""
        items, rows, columns = self.shape
        elements = max(items * self.item, rows * self.row, columns * self.column)
        return self.address + -(-elements * BYTES[self.dtype] // LINE) * LINE


def packing(a: Matrix, b: Matrix, sizes, kind: Kind, device) -> tuple[Matrix, Matrix]:
    """mat1 and mat2 of a product by tensor cores, Packed where that is predicted to pay; sizes: m, n, k and items."""
    m, n, k, items = sizes
    cc, multiprocessors = device
    config, wgmma = mixed(kind.a, device, m, n, k, items), cc == (9, 0)
    sides = (a, m), (b.transposed, n)
    found = [access(config, side.dtype, side, lines, k) for side, lines in sides]
    wide = PIECE // BYTES[a.dtype]
    fits = [_readable(side, lines, k, items) if wgmma else each.vector == wide
            for (side, lines), each in zip(sides, found)]  # fmt: skip
    if all(fits):
        return a, b
    made, end = [], 0
    for operand, (side, lines), fit in zip(("mat1", "mat2"), sides, fits):
        if not fit:
            side = _packed(operand, side, lines, k, items, wgmma, end)
            end = side.end
        made.append(side)
    now = better = cost(config, multiprocessors, m, n, k, items)
    if wgmma:
        tile, turned = choose(kind.a, kind.out, multiprocessors, m, n, k, items)
        now, better = now * SLOWER, cost(tile, multiprocessors, *((n, m) if turned else (m, n)), k, items)
    now += _fetching(config, found, wide, multiprocessors, sizes)
    if now <= better + sum(_copying(side, device) for side in made if isinstance(side, Packed)):
        return a, b
    return made[0], made[1].transposed


def _readable(matrix: Matrix, lines: int, k: int, items: int) -> bool:
    """Whether wgmma multiplies a matrix where it lies."""
    direction = contiguous(matrix, lines, k, items)
    return direction == "k" or (direction == "l" and BYTES[matrix.dtype] == 2)


def _packed(operand: str, matrix: Matrix, lines: int, k: int, items: int, wgmma: bool, start: int) -> Packed:
    """lines x k of a matrix, as they are going to lie in the room from `start` on."""
    size, count = BYTES[matrix.dtype], items if matrix.item else 1
    across = lines > 1 and 0 < abs(matrix.row) < abs(matrix.column) and size in ((2,) if wgmma else (2, 4))
    inner, outer = (lines, k) if across else (k, lines)
    whole = LINE if inner * size > 8 * LINE else PIECE  # whole lines of memory where they are an eighth more at most
    pitch = -(-inner * size // whole) * whole // size
    row, column = (1, pitch) if across else (pitch, 1)
    item = outer * pitch if count > 1 else 0
    return Packed(start, matrix.dtype, row, column, item, operand, matrix, (count, lines, k))


def _copying(side: Packed, device) -> float:
    """Cycles of a copy."""
    (cc, multiprocessors), count = device, math.prod(side.shape)
    return START + max(2 * count * BYTES[side.dtype] / RATE.get(cc, REST), count / ELEMENTS) / multiprocessors


def _fetching(config, found: list[Access], wide: int, multiprocessors: int, sizes) -> float:
    """Cycles that copies of fewer than `wide` elements add to a product of tier M, on the busiest multiprocessor."""
    m, n, k, items = sizes
    units = config.tiles(m, n) * items * (-(-k // SEGMENT) if config.split else 1)
    slices = -(-units // multiprocessors) * -(-min(k, SEGMENT if config.split else k) // config.bk)
    lines = (config.bm, config.bn)
    copies = sum(x * config.bk / each.vector / WARP for x, each in zip(lines, found) if each.vector < wide)
    return slices * (copies * ISSUE + LATENCY * any(each.plain for each in found))


def copies(made) -> dict[str, Packed]:
    """The Packed operands of a plan, "a" and "b"."""
    return {name: side for name in ("a", "b") if isinstance(side := getattr(made, name), Packed)}


def packed(made, like):
    """A plan whose Packed operands have been copied, and the room that they are in, to be kept until all is launched.

    The room comes from the library of `like`, and the copies are launched on its stream.
    """
    sides = copies(made)
    if not sides:
        return made, None
    room = empty((max(side.end for side in sides.values()),), like, np.dtype("uint8"))
    for name, side in sides.items():
        there, bits = replace(side, address=Place(room.address + side.address)), np.dtype(f"u{BYTES[side.dtype]}")
        run(find("first", bits), *(_array(x, side.shape, bits, room) for x in (there, side.source)), 0, (bits,) * 3)
        made = replace(made, **{name: there})
    return made, room


def _array(matrix: Matrix, shape, dtype, like) -> DeviceView:
    """A matrix as an array of a dtype of the same size."""
    strides = tuple(step * dtype.itemsize for step in (matrix.item, matrix.row, matrix.column))
    return DeviceView(matrix.address, shape, strides, dtype, like.device, like.stream, None, None)
