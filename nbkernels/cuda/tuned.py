"""The tuner's winners in their place, as on the CPU (nbkernels/cpu/gemm/tuned.py), known by the GPU.

They are Tiles of the SIMT kernel, and from compute capability 8.0 on configs of product/, of its tiers.
"""

from __future__ import annotations

import functools

from .. import winners
from ..dispatch import driver
from ..jit.ir.kind import Kind
from ..problem import slot
from .launch import capability
from .product.config import GemmConfig, legal
from .product.tensor import takes
from .replay import forget
from .tiles import Tiles, illegal

TENSOR = ("M", "W")  # tiers of products that tensor cores compute; all others are of the other tiers


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


def named(kind: Kind, mode: str | None) -> str:
    """The name under which a kind's winners are kept: the operands' dtype and the mode; int8 and uint8 by tensor cores
    share one."""
    name = "int8" if takes(kind, mode) and kind.chain == "int32" else kind.a
    return f"{name} {mode}" if mode else name


def refused(config: GemmConfig, kind: Kind, mode: str | None, cc) -> list[str]:
    """Why a config is none for products of a kind on a compute capability, one reason a line; empty if it is."""
    tensor = takes(kind, mode)
    if (config.tier in TENSOR) != tensor:
        return [f"tier {config.tier}: {named(kind, mode)} is multiplied {'by' if tensor else 'without'} tensor cores"]
    if config.tier == "M" and mode == "tf32" and cc == (9, 0):
        return ["tier M: wgmma of tfloat32 does not always have the bits of mma.sync"]
    return legal(config, kind.a if tensor else kind.chain, cc)


@functools.cache
def kept(name: str, which: int, on: str):
    """(config, the fewest and the most elements of C, steps of k likewise) of a slot's winner, or None."""
    config, sizes = winners.find(name, which, on, GemmConfig), winners.judged(name, which, on)
    if config is None or not sizes:
        return None
    spans = [m * n for m, n, _ in sizes], [k for *_, k in sizes]
    return config, *((min(span), max(span)) for span in spans)


def fastest(out, a, b, kind: Kind, mode: str | None) -> GemmConfig | None:
    """The winner for a product of matrices by product/, or None: where there is none that the card has for the kind;
    where the product is smaller or larger than all that the winner was measured on, which fills the card in another
    way, as a stack does; of tier W where C is stored by columns, of which it computes no transpose.
    """
    if not winners.entries() or len(out.shape) != 2:
        return None
    found = kept(named(kind, mode), slot_of(out, a, b), place())
    if found is None:
        return None
    config, *spans = found
    (m, n), by_columns = out.shape, abs(out.strides[0]) < abs(out.strides[1])
    within = all(low <= size <= high for (low, high), size in zip(spans, (m * n, a.shape[1])))
    fits = within and not (config.tier == "W" and by_columns) and not refused(config, kind, mode, capability())
    return config if fits else None


def renew() -> None:
    """From the next call on products go by the winners that are kept now."""
    for cached in (winners.entries, tuned, kept):
        cached.cache_clear()
    forget()
