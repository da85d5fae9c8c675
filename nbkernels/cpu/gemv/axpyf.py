"""Columns of a matrix against a vector, eight axpy at once: t[i] = sum over p of a[i, p] * v[p], in order of p.

A is contiguous along the outputs: chains wait in memory and take in eight steps of k at a time, or few of them stay in
registers. A may be of another dtype than they, whose numbers are converted on their way, or complex: vectors of its
numbers are parted into planes. Several vectors against an A of floats, which is read once for all of them, are
products of few rows (deep.py).
"""

from __future__ import annotations

from ...jit.compile.lazy import jit
from ...jit.ir.chain import Chain, in_groups
from ...jit.ir.emit import emitted
from ...jit.ir.kind import BYTES
from ...jit.ir.vector import I64, LINE, loop, replaced_if
from ..gemm.blocking import WAY

STEPS = 8  # steps of k that a column's chain takes in at once: eight loads of A for a load and a store of the chain
TOGETHER = 8  # vectors that a matrix meets together, at most: as many chains hide each other's latency
HELD = 12  # vectors of outputs whose chains stay in registers over all steps: 16x1000 f32 2.07 -> 1.34 us (AVX2)


def _columns(builder, tile, q, count=1, ahead=False, turns=(STEPS, STEPS // 2, 1)):
    """t[i] = chain over p < k of a[p*down + i] * v[p*sv] for i < m, from 0 if `begun` is 0 and from t[i] otherwise; of
    `count` vectors, v[p*count + r] for r < count, the chains t[r*apart + i].

    `turns`: steps at once, many before few. `ahead`: the steps that come next are asked for.

    Where all columns start alike within a line, vectors are whole lines, or parts of one: those of eight columns crowd
    in L1 if they are 4 KiB apart, and would be fetched twice. With several vectors the chains are lines, too.
    """
    ops, size, m, down = Chain(builder, tile.kind, tile.lanes), BYTES[tile.kind.a], q.m, q.down
    lanes = ops.words
    within = I64(min(LINE, lanes.count * size) - 1)
    head = builder.udiv(builder.and_(builder.neg(builder.ptrtoint(q.a, I64)), within), I64(size))
    together = builder.icmp_signed("==", builder.and_(builder.mul(down, I64(size)), I64(LINE - 1)), I64(0))
    # Pieces before and after whole vectors cost as much as they: with 256 bits 64x10000 of float32 takes 83 us, so 69.
    least = head if lanes.count * size == LINE else I64(16 * lanes.count)
    fits = builder.and_(together, builder.icmp_signed("<", least, m))
    head = builder.select(fits, head, I64(0)) if count == 1 else I64(0)

    lines = lanes.each(q.t, q.apart, count) if count > 1 else [q.t]

    def factors(place):
        return [ops.broadcast(lanes.at(place, r)) for r in range(count)]

    def turn(steps):
        def body(index, carried):
            a, v, begun = carried
            places, rows = lanes.each(v, q.sv, steps), lanes.each(a, down, steps)
            kept = None if count == TOGETHER else [factors(at) for at in places]  # so many would wait in L1, as vectors

            def piece(place, left=None):
                mask = left and ops.mask(left)
                chains = _begun(builder, ops, begun, [lanes.at(line, place) for line in lines], mask)
                for row in rows if ahead and steps == turns[0] and left is None else []:
                    lanes.prefetch(lanes.at(lanes.at(row, builder.mul(down, I64(steps))), place), level=2)
                for q, row in enumerate(rows):
                    own = ops.along("a", lanes.at(row, place), left)
                    pairs = zip(kept[q] if kept else factors(places[q]), chains)
                    chains = [ops.step(own, factor, chain) for factor, chain in pairs]
                for chain, line in zip(chains, lines):
                    ops.store(chain, lanes.at(line, place), mask)

            with builder.if_then(builder.icmp_signed(">", head, I64(0))):
                piece(I64(0), head)
            lanes.over(m, piece, head)
            return [lanes.at(a, builder.mul(down, I64(steps))), lanes.at(v, builder.mul(q.sv, I64(steps))), I64(1)]

        return body

    carried, left = [q.a, q.v, q.begun], q.k
    with builder.if_then(builder.icmp_signed("==", left, I64(0))):
        turn(0)(None, carried)
    for steps in turns:
        carried = loop(builder, builder.udiv(left, I64(steps)), carried, turn(steps))
        left = builder.urem(left, I64(steps))


def _begun(builder, ops, begun, addresses, mask=None):
    """Chains from zero, or from where they wait."""
    on, zeros = builder.icmp_signed("!=", begun, I64(0)), ops.zero * len(addresses)
    planes = replaced_if(builder, on, zeros, lambda: [p for at in addresses for p in ops.load(at, mask)])
    return in_groups(planes, len(ops.zero))


def _held(builder, tile, q, vectors):
    """Compute t[i] as `_columns` does, for 1 to `vectors` vectors of outputs, whose accumulators stay in registers; of
    complex numbers half as many.

    A vector that would reach beyond the last output ends with it; outputs that two vectors share are the same in both.
    """
    ops = Chain(builder, tile.kind, tile.lanes)
    lanes, planes = ops.words, tile.planes
    last = builder.sub(q.m, I64(lanes.count))
    places = [I64(i * lanes.count) for i in range(vectors // planes)]
    places = [builder.select(builder.icmp_signed("<", place, last), place, last) for place in places]
    chains = _begun(builder, ops, q.begun, [lanes.at(q.t, place) for place in places])
    kept = [plane for chain in chains for plane in chain]

    def column(_, carried):
        a, v, *chains = carried
        factor = ops.broadcast(v)
        for i, place in enumerate(places):
            own = slice(i * planes, (i + 1) * planes)
            chains[own] = ops.step(ops.along("a", lanes.at(a, place)), factor, chains[own])
        return [lanes.at(a, q.down), lanes.at(v, q.sv), *chains]

    _, _, *chains = loop(builder, q.k, [q.a, q.v, *kept], column)
    for i, place in enumerate(places):
        ops.store(chains[i * planes : (i + 1) * planes], lanes.at(q.t, place))


COLUMNS = "m:i a:a down:i v:b sv:i k:i t:t begun:i"


def _of_columns(name, body=_columns, more="", **how):
    return emitted(f"gemv_{name}", COLUMNS + more, body, **how)


by_eight, asking = _of_columns("columns_by_eight"), _of_columns("columns_asking", ahead=True)
# The lines of columns a WAY apart share a set of L1, of 8 places, of which half are taken then: mv of
# 256x256 float32, whose chains step by 8 columns, 4.8 us by eight at once, 3.6 by four; gemv 1024x128 8.9 -> 6.0.
by_four = _of_columns("columns_by_four", turns=(STEPS // 2, 1))
held_2, held_4, held_8, held_12 = (_of_columns(f"held_{n}", _held, vectors=n) for n in (2, 4, 8, HELD))
several_2, several_4, several_8 = (
    _of_columns(f"several_{n}", more=" apart:i", count=n, turns=(STEPS, 1)) for n in (2, 4, TOGETHER)
)


@jit(forceinline=True)
def group(left):
    """Vectors to take together, of those that are left."""
    return 8 if left >= 8 else 4 if left >= 4 else 2 if left >= 2 else 1


@jit(forceinline=True)
def columns_of_several(tile, count, m, a, down, v, k, t, begun, apart):
    """As many vectors side by side as `group` says: v[p*count + r], and their outputs t[r*apart + i]."""
    if count == 8:
        several_8(tile, m, a, down, v, count, k, t, begun, apart)
    elif count == 4:
        several_4(tile, m, a, down, v, count, k, t, begun, apart)
    elif count == 2:
        several_2(tile, m, a, down, v, count, k, t, begun, apart)
    else:
        by_eight(tile, m, a, down, v, count, k, t, begun)


@jit(forceinline=True)
def columns(tile, m, a, down, v, sv, k, t, begun, asks=False):
    """Any number of outputs, neighbours in memory. `asks`: what comes next is asked for, which only matrices of a stack
    gain by: one alone, 3000x3000 of float64, takes 1490 us, 2020 where it asks, and 1750 some lines ahead (AVX-512)."""
    vectors = (m + tile.lanes - 1) // tile.lanes * tile.planes
    if tile.lanes <= m and vectors <= HELD:
        if vectors <= 2:
            held_2(tile, m, a, down, v, sv, k, t, begun)
        elif vectors <= 4:
            held_4(tile, m, a, down, v, sv, k, t, begun)
        elif vectors <= 8:
            held_8(tile, m, a, down, v, sv, k, t, begun)
        else:
            held_12(tile, m, a, down, v, sv, k, t, begun)
    elif asks:
        asking(tile, m, a, down, v, sv, k, t, begun)
    elif down * tile.size_a % WAY == 0:
        by_four(tile, m, a, down, v, sv, k, t, begun)
    else:
        by_eight(tile, m, a, down, v, sv, k, t, begun)
