"""Sums over a segment of k <= 4096 steps in 8 chains, of a matrix's lines against a vector: the order of mv.py.

rows      A is contiguous along k: vectors are steps of a row, which come as they lie (those of dotxf.py, one
          chain an output, are transposed)
columns   A is contiguous along the outputs: axpyf.py's loop, once for each chain
"""

from __future__ import annotations

from llvmlite import ir

from ...jit.abi.address import nothing, poke
from ...jit.compile.lazy import jit
from ...jit.ir.convert import of_a
from ...jit.ir.emit import emitted
from ...jit.ir.vector import I32, I64, SIZE, Lanes, in_blocks, loop
from ..gemm.blocking import vector_registers
from .axpyf import STEPS, columns

CHAINS = 8  # a vector of float64, half of one of float32, of which two are multiplied in a cycle
ROWS = 8  # at once, of which each hides the latency of the others; 16 crowd in L1: 64x4096 of float32 31 us, for 16
# Outputs of columns at most, whose chains wait on the stack, in L2: of 3000x3000 f32 790 us by 1024 of them, in L1, so
# 614 (AVX-512).
WIDE = 4096
WAITING = CHAINS * 8 * WIDE  # bytes of it
# Bytes of a column up to which many columns are read as they lie, by windows of so many steps of each chain: in those
# of one chain, 8 columns apart, lines are few, and nothing prefetches them (64x10000 f32, us: 83, so 66).
LOW, AT_ONCE = 1024, {4: 8, 8: 4}
FLOATS, DOUBLES = AT_ONCE.values()
WINDOW = 1 << 15  # bytes of A for each chain before the next takes its turn: the lines between are still in L2 then


# -- rows --------------------------------------------------------------------------------------------------------------


def _rows(builder, tile, rows, a, rsa, v, k, t):
    """t[r] = the sum of a[r*rsa + p] * v[p] over p < k <= 4096, for r < rows."""
    lanes = Lanes(builder, tile.dtype, min(tile.lanes, CHAINS))
    matrix = of_a(lanes, tile)
    parts = CHAINS // lanes.count  # vectors of a row's chains
    count = min(ROWS, vector_registers() // 2 // parts)

    def group(index, _):
        """`count` rows, of which those from the last on are the last."""
        done = builder.mul(index, I64(count))
        there = builder.sub(rows, done)
        inside = [builder.select(builder.icmp_signed("<", I64(r), there), I64(r), I64(0)) for r in range(count)]
        starts = [matrix.at(a, builder.mul(builder.add(done, r), rsa)) for r in inside]

        def block(index, carried, left=None):
            """The chains, one row's after another, one step further."""
            first, chains = builder.mul(index, I64(CHAINS)), list(carried)
            for part in range(parts):
                place = builder.add(first, I64(part * lanes.count))
                mask = None if left is None else lanes.mask(builder.sub(left, I64(part * lanes.count)))
                factor = lanes.load(lanes.at(v, place), mask)
                for r, start in enumerate(starts):
                    old = chains[r * parts + part]
                    new = lanes.fma(matrix.load(matrix.at(start, place), mask), factor, old)
                    chains[r * parts + part] = new if mask is None else builder.select(mask, new, old)
            return chains

        chains, each = in_blocks(builder, k, CHAINS, [lanes.zero] * (count * parts), block), parts
        while each > 1:
            each //= 2
            pairs = [(i, i + each) for i in range(len(chains)) if i // each % 2 == 0]
            chains = [builder.fadd(chains[i], chains[j]) for i, j in pairs]
        for first, sums in _halved(builder, chains, lanes.count):
            outputs, place = lanes.narrower(sums.type.count), builder.add(done, I64(first))
            outputs.store(sums, lanes.at(t, place), outputs.mask(builder.sub(rows, place)))
        return []

    loop(builder, builder.udiv(builder.add(rows, I64(count - 1)), I64(count)), [], group)


def _halved(builder, vectors: list, width: int):
    """The lanes of each vector added in halves: (index of the first, vector of the sums), vector by vector."""
    while width > 1:
        half, count = width // 2, vectors[0].type.count
        pairs = list(zip(vectors[::2], vectors[1::2])) if len(vectors) > 1 else [(vectors[0], vectors[0])]
        lanes = [i for i in range(2 * count if len(vectors) > 1 else count) if i % width < half]

        def picked(pair, lanes):
            return builder.shuffle_vector(*pair, ir.Constant(ir.VectorType(I32, len(lanes)), lanes))

        vectors = [builder.fadd(picked(p, lanes), picked(p, [i + half for i in lanes])) for p in pairs]
        width = half
    return [(i * vector.type.count, vector) for i, vector in enumerate(vectors)]


rows_of = emitted("mv_rows", "iaipip", _rows)


# -- columns -----------------------------------------------------------------------------------------------------------


def _halve(builder, tile, h, lines, apart, target):
    """target[i] = the sum of lines[c*apart + i] over c < CHAINS, for i < h."""
    lanes = Lanes(builder, tile.dtype, tile.lanes)

    def piece(place, left=None):
        mask = left and lanes.mask(left)
        sums = [lanes.load(lanes.at(line, place), mask) for line in lanes.each(lines, apart, CHAINS)]
        while len(sums) > 1:
            half = len(sums) // 2
            sums = [builder.fadd(low, high) for low, high in zip(sums[:half], sums[half:])]
        lanes.store(sums[0], lanes.at(target, place), mask)

    lanes.over(h, piece)


def _in_turn(builder, tile, turns, h, a, csa, v, sv, lines, apart):
    """lines[c*apart + i] += the sum of a[p*csa + i] * v[p*sv] over p = c, c + CHAINS, ..., for i < h: of `turns` times
    AT_ONCE columns for each chain, of which some chains' are read together. A line's last vector is stored whole."""
    lanes, at_once = Lanes(builder, tile.dtype, tile.lanes), AT_ONCE[SIZE[tile.dtype]]
    starts, some, matrix = lanes.each(lines, apart, CHAINS), CHAINS // at_once, of_a(lanes, tile)

    def together(a, v, chains):
        factors, columns = lanes.each(v, sv, at_once * CHAINS), matrix.each(a, csa, at_once * CHAINS)
        factors = {c: [lanes.broadcast(factor) for factor in factors[c::CHAINS]] for c in chains}

        def piece(place, left=None):
            mask = left and lanes.mask(left)
            for c in chains:
                chain = lanes.load(lanes.at(starts[c], place))
                for factor, column in zip(factors[c], columns[c::CHAINS]):
                    chain = lanes.fma(factor, matrix.load(matrix.at(column, place), mask), chain)
                lanes.store(chain, lanes.at(starts[c], place))

        lanes.over(h, piece)

    def turn(index, carried):
        for first in range(0, CHAINS, some):
            together(*carried, range(first, first + some))
        steps = zip((matrix, lanes), carried, (csa, sv))
        return [each.at(x, builder.mul(step, I64(at_once * CHAINS))) for each, x, step in steps]

    loop(builder, turns, [a, v], turn)


halve, in_turn = emitted("mv_halve", "ipip", _halve), emitted("mv_in_turn", "iiaipipi", _in_turn)


@jit(forceinline=True)
def columns_sums(tile, h, a, csa, v, sv, k, t, lines):
    """t[i] = the sum of a[p*csa + i] * v[p*sv] over p < k, for i < h <= WIDE; chains wait in `lines`."""
    size, p, apart, at_once = tile.itemsize, 0, WIDE, FLOATS if tile.itemsize == 4 else DOUBLES
    window = max(WINDOW // (h * tile.size_a), STEPS) * CHAINS
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
