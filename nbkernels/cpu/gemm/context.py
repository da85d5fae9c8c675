"""The record of a product, int64 words that compiled code reads, and the compiled call that fills it in."""

from __future__ import annotations

import functools
import math

from ...jit.abi.ndarray import data, ndim
from ...jit.abi.record import Record
from ...jit.compile.cache import entry
from ...jit.compile.lazy import jit, plain
from ...jit.ir.amx import ROWS
from ...jit.ir.tile import Tile
from .blocking import SEGMENT, Tiles, caches
from .checks import size, step
from .cost import swaps

# A product: by which words threads take jobs, and how many there are, in lines of their own; what comes with its tiles
# and kind, and what the caller says; what the arrays do; how it is cut, and where its parts are.
WORDS = Record(
    "Words",
    """
    next jobs |
    pack multiply mr nr kc nb mc nc group step head size_a size_b size_c size_t direct rowwise shift_a shift_b shift_c
    workers tasks cache scalars unit reads loops sides after context own
    micro nv lanes packs in_place brackets
    a rsa csa b rsb csb c rsc csc x rsx csx m n k
    block down across stretch bpanels ready part total share need blocks room start stop
    """,
)
words_at = WORDS.pointer()
BYTES, NEXT = WORDS.bytes, WORDS["next"]
TASKS = 8 * WORDS["tasks"]  # where a launch says how many threads there are, in bytes
# Times L2: bytes of an A that stays near; of a larger one a stretch has those of L2 (twice as many are level, 1 MB to
# 512 KB, AVX2).
NEAR_L2 = 4
# Steps of k for a row of C from which B in place gains more than C by columns costs (bfloat16: 1.1 to 2.3 times).
CROSSING = 64
# How a product may be turned (`by_columns`): not, as its kernels tell A from B; where C is stored by columns; also
# where a matrix unit reads B in place; also where C is narrow.
FIXED, ROWWISE, EITHER, NARROW = range(4)
PACKING = 12  # steps of the micro-kernel's chains in the time that it takes to pack an element of A or B


@plain(forceinline=True)
def up(size, step):
    """size rounded up to a multiple of step."""
    return (size + step - 1) // step * step


@plain(forceinline=True)
def shift(width):
    """By how many bits bytes are shifted to be elements of so many: a division takes 40 cycles."""
    return (width > 1) + (width > 2) + (width > 4) + (width > 8)


