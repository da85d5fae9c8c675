"""Short rows of a strided array end to end in a buffer, a vector of each row at once."""

from __future__ import annotations

import functools

from llvmlite import ir

from ..compile.routine import ir_function
from .vector import I32, I64, LINE, Lanes, loop, masked

NEAR = 4  # elements between neighbours, at most, that vectors reach


@functools.cache
def gatherer(width: int) -> int:
    """Address of void(source, row_step, step, target, rows, columns): target[j*columns + i] = source[j, i].

    Items of `width` bytes, moved as integers; up to a line beyond the last row is overwritten.
    """

    def emit(context, builder, *args):
        _Emitter(builder, width, *args).rows()

    return ir_function(emit, "source row_step step target rows columns", f"gather_{width}").address


class _Emitter:
    def __init__(self, builder, width, source, row_step, step, target, rows, columns):
        self.builder, self.width, self.element = builder, width, ir.IntType(8 * width)
        self.source, self.row_step, self.step = source, row_step, step
        self.target, self.count, self.columns = target, rows, columns

    def rows(self):
        """As vectors of half a line or a line where a row fits in one and its elements are near, else one by one."""
        builder, end = self.builder, self.builder.append_basic_block("end")
        single = builder.append_basic_block("single")
        for lanes in (LINE // 2 // self.width, LINE // self.width) if masked(self.width) else ():
            longer = builder.append_basic_block("longer")
            short = builder.icmp_signed("<=", self.columns, I64(lanes))
            switch = builder.switch(builder.select(short, self.step, I64(-1 << 62)), longer)
            for n in range(-NEAR, NEAR + 1):
                block = builder.append_basic_block("near")
                switch.add_case(I64(n * self.width), block)
                builder.position_at_end(block)
                self.near(n, lanes)
                builder.branch(end)
            builder.position_at_end(longer)
        builder.branch(single)
        builder.position_at_end(single)
        self.singles()
        builder.branch(end)
        builder.position_at_end(end)

    def near(self, n, lanes):
        """Rows of elements n apart: the vectors that they lie in, masked where the row ends, and one permutation."""
        builder, far = self.builder, abs(n)
        vectors, pieces = Lanes(builder, f"int{8 * self.width}", lanes), max(1, far)
        spare = builder.mul(builder.sub(I64(lanes), self.columns), I64(far))  # elements that a shorter row leaves
        if n < 0:
            first, places = builder.sub(self.source, I64((lanes - 1) * far * self.width)), range(lanes - 1, -1, -1)
            outside, least = "<", spare
        else:
            first, places = self.source, range(lanes)
            outside, least = ">", builder.sub(I64((lanes - 1) * far), spare)
        places = [i * far for i in places]
        masks = []
        for k in range(pieces):
            iota = ir.Constant(ir.VectorType(I64, lanes), list(range(k * lanes, (k + 1) * lanes)))
            masks.append(builder.not_(builder.icmp_signed(outside, iota, vectors.splat(least))))

        def row(j, _):
            at = builder.add(first, builder.mul(j, self.row_step))
            value = ir.Constant(vectors.type, ir.Undefined)
            for k, mask in enumerate(masks):
                piece = vectors.load(self.pointer(builder.add(at, I64(k * lanes * self.width))), mask)
                chosen = [lanes + x - k * lanes if x // lanes == k else i for i, x in enumerate(places)]
                value = builder.shuffle_vector(value, piece, ir.Constant(ir.VectorType(I32, lanes), chosen))
            to = builder.add(self.target, builder.mul(builder.mul(j, self.columns), I64(self.width)))
            vectors.store(value, self.pointer(to))
            return []

        loop(builder, self.count, [], row)

    def pointer(self, address):
        return self.builder.inttoptr(address, self.element.as_pointer())

    def singles(self):
        """Elements one by one."""
        builder = self.builder

        def row(j, _):
            at = builder.add(self.source, builder.mul(j, self.row_step))
            to = builder.add(self.target, builder.mul(builder.mul(j, self.columns), I64(self.width)))

            def column(i, _):
                value = builder.load(self.pointer(builder.add(at, builder.mul(i, self.step))), align=1)
                builder.store(value, self.pointer(builder.add(to, builder.mul(i, I64(self.width)))), align=1)
                return []

            loop(builder, self.columns, [], column)
            return []

        loop(builder, self.count, [], row)
