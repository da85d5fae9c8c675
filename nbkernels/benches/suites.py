"""Suites of cases that `python -m nbkernels bench` measures, each a call of ours and the same of every peer.

A case is light until `calls()` is asked for. `quick` ones are those of --quick.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

import nbkernels

from . import dtypes, elementwise, mkl, peers, shapes

SQUARES = (64, 256, 512, 1024)
LAYOUTS = ("NN", "NT", "TN", "TT")
QUICK_PATTERNS = ("contiguous", "row", "transposed", "every other")


def floats(dtype) -> list[str]:
    """The dtypes of a suite: float32 and float64, or the one that is asked for; others are those of the suite dtypes.

    >>> floats(None), floats("float64"), floats("int8")
    (['float32', 'float64'], ['float64'], [])
    """
    return [each for each in ("float32", "float64") if dtype in (None, each)]


@dataclass(frozen=True)
class Case:
    """One row to be: `calls()` gives {library: call}, "nbkernels" among them. `peak` says what its share is of."""

    bench: str
    shape: tuple
    dtype: str
    calls: Callable
    layout: str = "contiguous"
    op: str = ""
    flops: int = 0
    bytes: int = 0
    peak: str = "fma"
    quick: bool = False
    parallel: bool = True  # measured by several threads, too
    device: str = "cpu"


def gemm(dtype=None, sizes=None):
    """mm into out= of square matrices."""
    for kind in floats(dtype):
        for n in sizes or SQUARES:
            for layout in LAYOUTS:
                quick = layout == "NN" and (kind == "float32" or n == 512)
                yield _product("gemm", (0, n, n, n, layout), kind, quick or bool(sizes), n >= 256)


def _product(bench, shape, dtype, quick, parallel=True):
    batch, m, n, k, layout = shape
    size, count = np.dtype(dtype).itemsize, max(1, batch)
    return Case(bench, (*([batch] if batch else []), m, n, k), dtype, functools.partial(shapes.calls, shape, dtype),
                layout, "matmul", 2 * m * n * k * count, size * count * (m * k + k * n + m * n), quick=quick,
                parallel=parallel)  # fmt: skip


def every_shape(dtype=None, sizes=None):
    """matmul of every class of shapes: tiny, primes, few rows, columns or steps, vectors, deep, batched."""
    for kind in floats(dtype):
        for name, members in shapes.SHAPES.items():
            for i, shape in enumerate(members):
                quick = kind == (dtype or "float32") and i == len(members) // 2
                yield _product(name, shape, kind, quick, np.prod(shape[1:4]) * max(1, shape[0]) > 1 << 20)


def every_dtype(dtype=None, sizes=None):
    """mm of n x n matrices of every dtype."""
    for name in dtypes.names():
        left = dtypes.CASES[name][0][0]
        if dtype in (None, left):
            for n in sizes or dtypes.SIZES:
                work = (8 if left.startswith("complex") else 2) * n**3
                yield Case("dtypes", (n, n, n), name, functools.partial(dtypes.calls, name, n), "NN", "mm", work,
                           peak=name, quick=n == 256 or bool(sizes), parallel=False)  # fmt: skip


def loops(dtype=None, sizes=None):
    """Element-wise operations over dtypes, sizes and patterns of strides."""
    sides = [max(1, int(size**0.5)) for size in sizes or ()]
    for op, kind, n, pattern in elementwise.ALL:
        if dtype in (None, kind) and (not sides or n in sides):
            size = n * n
            width = np.dtype(kind).itemsize
            moved = size * width * (5 if op == elementwise.EXPRESSION else 3)
            quick = (op, kind, n, pattern) in elementwise.QUICK and kind == "float32" and pattern in QUICK_PATTERNS
            yield Case("elementwise", (size,), kind, lambda c=(op, kind, n, pattern): elementwise.calls(*c)[0], pattern,
                       op, size, moved, "copy", quick, n >= 300)  # fmt: skip


def folds(dtype=None, sizes=None):
    """Sums and maxima over all, rows and columns."""
    for kind in floats(dtype):
        for n in sizes or (100, 1000, 4000):
            for op in ("add", "maximum"):
                for axis in (None, 0, 1):
                    quick, moved = n == 1000 and kind == "float32", n * n * np.dtype(kind).itemsize
                    calls = functools.partial(_fold, op, kind, n, axis)
                    yield Case("reduce", (n, n), kind, calls, f"axis {axis}", op, n * n, moved, "copy", quick)


def _fold(op, dtype, n, axis):
    x = np.random.default_rng(0).standard_normal((n, n)).astype(dtype)
    ours, theirs = getattr(nbkernels, op), getattr(np, op)
    found = {"nbkernels": lambda: ours.reduce(x, axis), "NumPy": lambda: theirs.reduce(x, axis)}
    if torch := peers.torch():
        tensor = torch.from_numpy(x)
        function, where = (torch.sum if op == "add" else torch.amax), () if axis is None else (axis,)
        found["torch"] = lambda: function(tensor, *where)
    return found


def batch(dtype=None, sizes=None):
    """Stacks of matrices."""
    for kind in floats(dtype):
        for i, shape in enumerate(shapes.SHAPES["batched"]):
            yield _product("batch", shape, kind, kind == (dtype or "float32") and i in (1, 3, 9, 11))


def overhead(dtype=None, sizes=None):
    """Calls so small that the way to the kernel is all."""
    for kind in floats(dtype):
        for op in ("mm", "addmm", "add", "add, out", "sum", "bmm"):
            yield Case("overhead", (4, 4), kind, functools.partial(_small, op, kind), op=op, peak="", parallel=False,
                       quick=kind == (dtype or "float32"))  # fmt: skip


def _small(op, dtype):
    rng = np.random.default_rng(0)
    a, b, c = (rng.standard_normal((4, 4)).astype(dtype) for _ in range(3))
    stack = rng.standard_normal((3, 4, 4)).astype(dtype)
    found = {
        "mm": (lambda: nbkernels.mm(a, b), lambda: a @ b),
        "addmm": (lambda: nbkernels.addmm(c, a, b), lambda: a @ b + c),
        "add": (lambda: nbkernels.add(a, b), lambda: a + b),
        "add, out": (lambda: nbkernels.add(a, b, out=c), lambda: np.add(a, b, out=c)),
        "sum": (lambda: nbkernels.add.reduce(a), lambda: np.add.reduce(a)),
        "bmm": (lambda: nbkernels.bmm(stack, stack), lambda: stack @ stack),
    }[op]
    calls = {"nbkernels": found[0], "NumPy": found[1]}
    if torch := peers.torch():
        ta, tb, tc, tstack = map(torch.from_numpy, (a, b, c, stack))
        calls["torch"] = {
            "mm": lambda: torch.mm(ta, tb), "addmm": lambda: torch.addmm(tc, ta, tb), "add": lambda: torch.add(ta, tb),
            "add, out": lambda: torch.add(ta, tb, out=tc), "sum": lambda: torch.sum(ta, 0),
            "bmm": lambda: torch.bmm(tstack, tstack),
        }[op]  # fmt: skip
    return calls


def tiles(dtype=None, sizes=None):
    """One product cut by other depths than the default's, which is the peer."""
    from ..tuning.cpu import Cpu

    for kind in floats(dtype or "float32"):
        side = Cpu(kind)
        for n in sizes or (1024,):
            for kc in (128, 256, 512, 1024, 2048):
                cut = side.complete({"kc": kc})
                calls = functools.partial(_cut, kind, n, cut, side.default)
                yield Case("tiles", (n, n, n), kind, calls, "NN", str(cut), 2 * n**3, quick=True)


