"""Grids: blocks are run a number at a time, as threads of one machine."""

from __future__ import annotations

import functools

import numpy as np

# These fill the table of instructions.
from . import arithmetic, atomics, barriers, bulk, clusters, control, copies, matrix, moves, real, warps, wgmma  # noqa: F401
from .inflight import watched
from .instructions import compiled
from .machine import WARP, Threads
from .memory import Memory, Trap
from .operands import PARAM
from .tensormap import TensorMap

TOGETHER = 4096  # threads that run together: enough for NumPy's calls to be worth it, few enough to stay in the cache
SHADOW = 1 << 26  # bytes that keep book of their shared memory


@functools.lru_cache(maxsize=256)
def cached(ptx: str):
    return watched(compiled(ptx))


class Launch:
    """What all blocks of a launch share."""

    def __init__(self, ptx: str, grid, block, arguments, memory: Memory, shared: int = 0, cluster: int = 1):
        self.compiled, self.memory, self.shared, self.cluster = cached(ptx), memory, shared, cluster
        self.grid, self.block = triple(grid), triple(block)
        threads, most = int(np.prod(self.block)), self.compiled.program.most_threads
        if threads > (most or 1024):
            raise ValueError(f"{threads} threads a block; the kernel is made for {most or 1024} at most")
        if self.grid[0] % cluster:
            raise ValueError(f"a grid of {self.grid[0]} blocks is not made of clusters of {cluster}")
        self.constants, self.maps = self.parameters(arguments)

    def parameters(self, arguments) -> tuple[np.ndarray, dict]:
        """(the parameters' bytes, tensor maps by the places where they start)"""
        places, sizes = self.compiled.operands.parameters, self.compiled.program.parameters
        if len(arguments) != len(places):
            raise ValueError(f"{len(arguments)} arguments for {len(places)} parameters")
        total = max((place + sizes[name] for name, place in places.items()), default=0)
        raw, maps = np.zeros(total, np.uint8), {}
        for (name, place), argument in zip(places.items(), arguments):
            if hasattr(argument, "box"):
                maps[place] = TensorMap.of(argument)
                continue
            if isinstance(argument, int):
                argument = np.uint64(argument % (1 << 64))
            data = argument if isinstance(argument, bytes) else argument.tobytes()
            if len(data) != sizes[name]:
                raise ValueError(f"{argument!r} of {len(data)} bytes for a parameter of {sizes[name]}")
            raw[place : place + len(data)] = np.frombuffer(data, np.uint8)
        return raw, maps

    def tensor_map(self, address: int):
        found = self.maps.get(address - PARAM) or self.memory.maps.get(address)
        if found is None:
            raise Trap(f"there is no tensor map at {address:#x}")
        return found

    def run(self) -> None:
        x, y, z = self.grid
        blocks = [(i, j, k) for k in range(z) for j in range(y) for i in range(x)]
        each = int(np.prod(self.block))
        size = self.compiled.operands.sizes["shared"] + self.shared
        shadow = size // self.compiled.cell * (4 * -(-each // WARP) * self.cluster + 32)
        count = max(1, min(TOGETHER // each, SHADOW // max(1, shadow)) // self.cluster) * self.cluster
        for buffer in self.compiled.operands.constants:
            self.memory.register(buffer)
        with np.errstate(all="ignore"):
            for first in range(0, len(blocks), count):
                Threads(self.compiled, self, blocks[first : first + count]).run()
        for buffer in self.compiled.operands.constants:
            self.memory.forget(buffer.ctypes.data)


def triple(size) -> tuple[int, int, int]:
    sizes = (size,) if isinstance(size, int | np.integer) else tuple(size)
    return (*map(int, sizes), *(1,) * (3 - len(sizes)))


def run(ptx: str, grid, block, arguments, memory: Memory, shared: int = 0, cluster: int = 1) -> None:
    """Run a module's kernel on a grid.

    `arguments` are what the driver is handed: an int of Python's is 8 bytes, a number of NumPy's has its own size, a
    tensor map is an object (asynchronous.py). `shared` is the dynamic shared memory of a block in bytes, `cluster` the
    blocks of a cluster along x.
    """
    Launch(ptx, grid, block, arguments, memory, shared, cluster).run()
