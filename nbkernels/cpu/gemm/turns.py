"""How threads go through a stack of tiny or small products: in jobs of EACH, the next one to whoever is free."""

from __future__ import annotations

import functools

from ...jit.address import ask, peek, poke, scratch, take
from ...jit.cache import compiled, jit
from ...jit.record import Record
from ...jit.rooms import lent, returned
from ...jit.turn import turned
from ...jit.vector import LINE
from ..gemv.axpyf import columns
from ..gemv.dotxf import rows_of
from .entry import PANEL, ROOM, one_block
from .even import NEAR as EVENLY
from .even import even
from .pack import pack
from .store import finish
from .tiny import tall, tiny, tiny_ahead, tiny_row

# A stack: the next job, each operand's address and its three strides in elements, the address of ROOM bytes for each
# thread or 0, that of the factors, and the factors.
STACK = Record(
    "Stack",
    """
    next |
    a sa rsa csa b sb rsb csb c sc rsc csc x sx rsx csx m n k count each rooms scalars alpha beta tasks
    """,
)
NEXT = STACK["next"]
# Bytes of a stack up to which a job's matrices are gone through block by block, beyond which one by one (float32, us):
# 1000x16x16x16 93 and 107, 10000x16x16x16 2200 and 986.
NEAR = 16 << 20
# Bytes of a stack from which its matrices are asked for two products ahead, each being too short for the prefetchers to
# follow: f64, one thread, 10000x20x20x20 14.1 -> 8.8 ms, 1000x24x24x24 1.96 -> 1.06; 100x32x32x32, 2.4 MB, loses 7 %.
# A tiny product asks for the next one's lines a few at each step: 1000x32x32x32 of f32 1.38 -> 0.71 ms, of f64, in two
# tiles side by side, 3.16 -> 2.11; in the caches these are 15 % slower than one_block.
FAR = 8 << 20
# Rows of tiny matrices; narrow ones may have more, and ask from L2's bytes on: 32x100x10x100 of f64 195 -> 166 us.
TALLEST, BEYOND = 32, 1 << 20
BESIDE = 64 << 10  # the same for bytes of a matrix against a vector (one thread, us: 50x1x300x300 of f32 856 -> 440)
CHAINS = 4 << 10  # bytes of stack for the chains of a row or column, and for a strided vector of k <= 512
TURNED = 8 << 10  # bytes of matrices B that are turned before their products: a quarter of L1
PANELS = 2 * PANEL  # bytes of a panel of B and, of a narrow tile, of A
assert max(EVENLY, TURNED) <= PANEL


@jit(forceinline=True)
def _bytes(tile, f):
    """Of the stack."""
    return f.count * (f.m * f.k + f.k * f.n + f.m * f.n) * tile.itemsize


@jit(forceinline=True)
def _together(tile, f, first, run, b, sb, rsb, alpha, beta):
    """`run` products, of rows of at most two vectors: a block of rows of all of them, then the next block."""
    size, m, i = tile.itemsize, f.m, 0
    blocks = (m - 1) // tall(tile, f.n) + 1
    for block in range(blocks):
        h = (m - i + blocks - block - 1) // (blocks - block)
        a, c = f.a + (first * f.sa + i * f.rsa) * size, f.c + (first * f.sc + i * f.rsc) * size
        x = f.x + (first * f.sx + i * f.rsx) * size if f.x != 0 else 0
        tiny(tile, h, run, f.k, a, f.sa, f.rsa, f.csa, b, sb, rsb, c, f.sc, f.rsc, x, f.sx, f.rsx, f.n,
             alpha, beta)  # fmt: skip
        i += h


