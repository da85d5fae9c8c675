"""Public operations of every dtype at small sizes against NumPy: which of them take more than twice its time.

    python bench/bench_small.py                                   # those below half of NumPy's speed, and how many are
    python bench/bench_small.py --below 1 --dtypes int32 uint8
    OMP_NUM_THREADS=1 python bench/bench_small.py --forms --below 0.33  # 8x8 of float32 in every form of a call

Judges of float32 and float64 do not see the ways that other dtypes, rows, columns and stacks of a few elements take.
"""

import argparse
import statistics
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
from nbkernels.dtypes import ALONE, ELEMENTWISE, ufunc

try:
    import torch
except ImportError:  # then there are no rows of tensors
    torch = None

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


def forms(n=8):
    """(what it is, ours, what NumPy does for it, their arguments) of n x n float32: calls in all their forms. What is
    added in place is zero."""
    rng, nb = np.random.default_rng(0), nbkernels
    x, y, z, out = (rng.uniform(1, 2, (n, n)).astype("f4") for _ in range(4))
    v, w, a, b = x[0].copy(), y[0].copy(), rng.uniform(1, 2, (4, n, n)).astype("f4"), np.ones((4, n, n), "f4")
    zero, mask, one = np.zeros_like(x), x > 1.5, np.zeros((n, n), "f4")
    for name in sorted(ELEMENTWISE):
        numpy, alone = ufunc(name) if ELEMENTWISE[name].ufunc is not None else None, name in ALONE
        if numpy is not None and any(each.startswith("f" * numpy.nin + "->") for each in numpy.types):
            given = x - 1 if name in ("acos", "asin", "atanh") else x
            yield name, getattr(nb, name), numpy, (given,) if alone else (given, y)
    relu = nb.epilogue(lambda value: max(value, 0))
    user = nb.elementwise(lambda p, q: p * q + p)
    yield "a user's function", user, lambda p, q: p * q + p, (x, y)
    yield "a user's function, out=", partial(user, out=out), lambda p, q: np.add(p * q, p, out), (x, y)
    fused = nb.fuse(lambda p, q: nb.exp(p) * q)
    yield "fuse", fused, lambda p, q: np.exp(p) * q, (x, y)
    yield "add, out=", partial(nb.add, out=out), partial(np.add, out=out), (x, y)
    yield "add_", nb.add_, lambda p, q: np.add(p, q, p), (one, zero)
    yield "add, alpha", partial(nb.add, alpha=2.0), lambda p, q: p + 2 * q, (x, y)
    yield "add, a row", nb.add, np.add, (x, v)
    yield "add, a number", nb.add, np.add, (x, 2.0)
    yield "add, where", partial(nb.add, where=mask, out=out), partial(np.add, where=mask, out=out), (x, y)
    yield "add.reduce", nb.add.reduce, np.add.reduce, (x,)
    yield "add.accumulate", nb.add.accumulate, np.add.accumulate, (x,)
    yield "add.at", nb.add.at, np.add.at, (one, np.arange(n), zero)
    yield "where", nb.where, np.where, (mask, x, y)
    yield "clip", nb.clip, np.clip, (x, 1.2, 1.8)
    yield "sum_to", nb.sum_to, lambda p, shape: p.sum(0, keepdims=True), (x, (1, n))
    yield "mean", nb.mean, np.mean, (x,)
    yield "mm", nb.mm, np.matmul, (x, y)
    yield "mm, out=", partial(nb.mm, out=out), partial(np.matmul, out=out), (x, y)
    yield "matmul", nb.matmul, np.matmul, (x, y)
    yield "matmul, a stack", nb.matmul, np.matmul, (a, b)
    yield "matmul, a stack and a matrix", nb.matmul, np.matmul, (a, y)
    yield "bmm", nb.bmm, np.matmul, (a, b)
    yield "bmm, out=", partial(nb.bmm, out=b.copy()), partial(np.matmul, out=b.copy()), (a, b)
    yield "baddbmm", nb.baddbmm, lambda c, p, q: c + p @ q, (b, a, b)
    yield "addbmm", nb.addbmm, lambda c, p, q: c + (p @ q).sum(0), (x, a, b)
    yield "addmm", nb.addmm, lambda c, p, q: c + p @ q, (v, x, y)
    yield "addmm, out=", partial(nb.addmm, out=out), lambda c, p, q: np.add(c, p @ q, out), (v, x, y)
    yield "addmm_", nb.addmm_, lambda c, p, q: np.add(c, p @ q, c), (one, x, zero)
    yield "addmm_activation", nb.addmm_activation, lambda c, p, q: np.maximum(c + p @ q, 0), (v, x, y)
    yield "a user's epilogue", relu, lambda c, p, q: np.maximum(c + p @ q, 0), (v, x, y)
    yield "linear", nb.linear, lambda p, q, c: p @ q.T + c, (x, y, v)
    yield "mv", nb.mv, np.matmul, (x, v)
    yield "addmv", nb.addmv, lambda c, p, q: c + p @ q, (w, x, v)
    yield "dot", nb.dot, np.dot, (v, w)
    yield "vdot", nb.vdot, np.vdot, (v, w)
    yield "vecdot", nb.vecdot, np.vecdot, (x, y)
    yield "outer", nb.outer, np.outer, (v, w)
    yield "addr", nb.addr, lambda c, p, q: c + np.outer(p, q), (x, v, w)
    yield "einsum", nb.einsum, np.einsum, ("ij,jk->ik", x, y)
    yield "tensordot", partial(nb.tensordot, axes=1), partial(np.tensordot, axes=1), (x, y)
    yield "vjp of mm", _vjp(nb.mm), lambda p, q: (p @ q, z @ q.T, p.T @ z), (x, y)
    yield "vjp of add", _vjp(nb.add), lambda p, q: (p + q, z.copy(), z.copy()), (x, y)
    if torch is not None:
        p, q, c, s = (torch.from_numpy(each) for each in (x, y, v, a))
        yield "add of tensors", nb.add, lambda *_: x + y, (p, q)
        yield "mm of tensors", nb.mm, lambda *_: x @ y, (p, q)
        yield "bmm of tensors", nb.bmm, lambda *_: a @ a, (s, s)
        yield "linear of tensors", nb.linear, lambda *_: x @ y.T + v, (p, q, c)
        yield "addmm_activation of tensors", nb.addmm_activation, lambda *_: np.maximum(v + x @ y, 0), (c, p, q)


