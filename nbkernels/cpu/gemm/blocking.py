"""Tile sizes: how a product is cut for registers and caches (Goto and van de Geijn, 2008; BLIS, Low et al., 2016).

mr x nr   C in registers: mr*nv accumulators + nv vectors of B + 1 of A fit the register file, nv = 2
kc        an A panel (mr x kc) stays in L1 while panels of B stream past it, or both stream from L2
nb        a B block (kc x nb) stays in L2 while panels of A pass over it
mc, nc    what is packed at once: bounds the pack buffers to kc*(mc + nc) elements
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace

from ...jit.ir.amx import ROWS
from ...jit.ir.kind import BYTES, UNIT, Kind
from ...jit.ir.tile import Tile
from ...jit.ir.vector import LINE, SIZE, width_bits
from ..runtime.machine import machine

SEGMENT = 4096  # steps of k in one chain of fused multiply-adds: part of the library's results, never tuned
WAY = 4096  # bytes of a way of L1: lines so far apart share a set
PANEL = 4096  # bytes of a row of A's panel, or of a column of B's, where A's has L1 to itself


@dataclass(frozen=True)
class Tiles:
    """One way to cut a GEMM. Prints as `8x48 kc=272 nb=960 mc=4096 nc=3840`."""

    mr: int
    nr: int
    kc: int
    nb: int
    mc: int
    nc: int

    def __str__(self) -> str:
        return f"{self.mr}x{self.nr} kc={self.kc} nb={self.nb} mc={self.mc} nc={self.nc}"

    def __iter__(self):
        return iter((self.mr, self.nr, self.kc, self.nb, self.mc, self.nc))

    def tile(self, kind: Kind) -> Tile:
        """The compile-time part: the register tile."""
        return _tile(self.mr, self.nr, kind)


@functools.cache
def _tile(mr: int, nr: int, kind: Kind) -> Tile:
    lanes = ROWS if kind.way == UNIT else width_bits() // (8 * BYTES[kind.word])
    return Tile(kind.word, mr, nr // lanes, lanes, kind)


@functools.cache
def illegal(tiles: Tiles, dtype: str, planes: int = 1) -> tuple[str, ...]:
    """Why the tiles cannot be used on this machine for panels of the dtype (complex: in 2 planes), one reason a line;
    empty if they can."""
    lanes = width_bits() // (8 * BYTES[dtype])
    registers, vectors = vector_registers(), tiles.nr // lanes
    reasons = {
        f"every size must be positive: {tiles}": min(tiles.mr, tiles.nr, tiles.kc, tiles.nb, tiles.mc, tiles.nc) < 1,
        f"nr={tiles.nr} is not a multiple of the {lanes} {dtype} in a vector": tiles.nr % lanes != 0,
        f"{tiles.mr}x{vectors} accumulators, {vectors} of B and 1 of A exceed {registers} vector registers":
            planes * (tiles.mr * vectors + vectors + 1) > registers,
        f"nb={tiles.nb} is not a multiple of nr={tiles.nr}": tiles.nb % max(tiles.nr, 1) != 0,
        f"nc={tiles.nc} is not a multiple of nb={tiles.nb}": tiles.nc % max(tiles.nb, 1) != 0,
        f"mc={tiles.mc} is not a multiple of mr={tiles.mr}": tiles.mc % max(tiles.mr, 1) != 0,
        f"kc={tiles.kc} exceeds the segment of {SEGMENT}": tiles.kc > SEGMENT,
    }  # fmt: skip
    return tuple(reason for reason, holds in reasons.items() if holds)


def given(sizes, kind: Kind) -> Tiles:
    """The tiles that a call asks for, by their sizes in order, or a ValueError with the reasons against them."""
    if len(sizes := tuple(sizes)) != 6:
        raise ValueError(f"tiles={sizes}: on the CPU they are six sizes, (mr, nr, kc, nb, mc, nc)")
    if reasons := illegal(Tiles(*sizes), kind.word, kind.planes):
        raise ValueError(f"tiles={sizes}: " + "; ".join(reasons))
    return Tiles(*sizes)


@functools.cache
def vector_registers() -> int:
    """Architectural vector registers: 32 with AVX-512 and on 64-bit Arm, else 16."""
    from ...jit.disk.levels import target

    triple, _, _ = target()
    return 32 if width_bits() == 512 or triple.startswith(("aarch64", "arm64")) else 16


FEW_REGISTERS = vector_registers() == 16


def caches() -> tuple[int, int]:
    """Bytes of one core's L1 data cache and of its L2."""
    return machine().l1, machine().l2


