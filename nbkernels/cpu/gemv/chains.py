"""Sums over a segment of k <= 4096 steps in several chains: 8 of a matrix against a vector, or 64 of two vectors.

The orders are those of mv.py and dot.py.

rows      A is contiguous along k: vectors are steps of a row, which come as they lie (those of dotxf.py, one
          chain an output, are transposed)
columns   A is contiguous along the outputs: axpyf.py's loop, once for each of 8 chains
"""

from __future__ import annotations

from llvmlite import ir

from ...jit.abi.address import nothing, poke
from ...jit.compile.lazy import jit
from ...jit.ir.chain import Chain, in_groups
from ...jit.ir.emit import emitted
from ...jit.ir.vector import I32, I64, Lanes, in_blocks, loop, opaque, used
from ..gemm.blocking import vector_registers
from ..runtime.machine import l2
from .axpyf import STEPS, columns

CHAINS = 8  # a vector of float64, half of one of float32, of which two are multiplied in a cycle
MANY = 64  # of two vectors: both are loaded for each step of a vector of chains, and four of these hide its latency
ROWS = 8  # at once, of which each hides the latency of the others; 16 crowd in L1: 64x4096 of float32 31 us, for 16
# Vectors of chains that registers hold; others wait on the stack, and each is loaded and stored for its step. By itself
# LLVM puts a sum where a factor was and moves all of them back (1,000 of float64, us: 1.8, so 1.6).
HELD = vector_registers() - 2
# Outputs of columns at most, whose chains wait on the stack, in L2: of 3000x3000 f32 790 us by 1024 of them, in L1, so
# 614 (AVX-512).
WIDE = 4096
WAITING = CHAINS * 8 * WIDE  # bytes of it
# Bytes of a column up to which many columns are read as they lie, by windows of so many bytes of v for each chain: in
# those of one chain, 8 columns apart, lines are few, and nothing prefetches them (64x10000 f32, us: 83, so 66).
LOW, AT_ONCE = 1024, 32


# -- rows --------------------------------------------------------------------------------------------------------------


