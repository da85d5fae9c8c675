"""Bodies of the ops that are written over other ops, each under its op's name: they run wherever their parts run.

Those of structured ops are in the out form, as kernels are: their arguments have passed every check.
"""

from contextlib import nullcontext
from functools import cache, partial
from importlib import import_module
from math import prod

import numpy as np

from . import ops
from .dispatch import layout, views
from .dtypes import HALVES, widens
from .epilogues import ENDINGS, WHOLE
from .strides import broadcast_strides

ROOMS = "nbkernels.cpu.runtime.workspace"  # by name, at the first loop
FAST = "nbkernels.cpu.gemm.fast"
KEYWORDS = "out_dtype", "mode", "conj", "tiles"  # of every product, the last arguments of the bodies


def given(*keywords):
    return dict(zip(KEYWORDS, keywords))  # those that the operation has


@cache
def _fast():
    return import_module(FAST)


def addmm_activation(out, self, mat1, mat2, beta, alpha, activation, approximate, out_dtype, mode, tiles):
    """Arrays of the CPU come as NumPy's; elsewhere, but on CUDA (cuda/epilogue.py), the product goes through the
    function whole."""
    ending = ENDINGS[activation, approximate]
    if isinstance(out, np.ndarray):
        function, how = ending.apply.version().function, dict(beta=beta, alpha=alpha, mode=mode, tiles=tiles)
        ops.ENDED.on("CPU", activation).load()(function, out, None, out.dtype, self, mat1, mat2, (), how)
    else:
        ops.addmm(self, mat1, mat2, beta=beta, alpha=alpha, out=out, out_dtype=out_dtype, mode=mode, tiles=tiles)
        ending.apply(out, out=out)


def addmm_activation_fast(self, mat1, mat2, beta, alpha, activation, approximate, out):
    """addmm_activation of a small product of plain arrays: the product, then the function over all of it; else None."""
    ending = ENDINGS.get((activation, approximate)) if type(activation) is type(approximate) is str else None
    if ending is None or mat1.dtype.kind not in "fV" or not mat1.ndim == mat2.ndim == 2:  # bfloat16 is of kind V
        return None
    if mat1.size * mat2.shape[1] > WHOLE:
        return None
    made = _fast().addmm_fast(self, mat1, mat2, beta, alpha, out)
    return None if made is None else ending.apply(made, out=made)


def addbmm_fast(self, batch1, batch2, beta, alpha, out):
    """A product of plain arrays after the other, in one result; None, with nothing written, where more care is needed:
    of halves, whose sums are float32's, and of an out that may share memory with what is read later."""
    half = batch1.dtype.itemsize == 2 and batch1.dtype.kind in "fV"  # its name takes 1 us
    if half or not (batch1.ndim == 3 == batch2.ndim and 0 < len(batch1) == len(batch2)):
        return None
    if out is not None and (np.may_share_memory(out, batch1) or np.may_share_memory(out, batch2)):
        return None
    fast = _fast()
    made = fast.addmm_fast(self, batch1[0], batch2[0], beta, alpha, out)
    for i in range(1, len(batch1) if made is not None else 0):
        if fast.addmm_fast(made, batch1[i], batch2[i], 1, alpha, made) is None:
            fast.gemm(made, made, batch1[i], batch2[i], 1, alpha)
    return made


# -- vectors as matrices ----------------------------------------------------------------------------------------------


def mv(out, self, vec, *keywords):
    ops.mm(self, views.column(vec), out=views.column(out), **given(*keywords))


def mv_widened(out, self, vec):
    ops.mv(*converted(out, None, self, vec), out=out)


def addmv(out, self, mat, vec, beta, alpha, *keywords):
    scaled = dict(beta=beta, alpha=alpha, **given(*keywords))
    ops.addmm(views.column(self), mat, views.column(vec), out=views.column(out), **scaled)


def converted(out, out_dtype, *arrays):
    """The arrays in the result's dtype, where no out_dtype is asked for: those of others are copied.

    A large matrix that meets a vector is not: the CPU converts it as it reads it (cpu/gemv/mv.py). Matrices of two
    dtypes would gain little. Kinds of two dtypes would convert while packing, to the same bits, but only the nest of
    packed products takes them: 1.00 to 1.09 of the copies' speed for squares of 256 and more, 0.15 to 0.47 for 1 and 8
    rows, where one dtype has paths of its own, and 0.9 s to compile for each pair (AVX2, 2026-11). Copies by blocks of
    columns or rows that stay in L3: 0.9 to 1.0 of their speed for squares of 1000, 1.1 to 1.5 for few rows.
    """
    dtype = views.spec(out).dtype
    alike = [x is None or out_dtype is not None or views.spec(x).dtype == dtype for x in arrays]
    return [x if same else ops.copy(x, dtype=dtype, order="K") for x, same in zip(arrays, alike)]


def outer(out, self, vec2, *keywords):
    self, vec2 = converted(out, keywords[0], self, vec2)
    ops.mm(views.column(self), views.row(vec2), out=out, **given(*keywords))


def addr(out, self, vec1, vec2, beta, alpha, *keywords):
    scaled = dict(beta=beta, alpha=alpha, **given(*keywords))
    ops.addmm(self, views.column(vec1), views.row(vec2), out=out, **scaled)


