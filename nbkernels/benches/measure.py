"""A case -> a row: interleaved medians, share of the measured peak, spread; with its configuration in it."""

from __future__ import annotations

import functools
import itertools

from .. import tune
from . import peak as peaks_of
from .suites import EVERYDAY, SUITES

ROUNDS = 7


def chosen(what, quick=False, dtype=None, sizes=None, device="cpu"):
    """The cases of the suites that are named, or of everyday ones; on CUDA the suite of that name."""
    names = list(what) or (["cuda"] if device == "cuda" else list(EVERYDAY))
    found = itertools.chain.from_iterable(SUITES[name](dtype, sizes) for name in names)
    return [case for case in found if (case.quick or not quick)]


@functools.cache
def machine_peaks(workers, dtype):
    return peaks_of.peaks(workers, dtype)


@functools.cache
def steps(name) -> float:
    """Operations a second of the chains that a dtype's products are made of, one thread."""
    from ..cpu.gemm.kinds import default_tiles, kind_of
    from .dtypes import CASES

    (left, right), words = CASES[name]
    kind = kind_of(left, right, words.get("out_dtype", left), mode=words.get("mode"))
    call, work = peaks_of.step_call(default_tiles(kind).tile(kind), 2e8)
    return work / tune.medians({"peak": call}, seconds=0.05, rounds=3)["peak"]


def level(size) -> str:
    """The cache level that so many bytes stay in."""
    from ..cpu.runtime.machine import machine

    found = machine()
    sizes = (("L1", found.l1), ("L2", found.l2), ("L3", found.l3))
    return next((name for name, most in sizes if most and size <= most), "memory")


def share(case, seconds, workers, top):
    """(share of the peak, what the peak is): of `top` multiply-adds a second, timed in turns with it, or of a copy
    in the level that holds the operands; two Nones where a case has none."""
    if case.peak == "fma":
        return case.flops / seconds / top, "multiply-adds"
    if case.peak == "copy":
        where = level(case.bytes)
        width = machine_peaks(workers, "float32")["gb_s"].get(where)
        return (case.bytes / seconds / 1e9 / width, f"copy in {where}") if width else (None, None)
    return (case.flops / seconds / steps(case.peak), "multiply-adds") if case.peak else (None, None)


def row(case, workers, only=None, seconds=0.3, rounds=ROUNDS, peak=True) -> dict:
    """One row. `only`: the peers to measure, all that are found by default; without `peak` no share of it."""
    clock = gpu_samples if case.device == "cuda" else tune.samples
    with peaks_of.workers(workers):
        calls = {name: call for name, call in case.calls().items()
                 if only is None or name in ("nbkernels", "default", *only)}  # fmt: skip
        flops, top = 0, None
        if peak and case.peak == "fma":
            calls["peak"], flops = peaks_of.fma_call(case.dtype, workers, 2e7)
        times = clock(calls, seconds=seconds, rounds=rounds)
        ours, spread = tune.middle(times["nbkernels"]), tune.spread(times.pop("nbkernels"))
        if flops:
            top = flops / tune.middle(times.pop("peak"))
        part, of = share(case, ours, workers, top) if peak else (None, None)
    return {
        "bench": case.bench, "op": case.op, "shape": list(case.shape), "dtype": case.dtype, "threads": workers,
        "layout": case.layout, "device": case.device, "ours_s": ours, "spread": spread,
        "peers": {name: tune.middle(each) for name, each in times.items()},
        "gflops": case.flops / ours / 1e9 if case.flops else None, "bytes": case.bytes or None,
        "gb_s": case.bytes / ours / 1e9 if case.bytes else None, "peak_share": part, "peak": of,
    }  # fmt: skip


def gpu_samples(calls, seconds=0.3, rounds=ROUNDS):
    """tune.samples by the device's clock."""
    from ..tuning.cuda import device_clock

    found, repeats = {name: [] for name in calls}, {}
    for name, call in calls.items():
        device_clock(call, 2)  # compile, choose
        repeats[name] = max(1, min(1000, int(seconds / rounds / len(calls) / device_clock(call, 2))))
    for _ in range(rounds):
        for name, call in calls.items():
            found[name].append(device_clock(call, repeats[name]))
    return found
