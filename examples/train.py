"""Linear regression by gradient descent: a linear layer's products from row-major arrays, no transposed copy."""

import numpy as np

import nbkernels as nb

rng = np.random.default_rng(0)
x = rng.standard_normal((1000, 20))
weight, bias = rng.standard_normal((3, 20)), rng.standard_normal(3)
y = x @ weight.T + bias + 0.01 * rng.standard_normal((1000, 3))

w, b = np.zeros((3, 20)), np.zeros(3)
for _ in range(200):
    error = nb.subtract(nb.linear(x, w, b), y)  # Y = X Wᵀ + b
    nb.addmm_(w, error.T, x, alpha=-0.2 / len(x))  # W -= rate dYᵀ X: gradient and update in one call
    nb.add_(b, nb.sum_to(error, b.shape), alpha=-0.2 / len(x))  # b -= rate * the sum of dY's rows

print("largest error of a weight:", np.abs(w - weight).max())
assert np.abs(w - weight).max() < 0.01
