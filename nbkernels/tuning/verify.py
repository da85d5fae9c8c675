"""Check of winners against the derived tiles, on random products that nobody tunes to: public calls in turns."""

from __future__ import annotations

import json
import os
import statistics
import sys
import time

import numpy as np

from ..plots import columns
from .cpu import workers
from .matrices import matrices
from .race import mean

SIZES = (64, 3000)  # below, products go by paths that tiles do not touch
ROUNDS = 7
LEAST = 0.003  # seconds of a sample


def draw(rng) -> tuple[int, int, int, str]:
    """m, n, k, log-uniform between SIZES, and a layout."""
    low, high = SIZES
    sizes = (int(low * (high / low) ** rng.random()) for _ in range(3))
    return (*sizes, str(rng.choice(["NN", "NT", "TN", "TT"])))


def switch(side, on: bool) -> None:
    """Have products go by the winners, or not."""
    os.environ["NBKERNELS_TUNED"] = "1" if on else "0"
    side.renew()


def ratio(side, lane, rounds=ROUNDS) -> tuple[float, str]:
    """The time of mm without winners over that with them, and what it runs on with them."""
    import nbkernels

    m, n, k, layout, count = lane
    a, b, out = matrices(m, n, k, layout, side.dtype)

    def sample():
        turns = range(repeats)
        start = time.perf_counter()
        for _ in turns:
            nbkernels.mm(a, b, out=out)
        return (time.perf_counter() - start) / repeats

    with workers(count):
        repeats = 1
        for on in (True, False):
            switch(side, on)
            nbkernels.mm(a, b, out=out)
            first = min(sample() for _ in range(3))
        repeats = max(1, int(LEAST / first))
        times = {True: [], False: []}
        for turn in range(rounds):
            for on in ((True, False), (False, True))[turn % 2]:
                switch(side, on)
                nbkernels.mm(a, b, out=out)
                times[on].append(min(sample() for _ in range(2)))
        switch(side, True)
        told = nbkernels.explain(nbkernels.mm, a, b, out=out)
    own = "tuned" in (told.tile or "")
    return statistics.median(times[False]) / statistics.median(times[True]), f"{told.path}{', tuned' * own}"


def run(side, count, seed, threads, file=None) -> int:
    """A line for each product that winners cut, and geometric mean and worst of all; 1 where that is a loss."""
    from tqdm import tqdm

    if side.device != "cpu":
        print("tune --verify: on the CPU alone", file=sys.stderr)
        return 2
    before = os.environ.get("NBKERNELS_TUNED")
    rng, rows = np.random.default_rng(seed), []
    try:
        for _ in tqdm(range(count), unit="product", leave=False, disable=None):
            lane = (*draw(rng), int(rng.choice(threads or [1, side.available])))
            found, path = ratio(side, lane)
            rows.append({"product": "x".join(map(str, lane[:3])), "layout": lane[3], "threads": lane[4], "path": path,
                         "dtype": side.dtype, "tuned over default": found})  # fmt: skip
    finally:
        os.environ.pop("NBKERNELS_TUNED")
        if before is not None:
            os.environ["NBKERNELS_TUNED"] = before
        side.renew()
    found = [row["tuned over default"] for row in rows]
    tuned = [row for row in rows if "tuned" in row["path"]]
    if tuned:
        shown = [[f"{x:.3f}" if isinstance(x, float) else x for x in row.values()] for row in tuned]
        print(columns.fitted(shown, list(tuned[0])))
    what = f"{len(rows)} random products of {side.dtype}, seed {seed}, {len(tuned)} of them cut by winners"
    print(columns.line(f"{what}: tuned over default, geometric mean {mean(found):.3f}, worst {min(found):.3f}"))
    if file:
        from ..commands.info import meta

        with open(file, "w", encoding="utf-8") as out:
            json.dump({"meta": meta(), "rows": rows}, out, indent=1)
    return int(mean(found) < 1 - 0.005)
