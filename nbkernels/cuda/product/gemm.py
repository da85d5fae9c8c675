"""The call: C[i] = alpha * A[i] @ B[i] + beta * X[i] as numbers, a config, a kernel, one launch or two.

Operands of any strides are read where they are, but in large products by tensor cores, which only copies can make fit
(pack.py); C' = B' A' is computed where C is stored by columns. A batch's items are a dimension of the grid, with
strides that may be 0 or negative. Beyond 4096 steps of k sums of segments wait in a workspace: the size of C where a
block walks the segments of its tile, or that many times where each has a block.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace

import numpy as np

from ...jit.ir.kind import BYTES, Kind, wrapped
from ..launch import Kernel, capability, launch, multiprocessors, pointer
from ..memory import empty
from ..tuned import fastest
from .choose import choose, resident
from .config import PIECE, SEGMENT, WARP, GemmConfig
from .end import Ending, arguments
from .layout import shared
from .matrix import Matrix, access
from .pack import packed, packing
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
    ending: Ending | None = None
    tuned: bool = False  # whether the config is the tuner's

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
        return sizes, *matrices, work, beta, alpha, arguments(self.ending)


def plan(
    c, x, a, b, sizes, kind: Kind, device, config: GemmConfig | None = None, mode=None, ending: Ending | None = None,
    own: GemmConfig | None = None,
) -> Plan | Tensors:  # fmt: skip
    """How the Matrices are multiplied; sizes are m, n, k and items, `device` (compute capability, multiprocessors).

    `own`, the tuner's config, is taken where tensor maps describe the operands, once these are packed, or none are
    asked for; without it the library chooses.
    """
    m, n, k, items = sizes
    tensor = config is None and k > 0 and takes(kind, mode)
    if tensor:
        a, b = packing(a, b, sizes, kind, device)
    if own:
        own = replace(own, split=own.split and k > SEGMENT)
        if found := plan(c, x, a, b, sizes, kind, device, own, mode, ending):
            return replace(found, tuned=True)
    if (tensor and device[0] == (9, 0)) or (config and config.tier == "W"):
        found = tensors(c, x, a, b.transposed, sizes, kind, device, config, ending)
        if found or config:
            return found
    if abs(c.row) < abs(c.column):
        m, n, kind, a, b = n, m, kind.swapped(), b.transposed, a.transposed
        c, x, ending = c.transposed, x and x.transposed, ending and ending.transposed
    if tensor:
        config = mixed(kind.a, device, m, n, k, items)
    config = config or choose(*device, kind.chain, m, n, k, items)
    wide, held = PIECE // BYTES[kind.chain], kind.a if config.tier == "M" else kind.chain
    words = kind.direct and (ending is None or ending.end.out == (kind.out, kind.out))
    together = words and c.column == 1 and n % wide == 0 and c.aligned(wide, c.row, c.item)
    variant = Variant(
        config,
        kind,
        access(config, held, a, m, k),
        access(config, held, b.transposed, n, k),
        wide if together else 1,
        k == 0 or m % config.bm != 0 or n % config.bn != 0 or k % config.bk != 0,
        "whole" if k <= SEGMENT else "part" if config.split else "long",
        ending and ending.end,
    )
    return Plan(variant, m, n, k, items, c, x, a, b, ending)


def planned(
    out, x, a, b, kind: Kind, k: int, config: GemmConfig | None = None, mode=None, ending: Ending | None = None,
    winner=fastest,
) -> Plan | Tensors:  # fmt: skip
    """How `multiply` goes about it on the current device; `winner` says which config goes before the library's."""
    *items, m, n = out.shape
    c, left, right = (Matrix.of(each, each.shape) for each in (out, a, b))
    by = None if x is None else Matrix.of(x, out.shape)
    sizes, device = (m, n, k, *items, 1)[:4], (capability(), multiprocessors())
    own = winner(out, a, b, kind, mode) if config is None and k else None
    return plan(c, by, left, right, sizes, kind, device, config, mode, ending, own)


def multiply(
    out, x, a, b, beta, alpha, kind: Kind, k: int, config: GemmConfig | None = None, mode=None,
    ending: Ending | None = None,
) -> None:  # fmt: skip
    """out = alpha * a[..., :k] @ b[..., :k, :] + beta * x, or the ending's function of that, of matrices or of stacks.

    x may be None, or expand to out. out shares no memory with a and b, nor with x but element for element; it is not
    empty. Without steps of k the sum is 0, and a and b are not read.
    """
    run(planned(out, x, a, b, kind, k, config, mode, ending), out, beta, alpha, kind)


def run(made: Plan | Tensors, out, beta, alpha, kind: Kind) -> None:
    """Launch what is planned."""
    made, room = packed(made, out)
    factors = factor(beta, kind), factor(alpha, kind)
    sums = empty((made.words,), out, np.dtype(kind.word)) if made.words else None
    work = pointer(sums) if sums else pointer(out)
    for variant, blocks in made.launches:
        launch(kernel(variant), blocks, *made.arguments(*factors, work), stream=out.stream)
    del room, sums  # which all launches have needed


def factor(value, kind: Kind) -> tuple:
    """alpha or beta as kernels take it, a word or two."""
    value, real = wrapped(value, kind), np.dtype(kind.word).type
    return (real(value.real), real(value.imag))[: kind.planes]
