"""Slow and obvious: what the kernels must give, in exact or higher precision."""

from fractions import Fraction

import numpy as np

SEGMENT = 4096  # written out again on purpose: the library's order of summation is a promise


def fma32(a, b, c):
    """float32 a*b + c, rounded once.

    The product of two float32 is exact in float64. Its sum with c is rounded to odd there (the last bit is set where
    the sum is inexact), which leaves the rounding to float32 as if it came from the exact value: 53 >= 2*24 + 2.
    """
    product, c = np.asarray(a, np.float64) * np.asarray(b, np.float64), np.asarray(c, np.float64)
    product, c = np.broadcast_arrays(product, c)
    total = product + c
    back = total - product
    error = (product - (total - back)) + (c - back)
    bits = total.view(np.int64).copy()
    even = (error != 0) & (bits & 1 == 0)
    bits += np.where(even, np.where((error > 0) == (total > 0), 1, -1), 0)
    return bits.view(np.float64).astype(np.float32)


def fma64(a, b, c):
    """float64 a*b + c, rounded once, one element at a time by exact fractions."""
    arrays = np.broadcast_arrays(a, b, c)
    values = [
        float(Fraction(x) * Fraction(y) + Fraction(z)) for x, y, z in zip(*(arr.ravel().tolist() for arr in arrays))
    ]
    return np.array(values).reshape(arrays[0].shape)


def matmul(a, b):
    """The library's order: per segment of 4096 one chain of fma over k from zero; segment sums added in order."""
    fma = {np.dtype(np.float32): fma32, np.dtype(np.float64): fma64}[a.dtype]
    total = None
    for start in range(0, a.shape[1], SEGMENT):
        chain = np.zeros((a.shape[0], b.shape[1]), a.dtype)
        for p in range(start, min(start + SEGMENT, a.shape[1])):
            chain = fma(a[:, p, None], b[None, p, :], chain)
        total = chain if total is None else total + chain
    return total


def addmm(x, a, b, beta, alpha):
    """fma(beta, x, alpha * sum), once, at the end."""
    fma = {np.dtype(np.float32): fma32, np.dtype(np.float64): fma64}[a.dtype]
    return fma(a.dtype.type(beta), x, a.dtype.type(alpha) * matmul(a, b))


def bound(a, b, x=0, beta=0, alpha=1):
    """|error| <= gamma_(k+2) (|alpha| |A| |B| + |beta| |X|), gamma_n = n u / (1 - n u) (Higham, 2002, section 3.5)."""
    unit = np.finfo(a.dtype).eps / 2
    n = (a.shape[1] + 2) * unit
    size = abs(alpha) * (abs(a).astype(np.longdouble) @ abs(b).astype(np.longdouble))
    return n / (1 - n) * (size + abs(beta) * abs(np.asarray(x, np.longdouble)))
