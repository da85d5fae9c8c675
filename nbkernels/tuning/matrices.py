"""Matrices for the tuner to multiply."""

from __future__ import annotations

import math
import os

import numpy as np


def matrix(rng, rows: int, columns: int, dtype: str) -> np.ndarray:
    """Random numbers of a dtype: standard normal, of integers the whole range, of bools even odds."""
    if dtype == "bool":
        return rng.random((rows, columns)) < 0.5
    if dtype.startswith(("int", "uint")):
        info = np.iinfo(dtype)
        return rng.integers(info.min, info.max, (rows, columns), dtype, endpoint=True)
    x = rng.standard_normal((rows, columns), np.float32 if dtype != "float64" else np.float64)
    if dtype.startswith("complex"):
        x = x + 1j * rng.standard_normal((rows, columns))
    return x.astype(dtype_of(dtype))


def dtype_of(name: str) -> np.dtype:
    """NumPy's dtype of a name, of bfloat16 ml_dtypes'."""
    if name == "bfloat16":
        import ml_dtypes

        return np.dtype(ml_dtypes.bfloat16)
    return np.dtype(name)


def memory() -> float:
    """Bytes of the machine; infinite where it does not tell."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return math.inf


def matrices(m, n, k, layout, dtype, seed=0):
    """a (m, k), b (k, n), out (m, n): T in the layout is a matrix whose columns are contiguous."""
    wanted = np.dtype(np.float64).itemsize * (m * k + k * n + 2 * m * n)
    if wanted > memory():
        raise MemoryError(f"{m}x{n}x{k}: {wanted >> 30} GiB of matrices are more than this machine has")
    rng = np.random.default_rng(seed)
    a, b = matrix(rng, m, k, dtype), matrix(rng, k, n, dtype)
    turn = {"N": np.ascontiguousarray, "T": np.asfortranarray}
    return turn[layout[0]](a), turn[layout[1]](b), np.zeros((m, n), a.dtype)
