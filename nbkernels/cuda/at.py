"""out[indices] = op(out[indices], x) on device arrays, one index after the other: NumPy's ufunc.at.

Indices choose a row of out each, whose columns are the dimensions that slices and ... leave:

    out[targets[i] + c] = op(out[targets[i] + c], x[i, c])      for i in turn, for all columns c

Where the rows are is found on the device: negative indices count from the end, and if one is out of bounds, NumPy's
IndexError is raised and nothing is written. For that the host waits for the indices, not for what is done to out. A
stream that is being captured into a graph cannot be waited for: there, rows out of bounds are left out.

How it is done, by the first of these that fits:

element-wise   indices are integers and slices, or one mask over which x is repeated
once           no row is chosen twice, as by a mask
atomic         what comes out does not depend on the order: sums, products, extremes and bits of integers, extremes of
               floats, computed in out's own dtype
ordered        anything else: the rows are sorted by their targets, stably, and those of one target are taken in order,
               by one thread for each column, so that the bits are NumPy's; if all rows have one, one after the other

The sort is that of the array's library, on the host for numba's arrays. What else NumPy takes for indices, such as 0-d
bools, and what it refuses, goes by NumPy's own indexing on the host, which says where each element is.
"""

from __future__ import annotations

import functools
from math import prod
from typing import NamedTuple

import numpy as np

from .. import scalar
from ..dispatch import driver, layout
from ..dispatch.driver import DeviceView, simulated
from ..dtypes import ASSOCIATIVE, EXTREMES, NUMBERS, kind, resolve
from ..strides import broadcast_shapes, broadcast_strides, join, plan, rows
from .elementwise import binary, copy, fill, is_array
from .launch import KERNELS, Kernel, elements, launch, multiprocessors, pointer
from .memory import clash, empty, uploaded

THREADS, BLOCKS = 128, 16  # of a block; for each multiprocessor


# Kernels are looked up by dtypes, not by their names, which NumPy spells out anew: 0.2 us in place of 16 (2026-11).
@functools.cache
def locating(item: np.dtype, target: np.dtype, ndim: int, first: bool) -> Kernel:
    """targets[i] += start + index[i] * step, of an index of `ndim` loops."""
    return Kernel(f"{KERNELS}.at:locate", (item.name, target.name, ndim, first), THREADS)


@functools.cache
def kernel(way: str, op: str, compute, out: np.dtype, item: np.dtype, target: np.dtype, ndim: int, columns: int):
    """The Kernel that takes rows of x, of `ndim` loops, to where targets say, in the `way` "once", "atomic" or
    "ordered"."""
    names, function = tuple(d.name for d in (out, item, target)), scalar.find(op, *compute[:2])
    arguments = op, function, tuple(d.name for d in compute), *names, ndim, columns
    return Kernel(f"{KERNELS}.at:{way}", arguments, THREADS)


def at(op: str, out, indices, x) -> None:
    """out[i] = op(out[i], x[i]) for one index after the other, so that repeated ones add up, as NumPy's ufunc.at.

    `indices` is anything that indexes an array: integers, slices, None, ..., and arrays of integers or bools, on out's
    device or on the host. x, a device array or a number, broadcasts to what it chooses.
    """
    names = resolve(op, out.dtype, kind(x))
    if not np.can_cast(names[2], out.dtype, "same_kind"):
        raise TypeError(f"{op}: cannot cast the result from {names[2]} to {out.dtype!r} under casting='same_kind'")
    if not is_array(x):
        x = _number(x, out, names[1])
    chosen = choose(out, indices)
    if chosen is None:
        _apply(op, names, out, by_numpy(out, indices), x)
    elif not chosen.arrays:
        binary(op, chosen.view, chosen.view, _broadcast(op, x, chosen.view.shape))
    elif not _masked(op, chosen, x):
        _apply(op, names, out, locate(chosen, indices, out), x)


def _number(x, out, dtype) -> DeviceView:
    """A number, Python's or a 0-d array of the host's, as an array."""
    python = type(x) in NUMBERS
    made = empty((), out, dtype if python else x.dtype)
    fill(made, x if python else x[()])
    return made


def _broadcast(op, x, shape) -> DeviceView:
    """x as an array of a shape."""
    try:
        fits = broadcast_shapes(shape, x.shape) == tuple(shape)
    except ValueError:
        fits = False
    if not fits:
        raise ValueError(f"{op}.at: other has shape {tuple(x.shape)}, which does not broadcast to {tuple(shape)}, the "
                         "shape of what the indices choose")  # fmt: skip
    return x.view(shape, broadcast_strides(shape, x.shape, x.strides))


# -- indices ----------------------------------------------------------------------------------------------------------


