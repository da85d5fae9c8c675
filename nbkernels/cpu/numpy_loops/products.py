"""NumPy's inner loops of matmul, vecdot, matvec and vecmat, over ours: a stack of products in one call.

Rows against a vector along which both are contiguous go by 64 chains (dot.py), all else by the packed path's loops;
threads share what is worth a launch. Floats whose computation raised a flag NumPy computes again (elementwise.py).
"""

from __future__ import annotations

import functools

from ...jit.address import call, copy, invoke, number, pointer, scratch
from ...jit.cache import compiled, jit
from ...jit.counters import set_in
from ...jit.flags import given, taken
from ...jit.kind import Kind
from ...jit.rooms import bought, lent, returned, sold
from ...jit.vector import SIZE
from ..gemm.context import BYTES, FINISHED, NEXT, WORKERS, borrow, cuts, started, up, words_at
from ..gemm.context import ROOMS as KEPT
from ..gemm.context import returned as given_back
from ..gemm.context import room as kept_room
from ..gemm.entry import distinct
from ..gemm.kinds import default_tiles, kind_of
from ..gemm.loops import COUNT, COUNTS, kernels, loops
from ..gemm.stacks import GAIN, OVERHEAD, SHARED, jobs
from ..runtime import threads
from .elementwise import (
    AGAIN,
    FLOATS,
    FORM,
    GATE,
    KERNEL,
    LAYOUT,
    LEAST,
    MATMUL,
    MATVEC,
    OLD,
    OTHER,
    PRODUCT,
    SERIOUS,
    SIGNATURE,
    SMALL,
    VECDOT,
    WIDTHS,
    left,
    made,
    ran,
    work_of,
)
from .rows import rows
from .stacks import stacks, suits, table

# What a slot has for products: words of C = A B and of C' = B' A' (context.py), the kernel of rows, picoseconds of a
# multiply-add in NumPy's own loop, threads.WORDS, addresses of kernels; whether stacks of
# small matrices alone are for us, and what their kernel reads (stacks.py).
PLAN, TURNED, ROWS, THEIRS, LAUNCH, STACK, FLAGGED, KEPT_ROOM, SMALLS, TABLE = range(PRODUCT, PRODUCT + 10)
# Picoseconds of ours, and of NumPy's, of which GAIN hundredths must be saved: a call by rows, one of them, a step of k;
# a call by panels, one product, an element of A or B, one of C, of 8 bytes twice (AVX2, 2026-11: by the shapes of
# bench_numpy_loops.py, none of which is slower than 0.97 of NumPy's so).
ROW_CALL, ROW, ROW_STEP, CALL, PRODUCT_, READ, WRITTEN, GAIN_ = 200_000, 90_000, 30, 600_000, 300_000, 1500, 600, 110
INTEGER, HALF, OTHERS = 800, 7400, 100  # NumPy's: of integers, of float16, and of floats, which BLAS does
ALWAYS = 1 << 30
FLOOR = GAIN_ * (ROW_CALL + ROW) // 100  # picoseconds of NumPy's below which no way is worth it
PARALLEL = 96**3  # below, a launch costs more than it saves
OWN = 1 << 18  # bytes of a room that the function keeps
BEGUN = 16 << 20  # those of one that all products share, in turns: its pages come as they are used
GIVEN, given_at = SHARED.bytes, SHARED.pointer()  # what a stack's jobs read
# What a launch of flagged jobs reads.
BY, CONTEXT, RAISED = range(3)
LAUNCHED = 24
# A stack of products: how many, their sizes, each operand's address, row and column strides and step from one to the
# next, all in bytes.
(COUNTED, ROWS_, COLUMNS, STEPS, PA, RA, CA, SA, PB, RB, CB, SB, PC, RC, CC, SC) = range(16)
STACKED = 8 * 16
NEITHER, ROWWISE, PANELS, STACKS = range(4)


