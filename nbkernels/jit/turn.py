"""Transpose a tile on its way from memory to a buffer, a square of vectors at a time in registers."""

from __future__ import annotations

import functools

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from .cache import compiled
from .vector import I32, I64, LINE, SIZE, Lanes, loop, width_bits

# Items are moved as numbers of their size, whatever they mean: no bit of them changes.
MOVED = {1: "int8", 2: "int16"} | {size: dtype for dtype, size in SIZE.items()}
# Elements that are read at once where they touch, at most: rows of a tile, 4 lines of float32.
TILE = 64
PIECE = 16  # bytes that are loaded at once to be transposed


@functools.cache
def turner(width: int) -> int:
    """Address of void(source, step, target, pitch, rows, columns, next, beside, step): target[j, i] = source[j, i].

    Items of 1, 2, 4 or 8 bytes. In the source neighbours of a column touch and those of a row are `step` bytes apart;
    rows of the target are `pitch` bytes apart. What will be read next is fetched into L2 meanwhile: such a tile at
    `next` and one of rows the last `step` bytes apart at `beside`, where they are not 0.
    """

    @intrinsic
    def turn(typing, source, step, target, pitch, rows, columns, next, beside, beside_step):
        def emit(context, builder, signature, args):
            _Emitter(builder, width, *args).tile()
            return context.get_dummy_value()

        return types.void(*[types.int64] * 9), emit

    def run(source, step, target, pitch, rows, columns, next, beside, beside_step):
        turn(source, step, target, pitch, rows, columns, next, beside, beside_step)

    return compiled(run, f"void({', '.join(['int64'] * 9)})", f"turn_{width}")


