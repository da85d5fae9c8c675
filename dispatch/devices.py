"""The adapters of libraries whose arrays may lie on a CUDA device: numba.cuda, CuPy, torch. See arrays.py."""

import sys
from contextlib import nullcontext
from math import prod

from . import keys, layout
from .adapter import Adapter, Device, Spec, library
from .foreign import Memory


class Cuda(Adapter):
    """What the CUDA libraries share: kernels get numba device arrays, and are launched in order with out's stream."""

    def view(self, x):
        seen = library("numba.cuda").as_cuda_array(x, sync=False)  # an array of out's library is of the same stream
        return seen if seen.dtype == x.dtype else seen.view(x.dtype)  # bfloat16: the interface has no code for it

    def guard(self, device):
        return library("numba.cuda").gpus[device.index]


class Numba(Cuda):
    """numba.cuda's device arrays, and those of its simulator."""

    name = "numba.cuda"
    classes = ("numba.DeviceNDArrayBase", "numba.FakeCUDAArray", "numba_cuda.DeviceNDArrayBase")

    def device(self, x):
        # the simulator's arrays have no gpu_data: it has one device
        return Device(keys.CUDA, x.gpu_data.context.device.id if hasattr(x, "gpu_data") else 0)

    def spec(self, x):
        return Spec(tuple(x.shape), x.dtype, tuple(x.strides))  # the simulator's shapes refuse negative indices

    def view(self, x):
        return x

    def address(self, x):
        return x.device_ctypes_pointer.value if hasattr(x, "gpu_data") else x._ary.ctypes.data

    def wait(self, x):
        (x.stream or library("numba.cuda").default_stream()).synchronize()

    def join(self, x, out):
        if x.stream != out.stream:
            written = library("numba.cuda").event()
            written.record(x.stream)
            written.wait(out.stream)

    def empty(self, like, shape, dtype, strides):
        return library("numba.cuda").device_array(shape, dtype, strides=strides, stream=like.stream)

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

    def upload(self, x, like):
        """In memory of the device's pool, given back on like's stream: after the kernels that read it there."""
        numba = library("numba.cuda")
        if not hasattr(like, "gpu_data"):
            return numba.to_device(x)
        core, driver = library("cuda.core"), library("numba.cuda.cudadrv.driver")
        device = core.Device(like.gpu_data.context.device.id)
        device.set_current()
        stream = core.Stream.from_handle(int(like.stream or 0))
        owner = device.memory_resource.allocate(x.nbytes, stream=stream)
        pointer = driver.binding.CUdeviceptr(int(owner.handle))
        memory = driver.MemoryPointer(numba.current_context(), pointer, x.nbytes, owner=owner)
        made = self.array((), (), x.dtype, like.stream, memory)
        made.copy_to_device(x)
        return made


class CuPy(Cuda):
    name, classes = "CuPy", ("cupy.ndarray",)

    def device(self, x):
        return Device(keys.CUDA, x.device.id)

    def address(self, x):
        return x.data.ptr

    def wait(self, x):
        library("cupy").cuda.get_current_stream().synchronize()

    def empty(self, like, shape, dtype, strides):
        cupy = library("cupy")
        with like.device:
            flat = cupy.empty(max(1, prod(shape)), dtype)
        return self.restride(flat, shape, strides)

    def restride(self, x, shape, strides):
        return library("cupy").lib.stride_tricks.as_strided(x, shape, strides)

    def upload(self, x, like):
        with like.device:
            return library("cupy").asarray(x)


class Torch(Cuda):
    """torch tensors on the CPU (kernels get `x.numpy()`), on CUDA and on torch's own meta device."""

    name, classes = "torch", ("torch.Tensor",)

    def __init__(self):
        self.dtypes = {}  # torch's -> NumPy's

    def lends(self, cls):
        torch = library("torch")
        return cls is torch.Tensor or cls is torch.nn.Parameter

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
        if forward.unpack_dual(x).tangent is not None:
            raise TypeError("a torch tensor with a tangent, which would be lost: pass forward_ad.unpack_dual(x).primal")

    def spec(self, x):
        dtype = self.dtypes.get(x.dtype) or self.dtype(x.dtype)
        return Spec(tuple(x.shape), dtype, tuple(stride * dtype.itemsize for stride in self.plain(x).stride()))

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

    def plain(self, x):
        """The tensor where it is nothing but strided memory that nothing watches, else a TypeError."""
        if x.requires_grad and library("torch").is_grad_enabled():
            hint = "pass x.detach(), or call the function of nbkernels.torch"
            raise TypeError(f"a torch tensor that requires grad: torch would not see this call; {hint}")
        if x.layout is not library("torch").strided:
            raise TypeError(f"a torch tensor of layout {x.layout}: pass x.to_dense()")
        if x.is_neg() or x.is_conj():
            raise TypeError("a torch tensor that is a lazy negative or conjugate: pass x.resolve_neg().resolve_conj()")
        return x.detach()

    def view(self, x):
        x = self.plain(x)
        torch = library("torch")
        if x.device.type != "cpu":
            shape, dtype, strides = self.spec(x)
            stream = torch.cuda.current_stream(x.device).cuda_stream or None  # torch's own description tells none
            return super().view(Memory(x.data_ptr(), shape, strides, dtype, False, None, stream, x))
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
        return library("numpy").dtype(library("ml_dtypes").bfloat16)

    def written(self, x):
        library("torch").autograd.graph.increment_version(x)  # so that autograd finds it changed

    def address(self, x):
        return None if x.device.type == "meta" else x.data_ptr()

    def wait(self, x):
        if x.device.type == "cuda":
            library("torch").cuda.current_stream(x.device).synchronize()

    def empty(self, like, shape, dtype, strides):
        torch = library("torch")
        steps = [stride // dtype.itemsize for stride in strides]
        return torch.empty_strided(shape, steps, dtype=getattr(torch, dtype.name), device=like.device)

    def restride(self, x, shape, strides):
        return x.as_strided(shape, [stride // x.element_size() for stride in strides])

    def upload(self, x, like):
        return library("torch").as_tensor(x, device=like.device)

    def guard(self, device):
        return super().guard(device) if device.key == keys.CUDA else nullcontext()
