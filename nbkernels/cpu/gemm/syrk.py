"""A matrix times its own transpose: one triangle is computed, in halves, and mirrored.

    C11 C21'     C11 = A1 A1', C22 = A2 A2', likewise;  C21 = A2 A1', a product like any other
    C21 C22

The bits are those of the whole product: an element depends on its row of A and its row of A alone, in one order of
summation, and a fused multiply-add is the same whichever factor comes first. Of complex numbers it is not: the two
products of an imaginary part would change places.
"""

from __future__ import annotations

import numpy as np

from ..elementwise import fast
from ..runtime import threads
from .paths import MIRRORED, mirrors

LINE = 16  # rows that a half is a multiple of


def symmetric(a, b) -> bool:
    """Whether b is a's transpose in the same memory, of a size and dtype for which that is worth a way of its own."""
    if not mirrors(len(a), b.shape[1], b.shape[0], threads.count()) or a.dtype != b.dtype or a.dtype.kind == "c":
        return False
    if a.strides != b.strides[::-1] or not (isinstance(a, np.ndarray) and isinstance(b, np.ndarray)):
        return False
    return a.ctypes.data == b.ctypes.data


def mirrored(product, out, a, b) -> None:
    """out = a @ b, b being a's transpose; product(out, a, b) is any product, of parts here."""
    least, half = MIRRORED * threads.count() // 3, len(out) // 2
    half -= half % LINE
    upper, lower = out[:half, half:], out[half:, :half]
    for part in (slice(half), slice(half, None)):
        inner = out[part, part]
        if len(inner) >= least:
            mirrored(product, inner, a[part], b[:, part])
        else:
            product(inner, a[part], b[:, part])
    product(lower, a[half:], b[:, :half])
    if fast.fmax_fast(lower.T, lower.T, upper) is None:  # a copy, bit for bit
        np.copyto(upper, lower.T)
