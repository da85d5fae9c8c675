"""A small library of ops and arrays in plain Python, for tests of the dispatcher: what a user would add."""

from contextlib import contextmanager
from types import SimpleNamespace

import numpy as np
import pytest

from nbkernels.dispatch import Adapter, Device, Library, add_device, arrays, keys


class Box:
    """A 1-D array on one of two devices of the key BOX."""

    def __init__(self, items, device=0):
        self.items, self.device = list(items), device


class Boxes(Adapter):
    name, classes = "box", ("tests.Box",)
    current = 0
    entered = ()

    def device(self, x):
        return Device("BOX", x.device)

    def spec(self, x):
        return SimpleNamespace(shape=(len(x.items),), dtype=SimpleNamespace(itemsize=1), strides=(1,))

    def view(self, x):
        return x.items

    def empty(self, like, shape, dtype, strides):
        return Box([None] * shape[0], self.current)

    def upload(self, x, like):
        return Box([float(x)])

    @contextmanager
    def guard(self, device):
        before, self.current = self.current, device.index
        self.entered += (device.index,)
        try:
            yield
        finally:
            self.current = before


@pytest.fixture
def boxes():
    add_device("BOX")
    adapter = arrays.register_adapter(Boxes())
    yield adapter
    arrays.unregister_adapter(adapter)
    keys.remove_device("BOX")


class Face:
    """Shows a dict as its CUDA array interface."""

    def __init__(self, face):
        self.face = face

    @property
    def __cuda_array_interface__(self):
        return self.face


HONEST = dict(shape=(2, 3), typestr="<f8", data=(4096, False), version=3)


def same(self, *rest):
    """Meta of an op whose result is like self."""
    return SimpleNamespace(shape=self.shape, dtype=self.dtype, strides=None)


def scale_meta(self, by):
    """Meta of a NumPy op that needs 1-D arrays."""
    if len(self.shape) != 1:
        raise ValueError(f"scale: self must be 1-D, not {self.shape}")
    return SimpleNamespace(shape=self.shape, dtype=self.dtype, strides=None)


def scale_kernel(out, self, by):
    assert self.size, "an empty result never reaches a kernel"
    out[...] = self * by


@pytest.fixture
def library():
    return Library("tests")


@pytest.fixture
def scale(library):
    dispatch = {"CPU": scale_kernel}
    return library.define("scale(Tensor self, Scalar by) -> Tensor", structured=scale_meta, dispatch=dispatch)


@pytest.fixture
def plus(library):
    """An element-wise op: numbers and 0-d CPU arrays may join."""

    def meta(self, other):
        specs = [x for x in (self, other) if hasattr(x, "shape")]
        longest = max(specs, key=lambda spec: len(spec.shape))
        return SimpleNamespace(shape=longest.shape, dtype=longest.dtype, strides=None)

    def kernel(out, self, other):
        out[...] = self + other

    def on_boxes(out, self, other):
        pair = [x if isinstance(x, list) else [x] for x in (self, other)]
        longest = max(map(len, pair))
        out[:] = [x + y for x, y in zip(*(x * (longest // len(x)) for x in pair))]

    dispatch = {"CPU": kernel, "BOX": on_boxes} if "BOX" in keys.devices() else {"CPU": kernel}
    return library.define(
        "plus(Tensor self, Tensor other) -> Tensor",
        structured=meta,
        dispatch=dispatch,
        tags=["elementwise"],
        casts=lambda result, out: np.can_cast(result.dtype, out, "same_kind"),
    )
