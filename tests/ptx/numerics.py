"""What a tensor core makes of a tile: C + A B, in each type's own way.

Whole numbers are exact. float64 is the chain of fused multiply-adds in increasing k. The others follow the published
model of units of compute capability 9.0: exact products of 32 bytes of k are added with C after each has been cut off
below 2**-25 of the largest one's exponent, and the sum is cut off to a float32. No card's bits were at hand to compare.
"""

from __future__ import annotations

import numpy as np

from .real import fma

BITS = {"e4m3": 13, "e5m2": 13}  # below the largest exponent, where it is not 25
EIGHT = {"e4m3": (3, 7), "e5m2": (2, 15)}
LOWEST = {"f16": -14, "bf16": -126, "tf32": -126, "e4m3": -6, "e5m2": -14}  # exponents of the smallest normal numbers


def decoded(words: np.ndarray, kind: str) -> np.ndarray:
    """Elements from their bits, neighbours in a word along a last axis: float64, or int64 of whole numbers."""
    if kind == "f64":
        return words.view(np.float64)[..., None]
    raw = np.ascontiguousarray(words[..., None]).view(np.uint8)
    if kind in ("s8", "u8"):
        return raw.view(np.int8 if kind == "s8" else np.uint8).astype(np.int64)
    if kind == "tf32":
        return (raw.view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32).astype(np.float64)
    if kind == "f16":
        return raw.view(np.float16).astype(np.float64)
    if kind == "bf16":
        return (raw.view(np.uint16).astype(np.uint32) << np.uint32(16)).view(np.float32).astype(np.float64)
    return table(kind)[raw]


def table(kind: str) -> np.ndarray:
    """Values of all numbers of 8 bits."""
    bits, bias = EIGHT[kind]
    code = np.arange(256)
    exponent, fraction = code >> bits & (1 << 7 - bits) - 1, (code & (1 << bits) - 1) / (1 << bits)
    value = np.where(exponent == 0, fraction * 2.0 ** (1 - bias), (1 + fraction) * 2.0 ** (exponent - bias))
    if kind == "e4m3":
        value[code & 127 == 127] = np.nan
    else:
        value[exponent == 31] = np.where(fraction[exponent == 31] == 0, np.inf, np.nan)
    return np.where(code & 128, -value, value)


def multiply_add(c: np.ndarray, a: np.ndarray, b: np.ndarray, kind: str, saturate: bool = False) -> np.ndarray:
    """c + a @ b for tiles (..., m, k) and (..., k, n), in c's type."""
    if kind == "f64":
        for k in range(a.shape[-1]):
            c = fma(a[..., k, None], b[..., None, k, :], c)
        return c
    if kind in ("s8", "u8"):
        total = c.astype(np.int64) + a @ b
        if saturate:
            total = np.clip(total, -(1 << 31), (1 << 31) - 1)
        return total.astype(np.int32)
    group = {"f16": 16, "bf16": 16, "tf32": 8}.get(kind, 32)
    for start in range(0, a.shape[-1], group):
        some = slice(start, start + group)
        c = cut_sum(c, a[..., some], b[..., some, :], LOWEST[kind], BITS.get(kind, 25))
    return c


def cut_sum(c, a, b, lowest: int, bits: int) -> np.ndarray:
    """One group's sum, each term cut off at the same bit."""
    products = a[..., :, None, :] * np.swapaxes(b, -1, -2)[..., None, :, :]
    exponents = exponent(a, lowest)[..., :, None, :] + exponent(np.swapaxes(b, -1, -2), lowest)[..., None, :, :]
    exponents = np.where(products == 0, -(1 << 20), exponents)
    own = np.where(c == 0, -(1 << 20), exponent(c, -126))
    largest = np.maximum(exponents.max(-1), own)
    finite = np.isfinite(products).all(-1) & np.isfinite(c)
    unit = np.where(finite & (largest > -(1 << 19)), bits - largest, 0)
    total = np.trunc(np.ldexp(products, unit[..., None])).sum(-1) + np.trunc(np.ldexp(c.astype(np.float64), unit))
    total = np.ldexp(total, -unit)
    plain = products.sum(-1) + c
    return np.where(finite, cut(total), plain.astype(np.float32))


def exponent(x: np.ndarray, lowest: int) -> np.ndarray:
    """That of 2 in 1.xxx * 2**e, at least the lowest normal one."""
    return np.maximum(np.frexp(x)[1] - 1, lowest)


def cut(x: np.ndarray) -> np.ndarray:
    """float64 -> float32 towards zero, infinity beyond the largest."""
    near = x.astype(np.float32)
    return np.where(abs(near.astype(np.float64)) > abs(x), np.nextafter(near, np.float32(0)), near)
