"""A user's scalar function over broadcast device arrays of any strides, all of its outputs in one pass."""

from __future__ import annotations

import functools

import numpy as np
from numba import cuda, types

from ..jit.adopt import adopt
from ..strides import broadcast_strides, plan
from .elements import computed, reading, stored, writing
from .elementwise import BLOCKS, THREADS, copy
from .functions import device
from .launch import Kernel, elements, inlined, launch, multiprocessors, pointer
from .memory import clash, empty, same, uploaded

# One element of each operand, then the function: for any number of them, so the text is put together.
SOURCE = """\
def loop(size, shape, {parameters}):
    for element in range(cuda.blockIdx.x * THREADS + cuda.threadIdx.x, size, cuda.gridDim.x * THREADS):
        rest, {places} = element, {zeros}
        for d in range(NDIM - 1, 0, -1):
            quotient = rest // shape[d]
            i, rest = rest - quotient * shape[d], quotient
            {steps}
        {last}
        if {chosen}:
            result = call({reads})
            {stores}
"""


@functools.cache
def kernel(function, dtypes: tuple[str, ...], count: int, ndim: int, masked: bool) -> Kernel:
    """The loop for `count` outputs, the arguments and perhaps a mask, of these dtypes."""
    end = len(dtypes) - masked
    arguments = tuple(map(np.dtype, dtypes[count:end]))
    adopted = adopt(function, arguments)
    if adopted.raises:
        raise TypeError(f"{function.__name__} may raise, as an index beyond an array does, which kernels cannot tell")
    single = all(computed(d) == types.float32 for d in dtypes[count:end])
    names = [f"p{k}" for k in range(len(dtypes))]
    values = [f"read{k}({n}, {n}_at)" for k, n in enumerate(names)]
    stores = [f"write{k}(p{k}, p{k}_at, R{k}(result{f'[{k}]' if count > 1 else ''}))" for k in range(count)]
    source = SOURCE.format(
        parameters=", ".join(f"{n}, {n}_steps" for n in names),
        places=", ".join(f"{n}_at" for n in names),
        zeros=", ".join("0" for _ in names),
        steps="\n            ".join(f"{n}_at += i * {n}_steps[d]" for n in names),
        last="\n        ".join(f"{n}_at += rest * {n}_steps[0]" for n in names),
        chosen=values[-1] if masked else "True",
        reads=", ".join(f"C{k}({values[k]})" for k in range(count, end)),
        stores="\n            ".join(stores),
    )
    scope = {"cuda": cuda, "THREADS": THREADS, "NDIM": ndim}
    scope["call"] = inlined(device(adopted.plain, "float32" if single else "float64"))
    scope |= {f"C{k}": computed(dtypes[k]) for k in range(count, end)}
    scope |= {f"R{k}": computed(d.name) for k, d in enumerate(adopted.results)}
    scope |= {f"read{k}": reading(d) for k, d in enumerate(dtypes)}
    scope |= {f"write{k}": writing(d) for k, d in enumerate(dtypes[:count])}
    exec(compile(source, f"<nbkernels {function.__name__}>", "exec"), scope)
    index = types.UniTuple(types.int64, ndim)
    operands = [part for d in dtypes for part in (types.CPointer(stored(d)), index)]
    name = f"{adopted.plain.__name__} {'-'.join(dtypes)} {ndim}-D{' masked' if masked else ''}"
    return Kernel(name, scope["loop"], (types.int64, index, *operands), THREADS)


def run(function, outs, inputs, where=None, fresh=False) -> None:
    """outs[k] = function(*inputs)[k], where `where` is not False; outs do not share memory with one another.

    `fresh`, whether nobody has touched theirs, is for the CPU's stores and changes nothing here.
    """
    like = outs[0]
    inputs = [uploaded(x, like) if isinstance(x, np.ndarray) else x for x in inputs]
    inputs = [_apart(outs, x) for x in (inputs if where is None else (*inputs, where))]
    arrays = [*outs, *inputs]
    loops = plan(*(tuple(tuple(getattr(x, name)) for x in arrays) for name in ("shape", "strides")),
                 tuple(x.dtype.itemsize for x in arrays))  # fmt: skip
    shape = loops.shape or (1,)
    walks = [(pointer(x, offset), elements(x, strides) or (0,)) for x, offset, strides
             in zip(arrays, loops.offsets, loops.strides)]  # fmt: skip
    made = kernel(function, tuple(x.dtype.name for x in arrays), len(outs), len(shape), where is not None)
    blocks = min(-(-loops.size // THREADS), multiprocessors() * BLOCKS)
    operands = [part for walk in walks for part in walk]
    launch(made, blocks, loops.size, shape, *operands, stream=like.stream)


def _apart(outs, x):
    """x, or a copy where an out really overlaps it other than element for element."""
    for out in outs:
        if not same(out, x, broadcast_strides(out.shape, x.shape, x.strides)) and clash(out, x):
            other = empty(x.shape, outs[0], x.dtype)
            copy(other, x)
            return other
    return x
