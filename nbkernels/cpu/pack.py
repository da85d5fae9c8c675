"""Packing: a strided block of A or B becomes panels that the micro-kernel reads front to back.

A panel holds `pitch` rows of A (or columns of B) for kb steps of k: panel[p*pitch + r] = source[r*along + p*down] for
r < width and zero beyond, up to the pitch. Where the source is contiguous along r, vectors are copied;
where it is contiguous along p, lanes x lanes blocks are transposed in registers; other strides are gathered.
"""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from ..jit.cache import jit
from ..jit.vector import ELEMENT, I64, VOID, Lanes, loop

AHEAD = 16  # rows to prefetch: their distance in memory is beyond what the hardware follows


def _copy(lanes, source, along, down, kb, target, pitch, width, room):
    """target[p*pitch + r] = source[p*down + r]."""
    builder, valid, kept = lanes.builder, lanes.mask(width), lanes.mask(room)

    def body(p, carried):
        source, target = carried
        lanes.prefetch(lanes.at(source, builder.mul(down, I64(AHEAD))))
        lanes.store(lanes.load(source, valid), target, kept)
        return [lanes.at(source, down), lanes.at(target, pitch)]

    loop(builder, kb, [source, target], body)


def _gather(lanes, source, along, down, kb, target, pitch, width, room):
    """target[p*pitch + r] = source[p*down + r*along]."""
    builder, valid, kept = lanes.builder, lanes.mask(width), lanes.mask(room)
    offsets = lanes.ramp(along)

    def body(p, carried):
        source, target = carried
        lanes.store(lanes.gather(source, offsets, valid), target, kept)
        return [lanes.at(source, down), lanes.at(target, pitch)]

    loop(builder, kb, [source, target], body)


def _transpose(lanes, source, along, down, kb, target, pitch, width, room):
    """target[p*pitch + r] = source[r*along + p]: lanes x lanes blocks, turned in registers."""
    builder, kept, nowhere, step = lanes.builder, lanes.mask(room), lanes.mask(I64(0)), I64(lanes.count)

    def body(index, carried):
        source, target, left = carried
        inside, rows = lanes.mask(left), []
        for r in range(lanes.count):
            mask = builder.select(builder.icmp_signed("<", I64(r), width), inside, nowhere)
            rows.append(lanes.load(lanes.at(source, builder.mul(along, I64(r))), mask))
        for p, row in enumerate(lanes.transpose(rows)):
            mask = builder.select(builder.icmp_signed("<", I64(p), left), kept, nowhere)
            lanes.store(row, lanes.at(target, builder.mul(pitch, I64(p))), mask)
        return [lanes.at(source, step), lanes.at(target, builder.mul(pitch, step)), builder.sub(left, step)]

    blocks = builder.udiv(builder.add(kb, I64(lanes.count - 1)), step)
    loop(builder, blocks, [source, target, kb], body)


def _define(module: ir.Module, tile, way, lanes: int) -> ir.Function:
    """The LLVM function that packs one vector's width of a panel in the given way; defined once per module."""
    name = f"pack{way.__name__}_{tile.dtype}_v{lanes}"
    if name in module.globals:
        return module.globals[name]
    pointer = ELEMENT[tile.dtype].as_pointer()
    kind = ir.FunctionType(VOID, [pointer, I64, I64, I64, pointer, I64, I64, I64])
    function = ir.Function(module, kind, name)
    function.linkage = "internal"
    function.attributes.add("noinline")
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    way(Lanes(builder, tile.dtype, lanes), *function.args)
    builder.ret_void()
    return function


@intrinsic
def _pack_vector(typing, tile, source, along, down, kb, target, pitch, width, room):
    """Pack up to tile.lanes rows of a panel, in the way that the strides allow."""

    def emit(context, builder, signature, args):
        record, (source, along, down, kb, target, *rest) = signature.args[0].tile, args[1:]
        pointer = ELEMENT[record.dtype].as_pointer()
        values = [builder.inttoptr(source, pointer), along, down, kb, builder.inttoptr(target, pointer), *rest]

        def call(way, lanes=record.lanes):
            builder.call(_define(builder.module, record, way, lanes), values)

        # 8 rows of 16 lanes: a transpose of 8x8 blocks needs 24 shuffles for 64 elements, of 16x16 64 for 128.
        narrow = builder.icmp_signed("<=", rest[-1], I64(record.lanes // 2))
        with builder.if_else(builder.icmp_signed("==", along, I64(1))) as (unit, strided):
            with unit:
                call(_copy)
            with strided, builder.if_else(builder.icmp_signed("==", down, I64(1))) as (turned, general):
                with turned, builder.if_else(narrow) as (half, full):
                    with half:
                        call(_transpose, max(1, record.lanes // 2))
                    with full:
                        call(_transpose)
                with general:
                    call(_gather)
        return context.get_dummy_value()

    return types.void(tile, *[types.int64] * 8), emit


@jit(inline="always")
def pack(tile, source, along, down, width, kb, target, pitch):
    """One panel: `width` <= pitch valid rows (columns), kb steps; addresses in bytes, strides in elements."""
    for first in range(0, pitch, tile.lanes):
        shift = first * tile.itemsize
        _pack_vector(tile, source + shift * along, along, down, kb, target + shift, pitch, width - first, pitch - first)
