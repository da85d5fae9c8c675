"""addmm and mm against NumPy and torch in one run: interleaved medians, GFLOP/s, share of the FMA peak, ratios.

    python bench/bench_addmm.py                         # the table
    python bench/bench_addmm.py --json FILE             # and the rows, as bench/report.py reads them
    pytest bench/bench_addmm.py --benchmark-enable      # the same through pytest-benchmark, with its statistics

addmm is addmm(bias (n,), a, b); its peers compute a @ b + bias, torch addmm. mm writes into out=, as its peers do. The
peak is timed in turn with the calls: fused multiply-adds between registers, which touch no memory.
"""

import argparse
import contextlib
import itertools
import sys
from pathlib import Path

import numpy as np
import pytest
from tqdm import tqdm

import nbkernels
from nbkernels import tune
from nbkernels.benches import mkl
from nbkernels.benches.peak import fma_call, workers
from nbkernels.benches.peers import at_best
from nbkernels.benches.roofs import additions, against, busy, settle
from nbkernels.benches.rows import table
from nbkernels.cpu.runtime import threads

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "bench")]

from results_file import keep

from tests.cases import LAYOUTS, SQUARES, TRANSPOSES

with contextlib.suppress(ImportError):
    import torch
torch = sys.modules.get("torch")

FORMS = ("addmm", "mm")
DTYPES = ("float32", "float64")
SIZES = (4, *SQUARES)


def calls(form, n, dtype, layout):
    """{library: the call} for n x n operands."""
    rng = np.random.default_rng(0)
    a, b = (LAYOUTS[name](rng.standard_normal((n, n)).astype(dtype)) for name in TRANSPOSES[layout])
    bias, out = rng.standard_normal(n).astype(dtype), np.empty((n, n), dtype)
    if form == "addmm":
        result = {"nbkernels": lambda: nbkernels.addmm(bias, a, b), "NumPy": lambda: a @ b + bias}
    else:
        result = {"nbkernels": lambda: nbkernels.mm(a, b, out=out), "NumPy": lambda: np.matmul(a, b, out=out)}
    if torch:
        ta, tb, tbias, tout = (torch.from_numpy(x) for x in (a, b, bias, out))
        whole = (lambda: torch.addmm(tbias, ta, tb)) if form == "addmm" else (lambda: torch.mm(ta, tb, out=tout))
        result["torch"] = whole
    if mkl.library():
        into = np.empty_like(out)
        product = mkl.gemm(into, a, b, form == "addmm")
        result["MKL"] = (lambda: (np.copyto(into, bias), product())) if form == "addmm" else product
    return result


def kernel(n, dtype) -> str:
    """The path, tiles and threads of a product."""
    a = np.empty((n, n), dtype)
    found = nbkernels.explain(nbkernels.mm, a, a.copy())
    return f"{found.path} {found.tile}, {found.threads} thread{'s' * (found.threads > 1)}"


def measure(form, n, dtype, layout, count, seconds=0.5, rounds=9):
    """One row of the table."""
    with workers(count):
        call, flops = fma_call(dtype, count)
        times = tune.samples({**calls(form, n, dtype, layout), "peak": call}, seconds=seconds, rounds=rounds)
        own = times.pop("nbkernels")
        held, ours = against(additions(dtype), 2 * n**3, own, flops, times.pop("peak")), tune.middle(own)
        return {
            "bench": form, "shape": [n, n, n], "dtype": dtype, "threads": count, "layout": layout, "ours_s": ours,
            "peers": {name: tune.middle(each) for name, each in times.items()}, "gflops": 2 * n**3 / ours / 1e9, **held,
            "kernel": kernel(n, dtype),
        }  # fmt: skip


def cases(sizes=SIZES, layouts=tuple(TRANSPOSES), counts=None, forms=FORMS):
    counts = counts or sorted({1, threads.count()})
    return [
        (form, n, dtype, layout, count)
        for form, dtype, count, n, layout in itertools.product(forms, DTYPES, counts, sizes, layouts)
        if count == 1 or n >= 256
    ]


@pytest.mark.parametrize(("form", "n", "dtype", "layout", "count"), cases(SIZES[:5]))
def test_gemm(benchmark, form, n, dtype, layout, count):
    every = calls(form, n, dtype, layout)
    np.testing.assert_allclose(every["nbkernels"](), every["NumPy"](), rtol=1e-3, atol=1e-3)
    if not benchmark.disabled:
        benchmark.extra_info.update(measure(form, n, dtype, layout, count))
    with workers(count):
        benchmark(every["nbkernels"])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path, help="put the rows there; others are kept")
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--layouts", nargs="+", choices=TRANSPOSES, default=tuple(TRANSPOSES))
    parser.add_argument("--forms", nargs="+", choices=FORMS, default=FORMS)
    parser.add_argument("--threads", type=int, nargs="+")
    parser.add_argument("--seconds", type=float, default=0.5, help="time for each row (%(default)s)")
    parser.add_argument("--rounds", type=int, default=9, help="that it is cut into, a call each at least (%(default)s)")
    args = parser.parse_args()
    todo = cases(args.sizes, args.layouts, args.threads, args.forms)
    rows = []
    for case in tqdm(todo, unit="row"):
        rows.append(measure(*case, seconds=args.seconds, rounds=args.rounds))
        settle(rows)
        if args.json:  # after each row: a run may be cut short
            keep(args.json, rows)
    print(table(rows), busy(rows) or "", sep="\n")


if __name__ == "__main__":
    at_best()
    main()
