"""Operations of one operand, and matrices times their own transposes, against NumPy: interleaved medians, one thread.

python bench/bench_alone.py                                                # the tables
python bench/bench_alone.py unary --json bench/results/unary-avx2.json     # and the rows, as report.py reads them
python bench/bench_alone.py mirror --json bench/results/mirror-avx2.json
"""

import argparse
import sys
from pathlib import Path

import numpy as np
from tqdm import tqdm

import nbkernels
from nbkernels.benches.measure import row
from nbkernels.benches.peers import at_best
from nbkernels.benches.rows import table
from nbkernels.benches.suites import Case
from nbkernels.dtypes import ALONE, PARTS, ufunc

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "bench")]

from results_file import keep

SIZES, DTYPES = (1000, 10_000), ("float32", "float64")
SHAPES = ((192, 192), (256, 256), (400, 400), (512, 512), (768, 768), (1024, 1024), (1024, 64), (300, 3000))
INTEGERS = ("bitwise_invert",)


def unary():
    """Of numbers between 1 and 2, where every operation but arcs and atanh has a result; of those between 0 and 1."""
    for op in sorted(ALONE.difference(INTEGERS, PARTS)):
        for dtype in DTYPES:
            for n in SIZES:
                yield Case(op, (n,), dtype, lambda op=op, dtype=dtype, n=n: _unary(op, dtype, n), peak="")


def _unary(op, dtype, n):
    x = np.random.default_rng(0).uniform(0, 1, n).astype(dtype) + (op not in ("asin", "acos", "atanh"))
    ours, theirs = getattr(nbkernels, op), ufunc(op)
    out = np.empty_like(theirs(x))
    return {"nbkernels": lambda: ours(x, out=out), "NumPy": lambda: theirs(x, out=out)}


def mirror():
    """x @ x.T, of which BLAS' syrk and ours compute half."""
    for n, k in SHAPES:
        for dtype in DTYPES:
            yield Case("mirror", (n, n, k), dtype, lambda n=n, k=k, dtype=dtype: _mirror(n, k, dtype), "NT", "matmul",
                       n * (n + 1) * k)  # fmt: skip


def _mirror(n, k, dtype):
    x, out = np.random.default_rng(0).standard_normal((n, k)).astype(dtype), np.empty((n, n), dtype)
    other = x.copy()
    return {
        "nbkernels": lambda: nbkernels.matmul(x, x.T, out=out),
        "NumPy": lambda: np.matmul(x, x.T, out=out),
        "whole": lambda: nbkernels.matmul(x, other.T, out=out),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", nargs="?", choices=["unary", "mirror"], help="one of the tables (both)")
    parser.add_argument("--seconds", type=float, default=0.3, help="time of a row (%(default)s)")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    cases = [
        case for what, make in (("unary", unary), ("mirror", mirror)) if args.what in (None, what) for case in make()
    ]
    rows = [row(case, 1, seconds=args.seconds) for case in tqdm(cases)]
    print(table(rows))
    if args.json:
        keep(args.json, rows)


if __name__ == "__main__":
    at_best()
    main()
