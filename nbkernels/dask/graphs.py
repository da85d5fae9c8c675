"""Operations of dask arrays as dask's graphs: the adapter that calls like `nbkernels.mm(x, y)` are handed to.

Each operation tells shape and dtype by its own rule, as of arrays without data, so that errors come when the graph is
built. Element-wise operations are dask's `blockwise`, reductions its `reduction`; products are in products.py. Tasks
call the public functions on chunks, wherever those lie.
"""

from __future__ import annotations

from functools import partial

import dask.array as da
import numpy as np
from dask.array.utils import meta_from_array

from .. import ops
from ..dispatch import Adapter, ArgumentError, MetaArray, OutError, arrays
from ..dispatch.adapter import Spec
from ..dtypes import ASSOCIATIVE, HALVES

LAZY = "a dask array is a graph, which nobody writes into"
ELSEWHERE = ("x.map_blocks(function) calls one on each chunk, dask.array.map_blocks(function, x, y) on the chunks of "
             "several arrays")  # fmt: skip


class Dask(Adapter):
    name, classes = "dask", ("dask.Array",)

    def device(self, x):
        if any(np.isnan(size) for size in x.shape):
            raise TypeError(f"a dask array with chunks of unknown size, of shape {x.shape}: call its "
                            "compute_chunk_sizes() first")  # fmt: skip
        if x.dtype.hasobject:
            raise TypeError(f"a dask array of dtype {x.dtype}: its chunks hold Python objects, no numbers")
        if isinstance(x._meta, np.ma.MaskedArray):
            raise TypeError("a dask array of masked arrays, whose masks would be lost: pass dask.array.ma.filled(x)")
        chunk = arrays.adapter_for(x._meta)
        if chunk is None:
            raise TypeError(f"a dask array whose chunks are of type {type(x._meta).__name__}, which is no array here")
        return chunk.device(x._meta)

    def spec(self, x):
        return stand_in(x)

    def flaw(self, x):
        return LAZY

    def restride(self, x, shape, strides):
        """A view by transposition, axes of size 1 and repeated ones, which are told by the strides of C order."""
        long = {(n, step): a for a, (n, step) in enumerate(zip(x.shape, stand_in(x).strides)) if n != 1}
        order = [long.pop(each, None) for each in zip(shape, strides)]
        if long or any(a is None and n != 1 and step for a, n, step in zip(order, shape, strides)):
            raise self.lacks("restride")
        x = x.squeeze(tuple(a for a in range(x.ndim) if x.shape[a] == 1))
        found = [a for a in order if a is not None]
        x = x.transpose([sorted(found).index(a) for a in found])
        return da.broadcast_to(x[tuple(None if a is None else slice(None) for a in order)], tuple(shape))

    def opens(self, op, key, x):
        return False

    def intercept(self, op, row, args, out, in_place):
        name, values = op.named(args, in_place), dict(zip(op.names, args))
        if out is not None:
            word = "self" if in_place else "out"
            raise OutError(f"{name}: {word} cannot be written: {LAZY}; the functional form gives a new one")
        values = {word: lazy(name, word, value, args) for word, value in values.items()}
        result = op.call(tuple(stand_in(x) if isinstance(x, da.Array) else x for x in values.values()))
        from . import products

        if op.elementwise:
            return elementwise(op, values, result)
        build = FOLDS.get(op.function) or (products.build if op.function in products.LABELS else None)
        if build is None:
            raise ArgumentError(f"{name}: it has no form for dask arrays; {ELSEWHERE}")
        return build(op, values, result)

    def apply(self, function, args, out, where, shape, dtypes):
        """A function that `elementwise` or `fuse` made."""
        name = function.__name__
        if out is not None:
            raise OutError(f"{name}: out cannot be written: {LAZY}; without out there is a new one")
        if len(dtypes) > 1:
            raise ArgumentError(f"{name}: it returns {len(dtypes)} results; dask arrays take one; {ELSEWHERE}")
        values = {f"argument {i}": x for i, x in enumerate(args)} | ({} if where is None else {"where": where})
        values = {word: lazy(name, word, x, (*args, where)) for word, x in values.items()}
        call = partial(masked, function) if where is not None else function
        return broadcast(call, list(values.values()), Spec(shape, dtypes[0], None))


def stand_in(x):
    """An array without data, of x's shape and dtype."""
    return MetaArray(x.shape, x.dtype)


def lazy(name, word, value, args):
    """An array of a call as a dask array; numbers, NumPy's scalars and other values are themselves."""
    adapter = arrays.adapter_of(type(value))
    if adapter is None or adapter.scalar or isinstance(value, da.Array):
        return value
    chunks = [arrays.adapter_for(x._meta) for x in args if isinstance(x, da.Array)]
    if adapter.name not in {chunk.name for chunk in chunks}:
        kinds = " and ".join(sorted({chunk.name for chunk in chunks}))
        raise ArgumentError(f"{name}: {word} is an array of {adapter.name} beside dask arrays of {kinds}: convert it")
    return da.asanyarray(value)


