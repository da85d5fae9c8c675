"""Folds in order, one element after the other: what only such an order defines, and results that keep every step.

    accumulate   out[0] = x[0], out[k] = op(out[k - 1], x[k]) along one dimension
    in_order     the last of these alone: the fold of an operation that is not associative
    at           a[indices[i]] = op(a[indices[i]], b[i]) for one i after the other, repeated indices too

Where neighbours lie beside the dimension a step is one call of the vectorised loops over all of them; else the steps of
one row after the other are scalar, with the result of the last in a register.
"""

from __future__ import annotations

import functools

import numpy as np

from ... import scalar
from ...dtypes import NUMBERS, kind, resolve, settled
from ...jit.abi.address import invoke, pointer
from ...jit.abi.calling import call_binary
from ...jit.abi.ndarray import WRITEABLE, address_of, data, flags, ndim, shape, stride
from ...jit.abi.record import Record
from ...jit.compile.cache import entry
from ...strides import plan, rows
from ..elementwise.elementwise import apart, binary, loop
from ..runtime.arrays import apart as disjoint
from .reduce import copies
from .scan_loop import Step, runs, visits

# Neighbours from which on a step is worth a call of its own: about 20 ns.
BESIDE = 32
INDEX = np.dtype(np.int64)


# A scan: loops of the first step and of others over neighbours or, where there are none, one of whole rows; what is
# added to the addresses of out and x, their steps; how many steps, and loops beside them, which follow: a size, strides
# of out and x.
SCAN = Record("Scan", "begin loops scan out x out_step x_step count kept")
scan_at, SCAN_BYTES = SCAN.pointer(), SCAN.bytes


@functools.cache
def _steps():
    def steps(words, out, x):
        """All steps at each place beside them; the last of the loops beside them is inner."""
        words, places = data(address_of(words)), 1
        f, dims = scan_at(words), pointer(words + SCAN_BYTES)
        out, x = data(address_of(out)) + f.out, data(address_of(x)) + f.x
        inner = 3 * (f.kept - 1)
        for d in range(0, inner, 3):
            places *= dims[d]
        columns, to, pace = dims[inner], dims[inner + 1], dims[inner + 2]
        for place in range(places):
            rest, at, source = place, out, x
            for d in range(inner - 3, -1, -3):
                at += rest % dims[d] * dims[d + 1]
                source += rest % dims[d] * dims[d + 2]
                rest //= dims[d]
            if f.scan != 0:
                invoke(f.scan, (at, to, f.out_step, source, pace, f.x_step, columns, f.count))
                continue
            call_binary(f.begin, (at, source, source), columns, (to, pace, pace))
            for _ in range(1, f.count):
                source += f.x_step
                call_binary(f.loops, (at + f.out_step, at, source), columns, (to, to, pace))
                at += f.out_step

    return entry(steps, "void(object, object, object)", "scan_steps", nogil=True)


def accumulate(op: str, out, x, axis: int, work: np.dtype) -> None:
    """out[k] = op(out[k - 1], x[k]) along an axis, in `work`; both have one shape."""
    if x.size:
        x = apart(out, x)
        held(out, work, lambda held: _scan(op, held, x, axis, held.strides, work))


def in_order(op: str, out, x, axis: int, work: np.dtype) -> None:
    """out = x folded along an axis from its first element on; out has x's shape without it, and is not empty."""
    x = apart(out, x)

    def run(held):
        strides = list(held.strides)
        strides.insert(axis, 0)
        _scan(op, held, x, axis, tuple(strides), work)

    held(out, work, run)


def held(out, work, run):
    """run(out), by way of an array of the dtype `work` where out has another."""
    if out.dtype == work:
        run(out)
    else:
        wide = np.empty(out.shape, work)
        run(wide)
        np.copyto(out, wide, casting="unsafe")


