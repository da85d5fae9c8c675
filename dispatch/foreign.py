"""Arrays of unknown libraries, by the protocols DLPack and CUDA's array interface; checked before they are read.

Both tell an address, and both are checked before anything is read there: sizes, strides, pointer, dtype, device. What
does not hold together is a TypeError that says what it was. Of an array with a namespace (`__array_namespace__`) the
result is one of that namespace, by its from_dlpack; of others it is a NumPy array or a numba device array.

DLPack: https://dmlc.github.io/dlpack/latest/c_api.html. A capsule is never consumed: its memory is released with it.
CUDA's array interface, version 3: https://numba.readthedocs.io/en/stable/cuda/cuda_array_interface.html.
"""

import ctypes

from . import driver, keys, layout
from .adapter import Adapter, Device, Spec, library
from .devices import NUMBA
from .driver import DeviceView

LEGACY_STREAM = 1  # the default stream in both protocols, where 0 is not allowed
CPU_DEVICES, CUDA_DEVICES = (1, 3), (2, 13)  # DLPack's: CPU and pinned memory; CUDA and managed memory
READ_ONLY = 1  # DLPack's flag
DTYPES = {0: "int{}", 1: "uint{}", 2: "float{}", 4: "bfloat{}", 5: "complex{}", 6: "bool"}  # by DLPack's code


class Memory:
    """A stretch of memory that is described as an array; NumPy and numba make views of it. It keeps its owner alive."""

    def __init__(self, pointer, shape, strides, dtype, read_only, device, stream, owner):
        self.pointer, self.shape, self.dtype = pointer, shape, dtype
        self.strides = layout.c_strides(shape, dtype.itemsize) if strides is None else strides
        self.read_only, self.device, self.stream, self.owner = read_only, device, stream, owner
        if not all(type(size) is int and size >= 0 for size in shape):
            raise TypeError(f"{self}: its shape has sizes that are no counts")
        if len(self.strides) != len(shape) or not all(type(stride) is int for stride in self.strides):
            raise TypeError(f"{self}: its strides {self.strides} are not an int for each dimension")
        if type(pointer) is not int or (pointer == 0 and 0 not in shape):
            raise TypeError(f"{self}: its data pointer is {'null' if pointer == 0 else repr(pointer)}")
        low, high = layout.reach(shape, self.strides) if 0 not in shape else (0, 0)
        if pointer + low < 0 or pointer + high + dtype.itemsize > 1 << 63:
            raise TypeError(f"{self}: its strides {self.strides} lead out of memory, from address {pointer:#x}")
        if stream is not None and (type(stream) is not int or stream < LEGACY_STREAM):
            raise TypeError(f"{self}: its stream is {stream!r}, where None, 1, 2 or the address of a stream is allowed")

    def __str__(self):
        return f"a foreign array of shape {self.shape} and dtype {self.dtype}"

    @property
    def interface(self):
        data = (self.pointer, self.read_only)
        return dict(shape=self.shape, typestr=self.dtype.str, data=data, strides=self.strides, version=3)

    @property
    def __array_interface__(self):
        return self.interface

    @property
    def __cuda_array_interface__(self):
        return self.interface | {"stream": self.stream}

    def numpy(self):
        """A view of CPU memory."""
        numpy = library("numpy")
        if 0 in self.shape:
            return numpy.empty(self.shape, self.dtype)
        x = numpy.asarray(self)
        return x if x.dtype == self.dtype else x.view(self.dtype)  # a dtype that NumPy has no code for


def dtype_of(name):
    try:
        return library("numpy").dtype(name)
    except TypeError:
        raise TypeError(f"a foreign array of dtype {name!r}, which NumPy does not know") from None


# -- CUDA's array interface -------------------------------------------------------------------------------------------


