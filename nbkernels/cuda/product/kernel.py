"""A kernel of a variant, put together: its body and its signature, for the compiler alone."""

from __future__ import annotations

from numba import cuda, types

from ..kernels.chain import matrix, parameters, word
from . import ptx
from .atom import chains
from .config import PIECE, SEGMENT, WARP
from .epilogue import epilogue
from .layout import shared
from .mainloop import atom_of, mainloop
from .schedule import schedule
from .variant import Variant

U32, I64 = types.uint32, types.int64


def make(variant: Variant):
    """(body, signature) of

        gemm(sizes, c, x, a, b, work, beta, alpha, ends)

    sizes: m, n, k, items of the batch, whether x is read. c, x, a, b: (pointer, strides of row, column and item, in
    elements). work: words for sums that wait, in the order in which threads have them. ends: (matrices, numbers) that
    the function at the end reads.
    """
    config, kind, step, WORD = variant.config, variant.kind, atom_of(variant), word(variant.kind)
    THREADS, TEAMS, CHAINS = WARP * config.warps, config.teams, step.chains
    ROLE, BYTES = variant.role, shared(config, kind.chain, variant.a, variant.b, variant.held)
    multiply, finish, place = mainloop(variant), epilogue(variant), schedule(config)
    *_, put, get, add = chains(step, THREADS)
    BLOCK, APART = CHAINS * THREADS * ptx.BYTES[kind.word], ROLE in ("part", "sum")

    def gemm(sizes, c, x, a, b, work, beta, alpha, ends):
        smem = cuda.shared.array(0, types.uint8, alignment=128)
        m, n, k, items, reads_x = sizes
        team, thread = U32(cuda.threadIdx.x // THREADS), U32(cuda.threadIdx.x % THREADS)
        number, base = U32(cuda.blockIdx.x * TEAMS + team), U32(ptx.shared_address(smem) + team * BYTES)
        segments = (k + SEGMENT - 1) // SEGMENT
        item, segment, row, column, tile = place(number, m, n, segments if ROLE == "part" else I64(1))
        if TEAMS > 1 and item >= items:
            return
        sums = cuda.local.array(CHAINS, WORD)
        slot = ptx.address(work) + (tile * segments + segment if APART else tile) * BLOCK + I64(thread) * PIECE
        if ROLE == "sum":
            get(sums, slot)
            for _ in range(1, segments):
                slot += BLOCK
                add(sums, slot)
        else:
            last = segment + (segments if ROLE == "long" else 1)
            for s in range(segment, last):
                p = s * SEGMENT
                one = (a[0], a[1], a[2], item * a[3] + row * a[1] + p * a[2])
                other = (b[0], b[2], b[1], item * b[3] + column * b[2] + p * b[1])
                multiply(sums, base, thread, one, m - row, other, n - column, min(k - p, SEGMENT))
                if ROLE == "long" and s > 0:
                    add(sums, slot)
                if ROLE == "long" and s + 1 < last:
                    put(sums, slot)
        if ROLE == "part":
            put(sums, slot)
        else:
            to, by = (c[0], c[1], c[2], item * c[3]), (x[0], x[1], x[2], item * x[3])
            finish(sums, thread, to, by, row, column, (m, n, reads_x), beta, alpha, (ends[0], ends[1], item))

    out = variant.end.out[0] if variant.end else kind.out
    factor, waiting = types.UniTuple(WORD, kind.planes), types.CPointer(WORD)
    signature = (types.UniTuple(I64, 5), *map(matrix, (out, kind.out, kind.a, kind.b)), waiting, factor, factor,
                 parameters(variant.end, kind))  # fmt: skip
    return gemm, signature
