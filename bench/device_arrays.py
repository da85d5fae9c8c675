"""Arrays of torch, CuPy and numba for device_check.py: made of NumPy's memory, with any strides, and read back.

With `dry`, those of torch on the CPU and NumPy's own stand for them, on a machine without a GPU.
"""

import functools

import numpy as np


class Torch:
    name = "torch"

    def __init__(self, device):
        import torch

        self.torch, self.device = torch, device
        self.synchronize = torch.cuda.synchronize if device == "cuda" else int

    def put(self, array, memory):
        """device_cases.Array's view of a copy of the memory on the device."""
        torch = self.torch
        words = memory.view(np.int16) if array.dtype == "bfloat16" else memory
        held = torch.from_numpy(words.copy()).to(self.device)
        held = held.view(torch.bfloat16) if array.dtype == "bfloat16" else held
        return held.as_strided(array.shape, array.steps())


class CuPy:
    name = "CuPy"

    def __init__(self):
        import cupy

        self.cupy, self.synchronize = cupy, cupy.cuda.runtime.deviceSynchronize

    def put(self, array, memory):
        held = self.cupy.asarray(memory.view(np.uint8) if memory.size else np.zeros(1, np.uint8))
        return self.cupy.ndarray(array.shape, memory.dtype, memptr=held.data, strides=array.strides())


class Numba:
    name = "numba"

    def __init__(self):
        from numba import cuda

        self.cuda, self.synchronize = cuda, cuda.synchronize

    def put(self, array, memory):
        from nbkernels.dispatch.devices import NUMBA

        held = self.cuda.to_device(memory.view(np.uint8) if memory.size else np.zeros(1, np.uint8))
        return NUMBA.array(array.shape, array.strides(), memory.dtype, 0, held.gpu_data)


class NumPy:
    name, synchronize = "NumPy", int

    def put(self, array, memory):
        return array.view(memory.copy())


@functools.cache
def libraries(dry):
    """(those that are here, {name: error} of the others)"""
    found, missing = [], {}
    for make in (functools.partial(Torch, "cpu"), NumPy) if dry else (functools.partial(Torch, "cuda"), CuPy, Numba):
        try:
            found.append(make())
            found[-1].synchronize()
        except Exception as error:
            missing[getattr(make, "func", make).name] = f"{type(error).__name__}: {error}"
    return found, missing


def torch_of(report, dry):
    """torch on the device, or None, which is reported."""
    found = next((library for library in libraries(dry)[0] if library.name == "torch"), None)
    if found is None:
        report("torch", wrong="torch is not here")
    return found


def get(x):
    """An array of any of them as NumPy's, when all that was launched on its stream is done."""
    from nbkernels.dispatch import arrays, driver

    adapter = arrays.adapter_of(type(x))
    seen = adapter.view(x)
    return driver.copy_out(seen) if isinstance(seen, driver.DeviceView) else np.asarray(seen)