def from_interface(x):
    """The Memory that an object's `__cuda_array_interface__` describes."""
    face = x.__cuda_array_interface__
    if not isinstance(face, dict):
        raise TypeError(f"an object whose __cuda_array_interface__ is no dict, but {face!r}")
    missing = [key for key in ("shape", "typestr", "data", "version") if key not in face]
    if missing:
        raise TypeError(f"an object whose __cuda_array_interface__ lacks {', '.join(missing)}")
    shape, strides, data = face["shape"], face.get("strides"), face["data"]
    if not (isinstance(shape, tuple) and isinstance(strides, tuple | None) and isinstance(face["typestr"], str)):
        raise TypeError("an object whose __cuda_array_interface__ has a shape, strides or typestr of another type than "
                        f"the protocol's: {face}")  # fmt: skip
    if not (isinstance(data, tuple) and len(data) == 2):
        raise TypeError(f"an object whose __cuda_array_interface__ has no (pointer, read_only) as data: {data!r}")
    if face.get("mask") is not None:
        raise TypeError("a masked foreign array, whose mask would be lost")
    pointer = 0 if data[0] is None else data[0]
    stream = face.get("stream")
    return Memory(pointer, shape, strides, dtype_of(face["typestr"]), bool(data[1]), None, stream, x)


def ordinal(memory):
    """Which CUDA device a pointer belongs to, as the driver knows it."""
    if 0 in memory.shape:
        return 0
    try:
        cuda = driver.bindings()
    except (ImportError, driver.DriverError) as error:
        raise TypeError(f"{memory} on a CUDA device: {error}") from None
    attribute = cuda.CUpointer_attribute.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
    status, index = cuda.cuPointerGetAttribute(attribute, memory.pointer)
    if int(status):
        raise TypeError(f"{memory}: its pointer {memory.pointer:#x} is not memory of a CUDA device ({status!r})")
    return int(index)


# -- DLPack -----------------------------------------------------------------------------------------------------------


class Tensor(ctypes.Structure):
    """DLTensor."""

    _fields_ = (("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
                ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8),
                ("lanes", ctypes.c_uint16), ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64))  # fmt: skip