class Choice(NamedTuple):
    """An index taken apart: `view` is out as integers, slices, None and ... choose, which has all dimensions that
    arrays index; `arrays` are these, each with the first of its dimensions, of which a mask has several; `place` says
    before which of the view's other dimensions those of the arrays come."""

    view: DeviceView
    arrays: list
    place: int
    alone: bool  # whether no integer is among the indices


def choose(out, indices) -> Choice | None:
    """The Choice of what indexes out, or None where it is left to NumPy."""
    parts = [_part(part) for part in (indices if isinstance(indices, tuple) else (indices,))]
    if not all(part.dtype.kind in "iu" or (part.dtype.kind == "b" and part.shape) for part in filter(_indexes, parts)):
        return None
    if not any(part is ... for part in parts):
        parts.append(...)
    taken = [0 if part is None or part is ... else len(part.shape) if _masks(part) else 1 for part in parts]
    left = len(out.shape) - sum(taken)
    if left < 0 or sum(part is ... for part in parts) > 1:
        return None
    advanced = [i for i, part in enumerate(parts) if _indexes(part) or isinstance(part, int)]
    together = advanced == list(range(advanced[0], advanced[-1] + 1)) if advanced else False
    basic, found, place, source, dim = [], [], 0, 0, 0  # dimensions of out, and of the view
    for i, (part, width) in enumerate(zip(parts, taken)):
        width = left if part is ... else width
        if together and i == advanced[0]:
            place = dim
        if _masks(part) and tuple(part.shape) != tuple(out.shape[source : source + width]):
            return None
        if _indexes(part):
            found.append((part, dim))
        basic += [slice(None)] * width if _indexes(part) else [part]
        source, dim = source + width, dim + (1 if part is None else 0 if isinstance(part, int) else width)
    try:
        view = out.view(*layout.indexed(out.shape, out.strides, tuple(basic)))
    except IndexError:
        return None
    return Choice(view, found, place, len(advanced) == len(found))


def _part(x):
    """Part of an index: None, ..., a slice, an int or an array."""
    if x is None or x is ... or isinstance(x, slice) or is_array(x):
        return x
    array = np.asarray(x)
    if array.size == 0 and not isinstance(x, np.ndarray):
        return array.astype(np.intp)  # an empty list is one of integers
    return int(array) if array.ndim == 0 and array.dtype.kind in "iu" else array


def _indexes(part) -> bool:
    return is_array(part) or isinstance(part, np.ndarray)


def _masks(part) -> bool:
    return _indexes(part) and part.dtype.kind == "b"


class Rows(NamedTuple):
    """Rows of an array: row i, of the C-order `index` shape, begins at element targets[i] of the view, whose dimensions
    are the columns; `place`: before which of these the rows' dimensions come in what is chosen."""

    view: DeviceView
    targets: DeviceView
    index: tuple
    place: int
    once: bool  # whether no target is there twice

    @property
    def shape(self):
        return (*self.view.shape[: self.place], *self.index, *self.view.shape[self.place :])


