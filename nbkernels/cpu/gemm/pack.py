"""Packing: a strided block of A or B becomes panels that the micro-kernel reads front to back.

A panel holds `pitch` rows of A (or columns of B) for kb steps of k: panel[p*pitch + r] = source[r*along + p*down] for
r < width and zero beyond, up to the pitch. Where the source is contiguous along r, vectors are copied;
where it is contiguous along p, lanes x lanes blocks are transposed in registers; other strides are gathered.
"""

from __future__ import annotations

import itertools
from types import SimpleNamespace

from ...jit.compile.lazy import jit
from ...jit.ir.emit import called, on_tile
from ...jit.ir.vector import ELEMENT, I64, LINE, Lanes, loop
from .microkernel import APART

# Rows of memory copied at once: panels lie so far apart that their lines share sets of the caches, and 16 rows a power
# of two apart would share two sets of L1 (A by columns, n = 1024, 1004 us, by 8 372). L2 prefetches what comes next.
ROWS = 8


# Arguments of a function that packs a vector's width of a panel: `width` rows are in the source, `room` in the panel.
VECTOR = "source:p along:i down:i kb:i target:p pitch:i width:i room:i"


def _copy(lanes, panel):
    """target[p*pitch + r] = source[p*down + r]."""
    builder, valid, kept = lanes.builder, lanes.mask(panel.width), lanes.mask(panel.room)

    def body(p, carried):
        source, target = carried
        lanes.prefetch(lanes.at(source, builder.mul(panel.down, I64(APART))))
        lanes.store(lanes.load(source, valid), target, kept)
        return [lanes.at(source, panel.down), lanes.at(target, panel.pitch)]

    loop(builder, panel.kb, [panel.source, panel.target], body)


def _gather(lanes, panel):
    """target[p*pitch + r] = source[p*down + r*along]."""
    builder, valid, kept = lanes.builder, lanes.mask(panel.width), lanes.mask(panel.room)
    offsets = lanes.ramp(panel.along)

    def body(p, carried):
        source, target = carried
        lanes.store(lanes.gather(source, offsets, valid), target, kept)
        return [lanes.at(source, panel.down), lanes.at(target, panel.pitch)]

    loop(builder, panel.kb, [panel.source, panel.target], body)


def _transpose(lanes, panel, height, fetch):
    """target[p*pitch + r] = source[r*along + p]: height x lanes blocks, turned in registers; a line is read once."""
    builder, step, part = lanes.builder, I64(lanes.count), lanes.narrower(height)
    kept, none, nowhere = part.mask(panel.room), part.mask(I64(0)), lanes.mask(I64(0))
    last = builder.sub(panel.width, I64(1))

    def block(carried, masked):
        source, target, left = carried
        inside, rows = lanes.mask(left), []
        for r in range(height):
            row, mask = I64(r), None
            if masked:  # lanes that are masked off take 0.2 us where no memory is: rows end with the last that is there
                there = builder.icmp_signed("<", row, panel.width)
                row, mask = builder.select(there, row, last), builder.select(there, inside, nowhere)
            if fetch and not masked:  # the next panel's
                away = builder.mul(panel.along, builder.add(panel.pitch, row))
                lanes.prefetch(lanes.at(source, away), level=2)
            rows.append(lanes.load(lanes.at(source, builder.mul(panel.along, row)), mask))
        for r, row in enumerate(lanes.transpose(rows)):
            for p, column in zip(range(r, lanes.count, height), lanes.parts(row, height)):
                mask = builder.select(builder.icmp_signed("<", I64(p), left), kept, none) if masked else None
                part.store(column, lanes.at(target, builder.mul(panel.pitch, I64(p))), mask)
        return [lanes.at(source, step), lanes.at(target, builder.mul(panel.pitch, step)), builder.sub(left, step)]

    short = builder.icmp_signed("<", panel.width, panel.room)
    whole = builder.icmp_signed(">=", builder.select(short, panel.width, panel.room), I64(height))
    fast = builder.select(whole, builder.udiv(panel.kb, step), I64(0))
    carried = loop(builder, fast, [panel.source, panel.target, panel.kb], lambda index, carried: block(carried, False))
    blocks = builder.sub(builder.udiv(builder.add(panel.kb, I64(lanes.count - 1)), step), fast)
    loop(builder, blocks, carried, lambda index, carried: block(carried, True))


