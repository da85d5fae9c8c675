"""Additions over every pattern of strides, their time over the contiguous call's for as many lines of memory.

    python bench/bench_strides.py                               # the table
    python -m pytest bench/bench_strides.py --benchmark-enable  # and each held to 1.25, on one thread

Medians of calls in turns, so that whatever else runs here meets both alike; an attempt beyond 1.25 is repeated, for a
neighbour may have had the caches, and the least counts. One input transposed does not hold it (docs/kernels.md).
"""

import argparse
import sys
from pathlib import Path
from statistics import median
from time import perf_counter

import numpy as np
import pytest
from tabulate import tabulate
from tqdm import tqdm

import nbkernels
from nbkernels.benches.peak import workers
from nbkernels.benches.peers import at_best

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "bench")]

SIDES = {"in L2": 256, "beyond the caches": 2880}  # of square matrices of float32: 0.75 MB and 95 MB of three
MOST, ATTEMPTS, ROUNDS = 1.25, 8, 15


def permuted(x):
    """The same elements in three dimensions, whose order in memory is another one."""
    return x.reshape(len(x), 8, -1).transpose(1, 0, 2)


def spread(x):
    """As many elements, between others in rows of twice the length."""
    return np.repeat(x, 2, 1)[:, ::2]


# Views of two inputs and of the output, and how many times the contiguous call's lines they touch.
HELD = {
    "a row": (lambda a, b, c: (a, b[0], c), 2 / 3),
    "a column": (lambda a, b, c: (a, b[:, :1], c), 2 / 3),
    "a number": (lambda a, b, c: (a, 1.5, c), 2 / 3),
    "rows reversed": (lambda a, b, c: (a[::-1], b, c), 1),
    "all reversed": (lambda a, b, c: (a[::-1, ::-1], b, c), 1),
    "Fortran's order": (lambda a, b, c: (a.T, b.T, c.T), 1),
    "padded rows": (lambda a, b, c: (a[:, :-32], b[:, 32:], c[:, 16:-16]), 1),
    "dimensions permuted": (lambda a, b, c: tuple(map(permuted, (a, b, c))), 1),
    "every other element": (lambda a, b, c: (spread(a), spread(b), c), 5 / 3),
}
PATTERNS = HELD | {"one transposed": (lambda a, b, c: (a, b.T, c), 1)}


def ratio(pattern, side, rounds=ROUNDS):
    """Median time of a pattern's calls over that of contiguous ones, for as many lines."""
    make, lines = PATTERNS[pattern]
    arrays = [np.ones((side, side), "f4") for _ in range(3)]
    calls, times = (make(*arrays), arrays), ([], [])
    repeats = max(1, 1_500_000 // side**2)
    for _ in range(rounds):
        for (x, y, out), taken in zip(calls, times):
            begin = perf_counter()
            for _ in range(repeats):
                nbkernels.add(x, y, out=out)
            taken.append(perf_counter() - begin)
    patterned, contiguous = map(median, times)
    return patterned / contiguous / lines


@pytest.mark.parametrize("pattern", HELD)
@pytest.mark.parametrize("place", SIDES)
def test_strides(benchmark, place, pattern):
    with workers(1):
        if benchmark.disabled:
            ratio(pattern, SIDES[place], 1)
            benchmark(lambda: None)
            return
        found = []
        while len(found) < ATTEMPTS and (not found or found[-1] > MOST):
            found.append(ratio(pattern, SIDES[place]))
    benchmark.extra_info["ratios"] = found
    benchmark(lambda: None)
    assert min(found) <= MOST, found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    with workers(arguments.threads):
        rows = [
            [pattern, *(f"{ratio(pattern, side):.2f}" for side in SIDES.values())]
            for pattern in tqdm(PATTERNS, disable=None)
        ]
    print(tabulate(rows, headers=["float32", *SIDES]))


if __name__ == "__main__":
    at_best()
    main()