@jit
def _described(s, a, d, t, q):
    """The call as a stack of products; strides of sizes of 1 do not count."""
    form = s[FORM]
    q[COUNTED], q[ROWS_], q[STEPS], q[COLUMNS] = d[0], 1, d[1], 1
    q[PA], q[PB], q[PC] = a[0], a[1], a[2]
    q[SA], q[SB], q[SC] = t[0], t[1], t[2]
    q[RA], q[CA], q[RB], q[CB], q[RC], q[CC] = 0, 0, 0, 0, 0, 0
    if form == MATMUL:
        q[ROWS_], q[STEPS], q[COLUMNS] = d[1], d[2], d[3]
        q[RA], q[CA], q[RB], q[CB], q[RC], q[CC] = t[3], t[4], t[5], t[6], t[7], t[8]
    elif form == VECDOT:
        q[CA], q[RB] = t[3], t[4]
    elif form == MATVEC:
        q[ROWS_], q[STEPS] = d[1], d[2]
        q[RA], q[CA], q[RB], q[RC] = t[3], t[4], t[5], t[6]
    else:
        q[COLUMNS] = d[2]
        q[CA], q[RB], q[CB], q[CC] = t[3], t[4], t[5], t[6]
    wa, wb, wc = s[WIDTHS], s[WIDTHS + 1], s[WIDTHS + 2]
    if q[ROWS_] == 1:
        q[RA], q[RC] = wa * q[STEPS], wc * q[COLUMNS]
    if q[COLUMNS] == 1:
        q[CB], q[CC] = wb, wc
    if q[STEPS] == 1:
        q[CA], q[RB] = wa, wb * q[COLUMNS]


@jit
def _sound(s, q):
    """Whether there is something to compute, in whole elements, and C's lie apart."""
    if min(min(q[COUNTED], q[ROWS_]), min(q[STEPS], q[COLUMNS])) < 1:
        return False
    odd = (q[RA] | q[CA]) & (s[WIDTHS] - 1) | (q[RB] | q[CB]) & (s[WIDTHS + 1] - 1)
    odd |= (q[RC] | q[CC]) & (s[WIDTHS + 2] - 1)
    return odd == 0 and distinct(q[ROWS_], abs(q[RC]), q[COLUMNS], abs(q[CC]), s[WIDTHS + 2])


@jit
def _way(s, q):
    """How the stack is computed: by rows, which are those of a matrix against a vector, both contiguous along k; by
    panels; or not at all, where NumPy takes no longer."""
    m, n, k, many = q[ROWS_], q[COLUMNS], q[STEPS], q[COUNTED]
    if s[SMALLS] != 0:
        return STACKS if suits(many, m, n, k) and q[CC] == s[WIDTHS + 2] else NEITHER
    theirs = s[THEIRS] * m * n * k * many * 100
    if s[ROWS] != 0 and min(m, n) == 1 and q[CA] == s[WIDTHS] and q[RB] == s[WIDTHS + 1]:
        return ROWWISE if theirs > GAIN_ * (ROW_CALL + many * m * n * (ROW + k * ROW_STEP)) else NEITHER
    wide = 2 if s[WIDTHS + 2] >= 8 else 1
    ours = CALL + many * (PRODUCT_ + wide * (READ * (m * k + k * n) + WRITTEN * m * n))
    return PANELS if theirs > GAIN_ * ours else NEITHER