@jit(forceinline=True)
def _ahead(tile, f, t, b, rsb, alpha, beta):
    """One product, whose whole tiles ask for the next one: each step of theirs for its part of the bytes."""
    size, m, n, k, width = tile.itemsize, f.m, f.n, f.k, 2 * tile.lanes
    height = tall(tile, width)
    steps = max(1, m // height * ((n + tile.lanes - 1) // width) * k)
    da, db, dc = -(-m * k * size // steps), -(-k * n * size // steps), -(-m * n * size // steps)
    na, nb, nc = f.a + (t + 1) * f.sa * size, f.b + (t + 1) * f.sb * size, f.c + (t + 1) * f.sc * size
    for i in range(0, m, height):
        h, a = min(height, m - i), f.a + (t * f.sa + i * f.rsa) * size
        for j in range(0, n, width):
            w, bj, c = min(width, n - j), b + j * size, f.c + (t * f.sc + i * f.rsc + j) * size
            x = f.x + (t * f.sx + i * f.rsx + j) * size if f.x != 0 else 0
            if h == height and w > tile.lanes:
                tiny_ahead(tile, k, a, f.rsa, f.csa, bj, rsb, c, f.rsc, x, f.rsx, w, alpha, beta,
                           na, nb, nc, da, db, dc)  # fmt: skip
                na, nb, nc = na + k * da, nb + k * db, nc + k * dc
            else:
                tiny(tile, h, 1, k, a, 0, f.rsa, f.csa, bj, 0, rsb, c, 0, f.rsc, x, 0, f.rsx, w, alpha, beta)


@functools.cache
def by_tiny(tile) -> int:
    """The jobs of one thread by tiny.py's kernels. B is read in place, or packed where its rows are strided."""

    def work(f, task):
        size, m, n, panel = tile.itemsize, f.m, f.n, scratch(PANEL)
        alpha, beta = peek(tile, f.scalars), peek(tile, f.scalars + size)
        pitch = tile.lanes // 2 if 2 * n <= tile.lanes else (n + tile.lanes - 1) // tile.lanes * tile.lanes
        height = tall(tile, n)
        ahead = m >= height and n > tile.lanes and _bytes(tile, f) > (BEYOND if m > TALLEST else FAR)
        turns = tile.narrow and f.csb != 1 and f.rsb == 1 and not ahead
        single = ahead or (f.csb != 1 and not turns) or (m > height and _bytes(tile, f) > NEAR)
        several = 1 if single else max(1, TURNED // (n * f.k * size))  # matrices at a time
        first = take(f, NEXT) * f.each
        while first < f.count:
            last = min(first + f.each, f.count)
            run = several if single or f.csb != 1 else last - first
            for t in range(first, last, run):
                b, sb, rsb, count = f.b + t * f.sb * size, f.sb, f.rsb, min(run, last - t)
                if turns:
                    turned(tile, count, n, f.k, b, sb, f.csb, panel)
                    b, sb, rsb = panel, n * f.k, n
                elif f.csb != 1:
                    pack(tile, b, f.csb, f.rsb, n, f.k, panel, pitch)
                    b, rsb = panel, pitch
                if ahead:
                    _ahead(tile, f, t, b, rsb, alpha, beta)
                else:
                    _together(tile, f, t, count, b, sb, rsb, alpha, beta)
            first = take(f, NEXT) * f.each

    return compiled(work, STACK.kernel, f"gemm_tiny_{tile}")


@functools.cache
def by_even(tile) -> int:
    """The jobs of one thread by even.py's kernel. B is read in place, or packed where its rows are strided."""

    def work(f, task):
        size, n, k, panel = tile.itemsize, f.n, f.k, scratch(PANEL)
        ahead, upright = int(_bytes(tile, f) > FAR), int(f.csa != 1)
        step = f.rsa if upright == 0 else f.csa
        several = max(1, TURNED // (n * k * size)) if f.rsb == 1 and ahead == 0 else 1
        first = take(f, NEXT) * f.each
        while first < f.count:
            last = min(first + f.each, f.count)
            run = last - first if f.csb == 1 else several
            for t in range(first, last, run):
                a, c, count = f.a + t * f.sa * size, f.c + t * f.sc * size, min(run, last - t)
                b, sb, rsb = f.b + t * f.sb * size, f.sb, f.rsb
                if f.csb != 1:
                    if f.rsb == 1:
                        turned(tile, count, n, k, b, sb, f.csb, panel)
                    else:
                        pack(tile, b, f.csb, f.rsb, n, k, panel, n)
                    sb = n * k if several > 1 else (b - panel) // size + sb  # what is asked for is the next B
                    b, rsb = panel, n
                even(tile, ahead, upright, count, f.m, n, k, a, f.sa, step, b, sb, rsb, c, f.sc, f.rsc)
            first = take(f, NEXT) * f.each

    return compiled(work, STACK.kernel, f"gemm_even_{tile}")


@jit(forceinline=True)
def _ask(address, rows, step, columns, across, size):
    """Ask for the lines of a matrix that has a contiguous side."""
    if across != 1:
        rows, step, columns, across = columns, across, rows, step
    if across == 1:
        for i in range(rows):
            for j in range(0, columns * size, LINE):
                ask(address + i * step * size + j)


@functools.cache
def by_small(tile) -> int:
    """The jobs of one thread by entry.py's one_block."""

    def work(f, task):
        size, alpha, beta = tile.itemsize, peek(tile, f.scalars), peek(tile, f.scalars + tile.itemsize)
        panels = lent(PANELS)
        far, room = _bytes(tile, f) > FAR and f.each > 1, f.rooms + task * ROOM if f.rooms != 0 else 0
        if room == 0 and tile.narrow and (f.m + tile.mr) * f.k * size <= PANEL:
            room = panels + PANEL  # as one product has (entry.py)
        first = take(f, NEXT) * f.each
        while first < f.count:
            for t in range(first, min(first + f.each, f.count)):
                x = f.x + t * f.sx * size if f.x != 0 else 0
                if far:
                    _ask(f.a + (t + 2) * f.sa * size, f.m, f.rsa, f.k, f.csa, size)
                    _ask(f.b + (t + 2) * f.sb * size, f.k, f.rsb, f.n, f.csb, size)
                    _ask(f.c + (t + 2) * f.sc * size, f.m, f.rsc, f.n, f.csc, size)
                one_block(tile, room, panels, f.m, f.n, f.k, f.a + t * f.sa * size, f.rsa, f.csa,
                          f.b + t * f.sb * size, f.rsb, f.csb, f.c + t * f.sc * size, f.rsc, f.csc,
                          x, f.rsx, f.csx, alpha, beta)  # fmt: skip
            first = take(f, NEXT) * f.each
        returned(PANELS, panels)

    return compiled(work, STACK.kernel, f"gemm_batch_{tile}")


@jit(forceinline=True)
def _product(tile, far, m, k, a, rsa, csa, v, sv, c, rsc, x, rsx, alpha, beta):
    """One row or column of outputs, m of them; `far`: what comes next is asked for."""
    size, chains, copy = tile.itemsize, scratch(CHAINS), scratch(CHAINS)
    if rsa != 1 and sv != 1:
        for p in range(k):
            poke(tile, copy + p * size, peek(tile, v + p * sv * size))
        v = copy
    direct = rsc == 1 and x == 0 and alpha == 1
    wide = m if direct else CHAINS // size
    for i in range(0, m, wide):
        h, ai, ci = min(wide, m - i), a + i * rsa * size, c + i * rsc * size
        t = ci if direct else chains
        if rsa != 1:
            rows_of(tile, h, ai, rsa, v, k, t, not far, far)
        else:
            columns(tile, h, ai, csa, v, sv, k, t, 0, far)
        if not direct:
            xi = x + i * rsx * size if x != 0 else 0
            finish(tile, h, 1, t, 1, 0, 0, True, True, ci, rsc, 1, xi, rsx, 1, alpha, beta)


@functools.cache
def by_vectors(tile) -> int:
    """The jobs of one thread where C is one row or one column, and the other matrix lies along it or along k."""

    def work(f, task):
        size, alpha, beta = tile.itemsize, peek(tile, f.scalars), peek(tile, f.scalars + tile.itemsize)
        m, k, matrix, each, vector, apart = f.m, f.k, f.a, f.sa, f.b, f.sb
        rsa, csa, sv, rsc, rsx = f.rsa, f.csa, f.rsb, f.rsc, f.rsx
        if m == 1:  # B's columns against a row of A
            m, matrix, each, vector, apart = f.n, f.b, f.sb, f.a, f.sa
            rsa, csa, sv, rsc, rsx = f.csb, f.rsb, f.csa, f.csc, f.csx
        short = m <= 8 * tile.lanes and rsa == 1 and rsc == 1 and (f.x == 0 or rsx == 1)
        far = m * k * size > BESIDE and _bytes(tile, f) > BEYOND
        first = take(f, NEXT) * f.each
        while first < f.count:
            last = min(first + f.each, f.count)
            for t in range(first, last, last - first if short else 1):
                a, v = matrix + t * each * size, vector + t * apart * size
                c, x = f.c + t * f.sc * size, f.x + t * f.sx * size if f.x != 0 else 0
                if short:
                    tiny_row(tile, 1, last - first, k, v, apart, 0, sv, a, each, csa, c, f.sc, 0,
                             x, f.sx, 0, m, alpha, beta)  # fmt: skip
                else:
                    _product(tile, far, m, k, a, rsa, csa, v, sv, c, rsc, x, rsx, alpha, beta)
            first = take(f, NEXT) * f.each

    return compiled(work, STACK.kernel, f"gemm_vectors_{tile}")
