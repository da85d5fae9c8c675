"""Dask arrays whose chunks are CuPy's: tasks run CUDA kernels. A double of CuPy has NumPy's memory.

Needs NUMBA_ENABLE_CUDASIM=1; test_simulator.py runs it.
"""

import contextlib
import sys
from functools import partial
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

import nbkernels as nb
from nbkernels.cuda import launch
from nbkernels.dispatch import DeviceError, devices
from tests.on_cuda.simulated import numbers

dask = pytest.importorskip("dask", reason="lacks dask")
da = pytest.importorskip("dask.array", reason="lacks dask.array")


class Chunk(np.ndarray):
    """CuPy's array, as far as the library and dask ask: what NumPy computes of it is an error."""

    device = SimpleNamespace(id=0)

    @property
    def data(self):
        return SimpleNamespace(ptr=self.ctypes.data, device_id=0)

    def __array_ufunc__(self, ufunc, *args, **keywords):
        raise AssertionError(f"NumPy's {ufunc.__name__} of a chunk on a GPU")


Chunk.__module__, Chunk.__qualname__ = "cupy", "ndarray"  # by which both know it


def put(x):
    return np.asarray(x).view(Chunk)


@pytest.fixture
def launches(monkeypatch):
    """Names of the kernels that are launched, with CuPy's double in CuPy's place."""
    cupy = ModuleType("cupy")
    cupy.__dict__.update({name: getattr(np, name) for name in ("take", "tensordot", "einsum")})
    cupy.ndarray, cupy.empty = Chunk, lambda *args: put(np.empty(*args))
    cupy.concatenate = lambda *args, **keywords: put(np.concatenate(*args, **keywords))
    cupy.cuda = SimpleNamespace(get_current_stream=lambda: SimpleNamespace(ptr=0))
    strided = partial(np.lib.stride_tricks.as_strided, subok=True)
    cupy.lib = SimpleNamespace(stride_tricks=SimpleNamespace(as_strided=strided))
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    monkeypatch.setattr(devices.CuPy, "guard", lambda self, device: contextlib.nullcontext())
    seen, simulated = [], launch._simulated
    monkeypatch.setattr(launch, "_simulated", lambda kernel: seen.append(kernel.make) or simulated(kernel))
    with dask.config.set(scheduler="synchronous"):
        yield seen


CALLS = {
    "add": (lambda x, y: nb.add(x, 1), lambda x, y: x + 1),
    "addmm": (lambda x, y: nb.addmm(y[:4], x, y, beta=2, alpha=3), lambda x, y: 2 * y[:4] + 3 * (x @ y)),
}


def test_chunks_of_cupy_take_cuda(launches):
    a, b = numbers(np.random.default_rng(0), 4, 10), numbers(np.random.default_rng(1), 10, 4)
    x, y = da.from_array(put(a), chunks=(4, 5), asarray=False), da.from_array(put(b), chunks=(5, 4), asarray=False)
    for name, (call, numpys) in CALLS.items():
        lazy = call(x, y)
        assert type(lazy._meta) is Chunk, name
        assert not launches, name
        got = lazy.compute()
        assert type(got) is Chunk, name
        assert len(launches) >= 2, name
        np.testing.assert_allclose(got.view(np.ndarray), numpys(a, b), rtol=1e-5, atol=1e-6, err_msg=name)
        launches.clear()


def test_chunks_of_numpy_beside_those_of_cupy_are_refused(launches):
    x = da.from_array(put(np.ones(4, "f4")), chunks=2, asarray=False)
    with pytest.raises(DeviceError, match="add: all arrays must be on one device: self on CUDA:0, other on CPU"):
        nb.add(x, da.ones(4, dtype="f4"))