def _cut(dtype, n, cut, default):
    from ..tuning.matrices import matrices

    a, b, out = matrices(n, n, n, "NN", dtype)
    return {
        "nbkernels": lambda: nbkernels.mm(a, b, out=out, tiles=cut),
        "default": lambda: nbkernels.mm(a, b, out=out, tiles=default),
    }


def cuda(dtype=None, sizes=None):
    """mm and add on the GPU."""
    for kind in floats(dtype):
        for n in sizes or (512, 1024, 2048, 4096):
            size = np.dtype(kind).itemsize
            for op, work, moved in (("mm", 2 * n**3, 3 * n * n * size), ("add", n * n, 3 * n * n * size)):
                yield Case("cuda", (n, n, n) if op == "mm" else (n, n), kind, functools.partial(_on_gpu, op, kind, n),
                           "NN" if op == "mm" else "contiguous", op, work, moved, "", n == 1024 and kind == "float32",
                           device="cuda")  # fmt: skip


def _on_gpu(op, dtype, n):
    from numba import cuda as gpu

    rng = np.random.default_rng(0)
    a, b, out = (gpu.to_device(rng.standard_normal((n, n)).astype(dtype)) for _ in range(3))
    calls = {"nbkernels": lambda: getattr(nbkernels, op)(a, b, out=out)}
    torch, cupy = peers.torch(), peers.cupy()
    if torch and torch.cuda.is_available():
        ta, tb, tout = (torch.as_tensor(x, device="cuda") for x in (a, b, out))
        calls["torch"] = lambda: getattr(torch, op)(ta, tb, out=tout)
    if cupy:
        ca, cb, cout = map(cupy.asarray, (a, b, out))
        function = cupy.matmul if op == "mm" else cupy.add
        calls["CuPy"] = lambda: function(ca, cb, out=cout)
    return calls


