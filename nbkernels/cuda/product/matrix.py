"""Operands as numbers, and how threads read their slices. Pure numbers, without Numba."""

from __future__ import annotations

from dataclasses import dataclass

from ...jit.ir.kind import BYTES, SIGNLESS
from ...strides import broadcast_strides
from ..launch import elements, pointer, stored
from .config import PIECE, GemmConfig
from .layout import Access


@dataclass(frozen=True)
class Matrix:
    """A stack of matrices as numbers: strides in elements, of rows, columns and items."""

    address: int
    dtype: str
    row: int
    column: int
    item: int

    @classmethod
    def of(cls, array, shape) -> Matrix:
        """An array of two or three dimensions, walked over a shape that it expands to."""
        strides = (0, *elements(array, broadcast_strides(shape, array.shape, array.strides)))[-3:]
        name = SIGNLESS.get(array.dtype.name, array.dtype.name)  # the same bits modulo 2**bits
        return cls(pointer(array, 0, stored(array.dtype.name)), name, strides[1], strides[2], strides[0])

    @property
    def transposed(self) -> Matrix:
        return Matrix(self.address, self.dtype, self.column, self.row, self.item)

    @property
    def arguments(self) -> tuple:
        return self.address, self.row, self.column, self.item

    def aligned(self, vector: int, *strides: int) -> bool:
        """Whether pieces of `vector` elements may start at the address and at every multiple of the strides."""
        return self.address % (vector * BYTES[self.dtype]) == 0 and all(stride % vector == 0 for stride in strides)


def access(config: GemmConfig, held: str, matrix: Matrix, lines: int, k: int) -> Access:
    """How slices of an operand are read: mat1, or mat2 transposed, so that its lines are rows.

    Neighbouring threads walk the direction that is closer in memory, 16 bytes each where these are contiguous and
    aligned; of tier M 8 or 4 where they are aligned to that. Tier S wants lines side by side in shared memory, so that
    it copies single elements along k. `held` is the dtype in shared memory; tier M holds bytes along k alone, and
    single elements of less than 4 bytes are not copied asynchronously. The last piece of a line is a part of one only
    where another line follows, or could: a copy beyond an array, of which nothing is read, is still an error for
    compute-sanitizer.
    """
    line, step = (matrix.row, matrix.column) if k else (0, 0)  # nothing is read: one kernel for all strides
    by_lines = k <= 1 or (lines > 1 and abs(line) < abs(step))
    order, size = "l" if by_lines else "k", BYTES[held]
    if BYTES[matrix.dtype] != size or (matrix.dtype != held and size > 1):
        return Access(order, 1, plain=True)
    along, across = (line, step) if by_lines else (step, line)
    widths, length = (PIECE, 8, 4) if config.tier == "M" else (PIECE,), lines if by_lines else k
    vectors = [width // size for width in widths if width > size and matrix.aligned(width // size, across or length,
                                                                                    matrix.item)]  # fmt: skip
    if along != 1 or (by_lines and size == 1) or (config.tier == "S" and not by_lines):
        vectors = []
    vector = max(vectors, default=1)
    return Access(order, vector, plain=vector * size < 4)
