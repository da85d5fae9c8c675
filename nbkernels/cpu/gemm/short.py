"""Products of few rows and a wide B from beyond L2. All rows of A meet a panel of B while it is in L1.
Few columns and an A stored by columns are the same, transposed (cost.swaps).

A job is some columns of C, whose chains wait in a plane beside it: STEPS steps of a panel of B at a time. The first
tile reads them in place, leaves a copy for the others, and asks for the next panel. Five loops would pack all of B and
fetch it again from L3; read in place by all, its rows crowd each other, and the chains, out of L1.
"""

from __future__ import annotations

import functools

from ...jit.abi.address import peek
from ...jit.abi.sharing import take
from ...jit.compile.cache import compiled
from ...jit.compile.lazy import jit
from ..runtime.launch import available
from ..runtime.status import LARGE
from .context import NEXT, WORDS, matrices, sub, up
from .microkernel import COPYING, PACKED, every, ukernel_copying, ukernel_packed
from .pack import pack
from .plan_entry import doors
from .store import MEMORY, PARTIAL, ending, finish

# f32 16x2048x512, one thread, us: 747 with panels for all columns of a job, packed before they are used, so 665, 660,
# 660 by 64, 128 and 256 steps. Prefetched are the next panel's rows: rows 16 ahead may share a set of L1.
STEPS, BROAD = 256, 2048
EACH = 2  # jobs for each thread at least, which start at different times


@jit(forceinline=True)
def _room(tile, m, k, wide):
    """Bytes of a thread's panels of A, panel of B and plane of chains."""
    return up((-(-m // tile.mr) * tile.mr * k + STEPS * tile.nr + wide * m) * tile.itemsize, 64)


@jit(forceinline=True)
def _block(tile, f, steps, columns, stop, rooms, alpha, beta):
    """Steps p to p + s of C[:, j:j+w], panel by panel of B; tiles go on with the plane, of rows `wide` apart."""
    (p, s), (j, w), (panels, panel, plane, wide) = steps, columns, rooms
    size, m, tiles, last = tile.itemsize, f.m, -(-f.m // tile.mr), p + s == f.k
    stop = stop if last and stop != MEMORY else PARTIAL
    source = f.b + (p * f.rsb + j * f.csb) * size
    for q in range(0, w, tile.nr):
        across = min(tile.nr, w - q)
        copies = f.csb == 1 and across == tile.nr
        if not copies:
            pack(tile, source + q * f.csb * size, f.csb, f.rsb, across, s, panel, tile.nr)
        for t in range(tiles):
            i, apanel = t * m // tiles, panels + (t * f.k + p) * tile.mr * size
            part = plane + (i * wide + q) * size
            to, rst, x = part, wide, 0
            if stop != PARTIAL:
                to, rst = f.c + (i * f.rsc + j + q) * size, f.rsc
                x = f.x + (i * f.rsx + j + q) * size if f.x != 0 else 0
            h = (t + 1) * m // tiles - i
            if copies and t == 0:
                ukernel_copying(tile, h, apanel, 1, tile.mr, source + q * size, f.rsb, s, part, wide, to, rst,
                                across, p > 0, stop, x, f.rsx, alpha, beta, panel)  # fmt: skip
            else:
                ukernel_packed(tile, h, apanel, 1, tile.mr, panel, tile.nr, s, part, wide, to, rst,
                               across, p > 0, stop, x, f.rsx, alpha, beta)  # fmt: skip


@functools.cache
def _short(tile) -> int:
    """The jobs of one thread: void(words, task)."""

    def work(f, task):
        if task >= f.workers:
            return
        size, m, n, k, wide, tiles = tile.itemsize, f.m, f.n, f.k, f.nb, -(-f.m // tile.mr)
        panels = f.room + task * _room(tile, m, k, wide)
        panel = panels + tiles * tile.mr * k * size
        plane = panel + STEPS * tile.nr * size
        alpha, beta = peek(tile, f.scalars), peek(tile, f.scalars + size)
        stop, j = ending(f.csc, f.x, f.csx, f.unit), take(f, NEXT) * wide
        # Rows of the tiles as even as they can be: 8 are 4 and 4, enough chains to hide their latency, not 6 and 2.
        for t in range(tiles if j < n else 0):
            i, target = t * m // tiles, panels + t * tile.mr * k * size
            pack(tile, f.a + i * f.rsa * size, f.rsa, f.csa, (t + 1) * m // tiles - i, k, target, tile.mr)
        while j < n:
            w = min(wide, n - j)
            for p in range(0, k, STEPS):
                _block(tile, f, (p, min(STEPS, k - p)), (j, w), stop, (panels, panel, plane, wide), alpha, beta)
            if stop == MEMORY:
                _, _, c, x = matrices(f)
                c, x = sub(c, 0, j, size), sub(x, 0, j, size)
                finish(tile, (m, w), (plane, wide), (0, 0), True, True, c, x, alpha, beta)
            j = take(f, NEXT) * wide

    every(tile, PACKED, COPYING)
    return compiled(work, WORDS.kernel, f"gemm_short_{tile}")


@jit(forceinline=True)
def _plan(tile, f, table):
    """How the product is cut into jobs, and the bytes of its room."""
    f.workers = available(table)
    if f.workers == 0:
        return -LARGE
    parts = max((f.n * tile.itemsize + BROAD - 1) // BROAD, EACH * f.workers if f.workers > 1 else 1)
    f.nb = up((f.n + parts - 1) // parts, tile.nr)
    return f.workers * _room(tile, f.m, f.k, f.nb)


# out = alpha * a @ b + beta * x for k <= 4096 and few rows or columns, as `packed` does it for any shape.
door = doors(_short, _plan, "short")
