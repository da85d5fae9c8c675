"""Folds in order, one element after the other: what only such an order defines, and results that keep every step.

    accumulate   out[0] = x[0], out[k] = op(out[k - 1], x[k]) along one dimension
    in_order     the last of these alone: the fold of an operation that is not associative
    at           a[indices[i]] = op(a[indices[i]], b[i]) for one i after the other, repeated indices too

Each step is one call of the compiled loops, over all that lies beside the dimension.
"""

from __future__ import annotations

import functools

import numpy as np

from ..dtypes import resolve
from ..jit.address import word
from ..jit.cache import entry
from ..jit.loops import call_binary
from ..strides import plan
from .elementwise import apart, loop


@functools.cache
def _steps():
    def steps(loops, out, out_step, x, x_step, count, sizes, kept):
        """count - 1 steps at each index of `kept` sizes; words size, stride of out, stride of x; the last is inner."""
        places = 1
        for d in range(kept - 1):
            places *= word(sizes + 24 * d)
        inner = sizes + 24 * (kept - 1)
        columns, to, pace = word(inner), word(inner + 8), word(inner + 16)
        for place in range(places):
            rest, at, source = place, out, x
            for d in range(kept - 2, -1, -1):
                size = word(sizes + 24 * d)
                at += rest % size * word(sizes + 24 * d + 8)
                source += rest % size * word(sizes + 24 * d + 16)
                rest //= size
            for _ in range(1, count):
                source += x_step
                call_binary(loops, at + out_step, at, source, 1, columns, 0, 0, 0, to, to, pace)
                at += out_step

    return entry(steps, "void(int64, int64, int64, int64, int64, int64, int64, int64)", "scan_steps", nogil=True)


def accumulate(op: str, out, x, axis: int, work: np.dtype) -> None:
    """out[k] = op(out[k - 1], x[k]) along an axis, in `work`; both have one shape."""
    if x.size:
        x = apart(out, x)
        _held(out, work, lambda held: _scan(op, np.moveaxis(held, axis, 0), np.moveaxis(x, axis, 0), work))


def in_order(op: str, out, x, axis: int, work: np.dtype) -> None:
    """out = x folded along an axis from its first element on; out has x's shape without it, and is not empty."""
    x = np.moveaxis(apart(out, x), axis, 0)

    def run(held):
        _scan(op, np.lib.stride_tricks.as_strided(held, x.shape, (0, *held.strides)), x, work)

    _held(out, work, run)


def _held(out, work, run):
    """run(out), by way of an array of the dtype `work` where out has another."""
    if out.dtype == work:
        run(out)
    else:
        held = np.empty(out.shape, work)
        run(held)
        np.copyto(out, held, casting="unsafe")


def _scan(op, out, x, work):
    """Along the first dimension of both."""
    np.copyto(out[0, ...], x[0], casting="unsafe")
    loops = plan((x.shape[1:],) * 2, (out.strides[1:], x.strides[1:]), (out.itemsize, x.itemsize))
    shape = loops.shape or (1,)
    strides = [s or (0,) for s in loops.strides]
    sizes = np.array([v for d in zip(shape, *strides) for v in d], np.int64)
    to, source = (_address(a) + offset for a, offset in zip((out, x), loops.offsets))
    compiled = _loop(op, work, x.dtype)
    _steps()(compiled, to, out.strides[0], source, x.strides[0], len(x), sizes.ctypes.data, len(shape))


def _loop(op, work, dtype):
    return loop(op, work, dtype, work, None if work.kind == "b" else work, "unsafe", checked=False)


def _address(x) -> int:
    return x.__array_interface__["data"][0]


@functools.cache
def _visits():
    def visits(loops, out, places, x, count):
        """Words of `places` are byte distances in out and in x."""
        for i in range(count):
            at = out + word(places + 16 * i)
            call_binary(loops, at, at, x + word(places + 16 * i + 8), 1, 1, 0, 0, 0, 0, 0, 0)

    return entry(visits, "void(int64, int64, int64, int64, int64)", "scan_visits", nogil=True)


def at(op: str, out, indices, x) -> None:
    """out[i] = op(out[i], x[i]) for one index after the other, so that repeated ones add up, as NumPy's ufunc.at.

    `indices` is anything that indexes an array; x broadcasts to what it selects. The result must be castable to out's
    dtype under "same_kind".
    """
    x = np.asarray(x)
    places = _places(out, indices)
    x = np.broadcast_to(x, places.shape)
    if np.may_share_memory(out, x):
        x = x.copy()
    dtypes = resolve(op, out.dtype, x.dtype)
    compiled = loop(op, out.dtype, x.dtype, out.dtype, checked=False)
    if op == "pow" and dtypes[1].kind == "i" and (x < 0).any():
        raise ValueError("pow: integers to negative integer powers are not allowed")
    words = np.empty((places.size, 2), np.int64)
    words[:, 0], words[:, 1] = places.ravel(), _places(x, ...).ravel()
    _visits()(compiled, _address(out), words.ctypes.data, _address(x), places.size)


def _places(x, indices):
    """Distance in bytes from x's first element of each that `indices` selects."""
    distance = np.zeros(x.shape, np.int64)
    for d, (size, stride) in enumerate(zip(x.shape, x.strides)):
        distance += (np.arange(size) * stride).reshape((size,) + (1,) * (x.ndim - d - 1))
    return np.asarray(distance[indices])
