"""A user's scalar function over broadcast NumPy arrays of any strides, all of its outputs in one pass."""

from __future__ import annotations

import functools

from ..jit.adopt import Adopted, adopt
from ..jit.loops import Loop, address
from ..strides import plan
from . import nest
from .elementwise import apart
from .recall import DONE, MOST, UNKNOWN, Memory, many_entry

# Elements from which threads share the work. Unlike an addition's, a function's cost is not known: 2 ns an element are
# 60 us, of which a second thread saves more than the 5 us that it costs.
PARALLEL = 1 << 15


@functools.lru_cache(maxsize=1024)
def _loops(adopted: Adopted, arguments, outs, streamed, masked, steps=(), askew=False) -> int:
    """Address of the compiled loops of a function for arguments and outputs of these dtypes."""
    names = [d.name for d in arguments]
    computed = tuple(names) + tuple(d.name for d in adopted.results)
    first, *more = (d.name for d in outs)
    more = tuple(more)
    how = dict(more=more, steps=steps, askew=askew)
    return address(Loop(adopted.function, tuple(names), computed, first, 0, streamed, masked=masked, **how))


@functools.lru_cache(maxsize=4096)
def _nest(function, dtypes, count, masked, shapes, strides, fresh) -> nest.Nest:
    """The loops of a call, planned and compiled; operands are `count` outputs, the arguments and a mask."""
    itemsizes = tuple(d.itemsize for d in dtypes)
    loops, end = plan(shapes, strides, itemsizes), len(dtypes) - masked
    streamed = count == 1 and not (fresh or masked) and nest.streamed(loops, itemsizes)
    arguments = dtypes[count:end]
    steps = nest.steps(loops, itemsizes) if count == 1 else ()
    askew = streamed and nest.askew(loops, itemsizes)
    compiled = _loops(adopt(function, arguments), arguments, dtypes[:count], streamed, masked, steps, askew)
    return nest.Nest(loops, compiled, itemsizes, PARALLEL, streamed=streamed, outputs=count)


def at_once(memory: Memory, out, inputs) -> bool:
    """The same for one output, by a plan that `memory` keeps; False where it has none, and nothing is done."""
    return many_entry()(memory.address, 1 + len(inputs), 0, 0, out, *inputs, *[None] * (MOST - 1 - len(inputs))) == DONE


def again(function, memory: Memory, arrays, masked: bool, fresh: bool) -> bool:
    """The same, `arrays` being the output, the inputs and a mask: by a plan that `memory` keeps of a layout that `run`
    has done before. False where it does not, and nothing is done."""
    slots, variant, entry = memory.address, masked << 1 | fresh, many_entry()
    padded = *arrays, *[None] * (MOST - len(arrays))
    status = entry(slots, len(arrays), variant, 0, *padded)
    if status == UNKNOWN:
        layouts = tuple(x.shape for x in arrays), tuple(x.strides for x in arrays)
        found = _nest(function, tuple(x.dtype for x in arrays), 1, masked, *layouts, fresh)
        status = memory.run((found, 0), arrays, lambda record: entry(slots, len(arrays), variant, record, *padded))
    return status == DONE


def run(function, outs, inputs, where=None, fresh=False) -> None:
    """outs[k] = function(*inputs)[k], where `where` is not False; outs do not share memory with one another."""
    inputs = (*inputs, where) if where is not None else tuple(inputs)
    for out in outs:
        inputs = tuple(apart(out, x) for x in inputs)
    arrays = (*outs, *inputs)
    layouts = tuple(x.shape for x in arrays), tuple(x.strides for x in arrays)
    dtypes = tuple(x.dtype for x in arrays)
    _nest(function, dtypes, len(outs), where is not None, *layouts, fresh).run_all(arrays)
