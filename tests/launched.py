"""A CUDA device that only takes notes: numba's own device arrays over memory that is not there, and what would be
launched on them. The host's half of every call runs as on a GPU, down to cuda.core.launch.
"""

import contextlib
import struct
from types import SimpleNamespace

import numpy as np
from numba import types

NEWEST = (9, 0)
APART = 1 << 24  # between what two pointers point to
# What numba's device arrays do that host code must not ask for: their views are wrong (dummyarray.py).
FORBIDDEN = ("__getitem__", "__setitem__", "__array__", "reshape", "ravel", "squeeze", "split", "transpose", "T",
             "copy_to_host")  # fmt: skip


class Pool:
    """The stream-ordered memory of a device: notes who allocates, on which stream, and who gives back."""

    def __init__(self, notes):
        self.notes = notes

    def allocate(self, size, stream):
        notes, handle = self.notes, int(stream.handle)
        block = type("Block", (), {"__del__": lambda block: notes.events.append(("free", block.handle, handle))})()
        block.handle = notes.room(size)
        notes.events.append(("allocate", block.handle, handle))
        return block


class Notes:
    """`events`: ("allocate" | "free", address, stream), ("copy", address, stream), ("join", from, to) and
    ("launch", kernel, arguments, stream), in order."""

    def __init__(self):
        self.events, self.next = [], 1 << 40

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
        context = SimpleNamespace(device=SimpleNamespace(id=0))
        return self.driver.MemoryPointer(context, self.driver.binding.CUdeviceptr(address), APART)

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


class Event:
    """Joins the stream that it is recorded on to the one that waits for it."""

    def __init__(self, notes):
        self.notes = notes

    def record(self, stream=0):
        self.before = int(stream or 0)

    def wait(self, stream=0):
        self.notes.events.append(("join", self.before, int(stream or 0)))


def refused(name):
    def method(*args, **kwargs):
        raise AssertionError(f"host code asks numba's device arrays for {name}")

    return property(method) if name == "T" else method


def device(monkeypatch):
    """The Notes of a device that is there until the test ends."""
    import cuda.core
    import numba.cuda
    from numba.cuda.cudadrv import devicearray, driver

    from nbkernels.cuda import launch, memory, replay

    notes = Notes()
    notes.devicearray, notes.driver = devicearray, driver
    same = SimpleNamespace(set_current=lambda: None, memory_resource=Pool(notes))

    def started(stream, config, kernel, *arguments):
        notes.events.append(("launch", kernel, arguments, int(stream.handle)))

    def copied(to, source, size, stream):
        notes.events.append(("copy", to, stream))

    def filled(x, host):
        copied(x.device_ctypes_pointer.value, host, x.nbytes, int(x.stream or 0))

    replaced = {
        numba.cuda: dict(current_context=lambda: None, gpus=[contextlib.nullcontext()],
                         event=lambda: Event(notes), device_array=notes.array, to_device=refused("to_device")),
        cuda.core: dict(launch=started, Device=lambda index: same),
        launch: dict(compiled=lambda kernel, cc: kernel, current=lambda: 0, properties=lambda index: (NEWEST, 132)),
        memory: dict(current=lambda: 0, pool=lambda index: same.memory_resource,
                     driver=SimpleNamespace(cuMemcpyHtoDAsync=copied)),
        replay: dict(current=lambda: 0),
        devicearray.DeviceNDArray: {name: refused(name) for name in FORBIDDEN} | dict(copy_to_device=filled),
    }  # fmt: skip
    for place, members in replaced.items():
        for name, value in members.items():
            monkeypatch.setattr(place, name, value, raising=False)
    return notes


def signed(kernel) -> list[int]:
    """Sizes of a kernel's parameters by its signature: a tuple's items, two of a complex number."""

    def sizes(part):
        if isinstance(part, types.CPointer):
            return [8]
        if isinstance(part, types.UniTuple):
            return sizes(part.dtype) * part.count
        if isinstance(part, types.Complex):
            return [part.bitwidth // 16] * 2
        return [1 if part == types.boolean else part.bitwidth // 8]

    return [size for part in kernel.signature for size in sizes(part)]


def given(arguments) -> list[int]:
    """Sizes of what the driver is handed, by cuda.core's rules: an int is 8 bytes, other numbers are NumPy's."""
    for argument in arguments:
        assert type(argument) is int or isinstance(argument, np.number | np.bool_), argument
        assert not isinstance(argument, np.complexfloating), "a complex number is two parameters"
    return [8 if type(argument) is int else argument.itemsize for argument in arguments]


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