def _rows(builder, tile, q, chains=CHAINS, steps=None):
    """t[r] = the sum of a[r*rsa + p] * v[p] over p < k <= 4096, for r < rows, or for the only one by MANY chains; of
    neighbours in memory, or of elements `steps` apart, (in a, in v)."""
    ops = Chain(builder, tile.kind, min(tile.lanes, chains))
    width, planes = ops.count, tile.kind.planes
    parts = chains // width  # vectors of a row's chains
    count = 1 if chains == MANY else min(ROWS, vector_registers() // 2 // parts)  # rows at once
    total = count * parts
    held = min(total, HELD) if planes == 1 else total
    places = [None] * held  # of each vector of chains: None, or where it waits in memory
    if held < total:
        room = opaque(builder, builder.ptrtoint(builder.alloca(ops.numbers.type, total - held), I64))
        room = builder.inttoptr(room, ops.numbers.element.as_pointer())
        places += [builder.gep(room, [I64(i * width)]) for i in range(total - held)]

    def items(operand, base, first, left):
        """`width` elements of an operand from step `first` on, of which `left` are there (all)."""
        if steps is None:
            return ops.along(operand, builder.gep(base, [first]), left)
        step, there = steps[operand == "b"], I64(width) if left is None else left

        def load(lanes, address):
            each = lanes.count // width
            return lanes.gather(address, lanes.ramp(step, each), lanes.mask(builder.mul(there, I64(each))))

        base = builder.gep(base, [builder.mul(first, step)])
        return ops.across(operand, [builder.bitcast(base, ops.words.element.as_pointer())], load)

    def group(index, _):
        """Sum `count` rows; those past the end repeat the first, and are not stored."""
        done = builder.mul(index, I64(count))
        there = builder.sub(q.rows, done)
        inside = [builder.select(builder.icmp_signed("<", I64(r), there), I64(r), I64(0)) for r in range(count)]
        starts = [builder.gep(q.a, [builder.mul(builder.add(done, r), q.rsa)]) for r in inside]

        def block(index, carried, left=None):
            """Return the accumulators, row by row, after `chains` more steps."""
            base, carried = builder.mul(index, I64(chains)), list(carried)
            for part in range(parts):
                first = builder.add(base, I64(part * width))
                some = None if left is None else builder.sub(left, I64(part * width))
                mask, factor = some and ops.words.mask(some), items("b", q.v, first, some)
                for r, start in enumerate(starts):
                    c = r * parts + part
                    own = slice(c * planes, (c + 1) * planes)
                    old, other = carried[own] if c < held else ops.load(places[c]), items("a", start, first, some)
                    new = ops.closed(ops.step(other, factor, ops.opened(old)))
                    if mask:
                        new = [builder.select(mask, *each) for each in zip(new, old)]
                    elif chains == MANY and planes == 1:
                        used(builder, other[0])
                    if c < held:
                        carried[own] = new
                    else:
                        ops.store(new, places[c])
            return carried

        for place in places[held:]:
            ops.store(ops.zero, place)
        found = in_blocks(builder, q.k, chains, ops.zero * held, block)
        found = [*in_groups(found, planes), *(ops.load(place) for place in places[held:])]
        sums = [_halves(ops, found[r * parts : (r + 1) * parts]) for r in range(count)]
        for lanes in zip(*(_halved(builder, ops, list(plane), width) for plane in zip(*sums))):
            (first, _), *_ = lanes
            outputs, place = Chain(builder, tile.kind, lanes[0][1].type.count), builder.add(done, I64(first))
            left = outputs.mask(builder.sub(q.rows, place))
            outputs.store([own for _, own in lanes], builder.gep(q.t, [place]), left)
        return []

    loop(builder, builder.udiv(builder.add(q.rows, I64(count - 1)), I64(count)), [], group)


def _halves(ops, vectors: list) -> list:
    """Add a row's vectors of accumulators by halves: vector i takes in vector i + half."""
    while len(vectors) > 1:
        half = len(vectors) // 2
        vectors = [ops.add(low, high) for low, high in zip(vectors[:half], vectors[half:])]
    return vectors[0]


def _halved(builder, ops, vectors: list, width: int):
    """The lanes of each vector added in halves: (index of the first, vector of the sums), vector by vector."""
    while width > 1:
        half, count = width // 2, vectors[0].type.count
        pairs = list(zip(vectors[::2], vectors[1::2])) if len(vectors) > 1 else [(vectors[0], vectors[0])]
        lanes = [i for i in range(2 * count if len(vectors) > 1 else count) if i % width < half]

        def picked(pair, lanes):
            return builder.shuffle_vector(*pair, ir.Constant(ir.VectorType(I32, len(lanes)), lanes))

        vectors = [ops.add([picked(p, lanes)], [picked(p, [i + half for i in lanes])])[0] for p in pairs]
        width = half
    return [(i * vector.type.count, vector) for i, vector in enumerate(vectors)]


def _pair(builder, tile, q, gathered=False):
    """The sum of a[p*sa] * v[p*sv] over p < k <= 4096, in MANY chains; neighbours in memory unless gathered."""
    q.rows, q.rsa = I64(1), I64(0)
    _rows(builder, tile, q, MANY, (q.sa, q.sv) if gathered else None)


PAIR = "k:i a:a sa:i v:b sv:i t:t"
rows_of = emitted("mv_rows", "rows:i a:a rsa:i v:p k:i t:p", _rows)
_neighbours, _gathered = emitted("dot", PAIR, _pair), emitted("dot_gathered", PAIR, _pair, gathered=True)


@jit(forceinline=True)
def pair_of(tile, k, a, sa, b, sb, total):
    """total = the sum of k <= 4096 steps of the vectors at a and b, whose strides count elements."""
    if sa == 1 and sb == 1:
        _neighbours(tile, k, a, sa, b, sb, total)
    else:
        _gathered(tile, k, a, sa, b, sb, total)


# -- columns -----------------------------------------------------------------------------------------------------------


def _halve(builder, tile, q):
    """target[i] = the sum of lines[c*apart + i] over c < CHAINS, for i < h."""
    lanes = Lanes(builder, tile.dtype, tile.lanes)

    def piece(place, left=None):
        mask = left and lanes.mask(left)
        sums = [lanes.load(lanes.at(line, place), mask) for line in lanes.each(q.lines, q.apart, CHAINS)]
        while len(sums) > 1:
            half = len(sums) // 2
            sums = [builder.fadd(low, high) for low, high in zip(sums[:half], sums[half:])]
        lanes.store(sums[0], lanes.at(q.target, place), mask)

    lanes.over(q.h, piece)


def _in_turn(builder, tile, q):
    """lines[c*apart + i] += the sum of a[p*csa + i] * v[p*sv] over p = c, c + CHAINS, ..., for i < h: of `turns` times
    `at_once` columns for each chain, of which some chains' are read together. A line's last vector is stored whole."""
    ops, at_once = Chain(builder, tile.kind, tile.lanes), AT_ONCE // tile.itemsize
    lanes = ops.words
    starts, some = lanes.each(q.lines, q.apart, CHAINS), CHAINS // at_once

    def together(a, v, chains):
        factors, columns = lanes.each(v, q.sv, at_once * CHAINS), lanes.each(a, q.csa, at_once * CHAINS)
        factors = {c: [ops.broadcast(factor) for factor in factors[c::CHAINS]] for c in chains}

        def piece(place, left=None):
            for c in chains:
                chain = ops.load(lanes.at(starts[c], place))
                for factor, column in zip(factors[c], columns[c::CHAINS]):
                    chain = ops.step(ops.along("a", lanes.at(column, place), left), factor, chain)
                ops.store(chain, lanes.at(starts[c], place))

        lanes.over(q.h, piece)

    def turn(index, carried):
        for first in range(0, CHAINS, some):
            together(*carried, range(first, first + some))
        return [lanes.at(x, builder.mul(step, I64(at_once * CHAINS))) for x, step in zip(carried, (q.csa, q.sv))]

    loop(builder, q.turns, [q.a, q.v], turn)


halve = emitted("mv_halve", "h:i lines:p apart:i target:p", _halve)
in_turn = emitted("mv_in_turn", "turns:i h:i a:a csa:i v:p sv:i lines:p apart:i", _in_turn)


@jit(forceinline=True)
def columns_sums(tile, h, a, csa, v, sv, k, t, lines):
    """t[i] = the sum of a[p*csa + i] * v[p*sv] over p < k, for i < h <= WIDE; chains wait in `lines`."""
    size, p, apart, at_once = tile.itemsize, 0, WIDE, AT_ONCE // tile.itemsize
    window = max(l2() // 2 // (CHAINS * h * tile.size_a), STEPS) * CHAINS  # lines between a chain's are still in L2
    if h * tile.size_a <= LOW and k >= CHAINS * max(h, at_once):  # lines whose vectors do not crowd in L1
        apart, turns = (h + CHAINS - 1) // CHAINS * CHAINS, k // (at_once * CHAINS)
        for i in range(CHAINS * apart):
            poke(tile, lines + i * size, nothing(tile))
        in_turn(tile, turns, h, a, csa, v, sv, lines, apart)
        p = turns * at_once * CHAINS
    while p < k:
        steps = min(window, k - p)
        for c in range(CHAINS):
            own, column, factor = lines + c * apart * size, a + (p + c) * csa * tile.size_a, v + (p + c) * sv * size
            left = (steps + CHAINS - 1 - c) // CHAINS
            columns(tile, h, column, csa * CHAINS, factor, sv * CHAINS, left, own, p)
        p += steps
    halve(tile, h, lines, apart, t)
