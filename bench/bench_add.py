"""add against NumPy and torch, in one run: interleaved medians, GB/s, share of a copy's bandwidth, ratios.

    python bench/bench_add.py                          # the table
    pytest bench/bench_add.py --benchmark-enable       # the same through pytest-benchmark, with its statistics

Bytes are those of both inputs and of the output, each counted once. The copy is glibc's, of as many bytes, by as many
threads as the library uses: what memory gives to a program that only moves data (its stores are streaming ones, too).
"""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from tabulate import tabulate

import nbkernels
from nbkernels import tune
from nbkernels.cpu import threads

# The same bytes of output in every pattern of one size; 4096 is the hardest number: every row starts in one cache set.
PATTERNS = {
    "contiguous": lambda a, b: (a, b),
    "row": lambda a, b: (a, b[0]),
    "column": lambda a, b: (a, b[:, :1]),
    "transposed": lambda a, b: (a, b.T),
    "every other": lambda a, b: (a.repeat(2, 1)[:, ::2], b.repeat(2, 1)[:, ::2]),
    "reversed": lambda a, b: (a[::-1, ::-1], b[::-1, ::-1]),
}
SMALL = {
    "4x4": ((4, 4), (4, 4)),
    "(4,4)+(4,)": ((4, 4), (4,)),
    "1e4": ((10_000,), (10_000,)),
    "1e6": ((1_000_000,),) * 2,
}
CASES = [(name, form) for name in SMALL for form in ("functional", "out=")]
CASES += [(f"{n}x{n} {pattern}", "out=") for n in (1000, 4096) for pattern in PATTERNS]


def operands(name, form):
    """The two inputs of a case and its out, or None."""
    rng = np.random.default_rng(0)
    if name in SMALL:
        a, b = (rng.standard_normal(shape).astype(np.float32) for shape in SMALL[name])
    else:
        size, _, pattern = name.partition(" ")
        n = int(size.partition("x")[0])
        a, b = PATTERNS[pattern](*(rng.standard_normal((n, n), dtype=np.float32) for _ in range(2)))
    return a, b, np.empty(np.broadcast_shapes(a.shape, b.shape), np.float32) if form == "out=" else None


def calls(a, b, out):
    """{library: the call}, of those that are here and take these strides."""
    options = {} if out is None else {"out": out}
    result = {"nbkernels": lambda: nbkernels.add(a, b, **options), "NumPy": lambda: np.add(a, b, **options)}
    try:
        import torch
    except ImportError:
        return result
    if min(*a.strides, *b.strides) >= 0:  # torch has no negative strides
        torch.set_num_threads(threads.count())
        x, y = torch.from_numpy(a), torch.from_numpy(b)
        into = {} if out is None else {"out": torch.from_numpy(out)}
        result["torch"] = lambda: torch.add(x, y, **into)
    return result


def copy(size, pool):
    """A copy of size / 2 bytes, which moves `size`."""
    source, target = np.zeros(size // 2, np.uint8), np.zeros(size // 2, np.uint8)
    workers = threads.count()
    parts = [slice(size // 2 * i // workers, size // 2 * (i + 1) // workers) for i in range(workers)]
    if size < 1 << 20:
        return lambda: np.copyto(target, source)
    return lambda: list(pool.map(lambda part: np.copyto(target[part], source[part]), parts))


def measure(name, form, seconds=0.5):
    """One row of the table."""
    a, b, out = operands(name, form)
    size = a.nbytes + b.nbytes + 4 * np.broadcast(a, b).size
    with ThreadPoolExecutor(threads.count()) as pool:
        times = tune.medians({**calls(a, b, out), "copy": copy(size, pool)}, seconds=seconds)
    ours = times["nbkernels"]
    row = {"case": name, "form": form, "threads": threads.count(), "us": ours * 1e6, "GB/s": size / ours / 1e9}
    row["of a copy"] = f"{times['copy'] / ours:.0%}"
    return row | {f"vs {peer}": times[peer] / ours for peer in ("NumPy", "torch") if peer in times}


@pytest.mark.parametrize(("name", "form"), CASES)
def test_add(benchmark, name, form):
    a, b, out = operands(name, form)
    call = calls(a, b, out)["nbkernels"]
    np.testing.assert_array_equal(call(), np.add(a, b))
    if not benchmark.disabled:
        benchmark.extra_info.update(measure(name, form))
    benchmark(call)


if __name__ == "__main__":
    rows = [measure(name, form) for name, form in CASES]
    print(tabulate(rows, headers="keys", floatfmt=("", "", "", ".2f", ".1f", "", ".2f", ".2f")))
