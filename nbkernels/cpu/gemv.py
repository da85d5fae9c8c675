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

from ..jit.address import fma, peek, poke, set_word, word
from ..jit.cache import compiled, entry, jit
from ..jit.ndarray import data, descr, ndim, shape, stride
from ..jit.vector import ELEMENT, I64, VOID, Lanes, loop
from . import threads
from .tiles import SEGMENT, small

STEPS = 8  # steps of k that a column's chain takes in at once: eight loads of A for a load and a store of the chain
WIDE = 4096  # outputs of a job of columns at most: their chains stay in L1
SHARED = 1 << 18  # elements of A from which threads share the work: 10 us of it

DECLINED, DONE, LARGE = 0, 1, 2  # what the entry answers
ROWS, COLUMNS, SEGMENTS = 0, 1, 2
(FORM, M, K, A, RSA, CSA, V, SV, PLANES, EACH, BLOCKS, JOBS, TASKS, C, RSC, X, RSX, ALPHA, BETA) = range(0, 152, 8)
WORDS = 20


def _rows(lanes, rows, a, rsa, v, rsv, sv, k, t, groups, shared):
    """t[r] = chain over p of a[r*rsa + p] * v[r*rsv + p*sv] for r < rows <= groups * lanes; shared: rsv 0, else sv 1.

    The groups' chains are independent: while one waits for its additions the others' squares are transposed.
    """
    builder, step, last = lanes.builder, I64(lanes.count), lanes.builder.sub(rows, I64(1))
    each = [
        [builder.select(builder.icmp_signed("<", I64(r), last), I64(r), last) for r in range(g, g + lanes.count)]
        for g in range(0, groups * lanes.count, lanes.count)
    ]
    a_rows, v_rows = ([[builder.mul(index, rs) for index in group] for group in each] for rs in (rsa, rsv))

    def turned(base, offsets, mask):
        return lanes.transpose([lanes.load(lanes.at(base, offset), mask) for offset in offsets])

    def block(a, v, chains, left=None):
        mask, inside, factors = None if left is None else lanes.mask(left), [None] * lanes.count, None
        if left is not None:
            inside = [builder.icmp_signed("<", I64(q), left) for q in range(lanes.count)]
        if shared:
            places = [I64(q) if left is None else builder.select(i, I64(q), I64(0)) for q, i in enumerate(inside)]
            factors = [lanes.splat(builder.load(lanes.at(v, builder.mul(p, sv)), align=1)) for p in places]
        longer = []
        for chain, a_group, v_group in zip(chains, a_rows, v_rows):
            others = factors or turned(v, v_group, mask)
            for down, other, there in zip(turned(a, a_group, mask), others, inside):
                more = lanes.fma(down, other, chain)
                chain = more if there is None else builder.select(there, more, chain)
            longer.append(chain)
        return longer

    def body(index, carried):
        a, v, *chains = carried
        return [lanes.at(a, step), lanes.at(v, builder.mul(step, sv)), *block(a, v, chains)]

    a, v, *chains = loop(builder, builder.udiv(k, step), [a, v, *[lanes.zero] * groups], body)
    left, before = builder.urem(k, step), builder.block
    with builder.if_then(builder.icmp_signed(">", left, I64(0))):
        longer, inside = block(a, v, chains, left), builder.block
    for g, (chain, more) in enumerate(zip(chains, longer)):
        whole = builder.phi(lanes.type)
        whole.add_incoming(chain, before)
        whole.add_incoming(more, inside)
        chains[g] = whole
    for g, chain in enumerate(chains):
        lanes.store(chain, lanes.at(t, g * lanes.count), lanes.mask(builder.sub(rows, I64(g * lanes.count))))


def _columns(lanes, m, a, down, v, sv, k, t):
    """t[i] = chain over p of a[p*down + i] * v[p*sv] for i < m."""
    builder, step = lanes.builder, I64(lanes.count)
    whole, left = builder.udiv(m, step), lanes.mask(builder.urem(m, step))

    def turn(steps):
        def body(index, carried):
            a, v, begun = carried
            factors = [lanes.splat(builder.load(lanes.at(v, builder.mul(sv, I64(q))), align=1)) for q in range(steps)]
            rows = [lanes.at(a, builder.mul(down, I64(q))) for q in range(steps)]

            def piece(place, mask=None):
                kept = lanes.load(lanes.at(t, place), mask)
                chain = builder.select(builder.icmp_signed("==", begun, I64(0)), lanes.zero, kept)
                for factor, row in zip(factors, rows):
                    chain = lanes.fma(factor, lanes.load(lanes.at(row, place), mask), chain)
                lanes.store(chain, lanes.at(t, place), mask)

            def whole_piece(j, _):
                piece(builder.mul(j, step))
                return []

            loop(builder, whole, [], whole_piece)
            with builder.if_then(builder.icmp_signed("<", builder.mul(whole, step), m)):
                piece(builder.mul(whole, step), left)
            return [lanes.at(a, builder.mul(down, I64(steps))), lanes.at(v, builder.mul(sv, I64(steps))), I64(1)]

        return body

    carried = loop(builder, builder.udiv(k, I64(STEPS)), [a, v, I64(0)], turn(STEPS))
    loop(builder, builder.urem(k, I64(STEPS)), carried, turn(1))


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


