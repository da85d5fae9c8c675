"""The CUDA driver for host code, by cuda.bindings: devices, the order of streams, memory.
A recorder notes what one call asks of the driver, so that it can be repeated.

A stream is its handle, an int; 0 is the default stream. Contexts are the devices' primary ones, which torch, CuPy, JAX
and Numba use as well.
"""

import ctypes
import sys
import threading
from functools import cache

from . import layout
from .adapter import library

MISSING = "CUDA arrays need numba-cuda: pip install 'nbkernels[cuda13]', or [cuda12] for drivers before r580"


class DriverError(RuntimeError):
    """The CUDA driver returned an error; `code` is its CUresult as an int."""

    def __init__(self, function, error):
        self.code = int(error)
        super().__init__(f"{function}: {getattr(error, 'name', error)}{HINTS.get(self.code, '')}")


OLDER = 35  # CUDA's runtime has this status; the driver's are others, or a function that it has not
NEWER = ": the CUDA driver is older than the CUDA libraries here: install a newer one, or nbkernels[cuda12]"
HINTS = {
    2: ": the GPU is out of memory",
    34: ": libcuda is a stub, as compilers link against: this machine has no CUDA driver",
    OLDER: NEWER,
    100: ": this machine has no CUDA GPU, or no driver for it",
    200: NEWER,
    209: NEWER,
    222: NEWER,
    700: ": a kernel read or wrote memory that is not its own; CUDA calls of this process fail from now on",
    900: ": a stream that is captured cannot do this: make the same call once before the capture",
    901: ": a stream that is captured cannot do this: make the same call once before the capture",
    906: ": a stream that is captured cannot do this: make the same call once before the capture",
}


UNFIT = (200, 209)  # statuses of machine code that is broken, or another card's


@cache
def bindings():
    """cuda.bindings.driver, initialised; an ImportError or DriverError that says what to do where it cannot be had."""
    try:
        driver = library("cuda.bindings.driver")
    except ImportError as error:
        raise ImportError(f"{MISSING} ({error})") from error
    try:
        (error,) = driver.cuInit(0)
    except RuntimeError as reason:  # no libcuda
        raise DriverError(f"cuInit ({reason})", 100) from None
    if int(error):
        raise DriverError("cuInit", error)
    return driver


def ask(function, *arguments):
    """Call a function of the driver and return its results without the status; raise DriverError if it fails."""
    call = getattr(bindings(), function)
    try:
        error, *found = call(*arguments)
    except RuntimeError as reason:  # the driver has no such function
        raise DriverError(f"{function} ({reason})", OLDER) from None
    if error:
        raise DriverError(function, error)
    return found[0] if len(found) == 1 else found


def simulated():
    """Whether numba.cuda is its simulator, which has no driver and whose memory is the host's."""
    config = sys.modules.get("numba.core.config")
    return bool(config is not None and config.ENABLE_CUDASIM)


# -- devices ----------------------------------------------------------------------------------------------------------


def current():
    """Index of the thread's current device; where it has none, the first becomes it, as in CUDA's runtime."""
    error, device = bindings().cuCtxGetDevice()
    if error:
        ask("cuCtxSetCurrent", primary(0))
        return 0
    return int(device)


@cache
def primary(index):
    """The primary context of a device."""
    return ask("cuDevicePrimaryCtxRetain", ask("cuDeviceGet", index))


class guard:
    """A context in which device `index` is current; the former one comes back at the end, also after an exception."""

    __slots__ = ("index", "pushed")

    def __init__(self, index):
        self.index = index

    def __enter__(self):
        error, device = bindings().cuCtxGetDevice()
        self.pushed = bool(error) or int(device) != self.index
        if self.pushed:
            ask("cuCtxPushCurrent", primary(self.index))

    def __exit__(self, *exception):
        if self.pushed:
            ask("cuCtxPopCurrent")


@cache
def properties(index):
    """(compute capability, number of multiprocessors) of a device."""
    device, kinds = ask("cuDeviceGet", index), bindings().CUdevice_attribute
    major, minor, count = (
        ask("cuDeviceGetAttribute", getattr(kinds, f"CU_DEVICE_ATTRIBUTE_{name}"), device)
        for name in ("COMPUTE_CAPABILITY_MAJOR", "COMPUTE_CAPABILITY_MINOR", "MULTIPROCESSOR_COUNT")
    )
    return (major, minor), count


@cache
def name(index):
    """A device's name."""
    return ask("cuDeviceGetName", 128, ask("cuDeviceGet", index)).split(b"\0")[0].decode()


