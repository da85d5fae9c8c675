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

from ...jit.ir.kind import BYTES, SIGNLESS, Kind, wrapped
from ...strides import broadcast_strides
from ..launch import Kernel, capability, elements, launch, multiprocessors, pointer, stored
from ..memory import empty
from .choose import choose, resident
from .config import PIECE, SEGMENT, WARP, GemmConfig
from .layout import Access, shared
from .tensor import Tensors, mixed, takes, tensors
from .tensormap import Form
from .tensormap import kernel as wgmma
from .variant import Variant


@functools.cache
def kernel(variant: Variant | Form) -> Kernel:
    if isinstance(variant, Form):
        return wgmma(variant)
    config, chain = variant.config, variant.kind.chain
    bytes_ = shared(config, chain, variant.a, variant.b, variant.held) * config.teams
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
    aligned; tier S wants lines side by side in shared memory, so that it copies single elements along k. `held` is
    the dtype in shared memory; tier M holds bytes along k alone, and single elements of less than 4 bytes are not
    copied asynchronously.
    """
    line, step = (matrix.row, matrix.column) if k else (0, 0)  # nothing is read: one kernel for all strides
    by_lines = k <= 1 or (lines > 1 and abs(line) < abs(step))
    order, wide, size = "l" if by_lines else "k", PIECE // BYTES[held], BYTES[held]
    if BYTES[matrix.dtype] != size or (matrix.dtype != held and size > 1):
        return Access(order, 1, plain=True)
    along, across = (line, step) if by_lines else (step, line)
    pieces = along == 1 and matrix.aligned(wide, across, matrix.item) and not (by_lines and size == 1)
    if not pieces or (config.tier == "S" and not by_lines):
        return Access(order, 1, plain=size < 4)
    return Access(order, wide)


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
        x = self.c if self.x is None else self.x
        matrices = (each.arguments for each in (self.c, x, self.a, self.b))
        sizes = self.m, self.n, self.k, self.items, int(self.x is not None)
        return sizes, *matrices, work, beta, alpha


def plan(c, x, a, b, sizes, kind: Kind, device, config: GemmConfig | None = None, mode=None) -> Plan | Tensors:
    """How the Matrices are multiplied; sizes are m, n, k and items, `device` (compute capability, multiprocessors)."""
    m, n, k, items = sizes
    tensor = config is None and k > 0 and takes(kind, mode)
    if (tensor and device[0] == (9, 0)) or (config and config.tier == "W"):
        found = tensors(c, x, a, b.transposed, sizes, kind, device, config)
        if found or config:
            return found
    if abs(c.row) < abs(c.column):
        m, n, kind, a, b = n, m, kind.swapped(), b.transposed, a.transposed
        c, x = c.transposed, x and x.transposed
    if tensor:
        config = mixed(kind.a, device, m, n, k, items)
    config = config or choose(*device, kind.chain, m, n, k, items)
    wide, held = PIECE // BYTES[kind.chain], kind.a if config.tier == "M" else kind.chain
    together = kind.direct and c.column == 1 and n % wide == 0 and c.aligned(wide, c.row, c.item)
    variant = Variant(
        config,
        kind,
        access(config, held, a, m, k),
        access(config, held, b.transposed, n, k),
        wide if together else 1,
        k == 0 or m % config.bm != 0 or n % config.bn != 0 or k % config.bk != 0,
        "whole" if k <= SEGMENT else "part" if config.split else "long",
    )
    return Plan(variant, m, n, k, items, c, x, a, b)


def planned(out, x, a, b, kind: Kind, k: int, config: GemmConfig | None = None, mode=None) -> Plan | Tensors:
    """How `multiply` goes about it on the current device."""
    *items, m, n = out.shape
    c, left, right = (Matrix.of(each, each.shape) for each in (out, a, b))
    by = None if x is None else Matrix.of(x, out.shape)
    return plan(c, by, left, right, (m, n, k, *items, 1)[:4], kind, (capability(), multiprocessors()), config, mode)


def multiply(out, x, a, b, beta, alpha, kind: Kind, k: int, config: GemmConfig | None = None, mode=None) -> None:
    """out = alpha * a[..., :k] @ b[..., :k, :] + beta * x, of matrices or of stacks of them.

    x may be None, or expand to out. out shares no memory with a and b, nor with x but element for element; it is not
    empty. Without steps of k the sum is 0, and a and b are not read.
    """
    made = planned(out, x, a, b, kind, k, config, mode)
    factors = factor(beta, kind), factor(alpha, kind)
    room = empty((made.words,), out, np.dtype(kind.word)) if made.words else None  # kept until all is launched
    work = pointer(room) if room else pointer(out)
    for variant, blocks in made.launches:
        launch(kernel(variant), blocks, *made.arguments(*factors, work), stream=out.stream)


def factor(value, kind: Kind) -> tuple:
    """alpha or beta as kernels take it, a word or two."""
    value, real = wrapped(value, kind), np.dtype(kind.word).type
    return (real(value.real), real(value.imag))[: kind.planes]
