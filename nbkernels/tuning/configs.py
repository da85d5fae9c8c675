"""Configs of every tier of CUDA products (nbkernels/cuda/product) as the tuner's candidates.

The default is what the library chooses for each product, operands packed first where it does so; a candidate is taken
as a winner is, so that what is timed is what calls will do.
"""

from __future__ import annotations

import functools
import math
import time
from dataclasses import replace

import numpy as np

from .ask import Impossible
from .cuda import Cuda, device_clock, model

MOST = 12  # candidates of a tier: a kernel takes a processor some two seconds, and a race of 24 some hundred samples
NAMES = ("tier", "bm", "bn", "bk", "stages", "warps", "raster", "split")
LARGE = 2048, 2048, 2048  # the product that stands for all where none is named


class Configs(Cuda):
    """Products of one dtype and mode on a device of compute capability 8.0 or newer."""

    names = NAMES

    def __init__(self, dtype: str, mode: str | None = None, clock=device_clock):
        from ..cuda.kinds import kind_of
        from ..cuda.launch import capability
        from ..dtypes import DTYPES
        from ..meta import MODES
        from ..modes import asked

        if dtype not in DTYPES:
            raise Impossible(f"dtype {dtype!r}: there are {', '.join(DTYPES)}")
        if mode and (mode not in ("chain", "tf32") or dtype not in MODES[mode]):
            raise Impossible(f"mode {mode!r}: on CUDA there are 'chain' of halves and 'tf32' of float32")
        self.mode, self.operands = mode or asked(dtype, of_gpus=True), dtype
        self.result = "int32" if dtype in ("int8", "uint8") else dtype
        self.kind = kind_of(dtype, dtype, self.result, "", None if self.mode == "tf32" else self.mode)
        self.cc = capability()
        super().__init__(self.kind_name(), clock)

    def kind_name(self) -> str:
        from ..cuda.tuned import named

        return named(self.kind, self.mode)

    # -- candidates --------------------------------------------------------------------------------------------------

    def _default(self):
        return model(type(best := self._chosen(LARGE)))(**vars(best))

    def _chosen(self, shape):
        """The config that the library has for a product whose operands need not be packed."""
        from ..cuda.product import choose, tensor

        device, sizes = (self.cc, self._multiprocessors()), (*shape, 1)
        if not tensor.takes(self.kind, self.mode):
            return choose.choose(*device, self.kind.chain, *sizes)
        if self.cc == (9, 0):
            return tensor.choose(self.kind.a, self.kind.out, device[1], *sizes)[0]
        return tensor.mixed(self.kind.a, device, *sizes)

    @functools.cached_property
    def tiers(self) -> dict:
        """{tier: its legal configs} of this dtype and mode on this device; of tier W those that store whole lines."""
        from ..cuda.product import choose, config, tensor
        from ..cuda.product.tensormap import LINE
        from ..jit.ir.kind import BYTES

        beside = ["S", *filter(None, [choose.DOUBLE.get(self.cc)])]
        found = {tier: config.candidates(tier, self.kind.chain, self.cc) for tier in beside}
        if tensor.takes(self.kind, self.mode):
            whole = [each for each in tensor.configs("W", self.kind.a, self.cc)
                     if each.bn * BYTES[self.kind.out] % LINE == 0]  # fmt: skip
            found |= {"M": config.candidates("M", self.kind.a, self.cc), "W": whole}
        legal = {tier: [each for each in configs if not self.illegal(each)] for tier, configs in found.items()}
        return {tier: configs for tier, configs in legal.items() if configs}

    def illegal(self, config):
        from ..cuda.tuned import refused

        return refused(config, self.kind, self.mode, self.cc)

    def complete(self, given):
        """The config that the library has for a large product, or of the tier that is asked for the one that it ranks
        first, with these sizes; in tier W warps and stages fit the tile where they are not given."""
        from ..cuda.product.config import GemmConfig
        from ..cuda.product.tensor import stages

        base = self.default
        if (tier := given.get("tier", base.tier)) != base.tier:
            base = next(iter(self.ranked(tier, [LARGE])), base)
        found = GemmConfig(**vars(base) | given)
        if tier == "W" and found.bm in (64, 128):
            warps, most = found.bm // 16, stages(found.bm, found.bn)
            found = replace(found, warps=given.get("warps", warps), stages=given.get("stages", most))
        return found

    def cost(self, config, shapes) -> float:
        """Cycles that the library predicts, multiplied over the shapes: what ranks the configs of a tier."""
        from ..cuda.product import choose, tensor
        from ..cuda.tuned import TENSOR

        count, total = self._multiprocessors(), 0.0
        for m, n, k in shapes:
            if config.tier in TENSOR:
                total += math.log(tensor.cost(config, count, m, n, k, 1))
            else:
                total += math.log(choose.cost(config, count, self.kind.chain, m, n, k, 1))
        return total

    def ranked(self, tier, shapes) -> list:
        """The configs of a tier, one for each tile and number of warps, those of the least cost first; of equal ones
        that with the most steps of k under way."""
        found = {}
        for each in sorted(self.tiers.get(tier, ()), key=lambda x: (self.cost(x, shapes), -x.stages * x.bk)):
            found.setdefault((each.bm, each.bn, each.warps), each)
        return list(found.values())

    def candidates(self, shapes) -> list:
        """The configs that the library has for these shapes, and MOST of each tier."""
        whole = self.tiers.get("W", ())  # the library's may be of C' = B' A', which a winner's is not
        found = [each for each in map(self._chosen, shapes) if each.tier != "W" or replace(each, split=False) in whole]
        return list(dict.fromkeys(found + [x for tier in self.tiers for x in self.ranked(tier, shapes)[:MOST]]))

    def neighbours(self, config, shapes) -> list:
        """One stage or half the stages' depth more and less, other bands of tiles, segments apart or in one block."""
        from ..cuda.product.config import SEGMENT

        steps = [{"stages": config.stages + 1}, {"stages": config.stages - 1}, {"bk": config.bk * 2},
                 {"bk": config.bk // 2}, {"raster": config.raster * 2}, {"raster": config.raster // 2}]  # fmt: skip
        if any(k > SEGMENT for *_, k in shapes):
            steps.append({"split": not config.split})
        return [each for step in steps if not self.illegal(each := replace(config, **step))]

    # -- time --------------------------------------------------------------------------------------------------------

    def judging(self, shapes, sizes):
        """The shapes that are asked for: a winner serves no smaller and no larger products than it was judged by."""
        return shapes

    def matrices(self, m, n, k, layout):
        from .matrices import dtype_of, matrices

        a, b, _ = matrices(m, n, k, layout, self.operands)
        return a, b, np.zeros((m, n), dtype_of(self.result))

    def compile(self, work, end, heard) -> None:
        """The kernels of candidates on their lanes, by processes, until `end`; what fails says so in the race."""
        from ..commands.cubins import apart
        from ..cuda.cubins import architecture

        pairs = [(None if each == self.default else each, lane) for each, lane in work]
        calls = functools.partial(rehearsed, self.operands, self.result, self.mode, pairs)
        for done, count in apart(calls, [architecture(self.cc)], end - time.perf_counter()):
            heard("compile", done, count, self.default)

    def call(self, candidate, lane):
        """Multiply by a candidate; the function that makes the same launches again, so that the host's part is small.
        What they need beside the arrays is kept with it."""
        from ..dispatch.driver import recorder

        recorder.launches, recorder.made = [], []
        try:
            multiply(*self._arrays, self.kind, self.mode, None if candidate == self.default else candidate)
            launches, held = recorder.launches, recorder.made
        finally:
            recorder.launches, recorder.made = None, ()
        return functools.partial(repeat, launches, held)


def repeat(launches, held) -> None:
    for launch in launches:
        launch()


def multiply(a, b, out, kind, mode, config) -> None:
    """out = a @ b by a config, taken as a winner, or by what the library chooses; winners of the file do not count."""
    from ..cuda.product.gemm import planned, run

    made = planned(out, None, a, b, kind, a.shape[1], mode=mode, winner=lambda *_: config)
    if config and not made.tuned:
        raise ValueError(f"{config} cannot multiply these operands")
    run(made, out, 0, 1, kind)


def rehearsed(operands, result, mode, pairs):
    """Calls that launch what candidates do on their lanes, as cuda/rehearsal.py takes them."""
    from ..cuda.kinds import kind_of

    kind = kind_of(operands, operands, result, "", None if mode == "tf32" else mode)
    return [(f"{config} {lane}", functools.partial(stood, kind, mode, operands, result, config, lane))
            for config, lane in pairs]  # fmt: skip


def stood(kind, mode, operands, result, config, lane, stand) -> None:
    """The product of a lane on arrays of stand's."""
    from .matrices import dtype_of

    m, n, k, layout, _ = lane

    def array(shape, dtype, turned):
        dtype, (rows, columns) = dtype_of(dtype), shape
        size = dtype.itemsize
        return stand(shape, dtype, (size, rows * size) if turned == "T" else (columns * size, size))

    multiply(array((m, k), operands, layout[0]), array((k, n), operands, layout[1]), array((m, n), result, "N"), kind,
             mode, config)  # fmt: skip
