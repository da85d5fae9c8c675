"""A CUDA device that only takes notes: numba's own device arrays over memory that is not there, and what would be
launched on them. The host's half of every call runs as on a GPU, down to the driver.
"""

import ctypes
import functools
import struct
import sys
from types import SimpleNamespace

import numpy as np
from numba import types

NEWEST = (9, 0)
APART = 1 << 24  # between what two pointers point to
# What numba's device arrays do that host code must not ask for: their views are wrong (dummyarray.py).
FORBIDDEN = ("__getitem__", "__setitem__", "__array__", "reshape", "ravel", "squeeze", "split", "transpose", "T",
             "copy_to_host")  # fmt: skip


CONTEXT = SimpleNamespace(device=SimpleNamespace(id=0))


class Notes:
    """`events`: ("allocate" | "free", address, stream), ("copy", address, stream), ("join", from, to) and
    ("launch", kernel, arguments, stream), in order."""

    def __init__(self):
        self.events, self.next, self.kernels, self.devices, self.sizes = [], 1 << 40, [], 1, {}

    def room(self, size=0):
        self.next += APART
        assert size < APART
        return self.next

    def array(self, shape, dtype="float32", strides=None, stream=0):
        """One of numba's device arrays, at a place of its own."""
        dtype = np.dtype(dtype)
        strides = np.empty(shape, dtype).strides if strides is None else strides
        return self.devicearray.DeviceNDArray(shape, strides, dtype, stream, self.memory(self.room()))

    def memory(self, address):
        return self.driver.MemoryPointer(CONTEXT, self.driver.binding.CUdeviceptr(address), APART)

    def like(self, x, stream=0):
        """A device array with the shape, strides and dtype of NumPy's."""
        return self.array(x.shape, x.dtype, x.strides, stream)

    @property
    def launches(self):
        return [event[1:] for event in self.events if event[0] == "launch"]


class Stream:
    def __init__(self, handle):
        self.handle = handle

    def __int__(self):
        return self.handle


def refused(name):
    def method(*args, **kwargs):
        raise AssertionError(f"host code asks numba's device arrays for {name}")

    return property(method) if name == "T" else method


class Driver:
    """cuda.bindings.driver, as far as nbkernels asks it: answers as a new card would, and takes notes."""

    CUdevice_attribute = SimpleNamespace(**{
        f"CU_DEVICE_ATTRIBUTE_{name}": value
        for name, value in (("COMPUTE_CAPABILITY_MAJOR", NEWEST[0]), ("COMPUTE_CAPABILITY_MINOR", NEWEST[1]),
                            ("MULTIPROCESSOR_COUNT", 132))
    })  # fmt: skip
    CUevent_flags = SimpleNamespace(CU_EVENT_DISABLE_TIMING=2)
    CUlaunchConfig, CUstream, CUfunction = SimpleNamespace, int, int

    def __init__(self, notes):
        self.notes, self.recorded, self.device = notes, {}, 0

    def cuCtxGetDevice(self):
        return 0, self.device

    def cuDeviceGet(self, index):
        return 0, index

    def cuDeviceGetCount(self):
        return 0, self.notes.devices

    def cuDeviceGetName(self, size, device):
        return 0, b"a card that takes notes\0 and what was there before"

    def cuDevicePrimaryCtxRetain(self, device):
        return 0, device

    def cuCtxPushCurrent(self, context):
        self.pushed, self.device = self.device, context
        return (0,)

    def cuCtxPopCurrent(self):
        self.device, context = self.pushed, self.device
        return 0, context

    def cuDeviceGetAttribute(self, value, device):
        return 0, value

    def cuEventCreate(self, flags):
        return 0, len(self.recorded)

    def cuEventRecord(self, event, stream):
        self.recorded[event] = stream
        return (0,)

    def cuStreamWaitEvent(self, stream, event, flags):
        self.notes.events.append(("join", self.recorded[event], stream))
        return (0,)

    def cuEventDestroy(self, event):
        return (0,)

    def cuMemAllocAsync(self, size, stream):
        self.notes.events.append(("allocate", self.notes.room(size), stream))
        return 0, self.notes.next

    def cuMemFreeAsync(self, address, stream):
        self.notes.events.append(("free", address, stream))
        return (0,)

    def cuMemcpyHtoDAsync(self, address, source, size, stream):
        self.notes.events.append(("copy", address, stream))
        return (0,)

    def cuMemsetD8Async(self, address, value, size, stream):
        self.notes.events.append(("clear", address, stream))
        return (0,)

    def cuTensorMapEncodeTiled(self, to, kind, count, address, *rest):
        return self.cuTensorMapReplaceAddress(to, address)

    def cuTensorMapReplaceAddress(self, to, address):
        ctypes.c_uint64.from_address(to.value).value = address.value
        return 0

    def cuStreamIsCapturing(self, stream):
        return 0, 0

    def cuStreamSynchronize(self, stream):
        return (0,)

    def cuMemcpyDtoH(self, target, address, size):
        ctypes.memset(target, 0, size)
        return (0,)

    def cuLaunchKernelEx(self, config, function, parameters, extra):
        sizes = self.notes.sizes[parameters]
        table = (ctypes.c_uint64 * len(sizes)).from_address(parameters)
        found = Arguments(int.from_bytes(ctypes.string_at(at, n), sys.byteorder, signed=True)
                          for at, n in zip(table, sizes))  # fmt: skip
        found.sizes = sizes
        self.notes.events.append(("launch", self.notes.kernels[function], found, config.hStream))
        return (0,)


