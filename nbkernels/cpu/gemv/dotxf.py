"""Chains of a matrix's rows against a vector, one an output: t[i] = sum over p of a[i, p] * v[p], in order.

rows      A is contiguous along k: a vector of chains is as many rows of A, transposed in registers on their way
pairs     one output of each row and a vector of its own: segments of 4096 steps, or products of a stack

A complex number is two steps of the loops, its parts, which transposed are planes of real and of imaginary ones.
"""

from __future__ import annotations

from ...jit.compile.lazy import jit
from ...jit.ir.chain import Chain, in_groups
from ...jit.ir.emit import emitted
from ...jit.ir.vector import I64, LINE, Lanes, loop, opaque, replaced_if
from ..gemm.blocking import FEW_REGISTERS, WAY

ROWS = 16  # at once: more are more streams than the prefetchers follow: n = 3000, f32: 1.3 ms, with 32 rows 2.8
NEAR = {4: 3, 8: 3 if FEW_REGISTERS else 4}  # vectors of rows at once in the caches, by bytes of a word
FOUR, EIGHT = NEAR.values()
# Bytes of a row that all groups turn before the next: 16 registers hold the factors of a piece, not those of a vector.
PART = 16 if FEW_REGISTERS else LINE
# Bytes of a row up to which the next rows of a matrix beyond L2 are prefetched, with 16 registers as one run of lines:
# 9984x64 of float32 64 us, so 53.
SHORT = 512
# Longer rows beyond L2, with 16 registers: LONG vectors at once, each of which prefetches its line after the next. Rows
# from memory are not prefetched, and go, of float32, by PAIR; so do those that crowd each other, unless they are more
# than the PLACES of one set.
LONG, PAIR = 4, 2
PLACES = 8
BEHIND = 16  # bytes of a piece
SKEW = 8  # blocks of 32 bytes that a group of rows runs ahead of the next, where their lines would crowd in L1


