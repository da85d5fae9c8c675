"""beta*self + alpha*(mat1 @ mat2), from views of any layout, with no operand copied."""

import numpy as np

import nbkernels

rng = np.random.default_rng(0)
a = rng.standard_normal((300, 200)).astype(np.float32)
b = rng.standard_normal((300, 100)).astype(np.float32)
bias = rng.standard_normal(100).astype(np.float32)

# A transpose and a reversed slice are read where they stand; bias (100,) expands to (200, 100).
product = nbkernels.addmm(bias, a.T, b[::-1], beta=0.5, alpha=2)
print("addmm:", product.shape, product.dtype)
np.testing.assert_allclose(product, 0.5 * bias + 2 * (a.T @ b[::-1]), rtol=1e-3, atol=1e-3)

# A mistake is one error that names the arguments; nothing is computed.
try:
    nbkernels.addmm(bias, a, b)
except ValueError as error:
    print("error:", error)