@functools.cache
def default(dtype: str) -> Tiles:
    """The packed path's tiles, as the machine's registers and caches ask for them."""
    size = SIZE[dtype]
    # 24 accumulators either way: 8x3 vectors load 11 registers a step of k, 12x2 load 14 (2-4 % slower). 16 hold 6x2.
    mr, vectors = (8, 3) if vector_registers() == 32 else (6, 2)
    return sized(mr, vectors * width_bits() // (8 * size), size, *caches())


@functools.cache
def small(dtype: str) -> Tile:
    """The small path's register tile: fewer columns, so that little products leave fewer lanes empty."""
    return Tile(dtype, 12 if vector_registers() == 32 else 6, 2, width_bits() // (8 * SIZE[dtype]))


def sized(mr: int, nr: int, size: int, l1: int, l2: int) -> Tiles:
    """Block sizes for a register tile and caches, in bytes.

    >>> print(sized(8, 48, 4, 48 << 10, 2 << 20))
    8x48 kc=272 nb=960 mc=4096 nc=3840
    >>> print(sized(8, 48, 4, 32 << 10, 1 << 20))
    8x48 kc=1024 nb=192 mc=4096 nc=4032
    >>> print(sized(6, 16, 4, 32 << 10, 512 << 10))
    6x16 kc=1024 nb=64 mc=4092 nc=4096
    """
    # A panel of A and one of B share L1, whose size they may exceed by a quarter: only A's must stay. Below 192 reloads
    # of C show: where L1 is too small for both panels they stream from L2 (32 KiB: 81 % of the peak, so 95).
    kc = l1 * 5 // 4 // ((mr + nr) * size)
    kc = min(512, kc) // 8 * 8 if kc >= 192 else 1024
    # Half of L2, or, where panels of A pass through it, three quarters: these panels are met by more columns then.
    nb = max(nr, (l2 // 2 if kc < 1024 else l2 * 3 // 4) // (kc * size) // nr * nr)
    # A row of B that is one line streams from L2 at no cost, so that A's panel may have L1 to itself: fewer tiles begin
    # and end (32 and 512 KiB, f32, n = 1024: kc/nb of 464/128, 1024/64, 2048/32 gave 88, 92, 89 GFLOP/s).
    if nr * size <= LINE and mr * PANEL <= l1 * 3 // 4:
        kc = PANEL // size
        nb = max(nr, l2 // 2 // PANEL // nr * nr)
    nc = max(nb, 4096 // nb * nb)
    return Tiles(mr, nr, kc, nb, 4096 // mr * mr, nc)


def candidates(dtype: str) -> list[Tiles]:
    """The legal tiles around the default, for the tuner."""
    base = default(dtype)
    lanes = width_bits() // (8 * SIZE[dtype])
    found = []
    for mr, vectors in ((8, 3), (6, 4), (12, 2), (14, 2), (6, 2), (4, 3)):
        for kc in (base.kc * 3 // 4 // 8 * 8, base.kc, base.kc * 3 // 2 // 8 * 8):
            nr = vectors * lanes
            nb = max(nr, base.nb * base.kc // kc // nr * nr)
            tiles = replace(base, mr=mr, nr=nr, kc=kc, nb=nb, mc=4096 // mr * mr, nc=max(nb, 4096 // nb * nb))
            if not illegal(tiles, dtype):
                found.append(tiles)
    return found
