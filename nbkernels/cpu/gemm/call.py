"""Check, describe, swap and run products of any kind, and stacks of them, once for all callers.

checks.py says what stands for an array."""

from __future__ import annotations

import functools

from ...jit.abi.address import asked, copy, invoke, peek, pointer, poke, scratch, set_word
from ...jit.abi.ndarray import data, ndim
from ...jit.abi.record import Record, address, lasting
from ...jit.abi.sharing import take
from ...jit.compile.cache import compiled
from ...jit.compile.lazy import jit
from ...jit.ir.kind import Kind
from ...jit.ir.tile import Tile
from ..runtime import threads, workspace
from ..runtime.status import DECLINED, DONE, GEMV, LACKING
from . import padded, stacks
from .block import native
from .blocking import FEW_REGISTERS, small
from .checks import size, step, unfit, wrong
from .context import BYTES, ROWWISE, operands, oriented, shift, words_at
from .kernels import MULTIPLIER, STACKS, few_tiles, missing, ready
from .kinds import by_unit
from .little import LITTLE, OUTPUTS, little_of
from .paths import AWAKE, DEEPEST, PARALLEL, SERIAL
from .stacks_float import NATIVE

STRICT, HELD, SHARED, NEW = 1, 2, 4, 8  # bits of `how`: NEW, out was made for this call
ASKED = 1  # for the address of what multiplies small matrices: one of the tile's kernels, compiled when it is missed
OVERHEAD = 2000  # multiply-adds in the time that a product takes beside them
F32, F64 = Tile("float32", 1, 1, 1), Tile("float64", 1, 1, 1)
# A stack of products: the next one; how many there are, and are a job; the arrays, A and B as the words of the first
# one have them; these, and what multiplies by itself or 0; what launches threads, their jobs, and workspace.ROOMS or 0;
# batch dimensions, those of out after them; a zero for products of no terms, or 0; the factors.
STACK = Record(
    "ProductStack",
    "next | count each out x a b first alone launch jobs rooms batches inner zero beta alpha tasks",
)
stack_at, SIZE, NEXT = STACK.pointer(), STACK.bytes, STACK["next"]
MANY, many_at = stacks.STACK.bytes, stacks.STACK.pointer()
BETA, ALPHA, TASKS = (8 * STACK[name] for name in ("beta", "alpha", "tasks"))
FACTORS = 4  # alpha and beta, and those of a product of no terms, in the dtype of chains


@jit
def _placed(s, f, t):
    """Fill in where the operands of product t of the stack begin."""
    out, x, a, b = s.out, s.x, s.a, s.b
    f.a, f.b, f.c, px = data(a), data(b), data(out), words_at(s.first).x
    for d in range(s.batches):
        each = d + s.inner
        i, t = t % size(out, each), t // size(out, each)
        f.a, f.b, f.c = f.a + i * step(a, d + 2), f.b + i * step(b, d + 2), f.c + i * step(out, each)
        px += i * step(x, each) if px != 0 else 0
    f.x = px
    if s.zero != 0:
        f.a = f.b = s.zero


@jit
def _one(s, f, held):
    """Compute the product of these words; return what padded.product does."""
    if s.alone == 0:
        return padded.product(s.launch, f, s.rooms, held)
    invoke(s.alone, (f.own, peek(F64, address(s) + BETA), peek(F64, address(s) + ALPHA)))
    return DONE


@functools.cache
def jobs() -> int:
    """The jobs of one thread: void(a STACK's words, task)."""

    def work(s, task):
        own = scratch(BYTES)
        f, start = words_at(own), take(s, NEXT) * s.each
        copy(own, s.first, BYTES)
        while start < s.count:
            for t in range(start, min(start + s.each, s.count)):
                if s.alone == 0:  # the loops count in their words
                    copy(own, s.first, BYTES)
                f.own = own
                _placed(s, f, t)
                _one(s, f, False)
            start = take(s, NEXT) * s.each

    return compiled(work, STACK.kernel, "product_stack")


@jit
def _apart(x, out, skip, s):
    """Bytes from one product's operand to the next one's, and whether they are the same all through the stack; `skip`:
    its dimensions that are a matrix's or a vector's."""
    count, each, even = 1, 0, True
    for d in range(s.batches):
        many, own = size(out, d + s.inner), step(x, d + skip)
        if many > 1:
            each, even = own if count == 1 else each, even and (count == 1 or own == each * count)
            count *= many
    return each, even


