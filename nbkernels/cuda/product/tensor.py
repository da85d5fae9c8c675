"""Tensor cores: which products they compute, in which tiles, and a product's plan for wgmma. Pure numbers, no Numba.

Order of summation: segments of 4096 steps of k, inside one the instruction's groups of k in increasing order in
float32, segments added in order, then alpha, beta and x. So an element's bits depend on dtype and mode alone.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace

from ...jit.ir.kind import BYTES, Kind
from .config import SEGMENT, GemmConfig, legal
from .end import Ending, arguments
from .tensormap import CHUNK, LINE, ROWS, SLOTS, Form, contiguous, tensor_map

# Of compute capability 9.0: a multiprocessor's multiply-adds of 16 bits, and bytes from L2, in a cycle; cycles in which
# a tile begins and ends.
RATE, BANDWIDTH, START = 2048, 45, 2500
SHARED, THREADS = 227 << 10, 2048  # bytes of shared memory and threads of a multiprocessor

MIXED = ((128, 128, 4, 8), (128, 64, 4, 4), (64, 64, 4, 4), (32, 64, 4, 2), (32, 32, 4, 2))


def takes(kind: Kind, mode: str | None) -> bool:
    """Whether tensor cores compute a product: halves unless their chain is asked for, float32 by its mode, bytes."""
    if kind.chain == "int32":
        return {kind.a, kind.b} <= {"int8", "uint8"}
    return kind.a == kind.b and (mode == "tf32" if kind.a == "float32" else kind.chain == "float32" and mode is None)


@functools.cache
def configs(tier: str, dtype: str, cc: tuple[int, int]) -> list[GemmConfig]:
    """Configs of a tier among which products of a dtype choose, on a device of compute capability `cc`."""
    size = BYTES[dtype]
    if tier == "W":  # in steps of 16 columns, so that the last wave of tiles is full; as many stages as there is memory
        sizes = [(m, n) for m in (64, 128) for n in range(256, 15, -16)]
        return [GemmConfig("W", m, n, LINE // size, stages(m, n), m // 16) for m, n in sizes]
    few = size == 1  # bytes that lie across k go through registers: twice the threads have enough for half the tile
    found = [GemmConfig("M", m, n, 64 // size, stages, warps << few) for m, n, stages, warps in MIXED[few:]]
    return [config for config in found if not legal(config, dtype, cc)]


def stages(m: int, lines: int) -> int:
    """Stages of m rows and so many lines of mat2 that there is memory for, beside pieces of C and barriers."""
    return (SHARED - m // ROWS * SLOTS * CHUNK - 1024) // ((m + lines) * LINE)


def cost(config: GemmConfig, multiprocessors: int, m: int, n: int, k: int, items: int) -> float:
    """Cycles of the busiest multiprocessor: a stage takes the time of its multiplications or of its bytes."""
    units = config.tiles(m, n) * items * (-(-k // SEGMENT) if config.split else 1)
    busiest = -(-units // multiprocessors)
    stage = max(config.bm * config.bn * 64 / RATE, (config.bm + config.bn) * 128 / BANDWIDTH)
    deep = config.bk * (1 if config.tier == "W" else 2)  # of 128 bytes
    each = -(-min(k, SEGMENT if config.split else k) // deep) * stage + START
    if config.split:  # sums are written and read, and there is a second launch
        return busiest * (each + config.bm * config.bn * 8 / BANDWIDTH) + 2 * START
    return busiest * each


def splits(found: list[GemmConfig], k: int) -> list[GemmConfig]:
    """The configs of `found` and, where k has several segments, each also with a block for every segment."""
    return found + [replace(config, split=True) for config in found if k > SEGMENT]


@functools.lru_cache(maxsize=4096)
def mixed(dtype: str, device: tuple, m: int, n: int, k: int, items: int) -> GemmConfig:
    """The config of tier M of the least `cost`."""
    cc, multiprocessors = device
    found = splits(configs("M", dtype, cc), k)
    return min(found, key=lambda config: cost(config, multiprocessors, m, n, k, items))


@functools.lru_cache(maxsize=4096)
def choose(dtype: str, out: str, multiprocessors: int, m: int, n: int, k: int, items: int) -> tuple[GemmConfig, bool]:
    """The config of tier W of the least `cost`, and whether it is to compute C' = B' A', stored by columns.

    That is for results of 2 bytes; by rows whole lines of shared memory are stored. (Of 16 rows by tiles
    of 64 x 32, which twice as many blocks read mat2 for, 4096 x 4096 takes 19 us for 11: rows beyond the last are zeros
    that cost a tensor copy as much as those that are read.)

    >>> print(*choose("bfloat16", "bfloat16", 132, 4096, 4096, 4096, 1), sep=", ")
    W 128x256x64, 4 stages, 8 warps, False
    >>> print(*choose("bfloat16", "bfloat16", 132, 16, 4096, 4096, 1), sep=", ")
    W 64x16x64, 21 stages, 4 warps, True
    """
    tiles = splits(configs("W", dtype, (9, 0)), k)
    found = [(config, False) for config in tiles if config.bn * BYTES[out] % LINE == 0]
    found += [(config, True) for config in tiles if BYTES[out] == 2]

    def price(each):
        config, turned = each
        return cost(config, multiprocessors, *((n, m) if turned else (m, n)), k, items)

    return min(found, key=price)


@dataclass(frozen=True)
class Tensors:
    """A product by wgmma as numbers: c and x are m x n, a is m x k, and b is n x k."""

    form: Form
    m: int
    n: int
    k: int
    items: int
    c: object
    x: object
    a: object
    b: object
    multiprocessors: int
    ending: Ending | None = None
    tuned: bool = False  # whether the config is the tuner's

    @property
    def tiles(self) -> int:
        return self.form.config.tiles(self.m, self.n) * self.items

    @property
    def segments(self) -> int:
        return -(-self.k // SEGMENT)

    def blocks(self, units: int) -> int:
        """A block takes several units of work where there are more than run at a time."""
        resident = max(1, min(SHARED // (self.form.shared + 1024), THREADS // self.form.threads))
        return min(units, self.multiprocessors * resident)

    @property
    def words(self) -> int:
        """Of sums that wait for segments to come."""
        waiting = {"whole": 0, "long": self.blocks(self.tiles), "part": self.tiles * self.segments}[self.form.role]
        return waiting * self.form.config.bm * self.form.config.bn

    @property
    def launches(self) -> list[tuple[Form, int]]:
        units = {"part": self.tiles * self.segments, "sum": self.tiles}
        if self.form.role != "part":
            units = {self.form.role: self.tiles}
        return [(replace(self.form, role=role), self.blocks(count)) for role, count in units.items()]

    def arguments(self, beta: tuple, alpha: tuple, work) -> tuple:
        form, items, x = self.form, self.items, self.c if self.x is None else self.x
        maps = [
            tensor_map(self.a, form, "a", self.m, self.k, items),
            tensor_map(self.b, form, "b", self.n, self.k, items),
        ]
        maps.append(maps[0] if form.c == "any" else tensor_map(self.c, form, "c", self.m, self.n, items))
        sizes = self.m, self.n, self.k, items, int(self.a.item != 0), int(self.b.item != 0), int(self.x is not None)
        return *maps, sizes, self.c.arguments, x.arguments, beta, alpha, work, arguments(self.ending)


def tensors(
    c, x, a, b, sizes, kind: Kind, device, config: GemmConfig | None = None, ending: Ending | None = None
) -> Tensors | None:
    """A plan for wgmma, or None where no tensor map can describe an operand; a is m x k, and b is n x k."""
    m, n, k, items = sizes
    config, turned = (config, False) if config else choose(kind.a, kind.out, device[1], m, n, k, items)
    if turned:
        m, n, kind, a, b = n, m, kind.swapped(), b, a
        c, x, ending = c.transposed, x and x.transposed, ending and ending.transposed
    sides = contiguous(a, m, k, items), contiguous(b, n, k, items)
    if None in sides or (BYTES[kind.a] != 2 and "l" in sides):
        return None
    stored = {"k": "rows", "l": "columns"}.get(contiguous(c, m, n, items), "any")
    part_of_a_line = config.bn * BYTES[kind.out] % LINE != 0
    if x is not None or ending or BYTES[kind.out] < 2 or (part_of_a_line if stored == "rows" else BYTES[kind.out] > 2):
        stored = "any"
    if sides[1] == "l":  # whole chunks of 64 columns
        config = replace(config, stages=min(config.stages, stages(config.bm, -(-config.bn // ROWS) * ROWS)))
    exact = kind.chain == "int32"  # whole numbers have the same sum in any order
    role = "part" if config.split else "whole" if k <= SEGMENT or exact else "long"
    form = Form(config, kind, *sides, stored, role, ending and ending.end)
    return Tensors(form, m, n, k, items, c, x, a, b, device[1], ending)
