"""Arrays on the device as host code sees them: views, temporaries, and which elements two of them share.

Numba's device arrays are never indexed or reshaped: what their x[i] and x.reshape give has the strides of C order,
whatever x has (item 1 of a (3, 5, 4) array of strides (80, 4, 20) gets (16, 4)). Host code carries address, shape and
strides, and a View is these.

A temporary is memory of a pool that is ordered on a stream: it is given back there after the kernels that were launched
before, so that nothing waits for them and nobody else gets it while they run. Memory that cuMemAlloc gave would be
free for others at once, wherever they work.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np

from ..strides import output_strides
from .launch import SIMULATED, address, current, ghost, queue

if not SIMULATED:
    from cuda import core
    from numba.cuda.cudadrv.driver import driver


@dataclass(frozen=True, eq=False)
class View:
    """An array on the device by its numbers; it keeps the `owner` of the memory."""

    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: np.dtype
    stream: object
    owner: object

    @property
    def size(self) -> int:
        return int(np.prod(self.shape, dtype=int))


def view(x, shape, strides, offset: int = 0) -> View:
    """The elements of x that lie `offset` bytes and multiples of the strides from its first one."""
    return View(address(x) + offset, tuple(shape), tuple(strides), x.dtype, x.stream, x)


def item(x, i: int) -> View:
    """x[i] of the first dimension."""
    return view(x, x.shape[1:], x.strides[1:], i * x.strides[0])


def empty(shape, like, dtype=None) -> View:
    """An uninitialised C-order temporary of like's dtype, or of another, for what is launched on like's stream."""
    shape, dtype = tuple(shape), np.dtype(dtype or like.dtype)
    size = int(np.prod(shape, dtype=int)) * dtype.itemsize
    if SIMULATED:
        owner = np.empty(size + 1, np.uint8)
        place = owner.ctypes.data
    else:
        owner = pool(current()).allocate(max(size, 1), stream=queue(like.stream))
        place = int(owner.handle)
    return View(place, shape, output_strides(shape, (), (), dtype.itemsize), dtype, like.stream, owner)


@functools.cache
def pool(index: int):
    """The stream-ordered memory of a device, which is the current one."""
    device = core.Device(index)
    device.set_current()
    return device.memory_resource


def uploaded(x: np.ndarray, like) -> View:
    """A copy of a host's array for what is launched on like's stream. The host's memory has been read on return."""
    x = np.ascontiguousarray(x).reshape(x.shape)
    made = empty(x.shape, like, x.dtype)
    if SIMULATED:
        made.owner[: x.nbytes] = x.reshape(-1).view(np.uint8)
    elif x.size:
        driver.cuMemcpyHtoDAsync(made.address, x.ctypes.data, x.nbytes, int(like.stream) if like.stream else 0)
    return made


def extent(x) -> tuple[int, int]:
    """First byte of an array's lowest element, and the byte after its highest."""
    reach = [(n - 1) * stride for n, stride in zip(x.shape, x.strides)]
    start = address(x)
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
    return steps and p.dtype == q.dtype and address(p) == address(q)