@plain(forceinline=True)
def part(whole, parts, step):
    """A length cut into so many parts, each a multiple of `step` but for the last one."""
    return up((whole + parts - 1) // parts, step)


@plain(forceinline=True)
def even(whole, most, step):
    """A part's length where `whole` is cut into the fewest parts of at most `most`, rounded up to whole steps."""
    return part(whole, (whole + most - 1) // most, step)


@plain
def grid(m, n, mr, nr, workers):
    """Into how many parts rows and columns of C are cut, so that there is a piece for each thread, or for most of them,
    and the largest one takes the least."""
    best, down, across = m * n + PACKING * (m + n), 1, 1
    for parts in range(1, workers + 1):
        rows, columns = min(m, part(m, parts, mr)), min(n, part(n, workers // parts, nr))
        time = rows * columns + PACKING * (rows + columns)
        if time < best:
            best, down, across = time, parts, workers // parts
    return down, across


@plain
def _piece(sizes, tiles, panels, parts, cache):
    """Of a piece: the rows of a stretch; bytes of its panels of A, of B, and of a plane. `cache`: bytes of L2.

    A stretch is what is packed of A at once, as much as each of the threads that share these rows would have of them;
    of a large A less, which stays in the caches while it meets all of B: it would come from memory again for each block
    of B (AVX2, one thread, f64, n = 1024, at once and in stretches: 34 and 39 GFLOP/s).
    """
    (m, n, k), (mr, nr, kc, nb, mc, nc), (group, step, head, size_t), (down, across) = sizes, tiles, panels, parts
    rows, columns = part(even(m, mc, mr), down, mr), part(even(n, nc, nr), across, nr)
    words = (min(k, kc) + group - 1) // group
    size = rows * words * step
    stretches = (size + cache - 1) // cache if size > NEAR_L2 * cache and columns > nb else 1
    stretch = part(rows, max(stretches, across), mr)
    kept = columns if stretch < rows else min(columns, nb)  # of B: a block, unless other stretches meet it, too
    a, b = stretch * words * step, kept * (words + head) * step
    return stretch, up(a, 64), up(b, 64), up(rows * columns * size_t, 64)


@plain(forceinline=True)
def by_columns(sides, lanes, m, n, k, rsb, rsc, csc):
    """Whether C = A B, m x n over k steps, strides in elements, is computed as C' = B' A', by what its `sides` may:
    where C is stored by columns; where few rows meet a B by columns, which a matrix unit reads in place; and where
    vectors of `lanes` along the rows of C would be twice as many as along its columns (5000x3x30 of int32, us: 182,
    so 70)."""
    if sides == FIXED:
        return False
    few = sides == EITHER and rsb == 1 and csc == 1 and m <= ROWS and k >= CROSSING * m
    along = rsc == 1 and (csc != 1 or n == 1)
    if sides == NARROW:
        rows, columns = (n, m) if along else (m, n)
        return along != (2 * columns * up(rows, lanes) <= rows * lanes)
    return few or along


def turns(out, b, sides=ROWWISE, lanes=1) -> bool:
    """Whether `operands` computes out = a @ b as C' = B' A', by what has their shapes, strides and dtypes."""
    (m, n), k = out.shape[-2:], b.shape[-2]
    along_b, down, along = (x.strides[d] == x.dtype.itemsize for x, d in ((b, -2), (out, -2), (out, -1)))
    return by_columns(sides, lanes, m, n, k, k > 1 and along_b, m > 1 and down, n == 1 or along)


@jit(forceinline=True)
def _turned(f, turns):
    """C' = B' A' where it `turns`, which is returned."""
    if turns:
        f.m, f.n, f.a, f.b = f.n, f.m, f.b, f.a
        f.rsa, f.csa, f.rsb, f.csb = f.csb, f.rsb, f.csa, f.rsa
        f.rsc, f.csc, f.rsx, f.csx = f.csc, f.rsc, f.csx, f.rsx
    return turns


@jit(forceinline=True)
def oriented(f, way):
    """Turn a product as a path takes it; tell whether it was turned."""
    return _turned(f, swaps(way, f.m, f.n, f.rsa, f.csb))


@jit(forceinline=True)
def sub(matrix, i, j, size):
    """The matrix, (address or 0, strides down and across, in elements), from row i and column j on, of elements of so
    many bytes."""
    address, down, across = matrix
    return address + (i * down + j * across) * size if address != 0 else 0, down, across


@jit(forceinline=True)
def matrices(f):
    """A, B, C and X of a product's words."""
    return (f.a, f.rsa, f.csa), (f.b, f.rsb, f.csb), (f.c, f.rsc, f.csc), (f.x, f.rsx, f.csx)


@jit(forceinline=True)
def operands(f, out, x, a, b):
    """Fill in what checked arrays say of a product, or of the first one of a stack, by the shifts that are in f; tell
    whether it is C' = B' A' (`by_columns`). Arrays are ids, x may be 0; a vector a is a row, a vector b a column.
    Nothing goes by the stride of a size of 1: it is 0, or 1 where kernels ask for contiguous elements."""
    rows, columns = ndim(a) > 1, ndim(b) > 1
    down, m, n, k = rows + columns - 1, size(a, 1), size(b, 0) if columns else 1, size(a, 0)
    f.m, f.n, f.k, f.a, f.b, f.c, f.x, f.rsx, f.csx = m, n, k, data(a), data(b), data(out), 0, 0, 0
    f.rsa, f.csa = step(a, 1) >> f.shift_a, step(a, 0) >> f.shift_a if k > 1 else 1
    f.rsb, f.csb = step(b, int(columns)) >> f.shift_b, step(b, 0) >> f.shift_b if n > 1 else 1
    f.rsc, f.csc = step(out, down) >> f.shift_c if rows else 0, step(out, 0) >> f.shift_c if n > 1 else 1
    if x != 0 and f.reads != 0:
        f.x = data(x)
        f.rsx, f.csx = step(x, down) >> f.shift_c if rows else 0, step(x, 0) >> f.shift_c if n > 1 else 1
    return _turned(f, by_columns(f.sides, f.lanes, m, n, k, f.rsb, f.rsc, f.csc))


@jit
def cuts(f):
    """Fill in how the product is cut, and the room that it needs."""
    m, n, k = f.m, f.n, f.k
    f.down, f.across = grid(min(m, f.mc), min(n, f.nc), f.mr, f.nr, f.workers)
    tiles, panels = (f.mr, f.nr, f.kc, f.nb, f.mc, f.nc), (f.group, f.step, f.head, f.size_t)
    f.stretch, f.bpanels, bpanels, plane = _piece((m, n, k), tiles, panels, (f.down, f.across), f.cache)
    need = f.bpanels + bpanels
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
    f.share, f.need = need, need * f.down * f.across
    pieces = (min(k, SEGMENT) + f.kc - 1) // f.kc * segments  # at least as many as there are
    f.blocks = ((m + f.mc - 1) // f.mc) * ((n + f.nc - 1) // f.nc) * pieces


@functools.cache
def prepare():
    """`operands` as a path takes them, then `cuts` where the words have tiles, called from Python: void(id of out, of x
    or 0, of a, of b, address of the words, path)."""

    def run(out, x, a, b, words, way):
        f = words_at(words)
        operands(f, out, x, a, b)
        oriented(f, way)
        if f.mr > 0:
            cuts(f)

    return entry(run, "void(int64, int64, int64, int64, int64, int64)", "gemm_prepare")


def buffers(m: int, n: int, k: int, tiles: Tiles, tile: Tile, workers: int) -> tuple[int, int, int]:
    """Bytes for panels of A, for panels of B, and for planes of waiting sums: all that a product needs beside out.

    C, in blocks of mc x nc, is cut into down x across pieces, one for each thread, which packs what its piece needs. In
    items of the panels' dtype, complex numbers two each, k counted in words: of A m * min(k, kc) items, m at most mc;
    of B n * min(k, kc), n at most nc, if across is above 1, else nb in place of n for each thread. Of an A that has
    more than four times the bytes of L2 each thread has less, as many as L2 at a time, but all of its B. Planes, of
    min(m, mc) * min(n, nc) items in all, are needed only where chains are cut (k > kc) and out cannot hold them: no
    contiguous rows, in-place, or k > 4096; second ones for k > 4096 where out is in-place or has no contiguous rows.

    >>> tiles = Tiles(12, 32, 512, 512, 4092, 4096)
    >>> buffers(1500, 1500, 1500, tiles, Tile("float32", 12, 2, 16), 2)
    (3096576, 2097152, 9096192)
    """
    cut = grid(min(m, tiles.mc), min(n, tiles.nc), tiles.mr, tiles.nr, workers)
    panels = tile.group, tile.step, tile.head, tile.size_t
    return tuple(math.prod(cut) * size for size in _piece((m, n, k), tuple(tiles), panels, cut, caches()[1])[1:])
