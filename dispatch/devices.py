"""Adapters of libraries whose arrays may lie on a CUDA device: numba.cuda, CuPy, torch. See arrays.py."""

import sys
from contextlib import nullcontext
from functools import cached_property, partial
from math import prod

from . import driver, keys, layout
from .adapter import Adapter, Device, Spec, imported, library
from .driver import DeviceView, recorder, simulated
from .errors import InferenceError


class Cuda(Adapter):
    """Base of the adapters for CUDA arrays: kernels get a DeviceView, and are launched on the stream of out."""

    def guard(self, device):
        return driver.guard(device.index)

    def maker(self, like, shape, dtype, strides):
        """A function that makes a new array on like's device, dense, with these strides in bytes."""
        raise self.lacks("maker")

    def empty(self, like, shape, dtype, strides):
        maker = self.maker(like, shape, dtype, strides)
        made = maker()
        if recorder.launches is not None:
            recorder.made.append((made, maker))
        return made

    def scratch(self, like, shape, dtype):
        """A new C-order array for what is launched on the stream of `like`, a DeviceView."""
        return self.view(self.empty(like.owner, shape, dtype, layout.c_strides(shape, dtype.itemsize)))

    def upload(self, x, like):
        made = self.empty(like, x.shape, x.dtype, layout.c_strides(x.shape, x.dtype.itemsize))
        driver.fill(self.view(made), x)
        return made

    def sort(self, x):
        """(a `scratch` of one dimension sorted, stably; the order, as int64): on the host, where the library cannot."""
        given = driver.copy_out(x)
        order = given.argsort(kind="stable")
        return self.sent(given[order], x), self.sent(order, x)

    def nonzero(self, x):
        """Where a DeviceView of this library's is true: for each of its dimensions a DeviceView of int64."""
        return tuple([self.sent(part, x) for part in driver.copy_out(x).nonzero()])

    def sent(self, x, like):
        """NumPy's array as a DeviceView, as `scratch` makes it."""
        made = self.scratch(like, x.shape, x.dtype)
        driver.fill(made, x)
        return made

    def host(self, x):
        return driver.copy_out(self.view(x))


class Numba(Cuda):
    """numba.cuda's device arrays, and those of its simulator."""

    name = "numba.cuda"
    classes = ("numba.DeviceNDArrayBase", "numba.FakeCUDAArray", "numba_cuda.DeviceNDArrayBase")

    def device(self, x):
        # the simulator's arrays have no gpu_data: it has one device
        return Device(keys.CUDA, x.gpu_data.context.device.id if hasattr(x, "gpu_data") else 0)

    def guard(self, device):
        return nullcontext() if simulated() else super().guard(device)

    def spec(self, x):
        return Spec(tuple(x.shape), x.dtype, tuple(x.strides))  # the simulator's shapes refuse negative indices

    def view(self, x):
        shape, dtype, strides = self.spec(x)
        return DeviceView(self.address(x), shape, strides, dtype, self.device(x).index, self.stream(x), x, self)

    @staticmethod
    def stream(x):
        """The handle of the stream that an array is bound to."""
        handle = getattr(x.stream, "handle", x.stream)
        return int(getattr(handle, "value", handle) or 0)

    def address(self, x):
        return x.device_ctypes_pointer.value or 0 if hasattr(x, "gpu_data") else x._ary.ctypes.data

    def maker(self, like, shape, dtype, strides):
        stream = getattr(like, "stream", 0)
        return partial(library("numba.cuda").device_array, shape, dtype, strides=strides, stream=stream)

    def scratch(self, like, shape, dtype):
        """Memory that is ordered on a stream: what numba frees would be free for others at once."""
        if simulated():
            return super().scratch(like, shape, dtype)
        stream = like.stream or 0
        maker = partial(driver.Block, prod(shape) * dtype.itemsize, stream)
        owner = maker()
        if recorder.launches is not None:
            recorder.made.append((owner, maker))
        strides = layout.c_strides(shape, dtype.itemsize)
        return DeviceView(owner.address, tuple(shape), strides, dtype, like.device, stream, owner, self)

    def upload(self, x, like):
        if simulated():
            return library("numba.cuda").to_device(x)
        made = self.scratch(self.view(like), x.shape, x.dtype)
        driver.fill(made, x)
        numba = library("numba.cuda.cudadrv.driver")
        context = library("numba.cuda").current_context()
        memory = numba.MemoryPointer(context, numba.binding.CUdeviceptr(made.address), x.nbytes, owner=made.owner)
        return self.array(x.shape, made.strides, x.dtype, like.stream, memory)

    def host(self, x):
        return x.copy_to_host()

    @staticmethod
    def array(shape, strides, dtype, stream, memory):
        """A device array of numba's plain kind, whatever kind the memory was of."""
        return library("numba.cuda.cudadrv.devicearray").DeviceNDArray(shape, strides, dtype, stream, memory)

    def restride(self, x, shape, strides, offset=0):
        if hasattr(x, "gpu_data"):
            memory = x.gpu_data.view(offset) if offset else x.gpu_data
            return self.array(shape, strides, x.dtype, x.stream, memory)
        numpy = library("numpy")
        return type(x)(numpy.lib.stride_tricks.as_strided(x._ary, shape, strides), x.stream)

    def index(self, x, key):
        """By the numbers: numba's own views have the strides of C order, whatever x has."""
        if hasattr(x, "gpu_data"):
            return self.restride(x, *layout.indexed(x.shape, x.strides, key))
        key = key if isinstance(key, tuple) else (key,)
        return type(x)(x._ary[key if ... in key else (*key, ...)], x.stream)


