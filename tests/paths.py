"""What tests of several paths of a product share: tiny tiles, numbers of threads, the path that is chosen."""

import contextlib

import numba
import numpy as np

from nbkernels.cpu.gemm import blocking as tiles
from nbkernels.cpu.gemm import paths
from nbkernels.cpu.runtime.status import PATHS


def way(m, n, k, workers=1, dtype="float32", layout="NN") -> str:
    """The path that is chosen for a product."""
    return PATHS[paths.path(m, n, k, workers, dtype, layout)]


def tiny(dtype) -> tiles.Tiles:
    """Legal tiles so small that little arrays cross every block edge: kc = 24, nb = 2 panels, mc and nc = 4 panels."""
    base = tiles.default(dtype)
    return tiles.Tiles(base.mr, base.nr, 24, 2 * base.nr, 4 * base.mr, 4 * base.nr)


@contextlib.contextmanager
def with_threads(count, monkeypatch, patched=True):
    """Within, calls may take so many threads, where there are as many; patched: whatever their size would have them
    take."""
    before = numba.get_num_threads()
    numba.set_num_threads(min(count, numba.config.NUMBA_NUM_THREADS))
    with monkeypatch.context() as patch:
        if patched:
            patch.setattr("nbkernels.cpu.runtime.threads.count", numba.get_num_threads)
        try:
            yield
        finally:
            numba.set_num_threads(before)


def same_bits_by_threads(call, monkeypatch):
    """The results of a call on 1, 2, ... all threads, whatever its size would have it take."""
    results = []
    for count in range(1, numba.config.NUMBA_NUM_THREADS + 1):
        with with_threads(count, monkeypatch):
            results.append(call())
    for result in results[1:]:
        np.testing.assert_array_equal(result, results[0])
