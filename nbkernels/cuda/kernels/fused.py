"""The kernel of a user's scalar function."""

import numpy as np
from numba import cuda, types

from ...jit.adopt import adopt
from .elements import computed, reading, stored, writing
from .functions import device, inlined

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


def make(function, dtypes: tuple[str, ...], count: int, ndim: int, masked: bool, threads: int):
    """The loop for `count` outputs, the arguments and perhaps a mask, of these dtypes."""
    end = len(dtypes) - masked
    arguments = tuple(map(np.dtype, dtypes[count:end]))
    adopted = adopt(function, arguments)
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
    scope = {"cuda": cuda, "THREADS": threads, "NDIM": ndim}
    scope["call"] = inlined(device(adopted.plain, "float32" if single else "float64"))
    scope |= {f"C{k}": computed(dtypes[k]) for k in range(count, end)}
    scope |= {f"R{k}": computed(d.name) for k, d in enumerate(adopted.results)}
    scope |= {f"read{k}": reading(d) for k, d in enumerate(dtypes)}
    scope |= {f"write{k}": writing(d) for k, d in enumerate(dtypes[:count])}
    exec(compile(source, f"<nbkernels {function.__name__}>", "exec"), scope)
    index = types.UniTuple(types.int64, ndim)
    operands = [part for d in dtypes for part in (types.CPointer(stored(d)), index)]
    return scope["loop"], (types.int64, index, *operands)
