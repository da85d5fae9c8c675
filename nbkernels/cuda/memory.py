"""Which elements two device arrays share, told from addresses and strides: nothing is read."""

from __future__ import annotations

import numpy as np

from .launch import SIMULATED


class _Ghost:
    """A NumPy array at a device's addresses: for questions of layout, never to be read."""

    def __init__(self, x):
        self.__array_interface__ = {
            "version": 3, "data": (_address(x), False), "typestr": x.dtype.str, "shape": tuple(x.shape),
            "strides": tuple(x.strides),
        }  # fmt: skip


def _address(x) -> int:
    return x._ary.ctypes.data if SIMULATED else x.device_ctypes_pointer.value or 0


def _extent(x) -> tuple[int, int]:
    """First byte of an array's lowest element, and the byte after its highest."""
    reach = [(n - 1) * stride for n, stride in zip(x.shape, x.strides)]
    address = _address(x)
    return address + sum(min(r, 0) for r in reach), address + sum(max(r, 0) for r in reach) + x.dtype.itemsize


def _host(x):
    return x._ary if SIMULATED else np.asarray(_Ghost(x))


def clash(p, q) -> bool:
    """Whether two arrays share an element; assumed where it would take long to find out."""
    if p.size == 0 or q.size == 0:
        return False
    (p_low, p_high), (q_low, q_high) = _extent(p), _extent(q)
    if p_high <= q_low or q_high <= p_low:
        return False
    try:
        return np.shares_memory(_host(p), _host(q), max_work=10_000)
    except np.exceptions.TooHardError:
        return True


def same(p, q, strides) -> bool:
    """Whether q, walked over p's shape with these strides, has p's elements in p's order."""
    steps = all(n == 1 or s == t for n, s, t in zip(p.shape, p.strides, strides))
    return steps and p.dtype == q.dtype and _address(p) == _address(q)
