"""A kernel that multiplies by a BlockGemm, for the simulator and for the interpreter."""

from numba import cuda


def tiled(gemm, cut=0, alpha=1, beta=0):
    """A kernel: c = beta*c + alpha * a @ b by tiles, with the steps before and after `cut` in a call each."""

    def kernel(c, a, b):
        row, column = cuda.blockIdx.y * gemm.bm, cuda.blockIdx.x * gemm.bn
        chains, scratch = gemm.zeros(), gemm.scratch()
        rows, columns = a[row : row + gemm.bm], b[:, column : column + gemm.bn]
        if cut:
            gemm.multiply(chains, rows[:, :cut], columns[:cut], scratch)
        gemm.multiply(chains, rows[:, cut:], columns[cut:], scratch)
        gemm.store(c[row : row + gemm.bm, column : column + gemm.bn], chains, alpha, beta)

    return kernel