@jit
def _at_once(s, f, p, how):
    """The stack by stacks.py, if its products lie evenly: what `whole` answers."""
    out, x, a, b, q = s.out, s.x, s.a, s.b, many_at(scratch(MANY))
    (sa, even_a), (sb, even_b) = _apart(a, out, 2, s), _apart(b, out, 2, s)
    (sc, even_c), (sx, even_x) = _apart(out, out, s.inner, s), _apart(x, out, s.inner, s)
    if not (even_a and even_b and even_c and (even_x or f.x == 0)):
        return DECLINED
    pa, pb, bits = data(a), data(b), shift(p.size)
    q.a, q.sa, q.rsa, q.csa, q.b, q.sb, q.rsb, q.csb = pa, sa >> bits, f.rsa, f.csa, pb, sb >> bits, f.rsb, f.csb
    q.c, q.sc, q.rsc, q.csc = data(out), sc >> bits, f.rsc, f.csc
    q.x, q.sx, q.rsx, q.csx = f.x, sx >> bits, f.rsx, f.csx
    q.m, q.n, q.k, q.count, q.scalars, q.unit = f.m, f.n, f.k, s.count, f.scalars, f.unit
    q.launch, q.held = p.launch if _launches(threads.pool_at(p.launch), how) else 0, how & HELD
    return asked(p.stacks, (address(q), p.ready))


@jit
def _launches(pool, how):
    """Tell whether the caller lets threads share: where it says so, or is in a block of nbkernels.threads."""
    return pool.share != 0 and (how & (HELD | SHARED) != 0 or pointer(pool.limits)[0] > 1)


