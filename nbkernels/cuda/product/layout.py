"""Layouts: slices of A and B in shared memory, a tile of C over warps and lanes. Pure numbers.

A line is a row of A or a column of B; k is the depth of a slice. Both operands are described alike.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

from ...jit.ir.kind import BYTES
from .config import PARTS, PIECE, WARP, GemmConfig


@dataclass(frozen=True)
class Access:
    """How threads read an operand's slices from global memory. Prints as `k1`, `l4`.

    order    the direction that neighbouring threads walk: "k", along k, or "l", across lines
    vector   elements of one copy, which are contiguous in that direction where there are several
    plain    by loads that convert, and stores, in the place of asynchronous copies
    generic  from global or shared memory, by plain loads
    """

    order: str
    vector: int
    plain: bool = False
    generic: bool = False

    def __str__(self) -> str:
        return f"{self.order}{self.vector}{'p' * self.plain}"


@dataclass(frozen=True)
class Slice:
    """`lines` x `depth` elements of `size` bytes in shared memory: (i, p) is element i * line + p * step there."""

    lines: int
    depth: int
    line: int
    step: int
    size: int
    access: Access

    @property
    def bytes(self) -> int:
        elements = (self.lines - 1) * self.line + (self.depth - 1) * self.step + 1
        return -(-elements * self.size // PIECE) * PIECE

    @property
    def by_lines(self) -> bool:
        return self.access.order == "l"

    @property
    def along(self) -> int:
        """Elements in the direction that neighbouring threads walk."""
        return self.lines if self.by_lines else self.depth

    @property
    def pieces(self) -> int:
        """Copies that one walk along takes."""
        return self.along // self.access.vector

    def copies(self, threads: int) -> list[tuple[int, int, int]]:
        """(along, across, bytes of shared memory) of each copy of a thread, beyond its first.

        Thread t begins at (t % pieces * vector, t // pieces).

        >>> Slice(128, 8, 1, 132, 4, Access("k", 1)).copies(256)
        [(0, 0, 0), (0, 32, 128), (0, 64, 256), (0, 96, 384)]
        >>> Slice(256, 8, 1, 256, 4, Access("l", 4)).copies(256)
        [(0, 0, 0), (0, 4, 4096)]
        """
        each = self.lines * self.depth // (self.access.vector * threads)
        per, vector = max(1, self.pieces // threads), self.access.vector
        rows = max(1, threads // self.pieces)
        along, across = (self.line, self.step) if self.by_lines else (self.step, self.line)
        places = ((i % per * threads * vector, i // per * rows) for i in range(each))
        return [(x, y, (x * along + y * across) * self.size) for x, y in places]


@dataclass(frozen=True)
class Part:
    """What a thread has of a tile: tm x tn elements. A warp's lanes stand lm x ln, the warps `down` x `across`."""

    tm: int
    tn: int
    lm: int
    ln: int
    down: int
    across: int

    @property
    def wm(self) -> int:
        return self.tm * self.lm

    @property
    def wn(self) -> int:
        return self.tn * self.ln


@functools.cache
def part(config: GemmConfig, chain: str) -> Part | None:
    """The part of a thread, or None where warps do not cover the tile: a warp's as square as it can be, so that it
    reads the least of shared memory; of two alike, the taller. Its lanes stand in two rows and columns at the least.

    >>> part(GemmConfig("S", 128, 256, 8, 4, 8), "float32")
    Part(tm=8, tn=16, lm=8, ln=4, down=2, across=4)
    >>> part(GemmConfig("D", 128, 128, 16, 4, 8), "float64")
    Part(tm=8, tn=8, lm=8, ln=4, down=2, across=4)
    """
    found = []
    if config.matrix:  # lanes 8 x 4; a warp has (16 mi) x (8 ni) elements, a thread 2 mi x 2 ni of them
        shapes = [(8, 4, 2 * i, config.each // (2 * i)) for i in (1, 2, 4) if config.each % (4 * i) == 0]
    else:
        tm, tn = PARTS[config.each]
        shapes = [(lm, WARP // lm, tm, tn) for lm in (2, 4, 8, 16)]
    for lm, ln, tm, tn in shapes:
        down, across = config.bm // (lm * tm), config.bn // (ln * tn)
        if down * across == config.warps and (down * lm * tm, across * ln * tn) == (config.bm, config.bn):
            found.append(Part(tm, tn, lm, ln, down, across))
    return min(found, key=lambda each: (each.wm + each.wn, -each.wm), default=None)


def slices(config: GemmConfig, dtype: str, a: Access, b: Access) -> tuple[Slice, Slice]:
    """A's and B's, held as a dtype. Tier S reads lines side by side, so that k is the outer dimension; the padding of a
    piece keeps the stores of threads that walk along k out of each other's banks. Tier D reads single numbers of 4 k x
    8 lines, and meets each bank once where the outer dimension is 4 numbers longer than a multiple of 16. Tier M reads
    8 pieces of 16 bytes, of lines along k, and across lines only what is copied as it lies; tfloat32 there by numbers.
    """
    size = BYTES[dtype]

    def one(lines: int, access: Access) -> Slice:
        if config.double:
            line, step = (1, lines + 4) if access.order == "l" else (config.bk + 4, 1)
        elif config.tier == "M":
            across = access.order == "l" and not access.plain
            line, step = (1, lines + (16 if size == 2 else 32) // size) if across else (config.bk + PIECE // size, 1)
        else:
            line, step = 1, lines + (PIECE // size if access.order == "k" else 0)
        return Slice(lines, config.bk, line, step, size, access)

    return one(config.bm, a), one(config.bn, b)


def shared(config: GemmConfig, chain: str, a: Access, b: Access, held: str | None = None) -> int:
    """Bytes of a tile's stages."""
    return -(-config.stages * sum(each.bytes for each in slices(config, held or chain, a, b)) // 128) * 128


@dataclass(frozen=True)
class Pieces:
    """How a thread's chains lie in C: groups of them, and in each `count` pieces of `width` neighbours in a row.

    Group g begins at row g // inner * outer + g % inner of the thread's, piece h of it at row h % rows * 8 and column
    h // rows * step from there.
    """

    groups: int
    inner: int
    outer: int
    count: int
    width: int
    rows: int
    step: int


@functools.cache
def pieces(config: GemmConfig, chain: str) -> Pieces:
    mine, wide = part(config, chain), PIECE // BYTES[chain]
    if config.matrix:  # a group is 16 rows of the warp's, of which a lane has two, and pairs in each 8 columns
        return Pieces(mine.tm // 2, 1, 16, mine.tn, 2, 2, 8)
    tall, width = min(mine.tm, wide), min(mine.tn, wide)
    return Pieces(mine.tm, tall, mine.lm * tall, mine.tn // width, width, 1, mine.ln * width)


def lane_bits(lm: int, ln: int) -> tuple[list[int], list[int]]:
    """Bits of the lane that count its row and its column, lowest first: the first bit a column's, the second a row's,
    then the other columns'. So lanes n and n ^ 1 read the same of A, n and n ^ 2 the same of B, and a 16-byte load
    takes 2 passes in the place of 3.

    >>> lane_bits(8, 4)
    ([1, 3, 4], [0, 2])
    """
    rows, columns = lm.bit_length() - 1, ln.bit_length() - 1
    order = "n" * (columns > 0) + "m" * (rows > 0) + "n" * max(0, columns - 1) + "m" * max(0, rows - 1)
    return [i for i, x in enumerate(order) if x == "m"], [i for i, x in enumerate(order) if x == "n"]
