"""Kernel: a kernel by its name, loaded or compiled when it is first launched.

A kernel takes pointers and strides, never arrays: an array argument costs five parameters and two more for each
dimension, microseconds to type, and is addressed through integers, which hides from the compiler that it lies in global
memory. A pointer is indexed by distance from the array's first element; strides count elements, may be 0 or negative.
A number is as large as the parameter that it stands for, and a complex one is two.

Of arrays on the device (dispatch.driver.DeviceView) only address, shape, strides, dtype, size and stream are asked.
"""

from __future__ import annotations

import ctypes
import functools
import sys
import threading
from dataclasses import dataclass
from importlib import import_module

import numpy as np

from ..dispatch import driver
from ..dispatch.driver import recorder, simulated

KERNELS = f"{__package__}.kernels"  # where bodies are, which alone import Numba's compiler


def stored(dtype: str) -> np.dtype:
    """What an element of a dtype is in memory, as kernels see it."""
    return np.dtype({"bool": "uint8", "bfloat16": "uint16"}.get(dtype, dtype))


@dataclass(frozen=True, eq=False)
class Kernel:
    """A kernel by all that its machine code depends on beside the sources: one body and one signature for every layout.

    make, "module:function", gives (body, signature) of the arguments; it is imported where the kernel is compiled, so
    that what makes Kernels needs no compiler. Each is made once, by cached functions, and known by its identity.
    """

    make: str
    arguments: tuple
    threads: int  # per block
    blocks: int = 1  # per multiprocessor, at least: bounds the registers, but where some would be spilled for it
    shared: int = 0  # bytes of shared memory that the launch provides, beside what the body declares
    cluster: int = 1  # blocks of a cluster

    def __str__(self) -> str:
        module, _, function = self.make.partition(":")
        return " ".join([f"{module.rpartition('.')[2]}.{function}", *map(text, self.arguments)])

    def source(self):
        """(body, signature)"""
        module, _, function = self.make.partition(":")
        return getattr(import_module(module), function)(*self.arguments)


def text(argument) -> str:
    """An argument of a kernel as its name has it."""
    if isinstance(argument, tuple):
        return "-".join(map(text, argument)) or "()"
    return getattr(argument, "__name__", None) or str(argument)


class Place(int):
    """An address among the arguments of a launch."""


@dataclass(frozen=True)
class TensorMap:
    """A tiled tensor map (CUtensorMap) as a launch's argument: where the tensor is, and the box that one copy moves.

    dims and box count elements, the contiguous dimension first, whose stride is left out of `strides` (bytes); dtype is
    NumPy's name; swizzle is 0, 32, 64 or 128 bytes.
    """

    address: int
    dims: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...]
    dtype: str
    swizzle: int = 128
    promotion: int = 256  # bytes that an access brings into L2


def address(x) -> int:
    """Where x[0, 0, ...] is."""
    return x.address