def locate(chosen: Choice, indices, out) -> Rows:
    """The rows that are chosen; an IndexError where an index is out of bounds."""
    view, found, masks = chosen.view, [], all(map(_masks, [array for array, _ in chosen.arrays]))
    for array, d in chosen.arrays:
        found += [(part, d + i) for i, part in enumerate(_nonzero(array) if _masks(array) else [array])]
    try:
        index = broadcast_shapes(*(part.shape for part, _ in found))
    except ValueError:
        refuse(out, indices)
    count, dims, steps = prod(index), [d for _, d in found], elements(view, view.strides)
    reach = [(view.shape[d] - 1) * steps[d] for d in dims]
    narrow = sum(map(abs, reach)) < 1 << 31
    targets, outside = empty((count,), out, np.int32 if narrow else np.int64), empty((), out, np.int32)
    driver.clear(outside)
    for i, ((part, d), last) in enumerate(zip(found, reach) if count else ()):
        part = part if is_array(part) else uploaded(part.astype(np.int64), out)
        sizes, walk = _loops(index, elements(part, broadcast_strides(index, part.shape, part.strides)))
        compiled = locating(part.dtype, targets.dtype, len(sizes), i == 0)
        blocks, lists = min(-(-count // THREADS), multiprocessors() * BLOCKS), (pointer(targets), pointer(outside))
        launch(compiled, blocks, count, pointer(part), walk, sizes, view.shape[d], -min(last, 0), steps[d], *lists,
               stream=out.stream)  # fmt: skip
    if count and not masks and not driver.capturing(out.stream or 0) and driver.copy_out(outside):
        refuse(out, indices)
    kept = [d for d in range(len(view.shape)) if d not in dims]
    lowest = sum(min(last, 0) for last in reach) * out.dtype.itemsize
    base = view.view([view.shape[d] for d in kept], [view.strides[d] for d in kept], lowest)
    return Rows(base, targets, index, chosen.place, masks or count == 1)


def _nonzero(mask):
    """Where a mask is true: an array of integers for each of its dimensions."""
    return mask.adapter.nonzero(mask) if is_array(mask) else np.nonzero(mask)


def _loops(shape, *steps):
    """(sizes, steps...) of loops in C order, neighbours that are one walk joined."""
    loops, row = rows(shape, steps), 1 + len(steps)
    count = join(loops, len(shape), len(steps))
    return tuple(tuple(loops[p : count * row : row]) or (int(p == 0),) for p in range(row))


def _hosted(indices):
    """Indices whose arrays are NumPy's."""
    if isinstance(indices, tuple):
        return tuple(map(_hosted, indices))
    return driver.copy_out(indices) if is_array(indices) else indices


def refuse(out, indices):
    """NumPy's own error for indices, which names the one that is wrong."""
    np.broadcast_to(np.int8(0), out.shape)[_hosted(indices)]
    raise IndexError("an index was out of bounds, and has changed meanwhile")


def by_numpy(out, indices) -> Rows:
    """Rows of one element each, by NumPy's indexing."""
    steps = elements(out, out.strides)
    distances = np.zeros(out.shape, np.int64)
    for d, (size, step) in enumerate(zip(out.shape, steps)):
        places = np.arange(size) * step if step >= 0 else np.arange(1 - size, 1) * step
        distances += places.reshape((size,) + (1,) * (len(steps) - d - 1))
    found = np.asarray(distances[_hosted(indices)])
    lowest = layout.reach(out.shape, out.strides)[0] if out.size else 0
    return Rows(out.view((), (), lowest), uploaded(found.ravel(), out), found.shape, 0, found.size == 1)


# -- what is done there -----------------------------------------------------------------------------------------------


def _masked(op, chosen: Choice, x) -> bool:
    """Whether the index is one mask over which x is repeated: then it is the operation where the mask is true."""
    (mask, d), view = chosen.arrays[0], chosen.view
    if len(chosen.arrays) > 1 or not chosen.alone or not _masks(mask):
        return False
    ndim = len(mask.shape)
    behind = len(view.shape) - d - ndim
    if len(x.shape) > behind:
        if x.shape[-behind - 1] != 1:
            return False
        cut = len(x.shape) - behind
        x = x.view(*((*part[:cut], *[one] * (ndim - 1), *part[cut:]) for part, one in ((x.shape, 1), (x.strides, 0))))
    mask = mask if is_array(mask) else uploaded(mask, view)
    where = mask.view((*mask.shape, *[1] * behind), (*mask.strides, *[0] * behind))
    binary(op, view, view, _broadcast(op, x, view.shape), where=where)
    return True


def orderless(op: str, names, dtype) -> bool:
    """Whether the order of turns cannot be told from the result; the simulator has no atomics."""
    if simulated() or not names[0] == names[2] == dtype:
        return False
    return op in EXTREMES if dtype.kind in "fV" else dtype.kind in "biu" and (op in ASSOCIATIVE or op == "subtract")


def _apply(op: str, names, out, found: Rows, x) -> None:
    """Rows of x into those that are chosen."""
    view, targets, count, width = found.view, found.targets, prod(found.index), prod(found.view.shape)
    given = _broadcast(op, x, found.shape)
    if count * width == 0:
        return
    if clash(out, x):
        held = empty(x.shape, out, x.dtype)
        copy(held, x)
        given = _broadcast(op, held, found.shape)
    last = found.place + len(found.index)
    of_rows = _loops(found.index, elements(given, given.strides[found.place : last]))
    strides = view.strides, (*given.strides[: found.place], *given.strides[last:])
    loops = plan((view.shape,) * 2, strides, (out.dtype.itemsize, given.dtype.itemsize))
    to, source = (elements(each, part) or (0,) for each, part in zip((out, given), loops.strides))
    way = "once" if found.once else "atomic" if orderless(op, names, out.dtype) else "ordered"
    lists = targets.adapter.sort(targets) if way == "ordered" else (targets,)
    compiled = kernel(way, op, names, out.dtype, x.dtype, targets.dtype, len(of_rows[0]), len(to))
    shift = min(THREADS.bit_length() - 1, (width - 1).bit_length())
    most = multiprocessors() * BLOCKS
    across = min(-(-count // (THREADS >> shift)), most)
    grid = across, min(-(-width >> shift), max(1, most // across))
    launch(compiled, grid, count, width, shift, *map(pointer, lists),
           pointer(out, view.address - out.address + loops.offsets[0]), to, pointer(given, loops.offsets[1]),
           *of_rows, loops.shape or (1,), source, stream=out.stream)  # fmt: skip
