"""GemmConfig: how a product is cut for blocks, warps and shared memory; reasons against a config, and candidates.

A tier is a way to multiply: S, fused multiply-adds of each thread; D and D8, mma.sync in float64, of 16 or, before
compute capability 9.0, 8 rows; M, mma.sync of halves, bytes and tfloat32; W, wgmma of the same.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

from ...jit.ir.kind import BYTES

SEGMENT = 4096  # steps of k in one chain: part of the library's results, never tuned
WARP, PIECE = 32, 16  # lanes; bytes that a thread moves at most at a time
# Bytes of shared memory that a block can have, by compute capability (CUDA C++ Programming Guide 13.0, table 30).
SHARED = {(8, 0): 163 << 10, (8, 6): 99 << 10, (8, 7): 163 << 10, (8, 9): 99 << 10, (9, 0): 227 << 10,
          (10, 0): 227 << 10, (12, 0): 99 << 10}  # fmt: skip
# Elements that a thread of tier S holds, by their number: rows by columns. Wide beside tall parts, because a step walks
# down columns, and 8 rows are two 16-byte loads of float32.
PARTS = {128: (8, 16), 64: (8, 8), 32: (8, 4), 16: (4, 4), 8: (4, 2), 4: (2, 2), 2: (2, 1), 1: (1, 1)}


@dataclass(frozen=True)
class GemmConfig:
    """One way to cut a product. Prints as `S 128x256x8, 4 stages, 8 warps`.

    bm x bn   the tile of C that `warps` warps make together, bk steps of k at a time
    stages    slices of A and B in shared memory, one in use and the others on their way
    raster    rows of tiles that are worked through column by column, so that blocks at work together share B in L2
    split     whether segments of k go to blocks of their own, and their sums are added in order by a second launch
    """

    tier: str
    bm: int
    bn: int
    bk: int
    stages: int
    warps: int
    raster: int = 8
    split: bool = False

    def __str__(self) -> str:
        more = ", split" * self.split
        more += f", raster {self.raster}" * (self.raster != 8)
        return (
            f"{self.tier} {self.bm}x{self.bn}x{self.bk}, {self.stages} stages, "
            f"{self.warps} warp{'s' * (self.warps > 1)}{more}"
        )

    @property
    def teams(self) -> int:
        """Tiles of a block: a warp that makes a tile by itself has seven others beside it."""
        return 8 if self.warps == 1 else 1

    @property
    def threads(self) -> int:
        return WARP * self.warps * self.teams

    @property
    def double(self) -> bool:
        """Whether a warp multiplies together, in float64."""
        return self.tier in ("D", "D8")

    @property
    def each(self) -> int:
        """Elements of a thread."""
        return self.bm * self.bn // (WARP * self.warps)

    @property
    def matrix(self) -> bool:
        """Whether warps multiply by mma.sync, whose 16 x 8 sums stand in pairs over 8 x 4 lanes."""
        return self.double or self.tier == "M"

    def tiles(self, m: int, n: int) -> int:
        return -(-m // self.bm) * -(-n // self.bn)


def legal(config: GemmConfig, chain: str, cc: tuple[int, int]) -> list[str]:
    """Why the config cannot be used for chains of a dtype on a compute capability, one reason a line; empty if it can.

    >>> legal(GemmConfig("S", 128, 256, 8, 4, 8), "float32", (9, 0))
    []
    >>> legal(GemmConfig("S", 96, 256, 8, 1, 8), "float32", (9, 0))
    ['96 x 256 is not made of powers of two', 'stages=1: there must be two, one in use and one on its way']
    """
    if config.tier not in LEGAL:
        return [f"tier {config.tier!r} is none of {', '.join(LEGAL)}"]
    if not 1 <= config.raster <= 64:
        return [f"raster={config.raster} is not from 1 to 64 rows of tiles"]
    return LEGAL[config.tier](config, chain, cc)


def common(config: GemmConfig, chain: str, cc: tuple[int, int], shared: int) -> list[str]:
    """Reasons against a config of any tier whose stages take `shared` bytes for each of a block's tiles."""
    room = SHARED.get(cc, 99 << 10)
    reasons = {
        f"compute capability {cc[0]}.{cc[1]} is below 8.0": cc < (8, 0),
        f"{config.bm} x {config.bn} is not made of powers of two": any(
            x < 1 or x & (x - 1) for x in (config.bm, config.bn)
        ),
        f"stages={config.stages}: there must be two, one in use and one on its way": config.stages < 2,
        f"bk={config.bk} does not divide a segment of {SEGMENT}": config.bk < 1 or SEGMENT % config.bk != 0,
        f"{config.threads} threads are more than 1024": config.threads > 1024,
        f"{shared * config.teams} bytes of shared memory are more than {room}": shared * config.teams > room,
    }
    return [reason for reason, holds in reasons.items() if holds]


def _simt(config: GemmConfig, chain: str, cc: tuple[int, int]) -> list[str]:
    from .layout import Access, part, shared

    size = BYTES[chain]
    reasons = common(config, chain, cc, 0)
    if reasons:
        return reasons
    if config.each not in PARTS:
        return [f"{config.each} elements a thread are none of {', '.join(map(str, PARTS))}"]
    if part(config, chain) is None:
        return [f"{config.warps} warps do not cover {config.bm} x {config.bn}, {config.each} elements a thread"]
    threads = WARP * config.warps
    reasons = {
        f"{config.each * size} bytes of chains a thread are more than 512": config.each * size > 512,
        f"bk={config.bk} is odd": config.bk % 2 != 0,
        f"{threads} threads do not copy whole slices of {config.bm}, {config.bn} x {config.bk}":
            any(lines * config.bk * size % (threads * PIECE) for lines in (config.bm, config.bn))
            or threads % config.bk != 0,
    }  # fmt: skip
    found = [reason for reason, holds in reasons.items() if holds]
    return found or common(config, chain, cc, shared(config, chain, Access("k", 1), Access("k", 1)))