def pointer(x, offset: int = 0, dtype=None):
    """What a kernel takes for the array x: the address of x[0, 0, ...], moved by `offset` bytes; its elements are taken
    for `dtype`, of the same size."""
    if simulated():
        from .kernels import simulator

        dtype = dtype or {"bool": "uint8", "bfloat16": "uint16"}.get(x.dtype.name, x.dtype)
        return simulator.Pointer(ghost(x).view(dtype), offset // x.dtype.itemsize)
    place = x.address + offset
    if place % x.dtype.itemsize:
        raise ValueError(f"a {x.dtype} array on the GPU starts at address {place}, not a multiple of its size")
    return Place(place)


class _Interface:
    def __init__(self, x):
        self.__array_interface__ = {
            "version": 3, "data": (x.address, False), "typestr": x.dtype.str, "shape": tuple(x.shape),
            "strides": tuple(x.strides),
        }  # fmt: skip


def ghost(x) -> np.ndarray:
    """A NumPy array at a device's addresses: for questions of layout, never to be read but in the simulator."""
    return np.asarray(_Interface(x))


def elements(x, strides: tuple[int, ...]) -> tuple[int, ...]:
    """Byte strides of x in elements; a GPU loads an element only from a multiple of its size."""
    size = x.dtype.itemsize
    if any(stride % size for stride in strides):
        raise ValueError(f"strides {tuple(strides)} of a {x.dtype} array on the GPU are not multiples of its size")
    return tuple(stride // size for stride in strides)


def capability() -> tuple[int, int]:
    """Of the current device; the simulator's is one of no card."""
    return (0, 0) if simulated() else driver.properties(driver.current())[0]


def multiprocessors() -> int:
    """Of the current device; the simulator runs one block at a time."""
    return 1 if simulated() else driver.properties(driver.current())[1]


def launch(kernel: Kernel, grid, *arguments, stream=0) -> None:
    """Run `grid` blocks of the kernel, a number or up to three, on the current device, in order with `stream`."""
    if simulated():
        _simulated(kernel)[grid, kernel.threads](*arguments)
        return
    if recorder.noted is not None:
        recorder.noted(kernel)
        return
    prepared = Launch(kernel, loaded(kernel, driver.current()), grid, tuple(flat(arguments)), stream or 0)
    if recorder.launches is not None:
        recorder.launches.append(prepared)
    prepared()


def flat(arguments):
    """Arguments as the driver takes them: tuples laid open, a complex number as its two parts."""
    for argument in arguments:
        if isinstance(argument, tuple):
            yield from flat(argument)
        elif isinstance(argument, np.complexfloating):
            yield argument.real
            yield argument.imag
        else:
            yield argument


class Launch:
    """A launch as the driver takes it, prepared: called, it is made, as often as one likes.

    `places` are the pointers among its parameters: (index among the `words`, address), which may be written anew under
    the `lock`; `maps` its tensor maps, likewise: (index of the first of a map's 16 words, address).
    """

    def __init__(self, kernel, function, grid, arguments, stream):
        cuda = driver.bindings()
        self.kernel, self.function, self.arguments, self.lock = kernel, function, arguments, threading.Lock()
        self.grid = (*grid, 1, 1)[:3] if isinstance(grid, tuple) else (grid, 1, 1)
        maps = [i for i, argument in enumerate(arguments) if isinstance(argument, TensorMap)]
        buffer = np.zeros(128 * len(maps) + 8 * len(arguments) + 64, np.uint8)
        start = buffer.ctypes.data
        skipped = -start % 64  # where a tensor map has to lie
        self.memory = memoryview(buffer)[skipped:]
        self.words = self.memory[: self.memory.nbytes // 8 * 8].cast("q")
        self.base = start + skipped  # where the words are
        self.table = np.empty(max(len(arguments), 1), np.uint64)
        self.places, self.maps, end = [], [], 128 * len(maps)
        for i, argument in enumerate(arguments):
            at = end
            if isinstance(argument, TensorMap):
                at = 128 * len(self.maps)
                self.memory[at : at + 128] = encoded(argument)
                self.maps.append((at // 8, argument.address))
            elif isinstance(argument, int):
                self.words[at // 8] = argument
                if type(argument) is Place:
                    self.places.append((at // 8, int(argument)))
                end += 8
            else:
                data = argument.tobytes()
                self.memory[at : at + len(data)] = data
                end += 8
            self.table[i] = self.base + at
        self.parameters = self.table.ctypes.data
        self.config = config = cuda.CUlaunchConfig()
        config.gridDimX, config.gridDimY, config.gridDimZ = self.grid
        config.blockDimX, config.blockDimY, config.blockDimZ = kernel.threads, 1, 1
        config.sharedMemBytes, config.hStream = kernel.shared, cuda.CUstream(stream)
        if kernel.cluster > 1:
            attribute = cuda.CUlaunchAttribute()
            attribute.id = cuda.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
            value = attribute.value.clusterDim
            value.x, value.y, value.z = kernel.cluster, 1, 1
            config.attrs, config.numAttrs = [attribute], 1
        self.start = cuda.cuLaunchKernelEx

    def __call__(self):
        (error,) = self.start(self.config, self.function, self.parameters, 0)
        if error:
            raise driver.DriverError(f"cuLaunchKernelEx of {self.kernel}", error)


def encoded(map: TensorMap) -> bytes:
    """The 128 bytes of a CUtensorMap. The driver asks for a multiple of 64 as its place, which cuda.bindings' own
    object need not have, so it is called by its address."""
    kinds = {"uint8": 0, "int8": 0, "uint16": 1, "uint32": 2, "int32": 3, "uint64": 4, "int64": 5, "float16": 6,
             "float32": 7, "float64": 8, "bfloat16": 9, "tfloat32": 11}  # fmt: skip
    count, (u32, u64) = len(map.dims), (ctypes.c_uint32, ctypes.c_uint64)
    raw = (ctypes.c_uint8 * 192)()
    at = -ctypes.addressof(raw) % 64
    status = encoder().cuTensorMapEncodeTiled(
        ctypes.c_void_p(ctypes.addressof(raw) + at), kinds[map.dtype], u32(count), ctypes.c_void_p(map.address),
        (u64 * count)(*map.dims), (u64 * max(count - 1, 1))(*map.strides), (u32 * count)(*map.box),
        (u32 * count)(*[1] * count), 0, (0, 32, 64, 128).index(map.swizzle), (0, 64, 128, 256).index(map.promotion), 0,
    )  # fmt: skip
    if status:
        raise driver.DriverError(f"cuTensorMapEncodeTiled of {map}", status)
    return bytes(raw[at : at + 128])


@functools.cache
def address_first() -> bool:
    """Whether a tensor map's first word is its address, and no other depends on it: then it is written as a pointer is,
    in 0.06 us where the driver takes 0.7. No manual says so: the driver is asked to move one."""
    before, after = 1 << 32, (1 << 40) + 4096
    held = np.zeros(24, np.uint64)
    words = held[-held.ctypes.data % 64 // 8 :][:16]
    words[:] = np.frombuffer(encoded(TensorMap(before, (64, 64), (128,), (64, 64), "float16")), np.uint64)
    expected = [after, *words[1:].tolist()]
    asked = words[0] == before
    replace(words.ctypes.data, after)
    return bool(asked) and words.tolist() == expected


def replace(at, address):
    """Let the tensor map at a place of this process's memory begin at another address of the device's."""
    status = encoder().cuTensorMapReplaceAddress(ctypes.c_void_p(at), ctypes.c_void_p(address))
    if status:
        raise driver.DriverError("cuTensorMapReplaceAddress", status)


@functools.cache
def encoder():
    """The driver's library, for what takes a tensor map by its address."""
    return ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")


@functools.cache
def loaded(kernel: Kernel, device: int):
    """The kernel as the driver launches it on a device."""
    cuda, (function, _static) = driver.bindings(), library(kernel, driver.properties(device)[0])
    if kernel.shared:
        attribute = cuda.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        driver.ask("cuKernelSetAttribute", attribute, kernel.shared, function, driver.ask("cuDeviceGet", device))
    return cuda.CUfunction(int(function))


@functools.cache
def library(kernel: Kernel, cc):
    """(the kernel in a library that serves every device of compute capability cc, that library)"""
    from . import cubins

    machine = cubins.machine(kernel, cc)
    try:
        return _loaded(machine)
    except driver.DriverError as error:
        if error.code not in driver.UNFIT or machine.fresh:
            raise
    return _loaded(cubins.compiled(kernel, cubins.architecture(cc)))  # the file holds what this driver does not take


def _loaded(machine):
    held = driver.ask("cuLibraryLoadData", machine.cubin, [], [], 0, [], [], 0)
    return driver.ask("cuLibraryGetKernel", held, machine.entry.encode()), held


@functools.cache
def _simulated(kernel: Kernel):
    from numba import cuda

    return cuda.jit(kernel.source()[0])
