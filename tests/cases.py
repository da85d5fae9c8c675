"""What is tested and measured: one table of layouts, shapes and sizes for tests/ and bench/."""

import os

import numpy as np
import pytest

EVERY = os.environ.get("NBKERNELS_EVERY_KERNEL", "0") == "1"  # before a release, by CONTRIBUTING.md


def forms(*always, sampled):
    """Forms of a test for `parametrize`: some that every run has, and others, which are sampled."""
    return [*always, *(pytest.param(each, marks=pytest.mark.sampled) for each in sampled)]


BINARY = ["add", "subtract", "multiply", "divide", "maximum", "minimum"]


def _every_other(x):
    room = np.full([2 * size + 1 for size in x.shape], np.nan, x.dtype)
    view = room[tuple(slice(1, None, 2) for _ in x.shape)]
    view[...] = x
    return view


def _padded(x):
    room = np.full([size + 3 for size in x.shape], np.nan, x.dtype)
    view = room[tuple(slice(1, 1 + size) for size in x.shape)]
    view[...] = x
    return view


def _unaligned(x):
    room = np.zeros(x.nbytes + 1, np.uint8)
    view = room[1:].view(x.dtype).reshape(x.shape) if x.size else x.copy()
    view[...] = x
    return view


# Each takes an array and returns another with the same elements, laid out otherwise.
LAYOUTS = {
    "C": np.ascontiguousarray,
    "F": np.asfortranarray,
    "padded": _padded,
    "every other": _every_other,
    "reversed": lambda x: np.flip(np.flip(x).copy()),
    "reversed F": lambda x: np.flip(np.asfortranarray(np.flip(x))),
    "unaligned": _unaligned,
}


def loose(x, order="C", step=1):
    """A copy that is contiguous in no order, which Numba gives one type whatever its strides."""
    m, n = x.shape
    room = np.empty((m + 1, 2 * n + 1), x.dtype, order=order)
    view = room[:m, : n * step : step] if step > 0 else room[m - 1 :: -1, n - 1 :: -1]
    view[...] = x
    return view


# m, n, k: small, prime, skinny in each, across every edge of the default tiles (12x32, 12x16, 6x16, 6x8, 512, 4096).
GEMM_SHAPES = [
    (1, 1, 1), (2, 3, 4), (5, 7, 11), (4, 4, 4), (11, 31, 13), (12, 32, 8), (13, 33, 9), (1, 97, 53), (97, 1, 53),
    (53, 97, 1), (24, 64, 48), (25, 65, 47), (61, 67, 71), (128, 128, 128), (130, 131, 127), (6, 16, 511), (7, 17, 512),
    (12, 33, 513), (3, 300, 1030), (300, 3, 1030), (5, 6, 4095), (5, 6, 4096), (5, 6, 4097), (4, 3, 9001),
    (161, 513, 150),
]  # fmt: skip

SQUARES = (64, 128, 256, 512, 1024, 2048)
TRANSPOSES = {
    "NN": ("C", "C"),
    "NT": ("C", "F"),
    "TN": ("F", "C"),
    "TT": ("F", "F"),
}


def bias_shapes(m, n):
    """Every shape that addmm's first argument may have for an m x n result."""
    return [(), (1,), (n,), (1, n), (m, 1), (1, 1), (m, n)]


def whole_numbers(rng, shape, dtype, limit=4):
    """Small whole numbers, so that every order of summation gives the same exact result."""
    return rng.integers(-limit, limit + 1, shape).astype(dtype)


def normal(rng, shape, dtype):
    return rng.standard_normal(shape).astype(dtype)


def operands(rng, m, n, k, dtype, layouts=("C", "C"), numbers=normal):
    """An m x k matrix and a k x n one, each in its layout."""
    return [LAYOUTS[layout](numbers(rng, shape, dtype)) for layout, shape in zip(layouts, ((m, k), (k, n)))]
