"""Additions to Numba's CUDA simulator, so that it runs the source of these kernels.
They are pointers, a fused fma, alignment=, `cuda.threadIdx` and its like in functions of other modules than the
kernel's, and threads that take turns.

Imported only where NUMBA_ENABLE_CUDASIM=1.
"""

import ctypes
import functools
import os
import random
import sys
import threading
from typing import ClassVar

import numpy as np
from numba import cuda
from numba.cuda.simulator import kernel, kernelapi
from numba.np.numpy_support import as_dtype

# C99 demands of fma and fmaf one rounding of the exact a*b + c; Python has math.fma from 3.13 on, and for doubles only.
_libm = ctypes.PyDLL("ucrtbase" if os.name == "nt" else None)
_fma = {np.float32: (_libm.fmaf, ctypes.c_float), np.float64: (_libm.fma, ctypes.c_double)}
for _function, _real in _fma.values():
    _function.restype, _function.argtypes = _real, (_real, _real, _real)


def fma(self, a, b, c):
    """a*b + c rounded once, in the type of c (the simulator's own rounds twice)."""
    real = type(c)
    return real(_fma[real][0](a, b, c))


def shared_array(self, shape, dtype, alignment=None):
    """One array for each source line, shape and dtype, of ones' bits: NaN where a kernel reads before it writes.

    The simulator's own refuses alignment=, and two threads that ask at the same time may each get their own.
    """
    caller = sys._getframe(1)
    fresh = np.empty(shape, as_dtype(dtype))
    fresh.view(np.uint8).fill(0xFF)
    return self._allocations.setdefault((caller.f_code, caller.f_lineno, fresh.shape, fresh.dtype), fresh)


class Pointer:
    """x's elements by their distance from the one `moved` past x[0, 0, ...]; outside x's extent: IndexError."""

    def __init__(self, x, moved=0):
        backwards = tuple(stride < 0 for stride in x.strides)
        lowest = x[(*(slice(-1, None) if back else slice(0, 1) for back in backwards), ...)]
        reach = [(size - 1) * stride // x.itemsize for size, stride in zip(x.shape, x.strides)]
        self.first = moved - sum(step for step, back in zip(reach, backwards) if back)
        self.window = np.lib.stride_tricks.as_strided(
            lowest, (sum(abs(step) for step in reach) + 1 if x.size else 0,), (x.itemsize,)
        )

    def _at(self, i):
        if not 0 <= self.first + i < self.window.size:
            raise IndexError(f"element {i} of a pointer that spans [{-self.first}, {self.window.size - self.first})")
        return self.first + i

    def __getitem__(self, i):
        return self.window[self._at(i)]

    def __setitem__(self, i, value):
        self.window[self._at(i)] = value


def within(check, dtype):
    """address(x) of a kernel's own array x, which is checked and taken for another dtype of its size."""

    def address(x):
        x = getattr(getattr(x, "_item", x), "_ary", x)
        check(x)
        return Pointer(x.view(dtype))

    return address


def running(name):
    """cuda.name, of the kernel that runs."""
    if name.startswith("__") or kernel._get_kernel_context() is None:
        raise AttributeError(f"module 'numba.cuda' has no attribute {name!r}", name=name)
    return getattr(kernel._get_kernel_context(), name)


class Stopped(Exception):
    """Ends a thread that waits at a barrier after another one has failed."""


class Worker(kernel.BlockThread):
    """Runs a block's threads one after the other, until one waits at a barrier: another worker takes the rest."""

    idle: ClassVar = []

    def __init__(self, block):
        super().__init__(None, block, (0, 0, 0), (0, 0, 0), False)
        self.turn = threading.Lock()
        self.turn.acquire()

    def run(self):
        while True:
            self.turn.acquire()
            block = self._manager
            try:
                while block.unborn:
                    self.thread_id, self.threadIdx = block.unborn.pop()
                    block.call()
            except Stopped:
                pass
            except Exception as error:
                where = f"tid={[*self.threadIdx]} ctaid={[*self.blockIdx]}"
                block.error = type(error)(f"{where}: {error}").with_traceback(error.__traceback__)
                block.unborn.clear()
            self.idle.append(self)
            block.proceed()

    def syncthreads(self):
        self._manager.waiting.append(self)
        self._manager.proceed()
        self.turn.acquire()
        if self._manager.error:
            raise Stopped


class Block(kernel.BlockManager):
    """A block whose threads take turns, each as far as the next barrier, in an order that is drawn for every round.

    The simulator's own are started and polled all at once: 90 ms for 256 threads without a barrier, where turns take 1.
    And what a missing barrier allows does happen, every time: threads get ahead of all that they should wait for.
    """

    shuffle = random.Random(0).shuffle

    def run(self, grid_point, *args):
        self.place, self.call, self.error = kernelapi.Dim3(*grid_point), functools.partial(self._f, *args), None
        points = enumerate(np.ndindex(self._block_dim[::-1]))
        self.unborn = [(thread, kernelapi.Dim3(*point[::-1])) for thread, point in points]
        self.shuffle(self.unborn)
        self.round, self.waiting, self.done = [], [], threading.Lock()
        self.done.acquire()
        self.proceed()
        self.done.acquire()
        if self.error:
            raise self.error

    def proceed(self):
        """The next thread's turn."""
        if self.unborn:
            worker = Worker.idle.pop() if Worker.idle else Worker(self)
            worker._manager, worker.blockIdx = self, self.place
            if not worker.is_alive():
                worker.start()
            worker.turn.release()
            return
        if not self.round:
            self.round, self.waiting = self.waiting, []
            self.shuffle(self.round)
        (self.round.pop().turn if self.round else self.done).release()


cuda.__getattr__ = running
kernel.BlockManager = Block
kernelapi.FakeCUDAModule.fma = fma
kernelapi.FakeCUDAShared.array = shared_array
