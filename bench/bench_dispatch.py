"""What the dispatcher costs: a call less its bare compiled entry, against an empty njit function of the same arguments.

    python bench/bench_dispatch.py                          # the table
    pytest bench/bench_dispatch.py --benchmark-enable       # the same through pytest-benchmark

The share should be at most 1.5, with out= (without it NumPy's allocation is in the time). Every call is of 4x4 float32.
"""

import numpy as np
import pytest
from numba import njit
from tabulate import tabulate

import nbkernels
from nbkernels import tune
from nbkernels.benches.peers import at_best
from nbkernels.cpu.elementwise.entry import HEAD, small_entry
from nbkernels.cpu.gemm import fast
from nbkernels.jit.abi.new_arrays import words


@njit
def empty_mm(self, mat2, out):
    pass


@njit
def empty_addmm(self, mat1, mat2, beta, alpha, out):
    pass


def calls(op):
    """(the public call, the bare compiled entry, the empty function) of an op, each once called."""
    x, a, b, out = (np.ones((4, 4), np.float32) for _ in range(4))
    mm, addmm, add = nbkernels.mm, nbkernels.addmm, nbkernels.add
    addmm(x, a, b, out=out)
    gemm_entry, numpy, _ = fast._entries[a.dtype]
    # For add a table without rows: the entry finds no loops and returns, so add's share is too high by those few ns.
    table = np.zeros(24, np.int64)
    table[HEAD["numpy"]] = words().ctypes.data
    add_entry = small_entry()(table)
    found = {
        "mm": (lambda: mm(a, b, out=out), lambda: gemm_entry(numpy, out, None, a, b, 0, 1),
               lambda: empty_mm(a, b, out)),
        "addmm": (lambda: addmm(x, a, b, out=out), lambda: gemm_entry(numpy, out, x, a, b, 1, 1),
                  lambda: empty_addmm(x, a, b, 1, 1, out)),
        "add": (lambda: add(a, b, out=out), lambda: add_entry(a, b, out),
                lambda: empty_mm(a, b, out)),
    }  # fmt: skip
    public, bare, empty = found[op]
    for call in (public, empty):
        call()
    return public, bare, empty


def measure(op, seconds=1.0):
    """One row of the table, in ns."""
    public, bare, empty = calls(op)
    nothing = lambda: None  # noqa: E731 what the other three are wrapped in
    times = tune.medians({"call": public, "bare": bare, "empty": empty, "nothing": nothing}, seconds=seconds)
    overhead, floor = times["call"] - times["bare"], times["empty"] - times["nothing"]
    row = {"op": op} | {name: time * 1e9 for name, time in times.items()}
    return row | {"overhead": overhead * 1e9, "share": overhead / floor}


@pytest.mark.parametrize("op", ["mm", "addmm", "add"])
def test_overhead(benchmark, op):
    public, _, _ = calls(op)
    if not benchmark.disabled:
        benchmark.extra_info.update(measure(op))
    benchmark(public)


if __name__ == "__main__":
    at_best()
    print(tabulate([measure(op) for op in ("mm", "addmm", "add")], headers="keys", floatfmt=".2f"))
