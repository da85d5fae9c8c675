"""A user's scalar function over broadcast NumPy arrays of any strides, all of its outputs in one pass."""

from __future__ import annotations

import functools

import numpy as np

from ...jit.compile.lazy import errors
from ...jit.compile.python_first import Patience
from ...jit.user.scalar_function import Adopted, adopt, refusal
from ...strides import plan
from . import gates, schedule
from .elementwise import apart
from .loop import Loop
from .loops import address
from .plan_cache import UNKNOWN, Memory, many_entry

at_first = Patience("elementwise_recall_many")  # calls whose layouts are checked each time


@functools.lru_cache(maxsize=1024)
def _loops(function, adopted: Adopted, arguments, outs, masked=False, made: gates.Choice = gates.PLAIN) -> int:
    """Address of the compiled loops of a function, adopted, for arguments and outputs of these dtypes."""
    names = [d.name for d in arguments]
    computed = tuple(names) + tuple(d.name for d in adopted.results)
    first, *more = (d.name for d in outs)
    how = dict(more=tuple(more), masked=masked, **made._asdict())
    try:
        return address(Loop(adopted.function, tuple(names), computed, first, **how))
    except (errors.NumbaError, NotImplementedError) as error:  # constants that have a type and nothing else
        raise refusal(function, arguments, error) from None


@functools.lru_cache(maxsize=4096)
def _nest(function, dtypes, count, masked, shapes, strides, fresh, raises=False) -> schedule.Nest:
    """The loops of a call, planned and compiled; operands are `count` outputs, the arguments and a mask. Or, with
    `raises`, the loops that say where the function would raise."""
    itemsizes = tuple(d.itemsize for d in dtypes)
    loops, end = plan(shapes, strides, itemsizes), len(dtypes) - masked
    arguments = dtypes[count:end]
    made = gates.choose(loops, itemsizes, streams=not (fresh or masked)) if count == 1 else gates.PLAIN
    adopted = adopt(function, arguments)
    adopted = adopted.raises if raises else adopted
    compiled = _loops(function, adopted, arguments, dtypes[:count], masked, made)
    return schedule.Nest(loops, compiled, itemsizes, made, gates.FUNCTION_PARALLEL, outputs=count)


def recaller(memory: Memory, masked=False):
    """The entry, for a tuple of inputs, the last of which is a mask if `masked`, by plans cached in `memory`."""
    enter, address = many_entry(), memory.address

    def recall(out, arrays, record=0):
        return enter(address, masked << 1 | (out is None), record, out, arrays)

    return recall


def at_once(memory: Memory, out, inputs, masked=False, again=None):
    """The one output, `out` or, where that is None, made, by a plan cached in `memory`; None, with nothing done, where
    no such plan applies. The last of the inputs is a mask if `masked`. `again` says that `run` has computed such a
    layout, so that its plan may be cached: the function, and the shape, dtype and strides of a new output."""
    recall, inputs = recaller(memory, masked), tuple(inputs)
    found = recall(out, inputs)
    if again and type(found) is int and found == UNKNOWN:
        function, shape, dtype, strides = again
        arrays = np.ndarray(shape, dtype, strides=strides) if out is None else out, *inputs
        layouts = tuple(x.shape for x in arrays), tuple(x.strides for x in arrays)
        loops = _nest(function, tuple(x.dtype for x in arrays), 1, masked, *layouts, out is None)
        found = memory.run((loops, 0), arrays, lambda record: recall(out, inputs, record))
    return found if type(found) is np.ndarray else None


def run(function, outs, inputs, where=None, fresh=False) -> None:
    """outs[k] = function(*inputs)[k], where `where` is not False; outs do not share memory with one another.

    Raises what the function does for an element, before anything is written.
    """
    others = ()
    if adopt(function, tuple(x.dtype for x in inputs)).raises:
        others = _others(function, inputs, where)
    inputs = (*inputs, where) if where is not None else tuple(inputs)
    for out in outs:
        inputs = tuple(apart(out, x) for x in inputs)
    arrays = (*outs, *inputs)
    layouts = tuple(x.shape for x in arrays), tuple(x.strides for x in arrays)
    dtypes = tuple(x.dtype for x in arrays)
    _nest(function, dtypes, len(outs), where is not None, *layouts, fresh).run(arrays)
    for at, results in others:
        for out, result in zip(outs, results):
            out[at] = result


def _others(function, inputs, where):
    """(index, results) of the elements for which compiled code raises, by Python: its error, if it has one, else what
    NumPy's numbers give, as in a division by 0. Those that are masked off do not count."""
    found = np.empty(np.broadcast_shapes(*(x.shape for x in inputs), np.shape(where)), bool)
    arrays = (found, *inputs)
    layouts = tuple(x.shape for x in arrays), tuple(x.strides for x in arrays)
    _nest(function, tuple(x.dtype for x in arrays), 1, False, *layouts, True, True).run(arrays)
    found &= True if where is None else where
    views, results = [np.broadcast_to(x, found.shape) for x in inputs], []
    with np.errstate(all="ignore"):
        for at in map(tuple, np.argwhere(found)):
            result = function(*(x[at] for x in views))
            results.append((at, result if isinstance(result, tuple) else (result,)))
    return results
