"""Arrays on the device as host code sees them: views, temporaries, and which elements two of them share.

A temporary comes from the library of the arrays that it is made for: of its pool, on its stream, with its way of
running out of memory, so that a graph that is captured has it, too.
"""

from __future__ import annotations

import numpy as np

from ..dispatch import driver
from ..dispatch.driver import DeviceView
from .launch import ghost


def item(x, i: int) -> DeviceView:
    """x[i] of the first dimension."""
    return x.view(x.shape[1:], x.strides[1:], i * x.strides[0])


def empty(shape, like, dtype=None) -> DeviceView:
    """An uninitialised C-order temporary of like's dtype, or of another, for what is launched on like's stream."""
    return like.adapter.scratch(like, tuple(shape), np.dtype(dtype or like.dtype))


def part(x, name) -> DeviceView:
    """The real or the imaginary part ("real", "imag") of complex elements, in their memory."""
    size = x.dtype.itemsize // 2
    found = x.view(x.shape, x.strides, size * (name == "imag"))
    found.dtype = np.dtype(f"f{size}")
    return found


def uploaded(x: np.ndarray, like) -> DeviceView:
    """A copy of a host's array for what is launched on like's stream. The host's memory has been read on return."""
    made = empty(x.shape, like, x.dtype)
    driver.fill(made, x)
    return made


def extent(x) -> tuple[int, int]:
    """First byte of an array's lowest element, and the byte after its highest."""
    reach = [(n - 1) * stride for n, stride in zip(x.shape, x.strides)]
    start = x.address
    return start + sum(min(r, 0) for r in reach), start + sum(max(r, 0) for r in reach) + x.dtype.itemsize


def clash(p, q) -> bool:
    """Whether two arrays share an element; assumed where it would take long to find out."""
    if p.size == 0 or q.size == 0:
        return False
    (p_low, p_high), (q_low, q_high) = extent(p), extent(q)
    if p_high <= q_low or q_high <= p_low:
        return False
    try:
        return np.shares_memory(ghost(p), ghost(q), max_work=10_000)
    except np.exceptions.TooHardError:
        return True


def same(p, q, strides) -> bool:
    """Whether q, walked over p's shape with these strides, has p's elements in p's order."""
    steps = all(n == 1 or s == t for n, s, t in zip(p.shape, p.strides, strides))
    return steps and p.dtype == q.dtype and p.address == q.address
