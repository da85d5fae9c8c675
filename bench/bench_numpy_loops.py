"""Which of NumPy's inner loops gain: times of NumPy's own and of ours, in one process, interleaved.

    python bench/bench_numpy_loops.py [--json FILE] [--table] [--only PATTERN ...]

Element-wise: arrays of 1 to 1,000,000 elements into an array that is there, each with another array and with one
number; a size's ratio is the smaller of both. From the first size on from which no ratio is below 0.97 a loop's gain is
the geometric mean of the ratios. Products: the shapes of PRODUCTS, by the cost model of numpy_loops/products.py.

--table writes nbkernels/in_numpy/measured.json for vectors as wide as this processor's, from the file that --json
names, which is not measured again where it is there.
"""

import argparse
import fnmatch
import json
import math
import sys
import time
from pathlib import Path

import numpy as np

from nbkernels.benches.peers import at_best
from nbkernels.commands import info
from nbkernels.in_numpy.inner_loops import slots
from nbkernels.in_numpy.use import use_in_numpy
from nbkernels.in_numpy.which import UNLIKE, every, possible
from nbkernels.jit.ir.vector import width_bits

TABLE = Path(__file__).parent.parent / "nbkernels" / "in_numpy" / "measured.json"
SIZES = 1, 10, 100, 1_000, 10_000, 100_000, 1_000_000
PRODUCTS = (
    (1, 1, 1, 1), (1, 4, 4, 4), (1, 8, 8, 8), (1, 16, 16, 16), (1, 64, 64, 64), (1, 200, 200, 200), (1, 300, 300, 1),
    (1, 1, 300, 300), (1, 10, 10, 1), (1, 1, 1000, 1), (1, 1000, 10, 3), (1, 10, 1000, 3), (1, 3, 10, 1000),
    (1, 1000, 3, 10), (1, 300, 1, 300), (100, 4, 4, 4), (100, 16, 16, 16), (1000, 3, 3, 1),
)  # fmt: skip
SLOWEST, ROUNDS, LEAST = 0.97, 7, 3e-4


def ratio(call, switch):
    """NumPy's time over ours, the median of ROUNDS pairs."""
    times = {}
    for ours in (True, False):
        switch(ours)
        call()
        start, n = time.perf_counter(), 1
        call()
        n = max(1, int(LEAST / max(time.perf_counter() - start, 1e-7)))
        times[ours] = n, []
    for _ in range(ROUNDS):
        for ours in (True, False):
            switch(ours)
            n, found = times[ours]
            start = time.perf_counter()
            for _ in range(n):
                call()
            found.append((time.perf_counter() - start) / n)
    theirs, mine = (min(times[ours][1]) for ours in (False, True))
    return theirs / mine


def numbers(dtype, size, positive=False):
    rng = np.random.default_rng(0)
    if dtype.kind == "b":
        return rng.random(size) < 0.5
    if dtype.kind in "iu":
        return rng.integers(1 if positive else 0, 100, size).astype(dtype)
    x = rng.random(size) * 4 + 0.5
    return (x + 1j * rng.random(size)).astype(dtype) if dtype.kind == "c" else x.astype(dtype)


def element_calls(loop):
    """(size, call) of an element-wise loop."""
    first, second, out = (np.dtype(letter) for letter in (loop.letters[0], loop.letters[-2], loop.letters[-1]))
    shift = "shift" in loop.ufunc.__name__
    for size in SIZES:
        a, b, o = numbers(first, size), numbers(second, size, True), np.empty(size, out)
        b = b % 7 if shift else b
        if loop.ufunc.__name__ == "power":
            b = b % 3 + 1 if b.dtype.kind in "iu" else b
        if loop.ufunc.nin == 1:
            yield size, lambda a=a, o=o: loop.ufunc(a, out=o)
            continue
        for other in (b, b[:1]):
            yield size, lambda a=a, other=other, o=o: loop.ufunc(a, other, out=o)