class Views(Cuda):
    """DeviceViews themselves, as views of arrays of unknown libraries are; numba makes new arrays for them."""

    name, classes = "numba.cuda", ("nbkernels.DeviceView",)

    def device(self, x):
        return Device(keys.CUDA, x.device)

    def spec(self, x):
        return Spec(x.shape, x.dtype, x.strides)

    def address(self, x):
        return x.address

    def maker(self, like, shape, dtype, strides):
        return partial(library("numba.cuda").device_array, shape, dtype, strides=strides, stream=like.stream or 0)

    def view(self, x):
        return x if isinstance(x, DeviceView) else NUMBA.view(x)

    def restride(self, x, shape, strides, offset=0):
        return x.view(shape, strides, offset)

    def index(self, x, key):
        return self.restride(x, *layout.indexed(x.shape, x.strides, key))


NUMBA = Numba()


class CuPy(Cuda):
    name, classes = "CuPy", ("cupy.ndarray",)

    def device(self, x):
        return Device(keys.CUDA, x.device.id)

    def address(self, x):
        return x.data.ptr

    def view(self, x):
        stream = library("cupy").cuda.get_current_stream().ptr
        return DeviceView(x.data.ptr, x.shape, x.strides, x.dtype, x.device.id, stream, x, self)

    def maker(self, like, shape, dtype, strides):
        cupy = library("cupy")
        if strides == layout.c_strides(shape, dtype.itemsize):
            return partial(cupy.empty, shape, dtype)
        return lambda: self.restride(cupy.empty(max(1, prod(shape)), dtype), shape, strides)

    def sort(self, x):
        order = library("cupy").argsort(x.owner)  # which is stable
        return self.view(x.owner[order]), self.view(order)

    def nonzero(self, x):
        return tuple(map(self.view, library("cupy").nonzero(x.owner)))

    def restride(self, x, shape, strides):
        return library("cupy").lib.stride_tricks.as_strided(x, shape, strides)