@functools.lru_cache(maxsize=4096)
def prepared(op, shape, axis, strides, x_strides, dtype, work):
    """A function of output and input: a scan along an axis of inputs of this dtype, of these strides, to outputs of
    `strides`, in `work`."""
    rest = tuple(n for d, n in enumerate(shape) if d != axis)
    to, source = (tuple(s for d, s in enumerate(given) if d != axis) for given in (strides, x_strides))
    nest = plan((rest, rest), (to, source), (work.itemsize, dtype.itemsize))
    dims = rows(nest.shape, nest.strides) or [1, 0, 0]
    beside = dims[-3] >= BESIDE and abs(dims[-1]) <= abs(x_strides[axis])
    names = resolve(op, work, dtype, None if work.kind == "b" else work, "unsafe")
    step = Step(scalar.find(op, *names[:2]), work.name, dtype.name, tuple(d.name for d in names))
    f = SCAN.array()
    if beside:
        f.begin, f.loops = copies(dtype, work, work), _loop(op, work, dtype)
    else:
        f.scan = _runs(step)
    (f.out, f.x), f.out_step, f.x_step = nest.offsets, strides[axis], x_strides[axis]
    f.count, f.kept = shape[axis], len(dims) // 3
    return functools.partial(_steps(), np.array((*f, *dims), np.int64))


_runs, _visits = functools.cache(runs), functools.cache(visits)


def _scan(op, out, x, axis, strides, work):
    """Along an axis of x; out's strides may be 0 there."""
    prepared(op, x.shape, axis, strides, x.strides, x.dtype, work)(out, x)


def _loop(op, work, dtype):
    return loop(op, work, dtype, work, None if work.kind == "b" else work, "unsafe", checked=False)


@functools.cache
def _each():
    def each(kernel, out, indices, x, width, itemsize):
        """Visit elements of a vector, or rows of a matrix by the vectorised loops; False, and nothing is done, where x
        does not fit, out cannot be written, a vector's elements share memory, or that is shared with another's, or an
        index is out of bounds."""
        out, indices, x = address_of(out), address_of(indices), address_of(x)
        size, count, last, matrix = shape(out, 0), shape(indices, 0), ndim(x) - 1, ndim(out) == 2
        columns, inner = shape(out, 1) if matrix else 1, matrix and last >= 0
        high, wide = shape(x, 0) if last + 1 == ndim(out) else 1, shape(x, last) if inner else 1
        if last >= ndim(out) or (high != 1 and high != count) or (wide != 1 and wide != columns):
            return False
        if flags(out) & WRITEABLE == 0 or (count > 1 and stride(indices, 0) != 8):
            return False
        if not matrix and size > 1 and abs(stride(out, 0)) < itemsize:
            return False
        if not (disjoint(out, indices, width) and disjoint(out, x, width)):
            return False
        places, low, high_place = pointer(data(indices)), 0, 0
        for i in range(count):
            low, high_place = min(low, places[i]), max(high_place, places[i])
        if count > 0 and (low < -size or high_place >= size):
            return False
        step, pace = stride(x, 0) if high > 1 else 0, stride(x, last) if wide > 1 else 0
        if not matrix:
            invoke(kernel, (data(out), size, stride(out, 0), data(indices), data(x), step, count))
            return True
        along = stride(out, 1)
        for i in range(count):
            at = data(out) + (places[i] + size if places[i] < 0 else places[i]) * stride(out, 0)
            call_binary(kernel, (at, at, data(x) + i * step), columns, (along, along, pace))
        return True

    return entry(each, "boolean(int64, object, object, object, int64, int64)", "scan_each", nogil=True)


@functools.cache
def _visitor():
    def visitor(visits, out, places, x, x_step, count):
        """Visit elements of out by their distances in bytes."""
        invoke(visits, (out, 0, 1, places, x, x_step, count))

    return entry(visitor, f"void({', '.join(['int64'] * 6)})", "scan_visitor", nogil=True)


def _castable(op, out, dtype):
    """What an operation on elements of out and of another dtype works in, where that can be put into out."""
    names = resolve(op, out, dtype)
    if not np.can_cast(names[2], out, "same_kind"):
        raise TypeError(f"{op}: cannot cast the result from {names[2]} to {out!r} under casting='same_kind'")
    return names


@functools.lru_cache(maxsize=4096)
def _step(op, out, dtype) -> tuple[int, bool]:
    """The visits of an operation to elements of these dtypes, and whether it minds negative operands."""
    names = _castable(op, out, dtype)
    step = Step(scalar.find(op, *names[:2]), out.name, dtype.name, tuple(d.name for d in names))
    return _visits(step), op == "pow" and names[1].kind == "i"


