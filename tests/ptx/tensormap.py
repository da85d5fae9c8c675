"""Tiles of tensors in global memory, and their places in shared memory."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class TensorMap:
    """A tile of a tensor for cp.async.bulk.tensor, as cuTensorMapEncodeTiled takes it: sizes innermost first.

    `strides` are bytes, one for each dimension but the innermost; `swizzle` is 0, 32, 64 or 128.
    """

    address: int
    dims: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...]
    dtype: np.dtype
    swizzle: int = 128

    def __post_init__(self):
        size, rank = np.dtype(self.dtype).itemsize, len(self.dims)
        inner = self.box[0] * size
        problems = {
            f"{rank} dimensions": not 1 <= rank <= 5 or len(self.box) != rank or len(self.strides) != rank - 1,
            f"address {self.address:#x} is not a multiple of 16": self.address % 16 != 0,
            f"strides {self.strides} are not multiples of 16 below 2**40":
                any(s % 16 or not 0 <= s < 1 << 40 for s in self.strides),
            f"box {self.box} is not of 1 to 256 elements": any(not 1 <= b <= 256 for b in self.box),
            f"dims {self.dims} are not of 1 to 2**32": any(not 1 <= d <= 1 << 32 for d in self.dims),
            f"{inner} bytes of the innermost dimension are not a multiple of 16": inner % 16 != 0,
            f"{inner} bytes of the innermost dimension are more than the swizzle's {self.swizzle}":
                self.swizzle != 0 and inner > self.swizzle,
        }  # fmt: skip
        if wrong := [text for text, holds in problems.items() if holds]:
            raise ValueError("; ".join(wrong))

    @classmethod
    def of(cls, other) -> TensorMap:
        """This map, or another record of the same fields, whose dtype may be a name."""
        dtype = {"bfloat16": "u2", "tfloat32": "f4"}.get(other.dtype, other.dtype)
        return cls(other.address, other.dims, other.strides, other.box, np.dtype(dtype), other.swizzle)

    @property
    def bytes(self) -> int:
        return int(np.prod(self.box)) * np.dtype(self.dtype).itemsize

    def tile(self, start) -> tuple[np.ndarray, np.ndarray]:
        """(address of each byte of the box at these coordinates, whether it is inside the tensor), rows of bytes."""
        size = np.dtype(self.dtype).itemsize
        addresses, inside = np.array(self.address), np.array(True)
        for d in reversed(range(len(self.box))):
            at = np.arange(self.box[d]) + int(start[d])
            step = size if d == 0 else self.strides[d - 1]
            addresses, inside = addresses[..., None] + at * step, inside[..., None] & (at >= 0) & (at < self.dims[d])
        addresses = (addresses[..., None] + np.arange(size)).reshape(-1, self.box[0] * size)
        return addresses, np.repeat(inside.reshape(-1, self.box[0]), size, 1)

    def places(self, start: int) -> np.ndarray:
        """Where each byte of a box lies that begins at byte `start` of shared memory."""
        return swizzled(
            start + np.arange(self.bytes).reshape(-1, self.box[0] * np.dtype(self.dtype).itemsize), self.swizzle
        )


def swizzled(places: np.ndarray, span: int) -> np.ndarray:
    """16-byte pieces of a row are moved by the row's number, which repeats after 8 rows of 128 bytes."""
    return places if span == 0 else places ^ ((places >> 7 & span // 16 - 1) << 4)
