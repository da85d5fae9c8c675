"""Straight-line code for small products: C[t] = alpha * A[t] @ B[t] + beta * X[t] for t < count, operands in place.

A tile of C stays in registers from the first step of k to the last. The loop over t is inside, so that a matrix costs
its arithmetic and no call; and an element is the same chain of fused multiply-adds as anywhere, whatever the width of
the vector it lies in. Rows of B, C and X are contiguous.

C is a tile of at most HEIGHT rows and two vectors, a function for each height and width, and A has any strides.
"""

from __future__ import annotations

import functools
import itertools
from typing import NamedTuple

from ...jit.compile.lazy import plain
from ...jit.compile.routine import Table, call_routine, known_table, words_of
from ...jit.ir.emit import begun, called, kinds, on_tile, values
from ...jit.ir.vector import I64, SIZE, Lanes, fence, loop, opaque, replaced_if, switch

# 8 rows of two vectors are 16 accumulators, one chain each: enough to hide the latency of 4 at two a cycle. 16
# registers hold 6 such rows, or 8 of one vector (f32, us, 8 and 6 rows: 512x512x8 190 and 126).
HEIGHT = 8
# Steps of a turn where products are long and vectors narrow: a neighbour on the core leaves half of what it can issue,
# and 8 rows of one vector were 21 instructions a step for 8 multiply-adds (f32 8x8, GFLOP/s by 1 and 4 steps: 47, 56).
UNROLL = 4
STEPS = 8  # of a turn of even.py
# Arguments (emit.py); s* are steps from t to t + 1, and rs* and cs* from row to row and from column to column.
TINY = "count:i k:i a:p sa:i rsa:i csa:i b:p sb:i rsb:i c:p sc:i rsc:i x:p sx:i rsx:i width:i alpha:s beta:s"
ASKS = "na:i nb:i nc:i da:i db:i dc:i"  # what to ask for on the way: three addresses, and bytes from step to step
ON = f"{TINY} on:i"  # unless that is 0, chains begin as C has them


@plain
def tall(tile, width):
    """Rows of products of `width` columns that one call takes: HEIGHT, or what the registers hold of two vectors."""
    return min(HEIGHT, tile.mr) if width > tile.lanes else HEIGHT


