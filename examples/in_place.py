"""The three forms of an operation give the same bits: a new array, out=, and in place."""

import numpy as np

import nbkernels

rng = np.random.default_rng(0)
x, a, b = (rng.standard_normal((256, 256)) for _ in range(3))

new = nbkernels.addmm(x, a, b)

buffer = np.empty((512, 256))[::2]  # out= keeps its strides: the rows between stay as they are
assert nbkernels.addmm(x, a, b, out=buffer) is buffer

assert nbkernels.addmm_(x, a, b) is x
assert np.array_equal(new, buffer)
assert np.array_equal(new, x)

# alpha= saves the temporary of `x - 0.1 * a`, and out may overlap the inputs.
nbkernels.add_(x, a, alpha=-0.1)
nbkernels.maximum(x[:-1], x[1:], out=x[1:])
print("same bits in all three forms:", new[0, :3])
