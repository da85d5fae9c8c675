"""The GPU's side of the tuner: products on the current device, timed by its clock.

Candidates are configs of the tiers from compute capability 8.0 on (configs.py); of older devices and the simulator the
tiles of nbkernels/cuda/tiles.py.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import time
from dataclasses import replace

import numpy as np

from .ask import Impossible

NAMES = ("bm", "bn", "bk", "tm", "tn")
DTYPES = ("float32", "float64")
LEAST = 0.001  # seconds of a sample by the device's clock: shorter calls are repeated
LANES = 2  # whose arrays are there at once


def device_clock(call, repeats) -> float:
    """Seconds of one of so many calls, by events on the device."""
    from numba import cuda

    begin, end = cuda.event(), cuda.event()
    begin.record()
    for _ in range(repeats):
        call()
    end.record()
    end.synchronize()
    return cuda.event_elapsed_time(begin, end) / 1e3 / repeats


def missing() -> str | None:
    """Why no GPU can be had, in a line; None where one is there."""
    try:
        from numba import cuda
    except ImportError as error:
        return f"numba.cuda cannot be imported ({error}): pip install 'nbkernels[cuda13]' or [cuda12]"
    if not cuda.is_available():
        return "no usable CUDA driver or GPU"
    return None


def side(dtype: str, mode: str | None = None):
    """The side for the current device, or Impossible."""
    if lacks := missing():
        raise Impossible(f"device cuda: {lacks}")
    from ..cuda.launch import capability

    if capability() >= (8, 0):
        from .configs import Configs

        return Configs(dtype, mode)
    if mode:
        raise Impossible(f"mode {mode!r}: of products from compute capability 8.0 on")
    return Cuda(dtype)


def placed(x: np.ndarray):
    """A copy of a matrix on the device, as kernels' host code sees it; its bytes alone, of which every dtype is."""
    from numba import cuda

    from ..dispatch.devices import NUMBA

    rows = x if x.flags.c_contiguous else x.T
    found = NUMBA.view(cuda.to_device(rows.view(np.uint8))).view(x.shape, x.strides)
    found.dtype = x.dtype
    return found


@functools.cache
def model(record):
    """The default as a candidate: a record that depends on the product, shown as that of a large one."""
    return type("Model", (record,), {})


class Cuda:
    """Products of one dtype on the current device; a lane is (m, n, k, layout, threads), threads always 1."""

    device, names, available = "cuda", NAMES, 1

    def __init__(self, dtype: str, clock=device_clock):
        self.dtype, self.clock = dtype, clock
        self._kept, self._arrays, self._calls, self._repeats = {}, None, None, {}
        self.default = self._default()

    def _default(self):
        from ..cuda.tiles import Tiles, default
        from ..problem import GemmProblem

        if self.dtype not in DTYPES:
            raise Impossible(f"dtype {self.dtype!r}: on CUDA there are {', '.join(DTYPES)}")
        return model(Tiles)(*default(GemmProblem(2048, 2048, 2048, self.dtype), self._multiprocessors()))

    @staticmethod
    def _multiprocessors():
        from ..cuda.launch import multiprocessors

        return multiprocessors()

    # -- candidates --------------------------------------------------------------------------------------------------

    def illegal(self, tiles):
        from ..cuda.tiles import illegal

        return illegal(tiles, self.dtype)

    def complete(self, given):
        from ..cuda.tiles import Tiles

        return Tiles(**vars(self.default) | given)

    def candidates(self, shapes) -> list:
        """All that nbkernels/cuda/tiles.py finds worth timing, and what its model has for each of these shapes."""
        from ..cuda.tiles import candidates, default
        from ..problem import GemmProblem

        modelled = [default(GemmProblem(*shape, self.dtype), self._multiprocessors()) for shape in shapes]
        return list(dict.fromkeys([*modelled, *candidates(self.dtype)]))

    def neighbours(self, tiles, shapes) -> list:
        """Blocks half and twice as large in one size."""
        made = [replace(tiles, **{name: size}) for name, factor in itertools.product(NAMES, (1 / 2, 2))
                if (size := int(getattr(tiles, name) * factor)) > 0]  # fmt: skip
        return [each for each in made if not self.illegal(each)]

    # -- time --------------------------------------------------------------------------------------------------------

    def lanes(self, shapes, layouts, threads):
        return [(*shape, layout, 1) for layout in layouts for shape in shapes]

    def judging(self, shapes, sizes):
        """The shapes that a winner is judged by: those that are asked for and those of the class."""
        return [*shapes, *sizes]

    def compile(self, work, end, heard) -> None:
        """A kernel for each candidate, apart from the races, until `end`. What fails says so there."""
        candidates = list(dict.fromkeys(candidate for candidate, _ in work))
        self.prepare((64, 64, 64, "NN", 1))
        for i, each in enumerate(candidates):
            with contextlib.suppress(Exception):
                self._run(each, (64, 64, 64))
            heard("compile", i + 1, len(candidates), each)
            if time.perf_counter() > end:
                return

    def matrices(self, m, n, k, layout):
        from .matrices import matrices

        return matrices(m, n, k, layout, self.dtype)

    def prepare(self, lane) -> None:
        """Arrays of a lane, and the default's result; those of LANES lanes are kept."""
        from ..dispatch import driver

        if (found := self._kept.pop(lane, None)) is None:
            while len(self._kept) >= LANES:
                del self._kept[next(iter(self._kept))]
            self._arrays = [placed(x) for x in self.matrices(*lane[:4])]
            self._calls = {self.default: self.call(self.default, lane)}
            found = self._arrays, self._calls, driver.copy_out(self._arrays[2]).tobytes()
        self._kept[lane] = found
        self._arrays, self._calls, self._expected = found

    def call(self, candidate, lane):
        """Multiply by a candidate; the function that does so again."""
        again = functools.partial(self._run, candidate, lane[:3])
        again()
        return again

    def _run(self, tiles, shape):
        from ..cuda import gemm
        from ..cuda.tiles import default
        from ..problem import GemmProblem

        a, b, out = self._arrays
        if tiles == self.default:
            tiles = default(GemmProblem(*shape, self.dtype), self._multiprocessors())
        gemm.gemm(out, None, a, b, 0, 1, tiles)

    def sample(self, candidate, lane) -> float:
        """Seconds of one call; the first of a candidate is held against the default's bits."""
        from ..dispatch import driver

        self.prepare(lane)
        if candidate not in self._calls:
            driver.clear(self._arrays[2])
            call = self.call(candidate, lane)
            if driver.copy_out(self._arrays[2]).tobytes() != self._expected:
                raise ArithmeticError(f"wrong: {candidate} gave other bits than the default at {lane}")
            self._calls[candidate] = call
        call = self._calls[candidate]
        if lane not in self._repeats:
            self._repeats[lane] = max(1, int(LEAST / self.clock(call, 2)))
        return self.clock(call, self._repeats[lane])

    # -- what is kept ------------------------------------------------------------------------------------------------

    def store(self):
        from .. import winners

        return winners.store()

    def kind_name(self) -> str:
        """What winners are kept under."""
        return self.dtype

    def key(self, name, layout) -> str:
        from .. import winners
        from ..problem import CLASSES, LAYOUTS

        return winners.key(self.kind_name(), 4 * CLASSES.index(name) + LAYOUTS.index(layout), self.place())

    def place(self) -> str:
        from ..cuda import tuned

        return tuned.place()

    def renew(self) -> None:
        from ..cuda import tuned

        tuned.renew()
