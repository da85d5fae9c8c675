"""Global memory: buffers of the host, registered at their real addresses. Nothing outside them is read or written."""

from __future__ import annotations

import numpy as np

LOWEST = 4096  # NumPy takes address 0 for no memory at all
UNSIGNED = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}


class Trap(Exception):
    """A kernel did what a GPU forbids, or what makes its result depend on chance."""


class _Everything:
    """All of the address space as one array: an element is touched only by its index, after its bounds are checked."""

    def __init__(self, size: int):
        self.__array_interface__ = {
            "version": 3, "data": (LOWEST, False), "typestr": f"<u{size}", "shape": ((1 << 47) // size,),
        }  # fmt: skip


class Memory:
    """Buffers, each an interval of addresses that may be read, and written where it is `writable`.

    >>> x = np.arange(4, dtype="f4")
    >>> memory = Memory()
    >>> memory.register(x)
    >>> int(memory.load(np.array([x.ctypes.data + 4]), 4)[0].view("f4"))
    1
    """

    def __init__(self, *arrays: np.ndarray):
        self.spans, self.kept, self.allocated = {}, [], []
        self.maps = {}  # tensor maps that lie in memory, by address
        self.views = {size: np.asarray(_Everything(size)) for size in UNSIGNED}
        for array in arrays:
            self.register(array)

    def register(self, array: np.ndarray, writable: bool = True) -> None:
        """All bytes between an array's lowest and highest element; a kernel may write them if NumPy may."""
        low, high = np.lib.array_utils.byte_bounds(array)
        self.span(low, high, writable and array.flags.writeable)
        self.kept.append(array)
        while isinstance(array.base, np.ndarray):
            array = array.base
        self.allocated.append(np.lib.array_utils.byte_bounds(array))

    def span(self, low: int, high: int, writable: bool = True) -> None:
        """Addresses from low to high - 1. Spans that overlap become one, written where one of them may be."""
        if high <= low:
            return
        for (start, end), allowed in list(self.spans.items()):
            if start < high and low < end:
                del self.spans[start, end]
                low, high, writable = min(low, start), max(high, end), writable or allowed
        self.spans[low, high] = writable
        ordered = sorted(self.spans)
        self.starts, self.ends = (np.array(side, np.int64) for side in zip(*ordered))
        self.writable = np.array([self.spans[each] for each in ordered])

    def forget(self, low: int) -> None:
        """Take the span that begins at `low` away again."""
        self.spans = {span: writable for span, writable in self.spans.items() if span[0] != low}
        ordered = sorted(self.spans) or [(0, 0)]
        self.starts, self.ends = (np.array(side, np.int64) for side in zip(*ordered))
        self.writable = np.array([self.spans.get(each, False) for each in ordered])

    def check(self, addresses: np.ndarray, size: int, write: bool = False, align: int | None = None) -> None:
        """Trap where an access of `size` bytes is misaligned, outside every buffer, or writes what is read-only."""
        addresses, what = addresses.astype(np.int64), "store" if write else "load"
        wrong = addresses % (align or size) != 0
        if wrong.any():
            raise Trap(f"misaligned global {what} of {size} bytes at {int(addresses[wrong.argmax()]):#x}")
        if not self.spans:
            raise Trap(f"global {what} of {size} bytes, and no buffer is registered")
        which = np.searchsorted(self.starts, addresses, "right") - 1
        outside = (which < 0) | (addresses + size > self.ends[which])
        if outside.any():
            raise Trap(self.outside(int(addresses[outside.argmax()]), size, what, int(outside.sum())))
        if write and not self.writable[which].all():
            at = int(addresses[self.writable[which].argmin()])
            raise Trap(f"global store of {size} bytes at {at:#x}, which is read-only")

    def check_allocated(self, addresses: np.ndarray, size: int) -> None:
        """Trap where `size` bytes are not all in one array, or in the one that it is a view of."""
        first, (low, high) = addresses.astype(np.int64)[:, None], np.array(self.allocated, np.int64).reshape(-1, 2).T
        outside = ~((low <= first) & (first + size <= high)).any(1)
        if outside.any():
            at = int(addresses[outside.argmax()])
            raise Trap(f"a copy of up to {size} bytes from {at:#x} ends outside of every allocation")

    def outside(self, at: int, size: int, what: str, lanes: int) -> str:
        near = min(self.spans, key=lambda span: max(span[0] - at, at - span[1]))
        distance = f"{near[0] - at} bytes before" if at < near[0] else f"{at + size - near[1]} bytes past the end of"
        return (f"global {what} of {size} bytes outside every buffer, by {lanes} lanes: "
                f"{distance} the one of {near[1] - near[0]} bytes at {near[0]:#x}")  # fmt: skip

    def load(self, addresses: np.ndarray, size: int, count: int = 1) -> list[np.ndarray]:
        """`count` neighbours of `size` bytes from each address."""
        self.check(addresses, size * count)
        at = (addresses.astype(np.int64) - LOWEST) // size
        return [self.views[size][at + i] for i in range(count)]

    def store(self, addresses: np.ndarray, size: int, values: list[np.ndarray]) -> None:
        self.check(addresses, size * len(values), write=True)
        at = (addresses.astype(np.int64) - LOWEST) // size
        for i, value in enumerate(values):
            self.views[size][at + i] = value

    def gather(self, addresses: np.ndarray) -> np.ndarray:
        """Bytes at addresses that have been checked."""
        return self.views[1][addresses.astype(np.int64) - LOWEST]

    def scatter(self, addresses: np.ndarray, values: np.ndarray) -> None:
        """Bytes to addresses that have been checked."""
        self.views[1][addresses.astype(np.int64) - LOWEST] = values