@jit(forceinline=True)
def few(tile):
    """Lanes of the vectors that rows are read in: 32 bytes at most, of which twice as many are shuffled in a cycle."""
    return min(tile.lanes, 32 // tile.itemsize)


def _there(lanes, left):
    """Of the steps of a block: whether each is one of those that are left, and its place if it is, else 0."""
    if left is None:
        return [None] * lanes.count, [I64(p) for p in range(lanes.count)]
    inside = [lanes.builder.icmp_signed("<", I64(p), left) for p in range(lanes.count)]
    return inside, [lanes.builder.select(i, I64(p), I64(0)) for p, i in enumerate(inside)]


def _further(ops, chain, downs, factors, inside):
    """The chain some steps further, of those that are inside."""
    planes = ops.kind.planes
    for p in range(0, len(downs), planes):
        a, b = ops.finished("a", downs[p : p + planes]), ops.finished("b", factors[p : p + planes])
        more, there = ops.step(a, b, chain), inside[p]
        chain = more if there is None else [ops.builder.select(there, *each) for each in zip(more, chain)]
    return chain


def _rows(builder, tile, q, at_once=1, skew=0, ahead=False):
    """t[r] = chain over p of a[r*rsa + p] * v[p] for r < rows <= `at_once`, or as many as a vector has lanes; of a
    v for each row, rsv from the one before, where that is given. Words are counted, of which a complex number has two.

    Group g runs g * skew blocks of steps ahead of the first. `ahead`: the rows that come next are asked for on the way.
    """
    lanes = Lanes(builder, tile.dtype, few.py_func(tile))
    ops, count, last = Chain(builder, tile.kind, lanes.count), lanes.count, builder.sub(q.rows, I64(1))
    rsa, apart = q.rsa, vars(q).get("rsv")
    groups = max(1, at_once // count)
    each = [builder.select(builder.icmp_signed("<", I64(r), last), I64(r), last) for r in range(groups * count)]

    def addresses(base, step):
        found = [lanes.at(base, builder.mul(i, step)) for i in each]
        return [found[g : g + count] for g in range(0, groups * count, count)]

    a_rows, v_rows = addresses(q.a, rsa), addresses(q.v, apart) if apart else None

    def advance(g, index, chain, left=None):
        """One chain further by the steps of a block, of those that are left."""
        at, (inside, steps) = builder.mul(index, I64(count)), _there(lanes, left)
        if apart:
            factors = lanes.turned([lanes.at(base, at) for base in v_rows[g]], left)
        else:
            factors = [lanes.broadcast(lanes.at(lanes.at(q.v, at), p)) for p in steps]
        return _further(ops, chain, lanes.turned([lanes.at(base, at) for base in a_rows[g]], left), factors, inside)

    def each_group(chains, further):
        return [plane for g, chain in enumerate(in_groups(chains, ops.kind.planes)) for plane in further(g, chain)]

    def together(index, chains):
        for base in [base for group in a_rows for base in group] if ahead else []:
            following = lanes.at(base, builder.mul(rsa, I64(groups * count)))
            lanes.prefetch(lanes.at(following, builder.mul(index, I64(count))), level=2)
        return each_group(chains, lambda g, chain: advance(g, builder.add(index, I64(g * skew)), chain))

    def alone(g, trips, first, chain):
        return loop(builder, I64(trips), chain, lambda i, c: advance(g, builder.add(i, first), c))

    blocks, left = builder.udiv(q.k, I64(count)), builder.urem(q.k, I64(count))
    chains, whole = ops.zero * groups, builder.sub(blocks, I64((groups - 1) * skew))
    if skew:
        chains = each_group(chains, lambda g, chain: alone(g, g * skew, I64(0), chain))
    chains = loop(builder, whole, chains, together)
    if skew:
        chains = each_group(
            chains, lambda g, chain: alone(g, (groups - 1 - g) * skew, builder.add(whole, I64(g * skew)), chain)
        )

    def rest():
        return each_group(chains, lambda g, chain: advance(g, blocks, chain, left))

    chains = replaced_if(builder, builder.icmp_signed(">", left, I64(0)), chains, rest)
    for g, chain in enumerate(in_groups(chains, ops.kind.planes)):
        ops.store(chain, lanes.at(q.t, g * count), ops.mask(builder.sub(q.rows, I64(g * count))))


def _near(builder, tile, q, near=None, ahead=False, onward=False):
    """t[r] = sum over p of a[r*rsa + p] * v[p], in order, for exactly `near` vectors of rows, by default NEAR.

    The vectors' accumulators hide each other's latency. An iteration reads a line of each row, all of it at once: lines
    that crowd each other out of L1 come from L2 once. A row's address is its group's, which LLVM cannot see through,
    and a multiple of the stride: a pointer for each row would be spilled. `ahead`: the next rows are prefetched;
    `onward`: each row's line after the next. Where a vector is two pieces, the upper one reads from before its rows:
    these have to be BEHIND bytes apart.
    """
    lanes, size, near = Lanes(builder, tile.dtype, few.py_func(tile)), tile.itemsize, near or NEAR[tile.itemsize]
    ops = Chain(builder, tile.kind, lanes.count)
    count, line, step = lanes.count, LINE // size, builder.mul(q.rsa, I64(size))
    part, planes = min(count, PART // size), tile.planes
    odd = {m: opaque(builder, builder.mul(step, I64(m))) for m in range(1, count, 2)}
    following = builder.mul(step, I64(near * count))

    def row(group, r, place):
        """The address of element `place` of a group's row: of one that LLVM knows by its group alone."""
        shift = (r & -r).bit_length() - 1
        at = builder.add(group, builder.shl(odd[r >> shift], I64(shift))) if r else group
        return builder.inttoptr(builder.add(at, I64(place * size)), lanes.element.as_pointer())

    def block(groups, v, chains, first=0, left=None):
        """The chains further by the steps of a block from `first` on, of those that are left."""
        inside, steps = _there(lanes, left)
        for start in range(0, count, part):
            some = slice(start, start + part)
            factors = [lanes.broadcast(lanes.at(lanes.at(v, first), p)) for p in steps[some]]
            for g, chain in enumerate(in_groups(chains, ops.kind.planes)):
                group = groups[g] = opaque(builder, groups[g])  # in its place, without a copy
                rows = [row(group, r, first) for r in range(count)]
                here = range((first + start) * count // line, (first + start + part) * count // line)
                for r in here if onward and left is None else []:
                    lanes.prefetch(row(group, r, 2 * line))
                behind = left is None and count * size == 2 * BEHIND
                downs = lanes.turned(rows, left) if part == count else lanes.across(rows, start, left, behind)
                chains[g * planes : (g + 1) * planes] = _further(ops, chain, downs, factors, inside[some])
        return chains

    def ask(index, first, groups):
        """For a line of each of the next rows; or for as many as they have, one turn's after another's."""
        lines, next_line = near * count, builder.add(start, following)
        for i in range(first * lines // line, (first + count) * lines // line) if FEW_REGISTERS else []:
            at = builder.add(next_line, builder.add(builder.mul(index, I64(lines * LINE)), I64(i * LINE)))
            lanes.prefetch(builder.inttoptr(at, lanes.element.as_pointer()))
        for group in groups if not FEW_REGISTERS and first == 0 else []:
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

    start = builder.ptrtoint(q.a, I64)
    groups = [opaque(builder, builder.add(start, builder.mul(step, I64(g * count)))) for g in range(near)]
    carried, left = [q.v, *groups, *ops.zero * near], q.k
    for steps in dict.fromkeys((line, count)):
        carried = loop(builder, builder.udiv(left, I64(steps)), carried, turn(steps))
        left = builder.urem(left, I64(steps))
    v, groups, chains = carried[0], carried[1 : 1 + near], carried[1 + near :]
    some = builder.icmp_signed(">", left, I64(0))
    chains = replaced_if(builder, some, chains, lambda: block(groups, v, list(chains), 0, left))
    for g, chain in enumerate(in_groups(chains, ops.kind.planes)):
        ops.store(chain, lanes.at(q.t, g * count))


NEAR_ROWS = "a:p rsa:i v:p k:i t:t"
FEW_ROWS = f"rows:i {NEAR_ROWS}"
few_rows, many_rows = emitted("few_rows", FEW_ROWS, _rows), emitted("many_rows", FEW_ROWS, _rows, at_once=ROWS)
skewed_rows = emitted("skewed_rows", FEW_ROWS, _rows, at_once=ROWS, skew=SKEW)
far_rows = emitted("far_rows", FEW_ROWS, _rows, at_once=ROWS, ahead=True)
near_rows, short_rows = emitted("near_rows", NEAR_ROWS, _near), emitted("short_rows", NEAR_ROWS, _near, ahead=True)
pair_rows = emitted("pair_rows", NEAR_ROWS, _near, near=PAIR)
long_rows = emitted("long_rows", NEAR_ROWS, _near, near=LONG, onward=True)
pairs_of = emitted("pairs_of", "rows:i a:p rsa:i v:p rsv:i k:i t:t", _rows)  # at most `few`, each against its own v


def _one(builder, tile, q):
    ops = Chain(builder, tile.kind, 1)

    def step(_, carried):
        a, v, *chain = carried
        return [ops.words.at(a, q.csa), ops.words.at(v, q.sv), *ops.step(ops.along("a", a), ops.broadcast(v), chain)]

    ops.store(loop(builder, q.k, [q.a, q.v, *ops.zero], step)[2:], q.t)


one = emitted("one_row", "a:a csa:i v:b sv:i k:i t:t", _one)  # a single chain, bound by the latency of its additions


@jit(forceinline=True)
def _crowded(tile, rsa, k, every=1024):
    """Whether rows start near multiples of so many bytes: of 1 KiB, ROWS have more lines in a set of L1 than it has
    places."""
    apart = abs(rsa) * tile.itemsize % every
    return min(apart, every - apart) < 16 and k * tile.itemsize >= 1024


@jit(forceinline=True)
def rows_of(tile, h, a, rsa, v, k, t, near, far):
    """Any number of rows; `near`: of a matrix in L2; `far`: of one that comes from memory."""
    size, rsa, k, r = tile.itemsize, rsa * tile.planes, k * tile.planes, 0
    crowded = _crowded(tile, rsa, k)
    several, pair, long = (FOUR if size == 4 else EIGHT) * few(tile), PAIR * few(tile), LONG * few(tile)
    short = k * size <= SHORT
    if FEW_REGISTERS:
        wanted = rsa * size >= BEHIND and not (pair > PLACES and _crowded(tile, rsa, k, WAY))
        while wanted and not (near or crowded or far or short) and h - r >= long:
            long_rows(tile, a + r * rsa * size, rsa, v, k, t + r * tile.size_t)
            r += long
        by_pairs = not wanted or (crowded and not near) or (far and not short and size == 4)
    else:
        by_pairs = not near and (crowded or far)
    while not by_pairs and h - r >= several and not (FEW_REGISTERS and several < h - r <= 2 * pair):
        if near or not short:
            near_rows(tile, a + r * rsa * size, rsa, v, k, t + r * tile.size_t)
        else:
            short_rows(tile, a + r * rsa * size, rsa, v, k, t + r * tile.size_t)
        r += several
    while FEW_REGISTERS and wanted and h - r >= pair:
        pair_rows(tile, a + r * rsa * size, rsa, v, k, t + r * tile.size_t)
        r += pair
    while r < h:
        ar, tr, left = a + r * rsa * size, t + r * tile.size_t, h - r
        if left == 1:
            one(tile, ar, 1, v, 1, k // tile.planes, tr)
        elif left <= few(tile):
            few_rows(tile, left, ar, rsa, v, k, tr)
        elif crowded:
            skewed_rows(tile, min(ROWS, left), ar, rsa, v, k, tr)
        elif far and not FEW_REGISTERS:
            far_rows(tile, min(ROWS, left), ar, rsa, v, k, tr)
        else:
            many_rows(tile, min(ROWS, left), ar, rsa, v, k, tr)
        r += ROWS if left > few(tile) else left
