"""What compiled products read: int64 words, and the one compiled call that fills them in from the arrays' ids."""

from __future__ import annotations

import functools

from numba import types

from ...jit.cache import entry, jit, plain
from ...jit.linked import linked
from ...jit.ndarray import data, ndim, shape, stride
from ...jit.record import Record
from ...jit.tile import Tile
from ..runtime.arrays import unusual
from ..runtime.status import DECLINED, DONE
from .blocking import SEGMENT, Tiles, caches

# A product: by which words threads take jobs, and how many there are, in lines of their own; what comes with its tiles
# and kind, and what the caller says; what the arrays do; how it is cut, and where its parts are.
WORDS = Record(
    "Words",
    """
    next jobs panel panels | finished |
    pack multiply mr nr kc nb mc nc group step head size_a size_b size_c size_t direct rowwise shift_a shift_b shift_c
    workers tasks near scalars unit reads trusted loops mixed sided numpy result counters after context own
    micro nv lanes packs
    a rsa csa b rsb csb c rsc csc x rsx csx m n k
    block fused bpanels part total need blocks room start stop
    """,
)
words_at = WORDS.pointer()
BYTES, NEXT, FINISHED = WORDS.bytes, WORDS["next"], WORDS["finished"]
WORKERS, TASKS = 8 * WORDS["workers"], 8 * WORDS["tasks"]  # where a launch says how many threads there are, in bytes
NEAR_L2 = 4  # times L2: bytes of an A that stays near


@plain(forceinline=True)
def up(size, step):
    """size rounded up to a multiple of step."""
    return (size + step - 1) // step * step


@jit(forceinline=True)
def _buffers(sizes, cut, panels, workers):
    """The formula of `buffers`."""
    (m, n, k), (mr, nr, kc, nb, mc, nc), (group, step, head, size_t) = sizes, cut, panels
    rows = workers * mr if n <= nb and workers > 1 else up(min(m, mc), mr)
    words = (min(k, kc) + group - 1) // group
    apanels, bpanels = rows * words * step, up(min(n, nc), nr) * (words + head) * step
    return up(apanels, 64), up(bpanels, 64), up(min(m, mc) * min(n, nc) * size_t, 64)


@linked(types.int64, WORDS.type, *[types.int64] * 4)
def operands(f, out, x, a, b):
    """Fill in what the arrays say, from the ids of out, of x or 0, of a and b: DONE, or DECLINED where checks are
    asked for."""
    if f.trusted == 0 and unusual(out, x, a, b, f.size_a, f.size_b, f.size_c):
        return DECLINED
    m, n, k = shape(a, 0), shape(b, 1), shape(a, 1)
    c, rsc, csc = data(out), stride(out, 0), stride(out, 1)
    pa, rsa, csa, pb, rsb, csb = data(a), stride(a, 0), stride(a, 1), data(b), stride(b, 0), stride(b, 1)
    px, rsx, csx = 0, 0, 0
    if x != 0 and f.reads != 0:
        px, last = data(x), ndim(x) - 1
        if last > 0 and (shape(x, 0) > 1 or m == 1):
            rsx = stride(x, 0)
        if last >= 0 and (shape(x, last) > 1 or n == 1):
            csx = stride(x, last)
    if csc != f.size_c and rsc == f.size_c:  # C' = B' A': stored along the contiguous side
        m, n, rsc, csc, rsx, csx = n, m, csc, rsc, csx, rsx
        pa, rsa, csa, pb, rsb, csb = pb, csb, rsb, pa, csa, rsa
    f.m, f.n, f.k, f.a, f.b, f.c, f.x = m, n, k, pa, pb, c, px
    f.rsa, f.csa, f.rsb, f.csb = rsa >> f.shift_a, csa >> f.shift_a, rsb >> f.shift_b, csb >> f.shift_b
    f.rsc, f.csc, f.rsx, f.csx = rsc >> f.shift_c, csc >> f.shift_c, rsx >> f.shift_c, csx >> f.shift_c
    return DONE