def _array(op, out, x):
    """What is put into out, as an array: numbers are weak."""
    x = settled(op, x, out)
    return np.asarray(x, resolve(op, out.dtype, kind(x))[1] if type(x) in NUMBERS else None)


def _addend(op, out, x, indices):
    """Return x as an array and the visits that apply op with it; raise for negative exponents of integers."""
    x = _array(op, out, x)
    visit, positive = _step(op, out.dtype, x.dtype)
    if positive and (x < 0).any() and out[indices].size:
        raise ValueError("pow: integers to negative integer powers are not allowed")
    return x, visit


NOWHERE = np.empty(0, INDEX)


def at_fast(op: str, out, indices, x) -> bool:
    """Do as `at` for a vector or a contiguous matrix and a 1-D array or list of indices; False, with nothing done,
    where `at` has to."""
    if type(indices) is list:
        indices = np.asarray(indices) if indices else NOWHERE
    if type(indices) is not np.ndarray or indices.dtype != INDEX or indices.ndim != 1:
        return False
    if out.ndim != 1 and not (out.ndim == 2 and out.flags.c_contiguous):
        return False
    if not out.dtype.isnative or not (x.dtype.isnative if type(x) is np.ndarray else type(x) in NUMBERS):
        return False
    x, visit = _addend(op, out, x, indices)
    return _visited(op, visit, out, indices, x)


def _visited(op, visit, out, indices, x) -> bool:
    """Visit a vector's elements or a matrix's rows, as `each` says."""
    kernel = visit if out.ndim == 1 else _loops(op, out.dtype, x.dtype)
    return _each()(kernel, out, indices, x, max(8, out.itemsize, x.itemsize), out.itemsize)


@functools.lru_cache(1024)
def _loops(op, out, dtype):
    return loop(op, out, dtype, out, checked=False)


def at(op: str, out, indices, x) -> None:
    """out[i] = op(out[i], x[i]) for one index after the other, so that repeated ones add up, as NumPy's ufunc.at.

    `indices` is anything that indexes an array; x broadcasts to what it selects. The result must be castable to out's
    dtype under "same_kind". A slice names each element once: then it is the operation in place.
    """
    if type(indices) is slice:
        view, x = out[indices], _array(op, out, x)
        _castable(op, out.dtype, x.dtype)
        binary(op, view, view, np.broadcast_to(x, view.shape))
        return
    x, visit = _addend(op, out, x, indices)
    plain = indices if type(indices) is np.ndarray else np.asarray(indices) if type(indices) is list else None
    if plain is None or plain.ndim != 1 or plain.dtype.kind not in "iu" or plain.dtype == np.uint64:
        plain = None
    if not 1 <= out.ndim <= 2:
        plain = None
    shape = None if plain is None else plain.shape + out.shape[1:]
    if x.shape != shape or np.may_share_memory(out, x):
        places = _places(out, indices) if shape is None else None
        x = np.broadcast_to(x, shape or places.shape)
        if np.may_share_memory(out, x):
            x = x.copy()
    if shape is None:
        x = x if x.size and not any(x.strides) else np.ascontiguousarray(x).reshape(-1)
        places = np.ascontiguousarray(places)
        step = x.strides[0] if x.ndim == 1 and x.size == places.size else 0
        _visitor()(visit, out.ctypes.data, places.ctypes.data, x.ctypes.data, step, places.size)
        return
    plain = np.ascontiguousarray(plain.copy() if np.may_share_memory(out, plain) else plain, np.int64)
    if not _visited(op, visit, out, plain, x):
        out[plain]  # NumPy's error names the index


def _places(x, indices):
    """Distance in bytes from x's first element of each that `indices` selects."""
    distance = np.zeros(x.shape, np.int64)
    for d, (size, pace) in enumerate(zip(x.shape, x.strides)):
        distance += (np.arange(size) * pace).reshape((size,) + (1,) * (x.ndim - d - 1))
    return np.asarray(distance[indices])
