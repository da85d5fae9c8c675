"""Plain scalar functions as kernels call them: inlined with all that they call; generic ones by dtype."""

from __future__ import annotations

import dis
import functools
import types as python

from llvmlite import ir
from numba import cuda, types
from numba.core.cgutils import get_or_insert_function
from numba.cuda.extending import intrinsic

from ...dispatch.driver import simulated
from ...elementary.real import KERNELS, bits, floor, fma, number
from ...scalar.complexes import wide

PARTS = {"complex64": "float32", "complex128": "float64"}
SIMULATED = simulated()
if SIMULATED:
    from . import simulator  # noqa: F401, what it lacks


def inlined(function):
    """A function that kernels call: written into them before they are typed, so that its constants are theirs."""
    return function if SIMULATED else cuda.jit(device=True, inline="always")(function)


_PAIRS = ((types.float32, types.int32), (types.float64, types.int64))
_OF_WIDTH = dict(_PAIRS) | {whole: real for real, whole in _PAIRS}


@intrinsic
def _cast(typing, x):
    """The bits of x as the other kind of number of its width."""

    def emit(context, builder, signature, args):
        return builder.bitcast(args[0], context.get_value_type(signature.return_type))

    return (_OF_WIDTH[x](x), emit) if x in _OF_WIDTH else None


@inlined
def _fused(a, b, c):
    return cuda.fma(a, b, c)


@intrinsic
def _floor(typing, x):
    """libdevice's, of either width: of integers it is asked in the floats that they are divided in."""
    name = {types.float32: "__nv_floorf", types.float64: "__nv_floor"}.get(x)

    def emit(context, builder, signature, args):
        kind = context.get_value_type(x)
        return builder.call(get_or_insert_function(builder.module, ir.FunctionType(kind, [kind]), name), args)

    return (x(x), emit) if name else None


@functools.cache
def _module(module, dtype):
    """A user's function reads math's and NumPy's functions from a copy of the module, where some are KERNELS."""
    copy = python.ModuleType(module.__name__)
    members = vars(module).items()
    copy.__dict__.update(
        (k, device(v, dtype) if python.FunctionType is type(v) and v in KERNELS else v) for k, v in members
    )
    return copy


@functools.cache
def device(function, dtype: str):
    """A plain function of numbers of `dtype` for kernels to call. What it calls for parts of complex ones is of their
    dtype, and of float64 where it makes them `wide`."""
    if SIMULATED:
        return function
    known = {fma: _fused, bits: _cast, number: _cast, floor: _floor}
    if function in known:
        return known[function]
    body = KERNELS[function][PARTS.get(dtype, dtype)] if function in KERNELS else function

    def replaced(value):
        if isinstance(value, python.ModuleType) and value.__spec__ is None:  # a copy by jit/user/scalar_function.py
            return _module(value, dtype)
        return device(value, dtype) if isinstance(value, python.FunctionType) else value

    names = {i.argval for i in dis.get_instructions(body) if i.opname == "LOAD_GLOBAL"}  # no attributes, as math.fmod
    dtype = "float64" if any(body.__globals__.get(name) is wide for name in names) else dtype
    scope = {name: replaced(value) if callable(value) else value for name, value in body.__globals__.items()
             if name in names}  # fmt: skip
    cells = [cell.cell_contents for cell in body.__closure__ or ()]
    closure = tuple(python.CellType(replaced(value) if callable(value) else value) for value in cells)
    copy = python.FunctionType(body.__code__, scope, body.__name__, body.__defaults__, closure)
    return inlined(copy)