@jit(forceinline=True)
def alone(tile, f, out, x, a, b, beta, trusted):
    """The same of arrays of the tile's dtype, in words that nobody has filled in."""
    size, shift = tile.itemsize, 2 if tile.itemsize == 4 else 3
    f.trusted, f.reads = trusted, beta != 0
    f.size_a, f.size_b, f.size_c = size, size, size
    f.shift_a, f.shift_b, f.shift_c = shift, shift, shift
    return operands(f, out, x, a, b)


@jit(forceinline=True)
def swap_sides(f):
    """C' = B' A'."""
    f.m, f.n, f.a, f.b = f.n, f.m, f.b, f.a
    f.rsa, f.csa, f.rsb, f.csb = f.csb, f.rsb, f.csa, f.rsa
    f.rsc, f.csc, f.rsx, f.csx = f.csc, f.rsc, f.csx, f.rsx


@jit
def cuts(f):
    """Fill in how the product is cut, and the room that it needs."""
    m, n, k = f.m, f.n, f.k
    f.fused = n <= f.nb and f.workers > 1
    blocks = (n + f.nb - 1) // f.nb
    f.block = up((n + blocks - 1) // blocks, f.nr)
    tiles, panels = (f.mr, f.nr, f.kc, f.nb, f.mc, f.nc), (f.group, f.step, f.head, f.size_t)
    apanels, bpanels, plane = _buffers((m, n, k), tiles, panels, f.workers)
    f.bpanels, need = apanels, apanels + bpanels
    # Chains cut by kc wait in out itself, unless its rows are not contiguous or X is read from there at the end;
    # so do the sums of finished segments. PART and TOTAL: offset of a plane, or 0 for out, or -1 for nowhere.
    direct = f.csc == 1 and f.x != f.c and f.direct != 0
    cut, segments = k > f.kc, (k + SEGMENT - 1) // SEGMENT
    f.part, f.total = 0 if cut else -1, 0
    if cut and not (direct and segments == 1):
        f.part = need
        need += plane
    if segments > 1 and not direct:
        f.total = need
        need += plane
    f.need = need
    pieces = (min(k, SEGMENT) + f.kc - 1) // f.kc * segments  # at least as many as there are
    f.blocks = ((m + f.mc - 1) // f.mc) * ((n + f.nc - 1) // f.nc) * pieces


@functools.cache
def prepare():
    """Both from Python: int64(id of out, of x or 0, of a, of b, address of the words)."""

    def run(out, x, a, b, words):
        f = words_at(words)
        status = operands(f, out, x, a, b)
        if status == DONE:
            cuts(f)
        return status

    return entry(run, "int64(int64, int64, int64, int64, int64)", "gemm_prepare")


def buffers(m: int, n: int, k: int, tiles: Tiles, tile: Tile, workers: int) -> tuple[int, int, int]:
    """Bytes for panels of A, for panels of B, and for one plane of waiting sums: all that a product needs beside out.

    In items of the panels' dtype, complex numbers two each, k counted in words:
    A: min(m, mc) * min(k, kc) items, or workers * mr * min(k, kc) where several threads meet n <= nb: a panel of A that
    meets one block of B only is packed by the thread that multiplies it, just before (n = 512, two threads: 5 % faster;
    one thread: 2 % slower). B: min(n, nc) * min(k, kc) items. A plane of
    min(m, mc) * min(n, nc) items is needed only where chains are cut (k > kc) and out cannot hold them: no contiguous
    rows, in-place, or k > 4096; a second one for k > 4096 where out is in-place or has no contiguous rows.

    >>> tiles = Tiles(12, 32, 512, 512, 4092, 4096)
    >>> buffers(1500, 1500, 1500, tiles, Tile("float32", 12, 2, 16), 2)
    (3072000, 3080192, 9000000)
    """
    panels = tile.group, tile.step, tile.head, tile.size_t
    return _buffers.py_func((m, n, k), tuple(tiles), panels, workers)


def near() -> int:
    """Bytes of an A that stays in the caches while panels of B go over it."""
    return NEAR_L2 * caches()[1]
