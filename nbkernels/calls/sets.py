"""Sets of calls: what `warmup` compiles, and `prebuild` for other machines.

THIRTY      everyday calls, which tests and benches of the first call make
everyday    these and their neighbours: the same operations in every layout, of float32 and float64, on every path
all         these, every element-wise operation and reduction of every dtype, the products of the other dtypes and
            those by quantised weights, and the loops that use_in_numpy replaces
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable

import numpy as np

from .. import dtypes
from ..cpu.elementwise import gates
from ..cpu.quantized.kernel import COLUMNS as COLUMNS_Q
from ..dtypes import DTYPES
from ..in_numpy import which
from ..operations import BINARY, UNARY
from . import record
from .call import IN_NUMPY, LINEAR_Q, Call
from .described import Weights

FLOATS = "float32", "float64"
# Squares for the usual paths of a product: the small one, of edges and of whole tiles, over threads, five loops.
PRODUCTS = 4, 32, 100, 200, 600
# Sizes m, k and n for the others: one row or column, C written by rows in one call and over threads, few deep outputs
# likewise, few columns of a tall C, few rows of a wide one.
SHAPES = ((1, 256, 256), (256, 256, 1), (256, 8, 256), (600, 8, 600), (8, 2000, 8), (32, 20_000, 32), (3000, 256, 16),
          (16, 512, 4096))  # fmt: skip
# The same for stacks: tiny matrices, rows that are an even number of vectors, and one thread a product.
STACKS = 4, 8, 16, 100
# Rows, and columns of one to three vectors, of which each has a micro-kernel; the same of the matrices of stacks.
ROWS, COLUMNS = range(1, 15), (1, 16, 32, 48)
TINY_ROWS, TINY_COLUMNS = range(1, 9), (2, 4, 6, 8, 12, 16, 24, 32)
# Stacks of products of one row, and of one column.
THIN_STACKS = (1, 600, 8), (200, 300, 1)
# Vectors for mv and dot: one thread, and several.
VECTORS = 300, 1000
# What everyday calls name of the element-wise operations; the first two take alpha.
ARITHMETIC, COMPARISONS = ([op for op, row in BINARY.items() if row.everyday and (op in dtypes.COMPARISONS) is compared]
                           for compared in (False, True))  # fmt: skip
FOLDS = [op for op in ARITHMETIC if op in dtypes.ASSOCIATIVE]


def array(*shape, dtype="float32"):
    """Of which nothing but its description is kept: memory that is never touched."""
    return np.empty(shape, dtype)


def _thirty():
    f, d = array, functools.partial(array, dtype="float64")
    x, large = f(4, 4), f(1000, 1000)
    yield Call.of("add", x, x)
    yield Call.of("add", x, x[0])
    yield Call.of("multiply", x, 2.0)
    yield Call.of("subtract", x, x.T)
    yield Call.of("add", large, f(1000, 1000))
    yield Call.of("divide", d(4, 4), d(4))
    yield Call.of("maximum", x, 0)
    yield Call.of("less", x, x)
    yield Call.of("multiply", large, f(1000, 1000).T)
    yield Call.of("pow", x, 2.5)
    yield Call.of("mm", x, x)
    yield Call.of("mm", f(64, 64), f(64, 64))
    yield Call.of("mm", f(512, 512), f(512, 512))
    yield Call.of("mm", d(64, 64), d(64, 64))
    yield Call.of("addmm", d(100), d(100, 100), d(100, 100))
    yield Call.of("addmm", f(512), f(512, 512), f(512, 512))
    yield Call.of("linear", f(32, 64), f(16, 64), f(16))
    yield Call.of("mv", f(64, 64), f(64))
    yield Call.of("mv", d(300, 300), d(300))
    yield Call.of("bmm", f(10, 4, 4), f(10, 4, 4))
    yield Call.of("matmul", f(3, 64, 64), f(64, 64))
    yield Call.of("matmul", d(512, 512), d(512, 512))
    for dtype in ("int32", "float16", "complex64"):
        yield Call.of("mm", f(64, 64, dtype=dtype), f(64, 64, dtype=dtype))
    yield Call.of("mm", f(64, 64, dtype="int8"), f(64, 64, dtype="int8"), out_dtype="int32")
    yield Call.of("sum_to", f(64, 64), (64,))
    yield Call.of("add.reduce", f(64, 64))
    yield Call.of("dot", f(1000), f(1000))
    yield Call.of("addmm_activation", f(16), f(32, 64), f(64, 16))


def _products(dtype):
    """Every path of a product, in every layout of its matrices."""
    a_ = functools.partial(array, dtype=dtype)
    for n in PRODUCTS:
        a, b, bias = a_(n, n), a_(n, n), a_(n)
        for mat1, mat2 in ((a, b), (a, b.T), (a.T, b), (a.T, b.T)):
            yield Call.of("addmm", bias, mat1, mat2)
            yield Call.of("mm", mat1, mat2)
        yield Call.of("linear", a, b, bias)
        yield Call.of("addmm_activation", bias, a, b)
        yield Call.of("addmm_activation", bias, a, b, activation="gelu")
    for m, k, n in SHAPES:
        yield Call.of("mm", a_(m, k), a_(k, n))
        yield Call.of("mm", a_(m, k), a_(n, k).T)
    for n in STACKS:
        yield Call.of("bmm", a_(2, n, n), a_(2, n, n))
        yield Call.of("matmul", a_(2, n, n), a_(n, n))
    for m, k, n in THIN_STACKS:
        yield Call.of("bmm", a_(2, m, k), a_(2, k, n))
    for m, n in itertools.product(TINY_ROWS, TINY_COLUMNS):
        yield Call.of("bmm", a_(2, m, 8), a_(2, 8, n))
    yield from _edges(dtype)


def _edges(dtype):
    """Products that need every micro-kernel."""
    for m, n in itertools.product(ROWS, COLUMNS):
        yield Call.of("mm", array(m, 8, dtype=dtype), array(8, n, dtype=dtype))


def _vectors(dtype):
    a_ = functools.partial(array, dtype=dtype)
    for n in VECTORS:
        a = a_(n, n)
        yield Call.of("mv", a, a_(n))
        yield Call.of("mv", a.T, a_(n))
        yield Call.of("dot", a_(n * n), a_(n * n))
    yield Call.of("outer", a_(300), a_(300))


def _elementwise(name, dtype, many=True):
    """One operation in every layout; where not `many`, as it is written most: arrays, rows, numbers, columns."""
    a_ = functools.partial(array, dtype=dtype)
    square, row = a_(64, 64), a_(64)
    number = {"b": True, "i": 2, "u": 2, "c": 2j}.get(np.dtype(dtype).kind, 2.0)
    pairs = [(square, a_(64, 64)), (square, row), (square, number)]
    if many:
        # Threads share both; the stores of the larger one stream.
        shared, large = (size // np.dtype(dtype).itemsize for size in (2 * gates.SHARED, gates.STREAMED))
        pairs += [(square, a_(64, 64).T), (square[::2, ::2], number), (number, row), (square, row[:, None]),
                  (a_(shared), a_(shared)), (a_(large), a_(large)), (a_(1000, 1000), a_(1000, 1000).T)]  # fmt: skip
        # Few rows, and rows of less than a cache line, beside columns.
        pairs += [(a_(n, 300), a_(300, n).T) for n in (2, 3, 4)] + [(a_(11, 59), a_(59, 11).T), (a_(11, 5), a_(11, 1))]
    for pair in pairs:
        yield Call.of(name, *pair)
        if many and BINARY[name].scaled:
            yield Call.of(name, *pair, alpha=0.5)
    if many:
        yield Call.of(name + "_", square, a_(64, 64))


def _folds(name, dtype):
    square = array(64, 64, dtype=dtype)
    for axis in (0, 1, None):
        yield Call.of(f"{name}.reduce", square, axis=axis)


def _sums(dtype):
    square, large = array(64, 64, dtype=dtype), array(gates.STREAMED // np.dtype(dtype).itemsize, dtype=dtype)
    wide = array(1000, 1000, dtype=dtype)
    for x, shape in ((square, ()), (square, (64,)), (square, (64, 1)), (wide, (1000,)), (wide, (1000, 1)), (large, ())):
        yield Call.of("sum_to", x, shape)


def _everyday():
    yield from _thirty()
    for dtype in FLOATS:
        yield from _products(dtype)
        yield from _vectors(dtype)
        for name in ARITHMETIC:
            yield from _elementwise(name, dtype)
        for name in COMPARISONS:
            yield from _elementwise(name, dtype, many=False)
        yield from _sums(dtype)
        for name in FOLDS:
            yield from _folds(name, dtype)


def _all():
    yield from _everyday()
    others = [dtype for dtype in DTYPES if dtype not in (*FLOATS, "bool") and _there(dtype)]
    for dtype in others:
        a_ = functools.partial(array, dtype=dtype)
        for n in PRODUCTS:
            yield Call.of("mm", a_(n, n), a_(n, n))
            yield Call.of("addmm", a_(n), a_(n, n), a_(n, n).T)
        yield Call.of("bmm", a_(2, 4, 4), a_(2, 4, 4))
        yield Call.of("bmm", a_(2, 100, 100), a_(2, 100, 100))
        yield from _edges(dtype)
        yield from _vectors(dtype)
        yield Call.of("matmul", a_(300), a_(300, 300))
        yield from _sums(dtype)
    for dtype in (*FLOATS, "bool", *others):
        for name in BINARY:
            if _defined(name, dtype):
                yield from _elementwise(name, dtype, many=False)
        for name in UNARY:
            if _defined(name, dtype):
                yield Call.of(name, array(64, 64, dtype=dtype))
        for name in FOLDS:
            if _defined(name, dtype):
                yield from _folds(name, dtype)
                yield Call.of(f"{name}.accumulate", array(64, 64, dtype=dtype))
    for first, second in MIXED:
        for name in ARITHMETIC[:4]:
            yield Call.of(name, array(64, 64, dtype=first), array(64, 64, dtype=second))
    for dtype, rows, dynamic in itertools.product(("int8", "int4"), COLUMNS_Q, (False, True)):
        weights = Weights(dtype, (64, 256), 128, "float32", False)
        yield Call.of(LINEAR_Q, array(rows, 256), weights, **{"dynamic": True} if dynamic else {})
    for loop in which.faster():
        yield Call.of(IN_NUMPY, loop.ufunc.__name__, *(array(1, dtype=dtype) for dtype in loop.dtypes[:-1]))


# Dtypes that meet most: numbers of data beside those of a model, and of precisions.
MIXED = (("float32", "float64"), ("float64", "float32"), ("int64", "float64"), ("int32", "float32"),
         ("float16", "float32"), ("float32", "int64"), ("uint8", "float32"), ("int32", "int64"),
         ("float64", "complex128"))  # fmt: skip


def _defined(name, dtype):
    dtype = np.dtype(dtype)
    try:
        dtypes.resolve(name, dtype, dtype)
    except TypeError:
        return False
    return True


def _there(dtype):
    try:
        np.dtype(dtype)
    except TypeError:
        try:
            import ml_dtypes  # noqa: F401
        except ImportError:
            return False
    return True


SETS = {"everyday": _everyday, "all": _all}


def thirty() -> list[tuple[str, Callable]]:
    """The thirty everyday calls, in the order in which tests and benches make them."""
    return [(str(call), call) for call in _thirty()]


def calls(name, unfit=None) -> list[tuple[str, Callable]]:
    """(label, call) for each call of a set, or of a recorded file, once; `unfit(what)` hears of lines that hold none.

    Raises OSError where it is neither, and no file that can be read.
    """
    found = SETS[name]() if name in SETS else record.read(name, unfit or (lambda what: None))
    return [(str(call), call) for call in {call.line(): call for call in found}.values()]
