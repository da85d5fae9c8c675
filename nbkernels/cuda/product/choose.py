"""The choice of the config of a product: a pure function of the device, the dtype, the mode and the shape."""

from __future__ import annotations

import functools
import math

from ...jit.ir.kind import BYTES
from .config import PIECE, SEGMENT, WARP, GemmConfig, legal
from .layout import Access, part, shared

REGISTERS, WARPS = 65536, 64  # of a multiprocessor
# Of compute capabilities whose matrix units multiply float64 faster than their other units, the tier that does.
DOUBLE = {(8, 0): "D8", (9, 0): "D"}
# Cycles of a second launch, 3 us at 1.75 GHz; of a wave of blocks until the first slices have come and the last stores
# are gone, 1 us; and the fewest of a step of k.
LAUNCH, LATENCY, LEAST = 5250, 1750, 10
RATE = {
    "complex64": 4,
    "float64": 2,
    "complex128": 8,
    "int64": 8,
}  # instructions' time of a multiply-add, float32's is 1
TAIL = 4  # steps of a slice in the time of one that is not in a whole slice: nothing is loaded ahead for it

SIMT = (
    GemmConfig("S", 128, 256, 8, 4, 8), GemmConfig("S", 128, 128, 8, 4, 4), GemmConfig("S", 64, 64, 8, 3, 2),
    GemmConfig("S", 64, 64, 16, 4, 4), GemmConfig("S", 64, 32, 32, 4, 4), GemmConfig("S", 32, 64, 16, 4, 4),
    GemmConfig("S", 16, 32, 32, 6, 4), GemmConfig("S", 32, 16, 32, 6, 4), GemmConfig("S", 8, 32, 64, 8, 2),
    GemmConfig("S", 32, 8, 64, 8, 2), GemmConfig("S", 32, 32, 16, 2, 1), GemmConfig("S", 16, 16, 16, 2, 1),
)  # fmt: skip
WIDE = (  # of elements of 8 bytes
    GemmConfig("S", 128, 64, 8, 4, 8), GemmConfig("S", 64, 64, 8, 4, 4), GemmConfig("S", 32, 32, 16, 3, 2),
    GemmConfig("S", 16, 32, 32, 4, 4), GemmConfig("S", 32, 16, 32, 4, 4), GemmConfig("S", 8, 32, 32, 8, 2),
    GemmConfig("S", 32, 8, 32, 8, 2), GemmConfig("S", 16, 16, 16, 2, 1),
)  # fmt: skip
WIDEST = (GemmConfig("S", 64, 64, 8, 3, 8), GemmConfig("S", 32, 32, 8, 3, 2), GemmConfig("S", 16, 16, 8, 3, 1))
MATRIX = [(128, 128, 16, 4, 8), (64, 64, 16, 4, 4), (32, 32, 16, 4, 4)]


def configs(cc: tuple[int, int], chain: str) -> list[GemmConfig]:
    """The configs that products of a dtype choose from."""
    simt = {4: SIMT, 8: WIDE, 16: WIDEST}[BYTES[chain]]
    if chain == "float64" and cc in DOUBLE:
        simt = (*(GemmConfig(DOUBLE[cc], *sizes) for sizes in MATRIX), *simt[2:])
    return [each for each in simt if not legal(each, chain, cc)]


@functools.lru_cache(maxsize=4096)
def choose(cc: tuple[int, int], multiprocessors: int, chain: str, m: int, n: int, k: int, items: int = 1) -> GemmConfig:
    """The config for `items` products of m x k by k x n whose chains are of a dtype: the one of the least `cost`.

    >>> print(choose((9, 0), 132, "float32", 4096, 4096, 4096))
    S 128x256x8, 4 stages, 8 warps
    >>> print(choose((9, 0), 132, "float32", 8, 4096, 4096), "and", choose((9, 0), 132, "float32", 16, 16, 16, 10_000))
    S 8x32x64, 8 stages, 2 warps and S 16x16x16, 2 stages, 1 warp
    >>> print(choose((9, 0), 132, "float32", 64, 64, 65_536))
    S 16x32x32, 6 stages, 4 warps, split
    """
    # A warp that makes a tile by itself has two slices for its copies: for small products, which its block is full of.
    found = [each for each in configs(cc, chain) if each.teams == 1 or each.tiles(m, n) == 1]
    if k > SEGMENT:  # where tiles alone do not keep the device busy, segments of k do
        found = [*found, *(split(each) for each in found if each.tiles(m, n) * items <= multiprocessors)]
    return min(found, key=lambda each: cost(each, multiprocessors, chain, m, n, k, items))


def split(config: GemmConfig) -> GemmConfig:
    return GemmConfig(**{**vars(config), "split": True})


def cost(config: GemmConfig, multiprocessors: int, chain: str, m: int, n: int, k: int, items: int) -> float:
    """Cycles of the busiest multiprocessor."""
    segments = -(-k // SEGMENT) if config.split else 1
    blocks = -(-config.tiles(m, n) * items * segments // config.teams)
    busiest = -(-blocks // multiprocessors)
    together = min(busiest, resident(config, chain))
    waves = busiest / together
    steps = min(k, SEGMENT if config.split else k)
    steps += (TAIL - 1) * (steps % config.bk)
    each = cycles(config, chain, together * config.warps * config.teams)
    return waves * each * steps + math.ceil(waves) * LATENCY + LAUNCH * config.split


def cycles(config: GemmConfig, chain: str, warps: int) -> float:
    """Of a step of k, of so many warps at a time: their multiply-adds, 128 a cycle over four schedulers, and their
    loads of 16 bytes from shared memory, two cycles each; not less than the latency that a warp cannot hide.

    Measured: 8x32x64 alone 11 cycles, eight of them 54; 16x32x32 15.
    """
    mine, numbers = part(config, chain), PIECE // BYTES[chain]
    if config.double:
        products, loads = warps * config.each / 4, (mine.tm + mine.tn / 2) / 4
    else:
        products = max(warps / 4, 1) * config.each * RATE.get(chain, 1)
        loads = -(-mine.tm // numbers) + -(-mine.tn // numbers)
    return max(math.hypot(products, 2 * warps * loads), LEAST)


@functools.cache
def resident(config: GemmConfig, chain: str) -> int:
    """Blocks that a multiprocessor holds at a time, by registers: chains, two steps' operands and as many as 48 more
    numbers."""
    mine, words = part(config, chain), BYTES[chain] // 4
    registers = min(255, words * (config.each + 2 * (mine.tm + mine.tn) + 48))
    fit = REGISTERS // (registers * config.threads), WARPS * WARP // config.threads
    bytes_ = shared(config, chain, Access("k", 1), Access("k", 1)) * config.teams
    return max(1, min(*fit, (227 << 10) // bytes_))
