"""The plan of mv whose warps bring rows to shared memory ahead: which products, and how. Pure numbers."""

from __future__ import annotations

from dataclasses import dataclass

from ..jit.ir.kind import BYTES, SIZE, Kind
from .product.layout import Access, Slice
from .tiles import PIECE, SEGMENT, WARP

STAGE = 4096  # bytes of A in a stage
# Stages of a warp, by the warps of a block. A stage is 4.7 KB, so that 227 KB of a multiprocessor hold 6, 4 or 3 blocks
# and 99 KB hold 2, 1 or 1. Where two warps are at work on each of 132 multiprocessors they have 7 MB on their way: 4.4
# TB/s with a latency of 1 us ask for 4.4.
STAGES = {1: 8, 2: 6, 4: 4}
LEAST = 512  # bytes of a row: fewer do not fill a ring


@dataclass(frozen=True)
class Staged:
    """All that the kernel's text depends on.

    access    how A is read from global memory
    warps     of a block, which take segments of the same rows in turns
    """

    kind: Kind
    chains: int
    access: Access
    warps: int

    def __str__(self) -> str:
        return f"{self.kind} {self.chains} {self.access} {self.warps}"

    @property
    def slice(self) -> Slice:
        """A's part of a stage. Rows along k lie 16 bytes more than 128 apart, so that 8 lanes that read 16 bytes of a
        row each meet every bank once; of rows side by side a lane has 4 bytes or one element."""
        size = BYTES[self.kind.a]
        if self.access.order == "l":
            rows = WARP * max(1, 4 // size)
            return Slice(rows, STAGE // (rows * size), 1, rows, size, self.access)
        depth = STAGE // (WARP * size)
        return Slice(WARP, depth, depth + PIECE // size, 1, size, self.access)

    @property
    def stages(self) -> int:
        return STAGES[self.warps]

    @property
    def stage(self) -> int:
        """Bytes from stage to stage: A's part and v's."""
        return self.slice.bytes + self.slice.depth * self.slice.size

    @property
    def shared(self) -> int:
        """Bytes of a block's rings."""
        return self.warps * self.stages * self.stage


def staged(kind: Kind, chains: int, k: int, address: int, row: int, step: int) -> Staged | None:
    """How rows of k steps are staged, with strides in elements; None where they are not.

    Neighbouring lanes walk the direction that is closer in memory, by 16 bytes where these are contiguous and aligned.
    Elements of less than 4 bytes are not copied asynchronously one by one: then they go through registers.
    """
    size = BYTES[kind.a]
    if kind.way != "fma" or kind.chain not in SIZE or size != BYTES[kind.b] or k * size < LEAST:
        return None
    by_rows, wide = abs(step) <= abs(row), PIECE // size
    along, across = (step, row) if by_rows else (row, step)
    pieces = along == 1 and across % wide == 0 and address % PIECE == 0
    if by_rows and pieces and size == 8:  # 8192 x 4096 take 77 us this way, 69 by groups of threads (H200, 2026-11)
        return None
    access = Access("k" if by_rows else "l", wide) if pieces else Access("k" if by_rows else "l", 1, plain=size < 4)
    return Staged(kind, chains, access, 4 if k > 2 * SEGMENT else -(-k // SEGMENT))