class Torch(Cuda):
    """torch tensors on the CPU (kernels get `x.numpy()`), on CUDA and on torch's own meta device."""

    name, classes = "torch", ("torch.Tensor",)
    unwritable = InferenceError

    def __init__(self):
        self.dtypes = {}  # torch's -> NumPy's

    @cached_property
    def strided(self):
        return library("torch").strided

    def lends(self, cls):
        torch = library("torch")
        return cls is torch.Tensor or cls is torch.nn.Parameter

    def repeats(self):
        return hasattr(library("torch")._C, "_cuda_getCurrentRawStream")  # a torch that was built for CUDA

    def device(self, x):
        self.unwatched(x)
        return Device(keys.META if x.device.type == "meta" else x.device.type.upper(), x.device.index or 0)

    @staticmethod
    def unwatched(x):
        """A TypeError where something would note what torch does with x, and miss this call."""
        if library("torch").jit.is_tracing():
            raise TypeError("a torch tensor in torch.jit.trace: the graph would lack this call; use torch.compile")
        proxies = sys.modules.get("torch.fx.experimental.proxy_tensor")
        if proxies and proxies.get_proxy_mode() is not None:
            raise TypeError("a torch tensor in make_fx: the graph would lack this call; use torch.compile")
        forward = library("torch.autograd.forward_ad")
        if forward._current_level >= 0 and forward.unpack_dual(x).tangent is not None:
            raise TypeError("a torch tensor with a tangent, which would be lost: pass forward_ad.unpack_dual(x).primal")

    def spec(self, x):
        dtype = self.dtypes.get(x.dtype) or self.dtype(x.dtype)
        if x.requires_grad or x.layout is not self.strided or x.is_neg() or x.is_conj():
            self.check(x)
        size = dtype.itemsize
        return Spec(tuple(x.shape), dtype, tuple([stride * size for stride in x.stride()]))

    def dtype(self, kind):
        """NumPy's dtype of a tensor's, kept."""
        name = str(kind).removeprefix("torch.")
        try:
            dtype = self.bfloat16() if name == "bfloat16" else library("numpy").dtype(name)
            if dtype.isbuiltin == 2 and name != "bfloat16":  # ml_dtypes has a complex32, and torch does not share it
                raise TypeError
        except (TypeError, ImportError):
            hint = " without ml_dtypes: pip install ml_dtypes" if name == "bfloat16" else ""
            raise TypeError(f"torch.{name} has no NumPy dtype{hint}") from None
        return self.dtypes.setdefault(kind, dtype)

    def check(self, x):
        """A TypeError where the tensor is more than strided memory, or torch watches it."""
        torch = library("torch")
        if x.requires_grad and torch.is_grad_enabled():
            hint = "pass x.detach(), or call the function of nbkernels.torch"
            raise TypeError(f"a torch tensor that requires grad: torch would not see this call; {hint}")
        if x.layout is not torch.strided:
            raise TypeError(f"a torch tensor of layout {x.layout}: pass x.to_dense()")
        if x.is_neg() or x.is_conj():
            raise TypeError("a torch tensor that is a lazy negative or conjugate: pass x.resolve_neg().resolve_conj()")

    def view(self, x):
        self.check(x)
        x = x.detach()
        torch = library("torch")
        if x.device.type != "cpu":
            shape, dtype, strides = self.spec(x)
            index = x.device.index
            stream = torch._C._cuda_getCurrentRawStream(index)  # torch.cuda.current_stream(index) takes 5 us
            return DeviceView(x.data_ptr(), shape, strides, dtype, index, stream, x, self)
        none = "a torch tensor that has no memory, as those of vmap and torch.export"
        try:
            if self.nowhere(x):
                raise TypeError(none)
            return self.raw(x) if x.dtype is torch.bfloat16 else x.numpy()
        except RuntimeError as error:
            raise TypeError(f"{none}: {error}") from None

    @staticmethod
    def nowhere(x):
        """Whether there is nothing at its address: of functionalize, or of a storage that was given back. Of such a
        tensor numpy() makes an array of its own."""
        return x.data_ptr() == 0 and x.numel() > 0

    def raw(self, x):
        """A tensor of bfloat16, which torch does not give NumPy, as NumPy's view of its memory."""
        return x.view(library("torch").int16).numpy().view(self.dtypes.get(x.dtype) or self.dtype(x.dtype))

    @staticmethod
    def bfloat16():
        """NumPy has no bfloat16 of its own."""
        return library("numpy").dtype(imported("ml_dtypes").bfloat16)

    def written(self, x):
        library("torch").autograd.graph.increment_version(x)  # so that autograd finds it changed

    def flaw(self, x):
        if x.is_inference() and not library("torch").is_inference_mode_enabled():
            return "it was made in torch.inference_mode(), and is written there alone: write a clone"
        return ""

    def version(self, x):
        return None if x.is_inference() else x._version

    def address(self, x):
        return None if x.device.type == "meta" else x.data_ptr()

    def maker(self, like, shape, dtype, strides):
        torch = library("torch")
        steps = [stride // dtype.itemsize for stride in strides]
        return partial(torch.empty_strided, shape, steps, dtype=getattr(torch, dtype.name), device=like.device)

    def sort(self, x):
        return tuple(map(self.view, library("torch").sort(x.owner, stable=True)))

    def nonzero(self, x):
        return tuple(map(self.view, library("torch").nonzero(x.owner, as_tuple=True)))

    def restride(self, x, shape, strides):
        return x.as_strided(shape, [stride // x.element_size() for stride in strides])

    def turned(self, x):
        return x.transpose(-1, -2)

    def flip(self, x, axis):
        return x.flip(axis)

    def guard(self, device):
        return super().guard(device) if device.key == keys.CUDA else self.limited()
