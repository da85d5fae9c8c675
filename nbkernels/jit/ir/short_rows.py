"""Elements of rows that do not touch, side by side: as a vector, or short rows end to end in a buffer."""

from __future__ import annotations

import functools

from llvmlite import ir

from ..compile.routine import ir_function
from .turn import singles
from .vector import I32, I64, LINE, Lanes, loop, masked

NEAR = 4  # elements between neighbours, at most, that vectors reach


def picked(vectors: Lanes, start, n: int, left=None, scope=None):
    """The elements start[0], start[n], start[2*n] ... as a vector of their bits, out of |n| vectors in memory.

    The last of these ends with the last element, so nothing beyond is read; if only `left` elements are there, nothing
    but them and what is between them. `scope`: of what a store does not overlap.
    """
    builder, lanes, mask = vectors.builder, vectors.count, None
    size = (lanes - 1) * abs(n) + 1
    places = [i * n if n > 0 else size - 1 + i * n for i in range(lanes)]
    first = builder.gep(start, [I64(-places[0])])
    result = ir.Constant(vectors.type, ir.Undefined)
    for at in [lanes * k for k in range(abs(n) - 1)] + [size - lanes]:
        if left is not None:
            reach = vectors.splat(builder.mul(builder.sub(left, I64(1)), I64(abs(n))))  # of the last from the first
            far = ir.Constant(reach.type, [abs(at + i - places[0]) for i in range(lanes)])
            mask = builder.icmp_signed("<=", far, reach)
        piece = builder.bitcast(builder.gep(first, [I64(at)]), vectors.element.as_pointer())
        value = vectors.load(piece, mask)
        if scope and mask is None:
            value.set_metadata("noalias", scope)
        chosen = [lanes + x - at if at <= x < at + lanes else i for i, x in enumerate(places)]
        result = builder.shuffle_vector(result, value, ir.Constant(ir.VectorType(I32, lanes), chosen))
    return result


@functools.cache
def gatherer(width: int) -> int:
    """Address of void(source, row_step, step, target, rows, columns): target[j*columns + i] = source[j, i].

    Items of `width` bytes, moved as integers; up to a line beyond the last row is overwritten. Rows that fit in half a
    line or a line, of elements that are near, go as vectors, others one by one.
    """

    def emit(context, builder, source, row_step, step, target, rows, columns):
        end, pitch = builder.append_basic_block("end"), builder.mul(columns, I64(width))

        def near(n, lanes):
            """Rows of elements n apart."""
            vectors = Lanes(builder, f"int{8 * width}", lanes)

            def row(j, _):
                at, to = (
                    builder.inttoptr(builder.add(first, builder.mul(j, apart)), vectors.element.as_pointer())
                    for first, apart in ((source, row_step), (target, pitch))
                )
                vectors.store(picked(vectors, at, n, columns), to)
                return []

            loop(builder, rows, [], row)
            builder.branch(end)

        for lanes in (LINE // 2 // width, LINE // width) if masked(width) else ():
            longer = builder.append_basic_block("longer")
            short = builder.icmp_signed("<=", columns, I64(lanes))
            switch = builder.switch(builder.select(short, step, I64(-1 << 62)), longer)
            for n in range(-NEAR, NEAR + 1):
                block = builder.append_basic_block("near")
                switch.add_case(I64(n * width), block)
                builder.position_at_end(block)
                near(n, lanes)
            builder.position_at_end(longer)
        read, write = (source, row_step, step), (target, pitch, I64(width))
        singles(builder, ir.IntType(8 * width), rows, columns, read, write)
        builder.branch(end)
        builder.position_at_end(end)

    return ir_function(emit, "source row_step step target rows columns", f"gather_{width}").address
