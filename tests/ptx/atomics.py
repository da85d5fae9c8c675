"""Atomics, one thread after the other, in the order of their numbers."""

from __future__ import annotations

import numpy as np

from .instructions import instruction
from .memory import LOWEST
from .moves import generic, space_of
from .operands import RAW, TYPES
from .warps import FOLDS

NAMES = (*FOLDS, "exch", "cas", "inc", "dec")


@instruction("atom", "red")
def atomic(each, operands):
    """d = [a]; [a] = op([a], b, ...)"""
    kind, space, parts = each.parts[-1], space_of(each), each.parts
    name = next(part for part in parts if part in NAMES)
    tokens = list(each.operands)
    put = operands.write(tokens.pop(0)) if parts[0] == "atom" else None
    address, inputs = operands.address(tokens[0]), [operands.read(token, kind) for token in tokens[1:]]
    dtype = TYPES[kind]
    size = dtype.itemsize

    def run(threads, lanes):
        where, addresses = (space, address(threads, lanes)) if space else generic(address(threads, lanes))
        given = [threads.each(x(threads, lanes), lanes) for x in inputs]
        if where == "shared":
            places = threads.shared.places(threads, lanes, addresses, size)
            threads.shared.touch(threads, lanes, threads.shared.cells(places, size))
            view, at = threads.shared.views[size].view(dtype), places // size
        else:
            threads.memory.check(addresses, size, write=True)
            view, at = threads.memory.views[size].view(dtype), (addresses - LOWEST) // size
        old = np.empty(len(at), dtype)
        for i, place in enumerate(at.tolist()):
            old[i] = view[place]
            view[place] = changed(name, old[i : i + 1], *(x[i : i + 1] for x in given))[0]
        if put:
            put(threads, lanes, old.view(RAW[size]))

    return run


def changed(name: str, old, value, other=None):
    if name in FOLDS:
        return FOLDS[name](old, value)
    if name == "exch":
        return value
    if name == "cas":
        return np.where(old == value, other, old)
    if name == "inc":
        return np.where(old >= value, 0, old + old.dtype.type(1)).astype(old.dtype)
    return np.where((old == 0) | (old > value), value, old - old.dtype.type(1))
