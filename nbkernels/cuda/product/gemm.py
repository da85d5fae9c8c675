"""The call: C[i] = alpha * A[i] @ B[i] + beta * X[i] as numbers, a config, a kernel, one launch or two.

Nothing is copied: operands of any strides are read where they are, and C' = B' A' is computed where C is stored by
columns. A batch's items are a dimension of the grid, with strides that may be 0 or negative. Beyond 4096 steps of k
sums of segments wait in a workspace: the size of C where a block walks the segments of its tile, or that many times
where each has a block.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace

import numpy as np

from ...jit.kind import BYTES, SIGNLESS, Kind, wrapped
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
        name = SIGNLESS.get(array.dtype.name, array.dtype.name)
        return cls(pointer(array, 0, stored(name)), name, strides[1], strides[2], strides[0])

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


def running(out) -> tuple[int, int]:
    """m and n of what is computed for an out: C' = B' A' where C is stored by columns, so that rows are stored."""
    m, n = out.shape[-2:]
    return (n, m) if abs(out.strides[-2]) < abs(out.strides[-1]) else (m, n)


@dataclass(frozen=True)
class Plan:
    """A product as numbers, C' = B' A' where that is stored along the rows: c, x, a and b of a variant's kernels."""

    variant: Variant
    m: int
    n: int
    k: int
    items: int
    c: Matrix
    x: Matrix | None
    a: Matrix
    b: Matrix

    @property
    def segments(self) -> int:
        return max(1, -(-self.k // SEGMENT))

    @property
    def tiles(self) -> int:
        return self.variant.config.tiles(self.m, self.n) * self.items

    @property
    def words(self) -> int:
        """Of sums that wait for segments to come."""
        config, waiting = self.variant.config, {"whole": 0, "long": 1, "part": self.segments}[self.variant.role]
        return self.tiles * config.bm * config.bn * self.variant.kind.planes * waiting

    @property
    def launches(self) -> list[tuple[Variant, int]]:
        """(kernel, blocks) in order."""
        roles = {"part": self.tiles * self.segments, "sum": self.tiles}
        if self.variant.role != "part":
            roles = {self.variant.role: self.tiles}
        teams = self.variant.config.teams
        return [(replace(self.variant, role=role), -(-tiles // teams)) for role, tiles in roles.items()]

    def arguments(self, beta, alpha, work) -> tuple:
        kind, x = self.variant.kind, self.c if self.x is None else self.x
        matrices = (each.arguments for each in (self.c, x, self.a, self.b))
        sizes = self.m, self.n, self.k, self.items, int(self.x is not None)
        return sizes, *matrices, work, factor(beta, kind), factor(alpha, kind)


def plan(c, x, a, b, sizes, kind: Kind, device, config: GemmConfig | None = None) -> Plan:
    """How the Matrices are multiplied; sizes are m, n, k and items, `device` (compute capability, multiprocessors)."""
    m, n, k, items = sizes
    if abs(c.row) < abs(c.column):
        m, n, kind, a, b = n, m, kind.swapped(), b.transposed, a.transposed
        c, x = c.transposed, x and x.transposed
    config = config or choose(*device, kind.chain, m, n, k, items)
    wide = PIECE // BYTES[kind.chain]
    together = kind.direct and c.column == 1 and n % wide == 0 and c.aligned(wide, c.row, c.item)
    variant = Variant(
        config,
        kind,
        access(config, kind.chain, a, m, k),
        access(config, kind.chain, b.transposed, n, k),
        wide if together else 1,
        k == 0 or m % config.bm != 0 or n % config.bn != 0 or k % config.bk != 0,
        "whole" if k <= SEGMENT else "part" if config.split else "long",
    )
    return Plan(variant, m, n, k, items, c, x, a, b)


def multiply(out, x, a, b, beta, alpha, kind: Kind, k: int, config: GemmConfig | None = None) -> None:
    """out = alpha * a[..., :k] @ b[..., :k, :] + beta * x, of matrices or of stacks of them.

    x may be None, or expand to out. out shares no memory with a and b, nor with x but element for element; it is not
    empty. Without steps of k the sum is 0, and a and b are not read.
    """
    *items, m, n = out.shape
    c, left, right = (Matrix.of(each, each.shape) for each in (out, a, b))
    by = None if x is None else Matrix.of(x, out.shape)
    made = plan(c, by, left, right, (m, n, k, *items, 1)[:4], kind, (capability(), multiprocessors()), config)
    work = pointer(empty((made.words,), out, np.dtype(kind.word))) if made.words else c.address
    for variant, blocks in made.launches:
        launch(kernel(variant), blocks, *made.arguments(beta, alpha, work), stream=out.stream)


def factor(value, kind: Kind) -> tuple:
    """alpha or beta as kernels take it, a word or two."""
    value, real = wrapped(value, kind), np.dtype(kind.word).type
    return (real(value.real), real(value.imag))[: kind.planes]