# -- streams and memory -----------------------------------------------------------------------------------------------


def join(before, after):
    """Let what is launched on stream `after` from now on wait for what was launched on `before`."""
    recorder.fixed = True
    event = ask("cuEventCreate", int(bindings().CUevent_flags.CU_EVENT_DISABLE_TIMING))
    try:
        ask("cuEventRecord", event, before)
        ask("cuStreamWaitEvent", after, event, 0)
    finally:
        ask("cuEventDestroy", event)


def capturing(stream):
    """Whether what is launched on a stream is captured into a graph, and waits for no one."""
    return not simulated() and int(ask("cuStreamIsCapturing", stream)) != 0


class Block:
    """Memory that is given back on its stream: after the kernels that were launched there before, so that nothing waits
    for them and nobody else gets it while they run."""

    def __init__(self, size, stream):
        self.size, self.stream, self.address = size, stream, None
        self.address = int(ask("cuMemAllocAsync", max(size, 1), stream))

    def __del__(self):
        if self.address is not None:
            bindings().cuMemFreeAsync(self.address, self.stream)


def fill(view, x):
    """Copy NumPy's array into a C-order DeviceView; the host's memory has been read on return."""
    recorder.fixed = True
    x = x if x.flags.c_contiguous else x.copy()
    if simulated():
        ctypes.memmove(view.address, x.ctypes.data, x.nbytes)
    elif x.size:
        ask("cuMemcpyHtoDAsync", view.address, x.ctypes.data, x.nbytes, view.stream or 0)


def clear(view):
    """Zeros into a C-order DeviceView: the host needs 90 us less for it than for a kernel (2026-11)."""
    recorder.fixed = True
    size = view.size * view.dtype.itemsize
    if simulated():
        ctypes.memset(view.address, 0, size)
    else:
        ask("cuMemsetD8Async", view.address, 0, size, view.stream or 0)


def copy_out(view):
    """A DeviceView's elements as a NumPy array, once all that was launched on its stream is done."""
    recorder.fixed = True
    numpy = sys.modules["numpy"]  # whose dtypes views have
    if 0 in view.shape:
        return numpy.empty(view.shape, view.dtype)
    low, high = layout.reach(view.shape, view.strides)
    memory = numpy.empty(high - low + view.dtype.itemsize, numpy.uint8)
    if simulated():
        ctypes.memmove(memory.ctypes.data, view.address + low, memory.nbytes)
    else:
        ask("cuStreamSynchronize", view.stream or 0)
        ask("cuMemcpyDtoH", memory.ctypes.data, view.address + low, memory.nbytes)
    return numpy.ndarray(view.shape, view.dtype, memory, -low, view.strides).copy()


class DeviceView:
    """An array on a CUDA device by its numbers: what kernels' host code sees. It keeps the `owner` of the memory.

    strides are in bytes, `device` is an index, `stream` a handle, or None where nothing is known to write the array;
    `adapter` is that of the library that scratch memory is taken from.
    """

    __slots__ = ("adapter", "address", "device", "dtype", "owner", "shape", "stream", "strides")

    def __init__(self, address, shape, strides, dtype, device, stream, owner, adapter):
        self.address, self.shape, self.strides, self.dtype = address, shape, strides, dtype
        self.device, self.stream, self.owner, self.adapter = device, stream, owner, adapter

    @property
    def size(self):
        count = 1
        for n in self.shape:
            count *= n
        return count

    @property
    def __cuda_array_interface__(self):
        """The CUDA Array Interface, version 3: numba.cuda and CuPy wrap a view in an array of their own by it."""
        return dict(shape=self.shape, strides=self.strides, typestr=self.dtype.str, data=(self.address, False),
                    stream=self.stream or 1, version=3)  # fmt: skip

    def view(self, shape, strides, offset=0):
        """The elements that lie `offset` bytes and multiples of the strides from the first one."""
        return DeviceView(self.address + offset, tuple(shape), tuple(strides), self.dtype, self.device, self.stream,
                          self.owner, self.adapter)  # fmt: skip


# -- what one call asked for ------------------------------------------------------------------------------------------


class Recorder(threading.local):
    """The launches and allocations of the call that this thread records; `launches` is None while it records none.

    `launches`: prepared launches in order; `made`: the arrays that were made meanwhile, each with the function that
    makes another one; `fixed`: whether something was done that repeating the launches does not repeat. `noted`, where
    it is not None, is called with each kernel in place of its launch.
    """

    noted = None
    launches = None
    made = ()
    fixed = False


recorder = Recorder()
