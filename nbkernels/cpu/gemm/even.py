"""Straight-line code for products of many tiles, each ROWS rows by two vectors, that add nothing; operands in place.

Tiles follow each other without a call, STEPS steps without a branch, so that the next tile's chains start while these
end. 4 x 2 chains are what hides a latency of four cycles at two a cycle; 6 x 2 would load less, but leave rows over.
The last tile of a row or column ends with it, over some of the one before, with the same bits, however few are new.
"""

from __future__ import annotations

import functools

from ...jit.compile.lazy import plain
from ...jit.ir.emit import called, on_tile
from ...jit.ir.vector import I64, LINE, loop, switch
from .tiny import STEPS, Block, Form

ROWS = 4  # of a tile
EACH = 4  # steps between two lines of each matrix asked for: all of 16x16x16, and more of what is larger
NEAR = 56 << 10  # bytes of A and B that stay in 32 KiB of L1 as `even` needs them: by 72 KiB one_block is level
EVEN = "count:i m:i n:i k:i a:p sa:i step:i b:p sb:i rsb:i c:p sc:i rsc:i"


@plain
def suits(tile, m, n, k, rsa, csa):
    """Whether products are for `even`, if nothing is added to them and rows of C are contiguous."""
    near = (m * k + k * n) * tile.itemsize <= NEAR
    return tile.narrow and near and m >= ROWS and k >= STEPS and n >= tile.nr and (rsa == 1 or csa == 1)


def _even(builder, tile, arg, whole, upright, ahead):
    """Call the LLVM function for one layout of A: contiguous rows that are `step` apart or, if `upright`, such columns.
    `whole`: nothing is left of m, n and k. `ahead`: the function asks for the next product's lines on the way."""
    name = f"even_{tile.dtype}_v{tile.lanes}" + "_whole" * whole + "_upright" * upright + "_ahead" * ahead
    called(builder, tile, name, EVEN, arg, _products, whole, upright, ahead)


def _products(builder, tile, arg, whole, upright, ahead):
    """Its body."""
    lie, other = ("rsa", "csa") if upright else ("csa", "rsa")
    arg |= {lie: I64(1), other: arg["step"]}
    form = Form(ROWS, (tile.lanes,) * tile.nv, tile.nr, lie=lie)
    block = Block(builder, tile, arg, form, [I64(LINE)] * 3 * ahead, EACH)
    lanes, height, width = block.lanes, I64(ROWS), I64(tile.nr)
    panels = builder.udiv(builder.add(arg["n"], I64(tile.nr - 1)), width)
    last = builder.sub(panels, I64(2))
    rest = builder.sub(arg["n"], builder.mul(width, builder.sub(panels, I64(1))))

    def below(a, c, rows):
        return lanes.at(a, builder.mul(arg["rsa"], rows)), lanes.at(c, builder.mul(arg["rsc"], rows))

    def product(t, carried):
        a, b, c = carried
        following = [lanes.at(base, arg["s" + matrix]) for matrix, base in zip("abc", carried)]

        def panel(j, carried):
            b, c, *lines = carried

            def tiles(index, carried):
                a, c, *lines = carried
                lines, chains = block.chains([a], [b], [lanes.zero] * len(block.cells), STEPS, lines, whole)
                block.store(chains, c)
                return [*below(a, c, height), *lines]

            state = loop(builder, builder.udiv(arg["m"], height), [a, c, *lines], tiles)
            if whole:
                return [lanes.at(b, width), lanes.at(c, width), *state[2:]]
            left = builder.urem(arg["m"], height)
            with builder.if_then(builder.icmp_signed(">", left, I64(0))):
                tiles(None, [*below(*state[:2], builder.sub(left, height)), *state[2:]])
            by = builder.select(builder.icmp_signed("==", j, last), rest, width)
            return [lanes.at(b, by), lanes.at(c, by), *state[2:]]

        loop(builder, panels, [b, c, *([builder.ptrtoint(each, I64) for each in following] if ahead else [])], panel)
        return following

    loop(builder, arg["count"], [arg[matrix] for matrix in "abc"], product)


def _whole(builder, tile, arg):
    """Whether nothing is left of m, n and k; as a number."""
    rests = [builder.urem(arg[size], I64(by)) for size, by in (("m", ROWS), ("n", tile.nr), ("k", STEPS))]
    return builder.zext(builder.icmp_unsigned("==", functools.reduce(builder.or_, rests), I64(0)), I64)


def _by_lie(context, builder, tile, arg):
    asked = [(_whole(builder, tile, arg), 2), (arg["upright"], 2), (arg["ahead"], 2)]
    switch(builder, asked, functools.partial(_even, builder, tile, arg))


# `count` products as `suits` says; A's rows are `step` apart, or `upright` its columns. `ahead`: the next one's lines
# are asked for.
even = on_tile("even", EVEN, _by_lie, "upright:i ahead:i")