MAP = 128  # bytes of a tensor map


class Arguments(tuple):
    """The parameters of a launch as numbers, with their `sizes` in bytes."""


def device(monkeypatch):
    """The Notes of a device that is there until the test ends."""
    import numba.cuda
    from numba.cuda.cudadrv import devicearray
    from numba.cuda.cudadrv import driver as numbas

    from nbkernels.cuda import launch, replay
    from nbkernels.dispatch import driver

    notes = Notes()
    notes.devicearray, notes.driver, notes.cuda = devicearray, numbas, Driver(notes)

    def noted(self, kernel, function, grid, arguments, stream):
        prepared(self, kernel, function, grid, arguments, stream)
        notes.sizes[self.parameters] = given(arguments)

    prepared = launch.Launch.__init__
    monkeypatch.setattr(launch.Launch, "__init__", noted)

    def loaded(kernel, index):
        notes.kernels.append(kernel)
        return len(notes.kernels) - 1

    replaced = {
        numba.cuda: dict(current_context=lambda: CONTEXT, device_array=notes.array, to_device=refused("to_device")),
        driver: dict(bindings=lambda: notes.cuda),
        launch: dict(loaded=functools.cache(loaded), encoder=lambda: notes.cuda),
        devicearray.DeviceNDArray: {name: refused(name) for name in FORBIDDEN},
    }  # fmt: skip
    for place, members in replaced.items():
        for name, value in members.items():
            monkeypatch.setattr(place, name, value, raising=False)
    for cached in (driver.primary, driver.properties, driver.name):
        cached.cache_clear()
    replay.forget()
    # Chains, which conftest.py asks for, are the CPU's.
    monkeypatch.setattr(sys.modules["nbkernels.modes"], "OF_GPUS", ("tf32",))
    return notes


def signed(kernel) -> list[int]:
    """Sizes of a kernel's parameters by its signature: a tuple's items, two of a complex number."""

    from nbkernels.cuda.product.hopper import tensor_map

    def sizes(part):
        if part == tensor_map:
            return [MAP]
        if isinstance(part, types.CPointer):
            return [8]
        if isinstance(part, types.BaseTuple):
            return [size for item in part.types for size in sizes(item)]
        if isinstance(part, types.Complex):
            return [part.bitwidth // 16] * 2
        return [1 if part == types.boolean else part.bitwidth // 8]

    return [size for part in kernel.source()[1] for size in sizes(part)]


def given(arguments) -> list[int]:
    """Sizes of what a launch is given: an int is 8 bytes, a tensor map 128, other numbers are NumPy's."""
    from nbkernels.cuda.launch import TensorMap

    for argument in arguments:
        assert isinstance(argument, int | np.number | np.bool_ | TensorMap), argument
        assert not isinstance(argument, np.complexfloating), "a complex number is two parameters"
    sizes = {int: 8, TensorMap: MAP}
    return [next((size for cls, size in sizes.items() if isinstance(argument, cls)), getattr(argument, "itemsize", 0))
            for argument in arguments]  # fmt: skip


def parameters(cubin: bytes, entry: str) -> list[int]:
    """Sizes of the parameters of a kernel, from its machine code: the attributes KPARAM_INFO of .nv.info."""
    start, (count, names) = struct.unpack_from("<Q", cubin, 0x28)[0], struct.unpack_from("<HH", cubin, 0x3C)
    headers = [struct.unpack_from("<IIQQQQ", cubin, start + 64 * i) for i in range(count)]
    for name, _, _, _, offset, size in headers:
        at = headers[names][4] + name
        if cubin[at : cubin.index(b"\0", at)].decode() != f".nv.info.{entry}":
            continue
        found, place = {}, offset
        while place < offset + size:
            form, attribute, length = struct.unpack_from("<BBH", cubin, place)
            if attribute == 0x17:
                _, ordinal, _, flags = struct.unpack_from("<IHHI", cubin, place + 4)
                found[ordinal] = flags >> 18
            place += 4 + (length if form == 4 else 0)
        return [found[ordinal] for ordinal in sorted(found)]
    raise AssertionError(f"no .nv.info.{entry}")


def tensors(monkeypatch, notes):
    """Let torch's CPU tensors stand for tensors on the noted device, on a stream that `notes.stream` says."""
    import torch

    from nbkernels import tensor_calls
    from nbkernels.cuda import replay
    from nbkernels.dispatch import devices
    from nbkernels.dispatch.adapter import Device
    from nbkernels.dispatch.driver import DeviceView

    notes.stream = 0

    def view(self, x):
        self.check(x)
        x = x.detach()
        shape, dtype, strides = self.spec(x)
        return DeviceView(x.data_ptr(), shape, strides, dtype, 0, notes.stream, x, self)

    monkeypatch.setattr(torch._C, "_cuda_getCurrentRawStream", lambda index: notes.stream, raising=False)
    reader = replay.READERS["torch"]()
    for place, members in {
        devices.Torch: dict(device=lambda self, x: Device("CUDA", 0), view=view, repeats=lambda self: True),
        tensor_calls: dict(ON_CUDA=tensor_calls.ON_CUDA.replace("{first}.is_cuda", "True")),
        reader: dict(scope=reader.scope | dict(current=lambda index: notes.stream)),
    }.items():
        for name, value in members.items():
            monkeypatch.setattr(place, name, value, raising=False)
    return torch
