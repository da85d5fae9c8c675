"""The packed path: five loops (Goto and van de Geijn, 2008) around the micro-kernel, in one launch.

jc  nc columns of C   ic  mc rows of C   each block in as many pieces as there are threads, one for each
    pc  kc steps of k
        il  a stretch of A's rows, packed
            jb  nb columns: a block of B in L2, packed once, then multiplied by the stretch's panels
                ip  mr rows: a panel of A in L1 (panels of B that were ready: jp around ip)
                    jp  nr columns: one tile of C in registers

A thread packs what its piece needs by itself, and none waits for another: where cores are far apart, what one has
packed takes the other several times as long to fetch as to pack (AVX-512, two such threads, 512^3 f32: 808 us, so 590).
"""

from __future__ import annotations

import functools

from ...jit.abi.address import invoke, pointer, scratch
from ...jit.abi.record import address
from ...jit.compile.cache import compiled
from ...jit.compile.lazy import jit
from .block import SQUARE
from .blocking import SEGMENT
from .context import PACKING, WORDS, even, matrices, part, sub, up
from .kernels import PANEL_A, PANEL_B, STRIP_A, STRIP_B, TILE_BYTES, tile_at
from .microkernel import STREAMS
from .store import MEMORY, PARTIAL, ending


@jit(forceinline=True)
def _pack(f, side, matrix, width, kb, target):
    """`width` rows of A or columns of B (side) into panels of kb steps; of the matrix its address, and its strides
    along the panel's width and down it."""
    source, along, down = matrix
    words, packs = (kb + f.group - 1) // f.group, pointer(f.packs)  # of a panel, for each of its rows
    head, size, pitch = (f.head, f.size_b, f.nr) if side == PANEL_B else (0, f.size_a, f.mr)
    if f.rowwise != 0 and along == 1:
        invoke(packs[STRIP_A if side == PANEL_A else STRIP_B], (source, kb, down, width, kb, target))
    else:
        for j in range(0, width, pitch):
            to = target + j * (words + head) * f.step
            invoke(packs[side], (source + j * along * size, along, down, min(pitch, width - j), kb, to))


@jit(forceinline=True)
def _words(f, kb):
    """Words of each column in a panel of B of kb steps."""
    return (kb + f.group - 1) // f.group + f.head


