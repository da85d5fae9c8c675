"""Public operations of every dtype at small sizes against NumPy: which of them take more than twice its time.

    python bench/bench_small.py                                   # those below half of NumPy's speed, and how many are
    python bench/bench_small.py --below 1 --dtypes int32 uint8

Judges of float32 and float64 do not see the ways that other dtypes, rows, columns and stacks of a few elements take.
"""

import argparse
import sys
from functools import partial
from pathlib import Path

import numpy as np
from tabulate import tabulate
from tqdm import tqdm

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import nbkernels
from nbkernels import tune
from nbkernels.benches.peers import at_best

DTYPES = "int32", "int64", "uint8", "float16", "complex64", "float32", "float64"
PRODUCTS = (1, 1, 10), (1, 1, 1000), (3, 3, 3), (1, 64, 64), (64, 1, 64), (2, 2, 2000), (200, 2, 3), (100, 100, 1)
MATRICES = (3, 3), (50, 50), (1000, 4), (4, 1000)
STACKS = (100, 3, 3, 3), (100, 1, 8, 8), (10, 30, 30, 30)
ARRAYS = (3, 3), (100, 100), (1000, 3), (3, 1000), (100, 100, 3)


def added(x, a, b):
    """What baddbmm is in NumPy."""
    return x + a @ b


def cases(dtype):
    """(what it is, ours, NumPy's function, their arguments) of a dtype."""
    rng = np.random.default_rng(0)

    def made(*shape):
        return rng.integers(0, 5, shape).astype(dtype)

    for m, n, k in PRODUCTS:
        yield "mm", nbkernels.mm, np.matmul, (made(m, k), made(k, n))
    for k in (3, 100, 10_000):
        yield "dot", nbkernels.dot, np.dot, (made(k), made(k))
    for rows, columns in MATRICES:
        yield "mv", nbkernels.mv, np.matmul, (made(rows, columns), made(columns))
        yield "mv, turned", nbkernels.mv, np.matmul, (made(columns, rows).T, made(columns))
    for count, m, n, k in STACKS:
        a, b = made(count, m, k), made(count, k, n)
        yield "bmm", nbkernels.bmm, np.matmul, (a, b)
        yield "baddbmm", nbkernels.baddbmm, added, (made(count, m, n), a, b)
    yield "outer", nbkernels.outer, np.outer, (made(200), made(300))
    for shape in ARRAYS:
        a = made(*shape)
        for name in ("add", "multiply"):
            functions = getattr(nbkernels, name), getattr(np, name)
            yield name, *functions, (a, a)
            yield f"{name}, a column", *functions, (a, a[..., :1])
            yield f"{name}, every second", *functions, (a[::2], a[::2])
        for name in ("add",) if dtype == "complex64" else ("add", "maximum"):
            for axis in (None, 0, -1):
                functions = getattr(nbkernels, name).reduce, getattr(np, name).reduce
                yield f"{name}.reduce, axis {axis}", *functions, (a, axis)
        yield "add.accumulate", nbkernels.add.accumulate, np.add.accumulate, (a,)


def measure(dtypes):
    """[(speed over NumPy's, what it is, shapes, dtype, microseconds, NumPy's), ...], the worst first."""
    rows = []
    for dtype in tqdm(dtypes, unit="dtype"):
        for name, ours, numpy, arguments in cases(dtype):
            calls = {"ours": partial(ours, *arguments), "NumPy": partial(numpy, *arguments)}
            for _ in range(3):  # what is compiled is compiled now
                calls["ours"]()
            mine, its = (1e6 * seconds for seconds in tune.medians(calls, seconds=0.01, rounds=7).values())
            shapes = " ".join("x".join(map(str, x.shape)) for x in arguments if isinstance(x, np.ndarray))
            rows.append((its / mine, name, shapes, dtype, mine, its))
    return sorted(rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dtypes", nargs="+", choices=DTYPES, default=DTYPES)
    parser.add_argument("--below", type=float, default=0.5, help="print those below this speed (%(default)s)")
    args = parser.parse_args()
    rows = measure(args.dtypes)
    slow = [row for row in rows if row[0] < args.below]
    print(tabulate(slow, headers=["of NumPy's speed", "call", "of", "dtype", "us", "NumPy, us"], floatfmt=".2f"))
    print(f"{len(slow)} of {len(rows)} calls below {args.below} of NumPy's speed")


def test_results_are_numpys():
    for name, ours, numpy, arguments in cases("int32"):
        expected = numpy(*arguments)
        np.testing.assert_array_equal(ours(*arguments), expected.astype("i4", copy=False), err_msg=name)


if __name__ == "__main__":
    at_best()
    main()