def _rows(side: str):
    """The intrinsic that copies `rows` steps of k into all panels at once, for a source contiguous across the panels.

    Memory is read in order, a row from end to end; a panel at a time would touch a page for every step of k.
    """

    def emit(context, builder, tile, arg):
        pitch, pieces, vectors = getattr(tile, side), [], Lanes(builder, tile.dtype, tile.lanes)
        while (first := sum(each.count for each in pieces)) < pitch:
            vectors = vectors.narrower(min(vectors.count, 1 << (pitch - first).bit_length() - 1))
            pieces.append(vectors)
        firsts = list(itertools.accumulate((each.count for each in pieces), initial=0))[:-1]
        pointer = ELEMENT[tile.dtype].as_pointer()
        source, down, width, rows, target, kb = arg.values()
        panels, rest = builder.udiv(width, I64(pitch)), builder.urem(width, I64(pitch))
        away = builder.mul(kb, I64(pitch))  # from a panel to the next
        masks = [lanes.mask(builder.sub(rest, I64(first))) for first, lanes in zip(firsts, pieces)]

        def copy(source, target, steps, masks):
            for u, (first, lanes, mask) in itertools.product(range(steps), zip(firsts, pieces, masks)):
                place = lanes.at(lanes.at(source, builder.mul(down, I64(u))), first)
                if first * tile.itemsize % LINE == 0:
                    lanes.prefetch(lanes.at(place, builder.mul(down, I64(steps))), level=2)
                lanes.store(lanes.load(place, mask), lanes.at(target, u * pitch + first))

        def turn(steps):
            def row(index, carried):
                def panel(index, carried):
                    copy(*carried, steps, [None] * len(pieces))
                    return [vectors.at(carried[0], pitch), vectors.at(carried[1], away)]

                last = loop(builder, panels, carried, panel)
                with builder.if_then(builder.icmp_signed(">", rest, I64(0))):
                    copy(*last, steps, masks)
                source, target = carried
                return [vectors.at(source, builder.mul(down, I64(steps))), vectors.at(target, steps * pitch)]

            return row

        carried = [builder.inttoptr(source, pointer), builder.inttoptr(target, pointer)]
        carried = loop(builder, builder.udiv(rows, I64(ROWS)), carried, turn(ROWS))
        loop(builder, builder.urem(rows, I64(ROWS)), carried, turn(1))

    return on_tile(f"pack_rows_{side}", "source:p down:i width:i rows:i target:p kb:i", emit)


pack_rows_a, pack_rows_b = _rows("mr"), _rows("nr")


def _packer(fetches: bool):
    """The function that packs a panel; `fetches`: what is turned asks for the panel after it."""

    def emit(context, builder, tile, arg):
        """In the way that the strides allow."""

        def call(way, *options):
            name = "_".join(map(str, ("pack" + way.__name__, tile.dtype, f"v{tile.lanes}", *options)))
            called(builder, tile, name, VECTOR, arg, inside, way, *options)

        def inside(builder, tile, arg, way, *options):
            way(Lanes(builder, tile.dtype, tile.lanes), SimpleNamespace(**arg), *options)

        def turn(height):
            """Blocks as low as the rows are few: 8x16 take 24 shuffles for 128 elements, 16x16 take 64."""
            if height == max(1, tile.lanes // 4):
                call(_transpose, height, fetches)
                return
            with builder.if_else(builder.icmp_signed("<=", arg["room"], I64(height // 2))) as (low, high):
                with low:
                    turn(height // 2)
                with high:
                    call(_transpose, height, fetches)

        with builder.if_else(builder.icmp_signed("==", arg["along"], I64(1))) as (unit, strided):
            with unit:
                call(_copy)
            with strided, builder.if_else(builder.icmp_signed("==", arg["down"], I64(1))) as (turned, general):
                with turned:
                    turn(tile.lanes)
                with general:
                    call(_gather)

    _pack_vector = on_tile("pack_vector", VECTOR, emit)  # up to tile.lanes rows of a panel

    @jit(forceinline=True)
    def pack(tile, source, along, down, width, kb, target, pitch):
        """One panel: `width` <= pitch valid rows (columns), kb steps; addresses in bytes, strides in elements."""
        first = 0
        while first < pitch:
            shift, rows = first * tile.itemsize, tile.lanes
            while rows > pitch - first:  # a whole vector's rows, half as many, ...: 6 of 8 would go by masks
                rows //= 2
            _pack_vector(tile, source + shift * along, along, down, kb, target + shift, pitch, width - first, rows)
            first += rows

    return pack


# Of few panels none comes next: what is asked for lies beyond the operand (16x16x20000 NT of f32 267 -> 240 us, Zen 3).
pack, pack_alone = _packer(True), _packer(False)
