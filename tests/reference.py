"""Slow and obvious: what the kernels must give, in exact or higher precision."""

import math
from fractions import Fraction

import numpy as np

SEGMENT = 4096  # written out again on purpose: the library's order of summation is a promise


def fma32(a, b, c):
    """float32 a*b + c, rounded once.

    The product of two float32 is exact in float64 (48 of 53 bits). Its sum with c is taken there with its error
    (Knuth's TwoSum) and rounded to odd: the last bit is set where it is inexact. From 53 bits so rounded, rounding to
    24 is right (Boldo and Melquiond, 2008: 53 >= 24 + 2).
    """
    product, c = np.asarray(a, np.float64) * np.asarray(b, np.float64), np.asarray(c, np.float64)
    product, c = np.broadcast_arrays(product, c)
    total = product + c
    back = total - product
    error = (product - (total - back)) + (c - back)
    bits = total.view(np.int64).copy()
    even = (abs(error) > 0) & (bits & 1 == 0)  # of infinities the error is NaN
    bits += np.where(even, np.where((error > 0) == (total > 0), 1, -1), 0)
    return bits.view(np.float64).astype(np.float32)


def fma64(a, b, c):
    """float64 a*b + c, rounded once, one element at a time: Python rounds a fraction to the nearest double."""

    def fused(x, y, z):
        if not (math.isfinite(x) and math.isfinite(y)):
            return x * y + z
        if not math.isfinite(z):
            return z  # whatever the product would overflow to
        exact = Fraction(x) * Fraction(y) + Fraction(z)
        try:
            return float(exact) if exact else x * y + z  # a zero's sign is the sum's
        except OverflowError:
            return math.inf if exact > 0 else -math.inf

    arrays = np.broadcast_arrays(a, b, c)
    values = list(map(fused, *(x.ravel().tolist() for x in arrays)))
    return np.array(values).reshape(arrays[0].shape)


FMA = {np.dtype(np.float32): fma32, np.dtype(np.float64): fma64}


def matmul(a, b, segment=SEGMENT):
    """The library's order: per segment of 4096 one chain of fma over k from zero; segment sums added in order."""
    fma, total = FMA[a.dtype], None
    for start in range(0, a.shape[1], segment):
        chain = np.zeros((a.shape[0], b.shape[1]), a.dtype)
        for p in range(start, min(start + segment, a.shape[1])):
            chain = fma(a[:, p, None], b[None, p, :], chain)
        total = chain if total is None else total + chain
    return total


def in_chains(a, v, count):
    """The order of vectors: per segment of 4096 chains of fma, step p in chain p mod count; then added in halves."""
    fma, total = FMA.get(a.dtype), None
    for start in range(0, len(v), SEGMENT):
        x, y = a[:, start : start + SEGMENT], v[start : start + SEGMENT]
        chains = np.zeros((len(a), count), a.dtype)
        for p in range(0, len(y), count):
            b = y[p : p + count]
            step, into = x[:, p : p + count], chains[:, : len(b)]
            if fma:
                into[...] = fma(step, b, into)
            else:
                into.real, into.imag = complex_step(step, b, into.real, into.imag)
        while chains.shape[1] > 1:
            half = chains.shape[1] // 2
            chains = chains[:, :half] + chains[:, half:]
        total = chains if total is None else total + chains
    return total[:, 0]


def dot(a, b):
    return in_chains(a[None], b, 64)[0]


def mv(a, v):
    return in_chains(a, v, 8)


def addmv(x, a, v, beta, alpha):
    """fma(beta, x, alpha * sum), once, at the end."""
    return FMA[a.dtype](a.dtype.type(beta), x, a.dtype.type(alpha) * mv(a, v))


def addmm(x, a, b, beta, alpha):
    """fma(beta, x, alpha * sum), once, at the end."""
    return FMA[a.dtype](a.dtype.type(beta), x, a.dtype.type(alpha) * matmul(a, b))


def complex_step(a, b, re, im):
    """re += ar*br, re -= ai*bi, im += ar*bi, im += ai*br, each fused."""
    fma = FMA[re.dtype]
    re = fma(-a.imag, b.imag, fma(a.real, b.real, re))
    return re, fma(a.imag, b.real, fma(a.real, b.imag, im))


def complex_chains(a, b, segment=SEGMENT):
    """Real and imaginary parts, in the order of `matmul`."""
    total = None
    for start in range(0, a.shape[1], segment):
        chain = np.zeros((2, a.shape[0], b.shape[1]), a.real.dtype)
        for p in range(start, min(start + segment, a.shape[1])):
            chain = np.array(complex_step(a[:, p, None], b[None, p, :], *chain))
        total = chain if total is None else total + chain
    return total


def joined(re, im):
    """re + im*i by parts: of an infinite im the product by i has a NaN."""
    result = np.empty(re.shape, np.result_type(re, np.complex64))
    result.real, result.imag = re, im
    return result


def complex_matmul(a, b):
    return joined(*complex_chains(a, b))


def complex_addmm(x, a, b, beta, alpha):
    """beta * x + alpha * sum for a real alpha; beta's real part first, each product fused."""
    total, beta = complex_matmul(a, b), np.complex64(beta)
    re, im = np.float32(alpha) * total.real, np.float32(alpha) * total.imag
    re, im = fma32(beta.real, x.real, re), fma32(beta.real, x.imag, im)
    return joined(fma32(-beta.imag, x.imag, re), fma32(beta.imag, x.real, im))


def bound(a, b, x=0, beta=0, alpha=1):
    """|error| <= gamma_(k+2) (|alpha| |A| |B| + |beta| |X|), gamma_n = n u / (1 - n u) (Higham, 2002, section 3.5)."""
    unit = np.finfo(a.dtype).eps / 2
    n = (a.shape[-1] + 2) * unit
    size = abs(alpha) * (abs(a).astype(np.longdouble) @ abs(b).astype(np.longdouble))
    return n / (1 - n) * (size + abs(beta) * abs(np.asarray(x, np.longdouble)))
