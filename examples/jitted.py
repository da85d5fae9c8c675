"""Products inside your own jitted code: no Python between them, in every thread of a prange."""

import numba
import numpy as np

import nbkernels
import nbkernels.jitted  # not needed where nbkernels is installed: Numba finds it by an entry point


@numba.njit(parallel=True)
def power_traces(stack, n):
    """Trace of stack[i] to the n-th power, for every i."""
    traces = np.empty(len(stack), stack.dtype)
    for i in numba.prange(len(stack)):
        result = stack[i].copy()
        for _ in range(n - 1):
            result = nbkernels.mm(result, stack[i])
        traces[i] = np.trace(result)
    return traces


stack = np.random.default_rng(0).standard_normal((8, 60, 60)) / 10
expected = [np.trace(np.linalg.matrix_power(matrix, 5)) for matrix in stack]
np.testing.assert_allclose(power_traces(stack, 5), expected, rtol=1e-9)
print("traces of fifth powers:", power_traces(stack, 5).round(3))
