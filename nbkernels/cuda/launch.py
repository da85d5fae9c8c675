"""Kernel -> machine code -> launch: with assemble.py, the only lines here that know how Numba compiles and launches.

A kernel takes pointers and strides, never arrays: an array argument costs five parameters and two more for each
dimension, microseconds to type, and is addressed through integers, which hides from the compiler that it lies in global
memory. A pointer is indexed by distance from the array's first element; strides count elements, may be 0 or negative.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass

from numba import cuda
from numba.core import config

SIMULATED = bool(config.ENABLE_CUDASIM)
if SIMULATED:
    from . import simulator
else:
    try:
        from cuda import core
    except ImportError as error:
        what = "CUDA arrays need numba-cuda: pip install 'nbkernels[cuda13]', or [cuda12] for drivers before r580"
        raise ImportError(f"{what} ({error})") from error


@dataclass(frozen=True)
class Kernel:
    """A kernel's source with all that its machine code depends on: one body and one signature for every layout."""

    name: str
    body: Callable
    signature: tuple
    threads: int  # per block
    blocks: int = 1  # per multiprocessor, at least: bounds the registers

    def __str__(self) -> str:
        return self.name


def inlined(function):
    """A function that kernels call: written into them before they are typed, so that its constants are theirs."""
    return function if SIMULATED else cuda.jit(device=True, inline="always")(function)


def pointer(x, offset: int = 0, dtype=None):
    """What a kernel takes for the array x: the address of x[0, 0, ...], moved by `offset` bytes; its elements are taken
    for `dtype`, of the same size."""
    if SIMULATED:
        return simulator.Pointer(x._ary.view(dtype or x.dtype), offset // x.dtype.itemsize)
    address = (x.device_ctypes_pointer.value or 0) + offset
    if address % x.dtype.itemsize:
        raise ValueError(f"a {x.dtype} array on the GPU starts at address {address}, not a multiple of its size")
    return address


def elements(x, strides: tuple[int, ...]) -> tuple[int, ...]:
    """Byte strides of x in elements; a GPU loads an element only from a multiple of its size."""
    size = x.dtype.itemsize
    if any(stride % size for stride in strides):
        raise ValueError(f"strides {tuple(strides)} of a {x.dtype} array on the GPU are not multiples of its size")
    return tuple(stride // size for stride in strides)


def empty(shape, like, dtype=None):
    """An uninitialised array of like's dtype, or of another, ordered on its stream."""
    return cuda.device_array(tuple(shape), dtype or like.dtype, stream=like.stream)


def multiprocessors() -> int:
    """Of the current device; the simulator runs one block at a time."""
    return 1 if SIMULATED else cuda.get_current_device().MULTIPROCESSOR_COUNT


def launch(kernel: Kernel, grid: int, *arguments, stream=0) -> None:
    """Run `grid` blocks of the kernel on the current device, in order with `stream`; compiled at the first launch."""
    if SIMULATED:
        _simulated(kernel)[grid, kernel.threads](*arguments)
        return
    cuda.current_context()  # the driver takes the thread's current context
    code = compiled(kernel, cuda.get_current_device().compute_capability)
    config = core.LaunchConfig(grid=grid, block=kernel.threads)
    core.launch(core.Stream.from_handle(int(stream) if stream else 0), config, code, *_flat(arguments))


def _flat(arguments):
    """Arguments as the driver takes them: an int is 8 bytes, a tuple its items."""
    for argument in arguments:
        if isinstance(argument, tuple):
            yield from argument
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
