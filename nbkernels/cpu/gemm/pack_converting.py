"""Packing with conversion: as pack.py, for operands that are not held in panels as they lie in memory.

A panel holds words: one element converted to the chain's dtype, or `items` neighbours in k, zero beyond kb. Complex
numbers take two lines of the pitch a step, real and imaginary.
"""

from __future__ import annotations

from types import SimpleNamespace

from ...jit.abi.address import clear
from ...jit.compile.lazy import OPTIONS, jit, overload
from ...jit.ir.chain import Chain
from ...jit.ir.emit import called, on_tile
from ...jit.ir.kind import UNIT
from ...jit.ir.vector import I64, loop, width_bits
from .matrix_unit import panel_a
from .microkernel import APART
from .pack import VECTOR, pack


def _put(chain, planes, target, pitch, kept):
    for i, plane in enumerate(planes):
        chain.words.store(plane, chain.words.at(target, chain.builder.mul(pitch, I64(i))), kept)


def _whole_steps(chain, rows, panel, group):
    """Groups of steps at the start of a panel whose vectors are stored whole: below 512 bits masks are dear. Vectors of
    fewer `rows` than lanes run over into the next line, which is stored later; so the last is not among these."""
    builder = chain.builder
    if width_bits() == 512:
        return I64(0)
    over, whole = I64(int(rows < chain.count)), builder.icmp_signed(">=", panel.room, I64(rows))
    whole = builder.and_(whole, builder.icmp_signed(">=", panel.width, I64(rows)))
    return builder.select(whole, builder.udiv(builder.sub(panel.kb, over), I64(group)), I64(0))


def _rowwise(chain, operand, rows, panel, load):
    """A word for each step: the items in it are `down` apart. load(lanes, address, p): mask if p is within kb. The
    first words are stored without a mask."""
    whole = _whole_steps(chain, rows, panel, chain.kind.items)
    words, builder, group, kept = chain.words, chain.builder, chain.kind.items, chain.words.mask(panel.room)
    line = builder.mul(panel.pitch, I64(chain.kind.planes))

    def turn(items, kept=kept):
        def body(index, carried):
            source, target = carried
            words.prefetch(words.at(source, builder.mul(panel.down, I64(APART))))
            addresses = [words.at(source, builder.mul(panel.down, I64(q))) for q in range(group)]
            places = iter(range(group))
            planes = chain.across(operand, addresses, lambda lanes, address: load(lanes, address, next(places), items))
            _put(chain, planes, target, panel.pitch, kept)
            return [words.at(source, builder.mul(panel.down, I64(group))), words.at(target, line)]

        return body

    carried = [panel.source, panel.target]
    if width_bits() < 512:
        carried = loop(builder, whole, carried, turn(None, None))
    carried = loop(builder, builder.sub(builder.udiv(panel.kb, I64(group)), whole), carried, turn(None))
    if group > 1:  # the last word's items that are there
        rest = builder.urem(panel.kb, I64(group))
        loop(builder, builder.zext(builder.icmp_signed(">", rest, I64(0)), I64), carried, turn(rest))


def _copy(chain, operand, rows, panel):
    """target[p*pitch + r] = source[p*down + r]."""
    builder, dtype = chain.builder, getattr(chain.kind, operand)
    valid = chain.mask(panel.width, dtype)

    def load(lanes, address, q, items):
        there = valid if items is None else chain.mask(_if(builder, q, items, panel.width), dtype)
        return lanes.load(address, there)

    _rowwise(chain, operand, rows, panel, load)


def _gather(chain, operand, rows, panel):
    """target[p*pitch + r] = source[p*down + r*along]."""
    builder = chain.builder

    def load(lanes, address, q, items):
        parts = lanes.count // chain.count
        there = panel.width if items is None else _if(builder, q, items, panel.width)
        mask = lanes.mask(builder.mul(there, I64(parts)))
        return lanes.gather(address, lanes.ramp(panel.along, parts), mask)

    _rowwise(chain, operand, rows, panel, load)


def _if(builder, q, items, width):
    """width where item q is one of the `items` that are there, else 0."""
    return builder.select(builder.icmp_signed("<", I64(q), items), width, I64(0))


def _transpose(chain, operand, rows, panel):
    """target[p*pitch + r] = source[r*along + p]: lanes x lanes blocks, turned in registers; `rows` in a whole one."""
    builder, words, nowhere = chain.builder, chain.words, chain.words.mask(I64(0))
    kept, step, items = words.mask(panel.room), I64(words.count), I64(words.count * chain.kind.items)
    line = builder.mul(panel.pitch, I64(chain.kind.planes))
    group = I64(chain.kind.items)

    def turn(whole):
        def body(index, carried):
            source, target, left = carried
            lines = []
            for r in range(rows if whole else words.count):
                there = None if whole else builder.select(builder.icmp_signed("<", I64(r), panel.width), left, I64(0))
                lines.append(chain.along(operand, words.at(source, builder.mul(panel.along, I64(r))), there))
            lines += lines[:1] * (words.count - len(lines))  # stored, and stored over
            turned = zip(*(words.transpose([line[i] for line in lines]) for i in range(chain.kind.planes)))
            for p, planes in enumerate(turned):
                within = builder.icmp_signed("<", builder.mul(I64(p), group), left)
                mask = None if whole else builder.select(within, kept, nowhere)
                _put(chain, planes, words.at(target, builder.mul(line, I64(p))), panel.pitch, mask)
            return [words.at(source, items), words.at(target, builder.mul(line, step)), builder.sub(left, items)]

        return body

    whole = _whole_steps(chain, rows, panel, words.count * chain.kind.items)
    carried = [panel.source, panel.target, panel.kb]
    if width_bits() < 512:
        carried = loop(builder, whole, carried, turn(True))
    blocks = builder.udiv(builder.add(panel.kb, builder.sub(items, I64(1))), items)
    loop(builder, builder.sub(blocks, whole), carried, turn(False))


