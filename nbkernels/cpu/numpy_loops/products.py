"""NumPy's inner loops of matmul, vecdot, matvec and vecmat, over ours: a stack of products in one call.

Rows against a vector along which both are contiguous go by 64 chains (dot.py), all else as call.py says; threads share
what is worth a launch. Floats whose computation raised a flag NumPy computes again (elementwise.py).
"""

from __future__ import annotations

import functools

import numpy as np

from ...jit.abi.address import asked, invoke, pointer, scratch
from ...jit.abi.flags import given, taken
from ...jit.abi.ndarray import HEADER, SHAPE, STRIDES, header_at
from ...jit.abi.record import Record, lasting
from ...jit.compile.cache import compiled
from ...jit.compile.lazy import jit
from ...jit.ir.kind import Kind
from ...jit.ir.vector import SIZE
from ..gemm.call import SHARED, checked, plan
from ..gemm.kinds import kind_of
from ..gemv.dot import inner, tile_of
from ..runtime import threads
from ..runtime.status import DONE
from ..runtime.workspace import KEPT, room
from . import elementwise as reasons
from .elementwise import SERIOUS, SIGNATURE, SLOT, left, made, ran, slot_at, work_of

# Times in multiply-adds of integers by NumPy's loop (0.8 ns): our kernels take PRODUCT for a call and for each product,
# ROW for each row by rows, READ for each element of A and B by panels; NumPy takes HALF for a multiply-add of float16.
# The chosen ways take 1.03 times as long as the better ones, of 1800 random products (AVX2, 2026-12).
PRODUCT, ROW, READ, HALF = 300, 100, 1.5, 9
ALWAYS = 1 << 30
FLOOR = PRODUCT + ROW  # below which no way is worth it
# Rows, columns and steps, at most, of stacks of small matrices of float32 and float64, for each of which NumPy calls
# BLAS. 1000 products of 8x8x8 float32: NumPy 550 us, so 77 (AVX2, 2026-11); two of 32x32x32 1.2 times as long.
MOST = 64
# How many, their sizes, each operand's address, row and column strides and step from one to the next, all in bytes.
STACKED = Record("Stacked", "count rows columns steps a ra ca sa b rb cb sb c rc cc sc")
stacked_at, STACKED_BYTES, TOLD = STACKED.pointer(), STACKED.bytes, HEADER.bytes
NEITHER, ROWWISE, PANELS = range(3)


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
    """Tell whether there is something to compute, in whole elements."""
    if min(min(q.count, q.rows), min(q.steps, q.columns)) < 1:
        return False
    odd = (q.ra | q.ca) & (s.widths[0] - 1) | (q.rb | q.cb) & (s.widths[1] - 1)
    return odd | ((q.rc | q.cc) & (s.widths[2] - 1)) == 0


@jit
def _way(s, q):
    """How the stack is computed: by rows, which are those of a matrix against a vector, both contiguous along k; by
    panels; or not at all, where NumPy takes no longer."""
    m, n, k, many = q.rows, q.columns, q.steps, q.count
    if s.smalls != 0:
        few = many == 1 or min(m, n) == 1 or max(m, max(n, k)) > MOST
        return NEITHER if few or q.cc != s.widths[2] else PANELS
    theirs = 1.0 * s.theirs * m * n * k * many  # ALWAYS times large products is no int64
    if s.rows != 0 and min(m, n) == 1 and q.ca == s.widths[0] and q.rb == s.widths[1]:
        return ROWWISE if theirs > PRODUCT + ROW * many * m * n else NEITHER
    return PANELS if theirs > PRODUCT + many * (PRODUCT + READ * (m * k + k * n)) else NEITHER


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


@jit(forceinline=True)
def _told(words, address, sizes, strides):
    """The address of a header for a stack of matrices, written there."""
    w = header_at(words)
    w.data, w.ndim, w.dims, w.steps = address, 3, words + SHAPE, words + STRIDES
    w.shape[0], w.shape[1], w.shape[2] = sizes
    w.strides[0], w.strides[1], w.strides[2] = strides
    return words


@jit
def _by_panels(s, q):
    """Tell whether call.py has computed the stack: operands may overlap."""
    operands, (m, n, k) = scratch(32), (q.rows, q.columns, q.steps)
    told = pointer(operands)
    told[0] = told[1] = _told(scratch(TOLD), q.c, (q.count, m, n), (q.sc, q.rc, q.cc))
    told[2] = _told(scratch(TOLD), q.a, (q.count, m, k), (q.sa, q.ra, q.ca))
    told[3] = _told(scratch(TOLD), q.b, (q.count, k, n), (q.sb, q.rb, q.cb))
    return asked(s.product, (operands, 0, s.plan, s.factors, 0, 0.0, 1.0, SHARED)) == DONE


def _products(args, dims, strides, data, slot):
    s = slot_at(slot)
    work = work_of(s, pointer(dims))
    if s.gate != 0 and 1.0 * work * s.theirs < FLOOR:
        invoke(s.old, (args, dims, strides, data))
        return
    words = scratch(STACKED_BYTES)
    q = stacked_at(words)
    _described(s, pointer(args), pointer(dims), pointer(strides), q)
    sound = _sound(s, q)
    way = _way(s, q) if sound and work >= s.least else NEITHER
    if way == NEITHER or not made(s, slot):
        why = reasons.LAYOUT if not sound else reasons.SMALL if way == NEITHER else reasons.OTHER
        left(s, why, work, args, dims, strides, data)
        return
    ran(s, work)
    before, done = taken(), True
    if way == ROWWISE:
        _by_rows(s, q)
    else:
        done = _by_panels(s, q)
    raised = taken() if s.floats != 0 else taken() & 0
    if not done or raised & SERIOUS != 0:
        left(s, reasons.AGAIN, work, args, dims, strides, data)
        raised = taken()
    given(before | raised)


# -- what a slot is made of --------------------------------------------------------------------------------------------


@functools.cache
def products() -> int:
    """What the trampoline of a product's slot calls."""
    return compiled(_products, SIGNATURE, "inner_products")


@lasting
def _plan(kind: Kind):
    """Make what `checked` takes of a kind: its plan, and factors of 1 and 0; and what must live while they are read."""
    words, factors = plan(kind, False, True), np.array([1, 0, 1, 0], kind.chain)
    return words[0], factors.ctypes.data, words, factors


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
    slot[SLOT["theirs"]] = ALWAYS if always else HALF if name == "float16" else 1
    slot[SLOT["rows"]] = slot[SLOT["rows"]] or name != "bool"
    slot[SLOT["smalls"]] = name in SIZE and not always


def fill(slot, name: str, conj: str) -> None:
    """Compile what products of a dtype need, or load it, and enter it in their slot's words; KERNEL comes last."""
    threads.open_up()
    with room(KEPT):  # the kept one from now on, which all products share, in turns; its pages come as they are used
        pass
    kind = kind_of(name, name, name, conj, "chain" if name == "float16" else None)  # a matrix unit raises no flags
    slot[SLOT["product"]], (slot[SLOT["plan"]], slot[SLOT["factors"]]) = checked(), _plan(kind)[:2]
    if slot[SLOT["rows"]]:
        slot[SLOT["rows"]] = rows(tile_of(name, conj))
    slot[SLOT["kernel"]] = 1
