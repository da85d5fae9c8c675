"""Products by a matrix unit (jit/ir/amx.py): panels in the shape of its tiles, and the micro-kernel.

A panel of A is, for each 64 bytes of k, mr rows of 64 bytes; one of B, for the same k, 16 rows of 4 bytes of k for each
of nr columns. Beyond k both are zero. Whole tiles of an A whose rows are contiguous are read in place. The micro-kernel
is the packed path's, of 32x32: two tiles of A, two of B, four of C. At C's bottom edge tiles of A and C have as many
rows as are left: the unit takes a cycle for each. Fewer columns than 16 take as long as 16, and C gets a part of them.
"""

from __future__ import annotations

import functools

from llvmlite import ir

from ...jit.compile.routine import routine
from ...jit.ir.amx import BYTES, ROW, ROWS, unit
from ...jit.ir.chain import Chain
from ...jit.ir.emit import emitted
from ...jit.ir.vector import ELEMENT, I64, VOID, Lanes, loop, opaque, switch
from .blocking import PANEL, Tiles
from .store import PARTIAL, PLAIN

WORD = 4  # bytes of k of a column of B that lie together
SIDE = 2 * ROWS  # rows and columns of C in registers
LEFT, RIGHT = (4, 5), (6, 7)  # the tiles of A and B; those of C, by rows, are before them


def configured(height: int) -> tuple[int, ...]:
    """Rows of the eight tiles where C has `height` rows.

    >>> configured(32), configured(19)
    ((16, 16, 16, 16, 16, 16, 16, 16), (16, 16, 3, 3, 16, 3, 16, 16))
    """
    first, second = min(height, ROWS), max(1, height - ROWS)  # of a second one that is in use
    return first, first, second, second, first, second, ROWS, ROWS