class Versioned(ctypes.Structure):
    """DLManagedTensorVersioned."""

    _fields_ = (("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("context", ctypes.c_void_p),
                ("deleter", ctypes.c_void_p), ("flags", ctypes.c_uint64), ("tensor", Tensor))  # fmt: skip


def capsule_of(x, device):
    """The capsule that an array exports, ordered on the stream that kernels are launched on."""
    options = {"stream": LEGACY_STREAM} if device.key == keys.CUDA else {}
    try:
        try:
            return x.__dlpack__(max_version=(1, 1), **options)
        except TypeError:  # a producer from before version 1
            return x.__dlpack__(**options)
    except Exception as error:
        raise TypeError(f"an array whose __dlpack__ failed: {error!r}") from error


def dlpack_device(x):
    try:
        kind, index = map(int, x.__dlpack_device__())
    except Exception as error:
        raise TypeError(f"an array whose __dlpack_device__ failed: {error!r}") from error
    if kind in CPU_DEVICES:
        return Device(keys.CPU)
    if kind in CUDA_DEVICES and index >= 0:
        return Device(keys.CUDA, index)
    raise TypeError(f"an array on DLPack's device ({kind}, {index}), which is neither a CPU nor a CUDA device")


def from_dlpack(x):
    """The Memory that an array exports by `__dlpack__`."""
    device = dlpack_device(x)
    capsule = capsule_of(x, device)
    api, flags = ctypes.pythonapi, 0
    api.PyCapsule_GetPointer.restype = ctypes.c_void_p
    api.PyCapsule_GetPointer.argtypes = api.PyCapsule_IsValid.argtypes = (ctypes.py_object, ctypes.c_char_p)
    if api.PyCapsule_IsValid(capsule, b"dltensor_versioned"):
        managed = Versioned.from_address(api.PyCapsule_GetPointer(capsule, b"dltensor_versioned"))
        if managed.major != 1:
            raise TypeError(f"an array that exports DLPack {managed.major}.{managed.minor}; version 1 is known")
        tensor, flags = managed.tensor, managed.flags
    elif api.PyCapsule_IsValid(capsule, b"dltensor"):
        tensor = Tensor.from_address(api.PyCapsule_GetPointer(capsule, b"dltensor"))
    else:
        raise TypeError(f"an array whose __dlpack__ gives no fresh capsule, but {capsule!r}")
    if not 0 <= tensor.ndim <= 64 or (tensor.ndim and not tensor.shape):
        raise TypeError(f"an array that exports {tensor.ndim} dimensions{'' if tensor.shape else ' and no sizes'}")
    if tensor.lanes != 1 or tensor.code not in DTYPES:
        raise TypeError(
            f"an array of DLPack's dtype ({tensor.code}, {tensor.bits}, {tensor.lanes}), which is not known"
        )
    if (tensor.device_type in CUDA_DEVICES) != (device.key == keys.CUDA):
        raise TypeError(f"an array on {device} that exports memory of DLPack's device type {tensor.device_type}")
    dtype = dtype_of(DTYPES[tensor.code].format(tensor.bits))
    shape = tuple(tensor.shape[: tensor.ndim]) if tensor.ndim else ()
    strides = tuple(step * dtype.itemsize for step in tensor.strides[: tensor.ndim]) if tensor.strides else None
    pointer = (tensor.data or 0) + (tensor.byte_offset if tensor.data else 0)
    stream = LEGACY_STREAM if device.key == keys.CUDA else None
    return Memory(pointer, shape, strides, dtype, bool(flags & READ_ONLY), device, stream, capsule)


# -- the adapters -----------------------------------------------------------------------------------------------------


class Foreign(Adapter):
    """What both protocols share; `open` reads and checks."""

    foreign = True

    def open(self, x):
        raise NotImplementedError

    def spec(self, x):
        memory = self.open(x)
        return Spec(memory.shape, memory.dtype, memory.strides)

    def address(self, x):
        return self.open(x).pointer

    def flaw(self, x):
        return "it is read-only" if self.open(x).read_only else ""

    def view(self, x):
        from .arrays import adapter_of

        known = adapter_of(type(x))
        if known is not None and not known.foreign:  # what `empty` made
            return known.view(x)
        memory = self.open(x)
        device = self.device(x)
        if device.key == keys.CPU:
            return memory.numpy()
        shape, strides, dtype = tuple(memory.shape), tuple(memory.strides), memory.dtype
        stream = 0 if memory.stream == LEGACY_STREAM else memory.stream
        return DeviceView(memory.pointer, shape, strides, dtype, device.index, stream, memory, NUMBA)

    def empty(self, like, shape, dtype, strides):
        if self.device(like).key == keys.CPU:
            return library("numpy").ndarray(shape, dtype, strides=strides)
        return NUMBA.empty(like, shape, dtype, strides)

    def wrap(self, x, like):
        namespace = getattr(like, "__array_namespace__", None)
        if not (namespace and hasattr(x, "__dlpack__")):
            return x
        # NumPy does not export bfloat16, which is ml_dtypes'
        return namespace().asarray(x) if x.dtype.isbuiltin == 2 else namespace().from_dlpack(x)

    def restride(self, x, shape, strides):
        from .arrays import adapter_of

        view = self.view(x)
        return adapter_of(type(view)).restride(view, shape, strides)

    def index(self, x, key):
        from .arrays import adapter_of

        view = self.view(x)
        return adapter_of(type(view)).index(view, key)

    def upload(self, x, like):
        from .arrays import adapter_of

        view = self.view(like)
        return adapter_of(type(view)).upload(x, view)

    def host(self, x):
        return driver.copy_out(self.view(x)) if self.device(x).key == keys.CUDA else self.view(x)

    def guard(self, device):
        return driver.guard(device.index) if device.key == keys.CUDA else super().guard(device)


class DLPack(Foreign):
    name = "DLPack"

    def owns(self, cls):
        return hasattr(cls, "__dlpack__") and hasattr(cls, "__dlpack_device__")

    def open(self, x):
        return from_dlpack(x)

    def device(self, x):
        return dlpack_device(x)


class CudaInterface(Foreign):
    name = "__cuda_array_interface__"

    def owns(self, cls):
        return hasattr(cls, "__cuda_array_interface__")

    def open(self, x):
        return from_interface(x)

    def device(self, x):
        return Device(keys.CUDA, ordinal(self.open(x)))
