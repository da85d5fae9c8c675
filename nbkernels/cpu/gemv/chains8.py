"""Sums over a segment of k <= 4096 steps in 8 chains, of a matrix's lines against a vector: the order of mv.py.

rows      A is contiguous along k: vectors are steps of a row, which come as they lie (those of dotxf.py, one
          chain an output, are transposed)
columns   A is contiguous along the outputs: axpyf.py's loop, once for each chain
"""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from ...jit.address import nothing, poke
from ...jit.cache import jit
from ...jit.vector import ELEMENT, I32, I64, SIZE, VOID, Lanes, loop, replaced_if
from ..gemm.blocking import WAY, vector_registers
from .axpyf import STEPS, columns
from .dotxf import emitted

CHAINS = 8  # a vector of float64, half of one of float32, of which two are multiplied in a cycle
ROWS = 8  # at once, of which each hides the latency of the others; 16 crowd in L1: 64x4096 of float32 31 us, for 16
# Outputs of columns at most, whose chains wait on the stack: in L1, or, where vectors are half as long, in L2 (Zen 3,
# 2026-11, 3000x3000, of the best peer's speed: f32 .76 and 1.02, f64 .84 and 1.06).
WIDE = 1024 if vector_registers() == 32 else 4096
WAITING = CHAINS * 8 * WIDE  # bytes of it
# Bytes of a column up to which columns are read as they lie, by windows of so many steps of each chain: in those of one
# chain, 8 columns apart, lines are few, and nothing asks for them beforehand. Zen 3, 2026-11, one thread, us, chain by
# chain and so: 64x10000 f32 83 and 66, f64 143 and 123; 128x5000 78 and 59, 115 and 95; 50x8000 66 and 48, 87 and 68;
# 256x256 f32 the same. With a step of each, which loads and stores chains as often, 64x10000 f32 87, with two 71; with
# all eight steps of one chain f32 58 -> 54, 128x5000 56 -> 52, but f64 113 -> 124. Columns of float32 may be four times
# as long if they are as many as their elements: 1000x1000 65 and 60, 500x2000 73 and 66, but 800x100 7.9 and 8.9.
LOW, AT_ONCE = (0 if vector_registers() == 32 else 1024), {4: 8, 8: 4}
FLOATS, DOUBLES = AT_ONCE.values()
# With 16 registers chains are added as they take in their last STEPS: 10000 outputs of 64 steps of float32 52 -> 45 us,
# of float64 100 -> 88 (Zen 3, 2026-11).
LAST = STEPS * CHAINS if vector_registers() == 16 else 1 << 62
WINDOW = 1 << 15  # bytes of A for each chain before the next takes its turn: the lines between are still in L2 then


# -- rows --------------------------------------------------------------------------------------------------------------


