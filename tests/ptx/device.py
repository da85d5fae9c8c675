"""A CUDA device whose memory is NumPy's and whose kernels are interpreted: the host's half of a call runs as on a GPU,
down to the driver (tests/launched.py answers what it is asked about devices).
"""

from __future__ import annotations

import ctypes
import functools
import sys
from types import SimpleNamespace

import numpy as np

from tests import launched

from .launch import cached, run
from .memory import Memory
from .tensormap import TensorMap

NEWEST = launched.NEWEST
KINDS = {0: "u1", 1: "u2", 2: "u4", 3: "i4", 4: "u8", 5: "i8", 6: "f2", 7: "f4", 8: "f8", 9: "u2", 11: "f4"}


class Device(launched.Driver):
    """`memory` holds what kernels may touch; each launch is run at once, for compute capability `cc`, and is one of the
    `launches`, (kernel, grid). `multiprocessors` count when a config is chosen; `change` is applied to the PTX, to
    plant faults. `captured`: whether its streams are captured into a graph, where nothing is read back."""

    def __init__(self, cc: tuple = NEWEST, multiprocessors: int = 132, change=lambda ptx: ptx):
        super().__init__(launched.Notes())
        self.change = change
        self.cc, self.memory, self.launches, self.kernels = cc, Memory(), [], []
        self.maps, self.held, self.captured = [], {}, False
        names = ("COMPUTE_CAPABILITY_MAJOR", "COMPUTE_CAPABILITY_MINOR", "MULTIPROCESSOR_COUNT")
        self.CUdevice_attribute = SimpleNamespace(**{
            f"CU_DEVICE_ATTRIBUTE_{name}": value for name, value in zip(names, (*cc[:2], multiprocessors))
        })  # fmt: skip
        self.CUlaunchAttribute = lambda: SimpleNamespace(value=SimpleNamespace(clusterDim=SimpleNamespace()))
        self.CUlaunchAttributeID = SimpleNamespace(CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION=4)

    def installed(self, monkeypatch) -> Device:
        """This device as the one that there is, until the test ends."""
        from nbkernels.cuda import launch, replay
        from nbkernels.dispatch import driver

        monkeypatch.setattr(driver, "bindings", lambda: self)
        monkeypatch.setattr(launch, "loaded", functools.cache(self.loaded))
        monkeypatch.setattr(launch, "encoder", lambda: self)
        for known in (driver.primary, driver.properties, driver.name):
            known.cache_clear()
        replay.forget()
        # Chains, which conftest.py asks for, are the CPU's.
        monkeypatch.setattr(sys.modules["nbkernels.modes"], "OF_GPUS", ("tf32",))
        return self

    def array(self, x: np.ndarray, stream=0):
        """An array of x's own memory as kernels' host code sees it: read, and written where NumPy may write."""
        from nbkernels.dispatch.driver import DeviceView

        self.memory.register(x)
        return DeviceView(x.ctypes.data, x.shape, x.strides, x.dtype, 0, stream, x, self)

    def scratch(self, like, shape, dtype):
        """A temporary, as an array's library makes it: full of NaN."""
        x = self.room(int(np.prod(shape, dtype=int)) * dtype.itemsize).view(dtype).reshape(shape)
        return self.array(x, like.stream)

    def sort(self, x):
        order = np.argsort(ghost(x), kind="stable")
        return self.array(ghost(x)[order], x.stream), self.array(order, x.stream)

    def nonzero(self, x):
        return tuple([self.array(np.ascontiguousarray(part), x.stream) for part in np.nonzero(ghost(x))])

    @staticmethod
    def room(size: int) -> np.ndarray:
        """Bytes that begin at a multiple of 256, as the driver's do."""
        x = np.full(size + 256, 0xFF, np.uint8)
        return x[-x.ctypes.data % 256 :][:size]

    # What the driver is asked

    def loaded(self, kernel, index: int) -> int:
        self.kernels.append(kernel)
        return len(self.kernels) - 1

    def cuMemAllocAsync(self, size, stream):
        x = self.room(size)
        self.memory.register(x)
        self.held[x.ctypes.data] = x
        return 0, x.ctypes.data

    def cuMemFreeAsync(self, address, stream):
        self.memory.forget(address)
        del self.held[address]
        return (0,)

    def cuMemcpyHtoDAsync(self, address, source, size, stream):
        ctypes.memmove(address, source, size)
        return (0,)

    def cuMemsetD8Async(self, address, value, size, stream):
        ctypes.memset(address, value, size)
        return (0,)

    def cuStreamIsCapturing(self, stream):
        return 0, int(self.captured)

    def cuMemcpyDtoH(self, target, address, size):
        assert not self.captured, "read back in a stream that is captured"
        ctypes.memmove(target, address, size)
        return (0,)

    def cuTensorMapEncodeTiled(self, to, kind, count, address, dims, strides, box, *rest):
        """A map's bytes here: the address, and the number of what else it was made of."""
        swizzle = (0, 32, 64, 128)[rest[2]]
        self.maps.append((*(tuple(each) for each in (dims, strides, box)), np.dtype(KINDS[kind]), swizzle))
        (ctypes.c_uint64 * 2).from_address(to.value)[:] = address.value, len(self.maps) - 1
        return 0

    def cuTensorMapReplaceAddress(self, to, address):
        ctypes.c_uint64.from_address(to.value).value = address.value
        return 0

    def tensor_map(self, raw: bytes) -> TensorMap:
        address, number = np.frombuffer(raw[:16], np.uint64).tolist()
        dims, strides, *rest = self.maps[number]
        return TensorMap(address, dims, strides[: len(dims) - 1], *rest)

    def cuLaunchKernelEx(self, config, function, parameters, extra):
        kernel = self.kernels[function]
        ptx = self.change(text(kernel, self.cc))
        sizes = list(cached(ptx).program.parameters.values())
        table = (ctypes.c_uint64 * len(sizes)).from_address(parameters)
        arguments = [ctypes.string_at(at, size) for at, size in zip(table, sizes)]
        arguments = [self.tensor_map(raw) if len(raw) == 128 else raw for raw in arguments]
        grid = config.gridDimX, config.gridDimY, config.gridDimZ
        self.launches.append((kernel, grid))
        cluster = config.attrs[0].value.clusterDim.x if getattr(config, "numAttrs", 0) else 1
        run(ptx, grid, (config.blockDimX, config.blockDimY, config.blockDimZ), arguments, self.memory,
            config.sharedMemBytes, cluster)  # fmt: skip
        return (0,)


def ghost(x):
    from nbkernels.cuda import launch

    return launch.ghost(x)


@functools.cache
def text(kernel, cc: tuple) -> str:
    """The PTX of a kernel's record."""
    from nbkernels.cuda.assemble import ptx

    return ptx(kernel, cc)
