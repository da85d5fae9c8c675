"""Two layers of a perceptron in one CUDA kernel, by tensor cores: the hidden layer never leaves its block."""

import numpy as np
from numba import cuda, types

from nbkernels.cuda import block
from nbkernels.cuda.product.config import GemmConfig

ROWS, HIDDEN = 64, 128
# 64 rows of 128 columns by 4 warps, 32 steps of k at a time in 2 stages: 30 KiB of shared memory, beside 16 of hidden.
layer = block.BlockGemm("float16", tiles=GemmConfig("M", ROWS, HIDDEN, 32, 2, 4))


@cuda.jit
def perceptron(y, x, w1, w2):
    """y = relu(x @ w1) @ w2, 64 rows a block; w1 has HIDDEN columns, w2 has at most so many."""
    first = cuda.blockIdx.x * ROWS
    hidden = cuda.shared.array((ROWS, HIDDEN), types.float16)
    rows, scratch = x[first : first + ROWS], layer.scratch()
    chains = layer.zeros()
    layer.multiply(chains, rows, w1, scratch)
    for i in range(layer.tm):
        for j in range(layer.tn):
            row, column = layer.place(i, j)
            hidden[row, column] = types.float16(max(chains[i, j], types.float32(0)))
    more = layer.zeros()
    layer.multiply(more, hidden[: rows.shape[0]], w2, scratch)  # begins when all threads have written theirs
    layer.store(y[first : first + ROWS], more)


if __name__ == "__main__":
    rng = np.random.default_rng(0)
    x, w1, w2 = (rng.integers(-2, 3, shape).astype("f2") for shape in ((1000, 64), (64, HIDDEN), (HIDDEN, 40)))
    if block.missing():
        print(f"nothing to run on: {block.missing()}")
    else:
        y = cuda.device_array((len(x), w2.shape[1]), np.float16)
        perceptron[-(-len(x) // ROWS), layer.threads](y, *map(cuda.to_device, (x, w1, w2)))
        assert np.allclose(y.copy_to_host(), np.maximum(x.astype("f4") @ w1, 0) @ w2, rtol=2e-3)
        print("right")