@jit
def _run(s, f, how):
    """Compute the stack, whose first product has the words f: by threads where they gain and the caller lets them."""
    one, pool = f.m * f.n * f.k + OVERHEAD, threads.pool_at(s.launch)
    workers = threads.workers(pool) if f.workers == 1 and s.count * one > AWAKE and _launches(pool, how) else 1
    s.next, s.each = 0, max(1, min(s.count // (4 * workers), AWAKE // one))
    if workers == 1 and (how & HELD == 0 or s.count * one <= SERIAL):
        invoke(s.jobs, (address(s), 0))
    elif how & HELD != 0:  # others may have the GIL meanwhile
        threads.shared(s.launch, s.jobs, address(s), address(s) + TASKS)
    else:
        threads.unheld(s.launch, s.jobs, address(s), address(s) + TASKS)


@functools.cache
def checked() -> int:
    """out = alpha * a @ b + beta * x: int64(where out, x, a and b are told; address of what multiplies small ones,
    ASKED, or 0; of a padded.PLAN; of FACTORS, and the bytes of one; beta, alpha; `how`): DONE, or what is wrong, with
    nothing done. A beta of 0 reads no x. Of kinds but floats beta and alpha only say whether these are 0 or 1.

    `how`: STRICT, batches must be alike, not broadcast; HELD, the caller holds the GIL, and can be told what is
    missing: LACKING + the place of a kernel, WANTED + bytes of a room; SHARED, it does not, and wants threads.
    """

    def product(arrays, alone, plan, factors, width, beta, alpha, how):
        told, p = pointer(arrays), padded.plan_at(plan)
        out, x, a, b = told[0], told[1], told[2], told[3]
        fault = unfit(out, x, a, b, how & STRICT != 0)
        if fault == DONE:
            fault = wrong(out, x, a, b, (p.size, p.size_a, p.size_b), beta, how & NEW != 0, False)
        if fault != DONE:
            return fault
        rows, columns, none = ndim(a) > 1, ndim(b) > 1, scratch(16)
        own, s = scratch(BYTES), stack_at(scratch(SIZE))
        m, n, k = size(a, 1), size(b, 0) if columns else 1, size(a, 0)
        one, empty, f = m * n * k, k == 0 or alpha == 0, words_at(own)
        s.inner, s.batches, s.launch, s.jobs = rows + columns, max(ndim(a) - 2, ndim(b) - 2, 0), p.launch, p.jobs
        s.out, s.x, s.first, s.zero, s.count = out, x, own, none if empty else 0, 1 if m * n > 0 else 0
        for d in range(s.batches):
            s.count *= size(out, d + s.inner)
        if s.count == 0:
            return DONE
        if empty:
            set_word(none, 0)
            set_word(none + 8, 0)
            alpha = 1.0 if beta == 0 else -1.0
        vector = s.inner == 1 and s.batches == 0  # by a matrix: floats have an order of their own for it
        held, shared = how & HELD != 0, how & (HELD | SHARED) != 0
        s.rooms = p.rooms if shared else 0
        work = one if m > 1 and n > 1 else one * p.size_a  # a matrix that is read once: its bytes
        workers = 1 if held and s.count > 1 else padded.workers(p.launch, work, shared)
        most = PARALLEL if FEW_REGISTERS or workers > 1 else SERIAL
        s.alone = alone if vector or (k <= DEEPEST and one <= most) else 0
        if p.little != 0 and beta == 0 and alpha == 1 and m * n <= OUTPUTS and one <= LITTLE:
            s.alone = p.little
        if s.alone == 0:
            copy(own, p.words if one <= PARALLEL else p.larger, BYTES)
        poke(F64, address(s) + BETA, beta)
        poke(F64, address(s) + ALPHA, alpha)
        f.shift_a, f.shift_b, f.shift_c = shift(p.size_a), shift(p.size_b), shift(p.size)
        f.own, f.unit, f.reads, f.workers = own, alpha == 1, beta != 0, workers
        f.sides = ROWWISE if s.alone != 0 else f.sides
        f.scalars = factors + (2 * width if empty else 0)
        turned = operands(f, out, x, a, b)
        if vector and s.alone != 0:
            turned ^= oriented(f, GEMV)
        s.a, s.b = (b, a) if turned else (a, b)
        if empty:  # a step of a zero by a zero: of -1 times that beta * X keeps its sign
            f.k, f.rsa, f.csa, f.rsb, f.csb = 1, 0, 1, 0, 0 if f.n > 1 else 1
        if s.count > 1 and p.stacks != 0 and not empty:
            found = _at_once(s, f, p, how)
            if found != DECLINED:
                return found
        if s.alone == ASKED:
            s.alone = pointer(p.ready)[MULTIPLIER + NATIVE]
            if s.alone == 0:
                return LACKING + STACKS + NATIVE
        if s.count == 1:
            _placed(s, f, 0)
        if held and s.alone == 0 and p.asks != 0:
            at = missing(f, few_tiles(f))
            if at >= 0:
                return LACKING + at
        if s.count == 1:
            return _one(s, f, held)
        _run(s, f, how)
        return DONE

    return compiled(product, "int64(int64, int64, int64, int64, int64, float64, float64, int64)", "product_checked")


@lasting
def plan(kind: Kind, asks=False, at_once=False) -> tuple:
    """The address of a PLAN, and what must live while it is read: of jitted code of others, which cannot ask for a
    kernel, or of Python. `at_once`: stacks of float matrices are taken at once though nobody can ask."""
    threads.open_up()
    usual, large = (padded.words(each, asks) for each in (kind, by_unit(kind, 1, 1, PARALLEL + 1)))
    p = padded.PLAN.array()
    p.words, p.larger, p.launch = usual.buffer_info()[0], large.buffer_info()[0], threads.WORDS
    p.jobs, p.little, p.asks, p.rooms = jobs(), little_of(kind), asks, workspace.ROOMS
    p.size_a, p.size_b, p.size = usual.size_a, usual.size_b, usual.size_c
    if (asks or at_once) and by_itself(kind):
        tile = small(kind.a)
        p.stacks, p.ready = stacks.whole(tile), ready(tile).ctypes.data
        if not asks:
            stacks.supply_matrices(tile)
    return p.buffer_info()[0], p, usual, large


def by_itself(kind: Kind) -> bool:
    """Tell whether small matrices are multiplied without panels: those of floats."""
    return kind == Kind.plain(kind.chain) and kind.planes == 1


def alone(kind: Kind) -> int:
    """Return the address of what multiplies such matrices, or 0 where padded.py does."""
    return native(kind.chain) if by_itself(kind) else 0
