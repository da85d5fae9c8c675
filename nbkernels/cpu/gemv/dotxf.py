"""Chains of a matrix's rows against a vector, one an output: t[i] = sum over p of a[i, p] * v[p], in order.

rows      A is contiguous along k: a vector of chains is as many rows of A, transposed in registers on their way
segments  one output, contiguous: a vector of chains is as many segments of 4096 steps
"""

from __future__ import annotations

import functools

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from ...jit.address import fma, nothing, peek, poke
from ...jit.cache import jit
from ...jit.vector import ELEMENT, I64, LINE, SIZE, VOID, Lanes, loop, opaque, replaced_if
from ..gemm.blocking import SEGMENT, vector_registers

ROWS = 16  # at once: more are more streams than the prefetchers follow: n = 3000, f32: 1.3 ms, with 32 rows 2.8
# Vectors of rows at once in the caches: of 288x256 float32 in L2 4.8 us, with 2 5.7, with 4 5.3; of float64 7.7, with 2
# 10.6, with 3 the same, but sizes are rarely multiples of 12.
NEAR = {"float32": 3, "float64": 4 if vector_registers() == 32 else 3}
FLOATS, DOUBLES = NEAR.values()
# Bytes of a row that all groups turn before the next: 16 registers hold the factors of a piece, not those of a vector
# (Zen 3, 2026-11: 256x256 of float32 7.1 -> 6.6 us, 1000x1000 118 -> 112; of float64, with 3 vectors, 13.0 -> 11.9).
PART = LINE if vector_registers() == 32 else 16
# Bytes of a row up to which the next rows are asked for, of a matrix beyond L2: 9984x64 of float32 64 -> 53 us, but
# 960x1000 71 -> 84.
SHORT = 512
# With 16 registers, Zen 3, 2026-11: the next rows are asked for as one run of lines, as they lie where rows touch (GB/s
# by none, row by row, so: 9600x64 float32 23, 29, 31, float64 30, 35, 40; 9600x128 29, 35, 35 and 22, 32, 37). Long
# rows that come from memory are not, and those of float32 go by PAIR vectors (3072x3008, by 3, 2, 1, GB/s: 15, 19, 18;
# ROWS that ask for the next 16), those of float64 as near ones (3000x3000 by two threads 1.6-1.9 ms, by 2 vectors 2.2).
BY_LINES = vector_registers() == 16
PAIR = 2
# Rows longer than SHORT of a matrix beyond L2, with 16 registers: LONG vectors at once, which ask for their own line
# after the next (Zen 3, 2026-11, el/ns, by 3 vectors that do not, by 3, by LONG: 960x1000 f32 8.9, 9.2, 9.5, f64 5.8,
# 5.9, 6.1; 64x3616 f32 11.5, 12.8, 12.9; on a quiet core f32 11.3, 12.2, 13.0). In L2 that gains nothing.
LONG = 4
BEHIND = 16  # bytes of a piece
# Near rows at once, times the bytes that they begin near multiples of, from which a set of L1 has too few places for
# them: with 16 registers those of float32 2 KiB apart, or of float64 4, are not near ones in L2 either (Zen 3, 2026-11,
# us, as near ones and so: f32 100x512 10.3 and 7.9, 64x1024 29 and 11).
THRONG = 48 << 10
SKEW = 8  # blocks of 32 bytes that a group of rows runs ahead of the next, where their lines would crowd in L1


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