def widths(tile):
    """The lanes of a row's vectors, for the rows that are served: a wide vector may cost as much as two narrow ones."""
    half = max(1, tile.lanes // 2)
    return [(half,), (tile.lanes,), (tile.lanes, half), (tile.lanes, tile.lanes)]


class Form(NamedTuple):
    """A tile of C: `height` rows of a product, or of each of `twins` side by side, in vectors of `width` lanes, of
    which more than `least` are columns. `lie`: along which of "rsa" and "csa" A's elements touch."""

    height: int
    width: tuple
    least: int
    twins: int = 1
    lie: str = ""

    def __str__(self):
        width = "_".join(map(str, self.width))
        return f"{self.height}x{width}{self.lie}" + f"_by_{self.twins}" * (self.twins > 1)


class Block:
    """The registers of a form. `arg` has the function's arguments by name. `asks`: bytes from line to line of A, B and
    C, which are asked for at every `each`-th step."""

    def __init__(self, builder, tile, arg, form, asks=(), each=1):
        height, width, least, twins, self.lie = form
        self.builder, self.arg, self.twins, self.asks, self.each = builder, arg, twins, asks, each
        builder.function.attributes.add("optsize")  # loops are unrolled here, as far as they are to be
        self.lanes, self.parts = Lanes(builder, tile.dtype, tile.lanes), [Lanes(builder, tile.dtype, w) for w in width]
        self.rows = [divmod(i, height) for i in range(twins * height)]  # the product, its row
        self.cells = [(i, j) for i in range(len(self.rows)) for j in range(len(width))]
        # None of a vector that is there: it would take a register.
        self.masks = [None if j * tile.lanes + part.count <= least else
                      part.mask(builder.sub(arg["width"], I64(j * tile.lanes)))
                      for j, part in enumerate(self.parts)]  # fmt: skip
        self.down = {m: [builder.mul(arg["rs" + m], I64(i)) for i in range(height)] for m in "cx" if m in arg}
        self.apart = {m: [builder.mul(arg["s" + m], I64(q)) for q in range(twins + 1)] for m in "abcx" if m in arg}
        self.odd = {q: opaque(builder, builder.mul(arg["rsa"], I64(q * SIZE[tile.dtype]))) for q in range(1, height, 2)}

    def at(self, matrix, base, i, j):
        """C or X at vector j of row i."""
        (product, row), lanes = self.rows[i], self.lanes
        return lanes.at(lanes.at(lanes.at(base, self.apart[matrix][product]), self.down[matrix][row]), j * lanes.count)

    def loaded(self, matrix, base):
        return [self.parts[j].load(self.at(matrix, base, i, j), self.masks[j]) for i, j in self.cells]

    def below(self, base, row):
        """A[row, p], in bytes from A[0, p]: a register or its double, fourfold, ... Of plain multiples LLVM makes a sum
        that grows from row to row, 8 cycles of a step, in which 8 vectors of half the width take 4 (one thread,
        10000x8x8x8 of float32 167 -> 150 us)."""
        builder = self.builder
        if row == 0 or self.lie == "rsa":
            return self.lanes.at(base, row)
        shift = (row & -row).bit_length() - 1
        offset = builder.shl(self.odd[row >> shift], I64(shift))
        return builder.inttoptr(builder.add(builder.ptrtoint(base, I64), offset), base.type)

    def split(self, carried):
        """Places in A and in B, lines to ask for, chains."""
        ends = list(itertools.accumulate((self.twins, self.twins, len(self.asks))))
        return [carried[start:end] for start, end in zip([0, *ends], [*ends, None])]

    def steps(self, count):
        """`count` steps: chain += A[t][:, p] B[t][p, :]."""
        lanes, builder = self.lanes, self.builder

        def turn(index, carried):
            a, b, lines, chains = self.split(carried)
            for p in range(count):
                if p % self.each == self.each - 1:
                    for matrix, line in zip("abc", lines):
                        lanes.prefetch(builder.inttoptr(line, lanes.element.as_pointer()), write=matrix == "c")
                    lines = [builder.add(line, by) for line, by in zip(lines, self.asks)]
                across = [[part.load(lanes.at(row, j * lanes.count), self.masks[j]) for j, part in
                           enumerate(self.parts)] for row in b]  # fmt: skip
                column = [builder.load(self.below(a[q], i), align=1) for q, i in self.rows]
                chains = [self.parts[j].fma(self.parts[j].splat(column[i]), across[self.rows[i][0]][j], value)
                          for (i, j), value in zip(self.cells, chains)]  # fmt: skip
                a, b = [lanes.at(each, self.arg["csa"]) for each in a], [lanes.at(each, self.arg["rsb"]) for each in b]
                if count == STEPS:  # LLVM would load a row's elements for all, and spill: 100x16x16x16 of f32 18 us
                    fence(builder)
            return [*a, *b, *lines, *chains]

        return turn

    def chains(self, a, b, begin, turn, lines=(), whole=False):
        """All of k, `turn` steps at a time, of which they are a `whole` number or not: the lines to ask for next, and
        the chains."""
        carried, left = [*a, *b, *lines, *begin], self.arg["k"]
        if turn > 1:
            carried = loop(self.builder, self.builder.udiv(left, I64(turn)), carried, self.steps(turn))
            left = self.builder.urem(left, I64(turn))
        if whole:
            return self.split(carried)[2:]
        return self.split(loop(self.builder, left, carried, self.steps(1)))[2:]

    def store(self, values, c):
        for (i, j), value in zip(self.cells, values):
            self.parts[j].store(value, self.at("c", c, i, j), self.masks[j])


def _tiny(builder, tile, arg, form):
    """Call the LLVM function of a form. Of twins `count` counts the groups."""
    called(builder, tile, f"tiny_{tile.dtype}_{form}", ON, arg, _products, form)


def _products(builder, tile, arg, form, ahead=False):
    """Its body. `ahead`: it asks for what comes next."""
    twins, lie = form.twins, form.lie
    arg |= {lie: I64(1)} if lie else {}
    asks = [arg["d" + m] for m in "abc"] if ahead else []
    block = Block(builder, tile, arg, form, asks)
    factors = {name: [part.splat(arg[name]) for part in block.parts] for name in ("alpha", "beta")}
    reads = builder.icmp_unsigned("!=", builder.ptrtoint(arg["x"], I64), I64(0))

    def product(t, carried):
        a, b, c, x = carried
        starts = [[block.lanes.at(base, by) for by in block.apart[m][:twins]] for m, base in (("a", a), ("b", b))]
        begin = [block.parts[j].zero for _, j in block.cells]
        if "on" in arg:
            on = builder.icmp_signed("!=", arg["on"], I64(0))
            begin = replaced_if(builder, on, begin, lambda: block.loaded("c", c))
        lines = [arg["n" + m] for m in "abc"] if ahead else []
        _, chains = block.chains(*starts, begin, UNROLL if lie else 1, lines)
        values = [builder.fmul(factors["alpha"][j], chain) for (_, j), chain in zip(block.cells, chains)]
        values = replaced_if(builder, reads, values, lambda: [
            block.parts[j].fma(factors["beta"][j], old, value)
            for (_, j), old, value in zip(block.cells, block.loaded("x", x), values)
        ])  # fmt: skip
        block.store(values, c)
        return [block.lanes.at(base, block.apart[m][twins]) for m, base in zip("abcx", carried)]

    loop(builder, arg["count"], [arg[m] for m in "abcx"], product)


# -- those that are compiled one by one, when a product needs them: `tiny`, and `tiny_ahead` ---------------------------

AHEAD = 4 * HEIGHT  # where they begin in the table


def _define(module, name, tile, form, ahead):
    builder, arg = begun(module, name, tile, TINY + f" {ASKS}" * ahead)
    _products(builder, tile, arg, form, ahead)
    builder.ret_void()


@functools.cache
def table(tile) -> Table:
    """By the first of `widths` that is wide enough, and by height; then for more than one vector, and an `ahead` of
    whole vectors."""

    def of(at):
        which, height = divmod(at, HEIGHT) if at < AHEAD else (2 + at - AHEAD, tall(tile, 2 * tile.lanes) - 1)
        wide = widths(tile)
        form, ahead = Form(height + 1, wide[which], sum(wide[which - 1]) if which else 0), at >= AHEAD
        name = f"tiny_{tile.dtype}_{form}" + "_ahead" * ahead
        return f"{name}_alone", functools.partial(_define, tile=tile, form=form, ahead=ahead)

    return Table(f"tiny_{tile}", AHEAD + 2, of)


@plain
def class_of(tile, width):
    """The first of `widths` that is wide enough."""
    half = max(1, tile.lanes // 2)
    return (width > half) + (width > tile.lanes) + (width > tile.lanes + half)


@plain
def absent(tile, words, height, width):
    """The place of what `tiny` needs for so many rows and columns and that is not in the table; or -1."""
    at = class_of(tile, width) * HEIGHT + height - 1
    return at if height > 0 and width > 0 and words[at] == 0 else -1


def every(tile) -> None:
    """All that are compiled one by one."""
    for at in range(AHEAD + 2):
        if at >= AHEAD or at % HEIGHT < tall(tile, sum(widths(tile)[at // HEIGHT])):
            table(tile).supply(at)


known = words_of(table)


def _of_table(ahead):
    """For a place in the table that is found by height and width."""

    def emit(context, builder, tile, arg):
        at = I64(AHEAD) if ahead else builder.sub(arg["height"], I64(1))
        if ahead:
            at = builder.add(at, _flag(builder, ">", arg["width"], sum(widths(tile)[2])))
        for width in () if ahead else widths(tile)[:-1]:
            at = builder.add(at, builder.mul(_flag(builder, ">", arg["width"], sum(width)), I64(HEIGHT)))
        given = values(builder, kinds(tile, TINY + f" {ASKS}" * ahead), arg)
        call_routine(builder, known_table(context, builder, table, tile), at, given)

    return emit


# ----------------------------------------------------------------------------------------------------------------------


def _flag(builder, sign, value, limit):
    return builder.zext(builder.icmp_signed(sign, value, I64(limit)), I64)


def _by_height(most, across, twins=1):
    """For `tiny` of any height up to `most`, and the first of these widths that is wide enough."""

    def emit(context, builder, tile, arg):
        which, wide = I64(0), across(tile)
        for width in wide[:-1]:
            which = builder.add(which, _flag(builder, ">", arg["width"], sum(width)))

        def call(row, index):
            least = sum(wide[index - 1]) if index else 0
            if row < tall(tile, sum(wide[index])):
                _tiny(builder, tile, arg, Form(row + 1, wide[index], least, twins))

        switch(builder, [(builder.sub(arg["height"], I64(1)), most), (which, len(wide))], call)

    return emit


def _long(context, builder, tile, arg):
    wide, rows = _flag(builder, ">", arg["width"], tile.lanes), _flag(builder, "==", arg["csa"], 1)

    def call(second, by_rows):
        width = (tile.lanes,) * (1 + second)
        form = Form(tall(tile, sum(width)), width, sum(width), lie="csa" if by_rows else "rsa")
        _tiny(builder, tile, arg, form)

    switch(builder, [(wide, 2), (rows, 2)], call)


# `count` products of `width` <= 2 * tile.lanes columns and `height` rows, as many as `tall` says at most.
tiny = on_tile("tiny", TINY, _of_table(False), "height:i")
# The same, of every height and width at once.
tiny_any = on_tile("tiny_any", ON, _by_height(HEIGHT, widths), "height:i")
# `count` pairs of products of `height` <= HEIGHT // 2 rows and `width` <= tile.lanes columns, two at a time: the chains
# of one alone would wait for each other.
twins = on_tile("twins", ON, _by_height(HEIGHT // 2, lambda tile: widths(tile)[:2], twins=2), "height:i")
# `tiny_any` of as many rows as `tall` says, one or two whole vectors of columns and an A contiguous along a side.
tiny_long = on_tile("tiny_long", ON, _long)
# `tiny` of so many rows as `tall` has for more than tile.lanes columns, which asks for the next product's lines, step
# by step: in a burst they would wait for each other, and the product for them.
tiny_ahead = on_tile("tiny_ahead", f"{TINY} {ASKS}", _of_table(True))