def _vjp(function):
    """Compute a function's result and the gradients of its two arguments."""

    def called(x, y):
        result, pull = nbkernels.vjp(function, x, y)
        return result, pull(result)

    return called


def measure(cases, seconds=0.01):
    """[(speed over NumPy's, what it is, shapes, dtype, microseconds, NumPy's), ...], the worst first."""
    rows = []
    for name, ours, numpy, arguments in tqdm(list(cases), unit="call"):
        calls = {"ours": partial(ours, *arguments), "NumPy": partial(numpy, *arguments)}
        for _ in range(3):  # what is compiled is compiled now
            calls["ours"]()
        mine, its = (1e6 * seconds for seconds in tune.medians(calls, seconds=seconds, rounds=7).values())
        arrays = [x for x in arguments if hasattr(x, "shape")]
        shapes = " ".join("x".join(map(str, x.shape)) for x in arrays)
        rows.append((its / mine, name, shapes, str(arrays[0].dtype), mine, its))
    return sorted(rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dtypes", nargs="+", choices=DTYPES, default=DTYPES)
    parser.add_argument("--forms", action="store_true", help="8x8 of float32 in every form of a call")
    parser.add_argument("--below", type=float, default=0.5, help="print those below this speed (%(default)s)")
    args = parser.parse_args()
    small = [case for dtype in args.dtypes for case in cases(dtype)]
    rows = measure(forms(), seconds=0.1) if args.forms else measure(small)
    slow = [row for row in rows if row[0] < args.below]
    print(tabulate(slow, headers=["of NumPy's speed", "call", "of", "dtype", "us", "NumPy, us"], floatfmt=".2f"))
    mean = statistics.geometric_mean(row[0] for row in rows)
    print(f"{len(slow)} of {len(rows)} calls below {args.below} of NumPy's speed; geometric mean {mean:.2f}")


def test_results_are_numpys():
    for name, ours, numpy, arguments in cases("int32"):
        expected = numpy(*arguments)
        np.testing.assert_array_equal(ours(*arguments), expected.astype("i4", copy=False), err_msg=name)


def test_forms_are_numpys():
    for name, ours, numpy, arguments in forms():
        found, expected = ours(*arguments), numpy(*arguments)
        if not name.startswith("vjp") and expected is not None:
            np.testing.assert_allclose(found, expected, 1e-5, err_msg=name)


if __name__ == "__main__":
    at_best()
    main()
