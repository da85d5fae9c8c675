"""What every path of a product must show: the packed path's bits, in any layout and by any threads."""

import numba
import numpy as np

import nbkernels
from nbkernels.cpu.gemm import blocking as tiles
from nbkernels.cpu.gemm import gemm, paths
from nbkernels.cpu.runtime.status import DONE, PATHS
from tests.cases import TRANSPOSES, normal, operands


def way(m, n, k, workers=1, dtype="float32", layout="NN") -> str:
    """The path that is chosen for a product."""
    return PATHS[paths.path(m, n, k, workers, dtype, layout)]


def same_bits_as_packed(rng, m, n, k, dtype, path):
    """A path where it is legal, and the one chosen, from every layout, into both orders of out, and in place."""
    for layout, layouts in TRANSPOSES.items():
        a, b = operands(rng, m, n, k, dtype, layouts)
        x, expected = normal(rng, (m, n), dtype), np.empty((m, n), dtype)
        gemm.gemm(expected, x, a, b, 0.7, -1.3, tiles.default(dtype))
        for order in "CF":
            out = np.full((m, n), np.nan, dtype, order=order)
            same = np.full((m, n), x, dtype, order=order)
            for found, bias in ((out, x), (same, same)):
                if path in paths.legal(found, bias, a, b):
                    assert gemm.by_path(path, found, bias, a, b, 0.7, -1.3) == DONE
                    np.testing.assert_array_equal(found, expected, f"{m}x{n}x{k} {layout} {order}")
            out[...] = x
            assert nbkernels.addmm_(out, a, b, beta=0.7, alpha=-1.3) is out
            np.testing.assert_array_equal(out, expected, f"in place: {m}x{n}x{k} {layout} {order}")


def same_bits_by_threads(call, monkeypatch):
    """The results of a call on 1, 2, ... all threads, whatever its size would have it take."""
    available = numba.get_num_threads()
    monkeypatch.setattr("nbkernels.cpu.runtime.threads.count", numba.get_num_threads)
    results = []
    try:
        for count in range(1, numba.config.NUMBA_NUM_THREADS + 1):
            numba.set_num_threads(count)
            results.append(call())
    finally:
        numba.set_num_threads(available)
    for result in results[1:]:
        np.testing.assert_array_equal(result, results[0])
