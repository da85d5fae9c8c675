"""The call: C[i] = alpha * A[i] @ B[i] + beta * X[i] as numbers, a config, a kernel, one launch or two.

Nothing is copied: operands of any strides are read where they are, and C' = B' A' is computed where C is stored by
columns. A batch's items are a dimension of the grid, with strides that may be 0 or negative. Beyond 4096 steps of k
sums of segments wait in a workspace: the size of C where a block walks the segments of its tile, or that many times
where each has a block.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np

from ...jit.kind import BYTES, Kind, wrapped
from ...strides import broadcast_strides
from ..launch import Kernel, capability, elements, launch, multiprocessors, pointer, stored
from ..memory import empty
from .choose import choose, resident
from .config import PIECE, SEGMENT, WARP, GemmConfig
from .layout import Access, shared
from .variant import Variant


@functools.cache
def kernel(variant: Variant) -> Kernel:
    config, chain = variant.config, variant.kind.chain
    bytes_ = shared(config, chain, variant.a, variant.b) * config.teams
    blocks = min(resident(config, chain), max(1, 16 * WARP // config.threads))
    return Kernel("nbkernels.cuda.product.kernel:make", (variant,), config.threads, blocks, bytes_)


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
        return cls(pointer(array, 0, stored(array.dtype.name)), array.dtype.name, strides[1], strides[2], strides[0])

    @property
    def transposed(self) -> Matrix:
        return Matrix(self.address, self.dtype, self.column, self.row, self.item)

    @property
    def arguments(self) -> tuple:
        return self.address, self.row, self.column, self.item

    def aligned(self, vector: int, *strides: int) -> bool:
        """Whether pieces of `vector` elements may start at the address and at every multiple of the strides."""
        return self.address % (vector * BYTES[self.dtype]) == 0 and all(stride % vector == 0 for stride in strides)


def access(config: GemmConfig, chain: str, matrix: Matrix, lines: int, k: int) -> Access:
    """How slices of an operand are read: mat1, or mat2 transposed, so that its lines are rows.

    Neighbouring threads walk the direction that is closer in memory, 16 bytes each where these are contiguous and
    aligned; tier S wants lines side by side in shared memory, so that it copies single elements along k.
    """
    line, step = matrix.row, matrix.column
    by_lines = k == 1 or (lines > 1 and abs(line) < abs(step))
    wide = PIECE // BYTES[chain]
    contiguous = (line if by_lines else step) == 1 and (by_lines or config.tier == "D")
    vector = wide if contiguous and matrix.aligned(wide, step if by_lines else line, matrix.item) else 1
    if matrix.dtype != chain:
        return Access("l" if by_lines else "k", 1, plain=True)
    return Access("l" if by_lines else "k", vector)


def multiply(out, x, a, b, beta, alpha, kind: Kind, k: int, config: GemmConfig | None = None) -> None:
    """out = alpha * a[..., :k] @ b[..., :k, :] + beta * x, of matrices or of stacks of them.

    x may be None, or expand to out. out shares no memory with a and b, nor with x but element for element; it is not
    empty. Without steps of k the sum is 0, and a and b are not read.
    """
    *items, m, n = out.shape
    items = items[0] if items else 1
    c, left, right = (Matrix.of(each, each.shape) for each in (out, a, b))
    by = c if x is None else Matrix.of(x, out.shape)
    if abs(c.row) < abs(c.column):
        m, n, kind = n, m, kind.swapped()
        c, by, left, right = c.transposed, by.transposed, right.transposed, left.transposed
    config = config or choose(capability(), multiprocessors(), kind.chain, m, n, k, items)
    vector = PIECE // BYTES[kind.chain]
    along = kind.direct and c.column == 1 and n % vector == 0 and c.aligned(vector, c.row, c.item)
    segments = max(1, -(-k // SEGMENT))
    variant = Variant(
        config,
        kind,
        access(config, kind.chain, left, m, k),
        access(config, kind.chain, right.transposed, n, k),
        vector if along else 1,
        k == 0 or m % config.bm != 0 or n % config.bn != 0 or k % config.bk != 0,
        "whole" if segments == 1 else "part" if config.split else "long",
    )
    tiles = config.tiles(m, n) * items
    words = tiles * config.bm * config.bn * kind.planes * (0 if segments == 1 else segments if config.split else 1)
    work = pointer(empty((words,), out, np.dtype(kind.word))) if words else c.address
    arguments = (
        (m, n, k, items, int(x is not None)), c.arguments, by.arguments, left.arguments, right.arguments, work,
        factor(beta, kind), factor(alpha, kind),
    )  # fmt: skip
    for role in ("part", "sum") if variant.role == "part" else (variant.role,):
        blocks = -(-tiles * (segments if role == "part" else 1) // config.teams)
        launch(kernel(variant.doing(role)), blocks, *arguments, stream=out.stream)


def factor(value, kind: Kind) -> tuple:
    """alpha or beta as kernels take it, a word or two."""
    value, real = wrapped(value, kind), np.dtype(kind.word).type
    return (real(value.real), real(value.imag))[: kind.planes]
