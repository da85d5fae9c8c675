"""The form of a wgmma kernel, the bytes that follow from it, and operands as tensor maps. Pure numbers, without Numba.

A tensor map describes a stack of matrices whose rows, or columns, are contiguous, and the box that one copy moves.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...jit.ir.kind import BYTES, Kind
from ..launch import Kernel, TensorMap
from .config import WARP, GemmConfig
from .end import End

WARPGROUP, LINE, ROWS = 128, 128, 64  # threads; bytes of a row in shared memory; rows of C that a warpgroup makes
CHUNK = ROWS * LINE
SLOTS = 2  # pieces of C that a warpgroup has on their way to global memory, of CHUNK bytes
MOST = 1 << 40  # bytes that a stride of a tensor map stays below


@dataclass(frozen=True)
class Form:
    """All that a wgmma kernel's text depends on.

    a, b    the contiguous direction of mat1 and of mat2: "k", or "l", across lines
    c       how C is stored: "rows" or "columns", by tensor copies along these; "any", element by element
    role    "whole": k up to a segment; "long": a block walks several segments; "part" and "sum": a block a segment, and
            then the sum of all
    end     as variant.py has it; C is stored element by element then
    """

    config: GemmConfig
    kind: Kind
    a: str = "k"
    b: str = "k"
    c: str = "rows"
    role: str = "whole"
    end: End | None = None

    def __str__(self) -> str:
        end = f", {self.end}" if self.end else ""
        return f"{self.kind} {self.config}, {self.a} {self.b} {self.c}, {self.role}{end}"

    @property
    def groups(self) -> int:
        """Warpgroups that multiply."""
        return self.config.bm // ROWS

    @property
    def depth(self) -> int:
        """Steps of k in a stage: a line of shared memory."""
        return LINE // BYTES[self.kind.a]

    @property
    def threads(self) -> int:
        """Registers are given out by warps to four schedulers, and a ninth warp leaves the others as few as a twelfth
        does: where several warpgroups multiply, a whole one loads, and hands on the registers that it does not need."""
        return self.groups * WARPGROUP + (WARPGROUP if self.groups > 1 else WARP)

    @property
    def registers(self) -> tuple[int, int]:
        """Of a thread that loads, and of one that multiplies, where they differ."""
        each, fewer = 65536 // self.threads // 8 * 8, {2: 56}.get(self.groups, 32)
        return fewer, min(240, (each * (self.groups + 1) - fewer) // self.groups // 8 * 8)

    @property
    def stage(self) -> tuple[int, int]:
        """Bytes of A and of B."""
        lines = self.config.bn if self.b == "k" else -(-self.config.bn // ROWS) * ROWS
        return self.config.bm * LINE, lines * LINE

    @property
    def slots(self) -> int:
        """Where pieces of C begin, behind the stages."""
        return self.config.stages * sum(self.stage)

    @property
    def barriers(self) -> int:
        return self.slots + self.groups * SLOTS * CHUNK

    @property
    def shared(self) -> int:
        """Bytes of a block: two barriers a stage come last."""
        return self.barriers + 16 * self.config.stages

    @property
    def piece(self) -> int:
        """Columns of C that are stored at a time, of a warp's 16 rows; of C stored by columns, of a warpgroup's 64."""
        if self.c == "rows":
            return LINE // BYTES[self.kind.out]
        return min(ROWS if self.c == "columns" else LINE // 4, self.config.bn & -self.config.bn)

    def box(self, operand: str) -> tuple[int, int, int]:
        """What one copy moves of "a", "b" or "c": contiguous elements, lines of them, items."""
        if operand == "c":
            return LINE // BYTES[self.kind.out], self.piece if self.c == "columns" else 16, 1
        lines = self.config.bm if operand == "a" else self.config.bn
        return (self.depth, lines, 1) if getattr(self, operand) == "k" else (ROWS, self.depth, 1)


def contiguous(matrix, rows: int, columns: int, items: int) -> str | None:
    """ "k" where rows of a matrix are contiguous, "l" where columns are, None where no tensor map can describe it.

    The address and the other strides have to be multiples of 16 bytes; those of a dimension of one element are free.
    """
    size = BYTES[matrix.dtype]
    sides = ("k", matrix.column, matrix.row, rows), ("l", matrix.row, matrix.column, columns)
    for direction, step, line, lines in sides:
        if step == 1 and _fits(line * size, lines) and (matrix.item == 0 or _fits(matrix.item * size, items)):
            return direction if matrix.address % 16 == 0 and max(rows, columns, items) < 1 << 31 else None
    return None


def _fits(stride: int, count: int) -> bool:
    return count == 1 or (0 < stride < MOST and stride % 16 == 0)


def tensor_map(matrix, form: Form, operand: str, rows: int, columns: int, items: int) -> TensorMap:
    """The map of mat1, of mat2 transposed, so that its lines are rows too, or of C."""
    size, along = BYTES[matrix.dtype], matrix.column == 1 if operand == "c" else getattr(form, operand) == "k"
    along = form.c == "rows" if operand == "c" else along
    inner, outer, line = (columns, rows, matrix.row) if along else (rows, columns, matrix.column)
    strides = [line * size if outer > 1 else 16, matrix.item * size if items > 1 and matrix.item else 16]
    dtype = "tfloat32" if matrix.dtype == "float32" and operand != "c" else matrix.dtype
    count = items if matrix.item else 1
    return TensorMap(matrix.address, (inner, outer, count), tuple(strides), form.box(operand), dtype)


def kernel(form: Form) -> Kernel:
    return Kernel("nbkernels.cuda.product.wgmma:make", (form,), form.threads, 1, form.shared)
