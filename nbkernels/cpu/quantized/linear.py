"""y = x @ w.T + bias by quantised weights, of NumPy arrays that nbkernels/quantized/weights.py has checked."""

from __future__ import annotations

import functools

import numpy as np

from ...jit.compile.routine import routine
from ...quantized.layout import BYTES, WIDTH
from ..gemm.blocking import SEGMENT
from ..gemm.epilogue import After
from ..gemm.paths import BRIEF
from ..runtime import threads
from .kernel import COLUMNS, CONTEXT, Form
from .rows import define as bytes_of_rows

MOST = 64  # plans that are kept with weights


@functools.lru_cache(1024)
def pieces(k: int, group: int) -> int:
    """Runs of steps that end with a group or a segment.

    >>> pieces(4096, 128), pieces(9000, 6000), pieces(0, 1)
    (32, 4, 0)
    """
    return len({*range(0, k, group), *range(0, k, SEGMENT)})


@functools.cache
def kernel(dtype: str, scales: np.dtype, zeros: bool, rows: int, exact: bool):
    """The Form for up to so many rows at once, and the address of its kernel."""
    form = Form(dtype, scales.name, zeros, next((r for r in COLUMNS if r >= rows), max(COLUMNS)), exact)
    return form, routine(str(form), form.define)


def plan(w, rows: int, exact: bool):
    """What all products of so many rows with these weights share, kept with them: the address of a kernel, most tasks,
    the words of its context that do not change; and, where it is exact, what makes bytes of x, and of how many words a
    room for them, their sums and their scales is."""
    (n, k), groups = w.shape, w.factors.shape[1]
    form, address = kernel(w.dtype, w.factors.dtype, w.offsets is not None, min(rows, max(COLUMNS)), exact)
    f, quantizer, room = CONTEXT.array(), 0, 0
    f.n, f.k, f.rows, f.group, f.groups = n, k, rows, w.group, groups
    f.pieces = groups if exact else pieces(k, w.group)
    f.words, f.factors, f.offsets = w.places
    f.strips, f.bias = form.strips(n), address_of(w.none)
    if exact:
        quantizer = routine(*bytes_of_rows(w.dtype))
        f.stride = (-(-k // WIDTH) + 1) * WIDTH // BYTES  # a block is stored whole, and may begin at any STEP
        room = rows * (f.stride + groups + 1)
    if len(w.plans) >= MOST:
        w.plans.clear()
    tasks = f.strips if rows * n * k > BRIEF else 1
    found = w.plans[rows, exact] = address, tasks, f.tobytes(), quantizer, room
    return found


def address_of(array) -> int:
    return array.__array_interface__["data"][0]


def linear(w, x, bias, function, exact: bool) -> np.ndarray:
    """function(x @ w.T + bias) for a C-contiguous float32 x of some rows; a bias of n numbers or None, and function or
    None. `exact`: x is quantised first."""
    rows, (n, k) = len(x), w.shape
    out, exact = np.empty((rows, n), np.float32), exact and k > 0
    if out.size == 0:
        return out
    address, most, words, quantizer, room = w.plans.get((rows, exact)) or plan(w, rows, exact)
    f = CONTEXT.array(words)
    if exact:
        memory = np.empty(room, np.int32)
        f.source, f.x = address_of(x), address_of(memory)
        f.sums = f.x + BYTES * rows * f.stride
        f.scales = f.sums + BYTES * rows * f.groups
        f.tasks = min(threads.count(), rows) if rows * k > BRIEF else 1
        threads.launch(quantizer, f.buffer_info()[0], f.tasks)
    else:
        f.x = address_of(x)
    if bias is not None:
        f.bias = address_of(bias)
    f.out, f.tasks = address_of(out), min(threads.count(), most) if most > 1 else 1
    if function:
        f.after, state = After(function, out, (out,)).words(False)
        f.state = state.buffer_info()[0]
    threads.launch(address, f.buffer_info()[0], f.tasks)
    return out