def tiles(items: int, l2: int) -> Tiles:
    """How products are cut, for words of so many elements: a block of B takes half of L2.

    >>> print(tiles(4, 2 << 20))
    32x32 kc=4096 nb=256 mc=4096 nc=4096
    """
    # Panels stream from L2 as fast as they are multiplied, and a tile of C that waits in memory costs as much as 1 KiB
    # of k (speeds over those of 1 KiB, which fits L1, one thread: bfloat16 of 2048 1.33, int8 1.22, 2026-11).
    nb = max(SIDE, l2 // 2 // PANEL // SIDE * SIDE)
    return Tiles(SIDE, SIDE, PANEL * items // WORD, nb, 4096, max(nb, 4096 // nb * nb))


def micro_kernel(builder, tile, arg, mr: int, nv: int) -> None:
    """The LLVM function of the tile's first mr rows and nv vectors of columns, with the arguments of microkernel.py.

    Where C has fewer columns than its tiles, or other elements, they go through memory. The unit is configured for mr.
    """
    kind = tile.kind
    engine, ops, tall = unit(kind.a)(builder, configured(mr)), Chain(builder, kind, tile.lanes), -(-mr // ROWS)
    cells = [(i, j) for i in range(tall) for j in range(nv)]
    last = builder.sub(arg["width"], I64((nv - 1) * tile.lanes))
    chain = ELEMENT[kind.chain]
    square = builder.bitcast(builder.alloca(ir.ArrayType(chain, tile.mr * tile.nr)), chain.as_pointer())
    whole = builder.icmp_signed("==", last, I64(tile.lanes))

    def each(matrix, stride, do):
        """Load or store the tiles of C, at a matrix of chains."""
        start, stride = builder.bitcast(matrix, BYTES), builder.mul(stride, I64(tile.size_t))
        for i, j in cells:
            do(2 * i + j, builder.gep(start, [builder.add(builder.mul(stride, I64(i * ROWS)), I64(j * ROW))]), stride)

    def rows(do):
        """do(place(matrix, stride), mask(dtype)) for every row and vector: where it is in a matrix, and which of its
        elements are there."""

        def row(i, _):
            for j in range(nv):

                def place(matrix, stride, j=j):
                    return builder.gep(matrix, [builder.add(builder.mul(i, stride), I64(j * tile.lanes))])

                do(place, lambda dtype, j=j: ops.mask(last, dtype) if j == nv - 1 else None)
            return []

        loop(builder, I64(mr), [], row)

    def resumed(place, mask):
        ops.store(ops.load(place(arg["t"], arg["rst"]), mask(kind.chain)), place(square, I64(tile.nr)))

    with builder.if_else(builder.icmp_signed("==", arg["start"], I64(0))) as (begins, resumes):
        with begins:
            for i, j in cells:
                engine.zero(2 * i + j)
        with resumes, builder.if_else(whole) as (direct, cut):
            with direct:
                each(arg["t"], arg["rst"], engine.load)
            with cut:
                rows(resumed)
                each(square, I64(tile.nr), engine.load)

    partial, plain = (builder.icmp_signed("==", arg["stop"], I64(stop)) for stop in (PARTIAL, PLAIN))
    to, stride = arg["c"], arg["rsc"]
    if kind.direct:
        to, stride = builder.select(partial, arg["t"], to), builder.select(partial, arg["rst"], stride)
    lines = Lanes(builder, kind.out, 1)

    def step(index, carried):
        a, b = carried
        for q in range(2):  # the next tile of C comes nearer meanwhile, two rows each turn
            row = builder.add(builder.mul(index, I64(2)), I64(q))
            row = builder.select(builder.icmp_signed("<", row, I64(mr)), row, I64(mr - 1))
            following = builder.gep(to, [builder.mul(row, stride)])
            for j in range(nv, 2 * nv):
                lines.prefetch(builder.gep(following, [I64(j * tile.lanes)]), write=True)
        for i in range(tall):
            engine.load(LEFT[i], builder.gep(a, [builder.mul(arg["rsa"], I64(i * ROWS))]), arg["rsa"])
        for j in range(nv):
            engine.load(RIGHT[j], builder.gep(b, [I64(j * ROW)]), I64(tile.nr * WORD))
        for i, j in cells:
            engine.dot(kind.a, kind.b, 2 * i + j, LEFT[i], RIGHT[j])
        return [builder.gep(a, [arg["csa"]]), builder.gep(b, [I64(tile.nr * ROW)])]

    loop(builder, arg["kb"], [builder.bitcast(arg[side], BYTES) for side in "ab"], step)

    ends = builder.or_(partial, plain) if kind.direct else partial
    with builder.if_else(builder.and_(whole, ends)) as (direct, converted):
        with direct:
            each(*((to, stride) if kind.direct else (arg["t"], arg["rst"])), engine.store)
        with converted:
            each(square, I64(tile.nr), engine.store)
            _converted(builder, ops, arg, rows, lambda place: ops.load(place(square, I64(tile.nr))), partial, plain)
    builder.ret_void()


def _converted(builder, ops, arg, rows, chain, partial, plain) -> None:
    """What the stops ask for, of chains that wait in memory, row by row."""
    alpha, beta, kind = ops.splat(arg["alpha"]), ops.splat(arg["beta"]), ops.kind

    def unfinished(place, mask):
        ops.store(chain(place), place(arg["t"], arg["rst"]), mask(kind.chain))

    def finished(place, mask):
        ops.write(chain(place), place(arg["c"], arg["rsc"]), mask(kind.out))

    def blended(place, mask):
        x = ops.read(place(arg["x"], arg["rsx"]), mask(kind.out))
        ops.write(ops.blend(beta, x, ops.scale(alpha, chain(place))), place(arg["c"], arg["rsc"]), mask(kind.out))

    with builder.if_else(partial) as (waits, ends):
        with waits:
            rows(unfinished)
        with ends, builder.if_else(plain) as (alone, added):
            with alone:
                rows(finished)
            with added:
                rows(blended)


def _lines(chain, source, along, down, kb, target, width, pitch) -> None:
    """Rows of A that are contiguous along k."""
    builder, words, items = chain.builder, chain.words, I64(ROWS * chain.kind.items)
    blocks = builder.udiv(builder.add(kb, builder.sub(items, I64(1))), items)

    def row(r, _):
        def block(index, carried):
            start, to, left = carried
            words.store(chain.along("a", start, left)[0], to)
            return [builder.gep(start, [items]), words.at(to, ROWS * pitch), builder.sub(left, items)]

        start = builder.gep(source, [builder.mul(along, r)])
        loop(builder, blocks, [start, words.at(target, builder.mul(r, I64(ROWS))), kb], block)
        return []

    loop(builder, width, [], row)


def _turned(chain, source, along, down, kb, target, width, pitch, beside: bool) -> None:
    """Rows of A with any strides, 16 at a time: words of each step of k, which lie where the panel comes, and are
    turned there. `beside`: the rows' elements of a step are neighbours."""
    builder, words, group = chain.builder, chain.words, chain.kind.items
    blocks = builder.udiv(builder.add(kb, I64(ROWS * group - 1)), I64(ROWS * group))

    def piece(r, _):
        first = builder.mul(r, I64(ROWS))
        rows = builder.sub(width, first)

        def block(index, carried):
            start, to, left = carried

            def word(w, carried):  # of each of 16 rows
                start, left = carried
                steps = iter(range(group))

                def load(lanes, address):
                    inside = builder.icmp_signed(">", left, I64(next(steps)))
                    there = lanes.mask(builder.select(inside, rows, I64(0)))
                    return lanes.load(address, there) if beside else lanes.gather(address, lanes.ramp(along), there)

                items = [builder.gep(start, [builder.mul(down, I64(q))]) for q in range(group)]
                words.store(chain.across("a", items, load)[0], words.at(to, builder.mul(w, I64(ROWS))))
                return [builder.gep(start, [builder.mul(down, I64(group))]), builder.sub(left, I64(group))]

            trips = opaque(builder, I64(ROWS))  # unrolled they take 3 s to compile
            start, left = loop(builder, trips, [start, left], word)
            lines = [words.at(to, i * ROWS) for i in range(ROWS)]
            for line, address in zip(words.transpose([words.load(each) for each in lines]), lines):
                words.store(line, address)
            return [start, words.at(to, ROWS * pitch), left]

        start = builder.gep(source, [builder.mul(along, first)])
        loop(builder, blocks, [start, words.at(target, builder.mul(r, I64(ROWS * ROWS))), kb], block)
        return []

    loop(builder, builder.udiv(builder.add(width, I64(ROWS - 1)), I64(ROWS)), [], piece)


def _panel(builder, tile, q):
    given = Chain(builder, tile.kind, tile.lanes), q.source, q.along, q.down, q.kb, q.target, q.width, tile.mr
    with builder.if_else(builder.icmp_signed("==", q.down, I64(1))) as (by_rows, others):
        with by_rows:
            _lines(*given)
        with others, builder.if_else(builder.icmp_signed("==", q.along, I64(1))) as (by_columns, strided):
            with by_columns:
                _turned(*given, beside=True)
            with strided:
                _turned(*given, beside=False)


# A panel of A: `width` <= mr rows, kb steps; strides in elements.
panel_a = emitted("panel_a", "source:a along:i down:i width:i kb:i target:p", _panel)


@functools.cache
def brackets(dtype: str) -> int:
    """void(height): what a thread calls before a micro-kernel of another height than its last one, and, with 0, after
    the last one of a product."""

    def define(module, name):
        function = ir.Function(module, ir.FunctionType(VOID, [I64]), name)
        builder = ir.IRBuilder(function.append_basic_block("entry"))

        def emit(height):
            engine = unit(dtype)(builder, configured(height))
            engine.begin() if height else engine.end()

        switch(builder, [(function.args[0], SIDE + 1)], emit)
        builder.ret_void()

    return routine(f"{unit(dtype).name}_brackets", define)
