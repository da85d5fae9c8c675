"""Foreign arrays on CUDA devices, without a GPU: what the libraries are asked for."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest

import nbkernels as nb
from nbkernels.dispatch import ArgumentError, DeviceError, arrays, devices, driver
from tests import launched
from tests.toys import HONEST, Face, same


@pytest.fixture
def gpus(monkeypatch):
    """Two devices of a driver that takes notes; a device's memory begins at its number of MiB."""
    notes = launched.Notes()
    notes.cuda, notes.devices = launched.Driver(notes), 2
    notes.cuda.CUpointer_attribute = SimpleNamespace(CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL=9)
    notes.cuda.cuPointerGetAttribute = lambda what, pointer: (0, pointer >> 20) if pointer < 1 << 40 else (1, None)

    def device_array(shape, dtype, strides, stream=0):
        return Plain(shape, dtype, strides, notes.cuda.device)

    monkeypatch.setitem(sys.modules, "numba.cuda", SimpleNamespace(device_array=device_array))
    monkeypatch.setattr(driver, "bindings", lambda: notes.cuda)
    driver.primary.cache_clear()
    yield notes
    driver.primary.cache_clear()


class Plain:
    """What the fake's device_array gives; of numba's kind by its name."""

    def __init__(self, shape, dtype, strides, device):
        self.shape, self.dtype, self.strides, self.stream = shape, dtype, strides, 0
        self.gpu_data = SimpleNamespace(context=SimpleNamespace(device=SimpleNamespace(id=device)))
        self.device_ctypes_pointer = SimpleNamespace(value=(device << 20) + 8192)


Plain.__qualname__, Plain.__module__ = "DeviceNDArrayBase", "numba.cuda"


@pytest.fixture
def on_cuda(library):
    text = "scale(Tensor self, Tensor by) -> Tensor"
    return library.define(text, structured=same, dispatch={"CUDA": lambda out, self, by: None})


def face(device, stream=None, **change):
    return Face(HONEST | dict(data=((device << 20) + 4096, False), stream=stream) | change)


def test_the_stream_of_version_3_is_joined(gpus, on_cuda):
    result = on_cuda.function(face(1, stream=7), face(1))
    assert type(result) is Plain
    assert gpus.events == [("join", 7, 0), ("join", 0, 7)]  # before the launch, and what comes there after it
    assert gpus.cuda.device == 0
    assert arrays.adapter_for(result).device(result) == ("CUDA", 1)


def test_devices_that_differ_are_named(gpus, on_cuda):
    with pytest.raises(DeviceError, match="all arrays must be on one device: self on CUDA:0, by on CUDA:1"):
        on_cuda.function(face(0), face(1))
    with pytest.raises(DeviceError, match="self on CUDA:0, by on CUDA:0, out on CUDA:1"):
        on_cuda.function(face(0), face(0), out=face(1))
    with pytest.raises(DeviceError, match="self on CUDA:1, by on CPU"):
        on_cuda.function(face(1), np.ones((2, 3)))


def test_the_device_is_given_back_after_an_error(gpus, on_cuda):
    def fails(out, self, by):
        assert gpus.cuda.device == 1
        raise ZeroDivisionError

    with on_cuda.library.register("scale", "CUDA", fails, override=True), pytest.raises(ZeroDivisionError):
        on_cuda.function(face(1), face(1))
    assert gpus.cuda.device == 0


def test_pointers_that_no_device_has(gpus, on_cuda):
    with pytest.raises(ArgumentError, match="its pointer 0x20000000000 is not memory of a CUDA device"):
        on_cuda.function(face(0, data=(1 << 41, False)), face(0))


def test_cuda_memory_without_cuda(monkeypatch):
    monkeypatch.setitem(sys.modules, "cuda", None)
    for name in ("cuda.bindings", "cuda.bindings.driver"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    driver.bindings.cache_clear()
    words = "other is a foreign array .* on a CUDA device: CUDA arrays need numba-cuda: pip"
    with pytest.raises(ArgumentError, match=words):
        nb.add(np.ones((2, 3)), Face(HONEST))


def test_dlpack_is_asked_for_the_launching_stream(gpus, on_cuda):
    asked = []

    class OnCuda:
        def __dlpack__(self, **options):
            asked.append(options)
            raise BufferError

        def __dlpack_device__(self):
            return 2, 1

    with pytest.raises(ArgumentError, match="__dlpack__ failed"):
        on_cuda.function(OnCuda(), OnCuda())
    assert asked == [{"max_version": (1, 1), "stream": 1}]


def test_torch_tensors_on_a_side_stream(gpus, on_cuda, monkeypatch):
    """A torch that has a current stream per device: kernels get views that are bound to it, nothing is waited for."""

    class Tensor:
        requires_grad, layout = False, "strided"
        shape, dtype, device = (2, 3), "torch.float64", SimpleNamespace(type="cuda", index=1)

        def __init__(self, address):
            self.address = address

        def stride(self):
            return 3, 1

        def data_ptr(self):
            return self.address

        def detach(self):
            return self

        def is_neg(self):
            return False

        is_conj = is_neg

    Tensor.__module__ = "torch"
    Tensor.__qualname__ = "Tensor"
    streams = {1: 0xAB}

    fake = SimpleNamespace(strided="strided", is_grad_enabled=lambda: False, float64="torch.float64")
    fake.bfloat16, fake._C = "torch.bfloat16", SimpleNamespace(_cuda_getCurrentRawStream=streams.get)
    fake.empty_strided = lambda shape, steps, dtype, device: Tensor(3 << 20)
    fake.jit = SimpleNamespace(is_tracing=lambda: False)
    forward_ad = SimpleNamespace(_current_level=-1, unpack_dual=lambda x: SimpleNamespace(tangent=None))
    monkeypatch.setitem(sys.modules, "torch", fake)
    monkeypatch.setitem(sys.modules, "torch.autograd.forward_ad", forward_ad)
    monkeypatch.setattr(devices.Torch, "repeats", lambda self: False)
    seen = []
    kernel = on_cuda.library.register("scale", "CUDA", lambda *views: seen.append(views), override=True)
    with kernel:
        assert type(on_cuda.function(Tensor(1 << 20), Tensor(2 << 20))) is Tensor
        assert [(x.address, x.stream, x.device, x.strides) for x in seen.pop()] == [
            (at << 20, 0xAB, 1, (24, 8)) for at in (3, 1, 2)
        ]
        streams[1] = 0  # the default stream
        on_cuda.function(Tensor(1 << 20), Tensor(2 << 20))
        assert {x.stream for x in seen.pop()} == {0}
        assert not gpus.events
        streams[1] = 0xAB
        # Launched on another library's stream: it waits for torch's, and torch's for it.
        on_cuda.function(Tensor(1 << 20), face(1), out=face(1))
        assert gpus.events == [("join", 0xAB, 0), ("join", 0, 0xAB)]