def _define(module: ir.Module, tile, ahead: bool) -> ir.Function:
    """void(rows, a, rsa, v, k, t): t[r] = the sum of a[r*rsa + p] * v[p] over p < k <= 4096, for r < rows.

    `ahead`: the rows that come next are asked for on the way.
    """
    name = f"mv_rows_{tile.dtype}" + "_ahead" * ahead
    if name in module.globals:
        return module.globals[name]
    at = ELEMENT[tile.dtype].as_pointer()
    function = ir.Function(module, ir.FunctionType(VOID, [I64, at, I64, at, I64, at]), name)
    function.linkage = "linkonce_odr"
    function.attributes.add("noinline")
    builder, (rows, a, rsa, v, k, t) = ir.IRBuilder(function.append_basic_block("entry")), function.args
    lanes = Lanes(builder, tile.dtype, min(tile.lanes, CHAINS))
    parts = CHAINS // lanes.count  # vectors of a row's chains
    count = min(ROWS, vector_registers() // 2 // parts)
    blocks, left = builder.udiv(k, I64(CHAINS)), builder.urem(k, I64(CHAINS))

    def group(index, _):
        """`count` rows, of which those from the last on are the last."""
        done = builder.mul(index, I64(count))
        there = builder.sub(rows, done)
        inside = [builder.select(builder.icmp_signed("<", I64(r), there), I64(r), I64(0)) for r in range(count)]
        starts = [lanes.at(a, builder.mul(builder.add(done, r), rsa)) for r in inside]

        def block(index, carried, left=None):
            """The chains, one row's after another, one step further."""
            first, chains = builder.mul(index, I64(CHAINS)), list(carried)
            for start in starts if ahead and left is None else []:
                lanes.prefetch(lanes.at(lanes.at(start, builder.mul(rsa, I64(count))), first), level=2)
            for part in range(parts):
                place = builder.add(first, I64(part * lanes.count))
                mask = None if left is None else lanes.mask(builder.sub(left, I64(part * lanes.count)))
                factor = lanes.load(lanes.at(v, place), mask)
                for r, start in enumerate(starts):
                    old = chains[r * parts + part]
                    new = lanes.fma(lanes.load(lanes.at(start, place), mask), factor, old)
                    chains[r * parts + part] = new if mask is None else builder.select(mask, new, old)
            return chains

        chains = loop(builder, blocks, [lanes.zero] * (count * parts), block)
        some = builder.icmp_signed(">", left, I64(0))
        chains = replaced_if(builder, some, chains, lambda: block(blocks, chains, left))
        each = parts
        while each > 1:
            each //= 2
            pairs = [(i, i + each) for i in range(len(chains)) if i // each % 2 == 0]
            chains = [builder.fadd(chains[i], chains[j]) for i, j in pairs]
        for first, sums in _halved(builder, chains, lanes.count):
            outputs, place = lanes.narrower(sums.type.count), builder.add(done, I64(first))
            outputs.store(sums, lanes.at(t, place), outputs.mask(builder.sub(rows, place)))
        return []

    loop(builder, builder.udiv(builder.add(rows, I64(count - 1)), I64(count)), [], group)
    builder.ret_void()
    return function


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


def _rows_of(ahead):
    def rows_of(typing, tile, rows, a, rsa, v, k, t):
        def emit(context, builder, signature, args):
            function = _define(builder.module, signature.args[0].tile, ahead)
            kinds = [argument.type for argument in function.args]
            builder.call(function, [x if kind is I64 else builder.inttoptr(x, kind)
                                    for x, kind in zip(args[1:], kinds)])  # fmt: skip
            return context.get_dummy_value()

        return types.void(tile, *[types.int64] * 6), emit

    rows_of.__name__ = rows_of.__qualname__ = f"rows_of{'_ahead' * ahead}"
    return intrinsic(rows_of)


rows_of, far_rows_of = _rows_of(False), _rows_of(True)


# -- columns -----------------------------------------------------------------------------------------------------------


@intrinsic
def _halve(typing, tile, h, lines, apart, target):
    """target[i] = the sum of lines[c*apart + i] over c < CHAINS, for i < h."""

    def emit(context, builder, signature, args):
        tile, (_, h, lines, apart, target) = signature.args[0].tile, args
        lanes = Lanes(builder, tile.dtype, tile.lanes)
        lines, target = (builder.inttoptr(x, lanes.element.as_pointer()) for x in (lines, target))

        def piece(place, mask=None):
            starts = [lanes.at(lines, builder.mul(apart, I64(c))) for c in range(CHAINS)]
            sums = [lanes.load(lanes.at(start, place), mask) for start in starts]
            while len(sums) > 1:
                half = len(sums) // 2
                sums = [builder.fadd(low, high) for low, high in zip(sums[:half], sums[half:])]
            lanes.store(sums[0], lanes.at(target, place), mask)
            return []

        whole = builder.udiv(h, I64(lanes.count))
        loop(builder, whole, [], lambda j, _: piece(builder.mul(j, I64(lanes.count))))
        done = builder.mul(whole, I64(lanes.count))
        with builder.if_then(builder.icmp_signed("<", done, h)):
            piece(done, lanes.mask(builder.sub(h, done)))
        return context.get_dummy_value()

    return types.void(tile, *[types.int64] * 4), emit


def _ends(added):
    """into[i] = (a chain over STEPS columns, from line[i] if begun, or zero) + those of the lines that are `added`."""

    def ends(typing, tile, begun, h, a, down, v, sv, line, first, second, third, into):
        def emit(context, builder, signature, args):
            tile, (_, begun, h, a, down, v, sv, *lines) = signature.args[0].tile, args
            lanes = Lanes(builder, tile.dtype, tile.lanes)
            a, v, line, *sums, into = (builder.inttoptr(x, lanes.element.as_pointer()) for x in (a, v, *lines))
            factors = [lanes.splat(builder.load(lanes.at(v, builder.mul(sv, I64(q))), align=1)) for q in range(STEPS)]
            columns = [lanes.at(a, builder.mul(down, I64(q))) for q in range(STEPS)]
            whole = builder.udiv(h, I64(lanes.count))
            done = builder.mul(whole, I64(lanes.count))

            def pieces(start):
                def piece(place, mask=None):
                    chain = start(place)
                    for factor, column in zip(factors, columns):
                        chain = lanes.fma(factor, lanes.load(lanes.at(column, place), mask), chain)
                    for other in sums[:added]:
                        chain = builder.fadd(lanes.load(lanes.at(other, place)), chain)
                    lanes.store(chain, lanes.at(into, place), mask if added == 3 else None)  # lines have room
                    return []

                loop(builder, whole, [], lambda j, _: piece(builder.mul(j, I64(lanes.count))))
                with builder.if_then(builder.icmp_signed("<", done, h)):
                    piece(done, lanes.mask(builder.sub(h, done)))

            with builder.if_else(builder.icmp_signed(">", begun, I64(0))) as (further, fresh):
                with further:
                    pieces(lambda place: lanes.load(lanes.at(line, place)))
                with fresh:
                    pieces(lambda place: lanes.zero)
            return context.get_dummy_value()

        return types.void(tile, *[types.int64] * 11), emit

    ends.__name__ = ends.__qualname__ = f"ends_{added}"
    return intrinsic(ends)


_alone, _with_one, _with_two, _with_three = map(_ends, range(4))


@jit(forceinline=True)
def _last(tile, h, a, csa, v, sv, p, lines, apart, t):
    """t[i] = the chains added in halves, once each has taken in its part of the last LAST columns, from the p-th on.

    A chain is added as soon as another one waits for it, from L1: 0, 4 to 0, 2, 6 to 2 and 0, 1, 5 to 1, 3, 7 to all.
    """
    size, down, step = tile.itemsize, csa * CHAINS, sv * CHAINS
    for n in range(CHAINS):
        c = (n & 1) * 4 + (n >> 1 & 1) * 2 + (n >> 2)
        q = p + (c - p) % CHAINS
        column, factor, own = a + q * csa * size, v + q * sv * size, lines + c * apart
        half = own - CHAINS // 2 * apart
        if c < 4:
            _alone(tile, p, h, column, down, factor, step, own, 0, 0, 0, own)
        elif c == 7:
            _with_three(tile, p, h, column, down, factor, step, own, half, lines + apart, lines, t)
        elif c == 6:
            _with_two(tile, p, h, column, down, factor, step, own, half, lines, 0, lines)
        else:
            _with_one(tile, p, h, column, down, factor, step, own, half, 0, 0, half)


def _in_turn(lanes, turns, h, a, csa, v, sv, lines, apart):
    """lines[c*apart + i] += the sum of a[p*csa + i] * v[p*sv] over p = c, c + CHAINS, ..., for i < h: of `turns` times
    AT_ONCE columns for each chain, of which some chains' are read together. A line's last vector is stored whole."""
    builder, at_once = lanes.builder, AT_ONCE[SIZE[lanes.dtype]]
    whole, some = builder.udiv(h, I64(lanes.count)), CHAINS // at_once
    end = builder.mul(whole, I64(lanes.count))

    def together(a, v, chains):
        steps = [[c + q * CHAINS for q in range(at_once)] for c in chains]
        factors = [
            [lanes.splat(builder.load(lanes.at(v, builder.mul(sv, I64(p))), align=1)) for p in own] for own in steps
        ]
        columns = [[lanes.at(a, builder.mul(csa, I64(p))) for p in own] for own in steps]
        starts = [lanes.at(lines, builder.mul(apart, I64(c))) for c in chains]

        def piece(place, mask=None):
            for start, *each in zip(starts, factors, columns):
                chain = lanes.load(lanes.at(start, place))
                for factor, column in zip(*each):
                    chain = lanes.fma(factor, lanes.load(lanes.at(column, place), mask), chain)
                lanes.store(chain, lanes.at(start, place))
            return []

        loop(builder, whole, [], lambda j, _: piece(builder.mul(j, I64(lanes.count))))
        with builder.if_then(builder.icmp_signed("<", end, h)):
            piece(end, lanes.mask(builder.sub(h, end)))

    def turn(index, carried):
        for first in range(0, CHAINS, some):
            together(*carried, range(first, first + some))
        return [lanes.at(x, builder.mul(step, I64(at_once * CHAINS))) for x, step in zip(carried, (csa, sv))]

    loop(builder, turns, [a, v], turn)


@intrinsic
def in_turn(typing, tile, turns, h, a, csa, v, sv, lines, apart):
    """The same, as a function of its own."""
    return types.void(tile, *[types.int64] * 8), emitted(_in_turn, "iipipipi", "in_turn", lambda tile: tile.lanes)


@jit(forceinline=True)
def columns_sums(tile, h, a, csa, v, sv, k, t, far, lines):
    """t[i] = the sum of a[p*csa + i] * v[p*sv] over p < k, for i < h <= WIDE; chains wait in `lines`."""
    size, p, apart, at_once = tile.itemsize, 0, WIDE, FLOATS if tile.itemsize == 4 else DOUBLES
    window = max(WINDOW // (h * size), STEPS) * CHAINS
    low = 4 * LOW if size == 4 and k >= h else LOW
    if h * size <= low and k >= at_once * CHAINS:  # lines whose vectors do not crowd in L1
        apart, turns = (h + CHAINS - 1) // CHAINS * CHAINS, k // (at_once * CHAINS)
        for i in range(CHAINS * apart):
            poke(tile, lines + i * size, nothing(tile))
        in_turn(tile, turns, h, a, csa, v, sv, lines, apart)
        p = turns * at_once * CHAINS
    last = k >= LAST and p == 0 and csa * CHAINS * size % WAY != 0
    end = k - LAST if last else k
    while p < end:
        steps = min(window, end - p)
        for c in range(CHAINS):
            own, column, factor = lines + c * apart * size, a + (p + c) * csa * size, v + (p + c) * sv * size
            left = (steps + CHAINS - 1 - c) // CHAINS
            columns(tile, h, column, csa * CHAINS, factor, sv * CHAINS, left, own, p, far)
        p += steps
    if last:
        _last(tile, h, a, csa, v, sv, p, lines, apart * size, t)
    else:
        _halve(tile, h, lines, apart, t)