def product_calls(loop):
    """(multiply-adds, call) of a product's loop."""
    dtype, name = np.dtype(loop.letters[0]), loop.ufunc.__name__
    shapes = {
        "matmul": PRODUCTS,
        "vecdot": [(c, 1, k, 1) for c in (1, 100) for k in (3, 30, 300, 3000)],
        "matvec": [(c, m, k, 1) for c in (1, 20) for m in (3, 300) for k in (3, 300)],
        "vecmat": [(c, 1, k, n) for c in (1, 20) for n in (3, 300) for k in (3, 300)],
    }[name]
    for c, m, k, n in shapes:
        a, b = numbers(dtype, (c, m, k)), numbers(dtype, (c, k, n))
        a, b, o = {
            "matmul": (a, b, np.empty((c, m, n), dtype)), "vecdot": (a[:, 0], b[:, :, 0].copy(), np.empty(c, dtype)),
            "matvec": (a, b[:, :, 0].copy(), np.empty((c, m), dtype)), "vecmat": (a[:, 0], b, np.empty((c, n), dtype)),
        }[name]  # fmt: skip
        yield c * m * k * n, lambda a=a, b=b, o=o: loop.ufunc(a, b, out=o)


def measure(loop):
    """A row: the loop, and the smallest ratio of each size."""
    (slot,) = slots([loop])

    def switch(ours):
        slot.take(True, 1) if ours else slot.replaced and slot.give_back()

    ratios = {}
    try:
        for i, (size, call) in enumerate((product_calls if loop.product else element_calls)(loop)):
            key = f"{i}: {size}" if loop.product else size
            ratios[key] = round(min(ratios.get(key, math.inf), ratio(call, switch)), 3)
    finally:
        switch(False)
    return {"ufunc": loop.ufunc.__name__, "dtype": loop.dtypes[0], "types": loop.types, "ratios": ratios,
            "failure": slot.failure}  # fmt: skip


def chosen(row):
    """(elements from which on it gains, the gain), or None."""
    found = list(row["ratios"].items())
    if row["failure"] or row["dtype"] in UNLIKE.get(row["ufunc"], ()):
        return None
    if row["ufunc"] in ("matmul", "vecdot", "matvec", "vecmat"):
        gain = math.exp(sum(map(math.log, (r for _, r in found))) / len(found))
        if row["dtype"].startswith(("float32", "float64", "complex", "bool")):
            return None  # BLAS is as fast, and NumPy's loop of truths stops at the first
        return (1, gain) if sorted(r for _, r in found)[1] >= 0.94 else None  # one may be noise: the model declines it
    for i, (size, _) in enumerate(found):
        rest = [r for _, r in found[i:]]
        gain = math.exp(sum(map(math.log, rest)) / len(rest))
        if min(rest) >= SLOWEST and gain >= 1.05 and len(rest) > 1:
            return int(size), gain
    return None


def table(rows):
    """The choice, by ufunc and dtype."""
    found = {}
    for row in rows:
        if best := chosen(row):
            found.setdefault(row["ufunc"], {}).setdefault(row["dtype"], [best[0], round(best[1], 2)])
    return found


def test_matmul_of_integers(benchmark):
    a = np.ones((64, 64), np.int32)
    with use_in_numpy():
        benchmark(np.matmul, a, a)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", default="bench/results/numpy_loops-avx2.json")
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--only", nargs="+", default=["*"])
    args = parser.parse_args()
    file = Path(args.json)
    if args.table and file.exists():
        rows = json.loads(file.read_text())["rows"]
    else:
        use_in_numpy(False)
        loops = [loop for loop in every() if not possible(loop)]
        rows, seen = [], set()
        for loop in loops:
            name = str(loop)
            if name in seen or not any(fnmatch.fnmatch(name, pattern) for pattern in args.only):
                continue
            seen.add(name)
            rows.append(measure(loop))
            print(name, *(f"{size}={r:.2f}" for size, r in rows[-1]["ratios"].items()), chosen(rows[-1]), flush=True)
        old = json.loads(file.read_text())["rows"] if file.exists() else []
        kept = {(row["ufunc"], row["dtype"]): row for row in (*old, *rows)}
        rows = list(kept.values())
        lines = ",\n".join(map(json.dumps, rows))
        file.write_text(f'{{"meta": {json.dumps(info.meta())},\n"rows": [\n{lines}\n]}}\n')
    if args.table:
        kept = json.loads(TABLE.read_text()) | {str(width_bits()): table(rows)}
        rows = (f' "{width}": {{\n' + ",\n".join(f'  "{name}": {json.dumps(found)}' for name, found in each.items())
                + "\n }" for width, each in kept.items())  # fmt: skip
        TABLE.write_text("{\n" + ",\n".join(rows) + "\n}\n")


if __name__ == "__main__":
    at_best()
    sys.exit(main())
