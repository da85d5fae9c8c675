"""The tuner's winners in their place, as on the CPU (nbkernels/cpu/gemm/tuned.py), known by the GPU."""

from __future__ import annotations

import functools

from .. import winners
from ..dispatch import driver
from ..jit.ir.kind import Kind
from ..problem import slot
from .replay import forget
from .tiles import Tiles, illegal


@functools.cache
def place_of(device: int) -> str:
    (major, minor), count = driver.properties(device)
    return f"{driver.name(device)}, {major}.{minor}, {count} multiprocessors"


def place() -> str:
    """The current device, as winners are kept for it."""
    return "CUDA simulator" if driver.simulated() else place_of(driver.current())


@functools.cache
def tuned(chain: str, which: int, on: str) -> Tiles | None:
    """The winner for products whose chains are of a dtype in a slot, or None."""
    tiles = winners.find(chain, which, on, Tiles)
    return tiles if tiles and not illegal(tiles, chain) else None


def slot_of(out, a, b) -> int:
    """The slot of a product's arrays: the class of its shape and their layouts, in one number (problem.slot)."""
    left, right = (int(abs(x.strides[0]) < abs(x.strides[1])) for x in (a, b))
    turned = int(abs(out.strides[0]) < abs(out.strides[1]))
    return slot(*out.shape, a.shape[1], left, right, turned)


def winner(out, a, b, kind: Kind) -> Tiles | None:
    """For a product of arrays, or None."""
    return tuned(kind.chain, slot_of(out, a, b), place()) if winners.entries() else None


def renew() -> None:
    """From the next call on products go by the winners that are kept now."""
    winners.entries.cache_clear()
    tuned.cache_clear()
    forget()
