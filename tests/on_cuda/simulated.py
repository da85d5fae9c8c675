"""What the tests of CUDA kernels in Numba's simulator share: arrays, layouts, and what a product must be."""

import numpy as np
from numba import cuda
from numba.core import config

from nbkernels.cuda import gemm
from nbkernels.cuda.tiles import Tiles
from nbkernels.dispatch.devices import NUMBA
from tests import reference

assert config.ENABLE_CUDASIM, "run with NUMBA_ENABLE_CUDASIM=1"

# One warp; two pieces down; two warps down; two across; two pieces across, with four warps in f64 (pieces of 2).
TILES = {
    "float32": [Tiles(16, 32, 4, 4, 4), Tiles(32, 32, 8, 8, 4), Tiles(32, 32, 8, 4, 4), Tiles(16, 64, 4, 4, 4),
                Tiles(32, 64, 4, 4, 8)],
    "float64": [Tiles(8, 16, 4, 2, 2), Tiles(16, 16, 4, 4, 2), Tiles(32, 32, 4, 2, 4)],
}  # fmt: skip
SMALL = TILES["float32"][0]
DeviceArray = type(cuda.to_device(np.zeros(1)))


class Whole(DeviceArray):
    """A device array that host code may not take views of: the simulator's are NumPy's, those on a GPU are wrong."""

    def refused(self, *args, **kwargs):
        raise AssertionError("host code indexes or reshapes a device array")

    __getitem__ = __setitem__ = reshape = ravel = transpose = squeeze = refused
    T = property(refused)

    # For tests that call kernels' host functions: what a DeviceView has.
    address, owner = property(NUMBA.address), property(lambda self: self)
    adapter, stream = NUMBA, 0

    def view(self, *layout):
        return NUMBA.view(self).view(*layout)


def device(x):
    """The array itself, as a device array: views keep their strides."""
    return Whole(x)


def product(x, a, b, beta, alpha, segment=reference.SEGMENT):
    """beta*x + alpha*(a @ b) in the library's order."""
    dtype, (m, k), n = a.dtype.type, a.shape, b.shape[1]
    x = None if beta == 0 else np.broadcast_to(x, (m, n))
    if k == 0 or alpha == 0:
        return np.zeros((m, n), dtype) if x is None else dtype(beta) * x
    total = dtype(alpha) * reference.matmul(a, b, segment)
    return total if x is None else reference.FMA[a.dtype](dtype(beta), x, total)


def numbers(rng, *shape, dtype="float32"):
    return rng.standard_normal(shape).astype(dtype)


def run(x, a, b, beta=1, alpha=1, tile=SMALL, out=None):
    """The kernel's result in an out full of NaN."""
    out = np.full((a.shape[0], b.shape[1]), np.nan, a.dtype) if out is None else out
    gemm.gemm(device(out), None if x is None else device(np.asarray(x)), device(a), device(b), beta, alpha, tile)
    return out


LAYOUTS = {
    "N": lambda x: np.ascontiguousarray(x),
    "T": lambda x: np.asfortranarray(x),
    "rows reversed": lambda x: np.ascontiguousarray(x[::-1])[::-1],
    "both reversed, T": lambda x: np.asfortranarray(x[::-1, ::-1])[::-1, ::-1],
    "every third of rows and columns": lambda x: inside(x, 3, 3),
    "padded rows": lambda x: inside(x, 1, 1),
}


def inside(x, rows, columns):
    buffer = np.full((x.shape[0] * rows + 2, x.shape[1] * columns + 3), np.nan, x.dtype)
    view = buffer[1 : 1 + x.shape[0] * rows : rows, 2 : 2 + x.shape[1] * columns : columns]
    view[...] = x
    return view