def dot(out, self, tensor, *keywords):
    self, tensor = converted(out, keywords[0], self, tensor)
    ops.mm(views.row(self), views.column(tensor), out=views.restride(out, (1, 1), (0, 0)), **given(*keywords))


def vdot(out, self, other, out_dtype, mode):
    dot(out, self, other, out_dtype, mode, "a" if views.spec(self).dtype.kind == "c" else None)


# -- batches ----------------------------------------------------------------------------------------------------------


def addbmm(out, self, batch1, batch2, beta, alpha, *keywords):
    """One addmm for each pair of matrices, in order; out is written by the last. Sums of halves are float32's, rounded
    once."""
    addmm = partial(ops.addmm, alpha=alpha, **given(*keywords))
    last, result = views.spec(batch1).shape[0] - 1, views.spec(out)
    if last > 0 and result.dtype.name in HALVES:
        total = views.empty(out, result.shape, np.dtype(np.float32))
        if beta != 0:
            ops.copy(views.expand(self, result.shape), out=total)
        addbmm(total, total, batch1, batch2, beta, alpha, "float32", *keywords[1:])
        ops.copy(total, out=out)
        return
    if last < 0:  # no product at all: of matrices that are not read
        first, second = (
            views.restride(x, s.shape[1:], s.strides[1:]) for x in (batch1, batch2) for s in [views.spec(x)]
        )
        addmm(self, first, second, beta=beta, alpha=0, out=out)
        return
    for i in range(last):
        self = addmm(self, *(views.index(x, i) for x in (batch1, batch2)), beta=beta, out=self if i else None)
        beta = 1
    addmm(self, *(views.index(x, last) for x in (batch1, batch2)), beta=beta, out=out)


def matmul(out, input, other, *keywords):
    ndims, uncut = tuple(len(views.spec(x).shape) for x in (input, other)), given(*keywords[:3])
    turned = ndims == (1, 2) and views.spec(out).dtype.kind != "c"  # whose steps have an order within
    if turned:
        input, other = views.transpose(other), input
    if ndims == (2, 1) or turned:
        if widens(views.spec(input), views.spec(out).dtype) and not any(keywords):
            ops._mv_widened(input, *converted(out, None, other), out=out)
        else:
            ops.mv(*converted(out, keywords[0], input, other), out=out, **uncut)
        return
    input, other = converted(out, keywords[0], input, other)
    if ndims == (1, 1):
        ops.dot(input, other, out=out, **uncut)
    else:
        _matmul(*_batches(out, input, other), None, **given(*keywords))


def linear(out, input, weight, bias, *keywords):
    input, weight, bias = converted(out, keywords[0], input, weight, bias)
    _matmul(*_batches(out, input, views.transpose(weight)), bias, **given(*keywords))


def _batches(out, input, other):
    """Views of all three as batches of matrices, with strides of 0 where NumPy's rules repeat one."""
    a, b, c = map(views.spec, (input, other, out))
    ndim = len(c.shape) - (len(a.shape) > 1) - (len(b.shape) > 1)
    batch, (m, k, n) = c.shape[:ndim], ((a.shape[-2:-1] or (1,))[0], a.shape[-1], (b.shape[1:] or (1,))[-1])
    left = (*broadcast_strides(batch, a.shape[:-2], a.strides[:-2]), *(0, *a.strides)[-2:])
    right = (*broadcast_strides(batch, b.shape[:-2], b.strides[:-2]), *(*b.strides[-2:], 0)[:2])
    target = (*c.strides[:ndim], c.strides[ndim] if len(a.shape) > 1 else 0, c.strides[-1] if len(b.shape) > 1 else 0)
    return (
        views.restride(out, (*batch, m, n), target),
        views.restride(input, (*batch, m, k), left),
        views.restride(other, (*batch, k, n), right),
    )


def _matmul(out, a, b, bias, **keywords):
    """One product where the batch is rows of one matrix, else one batch, else one for each index of the first dim."""
    ways, added = ((ops.mm, ops.bmm), ()) if bias is None else ((ops.addmm, ops.baddbmm), (bias,))
    product, products = (partial(way, *added, **keywords) for way in ways)
    specs = [views.spec(x) for x in (out, a, b)]
    batch, steps, matrix = (
        specs[0].shape[:-2],
        [s.strides[:-2] for s in specs],
        (specs[2].shape[-2:], specs[2].strides[-2:]),
    )
    rows = () if any(steps[2]) else (views.flatten(out), views.flatten(a))
    if rows and all(x is not None for x in rows):
        product(rows[1], views.restride(b, *matrix), out=rows[0])
        return
    merged = [layout.flat_strides((*batch, 1), (*step, 0)) for step in steps]
    if None not in merged:
        flat = [
            views.restride(x, (prod(batch), *s.shape[-2:]), (step[0], *s.strides[-2:]))
            for x, s, step in zip((out, a, b), specs, merged)
        ]
        products(flat[1], flat[2], out=flat[0])
    elif any(x is not None and views.overlap(out, x) for x in (a, b, bias)):  # a product would write what others read
        fresh = views.empty(out, *specs[0][:2])
        _matmul(fresh, a, b, bias, **keywords)
        ops.copy(fresh, out=out)
    else:
        with import_module(ROOMS).one_room() if isinstance(out, np.ndarray) else nullcontext():
            for i in range(batch[0]):
                _matmul(*(views.index(x, i) for x in (out, a, b)), bias, **keywords)
