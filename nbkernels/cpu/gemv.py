"""Products with one row or one column: y = alpha * A @ v + beta * x, m outputs over k steps.

rows      A is contiguous along k: a vector of chains is as many rows of A, transposed in registers on their way
columns   A is contiguous along the outputs: chains wait in L1 and take in eight steps of k at a time
segments  one output, contiguous: a vector of chains is as many segments of 4096 steps

A job is a segment of k and a block of outputs; it leaves its chains in the segment's plane. Planes are
added in order, so that y has the bits of every other path.
"""

from __future__ import annotations

import functools

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from ..jit.address import fma, peek, pointer, poke, scratch, set_word, take, word
from ..jit.cache import compiled, entry, jit
from ..jit.ndarray import data, descr, ndim, shape, stride
from ..jit.vector import ELEMENT, I64, LINE, SIZE, VOID, Lanes, loop, replaced_if
from . import threads
from .small import DECLINED, DONE, LARGE
from .tiles import SEGMENT, caches, small
from .words import room

STEPS = 8  # steps of k that a column's chain takes in at once: eight loads of A for a load and a store of the chain
WIDE = 4096  # outputs of a job of columns at most: their chains stay in L1
ROWS = 16  # at once: more are more streams than the prefetchers follow: n = 3000, f32: 1.3 ms, with 32 rows 2.8
NEAR = 4  # vectors of rows at once of a matrix in L2
SKEW = 8  # blocks of 32 bytes that a group of rows runs ahead of the next, where their lines would crowd in L1
# Bytes of A from which what comes next is asked for: of 3000x3000 f32 columns take 0.93 ms for 1.50, rows 0.89 for
# 1.36; of 1000x1000, which L3 holds, they would take 70 us for 56, and 145 for 108.
FAR = 32 << 20
KEPT = 8 * SEGMENT  # bytes of stack for a strided v
SHARED = 3 << 20  # bytes of A from which threads share the work: 30 us of it, less gains nothing

BY_ROWS, BY_COLUMNS, BY_SEGMENTS = 0, 1, 2
(NEXT, FORM, M, K, A, RSA, CSA, V, SV, PLANES, EACH, BLOCKS, JOBS, C, RSC, X, RSX, ALPHA, BETA) = range(0, 152, 8)
WORDS = 20
HEAD, HERE = 8 * WORDS, 8 * 2048  # bytes of stack for the words and for chains