def sides(width: int) -> tuple[int, ...]:
    """Lanes of the vectors that squares are made of, the larger first: of small items two sizes, for a tile may be
    smaller than the larger one."""
    most = width_bits() // 8 // width
    return (most,) if width >= 4 else tuple(dict.fromkeys((min(most, 32 // width), PIECE // width)))


class _Emitter:
    def __init__(self, builder, width, source, step, target, pitch, rows, columns, next, beside, beside_step):
        self.builder, self.width, self.rows, self.columns = builder, width, rows, columns
        self.asked = {"next": next, "beside": beside}
        self.lanes = Lanes(builder, MOVED[width], sides(width)[0])
        self.steps = {"read": (source, I64(width), step), "write": (target, pitch, I64(width))}
        self.steps |= {"next": (next, I64(width), step), "beside": (beside, beside_step, I64(width))}

    def at(self, side, j, i):
        """Address of element (j, i) of the source or of the target."""
        builder, (base, row_step, column_step) = self.builder, self.steps[side]
        place = builder.add(builder.mul(j, row_step), builder.mul(i, column_step))
        return builder.inttoptr(builder.add(base, place), self.lanes.element.as_pointer())

    def singles(self):
        """Elements one by one."""

        def down(j, _):
            def along(i, _):
                value = builder.load(self.at("read", j, i))
                value.align = 1
                builder.store(value, self.at("write", j, i))
                return []

            loop(builder, self.columns, [], along)
            return []

        builder = self.builder
        loop(builder, self.rows, [], down)

    def tile(self):
        """A square of vectors at a time; the last of a row or column ends with it, over some that are done already."""
        builder = self.builder
        least = builder.select(builder.icmp_signed("<", self.rows, self.columns), self.rows, self.columns)
        end = builder.append_basic_block("end")
        for side in sides(self.width):
            smaller = builder.append_basic_block("smaller")
            squares = builder.append_basic_block("squares")
            builder.cbranch(builder.icmp_signed(">=", least, I64(side)), squares, smaller)
            builder.position_at_end(squares)
            self.lanes = self.lanes.narrower(side)
            self.squares(I64(side))
            builder.branch(end)
            builder.position_at_end(smaller)
        self.singles()
        builder.branch(end)
        builder.position_at_end(end)

    def squares(self, side):
        builder, count = self.builder, self.lanes.count
        bottom, right = (builder.sub(n, side) for n in (self.rows, self.columns))
        high, wide = (builder.sdiv(builder.add(n, I64(count - 1)), side) for n in (self.rows, self.columns))

        def place(k, last):
            start = builder.mul(k, side)
            return builder.select(builder.icmp_signed("<", start, last), start, last)

        def along(q, _):
            def down(r, _):
                self.square(place(r, bottom), place(q, right))
                return []

            loop(builder, high, [], down)
            return []

        loop(builder, wide, [], along)

    def square(self, j, i):
        """Loaded in pieces of 16 bytes, which puts them in the right lanes; transposed within these."""
        builder, lanes, size = self.builder, self.lanes, PIECE // self.width
        piece = lanes.narrower(size)
        whole = LINE // self.width
        end, first = I64(whole - 1), builder.icmp_signed("==", builder.and_(j, I64(whole - 1)), I64(0))  # of a line
        for side, base in self.asked.items():
            asked = builder.icmp_signed("!=", base, I64(0))
            with builder.if_then(asked if lanes.count == whole else builder.and_(asked, first)):
                for k in map(I64, range(lanes.count)):  # of a row that begins within a line the end is what is new
                    line = (j, end, i, k) if side == "next" else (j, k, i, end)
                    lanes.prefetch(self.at(side, builder.add(*line[:2]), builder.add(*line[2:])), level=2)
        vectors, columns = {part: [] for part in range(0, lanes.count, size)}, self.places("read", j, i)
        for k in range(size):
            for part in vectors:
                places = [lanes.at(column, part) for column in columns[k::size]]
                vectors[part].append(self.joined([piece.load(place) for place in places]))
        rows = iter(self.places("write", j, i))
        for part in vectors:
            for vector in self.within(vectors[part], size):
                lanes.store(vector, next(rows))

    def places(self, side, j, i):
        """Addresses of a square's columns in the source, or of its rows in the target: four at a time from one that is
        kept, so that the CPU adds once, twice and three times their distance on the way (8 x 8 float32 10.5 ns with a
        multiplication each, 7.5; Zen 3, 2026-11)."""
        builder, step = self.builder, self.steps[side][2 if side == "read" else 1]
        start, places = builder.ptrtoint(self.at(side, j, i), I64), []
        for k in range(self.lanes.count):
            if k and k % 4 == 0:
                start = builder.add(start, builder.mul(step, I64(4)))
            place = builder.add(start, builder.mul(step, I64(k % 4)))
            places.append(builder.inttoptr(place, self.lanes.element.as_pointer()))
        return places

    def joined(self, pieces):
        """Vectors side by side as one."""
        while len(pieces) > 1:
            count = pieces[0].type.count * 2
            pieces = [self.picked(a, b, range(count)) for a, b in zip(pieces[::2], pieces[1::2])]
        return pieces[0]

    def within(self, vectors, size):
        """`size` vectors, transposed within each 16 bytes, by unpacking units of 1, 2, 4 ... elements."""
        unit = 1
        while unit < size:
            pairs = [(vectors[k], vectors[k + unit]) for k in range(size) if k & unit == 0]
            vectors = [self.unpacked(a, b, unit, size, half) for a, b in pairs for half in (0, size // 2)]
            unit *= 2
        return vectors

    def unpacked(self, a, b, unit, size, half):
        """Units of a and b in turns, from the lower or upper half of each 16 bytes."""
        count, lanes = a.type.count, []
        for first in range(half, count, size):
            for start in range(first, first + size // 2, unit):
                lanes += [*range(start, start + unit), *range(start + count, start + count + unit)]
        return self.picked(a, b, lanes)

    def picked(self, a, b, lanes):
        lanes = list(lanes)
        return self.builder.shuffle_vector(a, b, ir.Constant(ir.VectorType(I32, len(lanes)), lanes))
