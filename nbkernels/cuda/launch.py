"""Kernel -> machine code -> launch: with assemble.py, the only lines here that know how Numba compiles and launches.

A kernel takes pointers and strides, never arrays: an array argument costs five parameters and two more for each
dimension, microseconds to type, and is addressed through integers, which hides from the compiler that it lies in global
memory. A pointer is indexed by distance from the array's first element; strides count elements, may be 0 or negative.
A number is as large as the parameter that it stands for, and a complex one is two.

Of arrays on the device (memory.py) only address, shape, strides, dtype, size and stream are asked, here and elsewhere.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numba import cuda
from numba.core import config

SIMULATED = bool(config.ENABLE_CUDASIM)
if SIMULATED:
    from . import simulator
else:
    try:
        from cuda import core
        from cuda.bindings import driver
    except ImportError as error:
        what = "CUDA arrays need numba-cuda: pip install 'nbkernels[cuda13]', or [cuda12] for drivers before r580"
        raise ImportError(f"{what} ({error})") from error


@dataclass(frozen=True, eq=False)
class Kernel:
    """A kernel's source with all that its machine code depends on: one body and one signature for every layout.

    Each is made once, by cached functions, and known by its identity: a signature takes 20 us to hash.
    """

    name: str
    body: Callable
    signature: tuple
    threads: int  # per block
    blocks: int = 1  # per multiprocessor, at least: bounds the registers

    def __str__(self) -> str:
        return self.name


class Notes(threading.local):
    """`launches`: what the driver is handed in a call that replay.py notes; None in one that is not noted."""

    launches = None


notes = Notes()


class Place(int):
    """An address among the arguments of a launch that is noted."""


def inlined(function):
    """A function that kernels call: written into them before they are typed, so that its constants are theirs."""
    return function if SIMULATED else cuda.jit(device=True, inline="always")(function)


def address(x) -> int:
    """Where x[0, 0, ...] is: of one of Numba's arrays, or of a View."""
    found = getattr(x, "address", None)
    if found is None:
        found = x._ary.ctypes.data if SIMULATED else x.device_ctypes_pointer.value
    return found or 0


class _Interface:
    def __init__(self, x):
        self.__array_interface__ = {
            "version": 3, "data": (address(x), False), "typestr": x.dtype.str, "shape": tuple(x.shape),
            "strides": tuple(x.strides),
        }  # fmt: skip


def ghost(x) -> np.ndarray:
    """A NumPy array at a device's addresses: for questions of layout, never to be read but in the simulator."""
    return np.asarray(_Interface(x))


def pointer(x, offset: int = 0, dtype=None):
    """What a kernel takes for the array x: the address of x[0, 0, ...], moved by `offset` bytes; its elements are taken
    for `dtype`, of the same size."""
    if SIMULATED:
        dtype = dtype or {"bool": "uint8", "bfloat16": "uint16"}.get(x.dtype.name, x.dtype)
        return simulator.Pointer(ghost(x).view(dtype), offset // x.dtype.itemsize)
    place = address(x) + offset
    if place % x.dtype.itemsize:
        raise ValueError(f"a {x.dtype} array on the GPU starts at address {place}, not a multiple of its size")
    return place if notes.launches is None else Place(place)


def elements(x, strides: tuple[int, ...]) -> tuple[int, ...]:
    """Byte strides of x in elements; a GPU loads an element only from a multiple of its size."""
    size = x.dtype.itemsize
    if any(stride % size for stride in strides):
        raise ValueError(f"strides {tuple(strides)} of a {x.dtype} array on the GPU are not multiples of its size")
    return tuple(stride // size for stride in strides)


def current() -> int:
    """Index of the thread's current device; where it has none, numba's default becomes it.

    The driver is asked: numba's own answer takes six calls of it, 20 us.
    """
    error, index = driver.cuCtxGetDevice()
    return cuda.get_current_device().id if error else int(index)


@functools.cache
def properties(index: int) -> tuple[tuple[int, int], int]:
    """(compute capability, number of multiprocessors) of a device."""
    device = cuda.gpus[index]
    return device.compute_capability, device.MULTIPROCESSOR_COUNT


def multiprocessors() -> int:
    """Of the current device; the simulator runs one block at a time."""
    return 1 if SIMULATED else properties(current())[1]


def launch(kernel: Kernel, grid: int, *arguments, stream=0) -> None:
    """Run `grid` blocks of the kernel on the current device, in order with `stream`; compiled at the first launch."""
    if SIMULATED:
        _simulated(kernel)[grid, kernel.threads](*arguments)
        return
    code = compiled(kernel, properties(current())[0])
    given = queue(stream), configuration(grid, kernel.threads), code, *_flat(arguments)
    if notes.launches is not None:
        notes.launches.append(given)
        given = [int(x) if type(x) is Place else x for x in given]
    core.launch(*given)


@functools.lru_cache(maxsize=1024)
def configuration(grid: int, threads: int):
    return core.LaunchConfig(grid=grid, block=threads)


def queue(stream):
    """A stream of Numba's, or 0 for the default one, as cuda.core knows it."""
    return core.Stream.from_handle(int(stream) if stream else 0)


def _flat(arguments):
    """Arguments as the driver takes them: an int is 8 bytes, a tuple its items, a complex number its two parts."""
    for argument in arguments:
        if isinstance(argument, tuple):
            yield from argument
        elif isinstance(argument, np.complexfloating):
            yield argument.real
            yield argument.imag
        else:
            yield argument


@functools.cache
def compiled(kernel: Kernel, cc):
    """The kernel as the driver launches it, on every device of compute capability cc."""
    from .assemble import assemble

    machine = assemble(kernel, cc)
    return core.ObjectCode.from_cubin(machine.cubin).get_kernel(machine.entry)


@functools.cache
def _simulated(kernel: Kernel):
    return cuda.jit(kernel.body)