def _rows(lanes, rows, a, rsa, v, rsv, k, t, groups, skew=0, ahead=False):
    """t[r] = chain over p of a[r*rsa + p] * v[r*rsv + p] for r < rows <= groups * lanes; one v for all if rsv is None.

    Group g runs g * skew blocks of steps ahead of the first. `ahead`: the rows that come next are asked for on the way.
    """
    builder, count = lanes.builder, lanes.count
    last = builder.sub(rows, I64(1))
    each = [
        [builder.select(builder.icmp_signed("<", I64(r), last), I64(r), last) for r in range(g, g + count)]
        for g in range(0, groups * count, count)
    ]

    def addresses(base, rs):
        return [[lanes.at(base, builder.mul(i, rs)) for i in group] for group in each]

    a_rows, v_rows = addresses(a, rsa), addresses(v, rsv) if rsv else None

    def advance(g, index, chain, left=None):
        """One chain further by the steps of a block, of those that are left."""
        at, inside = builder.mul(index, I64(count)), [None] * count
        if left is not None:
            inside = [builder.icmp_signed("<", I64(p), left) for p in range(count)]
        if rsv:
            factors = lanes.turned([lanes.at(base, at) for base in v_rows[g]], left)
        else:
            steps = [I64(p) if i is None else builder.select(i, I64(p), I64(0)) for p, i in enumerate(inside)]
            factors = [lanes.splat(builder.load(lanes.at(lanes.at(v, at), p), align=1)) for p in steps]
        for down, factor, there in zip(lanes.turned([lanes.at(base, at) for base in a_rows[g]], left), factors, inside):
            more = lanes.fma(down, factor, chain)
            chain = more if there is None else builder.select(there, more, chain)
        return chain

    def together(index, chains):
        for base in [base for group in a_rows for base in group] if ahead else []:
            following = lanes.at(base, builder.mul(rsa, I64(groups * count)))
            lanes.prefetch(lanes.at(following, builder.mul(index, I64(count))), level=2)
        return [advance(g, builder.add(index, I64(g * skew)), chain) for g, chain in enumerate(chains)]

    def alone(g, trips, first, chain):
        return loop(builder, I64(trips), [chain], lambda i, c: [advance(g, builder.add(i, first), c[0])])[0]

    blocks, left = builder.udiv(k, I64(count)), builder.urem(k, I64(count))
    chains, whole = [lanes.zero] * groups, builder.sub(blocks, I64((groups - 1) * skew))
    for g in range(groups if skew else 0):
        chains[g] = alone(g, g * skew, I64(0), chains[g])
    chains = loop(builder, whole, chains, together)
    for g in range(groups if skew else 0):
        chains[g] = alone(g, (groups - 1 - g) * skew, builder.add(whole, I64(g * skew)), chains[g])
    before = builder.block
    with builder.if_then(builder.icmp_signed(">", left, I64(0))):
        longer = [advance(g, blocks, chain, left) for g, chain in enumerate(chains)]
        inside = builder.block
    for g, (chain, more) in enumerate(zip(chains, longer)):
        chains[g] = builder.phi(lanes.type)
        chains[g].add_incoming(chain, before)
        chains[g].add_incoming(more, inside)
    for g, chain in enumerate(chains):
        lanes.store(chain, lanes.at(t, g * count), lanes.mask(builder.sub(rows, I64(g * count))))


def _near(lanes, a, rsa, v, k, t):
    """The same for exactly NEAR vectors of rows, which are in L2: their chains hide each other's latency.

    A turn takes a line of each row, all of it at once: lines that crowd each other out of L1 come from L2 once.
    """
    builder, count, line = lanes.builder, lanes.count, LINE // SIZE[lanes.dtype]

    def block(a, v, chains, left=None):
        """The chains further by the steps of a block, of those that are left."""
        there = [None if left is None else builder.icmp_signed("<", I64(p), left) for p in range(count)]
        steps = [I64(p) if inside is None else builder.select(inside, I64(p), I64(0)) for p, inside in enumerate(there)]
        factors = [lanes.splat(builder.load(lanes.at(v, p), align=1)) for p in steps]
        for g, chain in enumerate(chains):
            rows = [lanes.at(a, builder.mul(rsa, I64(g * count + r))) for r in range(count)]
            for down, factor, inside in zip(lanes.turned(rows, left), factors, there):
                more = lanes.fma(down, factor, chain)
                chain = more if inside is None else builder.select(inside, more, chain)
            chains[g] = chain
        return chains

    def turn(steps):
        def body(index, carried):
            a, v, chains = carried[0], carried[1], list(carried[2:])
            for _ in range(0, steps, count):
                chains = block(a, v, chains)
                a, v = lanes.at(a, count), lanes.at(v, count)
            return [a, v, *chains]

        return body

    carried, left = [a, v, *[lanes.zero] * NEAR], k
    for steps in dict.fromkeys((line, count)):
        carried = loop(builder, builder.udiv(left, I64(steps)), carried, turn(steps))
        left = builder.urem(left, I64(steps))
    a, v, *chains = carried
    some = builder.icmp_signed(">", left, I64(0))
    chains = replaced_if(builder, some, chains, lambda: block(a, v, list(chains), left))
    for g, chain in enumerate(chains):
        lanes.store(chain, lanes.at(t, g * count))


