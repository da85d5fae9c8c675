"""NumPy's inner loops of matmul, vecdot, matvec and vecmat, over ours: a stack of products in one call.

Rows against a vector along which both are contiguous go by 64 chains (dot.py), all else by the packed path's loops;
threads share what is worth a launch. Floats whose computation raised a flag NumPy computes again (elementwise.py).
"""

from __future__ import annotations

import functools

import numpy as np

from ...jit.abi.address import copy, invoke, pointer, scratch
from ...jit.abi.counters import set_in
from ...jit.abi.flags import given, taken
from ...jit.abi.record import address as address_of
from ...jit.abi.workspaces import acquire, allocate, free, release
from ...jit.compile.cache import compiled
from ...jit.compile.lazy import jit
from ...jit.ir.kind import Kind
from ...jit.ir.vector import SIZE
from ..elementwise.planner import BLOCK, operand_at
from ..gemm import padded
from ..gemm.call import GAIN, OVERHEAD, STACK, jobs, stack_at
from ..gemm.context import BYTES, TASKS, cuts, words_at
from ..gemm.kinds import kind_of
from ..gemm.paths import PARALLEL
from ..gemv.dot import inner, tile_of
from ..runtime import threads
from ..runtime.arrays import distinct
from ..runtime.workspace import ROOMS as KEPT
from ..runtime.workspace import acquire as acquire_cached
from ..runtime.workspace import release as release_cached
from ..runtime.workspace import room as kept_room
from . import elementwise as reasons
from .elementwise import SERIOUS, SIGNATURE, SLOT, left, made, ran, slot_at, work_of
from .stacks import LAUNCHED, STACKED, launched_at, stacked_at, stacks, suits, table

# Picoseconds of ours, and of NumPy's, of which GAIN hundredths must be saved: a call by rows, one of them, a step of k;
# a call by panels, one product, an element of A or B, one of C, of 8 bytes twice (AVX2, by bench_numpy_loops.py).
ROW_CALL, ROW, ROW_STEP, CALL, PRODUCT_, READ, WRITTEN, GAIN_ = 200_000, 90_000, 30, 600_000, 300_000, 1500, 600, 110
INTEGER, HALF, OTHERS = 800, 7400, 100  # NumPy's: of integers, of float16, and of floats, which BLAS does
ALWAYS = 1 << 30
FLOOR = GAIN_ * (ROW_CALL + ROW) // 100  # picoseconds of NumPy's below which no way is worth it
OWN = 1 << 18  # bytes of a room that the function keeps
BEGUN = 16 << 20  # those of one that all products share, in turns: its pages come as they are used
STACK_BYTES, BLOCKS = STACK.bytes, 4 * BLOCK  # what a stack's jobs read
STACKED_BYTES, FLAGGED_BYTES, RAISED = STACKED.bytes, LAUNCHED.bytes, LAUNCHED["raised"]
NEITHER, ROWWISE, PANELS, STACKS = range(4)


@jit
def _described(s, a, d, t, q):
    """The call as a stack of products; strides of sizes of 1 do not count."""
    form = s.form
    q.count, q.rows, q.steps, q.columns = d[0], 1, d[1], 1
    q.a, q.b, q.c = a[0], a[1], a[2]
    q.sa, q.sb, q.sc = t[0], t[1], t[2]
    q.ra, q.ca, q.rb, q.cb, q.rc, q.cc = 0, 0, 0, 0, 0, 0
    if form == reasons.MATMUL:
        q.rows, q.steps, q.columns = d[1], d[2], d[3]
        q.ra, q.ca, q.rb, q.cb, q.rc, q.cc = t[3], t[4], t[5], t[6], t[7], t[8]
    elif form == reasons.VECDOT:
        q.ca, q.rb = t[3], t[4]
    elif form == reasons.MATVEC:
        q.rows, q.steps = d[1], d[2]
        q.ra, q.ca, q.rb, q.rc = t[3], t[4], t[5], t[6]
    else:
        q.columns = d[2]
        q.ca, q.rb, q.cb, q.cc = t[3], t[4], t[5], t[6]
    wa, wb, wc = s.widths[0], s.widths[1], s.widths[2]
    if q.rows == 1:
        q.ra, q.rc = wa * q.steps, wc * q.columns
    if q.columns == 1:
        q.cb, q.cc = wb, wc
    if q.steps == 1:
        q.ca, q.rb = wa, wb * q.columns


@jit
def _sound(s, q):
    """Whether there is something to compute, in whole elements, and C's lie apart."""
    if min(min(q.count, q.rows), min(q.steps, q.columns)) < 1:
        return False
    odd = (q.ra | q.ca) & (s.widths[0] - 1) | (q.rb | q.cb) & (s.widths[1] - 1)
    odd |= (q.rc | q.cc) & (s.widths[2] - 1)
    return odd == 0 and distinct(q.rows, abs(q.rc), q.columns, abs(q.cc), s.widths[2])