def _packer(operand: str):
    """The intrinsic that packs up to tile.lanes rows of a panel, in the way that the strides allow."""
    arguments = VECTOR.replace("source:p", f"source:{operand}")

    def emit(context, builder, tile, arg):
        def call(way, lanes=tile.lanes):
            name = f"pack{way.__name__}_{tile.kind}_{operand}_v{lanes}"
            called(builder, tile, name, arguments, arg, inside, way, lanes)

        def inside(builder, tile, arg, way, lanes):
            high = tile.mr if operand == "a" else tile.nr
            way(Chain(builder, tile.kind, lanes), operand, min(high, lanes), SimpleNamespace(**arg))

        def halves(way):
            with builder.if_else(narrow) as (half, full):
                with half:
                    call(way, max(1, tile.lanes // 2))
                with full:
                    call(way)

        narrow = builder.icmp_signed("<=", arg["room"], I64(tile.lanes // 2))
        with builder.if_else(builder.icmp_signed("==", arg["along"], I64(1))) as (unit, strided):
            with unit:
                if width_bits() == 512:
                    call(_copy)
                else:
                    halves(_copy)
            with strided, builder.if_else(builder.icmp_signed("==", arg["down"], I64(1))) as (turned, general):
                with turned:  # 8 rows of 16 lanes: blocks of 8x8 need 24 shuffles for 64 elements, of 16x16 64 for 128
                    halves(_transpose)
                with general:
                    call(_gather)

    return on_tile(f"pack_{operand}", arguments, emit)


_pack_a, _pack_b = _packer("a"), _packer("b")


def _of_head(context, builder, tile, arg):
    chain = Chain(builder, tile.kind, tile.lanes)
    words, offset = chain.words, chain.offset()
    panel = builder.inttoptr(arg["panel"], words.element.as_pointer())
    for first in range(0, tile.nr * tile.head, tile.lanes):

        def body(p, carried):
            at, sums = carried
            return [words.at(at, tile.nr), *chain.step(offset, [words.load(at)], [sums])]

        start = words.at(panel, tile.nr + first)
        _, sums = loop(builder, arg["steps"], [start, words.zero], body)
        words.store(builder.neg(sums), words.at(panel, first))


# Before a panel of B, if its kind asks for it: what chains begin with, the product with A's offset taken away.
_head = on_tile("pack_head", "panel:p steps:i", _of_head)


@jit(forceinline=True)
def _convert_a(tile, source, along, down, width, kb, target):
    for first in range(0, tile.mr, tile.lanes):
        start, place = source + first * along * tile.size_a, target + first * tile.itemsize
        _pack_a(tile, start, along, down, kb, place, tile.mr, width - first, tile.mr - first)


@jit(forceinline=True)
def _convert_b(tile, source, along, down, width, kb, target):
    body = target + tile.head * tile.nr * tile.itemsize
    for first in range(0, tile.nr, tile.lanes):
        start, place = source + first * along * tile.size_b, body + first * tile.itemsize
        _pack_b(tile, start, along, down, kb, place, tile.nr, width - first, tile.nr - first)
    _head(tile, target, (kb + tile.group - 1) // tile.group)
    if tile.group > tile.items:  # up to what a matrix unit takes
        done, words = (kb + tile.items - 1) // tile.items, tile.group // tile.items
        rest = (kb + tile.group - 1) // tile.group * words - done
        clear(body + done * tile.nr * tile.itemsize, rest * tile.nr * tile.itemsize)


def pack_a(tile, source, along, down, width, kb, target):
    """A panel of A: `width` <= mr valid rows, kb steps; addresses in bytes, strides in elements."""


def pack_b(tile, source, along, down, width, kb, target):
    """A panel of B: `width` <= nr valid columns, kb steps, after its head where the kind has one."""


def _by_kind(stub, side, other, unit):
    """Let `stub` copy where panels hold elements as memory does, call `unit` for a matrix unit, else `other`."""

    @overload(stub, **OPTIONS)
    def choose(tile, p, q, r, s, t, u):
        kind, pitch = tile.tile.kind, getattr(tile.tile, side)
        if kind.same:
            return lambda tile, p, q, r, s, t, u: pack(tile, p, q, r, s, t, u, pitch)
        way = unit if kind.way == UNIT else other
        return lambda tile, p, q, r, s, t, u: way(tile, p, q, r, s, t, u)


_by_kind(pack_a, "mr", _convert_a, panel_a)
_by_kind(pack_b, "nr", _convert_b, _convert_b)