def _emit(way, kinds, name, fewer=1):
    def emit(context, builder, signature, args):
        tile, pointer = signature.args[0].tile, ELEMENT[signature.args[0].tile.dtype].as_pointer()
        lanes = max(1, tile.lanes // fewer)
        function = _define(builder.module, tile.dtype, lanes, way, kinds, f"gemv_{name}_{tile.dtype}")
        builder.call(function, [builder.inttoptr(v, pointer) if k == "p" else v for k, v in zip(kinds, args[1:])])
        return context.get_dummy_value()

    return emit


def _transposing(name, groups, shared):
    """An intrinsic for up to groups * tile.lanes / 2 rows. Half vectors: twice as many are shuffled in a cycle."""
    emit = _emit(functools.partial(_rows, groups=groups, shared=shared), "ipipiiip", name, fewer=2)

    def rows(typing, tile, rows, a, rsa, v, rsv, sv, k, t):
        return types.void(tile, *[types.int64] * 8), emit

    rows.__name__ = rows.__qualname__ = name
    return intrinsic(rows)


many_rows, few_rows = _transposing("many_rows", 4, True), _transposing("few_rows", 1, True)
segments_of = _transposing("segments_of", 2, False)  # each row against a vector of its own


@intrinsic
def columns_of(typing, tile, m, a, down, v, sv, k, t):
    """Any number of outputs, neighbours in memory."""
    return types.void(tile, *[types.int64] * 7), _emit(_columns, "ipipiip", "columns")


@jit(inline="always")
def _one(tile, a, csa, v, sv, k):
    """A single chain, bound by the latency of its additions."""
    size, chain = tile.itemsize, peek(tile, a) * 0
    for p in range(k):
        chain = fma(peek(tile, a + p * csa * size), peek(tile, v + p * sv * size), chain)
    return chain


@jit(inline="always")
def _job(tile, f, job):
    """The chains of one block of outputs over one segment of k."""
    size, m, form = tile.itemsize, word(f + M), word(f + FORM)
    segment, i = job // word(f + BLOCKS), job % word(f + BLOCKS) * word(f + EACH)
    start, rsa, csa, sv = segment * SEGMENT, word(f + RSA), word(f + CSA), word(f + SV)
    k = min(SEGMENT, word(f + K) - start)
    a, v = word(f + A) + (i * rsa + start * csa) * size, word(f + V) + start * sv * size
    t, h = word(f + PLANES) + (segment * m + i) * size, min(word(f + EACH), m - i)
    if form == COLUMNS:
        columns_of(tile, h, a, csa, v, sv, k, t)
    elif form == SEGMENTS:  # m is 1, and an output is a segment
        start = i * SEGMENT
        a, v, t = word(f + A) + start * size, word(f + V) + start * size, word(f + PLANES) + i * size
        whole = min(word(f + EACH), (word(f + K) - start) // SEGMENT)
        if whole > 0:
            segments_of(tile, whole, a, SEGMENT, v, SEGMENT, 1, SEGMENT, t)
        left = word(f + K) - start - whole * SEGMENT
        if whole < word(f + EACH) and left > 0:
            done = whole * SEGMENT * size
            poke(tile, t + whole * size, _one(tile, a + done, 1, v + done, 1, left))
    else:
        r = 0
        while r < h:
            ar, tr, left = a + r * rsa * size, t + r * size, h - r
            if left == 1:
                poke(tile, tr, _one(tile, ar, csa, v, sv, k))
            elif left <= tile.lanes // 2:
                few_rows(tile, left, ar, rsa, v, 0, sv, k, tr)
            else:
                many_rows(tile, min(2 * tile.lanes, left), ar, rsa, v, 0, sv, k, tr)
            r += 2 * tile.lanes if left > tile.lanes // 2 else left


@jit(inline="always")
def _end(tile, f):
    """y = fma(beta, x, alpha * (the planes, added in order))."""
    size, m = tile.itemsize, word(f + M)
    planes, segments = word(f + PLANES), (word(f + K) + SEGMENT - 1) // SEGMENT
    alpha, beta, c, x = peek(tile, f + ALPHA), peek(tile, f + BETA), word(f + C), word(f + X)
    rsc, rsx = word(f + RSC), word(f + RSX)
    for i in range(m):
        value = peek(tile, planes + i * size)
        for s in range(1, segments):
            value = value + peek(tile, planes + (s * m + i) * size)
        value = alpha * value
        if x != 0:
            value = fma(beta, peek(tile, x + i * rsx * size), value)
        poke(tile, c + i * rsc * size, value)


@functools.cache
def _work(dtype: str) -> int:
    """A task is an equal share of the jobs."""
    tile = small(dtype)

    def work(f, task):
        jobs, tasks = word(f + JOBS), word(f + TASKS)
        for job in range(jobs * task // tasks, jobs * (task + 1) // tasks):
            _job(tile, f, job)

    return compiled(work, "void(int64, int64)", f"gemv_work_{tile}")


@functools.cache
def _ending(dtype: str):
    tile = small(dtype)

    def run(f):
        _end(tile, f)

    return entry(run, "void(int64)", f"gemv_end_{tile}")


@functools.cache
def _entry(dtype: str):
    """The call from Python, after all checks: plans the jobs, and does them where one thread is enough."""
    tile = small(dtype)
    size, element = tile.itemsize, getattr(np, dtype)

    def run(room, workers, out, x, a, b, beta, alpha):
        f, planes = data(room), data(room) + 8 * WORDS
        m, n, k = shape(out, 0), shape(out, 1), shape(a, 1)
        turned = m == 1 and n > 1  # y' = b' a'
        mat, vec, along, down = (b, a, 1, 0) if turned else (a, b, 0, 1)
        m, rsa, csa, sv = n if turned else m, stride(mat, along), stride(mat, down), stride(vec, down if turned else 0)
        rsc, rsx, px = stride(out, along), 0, 0
        if turned:
            sv = stride(vec, 1)
        if x != 0:
            own = ndim(x) - 2 + along
            rsx, px = stride(x, own) if own >= 0 and shape(x, own) > 1 else 0, data(x)
        if (rsa | csa | sv | rsc | rsx) & (size - 1) != 0 or descr(a) != descr(b):
            return DECLINED
        rsa, csa, sv = rsa // size, csa // size, sv // size
        segments = (k + SEGMENT - 1) // SEGMENT
        form = SEGMENTS if m == 1 and segments > 1 and csa == 1 and sv == 1 else COLUMNS if rsa == 1 and m > 1 else ROWS
        if form == ROWS and csa != 1 and m > 1:
            return DECLINED
        workers = workers if m * k > SHARED else 1
        each = (((m + workers - 1) // workers + 2 * tile.lanes - 1) // (2 * tile.lanes)) * 2 * tile.lanes
        each = tile.lanes if form == SEGMENTS else min(each, WIDE)
        blocks = ((segments if form == SEGMENTS else m) + each - 1) // each
        jobs = blocks if form == SEGMENTS else blocks * segments
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
        set_word(f + TASKS, workers)
        set_word(f + C, data(out))
        set_word(f + RSC, rsc // size)
        set_word(f + X, px)
        set_word(f + RSX, rsx // size)
        poke(tile, f + ALPHA, element(alpha))
        poke(tile, f + BETA, element(beta))
        if workers > 1:
            return LARGE
        for job in range(jobs):
            _job(tile, f, job)
        _end(tile, f)
        return DONE

    return entry(run, "int64(int64, int64, int64, int64, int64, int64, float64, float64)", f"gemv_{tile}")


def gemv(dtype: str, out, x, a, b, beta, alpha) -> bool:
    """out = alpha * a @ b + beta * x after all checks, where out has one row or one column; x is an id, or 0.

    False, with nothing written, where the matrix is contiguous along neither side.
    """
    planes = (a.shape[1] + SEGMENT - 1) // SEGMENT
    room = np.empty(WORDS + planes * out.size)  # words and elements of 8 bytes at most
    workers = threads.count() if a.size + b.size > SHARED else 1
    status = _entry(dtype)(id(room), workers, id(out), x, id(a), id(b), beta, alpha)
    if status == LARGE:
        threads.launch(_work(dtype), room.ctypes.data, workers)
        _ending(dtype)(room.ctypes.data)
    return status != DECLINED