@jit
def _way(s, q):
    """How the stack is computed: by rows, which are those of a matrix against a vector, both contiguous along k; by
    panels; or not at all, where NumPy takes no longer."""
    m, n, k, many = q.rows, q.columns, q.steps, q.count
    if s.smalls != 0:
        return STACKS if suits(many, m, n, k) and q.cc == s.widths[2] else NEITHER
    theirs = 100.0 * s.theirs * m * n * k * many  # ALWAYS times large products is no int64
    if s.rows != 0 and min(m, n) == 1 and q.ca == s.widths[0] and q.rb == s.widths[1]:
        return ROWWISE if theirs > GAIN_ * (ROW_CALL + many * m * n * (ROW + k * ROW_STEP)) else NEITHER
    wide = 2 if s.widths[2] >= 8 else 1
    ours = CALL + many * (PRODUCT_ + wide * (READ * (m * k + k * n) + WRITTEN * m * n))
    return PANELS if theirs > GAIN_ * ours else NEITHER


@jit
def _by_rows(s, q):
    """Rows of a matrix against a vector."""
    wa, wb, wc = s.widths[0], s.widths[1], s.widths[2]
    for i in range(q.count):
        a, b, c = q.a + i * q.sa, q.b + i * q.sb, q.c + i * q.sc
        if q.columns == 1:
            invoke(s.rows, (q.rows, q.steps, a, q.ra // wa, b, c, q.rc // wc))
        else:
            invoke(s.rows, (q.columns, q.steps, b, q.cb // wb, a, c, q.cc // wc))


@jit
def _filled(s, q, f, address):
    """The words of the first product: C' = B' A' where C is stored by columns."""
    turned = q.cc != s.widths[2] and q.rc == s.widths[2]
    copy(address, s.turned if turned else s.plan, BYTES)
    wa, wb, wc = s.widths[0], s.widths[1], s.widths[2]
    f.own, f.x, f.k = address, 0, q.steps
    if turned:
        f.m, f.n, f.a, f.b, f.c = q.columns, q.rows, q.b, q.a, q.c
        f.rsa, f.csa, f.rsb, f.csb = q.cb // wb, q.rb // wb, q.ca // wa, q.ra // wa
        f.rsc, f.csc = q.cc // wc, q.rc // wc
    else:
        f.m, f.n, f.a, f.b, f.c = q.rows, q.columns, q.a, q.b, q.c
        f.rsa, f.csa, f.rsb, f.csb = q.ra // wa, q.ca // wa, q.rb // wb, q.cb // wb
        f.rsc, f.csc = q.rc // wc, q.cc // wc
    return turned


@jit
def _launched(s, flagged, work, context, workers, address):
    """Jobs that keep their flags, by as many threads as are worth it."""
    w = launched_at(flagged)
    w.by, w.context = work, context
    if workers > 1:
        threads.unheld(s.launch, s.flagged, flagged, address + TASKS)
    else:
        invoke(s.flagged, (flagged, 0))


@jit(forceinline=True)
def _stepped(words, count, address, step):
    """Write a stack of matrices as an operand: where each of them begins."""
    w = operand_at(words)
    w.data, w.ndim = address, 3
    w.shape[0], w.step[0] = count, step


@jit
def _stacked(s, q, f, turned, workers, flagged):
    """Products one thread each."""
    t, blocks = stack_at(scratch(STACK_BYTES)), scratch(BLOCKS)
    _stepped(blocks, q.count, q.c, q.sc)
    _stepped(blocks + 2 * BLOCK, q.count, q.a, q.sa)
    _stepped(blocks + 3 * BLOCK, q.count, q.b, q.sb)
    t.next, t.count, t.each = 0, q.count, max(1, min(q.count // (4 * workers), GAIN // (f.m * f.n * f.k + OVERHEAD)))
    t.operands, t.first, t.launch, t.turned = blocks, f.own, s.launch, turned
    t.alone, t.zero, t.batches, t.inner = 0, 0, 1, 2
    _launched(s, flagged, s.stack, address_of(t), workers, f.own)


@jit
def _in_turn(s, q, f, address, turned, workers, flagged):
    """One product after another, shared by threads."""
    for i in range(q.count):
        f.a = q.b + i * q.sb if turned else q.a + i * q.sa
        f.b = q.a + i * q.sa if turned else q.b + i * q.sb
        f.c, f.tasks = q.c + i * q.sc, workers
        f.start, f.stop = 0, f.blocks
        _launched(s, flagged, f.loops, address, workers, address)


@jit
def _by_panels(s, q):
    """The packed path; the flags that went up."""
    address, flagged = scratch(BYTES), scratch(FLAGGED_BYTES)
    f, w, launch = words_at(address), launched_at(flagged), threads.pool_at(s.launch)
    turned = _filled(s, q, f, address)
    one = q.rows * q.columns * q.steps
    stack = q.count > 1 and one <= PARALLEL
    shared = q.count * (one + OVERHEAD) > GAIN if stack else one > PARALLEL
    workers = threads.own(launch) if shared and launch.share != 0 else 1
    w.raised = 0
    if stack:
        f.workers = 1
        _stacked(s, q, f, turned, workers, flagged)
        return w.raised
    f.workers = workers
    cuts(f)
    room, where = acquire(OWN) if f.need <= OWN else 0, 0
    if room == 0:
        room, where = acquire_cached(pointer(s.kept_room), f.need), 1
    if room == 0:
        room, where = allocate(f.need), 2
    f.room = room
    _in_turn(s, q, f, address, turned, workers, flagged)
    if where == 0:
        release(OWN, room)
    elif where == 1:
        release_cached(pointer(s.kept_room))
    else:
        free(room)
    return w.raised


def _products(args, dims, strides, data, slot):
    s = slot_at(slot)
    work = work_of(s, pointer(dims))
    if s.gate != 0 and 1.0 * work * s.theirs < FLOOR:
        invoke(s.old, (args, dims, strides, data))
        return
    room = scratch(STACKED_BYTES)
    q = stacked_at(room)
    _described(s, pointer(args), pointer(dims), pointer(strides), q)
    sound = _sound(s, q)
    way = _way(s, q) if sound and work >= s.least else NEITHER
    if way == NEITHER or not made(s, slot):
        why = reasons.LAYOUT if not sound else reasons.SMALL if way == NEITHER else reasons.OTHER
        left(s, why, work, args, dims, strides, data)
        return
    ran(s, work)
    before, raised = taken(), 0
    if way == ROWWISE:
        _by_rows(s, q)
    elif way == STACKS:
        flagged = scratch(FLAGGED_BYTES)
        launched_at(flagged).raised = 0
        invoke(s.kernel, (room, s.table, flagged))
        raised = launched_at(flagged).raised
    else:
        raised = _by_panels(s, q)
    raised |= taken()
    if s.floats == 0:
        raised = 0
    elif raised & SERIOUS != 0:
        left(s, reasons.AGAIN, work, args, dims, strides, data)
        raised = taken()
    given(before | raised)


def _flagged(words, task):
    """A job of a launch, and the flags that it raised, which helpers keep from the thread that waits for them."""
    w, before = launched_at(words), taken()
    invoke(w.by, (w.context, task))
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
    f, factors = padded.words(kind), np.array([1, 0], kind.chain)
    f.scalars, f.unit = factors.ctypes.data, 1
    return f, factors


@functools.cache  # signed and unsigned numbers have one
def rows(tile) -> int:
    """Rows of a matrix against a vector: void(m, k, a, rsa, v, c, rsc), strides in elements."""
    one = getattr(np, tile.kind.chain)

    def run(m, k, a, rsa, v, c, rsc):
        for i in range(m):
            inner(tile, k, a + i * rsa * tile.size_a, 1, v, 1, c + i * rsc * tile.size_c, one(1))

    return compiled(run, f"void({', '.join(['int64'] * 7)})", f"inner_rows_{tile}")


def prepare(slot, name: str, always: bool) -> None:
    """What the choice of a way reads, before there are kernels; `always`: every product is worth it."""
    usual = HALF if name == "float16" else OTHERS if name.startswith(("float", "complex")) else INTEGER
    slot[SLOT["theirs"]] = ALWAYS if always else usual
    slot[SLOT["rows"]] = slot[SLOT["rows"]] or name != "bool"
    slot[SLOT["smalls"]] = name in SIZE and not always


def fill(slot, name: str, conj: str) -> None:
    """Compile what products of a dtype need, or load it, and enter it in their slot's words; KERNEL comes last."""
    threads.open_up()
    with kept_room(BEGUN):  # which is the kept one from now on, if there was none
        pass
    kind = kind_of(name, name, name, conj)
    slot[SLOT["plan"]], slot[SLOT["turned"]] = (_plan(each)[0].buffer_info()[0] for each in (kind, kind.swapped()))
    if slot[SLOT["rows"]]:
        slot[SLOT["rows"]] = rows(tile_of(name, conj))
    slot[SLOT["launch"]], slot[SLOT["stack"]], slot[SLOT["kept_room"]] = threads.WORDS, jobs(), KEPT
    slot[SLOT["flagged"]] = compiled(_flagged, "void(int64, int64)", "inner_flagged")
    if name in SIZE:
        slot[SLOT["table"]] = table(name, slot[SLOT["flagged"]])[0].buffer_info()[0]
    slot[SLOT["kernel"]] = stacks(name) if name in SIZE else 1
