"""Stacks of tiny products: C[t] = alpha * A[t] @ B[t] + beta * X[t], rows of C in at most two vectors of registers.

One LLVM function for each height 1..HEIGHT and each width; the loop over t is inside it, so that a matrix costs its
arithmetic and no call. Rows of B, C and X are contiguous; everything else has strides. An element is the same chain of
fused multiply-adds as anywhere, whatever the width of the vector it lies in.
"""

from __future__ import annotations

import itertools

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from ...jit.cache import jit
from ...jit.vector import ELEMENT, I64, SIZE, VOID, Lanes, loop, opaque

# 8 rows of two vectors are 16 accumulators, one chain each: enough to hide the latency of 4 at two a cycle. 16
# registers hold 6 such rows, or 8 of one vector (Zen 3, 2026-11, one thread, f32, us, 8 and 6 rows: 512x512x8 190 and
# 126, 100x16x16x16 30 and 19, 32x100x10x100 311 and 148).
HEIGHT = 8
# Steps of a turn where products are long and vectors narrow: a neighbour on the core leaves half of what it can issue,
# and 8 rows of one vector were 21 instructions a step for 8 multiply-adds. Zen 3, one thread, GFLOP/s, by 1 and by 4
# steps, A by rows: f32 8x8 47 and 56, from L2 37 and 50, 6x16 70 and 79, f64 8x4 23 and 28, 6x8 37 and 41; A by columns
# 48 and 54, 71 and 77, 24 and 29, 37 and 41, but 8x8 from L3 37 and 30. To ask for the next rows on the way: 48 and 43.
UNROLL = 4
# name and kind of the arguments: p address, i integer, s scalar of the element type; s* are steps from t to t + 1
ARGUMENTS = "count:i k:i a:p sa:i rsa:i csa:i b:p sb:i rsb:i c:p sc:i rsc:i x:p sx:i rsx:i width:i alpha:s beta:s"
AHEAD = "na:i nb:i nc:i da:i db:i dc:i"  # what to ask for on the way: three addresses, and bytes from step to step
NAMES = [item.split(":")[0] for item in f"{ARGUMENTS} {AHEAD}".split()]


@jit(forceinline=True)
def tall(tile, width):
    """Rows of products of `width` columns that one call takes: HEIGHT, or what the registers hold of two vectors."""
    return min(HEIGHT, tile.mr) if width > tile.lanes else HEIGHT


