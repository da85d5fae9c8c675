"""Costs by which products choose their path (nbkernels/cpu/gemm/cost.py), fitted to this machine.
Some hundred products are timed by every path, in about a second for each number of threads. The costs of the kind of
processor that serve best are fitted to the times (adapt.py), and kept where products held out are faster by them.
"""

from __future__ import annotations

import datetime
import itertools
import math
import time

import numpy as np

from . import keep

PRODUCTS = 200  # for each number of threads: 25 of 40 draws are kept where costs are another kind's
LARGEST = 3000  # rows, columns or steps
LIGHT = 1000.0  # microseconds that a product is expected to take: longer ones cost 8 times the time, and tell no more
TURNS = 3  # over all products, seconds apart, of which the fastest counts: other work on the machine only adds time
SAMPLE = 200.0  # microseconds that a call is repeated for
HOPELESS = 3  # times the fastest path's time: what takes longer is timed in the first turn alone


def rounded(size: int, decimal: bool) -> int:
    """The next lower size as people choose them: one digit and zeros, or three times a power of two, or one.

    >>> rounded(237, True), rounded(237, False), rounded(250, False)
    (200, 192, 192)
    """
    last = 10 ** (len(str(size)) - 1) if decimal else 1 << max(0, size.bit_length() - 2)
    return size // last * last


def drawn(dtype, threads, costs, count) -> list:
    """So many random products, the same ones each time, of more than one row and column, that take some time: every
    other one of round sizes, whose lines may share sets of L1."""
    from ..cpu.gemm import blocking, paths
    from . import adapt

    rng, found = np.random.default_rng(threads), []
    while len(found) < count:
        m, n, k = (int(LARGEST ** rng.random()) for _ in range(3))
        if len(found) % 2:
            m, n, k = (rounded(size, rng.random() < 0.5) for size in (m, n, k))
        layout = str(rng.choice(["NN", "NT", "TN", "TT"]))
        if min(m, n) > 1 and not paths.little(m, n, k):
            each = adapt.Product((m, n, k), layout, threads, blocking.small(dtype), blocking.caches()[1])
            if adapt.predicted(costs, [each])[0][each.may].min() < LIGHT:
                found.append(each)
    return found


class Clock:
    """Times products by their paths, on the same random numbers all. From here on the process has no first calls."""

    def __init__(self, dtype):
        from .. import first_calls

        self.dtype, self.numbers, first_calls.CALLS = np.dtype(dtype), np.zeros(0, dtype), 0

    def __call__(self, product) -> np.ndarray:
        """Microseconds by each path of cost.WAYS, NaN where it may not be taken or is known to take long."""
        import nbkernels

        from ..cpu.gemm import cost, paths
        from .cpu import workers

        a, b, out = self._arrays(*product.shape, *product.layout)
        found = np.full(len(cost.WAYS), math.nan)

        def timed(repeats):
            start = time.perf_counter()
            for _ in range(repeats):
                nbkernels.mm(a, b, out=out)
            spent = time.perf_counter() - start
            return 1e6 * spent / repeats if spent > 0 else math.nan  # a clock that was set back tells nothing

        hopeless = product.times > HOPELESS * np.nanmin(product.times, initial=math.inf)
        with workers(product.threads):
            for i in np.flatnonzero(product.may & ~hopeless):
                with paths.only(cost.WAYS[i]):
                    if not product.times[i] > 0:
                        timed(2)  # which may compile
                    once = timed(1)
                    found[i] = timed(max(1, int(SAMPLE / np.fmax(once, 1))))
        return found

    def _arrays(self, m, n, k, left, right):
        begin = -(-m * k // 64) * 64  # of B, on a line of its own
        if len(self.numbers) < begin + k * n:
            self.numbers = np.random.default_rng(0).standard_normal(begin + k * n).astype(self.dtype)
        a, b = self.numbers[: m * k], self.numbers[begin : begin + k * n]
        a = a.reshape(m, k) if left == "N" else a.reshape(k, m).T
        b = b.reshape(k, n) if right == "N" else b.reshape(n, k).T
        return a, b, np.empty((m, n), self.dtype)


def find(side, store, end, heard, clock=None) -> str | None:
    """Time the products, fit costs and keep them; what to say of it, None where there is nothing to say."""
    from ..cpu.gemm import cost
    from ..cpu.runtime import machine
    from . import adapt

    if side.dtype not in cost.DTYPES or not cost.KINDS:
        return None
    clock, own, key = clock or Clock(side.dtype), cost.kind(), machine.plan_key(side.dtype)
    kinds = {kind: adapt.part(each["table"], side.dtype) for kind, each in cost.KINDS.items()}
    counts = sorted({1, side.available})
    products = [each for count in counts for each in drawn(side.dtype, count, kinds[own], PRODUCTS)]
    for turn, (i, each) in itertools.product(range(TURNS), enumerate(products)):
        if time.perf_counter() > end and turn:
            break
        if time.perf_counter() > end:
            return "paths: time ran out before they were timed: a larger --budget"
        each.times = np.fmin(each.times, clock(each))
        heard("paths", turn * len(products) + i + 1, TURNS * len(products), "x".join(map(str, each.shape)))
    kind, costs, gain, error = adapt.best(kinds, own, products)
    ratio = f"{math.exp(gain):.3f} times as fast"
    if costs is None:
        if store is not None and key in store.entries():
            store.remove([key])
            side.renew()
        return f"paths: chosen by the costs of {own}: those fitted to this machine are {ratio}, not enough to be kept"
    record = {
        "candidate": {"kind": kind, "features": cost.FEATURES, "costs": written(costs)}, "ratio": math.exp(gain),
        "noise": error, "versions": keep.versions(), "date": datetime.date.today().isoformat(),
    }  # fmt: skip
    said = f"paths: chosen by costs of this machine, fitted from those of {kind}: {ratio} as by those of {own}"
    if store is None or not store.add({key: record}):
        return f"{said}; not kept"
    side.renew()
    return said


def written(costs) -> dict:
    """{threads: {path: costs}}, as costs.json has them."""
    from ..cpu.gemm import cost
    from ..cpu.runtime.status import PATHS

    return {
        threads: {PATHS[way]: [float(f"{each:.4g}") for each in row] for way, row in zip(cost.WAYS, rows)
                  if math.isfinite(row[0])}
        for threads, rows in zip(cost.THREADS, costs)
    }  # fmt: skip