def _near(lanes, a, rsa, v, k, t, near=None, ahead=False, onward=False):
    """The same for exactly `near` vectors of rows, or NEAR: their chains hide each other's latency.

    A turn takes a line of each row, all of it at once: lines that crowd each other out of L1 come from L2 once. A row's
    address is its group's, which LLVM cannot see through, and a multiple of the step: with a pointer for each row,
    most of which wait on the stack, a number of float32 takes 0.95 instructions, so 0.71. `ahead`: the rows that come
    next are asked for; `onward`: the line after the next of each. Where a vector is two pieces, rows of the upper one
    are read from before their start: rows have to be BEHIND bytes apart.
    """
    builder, count, size, near = lanes.builder, lanes.count, SIZE[lanes.dtype], near or NEAR[lanes.dtype]
    line, step = LINE // size, builder.mul(rsa, I64(size))
    part = min(count, PART // size)
    odd = {m: opaque(builder, builder.mul(step, I64(m))) for m in range(1, count, 2)}
    following = builder.mul(step, I64(near * count))

    def row(group, r, place):
        """The address of element `place` of a group's row: of one that LLVM knows by its group alone."""
        shift = (r & -r).bit_length() - 1
        at = builder.add(group, builder.shl(odd[r >> shift], I64(shift))) if r else group
        return builder.inttoptr(builder.add(at, I64(place * size)), lanes.element.as_pointer())

    def block(groups, v, chains, first=0, left=None):
        """The chains further by the steps of a block from `first` on, of those that are left."""
        there = [None if left is None else builder.icmp_signed("<", I64(p), left) for p in range(count)]
        steps = [I64(p) if inside is None else builder.select(inside, I64(p), I64(0)) for p, inside in enumerate(there)]
        for start in range(0, count, part):
            some = slice(start, start + part)
            factors = [lanes.splat(builder.load(lanes.at(lanes.at(v, first), p), align=1)) for p in steps[some]]
            for g, chain in enumerate(chains):
                group = groups[g] = opaque(builder, groups[g])  # in its place, without a copy
                rows = [row(group, r, first) for r in range(count)]
                for r in range((first + start) * count // line, (first + start + part) * count // line):
                    if onward and left is None:
                        lanes.prefetch(row(group, r, 2 * line))
                behind = left is None and count * size == 2 * BEHIND
                downs = lanes.turned(rows, left) if part == count else lanes.across(rows, start, left, behind)
                for down, factor, inside in zip(downs, factors, there[some]):
                    more = lanes.fma(down, factor, chain)
                    chain = more if inside is None else builder.select(inside, more, chain)
                chains[g] = chain
        return chains

    def ask(index, first, groups):
        """For a line of each of the next rows; or for as many as they have, one turn's after another's."""
        lines, next_line = near * count, builder.add(start, following)
        for i in range(first * lines // line, (first + count) * lines // line) if BY_LINES else []:
            at = builder.add(next_line, builder.add(builder.mul(index, I64(lines * LINE)), I64(i * LINE)))
            lanes.prefetch(builder.inttoptr(at, lanes.element.as_pointer()))
        for group in groups if not BY_LINES and first == 0 else []:
            next_group = opaque(builder, builder.add(group, following))
            for r in range(count):
                lanes.prefetch(row(next_group, r, 0))

    def turn(steps):
        def body(index, carried):
            v, groups, chains = carried[0], carried[1 : 1 + near], list(carried[1 + near :])
            for first in range(0, steps, count):
                if ahead and steps == line:
                    ask(index, first, groups)
                chains = block(groups, v, chains, first)
            return [lanes.at(v, steps), *(builder.add(group, I64(steps * size)) for group in groups), *chains]

        return body

    start = builder.ptrtoint(a, I64)
    groups = [opaque(builder, builder.add(start, builder.mul(step, I64(g * count)))) for g in range(near)]
    carried, left = [v, *groups, *[lanes.zero] * near], k
    for steps in dict.fromkeys((line, count)):
        carried = loop(builder, builder.udiv(left, I64(steps)), carried, turn(steps))
        left = builder.urem(left, I64(steps))
    v, groups, chains = carried[0], carried[1 : 1 + near], carried[1 + near :]
    some = builder.icmp_signed(">", left, I64(0))
    chains = replaced_if(builder, some, chains, lambda: block(groups, v, list(chains), 0, left))
    for g, chain in enumerate(chains):
        lanes.store(chain, lanes.at(t, g * count))


def _define(module, dtype, lanes, way, kinds, name):
    if name in module.globals:
        return module.globals[name]
    kind = {"p": ELEMENT[dtype].as_pointer(), "i": I64}
    function = ir.Function(module, ir.FunctionType(VOID, [kind[k] for k in kinds]), name)
    function.linkage = "linkonce_odr"
    function.attributes.add("noinline")
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    way(Lanes(builder, dtype, lanes), *function.args)
    builder.ret_void()
    return function


@jit(forceinline=True)
def few(tile):
    """Lanes of the vectors that rows are read in: 32 bytes at most, of which twice as many are shuffled in a cycle."""
    return min(tile.lanes, 32 // tile.itemsize)


def emitted(way, kinds, name, lanes):
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

    emit = emitted(way, "ipipip", name, few.py_func)

    def rows(typing, tile, rows, a, rsa, v, k, t):
        return types.void(tile, *[types.int64] * 6), emit

    rows.__name__ = rows.__qualname__ = name
    return intrinsic(rows)


few_rows, many_rows = _transposing("few_rows", 1), _transposing("many_rows", ROWS)
skewed_rows, far_rows = _transposing("skewed_rows", ROWS, SKEW), _transposing("far_rows", ROWS, ahead=True)


@intrinsic
def near_rows(typing, tile, a, rsa, v, k, t):
    """NEAR vectors of rows."""
    return types.void(tile, *[types.int64] * 5), emitted(_near, "pipip", "near_rows", few.py_func)


@intrinsic
def pair_rows(typing, tile, a, rsa, v, k, t):
    """PAIR vectors of rows."""
    pair = functools.partial(_near, near=PAIR)
    return types.void(tile, *[types.int64] * 5), emitted(pair, "pipip", "pair_rows", few.py_func)


@intrinsic
def long_rows(typing, tile, a, rsa, v, k, t):
    """LONG vectors of rows, which ask for their next lines."""
    long = functools.partial(_near, near=LONG, onward=True)
    return types.void(tile, *[types.int64] * 5), emitted(long, "pipip", "long_rows", few.py_func)


@intrinsic
def short_rows(typing, tile, a, rsa, v, k, t):
    """NEAR vectors of rows, which ask for those that come next."""
    ahead = functools.partial(_near, ahead=True)
    return types.void(tile, *[types.int64] * 5), emitted(ahead, "pipip", "short_rows", few.py_func)


def _segments(lanes, rows, a, v, k, t):
    _rows(lanes, rows, a, I64(SEGMENT), v, I64(SEGMENT), k, t, groups=1)


@intrinsic
def segments_of(typing, tile, rows, a, v, k, t):
    """Whole segments, each against its own part of v."""
    return types.void(tile, *[types.int64] * 5), emitted(_segments, "ippip", "segments", few.py_func)


@jit(forceinline=True)
def one(tile, a, csa, v, sv, k):
    """A single chain, bound by the latency of its additions."""
    size, chain = tile.itemsize, nothing(tile)
    for p in range(k):
        chain = fma(peek(tile, a + p * csa * size), peek(tile, v + p * sv * size), chain)
    return chain


@jit(forceinline=True)
def _crowded(tile, rsa, k, every=1024):
    """Whether rows start near multiples of so many bytes: of 1 KiB, ROWS have more lines in a set of L1 than it has
    places."""
    apart = abs(rsa) * tile.itemsize % every
    return min(apart, every - apart) < 16 and k * tile.itemsize >= 1024


@jit(forceinline=True)
def is_near(tile, held, cache, rsa, k):
    """Whether rows of a matrix of so many bytes are read as in L2 of `cache` bytes. With 16 registers those of half of
    it are; more come faster if they are asked for, unless they crowd (Zen 3, 2026-11, us, near and so: f32 500x200 14.5
    and 12.9, 1500x64 14.3 and 12.2, f64 1000x50 13.4 and 11.8; 256x256, which crowds, 14.7 and 21.0)."""
    return held <= (cache // 2 if BY_LINES and not _crowded(tile, rsa, k) else cache)


@jit(forceinline=True)
def rows_of(tile, h, a, rsa, v, k, t, near, far):
    """Any number of rows; `near`: of a matrix in L2; `far`: of one that comes from memory."""
    size, crowded, r = tile.itemsize, _crowded(tile, rsa, k), 0
    several, pair, long = (FLOATS if size == 4 else DOUBLES) * few(tile), PAIR * few(tile), LONG * few(tile)
    apart = not BY_LINES or rsa * size >= BEHIND
    near = near and not (BY_LINES and _crowded(tile, rsa, k, THRONG // several))
    while BY_LINES and apart and not (near or crowded or far) and k * size > SHORT and h - r >= long:
        long_rows(tile, a + r * rsa * size, rsa, v, k, t + r * size)
        r += long
    far = far and not (BY_LINES and (size == 8 or k * size <= SHORT))
    wanted = apart and (near or not (crowded or far))
    while wanted and h - r >= several and not (BY_LINES and several < h - r <= 2 * pair):
        if near or k * size > SHORT:
            near_rows(tile, a + r * rsa * size, rsa, v, k, t + r * size)
        else:
            short_rows(tile, a + r * rsa * size, rsa, v, k, t + r * size)
        r += several
    while BY_LINES and apart and (near or not crowded) and h - r >= pair:
        pair_rows(tile, a + r * rsa * size, rsa, v, k, t + r * size)
        r += pair
    while r < h:
        ar, tr, left = a + r * rsa * size, t + r * size, h - r
        if left == 1:
            poke(tile, tr, one(tile, ar, 1, v, 1, k))
        elif left <= few(tile):
            few_rows(tile, left, ar, rsa, v, k, tr)
        elif crowded:
            skewed_rows(tile, min(ROWS, left), ar, rsa, v, k, tr)
        elif far:
            far_rows(tile, min(ROWS, left), ar, rsa, v, k, tr)
        else:
            many_rows(tile, min(ROWS, left), ar, rsa, v, k, tr)
        r += ROWS if left > few(tile) else left