def like(result, given):
    """An empty array of the result's dtype and of the chunks' kind, as dask describes its arrays by."""
    x = next(x for x in given if isinstance(x, da.Array))
    meta = meta_from_array(x._meta, ndim=len(result.shape))
    return meta if meta.dtype == result.dtype else np.empty_like(meta, dtype=result.dtype)


# -- element-wise -----------------------------------------------------------------------------------------------------


def elementwise(op, values, result):
    """An element-wise operation, whose tensors that are keywords broadcast as its operands do."""
    order = [i for i, word in enumerate(op.names) if i in op.keyed or isinstance(values[word], da.Array)]
    keywords = {word: x for i, (word, x) in enumerate(values.items()) if i not in order and x is not None}
    keywords.pop("order", None)  # of a chunk's elements in memory, which dask does not keep
    given = [values[op.names[i]] for i in order]
    more = tuple(op.names[i] for i in order[len(op.keyed) :])
    call = partial(op.function, **keywords) if keywords else op.function
    return broadcast(partial(worded, call, more) if more else call, given, result)


def worded(function, words, *args):
    """The function with the last of the arguments as keywords of these names."""
    count = len(args) - len(words)
    return function(*args[:count], **dict(zip(words, args[count:])))


def masked(function, *args):
    return function(*args[:-1], where=args[-1])


def broadcast(function, given, result):
    """function of the chunks that meet when the arrays broadcast; numbers go to every call."""
    axes = tuple(range(len(result.shape)))
    pairs = []
    for x in given:
        pairs += [x, axes[len(axes) - x.ndim :] if isinstance(x, da.Array) else None]
    return da.blockwise(function, axes, *pairs, dtype=result.dtype, meta=like(result, given), concatenate=True)


# -- reductions -------------------------------------------------------------------------------------------------------


def reduce(op, values, result):
    """A fold of each chunk, then of what these are folded to; in order, of the whole axis, where the order matters."""
    x, fold, axes = values["self"], values["op"], values["axis"]
    if values["where"] is not None:
        raise ArgumentError(f"{fold}.reduce: where is not there for dask arrays: pass dask.array.where(mask, x, "
                            "neutral element)")  # fmt: skip
    x = whole(x, axes) if fold not in ASSOCIATIVE else dense(x, axes)
    # What is folded in float32 stays so until it is rounded, once.
    work = "float32" if result.dtype.name in HALVES and x.dtype == result.dtype else values["dtype"]
    chunk = partial(folded, fold, work)
    last = partial(rounded, fold, work, result.dtype, values["initial"])
    if not axes:
        return broadcast(partial(last, axis=(), keepdims=False), [x], result)
    return da.reduction(x, chunk, last, axis=axes, keepdims=values["keepdims"], combine=chunk, dtype=result.dtype,
                        meta=like(result, [x]))  # fmt: skip


def folded(fold, work, x, axis, keepdims):
    return getattr(ops, fold).reduce(x, axis, dtype=work, keepdims=True)


def rounded(fold, work, final, initial, x, axis, keepdims):
    found = getattr(ops, fold).reduce(x, axis, dtype=work, keepdims=keepdims, initial=initial)
    return cast(found, final)


def cast(x, dtype):
    """x in this dtype; what is too large for it is infinite, without NumPy's warning, as in all results here."""
    with np.errstate(all="ignore"):
        return x if x.dtype == dtype else x.astype(dtype)


def whole(x, axes):
    """x with one chunk along these axes."""
    return x.rechunk(dict.fromkeys(axes, -1))


def dense(x, axes):
    """x without empty chunks along these axes, of which there is no largest element."""
    return x.rechunk({a: tuple(n for n in x.chunks[a] if n) or (0,) for a in axes})


def accumulate(op, values, result):
    """In order, so of the whole axis, which becomes one chunk."""
    x, axes = values["self"], values["axis"]
    call = partial(scanned, values["op"], axes[0], values["dtype"])
    return broadcast(call, [whole(x, axes)], result)


def scanned(fold, axis, dtype, x):
    return getattr(ops, fold).accumulate(x, axis, dtype=dtype)


def sum_to(op, values, result):
    x, shape = values["self"], tuple(result.shape)
    lead = x.ndim - len(shape)
    axes = tuple(a for a in range(x.ndim) if a < lead or (shape[a - lead] == 1 and x.shape[a] != 1))
    return ops.add.reduce(x, axes, dtype=x.dtype, keepdims=True).reshape(shape) if axes else x


FOLDS = {ops._reduce: reduce, ops._accumulate: accumulate, ops.sum_to: sum_to}
ADAPTER = Dask()