def addmm(dtype=None, sizes=None):
    """addmm of a row of biases and square matrices."""
    for kind in floats(dtype or "float32"):
        for n in sizes or (4, 64, 256, 1024):
            yield Case("addmm", (n, n, n), kind, functools.partial(_addmm, kind, n), "NN", "addmm", 2 * n**3,
                       quick=True, parallel=n >= 256)  # fmt: skip


def _addmm(dtype, n):
    rng = np.random.default_rng(0)
    bias, a, b = (rng.standard_normal(shape).astype(dtype) for shape in (n, (n, n), (n, n)))
    calls = {"nbkernels": lambda: nbkernels.addmm(bias, a, b), "NumPy": lambda: a @ b + bias}
    if torch := peers.torch():
        tensors = [torch.from_numpy(x) for x in (bias, a, b)]
        calls["torch"] = lambda: torch.addmm(*tensors)
    if mkl.library():
        out = np.empty_like(a)
        product = mkl.gemm(out, a, b, True)
        calls["MKL"] = lambda: (np.copyto(out, bias), product())
    return calls


def add(dtype=None, sizes=None):
    """add of two vectors."""
    for kind in floats(dtype or "float32"):
        for n in sizes or (16, 10_000, 1_000_000, 16_000_000):
            yield Case("add", (n,), kind, functools.partial(_add, kind, n), op="add", flops=n, peak="copy",
                       bytes=3 * n * np.dtype(kind).itemsize, quick=True, parallel=n >= 1 << 17)  # fmt: skip


def _add(dtype, n):
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(n).astype(dtype) for _ in range(2))
    calls = {"nbkernels": lambda: nbkernels.add(a, b), "NumPy": lambda: a + b}
    if torch := peers.torch():
        tensors = [torch.from_numpy(x) for x in (a, b)]
        calls["torch"] = lambda: torch.add(*tensors)
    return calls


SUITES = {"gemm": gemm, "shapes": every_shape, "dtypes": every_dtype, "elementwise": loops, "reduce": folds,
          "batch": batch, "overhead": overhead, "tiles": tiles, "cuda": cuda, "addmm": addmm, "add": add}  # fmt: skip
EVERYDAY = ("gemm", "shapes", "elementwise", "reduce", "batch", "overhead")  # where nothing is named