@jit(forceinline=True)
def _multiply(f, t, room, panels, rows, columns, place, operands, kb, ends):
    """C[low:high, j0:j0+wide] of a piece takes in a block of k: B packed at `panels`, A in place up to the row `whole`
    and packed at `room` from there on; in place but for steps that are no whole group, of which `room` begins with the
    panels. `columns`: these, and how many the piece has; `place`: where it begins in C; `operands`: A, C and X from
    there on; `t`: a tile's words, which say where in k it is; `ends`: a segment does."""
    (low, whole, high), (j0, wide, width), (a, c, x) = rows, columns, operands
    words, begins = (kb + f.group - 1) // f.group, t.starts
    square = scratch(SQUARE)  # a chain that ends through memory and needs no room of its own
    stop = PARTIAL
    if ends:
        stop = ending(f.csc, x[0], f.csx, f.unit) if t.first != 0 and t.last != 0 else MEMORY
    down, across, panel = (high - low + f.mr - 1) // f.mr, (wide + f.nr - 1) // f.nr, f.nr * (words + f.head) * f.step
    # Ready panels come from memory; each tile asks for a share of the next one (64x4096x4096 of f32 21.3 -> 15.9 ms).
    streams = f.ready != 0 and high - low <= f.nb
    share = panel // down if streams else 0
    for tile in range(down * across):  # the A panel stays in L1 and B's block in L2, or A in L2 while panels stream by
        i = low + (tile % down if streams else tile // across) * f.mr
        j = j0 + (tile // down if streams else tile % across) * f.nr
        t.height, t.a = min(f.mr, high - i), room + (i - low) * words * f.step
        t.rsa, t.csa = f.step, f.mr * f.step
        t.stop, t.words = stop, words
        t.width, t.b = min(f.nr, j0 + wide - j), panels + (j - j0) * (words + f.head) * f.step
        t.ahead, t.pace, t.gap = panel + tile % down * share, share // words, share // STREAMS
        t.c, t.x = sub(c, i, j, f.size_c)[0], sub(x, i, j, f.size_c)[0]
        t.part, t.rsp, t.total, t.rst = square, f.nr, t.c, f.rsc
        if f.part > 0:
            t.part, t.rsp = room + f.part + (i * width + j) * f.size_t, width
        elif f.part == 0:
            t.part, t.rsp = t.c, f.rsc
        if f.total > 0:
            t.total, t.rst = room + f.total + (i * width + j) * f.size_t, width
        if i < whole:
            t.a, t.rsa, t.csa = sub(a, i, 0, f.size_a)[0], f.rsa * f.size_a, f.step
            if kb % f.group != 0:
                t.stop, t.words = PARTIAL, words - 1
                invoke(f.multiply, (address(t), f.own))
                t.a, t.rsa, t.csa = room + (i - low) * f.step, f.step, f.mr * f.step
                t.b, t.starts, t.stop, t.words = t.b + (words - 1) * f.nr * f.step, 0, stop, 1
        invoke(f.multiply, (address(t), f.own))
        t.starts = begins
        if f.after != 0 and ends and t.last != 0:
            invoke(f.after, (f.context, place[0] + i, place[1] + j, t.height, t.width))


@jit
def _block(f, t, room, piece, steps):
    """One block of k for a piece: its first row, rows, first column and columns; `steps`: the first, how many, whether
    a segment ends with them, and how many words a panel of B has before them."""
    (ic, m, jc, n), (p, kb, ends, before) = piece, steps
    a, b, c, x = matrices(f)
    a, b = sub(a, ic, p, f.size_a), sub(b, p, jc, f.size_b)
    c, x = sub(c, ic, jc, f.size_c), sub(x, ic, jc, f.size_c)
    words, wide = _words(f, kb), even(n, f.nb, f.nr)
    # A matrix unit reads whole lines of 16 rows. What is left of k takes a tile twice (bfloat16 of 300^3 1.12 of the
    # time, 5x74 by 74x416 1.3, but 3x1675 by 1675x1414, whose rows are read once, .31).
    over = kb % f.group
    in_place = f.brackets != 0 and f.csa == 1 and (over == 0 or (n <= f.nr and kb >= PACKING * f.group))
    for low in range(0, m, f.stretch):
        high = min(low + f.stretch, m)
        whole = high - (high - low) % f.mr if in_place else low
        rest = room + (whole - low) * (words - f.head) * f.step
        _pack(f, PANEL_A, sub(a, whole, 0, f.size_a), high - whole, kb, rest)
        if whole > low and over != 0:
            _pack(f, PANEL_A, sub(a, low, kb - over, f.size_a), whole - low, over, room)
        for j in range(0, n, wide):
            panels = room + f.bpanels + (j * words * f.step if m > f.stretch else 0)
            if f.ready != 0:
                panels = f.ready + (before * up(f.n, f.nr) + (jc + j) * words) * f.step
            elif low == 0:
                source, down, across = sub(b, 0, j, f.size_b)
                _pack(f, PANEL_B, (source, across, down), min(wide, n - j), kb, panels)
            columns = j, min(wide, n - j), n
            _multiply(f, t, room, panels, (low, whole, high), columns, (ic, jc), (a, c, x), kb, ends)


@functools.cache
def loops() -> int:
    """The outer loops over the blocks START to STOP, for the pieces of one thread: void(words, task)."""

    def work(f, task):
        t = tile_at(scratch(TILE_BYTES))
        t.unit = 0
        wide, high = even(f.n, f.nc, f.nr), even(f.m, f.mc, f.mr)
        for piece in range(task, f.down * f.across, f.tasks):
            room, block = f.room + piece * f.share, 0
            for jc in range(0, f.n, wide):
                columns = min(wide, f.n - jc)
                n = part(columns, f.across, f.nr)
                j = piece // f.down * n
                for ic in range(0, f.m, high):
                    rows = min(high, f.m - ic)
                    m = part(rows, f.down, f.mr)
                    i = piece % f.down * m
                    place = ic + i, min(m, rows - i), jc + j, min(n, columns - j)
                    before = 0
                    for segment in range(0, f.k, SEGMENT):
                        length = min(SEGMENT, f.k - segment)
                        step = even(length, f.kc, f.group)
                        for p in range(0, length, step):
                            if f.start <= block < f.stop and i < rows and j < columns:
                                t.starts, t.first, t.last = p == 0, segment == 0, segment + length == f.k
                                steps = segment + p, min(step, length - p), p + step >= length, before
                                _block(f, t, room, place, steps)
                            block, before = block + 1, before + _words(f, min(step, length - p))
        if f.brackets != 0:
            invoke(f.brackets, (0,))

    return compiled(work, WORDS.kernel, "gemm_loops")


@functools.cache
def ahead() -> int:
    """Pack all of B at `ready`, for products that find it there: void(words, task)."""

    def work(f, task):
        b, before = (f.b, f.rsb, f.csb), 0
        for segment in range(0, f.k, SEGMENT):
            length = min(SEGMENT, f.k - segment)
            step = even(length, f.kc, f.group)
            for p in range(0, length, step):
                kb = min(step, length - p)
                source, down, across = sub(b, segment + p, 0, f.size_b)
                _pack(f, PANEL_B, (source, across, down), f.n, kb, f.ready + before * up(f.n, f.nr) * f.step)
                before += _words(f, kb)

    return compiled(work, WORDS.kernel, "gemm_pack_ahead")
