"""Kernels of stacks of small products of floats, and how threads share the products (stacks.py chooses a kernel).
A job is EACH products; a thread that is free takes the next one."""

from __future__ import annotations

import functools

from ...jit.abi.address import peek, scratch
from ...jit.abi.record import Record
from ...jit.abi.sharing import take
from ...jit.abi.workspaces import acquire, allocate, free, release
from ...jit.compile.cache import compiled
from ...jit.compile.lazy import jit, plain
from ...jit.ir.turn import turned
from ..gemv.axpyf import columns
from ..gemv.dotxf import few, pairs_of, rows_of
from ..gemv.jobs import copied
from .block import PANEL, ROOM, native, one_block, packs
from .blocking import SEGMENT
from .context import sub
from .even import NEAR as EVENLY
from .even import even
from .microkernel import PACKED, STRIDED, every
from .pack import pack
from .paths import ALONE
from .store import finish
from .tiny import AHEAD as AHEADS
from .tiny import absent, tall, tiny, tiny_ahead

# A stack: the next job, each operand's address and its three strides in elements, the factors' address, and whether
# alpha is 1; threads.WORDS, or 0 where one thread is to take it, and whether the caller holds the GIL.
STACK = Record(
    "Stack",
    """
    next |
    a sa rsa csa b sb rsb csb c sc rsc csc x sx rsx csx m n k count each scalars unit launch held tasks
    """,
)
NEXT, TASKS = STACK["next"], 8 * STACK["tasks"]
# Bytes of a stack beyond which a product prefetches the next one's lines, step by step, each being too short for the
# prefetchers to follow (one thread, us: 1736x24x24x24 of f64 3250 -> 1740; 50x1x300x300 of f32 856 -> 440), and is done
# before the next one.
FAR = 8 << 20
CHUNK = 32 << 10  # bytes of A, B and C that a thread takes at a time, at least
# Jobs of a larger stack: threads that take neighbouring pieces fetch each other's lines (two threads, us:
# 10000x16x16x16 of f32 in chunks 1180, in 64 jobs 550).
SHARES = 32
FEW_STEPS = 4  # of a product that writes more than it reads
BROAD = 3  # register tiles across from which a product is written along its rows (150x150x8 of f64 144 us, so 106)
CHAINS, COPY = 4 << 10, 8 * SEGMENT  # bytes of stack for the chains of a row or column, and for a strided vector
TURNED = 8 << 10  # bytes of matrices B that are turned before their products: a quarter of L1
PANELS = 2 * PANEL  # bytes of a panel of B and, of a narrow tile, of A
assert max(EVENLY, TURNED) <= PANEL

NONE, ONE_BLOCK, TINY, VECTOR, EVEN, NATIVE = range(6)  # the kernels, by their place in a table


@plain
def bytes_of(tile, f):
    """Bytes of the matrices A, B and C of all products of a stack."""
    return f.count * (f.m * f.k + f.k * f.n + f.m * f.n) * tile.itemsize


