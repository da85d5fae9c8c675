"""Tile sizes: how a product is cut for blocks, threads and registers.

bm x bn   C per block, bk deep in shared memory: twice, so that the next slice arrives while this one is used
tm x tn   C in one thread's registers, as 16-byte pieces that lie (bm/tm) or (bn/tn) pieces apart
"""

from __future__ import annotations

import functools
import itertools
from dataclasses import dataclass

import numpy as np

from ..problem import GemmProblem

SEGMENT = 4096  # steps of k in one chain of fused multiply-adds: part of the library's results, never tuned

# Of every card from compute capability 8.0 on: registers of a multiprocessor and of a thread, bytes of static shared
# memory of a block, bytes that a thread moves at most at a time, lanes of a warp (CUDA C++ Programming Guide 13.0).
REGISTERS, MOST_REGISTERS, SHARED, PIECE, WARP = 65536, 255, 48 << 10, 16, 32
# A warp's lanes stand 4 x 8 over C: the 12 different pieces that they read are the fewest a step can do with.
WARP_M, WARP_N = 4, 8


@dataclass(frozen=True)
class Tiles:
    """One way to cut a GEMM. Prints as `128x128x8 8x8`."""

    bm: int
    bn: int
    bk: int
    tm: int
    tn: int

    def __str__(self) -> str:
        return f"{self.bm}x{self.bn}x{self.bk} {self.tm}x{self.tn}"

    def __iter__(self):
        return iter((self.bm, self.bn, self.bk, self.tm, self.tn))

    @property
    def threads(self) -> int:
        return self.bm * self.bn // (self.tm * self.tn)

    def registers(self, itemsize: int) -> int:
        """Of one thread: chains, a column of A, a row of B, its part of the next slice with addresses, and 32 more."""
        held = (self.bm + self.bn) * self.bk // self.threads
        return (self.tm * self.tn + self.tm + self.tn + held) * itemsize // 4 + held + 32

    def shared(self, itemsize: int) -> int:
        """Bytes: two slices of A and of B, each line of depth padded by a piece."""
        return 2 * self.bk * ((self.bm + self.bn) * itemsize + 2 * PIECE)

    def blocks(self, itemsize: int) -> int:
        """Blocks that a multiprocessor is to hold: four warps for each of its four schedulers, as registers allow."""
        warps = min(4, REGISTERS // (4 * WARP) // self.registers(itemsize))
        return max(1, 4 * warps * WARP // self.threads)


def illegal(tiles: Tiles, dtype: str) -> list[str]:
    """Why the tiles cannot be used for the dtype, one reason a line; empty if they can."""
    size = np.dtype(dtype).itemsize
    piece = PIECE // size
    if min(tiles.bm, tiles.bn, tiles.bk, tiles.tm, tiles.tn) < 1:
        return [f"every size must be positive: {tiles}"]
    if tiles.bm % tiles.tm or tiles.bn % tiles.tn:
        return [f"a block of {tiles.bm}x{tiles.bn} is not made of threads' {tiles.tm}x{tiles.tn}"]
    threads, down, across = tiles.threads, tiles.bm // tiles.tm, tiles.bn // tiles.tn
    reasons = {
        f"tm={tiles.tm} or tn={tiles.tn} is not a multiple of the {piece} {dtype} in a piece":
            tiles.tm % piece != 0 or tiles.tn % piece != 0,
        f"{down}x{across} threads are not made of {WARP_M}x{WARP_N} lanes": down % WARP_M != 0 or across % WARP_N != 0,
        f"{threads} threads are more than 1024": threads > 1024,
        f"{threads} threads do not move whole slices of {tiles.bm}x{tiles.bk} and {tiles.bk}x{tiles.bn}":
            any(threads % lines or lines * tiles.bk % threads for lines in (tiles.bm, tiles.bn)),
        f"bk={tiles.bk} is odd, or does not divide {threads} threads and the segment of {SEGMENT}":
            tiles.bk % 2 != 0 or threads % tiles.bk != 0 or SEGMENT % tiles.bk != 0,
        f"{tiles.shared(size)} bytes of shared memory are more than {SHARED}": tiles.shared(size) > SHARED,
        f"about {tiles.registers(size)} registers are more than {MOST_REGISTERS} a thread or {REGISTERS} a block":
            tiles.registers(size) > MOST_REGISTERS or threads * tiles.registers(size) > REGISTERS,
    }  # fmt: skip
    return [reason for reason, holds in reasons.items() if holds]


def given(sizes, dtype: str) -> Tiles:
    """The tiles that a call asks for, by their sizes in order, or a ValueError with the reasons against them."""
    if len(sizes := tuple(sizes)) != 5:
        raise ValueError(f"tiles={sizes}: on CUDA they are five sizes, (bm, bn, bk, tm, tn)")
    if reasons := illegal(Tiles(*sizes), dtype):
        raise ValueError(f"tiles={sizes}: " + "; ".join(reasons))
    return Tiles(*sizes)


@functools.cache
def candidates(dtype: str) -> list[Tiles]:
    """The legal tiles worth timing: blocks of 32 to 256, at most twice as long as wide, of two to eight warps."""
    sizes = itertools.product((256, 128, 64, 32), (256, 128, 64, 32), (8, 16), (16, 8, 4), (16, 8, 4))
    found = (Tiles(*size) for size in sizes)
    return [
        tiles
        for tiles in found
        if not illegal(tiles, dtype)
        and max(tiles.bm, tiles.bn) <= 2 * min(tiles.bm, tiles.bn)
        and 2 * WARP <= tiles.threads <= 8 * WARP
    ]


@functools.lru_cache(maxsize=1024)
def default(problem: GemmProblem, multiprocessors: int) -> Tiles:
    """The candidate that a simple model of the card finds fastest; the tuner knows better.

    >>> print(default(GemmProblem(4096, 4096, 4096, "float32"), multiprocessors=132))
    256x128x8 16x8
    >>> print(default(GemmProblem(64, 64, 64, "float32"), multiprocessors=132))
    64x64x8 4x4
    """
    return min(candidates(problem.dtype), key=lambda tiles: cost(tiles, problem, multiprocessors))


def cost(tiles: Tiles, problem: GemmProblem, multiprocessors: int) -> float:
    """Fused multiply-adds that the busiest multiprocessor spends on one step of k, edges and waiting counted in.

    A thread reads tm + tn values of shared memory for tm*tn multiply-adds; below eight warps, two for each of a
    multiprocessor's schedulers, nothing covers the latency of either.
    """
    blocks = -(-problem.m // tiles.bm) * -(-problem.n // tiles.bn)
    each = -(-blocks // multiprocessors)
    warps = min(each, tiles.blocks(np.dtype(problem.dtype).itemsize)) * tiles.threads / WARP
    return each * tiles.bm * tiles.bn * (1 + 1 / tiles.tm + 1 / tiles.tn) / min(1, warps / 8)
