"""Element-wise operations over sizes, dtypes and patterns of strides, ours and the peers'."""

import functools

import numpy as np

import nbkernels

from .. import dtypes
from ..cpu.elementwise.gates import COSTLY
from ..cpu.runtime import threads
from ..operations import BINARY
from . import peers


def five(x):
    """Part of an array in five dimensions, none of which joins another."""
    return x.reshape(-1)[: x.size // 512 * 512].reshape(-1, 8, 4, 4, 4)[:, 1:7, :, 1:, ::2]


# Inputs of one shape out of two square matrices; 4096 is the hardest side: every row starts in one cache set.
PATTERNS = {
    "contiguous": lambda a, b: (a, b),
    "row": lambda a, b: (a, b[0]),
    "column": lambda a, b: (a, b[:, :1]),
    "scalar": lambda a, b: (a, 1.5),
    "transposed": lambda a, b: (a, b.T),
    "every other": lambda a, b: (a.repeat(2, 1)[:, ::2], b.repeat(2, 1)[:, ::2]),
    "reversed": lambda a, b: (a[::-1, ::-1], b[::-1, ::-1]),
    "5-D": lambda a, b: (five(a), five(b)),
}  # fmt: skip
OPS = tuple(op for op, row in BINARY.items() if row.benched)
EXPRESSION = "a*b + c*d"
TEXTS = {EXPRESSION: EXPRESSION, "add": "a + b", "divide": "a / b", "less": "a < b", "atan2": "arctan2(a, b)"}
SIDES = (10, 32, 100, 316, 1000, 4096, 5477)  # 1e2 to 3e7 elements
DTYPES = ("float32", "float64")
QUICK = (
    [("add", "float32", n, "contiguous") for n in (10, 100, 316, 1000, 4096)]
    + [("add", "float32", n, pattern) for n in (1000,) for pattern in PATTERNS if pattern != "contiguous"]
    + [(op, "float32", 100, "contiguous") for op in OPS[1:]]
    + [(op, "float64", 100, "contiguous") for op in OPS if op in COSTLY]
    + [(EXPRESSION, "float32", 3162, "contiguous")]
)
ALL = [  # less than 512 elements have no part in five dimensions
    (op, dtype, n, p) for op in OPS for dtype in DTYPES for n in SIDES for p in PATTERNS if p != "5-D" or n * n >= 512
] + [(EXPRESSION, dtype, n, "contiguous") for dtype in DTYPES for n in (*SIDES, 3162)]


@functools.cache
def fused():
    return nbkernels.fuse(lambda a, b, c, d: a * b + c * d)


def calls(op, dtype, n, pattern):
    """({library: the call}, bytes that it reads and writes), of those that are here and take these strides."""
    rng = np.random.default_rng(0)
    matrices = [(rng.random((n, n)) + 0.5).astype(dtype) for _ in range(4 if op == EXPRESSION else 2)]
    inputs = matrices if op == EXPRESSION else PATTERNS[pattern](*matrices)
    arrays = [x for x in inputs if isinstance(x, np.ndarray)]
    out = np.empty(np.broadcast_shapes(*(x.shape for x in arrays)), bool if op == "less" else dtype)
    size = out.nbytes + sum(x.nbytes for x in arrays)
    if op == EXPRESSION:
        expression = fused()
        result = {"nbkernels": lambda: expression(*inputs, out=out), "NumPy": lambda: _expression(*inputs)}
    else:
        function, ufunc = getattr(nbkernels, op), dtypes.ufunc(op)
        result = {"nbkernels": lambda: function(*inputs, out=out), "NumPy": lambda: ufunc(*inputs, out=out)}
    if (text := TEXTS.get(op)) and (numexpr := peers.numexpr()):
        numexpr.set_num_threads(threads.count())
        names = dict(zip("abcd", inputs))
        result["numexpr"] = lambda: numexpr.evaluate(text, names, out=out)
    torch = peers.torch()
    if torch and op != EXPRESSION and all(min(x.strides) >= 0 for x in arrays):  # torch has no negative strides
        torch.set_num_threads(threads.count())
        tensors = [
            torch.from_numpy(x) if isinstance(x, np.ndarray) else torch.tensor(x, dtype=getattr(torch, dtype))
            for x in inputs
        ]
        into = torch.from_numpy(out)
        result["torch"] = lambda: getattr(torch, op)(*tensors, out=into)
    return result, size


def _expression(a, b, c, d):
    return a * b + c * d


def copy(size, pool):
    """A copy of size / 2 bytes, which moves `size`."""
    source, target = np.zeros(size // 2, np.uint8), np.zeros(size // 2, np.uint8)
    workers = threads.count()
    parts = [slice(size // 2 * i // workers, size // 2 * (i + 1) // workers) for i in range(workers)]
    if size < 1 << 20:
        return lambda: np.copyto(target, source)
    return lambda: list(pool.map(lambda part: np.copyto(target[part], source[part]), parts))
