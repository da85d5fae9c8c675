"""Measure a case and give a row: interleaved medians, spread, and the share of the peak that is measured beside it."""

from __future__ import annotations

import functools
import itertools

from .. import tune
from . import peak as peaks_of
from . import roofs
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


def level(size) -> str:
    """The cache level that so many bytes stay in."""
    from ..cpu.runtime.machine import machine

    found = machine()
    sizes = (("L1", found.l1), ("L2", found.l2), ("L3", found.l3))
    return next((name for name, most in sizes if most and size <= most), "memory")


def roof(case, workers):
    """(call, what it does, of what it is the peak, what the case does): the instruction that the case's kernel uses, by
    itself, or a copy in the level that holds the operands; None where a case has none."""
    if case.peak == "fma":
        return *peaks_of.fma_call(case.dtype, workers, 2e7), roofs.additions(case.dtype), case.flops
    if case.peak == "copy":
        where = level(case.bytes)
        found = peaks_of.copy_call(where, workers, 1 << 22)
        return found and (*found, roofs.copies(where), case.bytes)
    return (*peaks_of.steps_of(case.peak, 2e8), roofs.additions(case.peak), case.flops) if case.peak else None


def row(case, workers, only=None, seconds=0.3, rounds=ROUNDS, peak=True) -> dict:
    """One row. `only`: the peers to measure, all that are found by default; without `peak` no share of it."""
    clock = gpu_samples if case.device == "cuda" else tune.samples
    with peaks_of.workers(workers):
        calls = case.calls()
        name = next(iter(calls))  # ours, or that of a function of one's own
        calls = {each: call for each, call in calls.items() if only is None or each in (name, "default", *only)}
        if top := roof(case, workers) if peak else None:
            calls["peak"], most, of, work = top
        times = clock(calls, seconds=seconds, rounds=rounds)
        samples = times.pop(name)
        ours, spread = tune.middle(samples), tune.spread(samples)
        held = roofs.against(of, work, samples, most, times.pop("peak")) if top else {"peak": None, "peak_share": None}
    return {
        "bench": case.bench, "op": case.op, "shape": list(case.shape), "dtype": case.dtype, "threads": workers,
        "layout": case.layout, "device": case.device, "ours_s": ours, "spread": spread,
        **({"ours": name} if name != "nbkernels" else {}),
        "peers": {name: tune.middle(each) for name, each in times.items()},
        "gflops": case.flops / ours / 1e9 if case.flops else None, "bytes": case.bytes or None,
        "gb_s": case.bytes / ours / 1e9 if case.bytes else None, **held,
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
