"""Which config a product gets: a pure function of the device, the dtype, the mode and the shape."""

from __future__ import annotations

import functools
import math

from ...jit.kind import BYTES
from .config import SEGMENT, WARP, GemmConfig, legal
from .layout import Access, part, shared

REGISTERS, WARPS = 65536, 64  # of a multiprocessor
DOUBLE = {(8, 0), (9, 0)}  # compute capabilities whose matrix units multiply float64 faster than their other units
# Multiply-adds of a multiprocessor, 128 a cycle at 1.7 GHz, in the time that a second launch takes, 3 us; and that
# passes until the first slices have come and the last stores are gone, 1 us.
LAUNCH, LATENCY = 650_000, 220_000
TAIL = 4  # steps of a slice in the time of one that is not in a whole slice: nothing is loaded ahead for it

SIMT = (
    GemmConfig("S", 128, 256, 8, 4, 8), GemmConfig("S", 128, 128, 8, 4, 4), GemmConfig("S", 64, 64, 16, 4, 2),
    GemmConfig("S", 32, 64, 16, 4, 4), GemmConfig("S", 32, 32, 16, 4, 2), GemmConfig("S", 8, 32, 64, 8, 2),
    GemmConfig("S", 32, 8, 64, 8, 2), GemmConfig("S", 32, 32, 16, 2, 1), GemmConfig("S", 16, 16, 16, 2, 1),
)  # fmt: skip
WIDE = (  # of elements of 8 bytes
    GemmConfig("S", 128, 64, 8, 4, 4), GemmConfig("S", 64, 64, 8, 4, 4), GemmConfig("S", 32, 32, 16, 3, 2),
    GemmConfig("S", 8, 32, 32, 8, 2), GemmConfig("S", 32, 8, 32, 8, 2), GemmConfig("S", 16, 16, 16, 2, 1),
)  # fmt: skip
WIDEST = (GemmConfig("S", 64, 64, 8, 3, 8), GemmConfig("S", 32, 32, 8, 3, 2), GemmConfig("S", 16, 16, 8, 3, 1))
MATRIX = (
    GemmConfig("D", 128, 128, 16, 4, 8), GemmConfig("D", 64, 64, 16, 4, 4), GemmConfig("D", 32, 32, 16, 4, 4),
)  # fmt: skip


def configs(cc: tuple[int, int], chain: str) -> list[GemmConfig]:
    """The configs that products of a dtype choose from."""
    simt = {4: SIMT, 8: WIDE, 16: WIDEST}[BYTES[chain]]
    simt = simt[1:] if chain == "int64" else simt  # a product of 64 bits needs registers of its own
    found = (*MATRIX, *simt[3:]) if chain == "float64" and cc in DOUBLE else simt
    return [each for each in found if not legal(each, chain, cc)]


@functools.lru_cache(maxsize=4096)
def choose(cc: tuple[int, int], multiprocessors: int, chain: str, m: int, n: int, k: int, items: int = 1) -> GemmConfig:
    """The config for `items` products of m x k by k x n whose chains are of a dtype: the one of the least `cost`.

    >>> print(choose((9, 0), 132, "float32", 4096, 4096, 4096))
    S 128x256x8, 4 stages, 8 warps
    >>> print(choose((9, 0), 132, "float32", 8, 4096, 4096), "and", choose((9, 0), 132, "float32", 16, 16, 16, 10_000))
    S 8x32x64, 8 stages, 2 warps and S 16x16x16, 2 stages, 1 warp
    >>> print(choose((9, 0), 132, "float32", 64, 64, 65_536))
    S 8x32x64, 8 stages, 2 warps, split
    """
    # A warp that makes a tile by itself has two slices for its copies: for small products, which its block is full of.
    found = [each for each in configs(cc, chain) if each.teams == 1 or each.tiles(m, n) == 1]
    if k > SEGMENT:  # where tiles alone do not keep the device busy, segments of k do
        found = [*found, *(split(each) for each in found if each.tiles(m, n) * items <= multiprocessors)]
    return min(found, key=lambda each: cost(each, multiprocessors, chain, m, n, k, items))


def split(config: GemmConfig) -> GemmConfig:
    return GemmConfig(**{**vars(config), "split": True})


def cost(config: GemmConfig, multiprocessors: int, chain: str, m: int, n: int, k: int, items: int) -> float:
    """Multiply-adds in the time that the busiest multiprocessor takes.

    A thread reads tm + tn numbers of shared memory for tm * tn multiply-adds. Their latency, of 4 cycles, is covered by
    four warps for each scheduler's, or by the many chains of a thread: 64 take two warps' place.
    """
    mine, tiles = part(config, chain), config.tiles(m, n) * items
    segments = -(-k // SEGMENT) if config.split else 1
    blocks = -(-tiles * segments // config.teams)
    busiest = -(-blocks // multiprocessors)
    warps = min(busiest, resident(config, chain)) * config.threads // WARP
    covered = min(1, warps * math.sqrt(config.each) / 32)
    each = config.teams * config.bm * config.bn * (1 + 1 / mine.tm + 1 / mine.tn) / covered
    steps = min(k, SEGMENT if config.split else k)
    steps += (TAIL - 1) * (steps % config.bk)
    waves = -(-busiest // resident(config, chain))
    return busiest * each * steps + waves * LATENCY + LAUNCH * config.split


@functools.cache
def resident(config: GemmConfig, chain: str) -> int:
    """Blocks that a multiprocessor holds at a time, by registers: chains, two steps' operands and 48 more."""
    mine, words = part(config, chain), BYTES[chain] // 4
    registers = min(255, words * (config.each + 2 * (mine.tm + mine.tn)) + 48)
    fit = REGISTERS // (registers * config.threads), WARPS * WARP // config.threads
    bytes_ = shared(config, chain, Access("k", 1), Access("k", 1)) * config.teams
    return max(1, min(*fit, (227 << 10) // bytes_))