def widths(tile):
    """The lanes of a row's vectors, for the rows that are served: a wide vector may cost as much as two narrow ones."""
    half = max(1, tile.lanes // 2)
    return [(half,), (tile.lanes,), (tile.lanes, half), (tile.lanes, tile.lanes)]


def _define(
    module: ir.Module, tile, height: int, width: tuple, least: int, ahead=False, twins: int = 1, on=False, lie: str = ""
) -> ir.Function:
    """The LLVM function for this height and width; defined once per module. Rows have more than `least` columns.
    `ahead`: it asks for what comes next. `twins`: products that go side by side, in as many rows; `count` counts such
    groups. `on`: chains begin as C has them. `lie`: along which of "rsa" and "csa" A's elements touch; UNROLL steps a
    turn."""
    name = f"tiny_{tile.dtype}_{height}x{'_'.join(map(str, width))}" + "_ahead" * ahead + "_on" * on + lie
    name += f"_by_{twins}" * (twins > 1)
    if name in module.globals:
        return module.globals[name]
    element = ELEMENT[tile.dtype]
    kinds = {"p": element.as_pointer(), "i": I64, "s": element}
    arguments = ARGUMENTS.split() + AHEAD.split() * ahead
    function = ir.Function(module, ir.FunctionType(VOID, [kinds[i.split(":")[1]] for i in arguments]), name)
    function.linkage = "linkonce_odr"
    function.attributes.add("noinline")
    function.attributes.add("optsize")  # the loop over k is short: unrolled, it would compile for three times as long
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    arg = dict(zip(NAMES, function.args)) | ({lie: I64(1)} if lie else {})
    lanes, vectors = Lanes(builder, tile.dtype, tile.lanes), range(len(width))
    parts = [Lanes(builder, tile.dtype, count) for count in width]
    rows = [divmod(i, height) for i in range(twins * height)]  # of a group: the product, its row
    cells = [(i, j) for i in range(len(rows)) for j in vectors]
    # None of a vector that is there: it would take a register.
    masks = [None if j * tile.lanes + part.count <= least else part.mask(builder.sub(arg["width"], I64(j * tile.lanes)))
             for j, part in enumerate(parts)]  # fmt: skip
    apart = {m: [builder.mul(arg["s" + m], I64(q)) for q in range(twins + 1)] for m in "abcx"}
    down = {m: [builder.mul(arg["rs" + m], I64(i)) for i in range(height)] for m in "cx"}
    odd = {q: opaque(builder, builder.mul(arg["rsa"], I64(q * SIZE[tile.dtype]))) for q in range(1, height, 2)}
    alpha, beta = ([part.splat(arg[factor]) for part in parts] for factor in ("alpha", "beta"))
    reads = builder.icmp_unsigned("!=", builder.ptrtoint(arg["x"], I64), I64(0))

    def at(matrix, base, i, j):
        product, row = rows[i]
        return lanes.at(lanes.at(lanes.at(base, apart[matrix][product]), down[matrix][row]), j * tile.lanes)

    def below(base, row):
        """A[row, p], in bytes from A[0, p]: a register or its double, fourfold, ... Of plain multiples LLVM makes a sum
        that grows from row to row, 8 cycles of a step, in which 8 vectors of half the width take 4 (one thread,
        10000x8x8x8 of float32 167 -> 150 us)."""
        if row == 0 or lie == "rsa":
            return lanes.at(base, row)
        shift = (row & -row).bit_length() - 1
        offset = builder.shl(odd[row >> shift], I64(shift))
        return builder.inttoptr(builder.add(builder.ptrtoint(base, I64), offset), base.type)

    def step(p, carried):  # chain += A[t][:, p] B[t][p, :]
        a, b, chain = carried[:twins], carried[twins : 2 * twins], carried[2 * twins :]
        for m in "abc" if ahead else "":
            line = builder.add(arg["n" + m], builder.mul(p, arg["d" + m]))
            lanes.prefetch(builder.inttoptr(line, element.as_pointer()), write=m == "c")
        across = [[part.load(lanes.at(line, j * tile.lanes), masks[j]) for j, part in enumerate(parts)] for line in b]
        column = [builder.load(below(a[q], i), align=1) for q, i in rows]
        chain = [parts[j].fma(parts[j].splat(column[i]), across[rows[i][0]][j], value)
                 for (i, j), value in zip(cells, chain)]  # fmt: skip
        return [*[lanes.at(each, arg["csa"]) for each in a], *[lanes.at(each, arg["rsb"]) for each in b], *chain]

    def turn(index, carried):
        for _ in range(UNROLL):
            carried = step(index, carried)
        return carried

    def product(t, carried):
        a, b, c, x = carried
        starts = [lanes.at(base, step) for m, base in (("a", a), ("b", b)) for step in apart[m][:twins]]
        chain = [parts[j].load(at("c", c, i, j), masks[j]) if on else parts[j].zero for i, j in cells]
        values, trips = [*starts, *chain], arg["k"]
        if lie:
            values = loop(builder, builder.udiv(trips, I64(UNROLL)), values, turn)
            trips = builder.urem(trips, I64(UNROLL))
        chain = loop(builder, trips, values, step)[2 * twins :]
        values = [builder.fmul(alpha[j], value) for (_, j), value in zip(cells, chain)]
        before = builder.block
        with builder.if_then(reads):
            blended = [
                parts[j].fma(beta[j], parts[j].load(at("x", x, i, j), masks[j]), value)
                for (i, j), value in zip(cells, values)
            ]
            inside = builder.block
        for (i, j), value, more in zip(cells, values, blended):
            phi = builder.phi(value.type)
            phi.add_incoming(value, before)
            phi.add_incoming(more, inside)
            values[i * len(width) + j] = phi
        for (i, j), value in zip(cells, values):
            parts[j].store(value, at("c", c, i, j), masks[j])
        return [lanes.at(base, apart[m][twins]) for m, base in zip("abcx", carried)]

    loop(builder, arg["count"], [arg[m] for m in "abcx"], product)
    builder.ret_void()
    return function


@intrinsic
def tiny(typing, tile, height, count, k, a, sa, rsa, csa, b, sb, rsb, c, sc, rsc, x, sx, rsx, width, alpha, beta):
    """Run `count` products of `width` <= 2 * tile.lanes columns and `height` rows, as many as `tall` says at most;
    addresses are int64."""
    return _signature(tile), lambda *emission: _emit(*emission, HEIGHT, widths(tile.tile), 1)


@intrinsic
def tiny_on(typing, tile, height, count, k, a, sa, rsa, csa, b, sb, rsb, c, sc, rsc, x, sx, rsx, width, alpha, beta):
    """The same with chains that begin as C has them."""
    return _signature(tile), lambda *emission: _emit(*emission, HEIGHT, widths(tile.tile), 1, on=True)


@intrinsic
def tiny_long(typing, tile, on, count, k, a, sa, rsa, csa, b, sb, rsb, c, sc, rsc, x, sx, rsx, width, alpha, beta):
    """`tiny`, or unless `on` is 0 `tiny_on`, of as many rows as `tall` says, one or two whole vectors of columns and an
    A that is contiguous along one of its sides."""

    def emit(context, builder, signature, args):
        record, pointer = signature.args[0].tile, ELEMENT[signature.args[0].tile.dtype].as_pointer()
        kinds, which = [item.split(":")[1] for item in ARGUMENTS.split()], I64(0)
        values = [builder.inttoptr(v, pointer) if kind == "p" else v for v, kind in zip(args[2:], kinds)]
        given = dict(zip(NAMES, args[2:]))
        for sign, value, limit in ("!=", args[1], 0), (">", given["width"], record.lanes), ("==", given["csa"], 1):
            flag = builder.zext(builder.icmp_signed(sign, value, I64(limit)), I64)
            which = builder.add(builder.shl(which, I64(1)), flag)
        for i, (going, wide, lie) in enumerate(itertools.product((False, True), (1, 2), ("rsa", "csa"))):
            with builder.if_then(builder.icmp_signed("==", which, I64(i))):
                width = (record.lanes,) * wide
                rows, least = tall.py_func(record, sum(width)), sum(width)
                builder.call(_define(builder.module, record, rows, width, least, on=going, lie=lie), values)
        return context.get_dummy_value()

    return _signature(tile), emit


@intrinsic
def twins(typing, tile, height, count, k, a, sa, rsa, csa, b, sb, rsb, c, sc, rsc, x, sx, rsx, width, alpha, beta):
    """Run `count` pairs of products of `height` <= HEIGHT // 2 rows and `width` <= tile.lanes columns, two at a time:
    the chains of one alone would wait for each other."""
    return _signature(tile), lambda *emission: _emit(*emission, HEIGHT // 2, widths(tile.tile)[:2], 2)


@intrinsic
def tiny_row(typing, tile, height, count, k, a, sa, rsa, csa, b, sb, rsb, c, sc, rsc, x, sx, rsx, width, alpha, beta):
    """Run `count` products of one row and `width` <= 8 * tile.lanes columns: rows of B are read from end to end."""
    return _signature(tile), lambda *emission: _emit(*emission, 1, [(tile.tile.lanes,) * n for n in (4, 8)], 1)


def _signature(tile):
    scalar, kinds = getattr(types, tile.tile.dtype), [item.split(":")[1] for item in ARGUMENTS.split()]
    return types.void(tile, types.int64, *[scalar if kind == "s" else types.int64 for kind in kinds])


def _emit(context, builder, signature, args, most: int, across: list, side: int, on=False):
    """Call the function for this height, up to `most`, and the first of these widths that is wide enough."""
    record, pointer = signature.args[0].tile, ELEMENT[signature.args[0].tile.dtype].as_pointer()
    kinds = [item.split(":")[1] for item in ARGUMENTS.split()]
    values = [builder.inttoptr(v, pointer) if kind == "p" else v for v, kind in zip(args[2:], kinds)]
    n, which = args[2 + NAMES.index("width")], I64(0)
    for width in across[:-1]:
        which = builder.add(which, builder.zext(builder.icmp_signed(">", n, I64(sum(width))), I64))
    done, bad = builder.append_basic_block("done"), builder.append_basic_block("unreachable")
    switch = builder.switch(builder.add(builder.mul(args[1], I64(len(across))), which), bad)
    for rows in range(1, most + 1):
        for index, width in enumerate(across):
            if rows > tall.py_func(record, sum(width)):
                continue
            block = builder.append_basic_block(f"tiny_{rows}x{sum(width)}")
            switch.add_case(I64(rows * len(across) + index), block)
            with builder.goto_block(block):
                least = sum(across[index - 1]) if index else 0
                builder.call(_define(builder.module, record, rows, width, least, twins=side, on=on), values)
                builder.branch(done)
    builder.position_at_end(bad)
    builder.unreachable()
    builder.position_at_end(done)
    return context.get_dummy_value()


@intrinsic
def tiny_ahead(typing, tile, k, a, rsa, csa, b, rsb, c, rsc, x, rsx, width, alpha, beta, na, nb, nc, da, db, dc):
    """One product of so many rows as `tall` has for more than tile.lanes columns, which asks for the next one's lines,
    step by step: in a burst they would wait for each other, and the product for them."""

    def emit(context, builder, signature, args):
        record = signature.args[0].tile
        two = widths(record)[2:]
        rows, least = tall.py_func(record, 2 * record.lanes), (record.lanes, sum(two[0]))
        half, full = (_define(builder.module, record, rows, w, n, ahead=True) for w, n in zip(two, least))
        given = dict(zip("k a rsa csa b rsb c rsc x rsx width alpha beta na nb nc da db dc".split(), args[1:]))
        given |= {"count": I64(1), "sa": I64(0), "sb": I64(0), "sc": I64(0), "sx": I64(0)}
        values = [builder.inttoptr(given[n], argument.type) if isinstance(argument.type, ir.PointerType) else given[n]
                  for n, argument in zip(NAMES, full.args)]  # fmt: skip
        narrow = builder.icmp_signed("<=", given["width"], I64(sum(widths(record)[2])))
        with builder.if_else(narrow) as (then, otherwise):
            with then:
                builder.call(half, values)
            with otherwise:
                builder.call(full, values)
        return context.get_dummy_value()

    scalar = getattr(types, tile.tile.dtype)
    return types.void(tile, *[types.int64] * 11, scalar, scalar, *[types.int64] * 6), emit
