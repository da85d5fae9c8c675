"""Compile the usual CPU kernels into the cache: `python -m nbkernels warmup`."""

import functools
import time

import numpy as np
from tqdm import tqdm

import nbkernels
from nbkernels.cpu import nest, quick

DTYPES = "float32", "float64"
# Squares for the usual paths of a product: one call from Python, the small path, the same over threads, five loops.
PRODUCTS = 4, 100, 200, 600
# Sizes m, k and n for the others: one row or column, C written by rows in one call and over threads, few deep outputs
# likewise, few columns of a tall C.
SHAPES = (1, 256, 256), (256, 256, 1), (256, 8, 256), (600, 8, 600), (8, 2000, 8), (32, 20_000, 32), (3000, 256, 16)
# The same for stacks of matrices: tiny ones, and one thread a product.
STACKS = 4, 100
# Vectors for mv and dot: one thread, and several.
VECTORS = 300, 1000


def calls(dtype):
    """(what, call) for one dtype, through the public operations."""
    for n in PRODUCTS:
        a, bias = np.ones((n, n), dtype), np.ones(n, dtype)
        for layout, mat1, mat2 in (("NN", a, a), ("NT", a, a.T), ("TN", a.T, a), ("TT", a.T, a.T)):
            yield f"addmm {n} {layout} {dtype}", functools.partial(nbkernels.addmm, bias, mat1, mat2)
            yield f"mm {n} {layout} {dtype}", functools.partial(nbkernels.mm, mat1, mat2)
    for m, k, n in SHAPES:
        a, b = np.ones((m, k), dtype), np.ones((n, k), dtype)
        yield f"mm {m}x{k}x{n} NN {dtype}", functools.partial(nbkernels.mm, a, np.ascontiguousarray(b.T))
        yield f"mm {m}x{k}x{n} NT {dtype}", functools.partial(nbkernels.mm, a, b.T)
    for n in VECTORS:
        a, long = np.ones((n, n), dtype), np.ones(n * n, dtype)
        yield f"mv {n} {dtype}", functools.partial(nbkernels.mv, a, a[0])
        yield f"mv {n} T {dtype}", functools.partial(nbkernels.mv, a.T, a[0])
        yield f"dot {n * n} {dtype}", functools.partial(nbkernels.dot, long, long)
    for n in STACKS:
        stack = np.ones((2, n, n), dtype)
        yield f"bmm {n} {dtype}", functools.partial(nbkernels.bmm, stack, stack)
    square, row = np.ones((64, 64), dtype), np.ones(64, dtype)
    # Threads share both; the stores of the larger one stream.
    shared, large = (np.ones(size // np.dtype(dtype).itemsize, dtype) for size in (2 * quick.SHARED, nest.STREAMED))
    operands = ((square, square), (square, row), (square, square.T), (square[::2, ::2], 2), (2, row),
                (shared, shared), (large, large))  # fmt: skip
    for name in ("add", "subtract", "multiply", "divide", "maximum", "minimum"):
        for scale in ({}, {"alpha": 0.5}) if name in ("add", "subtract") else ({},):
            op = functools.partial(getattr(nbkernels, name), **scale)
            yield from ((f"{name} {dtype}", functools.partial(op, *pair)) for pair in operands)
    for x, shape in ((square, ()), (square, (64,)), (square, (64, 1)), (large, ())):
        yield f"sum_to {dtype}", functools.partial(nbkernels.sum_to, x, shape)


def run(dtypes=DTYPES, progress=True):
    """Run every call once, with a progress bar; prints the time and where the compiled code is."""
    from nbkernels.jit import files

    start = time.perf_counter()
    work = [pair for dtype in dtypes for pair in calls(dtype)]
    with tqdm(work, "warmup", disable=not progress) as bar:
        for what, call in bar:
            bar.set_postfix_str(what, refresh=False)
            call()
    kept = files.directory() or "not kept, no writable directory"
    print(f"{len(work)} calls in {time.perf_counter() - start:.1f} s; compiled code: {kept}")
