"""Metadata of loops for LLVM: how many elements at once, whether to unroll."""

from __future__ import annotations

from llvmlite import ir

from .vector import I32

MASKED = ("llvm.loop.vectorize.predicate.enable", ir.IntType(1)(1))
WHOLE = ("llvm.loop.unroll.disable",)  # or a loop of one vector is unrolled before it could be vectorised
SINGLY = ("llvm.loop.vectorize.enable", ir.IntType(1)(0))  # where AVX-512 would gather and scatter
FOURS = SINGLY, ("llvm.loop.unroll.count", I32(4))  # 1000x500 into every second float32: 260 us, by one 300


def at_a_time(lanes, vectors=1):
    """Hints for loops of so many vectors at once."""
    return ("llvm.loop.vectorize.width", I32(lanes)), ("llvm.loop.interleave.count", I32(vectors))


def one(lanes):
    """Hints for a loop that is one vector long: LLVM turns a buffer that it fills into a register."""
    return WHOLE, ("llvm.loop.vectorize.width", I32(lanes))


def node(module: ir.Module, *properties: tuple):
    """Metadata for a loop's branch: a node that names itself first, which llvmlite has no word for."""
    found = module.add_metadata([f"loop {len(module.metadata)}"])
    found.operands = (found, *[module.add_metadata(list(p)) for p in properties])
    return found
