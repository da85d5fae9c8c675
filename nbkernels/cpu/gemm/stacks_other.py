"""Stacks of small products of any kind: one thread a product, taken in turns, by the packed path's loops; of few whole
numbers, as they lie.

Float32 and float64 have paths of their own (batch.py).
"""

from __future__ import annotations

import functools

import numpy as np

from ...jit.abi.address import copy, invoke, peek, poke, scratch
from ...jit.abi.record import Record
from ...jit.abi.record import address as address_of
from ...jit.abi.sharing import take
from ...jit.compile.cache import compiled
from ...jit.ir.kind import BYTES as ITEM
from ...jit.ir.kind import Kind
from ...jit.ir.tile import Tile
from ..runtime import threads
from ..runtime.workspace import room
from .context import BYTES, up, words_at
from .context_setup import filled, swapped
from .kernels import kernels_of, single
from .kinds import by_unit, default_tiles
from .loops import loops
from .packed import LAUNCH
from .paths import PARALLEL, SERIAL
from .single_thread import one_tile

GAIN = 48**3  # multiply-adds of a stack from which threads share it: a launch takes as long as 10 us of them
OVERHEAD = 2000  # multiply-adds in the time that a product takes beside them
# Outputs of a product of whole numbers, and multiply-adds, up to which panels cost more than they save (one thread, us:
# 10000x3x3x3 of int32 by panels 2250, so 550, 3000x1x1x500 12400, 1850, but 2000x12x12x12 1440, 3200).
OUTPUTS, LITTLE = 16, 12**3
# What threads share: the next job; the words of the first product, how many there are, how many are a job, how far
# operands lie apart, in bytes, rooms for panels with their size, and what does without panels or 0.
SHARED = Record("Shared", "next | first count each step_a step_b step_c step_x rooms size little")
NEXT, shared_at = SHARED["next"], SHARED.pointer()


@functools.cache
def jobs() -> int:
    """The jobs of one thread: void(shared words, task)."""

    def work(f, task):
        address, first = scratch(BYTES), words_at(f.first)
        mine = words_at(address)
        copy(address, f.first, BYTES)
        mine.own, mine.room = address, f.rooms + task * f.size
        tile = single(mine)
        start = take(f, NEXT) * f.each
        while start < f.count:
            stop = min(start + f.each, f.count)
            if f.little != 0:
                invoke(f.little, (address_of(f), start, stop))
            for t in range(stop if f.little != 0 else start, stop):
                mine.a, mine.b = first.a + t * f.step_a, first.b + t * f.step_b
                mine.c = first.c + t * f.step_c
                mine.x = first.x + t * f.step_x if first.x != 0 else 0
                if tile:
                    one_tile(mine, mine.room + mine.bpanels)
                else:
                    mine.start, mine.stop = 0, mine.blocks
                    invoke(mine.loops, (address, 0))
            start = take(f, NEXT) * f.each

    return compiled(work, SHARED.kernel, "gemm_stack")


@functools.cache
def little(size: int) -> int:
    """The products of whole numbers of so many bytes, from one on and before another: void(address of what threads
    share, these). They wrap, so that signs and the order of terms do not matter."""
    tile = Tile(f"int{8 * size}", 1, 1, 1)
    element = getattr(np, tile.dtype)

    def run(shared, start, stop):
        s = shared_at(shared)
        f = words_at(s.first)
        for t in range(start, stop):
            a, b, c = f.a + t * s.step_a, f.b + t * s.step_b, f.c + t * s.step_c
            for i in range(f.m):
                for j in range(f.n):
                    total, x, y = 0, a + i * f.rsa * size, b + j * f.csb * size
                    for _ in range(f.k):
                        total += peek(tile, x) * peek(tile, y)
                        x, y = x + f.csa * size, y + f.rsb * size
                    poke(tile, c + (i * f.rsc + j * f.csc) * size, element(total))

    return compiled(run, f"void({', '.join(['int64'] * 3)})", f"gemm_little_{tile}")


def _is_little(kind: Kind, f) -> bool:
    """Whether products are for `little`: of one width throughout, and nothing else is done to them."""
    whole = kind.chain.startswith("int") and "bool" not in (kind.a, kind.b, kind.out)
    alike = ITEM[kind.a] == ITEM[kind.b] == ITEM[kind.out]
    return whole and alike and f.x == 0 and f.unit != 0 and f.m * f.n <= OUTPUTS and f.m * f.n * f.k <= LITTLE


def choose(out, operands, k: int, workers: int) -> int:
    """Threads for a stack of products into `out`, 0 where it is none: one product, products that threads had better
    share, or strides that are no whole elements."""
    count, m, n = out.shape
    whole = all(step % x.dtype.itemsize == 0 for x in (out, *operands) for step in x.strides[1:])
    large = m * n * k > (PARALLEL if count % workers and count < workers**2 else SERIAL)
    if count < 2 or large or not whole:
        return 0
    return min(workers, count) if count * (m * n * k + OVERHEAD) > GAIN else 1


def stack(out, x, a, b, beta, alpha, kind: Kind) -> bool:
    """out[t] = alpha * a[t] @ b[t] + beta * x[t] after all checks, x of out's shape or None; False where it is no
    stack, with nothing written."""
    workers = choose(out, [each for each in (x, a, b) if each is not None], a.shape[2], threads.count())
    if not workers:
        return False
    kind, left, right = by_unit(kind, *out.shape[1:], a.shape[2]), a, b
    if swapped(out, a, b, kind):
        kind, left, right = kind.swapped(), b, a
    tiles, x0 = default_tiles(kind), None if x is None else x[0]
    f, kept = filled(out[0], 0 if x is None else id(x0), a[0], b[0], beta, alpha, tiles, kind, 1)
    plain = little(ITEM[kind.out]) if _is_little(kind, f) else 0
    if not plain:
        kernels_of(f, tiles.tile(kind), alone=single(f))
    f.loops, size = loops(), up(f.need, 64)
    steps = [0 if each is None else each.strides[0] for each in (left, right, out, x)]
    with room(workers * size) as rooms:
        each = max(1, min(len(out) // (4 * workers), GAIN // (f.m * f.n * f.k + OVERHEAD)))
        shared = SHARED.array()
        shared.first, shared.each, shared.rooms, shared.size = f.own, each, rooms, size
        shared.little = plain
        shared.step_a, shared.step_b, shared.step_c, shared.step_x = steps
        turns = max(1, LAUNCH // (each * f.m * f.n * f.k))
        for turn in range(0, -(-len(out) // each), turns):  # Ctrl-C works between launches
            shared.next, shared.count = turn, min(len(out), (turn + turns) * each)
            threads.launch(jobs(), shared.buffer_info()[0], workers)
    return True
