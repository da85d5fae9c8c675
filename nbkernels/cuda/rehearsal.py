"""Rehearsal: find the kernels that calls launch, without a GPU, by making the calls on a simulated card.
Its arrays are numbers alone, and a launch only notes its kernel. The code that chooses kernels is the code that runs
on a card, so the list cannot be out of date.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable
from contextlib import contextmanager
from functools import partial
from types import SimpleNamespace

from ..dispatch import arrays, driver
from ..dispatch.devices import Views
from .cubins import name
from .launch import Kernel

APART = 1 << 36  # bytes between two arrays
# Multiprocessors, and bytes of shared memory that a block may ask for, of the largest card of each kind (CUDA C++
# Programming Guide 13.0; NVIDIA's data sheets of T4, A100, RTX 3090 Ti, RTX 4090, H100 SXM, B200, RTX PRO 6000).
CARDS = {(7, 5): (40, 64), (8, 0): (108, 163), (8, 6): (84, 99), (8, 9): (128, 99), (9, 0): (132, 227),
         (10, 0): (148, 227), (12, 0): (188, 99)}  # fmt: skip


class Stand(driver.DeviceView):
    """An array of which there is nothing but its numbers."""

    __slots__ = ()


class Stands(Views):
    """Their adapter."""

    name, classes = "rehearsal", ("nbkernels.Stand",)

    def __init__(self):
        self.made = 0

    def stand(self, shape, dtype, strides, offset=0, memory=None):
        self.made += memory is None
        start = APART * (1 << 10) + APART * self.made if memory is None else APART * (1 + memory)
        return Stand(start + offset, tuple(shape), tuple(strides), dtype, 0, 0, None, self)

    def maker(self, like, shape, dtype, strides):
        return partial(self.stand, shape, dtype, strides)

    def scratch(self, like, shape, dtype):
        return self.view(self.empty(like, shape, dtype, driver.layout.c_strides(shape, dtype.itemsize)))

    def upload(self, x, like):
        return self.stand(x.shape, x.dtype, x.strides)

    def repeats(self):
        return False

    def restride(self, x, shape, strides, offset=0):
        return Stand(x.address + offset, tuple(shape), tuple(strides), x.dtype, 0, 0, None, self)


class Card:
    """cuda.bindings.driver of one card, as far as calls ask before they launch."""

    class CUdevice_attribute:
        def __getattr__(self, name):
            return name.removeprefix("CU_DEVICE_ATTRIBUTE_")

    CUdevice_attribute = CUdevice_attribute()

    def __init__(self, cc):
        count, shared = CARDS.get(cc[:2], CARDS[9, 0])
        self.facts = dict(COMPUTE_CAPABILITY_MAJOR=cc[0], COMPUTE_CAPABILITY_MINOR=cc[1], MULTIPROCESSOR_COUNT=count,
                          MAX_SHARED_MEMORY_PER_BLOCK_OPTIN=shared << 10)  # fmt: skip

    def cuDeviceGetAttribute(self, fact, device):
        return 0, self.facts[fact]

    def cuCtxGetDevice(self):
        return 0, 0

    def cuDeviceGet(self, index):
        return 0, index

    def cuDeviceGetCount(self):
        return 0, 1

    def cuDeviceGetName(self, size, device):
        return 0, b"no card, so that no winner is its"

    def cuMemcpyHtoDAsync(self, address, source, size, stream):
        return (0,)

    def cuMemsetD8Async(self, address, value, size, stream):
        return (0,)

    def cuStreamIsCapturing(self, stream):
        return 0, 0

    def cuStreamSynchronize(self, stream):
        return (0,)

    def cuMemcpyDtoH(self, target, address, size):
        ctypes.memset(target, 0, size)
        return (0,)


@contextmanager
def card(cc):
    """A Card in the driver's place; the block gets the kernels that are launched meanwhile, by name."""
    adapter = arrays.register_adapter(Stands())
    bindings, found = driver.bindings, {}
    driver.bindings = lambda: made
    made = Card(cc)
    _forget()
    driver.recorder.noted = lambda kernel: found.setdefault(name(kernel, cc), kernel)
    try:
        yield SimpleNamespace(stand=adapter.stand, kernels=found)
    finally:
        driver.recorder.noted, driver.bindings = None, bindings
        arrays.unregister_adapter(adapter)
        _forget()


def _forget():
    for each in (driver.primary, driver.properties, driver.name):
        each.cache_clear()


def kernels(calls: Iterable, cc) -> tuple[list[Kernel], dict[str, Exception]]:
    """The kernels of calls on a card of a compute capability, and which calls raise what there.

    A call is (label, function): function(stand) makes its arrays by stand(shape, dtype, strides), and makes it.
    """
    failed = {}
    with card(cc) as stage:
        for label, call in calls:
            try:
                call(stage.stand)
            except Exception as error:
                failed[label] = error
    return list(stage.kernels.values()), failed
