"""The tuner's table: tiles that `python -m nbkernels tune` found fastest here, in place of those that are derived.

A JSON file beside the compiled code, read once a process, at the first product that packs. Winners are known by dtype,
processor and caches, so that a directory that machines share serves each its own; what is missing, broken or not legal
here is as if it were not there. NBKERNELS_TUNED=0 leaves the table unread. No bit of a result depends on it.
"""

from __future__ import annotations

import functools
import os

from ..jit import files, levels
from ..jit.vector import SIZE, width_bits
from ..store import Store
from .tiles import Tiles, caches, illegal

LARGEST = 1 << 24  # of a size: what is larger was never measured


def store() -> Store | None:
    """Where winners are kept; None where nothing can be."""
    directory = files.directory()
    return Store(directory / "tiles.json") if directory else None


def key(dtype: str) -> str:
    """What a winner is kept under."""
    return f"gemm {dtype} {levels.target()[1]} {width_bits()} bits, L1 {caches()[0]}, L2 {caches()[1]}"


@functools.cache
def tuned(dtype: str) -> Tiles | None:
    """The winner for products whose chains are of the dtype, or None."""
    if dtype not in SIZE or os.environ.get("NBKERNELS_TUNED", "1") == "0" or not store():
        return None
    tiles = store().get(key(dtype), Tiles)
    sizes = () if tiles is None else vars(tiles).values()
    sound = sizes and all(type(size) is int and size <= LARGEST for size in sizes)
    return tiles if sound and not illegal(tiles, dtype) else None
