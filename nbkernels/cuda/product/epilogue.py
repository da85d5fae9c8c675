"""C = function(beta*X + alpha*sum), from a thread's chains, 16 bytes at a time where C's layout allows.

Lanes that stand side by side store side by side, so that whole sectors are written. alpha comes first: a chain that
only goes through a product is free of the order in which 16-byte stores want registers, and then the main loop meets
fewer register banks twice.
"""

from __future__ import annotations

import functools

from numba import cuda, types

from ..kernels.chain import ended, ending, word
from ..kernels.elements import writing
from ..kernels.functions import inlined
from . import ptx
from .atom import chains, read
from .config import WARP
from .layout import part, pieces
from .mainloop import atom_of, lanes
from .ptx import ARRAY, primitive
from .variant import Variant

I64 = types.int64


@functools.cache
def epilogue(variant: Variant):
    """finish(sums, thread, c, x, row, column, sizes, beta, alpha, ends): C and X are (pointer, strides of rows and
    columns, place of the item's first element); the tile's first element is at (row, column) of the matrix whose sizes
    are (m, n, whether X is read). `ends` are what the function at the end reads, and the item."""
    config, kind, step = variant.config, variant.kind, atom_of(variant)
    layout, mine, WORD = pieces(config, kind.chain), part(config, kind.chain), word(kind)
    GROUPS, INNER, OUTER, COUNT = layout.groups, layout.inner, layout.outer, layout.count
    WIDTH, ROWS, STEP, PLANES, SIZE = layout.width, layout.rows, layout.step, kind.planes, variant.size
    WORDS, GROUP, TOGETHER, ACROSS, WN = (
        WIDTH * PLANES,
        layout.width * layout.count,
        variant.vector > 1,
        mine.across,
        mine.wn,
    )
    DOUBLE, ENDED, BEFORE = config.matrix, variant.end is not None, variant.end is not None and variant.end.before
    _, shift, *_ = chains(step, WARP * config.warps)
    (scale, _, blend, write), at, function = ending(kind), lanes(variant), ended(variant.end, kind)
    put = writing(variant.end.out[0] if variant.end else kind.out)

    @primitive(types.none, ARRAY, I64)
    def store(builder, line, address):
        ptx.store_global(builder, kind.word, address, 0, read(builder, line, 0, WORDS))

    @inlined
    def in_line(line, e, c, place, value):
        line[e] = WORD(value)

    @inlined
    def in_planes(line, e, c, place, value):
        line[2 * e], line[2 * e + 1] = value.real, value.imag

    @inlined
    def in_memory(line, e, c, place, value):
        put(c, place, value)

    keep = in_memory if not TOGETHER else in_planes if PLANES == 2 else in_line

    @inlined
    def finish(sums, thread, c, x, row, column, sizes, beta, alpha, ends):
        line, (m, n, reads_x) = cuda.local.array(WORDS, WORD), sizes
        i, j, p = at(thread)
        first = column + (thread // WARP % ACROSS * WN + 2 * p if DOUBLE else j)
        for group in range(GROUPS):
            left = ptx.again(first)
            for q in range(GROUP):
                scale(sums, q, alpha)
            above = row + i + group // INNER * OUTER + group % INNER
            for h in range(COUNT):
                r, q = above + h % ROWS * 8, left + h // ROWS * STEP
                if r < m and q < n:
                    for e in range(WORDS):
                        line[e] = sums[h * WORDS + e]
                    place, place_x = c[3] + r * c[1] + q * c[2], x[3] + r * x[1] + q * x[2]
                    for e in range(WIDTH):
                        if TOGETHER or q + e < n:
                            if reads_x:
                                blend(line, e, beta, x[0], place_x + e * x[2])
                            if BEFORE:
                                before, item = ends[0][0], ends[2]
                                write(line, e, alpha, before[0], item * before[3] + r * before[1] + (q + e) * before[2])
                            if ENDED:
                                keep(line, e, c[0], place + e * c[2], function(line, e, ends, r, q + e))
                            elif not TOGETHER:
                                write(line, e, alpha, c[0], place + e * c[2])
                    if TOGETHER:
                        store(line, ptx.address(c[0]) + place * SIZE)
            shift(sums)

    return finish
