"""C = activation(beta*X + alpha*sum), from a thread's chains, 16 bytes at a time where C's layout allows.

Lanes that stand side by side store side by side, so that whole sectors are written. alpha comes first: a chain that
only goes through a product is free of the order in which 16-byte stores want registers, and then the main loop meets
fewer register banks twice.
"""

from __future__ import annotations

import functools

from numba import cuda, types

from ..kernels.chain import activation, ending, word
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
    """finish(sums, thread, c, x, row, column, m, n, beta, alpha, reads_x): C and X are (pointer, strides of rows and
    columns, place of the item's first element); the tile's first element is at (row, column) of m x n."""
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
    DOUBLE, ACTIVE, activate = config.matrix, bool(variant.activation), activation(variant.activation, kind)
    _, shift, *_ = chains(step, WARP * config.warps)
    (scale, _, blend, write), at = ending(kind), lanes(variant)

    @primitive(types.none, ARRAY, I64)
    def store(builder, line, address):
        ptx.store_global(builder, kind.word, address, 0, read(builder, line, 0, WORDS))

    @inlined
    def finish(sums, thread, c, x, row, column, m, n, beta, alpha, reads_x):
        line = cuda.local.array(WORDS, WORD)
        i, j, p = at(thread)
        first = column + (thread // WARP % ACROSS * WN + 2 * p if DOUBLE else j)
        for group in range(GROUPS):
            for q in range(GROUP):
                scale(sums, q, alpha)
            above = row + i + group // INNER * OUTER + group % INNER
            for h in range(COUNT):
                r, q = above + h % ROWS * 8, first + h // ROWS * STEP
                if r < m and q < n:
                    for e in range(WORDS):
                        line[e] = sums[h * WORDS + e]
                    place, place_x = c[3] + r * c[1] + q * c[2], x[3] + r * x[1] + q * x[2]
                    for e in range(WIDTH):
                        if TOGETHER or q + e < n:
                            if reads_x:
                                blend(line, e, beta, x[0], place_x + e * x[2])
                            if ACTIVE:
                                line[e] = WORD(activate(line[e]))
                            if not TOGETHER:
                                write(line, e, alpha, c[0], place + e * c[2])
                    if TOGETHER:
                        store(line, ptx.address(c[0]) + place * SIZE)
            shift(sums)

    return finish
