"""Counts of NumPy's replaced loops, which the loops keep themselves, for watch() and `run --report`."""

from __future__ import annotations

import sys
from collections import Counter

import numpy as np

from ..watch import HERE, NUMPY, Call
from . import functions
from .use import apply
from .which import PRODUCTS

# Why a call of a loop that is replaced ran in NumPy, in the order of inner.COUNTED without the first two.
WHYS = {2: "small", 3: "a fold, an overlap or a layout that kernels do not take"}
STACKED = "of floats stacks of small matrices alone run here, BLAS is as fast: asked for by dtypes="
FEW = 1000  # elements or multiply-adds of a row of its own in the report
AGAIN = "computed here, and again by NumPy for its floating-point flags"


def _slots() -> dict:
    module = sys.modules.get(f"{__package__}.inner_loops")
    return {slot: slot.counts() for slot in (module.all_slots() if module else [])}


def begin():
    """The counts so far; from now on small calls are counted, and what NumPy does by its own loops."""
    apply()
    return _slots(), functions.counts.copy()


def end(before) -> list[Call]:
    """What happened since `begin` said this, the most work first."""
    slots, called = before
    calls = []
    for slot, counts in _slots().items():
        since = counts - slots.get(slot, np.zeros_like(counts))
        for row, (times, work) in enumerate(since.tolist()):
            if times:
                calls.append(_call(slot, row, times, work))
    for (name, dtype, why), times in functions.counts.items():
        if times := times - called.get((name, dtype, why), 0):
            calls.append(Call(f"{name} {dtype}", NUMPY if why else HERE, why, times, 1))
    return sorted(calls, key=lambda call: -call.work)


def _call(slot, row, times, work) -> Call:
    name = f"{slot.loop.ufunc.__name__} {slot.loop.dtypes[0]}"
    if row == 0:
        return Call(name, HERE, "", times, work)
    why = AGAIN if row == 4 else WHYS.get(row) or slot.failure or slot.why or "its kernel was being made"
    if row == 2 and slot.of_stacks:
        why = STACKED
    return Call(name, NUMPY, why, times, work)


def share(calls) -> float | None:
    """The part of all multiply-adds of matmul, vecdot, matvec and vecmat that ran here; None where there were none."""
    products = [call for call in calls if call.name.split()[0] in PRODUCTS and call.why != AGAIN]
    total = sum(call.work for call in products)
    return sum(call.work for call in products if call.where == HERE) / total if total else None


def text(calls) -> str:
    """A table of the calls, each reason in a line below it, and the share of products, in 80 columns."""
    from textwrap import fill

    from tabulate import tabulate

    loops, others = [], Counter()  # calls of functions and of asarray's arrays, whose work nobody counts
    for call in calls:
        if call.work and call.name.split()[0] not in functions.NAMES:
            loops.append(call)
        else:
            others[call._replace(calls=1, work=0)] += call.calls
    counted = [call for call in loops if call.work >= FEW]
    counted += [call._replace(calls=times) for call, times in others.most_common()]
    reasons = {why: f"({i})" for i, why in enumerate(dict.fromkeys(call.why for call in counted if call.why), 1)}

    def row(call):
        name, _, dtype = call.name.partition(" ")
        return name, dtype, call.calls, f"{call.work:,}" if call.work else "", call.where, reasons.get(call.why, "")

    rows = [row(call) for call in counted]
    if small := [call for call in loops if call.work < FEW]:
        rows.append((f"{len(small)} others", "", sum(call.calls for call in small), f"each below {FEW:,}", "", ""))
    headers = "ufunc", "dtype", "calls", "elements or\nmultiply-adds", "ran in", "why"
    lines = [fill(f"{mark} {why}", 80, subsequent_indent="    ") for why, mark in reasons.items()]
    part = share(calls)
    told = "no products" if part is None else f"products (matmul, vecdot, matvec, vecmat): {part:.0%} ran in nbkernels"
    return "\n".join([tabulate(rows, headers=headers, disable_numparse=True), *lines, told])
