"""y = x @ w.T + bias by quantised weights, of NumPy's arrays that were checked; nbkernels/quantized.py gives them."""

from __future__ import annotations

import numpy as np

from ...jit.routine import routine
from ..gemm.blocking import SEGMENT
from ..gemm.epilogue import After
from ..runtime import threads
from .kernel import COLUMNS, CONTEXT, Form
from .layout import quantized_rows

SHARED = 1 << 18  # multiply-adds from which on threads share them: of a core 10 us


def pieces(k: int, group: int) -> int:
    """Runs of steps that end with a group or a segment.

    >>> pieces(4096, 128), pieces(9000, 6000), pieces(0, 1)
    (32, 4, 0)
    """
    return len({*range(0, k, group), *range(0, k, SEGMENT)})


def linear(w, x, bias, function, exact: bool) -> np.ndarray:
    """function(x @ w.T + bias) for a C-contiguous float32 x of some rows; a bias of n numbers, and function or None.
    `exact`: x is quantised first."""
    (n, k), rows = w.shape, len(x)
    out = np.empty((rows, n), np.float32)
    if out.size == 0:
        return out
    at_once = next((r for r in COLUMNS if r >= rows), max(COLUMNS))
    form = Form(w.dtype, w.factors.dtype.name, w.offsets is not None, at_once, exact and k > 0)
    f, groups = CONTEXT.array(), w.factors.shape[1]
    f.n, f.k, f.rows, f.group, f.groups = n, k, rows, w.group, groups
    f.pieces = groups if form.exact else pieces(k, w.group)
    if form.exact:
        x, sums, scales = quantized_rows(x, w.group, w.dtype)
        f.sums, f.scales = sums.ctypes.data, scales.ctypes.data
    f.words, f.factors, f.bias, f.x, f.out = (each.ctypes.data for each in (w.words, w.factors, bias, x, out))
    f.offsets = w.offsets.ctypes.data if form.zeros else 0
    f.strips = form.strips(n)
    f.tasks = min(threads.count() if rows * n * k > SHARED else 1, f.strips)
    if function:
        f.after, state = After(function, out, (out,)).words(False)
        f.state = state.buffer_info()[0]
    threads.launch(routine(str(form), form.define), f.buffer_info()[0], f.tasks)
    return out