def _double(config: GemmConfig, chain: str, cc: tuple[int, int]) -> list[str]:
    from .layout import Access, part, shared

    if chain != "float64":
        return [f"tier {config.tier} multiplies float64, not {chain}"]
    if config.tier == "D" and cc < (9, 0):
        return [f"compute capability {cc[0]}.{cc[1]} has no mma.sync of 16 rows in float64: tier D8"]
    reasons = common(config, chain, cc, 0)
    if reasons:
        return reasons
    if part(config, chain) is None:
        return [f"{config.warps} warps do not cover {config.bm} x {config.bn} by 16 x 8 elements"]
    threads = WARP * config.warps
    reasons = {
        f"{config.each} elements a thread are more than 64": config.each > 64,
        f"bk={config.bk} is not a multiple of 8": config.bk % 8 != 0,
        f"{threads} threads do not copy whole slices of {config.bm}, {config.bn} x {config.bk}":
            any(lines * config.bk % (2 * threads) for lines in (config.bm, config.bn)) or threads % config.bk != 0,
    }  # fmt: skip
    found = [reason for reason, holds in reasons.items() if holds]
    return found or common(config, chain, cc, shared(config, chain, Access("k", 2), Access("l", 2)))


def _mixed(config: GemmConfig, dtype: str, cc: tuple[int, int]) -> list[str]:
    from .layout import Access, part, shared

    if dtype not in DEPTHS:
        return [f"tier M multiplies {', '.join(DEPTHS)}, not {dtype}"]
    reasons = common(config, "float32", cc, 0)
    if reasons:
        return reasons
    if part(config, "float32") is None:
        return [f"{config.warps} warps do not cover {config.bm} x {config.bn} by 16 x 8 elements"]
    threads, wide, two = WARP * config.warps, PIECE // BYTES[dtype], 2 * DEPTHS[dtype]
    reasons = {
        f"{config.each} elements a thread are more than 128": config.each > 128,
        f"bk={config.bk} is not a multiple of {two}, two steps in turn": config.bk % two != 0,
        f"{threads} threads do not copy whole slices of {config.bm}, {config.bn} x {config.bk}":
            any(lines * config.bk % (wide * threads) for lines in (config.bm, config.bn)) or threads % config.bk != 0,
    }  # fmt: skip
    found = [reason for reason, holds in reasons.items() if holds]
    return found or common(config, "float32", cc, shared(config, "float32", Access("k", 1), Access("l", 1), dtype))


def _wgmma(config: GemmConfig, dtype: str, cc: tuple[int, int]) -> list[str]:
    from .tensor import stages
    from .tensormap import LINE

    if dtype not in DEPTHS:
        return [f"tier W multiplies {', '.join(DEPTHS)}, not {dtype}"]
    if config.bm not in (64, 128) or config.bn % 16 or not 16 <= config.bn <= 256:
        return [f"{config.bm} x {config.bn} is not 64 or 128 x 16, 32, ..., 256"]
    most, depth = stages(config.bm, config.bn), LINE // BYTES[dtype]
    reasons = {
        f"compute capability {cc[0]}.{cc[1]} has no wgmma": cc != (9, 0),
        f"bk={config.bk} is not the {depth} of a line of shared memory": config.bk != depth,
        f"{config.warps} warps do not make 16 of {config.bm} rows each": config.warps != config.bm // 16,
        f"stages={config.stages}: shared memory has room for 2 to {most}": not 2 <= config.stages <= most,
    }
    return [reason for reason, holds in reasons.items() if holds]


# Steps of k of one mma.sync, by the operands' dtype; float32 enters as tfloat32.
DEPTHS = {"bfloat16": 16, "float16": 16, "float32": 8, "int8": 32, "uint8": 32}
LEGAL = {"S": _simt, "D": _double, "D8": _double, "M": _mixed, "W": _wgmma}


def candidates(tier: str, chain: str, cc: tuple[int, int]) -> list[GemmConfig]:
    """The legal configs of a tier worth timing."""
    return [config for config in CANDIDATES[tier]() if not legal(config, chain, cc)]


def _simt_candidates():
    sizes = itertools.product((256, 128, 64, 32, 16, 8), (256, 128, 64, 32, 16), (8, 16, 32, 64), (3, 4), (1, 2, 4, 8))
    return [GemmConfig("S", *size) for size in sizes]


def _double_candidates(tier: str = "D"):
    sizes = itertools.product((128, 64, 32), (128, 64, 32), (16, 32), (3, 4, 6), (2, 4, 8))
    return [GemmConfig(tier, *size) for size in sizes]


def _mixed_candidates():
    sizes = itertools.product((256, 128, 64, 32), (256, 128, 64, 32), (16, 32, 64), (3, 4), (2, 4, 8))
    return [GemmConfig("M", *size) for size in sizes]


CANDIDATES = {"S": _simt_candidates, "D": _double_candidates, "D8": lambda: _double_candidates("D8"),
              "M": _mixed_candidates}  # fmt: skip