def _columns(lanes, m, a, down, v, sv, k, t, begun, ahead=False):
    """t[i] = chain over p < k of a[p*down + i] * v[p*sv] for i < m, from 0 if `begun` is 0 and from t[i] otherwise.

    `ahead`: the steps that come next are asked for.

    Where all columns start alike within a line, vectors are whole lines: those of eight columns crowd in L1 if they are
    4 KiB apart, and would be fetched twice.
    """
    builder, step, size = lanes.builder, I64(lanes.count), SIZE[lanes.dtype]
    head = builder.udiv(builder.and_(builder.neg(builder.ptrtoint(a, I64)), I64(LINE - 1)), I64(size))
    together = builder.icmp_signed("==", builder.and_(builder.mul(down, I64(size)), I64(LINE - 1)), I64(0))
    fits = builder.and_(together, builder.icmp_signed("<", head, m))
    head = builder.select(fits, head, I64(0))
    whole, first = builder.udiv(builder.sub(m, head), step), lanes.mask(head)
    end = builder.add(head, builder.mul(whole, step))
    last = lanes.mask(builder.sub(m, end))

    def turn(steps):
        def body(index, carried):
            a, v, begun = carried
            factors = [lanes.splat(builder.load(lanes.at(v, builder.mul(sv, I64(q))), align=1)) for q in range(steps)]
            rows = [lanes.at(a, builder.mul(down, I64(q))) for q in range(steps)]

            def piece(place, mask=None):
                kept = lanes.load(lanes.at(t, place), mask)
                chain = builder.select(builder.icmp_signed("==", begun, I64(0)), lanes.zero, kept)
                for row in rows if ahead and steps == STEPS and mask is None else []:
                    lanes.prefetch(lanes.at(lanes.at(row, builder.mul(down, I64(steps))), place), level=2)
                for factor, row in zip(factors, rows):
                    chain = lanes.fma(factor, lanes.load(lanes.at(row, place), mask), chain)
                lanes.store(chain, lanes.at(t, place), mask)

            def whole_piece(j, _):
                piece(builder.add(head, builder.mul(j, step)))
                return []

            with builder.if_then(builder.icmp_signed(">", head, I64(0))):
                piece(I64(0), first)
            loop(builder, whole, [], whole_piece)
            with builder.if_then(builder.icmp_signed("<", end, m)):
                piece(end, last)
            return [lanes.at(a, builder.mul(down, I64(steps))), lanes.at(v, builder.mul(sv, I64(steps))), I64(1)]

        return body

    with builder.if_then(builder.icmp_signed("==", k, I64(0))):
        turn(0)(None, [a, v, begun])
    carried, left = [a, v, begun], k
    for steps in (STEPS, STEPS // 2, 1):
        carried = loop(builder, builder.udiv(left, I64(steps)), carried, turn(steps))
        left = builder.urem(left, I64(steps))


def _define(module, dtype, lanes, way, kinds, name):
    if name in module.globals:
        return module.globals[name]
    kind = {"p": ELEMENT[dtype].as_pointer(), "i": I64}
    function = ir.Function(module, ir.FunctionType(VOID, [kind[k] for k in kinds]), name)
    function.linkage = "internal"
    function.attributes.add("noinline")
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    way(Lanes(builder, dtype, lanes), *function.args)
    builder.ret_void()
    return function


@jit(inline="always")
def few(tile):
    """Lanes of the vectors that rows are read in: 32 bytes at most, of which twice as many are shuffled in a cycle."""
    return min(tile.lanes, 32 // tile.itemsize)


def _emit(way, kinds, name, lanes):
    def emit(context, builder, signature, args):
        tile, pointer = signature.args[0].tile, ELEMENT[signature.args[0].tile.dtype].as_pointer()
        function = _define(builder.module, tile.dtype, lanes(tile), way, kinds, f"gemv_{name}_{tile.dtype}")
        builder.call(function, [builder.inttoptr(v, pointer) if k == "p" else v for k, v in zip(kinds, args[1:])])
        return context.get_dummy_value()

    return emit


def _transposing(name, at_once, skew=0, ahead=False):
    """An intrinsic for up to `at_once` rows, or as many as a vector has lanes."""

    def way(lanes, rows, a, rsa, v, k, t):
        _rows(lanes, rows, a, rsa, v, None, k, t, max(1, at_once // lanes.count), skew, ahead)

    emit = _emit(way, "ipipip", name, few.py_func)

    def rows(typing, tile, rows, a, rsa, v, k, t):
        return types.void(tile, *[types.int64] * 6), emit

    rows.__name__ = rows.__qualname__ = name
    return intrinsic(rows)


few_rows, many_rows = _transposing("few_rows", 1), _transposing("many_rows", ROWS)
skewed_rows, far_rows = _transposing("skewed_rows", ROWS, SKEW), _transposing("far_rows", ROWS, ahead=True)


@intrinsic
def near_rows(typing, tile, a, rsa, v, k, t):
    """NEAR vectors of rows."""
    return types.void(tile, *[types.int64] * 5), _emit(_near, "pipip", "near_rows", few.py_func)


def _segments(lanes, rows, a, v, k, t):
    _rows(lanes, rows, a, I64(SEGMENT), v, I64(SEGMENT), k, t, groups=1)


@intrinsic
def segments_of(typing, tile, rows, a, v, k, t):
    """Whole segments, each against its own part of v."""
    return types.void(tile, *[types.int64] * 5), _emit(_segments, "ippip", "segments", few.py_func)


@intrinsic
def columns_of(typing, tile, m, a, down, v, sv, k, t, begun):
    """Any number of outputs, neighbours in memory."""
    return types.void(tile, *[types.int64] * 8), _emit(_columns, "ipipiipi", "columns", lambda tile: tile.lanes)


@intrinsic
def far_columns(typing, tile, m, a, down, v, sv, k, t, begun):
    """The same of a matrix that comes from memory."""
    far = functools.partial(_columns, ahead=True)
    return types.void(tile, *[types.int64] * 8), _emit(far, "ipipiipi", "far_columns", lambda tile: tile.lanes)


@jit(inline="always")
def _one(tile, a, csa, v, sv, k):
    """A single chain, bound by the latency of its additions."""
    size, chain = tile.itemsize, peek(tile, a) * 0
    for p in range(k):
        chain = fma(peek(tile, a + p * csa * size), peek(tile, v + p * sv * size), chain)
    return chain


@jit(inline="always")
def share(form, m, workers, wide):
    """Outputs of a job: `wide` at most, and some jobs for each thread where there are several, which take them in turn:
    whoever has begun late or is slower does less."""
    if workers <= 1:
        return wide
    return min(wide, max(256, ((m + 4 * workers - 1) // (4 * workers) + 63) // 64 * 64)) if form == BY_COLUMNS else 64


@jit(inline="always")
def _crowded(tile, rsa, k):
    """Whether ROWS rows have more lines in a set of L1 than it has places: their starts are near multiples of 1 KiB."""
    apart = abs(rsa) * tile.itemsize % 1024
    return min(apart, 1024 - apart) < 16 and k * tile.itemsize >= 1024


@jit(inline="always")
def _job(tile, f, job, cache):
    """The chains of one block of outputs over one segment of k."""
    size, m, form = tile.itemsize, word(f + M), word(f + FORM)
    segment, i = job // word(f + BLOCKS), job % word(f + BLOCKS) * word(f + EACH)
    start, rsa, csa, sv = segment * SEGMENT, word(f + RSA), word(f + CSA), word(f + SV)
    k = min(SEGMENT, word(f + K) - start)
    a, v = word(f + A) + (i * rsa + start * csa) * size, word(f + V) + start * sv * size
    t, h = word(f + PLANES) + (segment * m + i) * size, min(word(f + EACH), m - i)
    if sv != 1 and m > 1 and form == BY_ROWS:
        kept = scratch(KEPT)
        for p in range(k):
            poke(tile, kept + p * size, peek(tile, v + p * sv * size))
        v = kept
    far = m * word(f + K) * size > FAR
    if form == BY_COLUMNS and far:
        far_columns(tile, h, a, csa, v, sv, k, t, 0)
    elif form == BY_COLUMNS:
        columns_of(tile, h, a, csa, v, sv, k, t, 0)
    elif form == BY_SEGMENTS:  # m is 1, and an output is a segment
        start = i * SEGMENT
        a, v, t = word(f + A) + start * size, word(f + V) + start * size, word(f + PLANES) + i * size
        whole = min(word(f + EACH), (word(f + K) - start) // SEGMENT)
        if whole > 0:
            segments_of(tile, whole, a, v, SEGMENT, t)
        left = word(f + K) - start - whole * SEGMENT
        if whole < word(f + EACH) and left > 0:
            done = whole * SEGMENT * size
            poke(tile, t + whole * size, _one(tile, a + done, 1, v + done, 1, left))
    else:
        crowded, r, near = _crowded(tile, rsa, k), 0, NEAR * few(tile)
        while h - r >= near and m * word(f + K) * size <= cache:
            near_rows(tile, a + r * rsa * size, rsa, v, k, t + r * size)
            r += near
        while r < h:
            ar, tr, left = a + r * rsa * size, t + r * size, h - r
            if left == 1:
                poke(tile, tr, _one(tile, ar, csa, v, sv if m == 1 else 1, k))
            elif left <= few(tile):
                few_rows(tile, left, ar, rsa, v, k, tr)
            elif crowded:
                skewed_rows(tile, min(ROWS, left), ar, rsa, v, k, tr)
            elif far:
                far_rows(tile, min(ROWS, left), ar, rsa, v, k, tr)
            else:
                many_rows(tile, min(ROWS, left), ar, rsa, v, k, tr)
            r += ROWS if left > few(tile) else left


@jit(inline="always")
def end(tile, f, i, h):
    """y = fma(beta, x, alpha * (the planes, added in order)), of h outputs from the i-th on."""
    size, m = tile.itemsize, word(f + M)
    planes, segments = word(f + PLANES), (word(f + K) + SEGMENT - 1) // SEGMENT
    if planes == word(f + C):
        return
    alpha, beta, c, x = peek(tile, f + ALPHA), peek(tile, f + BETA), word(f + C), word(f + X)
    rsc, rsx = word(f + RSC), word(f + RSX)
    for r in range(i, i + h):
        value = peek(tile, planes + r * size)
        for s in range(1, segments):
            value = value + peek(tile, planes + (s * m + r) * size)
        value = alpha * value
        if x != 0:
            value = fma(beta, peek(tile, x + r * rsx * size), value)
        poke(tile, c + r * rsc * size, value)


@functools.cache
def _work(dtype: str) -> int:
    """The jobs of one thread."""
    tile, cache = small(dtype), caches()[1]

    def work(f, task):
        job = take(pointer(f), NEXT)
        while job < word(f + JOBS):
            _job(tile, f, job, cache)
            job = take(pointer(f), NEXT)

    return compiled(work, "void(int64, int64)", f"gemv_work_{tile}")


@functools.cache
def ending(tile):
    """`end`, of all outputs, from Python: void(address of the words)."""

    def run(f):
        end(tile, f, 0, word(f + M))

    return entry(run, "void(int64)", f"gemv_end_{tile}")


@functools.cache
def _entry(dtype: str):
    """The call from Python, after all checks: plans the jobs, and does them where one thread is enough.

    `f` is the address of WORDS and a number for each output and segment, or 0 for the stack. DECLINED where A is
    contiguous along neither side. LARGE: a room is wanted, or, where it is there, the jobs are for threads.
    """
    tile, cache = small(dtype), caches()[1]
    size, element = tile.itemsize, getattr(np, dtype)

    def run(f, workers, out, x, a, b, beta, alpha):
        planes, head, here = f + 8 * WORDS, scratch(HEAD), scratch(HERE)
        m, n, k = shape(out, 0), shape(out, 1), shape(a, 1)
        turned = m == 1 and n > 1  # y' = b' a'
        mat, vec, along, down = (b, a, 1, 0) if turned else (a, b, 0, 1)
        m, rsa, csa, sv = n if turned else m, stride(mat, along), stride(mat, down), stride(vec, down if turned else 0)
        rsc, rsx, px = stride(out, along), 0, 0
        if turned:
            sv = stride(vec, 1)
        if x != 0 and beta != 0:
            own = ndim(x) - 2 + along
            rsx, px = stride(x, own) if own >= 0 and shape(x, own) > 1 else 0, data(x)
        if (rsa | csa | sv | rsc | rsx) & (size - 1) != 0 or descr(a) != descr(b):
            return DECLINED
        rsa, csa, sv = rsa // size, csa // size, sv // size
        segments = (k + SEGMENT - 1) // SEGMENT
        form = (
            BY_SEGMENTS
            if m == 1 and segments > 1 and csa == 1 and sv == 1
            else BY_COLUMNS
            if rsa == 1 and m > 1
            else BY_ROWS
        )
        if form == BY_ROWS and csa != 1 and m > 1:
            return DECLINED
        direct = segments == 1 and rsc == size and px == 0 and alpha == 1  # chains are results
        if f == 0 and (m * k * size > SHARED or (not direct and segments * m * size > HERE)):
            return LARGE
        if f == 0:
            f, planes = head, here
        if direct:
            planes = data(out)
        workers = workers if m * k * size > SHARED else 1
        each = few(tile) if form == BY_SEGMENTS else share(form, m, workers, WIDE)
        blocks = ((segments if form == BY_SEGMENTS else m) + each - 1) // each
        jobs = blocks if form == BY_SEGMENTS else blocks * segments
        set_word(f + NEXT, 0)
        set_word(f + FORM, form)
        set_word(f + M, m)
        set_word(f + K, k)
        set_word(f + A, data(mat))
        set_word(f + RSA, rsa)
        set_word(f + CSA, csa)
        set_word(f + V, data(vec))
        set_word(f + SV, sv)
        set_word(f + PLANES, planes)
        set_word(f + EACH, each)
        set_word(f + BLOCKS, blocks)
        set_word(f + JOBS, jobs)
        set_word(f + C, data(out))
        set_word(f + RSC, rsc // size)
        set_word(f + X, px)
        set_word(f + RSX, rsx // size)
        poke(tile, f + ALPHA, element(alpha))
        poke(tile, f + BETA, element(beta))
        if workers > 1:
            return LARGE
        for job in range(jobs):
            _job(tile, f, job, cache)
        end(tile, f, 0, m)
        return DONE

    return entry(run, "int64(int64, int64, int64, int64, int64, int64, float64, float64)", f"gemv_{tile}")


@functools.cache
def alone(dtype: str):
    """The whole call of one thread, (out, x, a, b, beta, alpha), as of `_entry` without a room."""
    return functools.partial(_entry(dtype), 0, 1)


def gemv(dtype: str, out, x, a, b, beta, alpha) -> bool:
    """out = alpha * a @ b + beta * x after all checks, where out has one row or one column; x is an id, or 0.

    False, with nothing written, where the matrix is contiguous along neither side.
    """
    arrays = id(out), x, id(a), id(b), beta, alpha
    status = alone(dtype)(*arrays)
    if status == LARGE:
        planes, workers = -(-a.shape[1] // SEGMENT), threads.count() if max(a.nbytes, b.nbytes) > SHARED else 1
        with room(8 * (WORDS + planes * out.size)) as f:  # words and elements of 8 bytes at most
            if _entry(dtype)(f, workers, *arrays) == LARGE:
                threads.launch(_work(dtype), f, workers)
                ending(small(dtype))(f)
    return status != DECLINED
