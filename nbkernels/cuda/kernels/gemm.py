"""The SIMT kernel of a product: which tile of C a block makes. collective.py makes the tile."""

from numba import cuda, types

from ...jit.ir.kind import Kind
from ..tiles import Tiles
from .chain import word
from .collective import clear, finish, fragment, mainloop, slices
from .elements import stored
from .stage import SHORT

BAND = 8  # tile rows that are worked through column by column, so that blocks at work together share B in L2


def make(tiles: Tiles, kind: Kind):
    """(body, signature) for a kind and tiles."""
    BM, BN, PART, (SIZE_A, SIZE_B), WORD = tiles.bm, tiles.bn, fragment(tiles, kind), slices(tiles, kind), word(kind)
    multiply, store = mainloop(tiles, kind), finish(tiles, kind)

    def gemm(m, n, k, c, rsc, csc, x, rsx, csx, a, rsa, csa, b, rsb, csb, total, rst, cst, beta, alpha, reads_x, adds):
        slices_a = cuda.shared.array(SIZE_A, WORD, alignment=16)  # A[row:row+BM, p:p+BK], transposed
        slices_b = cuda.shared.array(SIZE_B, WORD, alignment=16)  # B[p:p+BK, column:column+BN]
        chain = cuda.local.array(PART, WORD)

        # Down a band of BAND tile rows, then the next column of tiles.
        rows, columns, block = (m + BM - 1) // BM, (n + BN - 1) // BN, cuda.blockIdx.x
        band = block // (BAND * columns) * BAND
        height, inside = min(BAND, rows - band), block % (BAND * columns)
        row, column = (band + inside % height) * BM, inside // height * BN

        thread = cuda.threadIdx.x
        clear(chain)
        multiply(chain, slices_a, slices_b, thread, a, rsa, csa, row, m, b, rsb, csb, column, n, k)
        store(chain, thread, c, rsc, csc, row, m, column, n, x, rsx, csx, total, rst, cst, beta, alpha, reads_x, adds)

    matrices = [
        (types.CPointer(stored(dtype)), types.int64, types.int64)
        for dtype in (kind.out, kind.out, kind.a, kind.b, kind.chain)
    ]
    factor = types.UniTuple(WORD, kind.planes)
    signature = (types.int64, types.int64, SHORT, *sum(matrices, ()), factor, factor, types.int64, types.int64)
    return gemm, signature