@jit
def _by_rows(s, q):
    """Rows of a matrix against a vector."""
    wa, wb, wc = s[WIDTHS], s[WIDTHS + 1], s[WIDTHS + 2]
    for i in range(q[COUNTED]):
        a, b, c = q[PA] + i * q[SA], q[PB] + i * q[SB], q[PC] + i * q[SC]
        if q[COLUMNS] == 1:
            invoke(s[ROWS], (q[ROWS_], q[STEPS], a, q[RA] // wa, b, c, q[RC] // wc))
        else:
            invoke(s[ROWS], (q[COLUMNS], q[STEPS], b, q[CB] // wb, a, c, q[CC] // wc))


@jit
def _filled(s, q, f, address):
    """The words of the first product: C' = B' A' where C is stored by columns."""
    turned = q[CC] != s[WIDTHS + 2] and q[RC] == s[WIDTHS + 2]
    copy(address, s[TURNED] if turned else s[PLAN], BYTES)
    wa, wb, wc = s[WIDTHS], s[WIDTHS + 1], s[WIDTHS + 2]
    f.own, f.x, f.k = address, 0, q[STEPS]
    if turned:
        f.m, f.n, f.a, f.b, f.c = q[COLUMNS], q[ROWS_], q[PB], q[PA], q[PC]
        f.rsa, f.csa, f.rsb, f.csb = q[CB] // wb, q[RB] // wb, q[CA] // wa, q[RA] // wa
        f.rsc, f.csc = q[CC] // wc, q[RC] // wc
    else:
        f.m, f.n, f.a, f.b, f.c = q[ROWS_], q[COLUMNS], q[PA], q[PB], q[PC]
        f.rsa, f.csa, f.rsb, f.csb = q[RA] // wa, q[CA] // wa, q[RB] // wb, q[CB] // wb
        f.rsc, f.csc = q[RC] // wc, q[CC] // wc
    return turned


@jit
def _stacked(s, q, f, address, turned, workers, room, each, w, flagged):
    """Products one thread each."""
    g = scratch(GIVEN)
    words = given_at(g)
    words.next, words.first, words.count, words.each = 0, address, q[COUNTED], each
    words.step_a, words.step_b = (q[SB], q[SA]) if turned else (q[SA], q[SB])
    words.step_c, words.step_x, words.rooms, words.size = q[SC], 0, room, up(f.need, 64)
    w[BY], w[CONTEXT] = s[STACK], g
    if workers > 1:
        threads.unheld(s[LAUNCH], s[FLAGGED], flagged, address + WORKERS)
    else:
        call(s[FLAGGED], flagged, 0)


@jit
def _in_turn(s, q, f, address, turned, workers, w, flagged):
    """One product after another, shared by threads."""
    counters = scratch(COUNTS)
    f.counters = counters if workers > 1 else 0
    for i in range(q[COUNTED]):
        f.a = q[PB] + i * q[SB] if turned else q[PA] + i * q[SA]
        f.b = q[PA] + i * q[SA] if turned else q[PB] + i * q[SB]
        f.c, f.workers = q[PC] + i * q[SC], workers
        f.next, f.finished, f.start, f.stop = 0, 0, 0, f.blocks
        for j in range(0, COUNTS if workers > 1 else 0, COUNT):
            pointer(counters + j)[NEXT], pointer(counters + j)[FINISHED] = 0, 0
        w[BY], w[CONTEXT] = f.loops, address
        if workers > 1:
            threads.unheld(s[LAUNCH], s[FLAGGED], flagged, address + WORKERS)
        else:
            call(s[FLAGGED], flagged, 0)


@jit
def _by_panels(s, q):
    """The packed path; the flags that went up."""
    address, flagged = scratch(BYTES), scratch(LAUNCHED)
    f, w, launch = words_at(address), pointer(flagged), threads.pool_at(s[LAUNCH])
    turned = _filled(s, q, f, address)
    one = q[ROWS_] * q[COLUMNS] * q[STEPS]
    stack = q[COUNTED] > 1 and one <= PARALLEL
    shared = q[COUNTED] * (one + OVERHEAD) > GAIN if stack else one > PARALLEL
    workers = number(launch.count) if shared and launch.share != 0 else 1
    w[RAISED] = 0
    f.workers = 1 if stack else workers
    cuts(f)
    need = up(f.need, 64) * (workers if stack else 1)
    room, where = lent(OWN) if need <= OWN else 0, 0
    if room == 0:
        room, where = borrow(pointer(s[KEPT_ROOM]), need), 1
    if room == 0:
        room, where = bought(need), 2
    f.room = room
    if stack:
        each = max(1, min(q[COUNTED] // (4 * workers), GAIN // (one + OVERHEAD)))
        _stacked(s, q, f, address, turned, workers, room, each, w, flagged)
    else:
        _in_turn(s, q, f, address, turned, workers, w, flagged)
    if where == 0:
        returned(OWN, room)
    elif where == 1:
        given_back(pointer(s[KEPT_ROOM]))
    else:
        sold(room)
    return w[RAISED]


def _products(args, dims, strides, data, slot):
    s = pointer(slot)
    work = work_of(s, pointer(dims))
    if s[GATE] != 0 and work * s[THEIRS] < FLOOR:
        invoke(s[OLD], (args, dims, strides, data))
        return
    room = scratch(STACKED)
    q = pointer(room)
    _described(s, pointer(args), pointer(dims), pointer(strides), q)
    sound = _sound(s, q)
    way = _way(s, q) if sound and work >= s[LEAST] else NEITHER
    if way == NEITHER or not made(s, slot):
        left(s, LAYOUT if not sound else SMALL if way == NEITHER else OTHER, work, args, dims, strides, data)
        return
    ran(s, work)
    before, raised = taken(), 0
    if way == ROWWISE:
        _by_rows(s, q)
    elif way == STACKS:
        flagged = scratch(LAUNCHED)
        pointer(flagged)[RAISED] = 0
        invoke(s[KERNEL], (room, s[TABLE], flagged))
        raised = pointer(flagged)[RAISED]
    else:
        raised = _by_panels(s, q)
    raised |= taken()
    if s[FLOATS] == 0:
        raised = 0
    elif raised & SERIOUS != 0:
        left(s, AGAIN, work, args, dims, strides, data)
        raised = taken()
    given(before | raised)


def _flagged(words, task):
    """A job of a launch, and the flags that it raised, which helpers keep from the thread that waits for them."""
    w, before = pointer(words), taken()
    call(w[BY], w[CONTEXT], task)
    set_in(w, RAISED, taken())
    given(before)


# -- what a slot is made of --------------------------------------------------------------------------------------------


@functools.cache
def products() -> int:
    """What the trampoline of a product's slot calls."""
    return compiled(_products, SIGNATURE, "inner_products")


@functools.cache
def _plan(kind: Kind):
    """Words of a product of this kind, and what must live while they are read."""
    tiles = default_tiles(kind)
    f, kept = started(0, 1, tiles, kind, 1)
    f.pack, f.multiply = kernels(tiles.tile(kind))
    f.loops = loops()
    return f, kept


def prepare(slot, name: str, always: bool) -> None:
    """What the choice of a way reads, before there are kernels; `always`: every product is worth it."""
    usual = HALF if name == "float16" else OTHERS if name.startswith(("float", "complex")) else INTEGER
    slot[THEIRS] = ALWAYS if always else usual
    slot[ROWS] = slot[ROWS] or name != "bool"
    slot[SMALLS] = name in SIZE and not always


def fill(slot, name: str, conj: str) -> None:
    """Compile what products of a dtype need, or load it, and enter it in their slot's words; KERNEL comes last."""
    threads.open_up()
    with kept_room(BEGUN):  # which is the kept one from now on, if there was none
        pass
    kind = kind_of(name, name, name, conj)
    slot[PLAN], slot[TURNED] = (_plan(each)[0].buffer_info()[0] for each in (kind, kind.swapped()))
    if slot[ROWS]:
        slot[ROWS] = rows(name, conj)
    slot[LAUNCH], slot[STACK], slot[KEPT_ROOM] = threads.WORDS, jobs(), KEPT
    slot[FLAGGED] = compiled(_flagged, "void(int64, int64)", "inner_flagged")
    if name in SIZE:
        slot[TABLE] = table(name, slot[FLAGGED])[0].ctypes.data
    slot[KERNEL] = stacks(name) if name in SIZE else 1
