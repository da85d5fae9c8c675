"""Transpose a tile on its way from memory to a buffer, a square of vectors at a time in registers."""

from __future__ import annotations

import functools

from ..compile.routine import ir_function
from .emit import emitted
from .vector import I64, LINE, SIZE, Lanes, loop, width_bits

# Items are moved as numbers of their size, whatever they mean: no bit of them changes.
MOVED = {1: "int8", 2: "int16"} | {size: dtype for dtype, size in SIZE.items()}
# Elements that are read at once where they touch, at most: rows of a tile, 4 lines of float32.
TILE = 64
PIECE = 16  # bytes: a side of the smaller squares, of which a tile may be made that has none of the larger


@functools.cache
def turner(width: int) -> int:
    """Address of void(source, step, target, pitch, rows, columns, next): target[j, i] = source[j, i].

    Items of 1, 2, 4 or 8 bytes. In the source neighbours of a column touch and those of a row are `step` bytes apart;
    rows of the target are `pitch` bytes apart. Such a tile at `next`, unless that is 0, is fetched into L2 meanwhile.
    """

    def emit(context, builder, source, step, target, pitch, rows, columns, next):
        read, write = (source, I64(width), step), (target, pitch, I64(width))
        _Tile(builder, width, rows, columns, read, write, next=(next, I64(width), step)).emit()

    return ir_function(emit, "source step target pitch rows columns next", f"turn_{width}", loops=False).address


def _matrices(builder, tile, q):
    """target[t, p, j] = source[t * sb + j * csb + p] for p < k and j < n, elements of the tile.

    Small matrices, many in one call: to pack each would cost more than its product. Zen 3, one thread, NT, us, before
    and so: 10000x4x4x4 of f32 624 and 90, f64 586 and 201, 10000x8x8x8 475 and 289, 1346 and 521, 100x31x31x31 of f64
    259 and 213; one product 32x32x32 of f64 3.7 and 2.6, 64x64x64 of f32 10.8 and 7.9.
    """
    width, steps = tile.itemsize, (q.sb, q.csb, q.n, builder.mul(q.n, q.k))
    apart, step, pitch, size = (builder.mul(each, I64(width)) for each in steps)

    def matrix(t, carried):
        source, target = carried
        _Tile(builder, width, q.k, q.n, (source, I64(width), step), (target, pitch, I64(width))).emit()
        return [builder.add(source, apart), builder.add(target, size)]

    loop(builder, q.matrices, [q.source, q.target], matrix)


turned = emitted("turned", "matrices:i n:i k:i source:i sb:i csb:i target:i", _matrices)


def sides(width: int) -> tuple[int, ...]:
    """Lanes of the vectors that squares are made of, the larger first, as a tile may be smaller than that."""
    most = width_bits() // 8 // width
    return tuple(dict.fromkeys((most if width >= 4 else min(most, 32 // width), PIECE // width)))


def _at(builder, element, place, j, i):
    """Address of element (j, i) of a place: an address and the bytes between rows and columns."""
    base, row_step, column_step = place
    offset = builder.add(builder.mul(j, row_step), builder.mul(i, column_step))
    return builder.inttoptr(builder.add(base, offset), element.as_pointer())


def singles(builder, element, rows, columns, read, write) -> None:
    """Copy elements one by one from the place `read` to the place `write`."""

    def down(j, _):
        def along(i, _):
            value = builder.load(_at(builder, element, read, j, i), align=1)
            builder.store(value, _at(builder, element, write, j, i), align=1)
            return []

        loop(builder, columns, [], along)
        return []

    loop(builder, rows, [], down)


class _Tile:
    """rows x columns of items: from the place `read` to `write`, and `next`, what is asked for on the way where its
    address is not 0."""

    def __init__(self, builder, width, rows, columns, read, write, next=None):
        self.builder, self.width, self.rows, self.columns = builder, width, rows, columns
        self.places = dict(read=read, write=write, next=next)
        self.lanes = Lanes(builder, MOVED[width], sides(width)[0])

    def at(self, side, j, i):
        """Address of element (j, i) of the source or of the target."""
        return _at(self.builder, self.lanes.element, self.places[side], j, i)

    def emit(self):
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
        read, write = self.places["read"], self.places["write"]
        singles(builder, self.lanes.element, self.rows, self.columns, read, write)
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
        builder, lanes, whole = self.builder, self.lanes, LINE // self.width
        end, first = I64(whole - 1), builder.icmp_signed("==", builder.and_(j, I64(whole - 1)), I64(0))  # of a line
        if self.places["next"]:
            asked = builder.icmp_signed("!=", self.places["next"][0], I64(0))
            with builder.if_then(asked if lanes.count == whole else builder.and_(asked, first)):
                for k in map(I64, range(lanes.count)):  # of a column that begins within a line the end is what is new
                    lanes.prefetch(self.at("next", builder.add(j, end), builder.add(i, k)), level=2)
        for row, place in zip(lanes.turned(self.sequence("read", j, i)), self.sequence("write", j, i)):
            lanes.store(row, place)

    def sequence(self, side, j, i):
        """Addresses of a square's columns in the source, or of its rows in the target: four at a time from one that is
        kept, so that the CPU adds once, twice and three times their distance on the way (8 x 8 float32 10.5 ns with a
        multiplication each, 7.5; Zen 3, 2026-11)."""
        builder, step = self.builder, self.places[side][2 if side == "read" else 1]
        start, places = builder.ptrtoint(self.at(side, j, i), I64), []
        for k in range(self.lanes.count):
            if k and k % 4 == 0:
                start = builder.add(start, builder.mul(step, I64(4)))
            place = builder.add(start, builder.mul(step, I64(k % 4)))
            places.append(builder.inttoptr(place, self.lanes.element.as_pointer()))
        return places
