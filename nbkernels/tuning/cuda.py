"""The GPU's side of the tuner: candidates of nbkernels/cuda/tiles.py, timed by the device's clock."""

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


@functools.cache
def model():
    """The default as a candidate: tiles that depend on the product, shown as those of a large one."""
    from ..cuda.tiles import Tiles

    return type("Model", (Tiles,), {})


class Cuda:
    """Products of one dtype on the current device; a lane is (m, n, k, layout, threads), threads always 1."""

    device, names, available = "cuda", NAMES, 1

    def __init__(self, dtype: str, clock=device_clock):
        if dtype not in DTYPES:
            raise Impossible(f"dtype {dtype!r}: on CUDA there are {', '.join(DTYPES)}")
        if lacks := missing():
            raise Impossible(f"device cuda: {lacks}")
        from ..cuda.tiles import default
        from ..problem import GemmProblem

        self.dtype, self.clock = dtype, clock
        self.default = model()(*default(GemmProblem(2048, 2048, 2048, dtype), self._multiprocessors()))
        self._lane, self._arrays, self._repeats, self._checked = None, None, {}, set()

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

    def compile(self, candidates, end, heard) -> None:
        """A kernel for each, apart from the races, until `end`. What fails says so there."""
        self.prepare((64, 64, 64, "NN", 1))
        for i, each in enumerate(candidates):
            with contextlib.suppress(Exception):
                self._run(each)
            heard("compile", i + 1, len(candidates), each)
            if time.perf_counter() > end:
                return

    def prepare(self, lane) -> None:
        from numba import cuda

        from .matrices import matrices

        if self._lane != lane:
            self._arrays, self._lane = None, None
            m, n, k, layout, _ = lane
            a, b, out = matrices(m, n, k, layout, self.dtype)
            self._arrays, self._lane = [*map(cuda.to_device, (a, b, out)), None], lane
            self._run(self.default)
            self._arrays[3] = self._arrays[2].copy_to_host()

    def _run(self, tiles):
        from ..cuda import gemm
        from ..cuda.tiles import default
        from ..dispatch.devices import NUMBA
        from ..problem import GemmProblem

        a, b, out = map(NUMBA.view, self._arrays[:3])
        if isinstance(tiles, model()):
            tiles = default(GemmProblem(*self._lane[:3], self.dtype), self._multiprocessors())
        gemm.gemm(out, None, a, b, 0, 1, tiles)

    def sample(self, tiles, lane) -> float:
        """Seconds of one call; the first of a candidate is held against the default's bits."""
        self.prepare(lane)
        if (tiles, lane) not in self._checked:
            self._arrays[2].copy_to_device(np.zeros_like(self._arrays[3]))
            self._run(tiles)
            if self._arrays[2].copy_to_host().tobytes() != self._arrays[3].tobytes():
                raise ArithmeticError(f"wrong: {tiles} gave other bits than the default at {lane}")
            self._checked.add((tiles, lane))
        if lane not in self._repeats:
            self._repeats[lane] = max(1, int(LEAST / self.clock(lambda: self._run(tiles), 2)))
        return self.clock(lambda: self._run(tiles), self._repeats[lane])

    # -- what is kept ------------------------------------------------------------------------------------------------

    def store(self):
        from .. import winners

        return winners.store()

    def key(self, name, layout) -> str:
        from .. import winners
        from ..problem import CLASSES, LAYOUTS

        return winners.key(self.dtype, 4 * CLASSES.index(name) + LAYOUTS.index(layout), self.place())

    def place(self) -> str:
        from ..cuda import tuned

        return tuned.place()

    def renew(self) -> None:
        from ..cuda import tuned

        tuned.renew()
