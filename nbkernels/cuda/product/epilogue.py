"""C = beta*X + alpha*sum: a warp hands rows of its tile to shared memory and stores them along the rows of C.

So the stores of a warp are contiguous whatever a thread's part is, x is read through any strides, and the loop is one
piece of code, for any dtype. alpha comes first, in registers: a chain that only goes through a product is free of the
order in which 16-byte stores want registers, and then the main loop meets fewer register banks twice.
"""

from __future__ import annotations

import functools

from numba import cuda, types

from ..kernels.chain import ending, word
from ..kernels.functions import inlined
from . import ptx
from .atom import chains, write
from .config import WARP
from .layout import part, slab
from .mainloop import atom_of, lanes
from .ptx import ARRAY, primitive
from .variant import Variant

U32, I64 = types.uint32, types.int64


@functools.cache
def taker(variant: Variant):
    """take(line, address): the words of `vector` elements from shared memory."""
    word, count = variant.kind.word, variant.vector * variant.kind.planes

    @primitive(types.none, ARRAY, types.uint32)
    def take(builder, line, address):
        write(builder, line, ptx.load_shared(builder, word, count, address, 0))

    return take


@functools.cache
def storer(variant: Variant):
    """store(line, alpha, c, place): `vector` elements of C, 16 bytes of them at once where there are several."""
    kind, count = variant.kind, variant.vector * variant.kind.planes
    *_, one = ending(kind)

    @primitive(types.none, ARRAY, types.int64)
    def several(builder, line, address):
        values = [builder.load(ptx.element(builder, line, i)) for i in range(count)]
        ptx.store_global(builder, kind.word, address, 0, values)

    SIZE = variant.size

    @inlined
    def vectors(line, alpha, c, place):
        several(line, ptx.address(c) + place * SIZE)

    @inlined
    def single(line, alpha, c, place):
        one(line, 0, alpha, c, place)

    return vectors if variant.vector > 1 else single


@functools.cache
def epilogue(variant: Variant):
    """finish(sums, base, thread, c, x, row, column, m, n, beta, alpha, reads_x): C and X are (pointer, strides of rows
    and columns, place of item's first element); all threads of the tile have left the stages in shared memory."""
    config, kind, step = variant.config, variant.kind, atom_of(variant)
    mine, rows, WORD = part(config, kind.chain), slab(config, kind.chain), word(kind)
    GROUPS, GROUP, VECTOR = step.groups, step.chains // step.groups // kind.planes, variant.vector
    ACROSS, WM, WN, SIZE, BYTES = mine.across, mine.wm, mine.wn, variant.size, rows.bytes
    PIECES, STRIDE, INNER, OUTER, PITCH = rows.rows * WN // VECTOR, rows.stride, rows.inner, rows.outer, rows.pitch
    ALONG, LINE, DOUBLE = WN // VECTOR, variant.vector * kind.planes, config.matrix
    _, shift, unload, *_ = chains(step, WARP * config.warps)
    (scale, _, blend, _), take, store, at = ending(kind), taker(variant), storer(variant), lanes(variant)

    @inlined
    def finish(sums, base, thread, c, x, row, column, m, n, beta, alpha, reads_x):
        line, warp, lane = cuda.local.array(LINE, WORD), U32(thread // WARP), U32(thread % WARP)
        base = U32(base + warp * BYTES)
        row, column = row + warp // ACROSS * WM, column + warp % ACROSS * WN
        i, j, p = at(thread)
        i, j = U32(i % WM), U32(j % WN)
        mine = U32(base + i * PITCH + p * 2 * SIZE) if DOUBLE else U32(base + i // STRIDE * PITCH + j * SIZE)
        for group in range(GROUPS):
            for q in range(GROUP):
                scale(sums, q, alpha)
            unload(sums, mine)
            shift(sums)
            cuda.syncwarp()
            above = row + group // INNER * OUTER + group % INNER
            for piece in range(lane, U32(PIECES), U32(WARP)):
                r, q = piece // ALONG, piece % ALONG * VECTOR
                i_, j_ = above + r * STRIDE, column + q
                if i_ < m and j_ < n:
                    take(line, U32(base + r * PITCH + q * SIZE))
                    if reads_x:
                        for e in range(VECTOR):
                            blend(line, e, beta, x[0], x[3] + i_ * x[1] + (j_ + e) * x[2])
                    store(line, alpha, c[0], c[3] + i_ * c[1] + j_ * c[2])
            cuda.syncwarp()

    return finish