@plain
def job(tile, f):
    """Products of a job."""
    if f.m * f.n * f.k > ALONE:
        return 1
    each = max(CHUNK // (bytes_of(tile, f) // f.count), f.count // SHARES)
    return max(1, min(each, (f.count + 1) // 2))


@plain
def pairs(f):
    """Whether products are each of a row and a column, both contiguous."""
    return f.m == 1 and f.n == 1 and f.csa == 1 and f.rsb == 1


def _by(piece, *lies):
    """The kernel that does its jobs by `piece` of a tile, the stack, the thread, the first product and the last, and
    needs micro-kernels for operands that lie so."""

    @functools.cache
    def by(tile) -> int:
        def work(f, task):
            first = take(f, NEXT) * f.each
            while first < f.count:
                piece(tile, f, task, first, min(first + f.each, f.count))
                first = take(f, NEXT) * f.each

        every(tile, *lies)
        return compiled(work, STACK.kernel, f"gemm_{piece.__name__.strip('_')}_{tile}")

    return by


@jit(forceinline=True)
def _factors(tile, f):
    return peek(tile, f.scalars), peek(tile, f.scalars + tile.itemsize)


@jit(forceinline=True)
def _at_once(tile, f, left, alone):
    """Of so many products those whose Bs are made ready together."""
    if alone or (f.csb != 1 and f.rsb != 1):
        return 1
    return left if f.csb == 1 else max(1, TURNED // (f.n * f.k * tile.itemsize))


@jit(forceinline=True)
def _rows_of_b(tile, f, t, count, panel, pitch):
    """The place of B, or of `count`, as rows: in place, or in a panel, turned, or packed at a pitch; and elements from
    one B, or from the panel to the next in place, and from row to row."""
    b, n, k = f.b + t * f.sb * tile.itemsize, f.n, f.k
    if f.csb == 1:
        return b, f.sb, f.rsb
    if f.rsb == 1:  # 10000x4x4x4 of float32 NT 240 us by `pack`, so 52 (AVX-512)
        turned(tile, count, n, k, b, f.sb, f.csb, panel)
        pitch = n
    else:
        pack(tile, b, f.csb, f.rsb, n, k, panel, pitch)
    return panel, n * k if count > 1 else f.sb + (b - panel) // tile.itemsize, pitch


@jit(forceinline=True)
def by_rows(tile, f, sizes, a, panels, c, x, alpha, beta):
    """C of so many rows and columns, some rows across all columns, then the next: it is written along its rows.
    `panels`: the address of B's, each a register tile wide, in elements how far they are apart, and a panel's rows."""
    (m, n), (b, panel, rsb), size, height = sizes, panels, tile.itemsize, tall(tile, tile.nr)
    whole = n // tile.nr
    for i in range(0, m, height):
        h, ai, ci, xi = min(height, m - i), a + i * f.rsa * size, c + i * f.rsc * size, x + i * f.rsx * size
        for start, count, w in ((0, whole, tile.nr), (whole, 1, n - whole * tile.nr)):
            if w > 0 and count > 0:
                first, at = start * tile.nr * size, b + start * panel * size
                tiny(tile, h, count, f.k, ai, 0, f.rsa, f.csa, at, panel, rsb, ci + first, tile.nr, f.rsc,
                     xi + first if x != 0 else 0, tile.nr, f.rsx, w, alpha, beta)  # fmt: skip


@plain
def lacking_by_rows(tile, words, m, n):
    """The place of what `by_rows` needs of tiny.py's table and is not there; or -1."""
    at, height = -1, tall(tile, tile.nr)
    for h in (min(m, height), m % height):
        at = max(at, max(absent(tile, words, h, min(n, tile.nr)), absent(tile, words, h, n % tile.nr)))
    return at


@plain
def _broad(tile, f):
    """Whether each product is written along its rows, across all columns."""
    return f.n >= BROAD * tile.nr


@jit(forceinline=True)
def _together(tile, f, first, run, b, sb, rsb, alpha, beta):
    """`run` products: a block of at most two vectors and some rows of all of them, then the next block."""
    size, m, width = tile.itemsize, f.m, tile.nr
    for j in range(0, f.n, width):
        w, i = min(width, f.n - j), 0
        blocks = (m - 1) // tall(tile, w) + 1
        for block in range(blocks):
            h = (m - i + blocks - block - 1) // (blocks - block)
            a, c = f.a + (first * f.sa + i * f.rsa) * size, f.c + (first * f.sc + i * f.rsc + j) * size
            x = f.x + (first * f.sx + i * f.rsx + j) * size if f.x != 0 else 0
            tiny(tile, h, run, f.k, a, f.sa, f.rsa, f.csa, b + j * size, sb, rsb, c, f.sc, f.rsc, x, f.sx, f.rsx, w,
                 alpha, beta)  # fmt: skip
            i += h


@plain
def _prefetches(tile, f):
    """Whether a product prefetches the next one's lines; one of few steps mostly writes, and loses by it (117x174x151x2
    of float32: 2130 us, without 1380; AVX-512)."""
    return f.m >= tall(tile, f.n) and f.n > tile.lanes and f.k > FEW_STEPS and bytes_of(tile, f) > FAR


@plain
def lacking(tile, words, f):
    """The place of what `_tiny` needs of tiny.py's table and is not there; or -1."""
    m, n = f.m, f.n
    if _broad(tile, f) or _prefetches(tile, f):
        at = lacking_by_rows(tile, words, m, n)
        for place in range(AHEADS, AHEADS + 2 if _prefetches(tile, f) else AHEADS):
            at = place if words[place] == 0 else at
        return at
    at = -1
    for w in (min(n, tile.nr), n % tile.nr if n > tile.nr else 0):
        blocks = (m - 1) // tall(tile, w) + 1
        low = m // blocks
        at = max(at, absent(tile, words, low, w), absent(tile, words, low + 1, w) if low * blocks < m else -1)
    return at


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
                tiny_ahead(tile, 1, k, a, 0, f.rsa, f.csa, bj, 0, rsb, c, 0, f.rsc, x, 0, f.rsx, w, alpha, beta,
                           na, nb, nc, da, db, dc)  # fmt: skip
                na, nb, nc = na + k * da, nb + k * db, nc + k * dc
            else:
                tiny(tile, h, 1, k, a, 0, f.rsa, f.csa, bj, 0, rsb, c, 0, f.rsc, x, 0, f.rsx, w, alpha, beta)


@jit(forceinline=True)
def _tiny(tile, f, task, first, last):
    """By `tiny`."""
    m, n, size, panel, (alpha, beta) = f.m, f.n, tile.itemsize, scratch(PANEL), _factors(tile, f)
    pitch = tile.lanes // 2 if 2 * n <= tile.lanes else (n + tile.lanes - 1) // tile.lanes * tile.lanes
    ahead = _prefetches(tile, f)
    run = _at_once(tile, f, last - first, ahead or (m > tall(tile, n) and bytes_of(tile, f) > FAR))
    for t in range(first, last, run):
        count = min(run, last - t)
        b, sb, rsb = _rows_of_b(tile, f, t, count, panel, pitch)
        if ahead:
            _ahead(tile, f, t, b, rsb, alpha, beta)
        elif _broad(tile, f):
            for q in range(t, t + count):
                a, c, x = f.a + q * f.sa * size, f.c + q * f.sc * size, f.x + q * f.sx * size if f.x != 0 else 0
                by_rows(tile, f, (m, n), a, (b + (q - t) * sb * size, tile.nr, rsb), c, x, alpha, beta)
        else:
            _together(tile, f, t, count, b, sb, rsb, alpha, beta)


@jit(forceinline=True)
def _even(tile, f, task, first, last):
    """By `even`."""
    size, panel, ahead, upright = tile.itemsize, scratch(PANEL), int(bytes_of(tile, f) > FAR), int(f.csa != 1)
    step = f.rsa if upright == 0 else f.csa
    run = _at_once(tile, f, last - first, ahead == 1 and f.csb != 1)
    for t in range(first, last, run):
        a, c, count = f.a + t * f.sa * size, f.c + t * f.sc * size, min(run, last - t)
        b, sb, rsb = _rows_of_b(tile, f, t, count, panel, f.n)
        even(tile, upright, ahead, count, f.m, f.n, f.k, a, f.sa, step, b, sb, rsb, c, f.sc, f.rsc)


@jit(forceinline=True)
def _matrices(f, t, size):
    """A, B, C and X of product t."""
    x = f.x + t * f.sx * size if f.x != 0 else 0
    return (
        (f.a + t * f.sa * size, f.rsa, f.csa), (f.b + t * f.sb * size, f.rsb, f.csb),
        (f.c + t * f.sc * size, f.rsc, f.csc), (x, f.rsx, f.csx),
    )  # fmt: skip


@jit(forceinline=True)
def _batch(tile, f, task, first, last):
    """By block.py's one_block."""
    size, panels, (alpha, beta) = tile.itemsize, acquire(PANELS), _factors(tile, f)
    packed = packs(tile, f.m, f.n, f.k, f.rsa, f.csa)
    large = packed and f.m * f.n * f.k > ALONE
    room = allocate(ROOM) if large else 0  # a function can `acquire` one size
    if packed and not large and tile.narrow and (f.m + tile.mr) * f.k * size <= PANEL:
        room = panels + PANEL  # as one product has (block.py)
    for t in range(first, last):
        one_block(tile, room, panels, (f.m, f.n, f.k), _matrices(f, t, size), alpha, beta)
    if large:
        free(room)
    release(PANELS, panels)


@jit(forceinline=True)
def _column(tile, far, m, k, matrix, vector, c, x, alpha, beta):
    """One row or column of outputs, m of them; `far`: what comes next is asked for."""
    size, chains, copy, (_, rsa, csa), (v, sv) = tile.itemsize, scratch(CHAINS), scratch(COPY), matrix, vector
    if rsa != 1 and sv != 1:
        copied(tile, k, v, sv, copy)
        v = copy
    direct = c[1] == 1 and x[0] == 0 and alpha == 1
    wide = m if direct else CHAINS // size
    for i in range(0, m, wide):
        h, ai, ci = min(wide, m - i), sub(matrix, i, 0, size)[0], sub(c, i, 0, size)
        t = ci[0] if direct else chains
        if rsa != 1:
            rows_of(tile, h, ai, rsa, v, k, t, not far, far)
        else:
            columns(tile, h, ai, csa, v, sv, k, t, 0, far)
        if not direct:
            finish(tile, (h, 1), (t, 1), (0, 0), True, True, ci, sub(x, i, 0, size), alpha, beta)


@jit(forceinline=True)
def _pairs(tile, f, first, last):
    """Of rows and columns: a vector of chains is as many products."""
    size, chains, (alpha, beta) = tile.itemsize, scratch(CHAINS), _factors(tile, f)
    for t in range(first, last, few(tile)):
        count, (a, b, c, x) = min(few(tile), last - t), _matrices(f, t, size)
        pairs_of(tile, count, a[0], f.sa, b[0], f.sb, f.k, chains)
        c, x = (c[0], f.sc, 1), (x[0], f.sx, 1)
        finish(tile, (count, 1), (chains, 1), (0, 0), True, True, c, x, alpha, beta)


@jit(forceinline=True)
def _vectors(tile, f, task, first, last):
    """Where C is one row or one column, and the other matrix lies along it or along k."""
    size, (alpha, beta), far = tile.itemsize, _factors(tile, f), bytes_of(tile, f) > FAR
    m, column = (f.n, 0) if f.m == 1 else (f.m, 1)  # of outputs, and whether B is one: else A is a row
    if pairs(f):
        _pairs(tile, f, first, last)
        return
    for t in range(first, last):
        (a, rsa, csa), (b, rsb, csb), (c, rsc, csc), (x, rsx, csx) = _matrices(f, t, size)
        if column:
            _column(tile, far, m, f.k, (a, rsa, csa), (b, rsb), (c, rsc, 1), (x, rsx, 1), alpha, beta)
        else:
            _column(tile, far, m, f.k, (b, csb, rsb), (a, csa), (c, csc, 1), (x, csx, 1), alpha, beta)


# The kernels' names, and what compiles them.
WAYS = {
    ONE_BLOCK: ("small", _by(_batch, STRIDED, PACKED)),
    TINY: ("tiny", _by(_tiny)),
    VECTOR: ("vectors", _by(_vectors)),
    EVEN: ("even", _by(_even)),
    NATIVE: ("one after another", lambda tile: native(tile.dtype)),
}
