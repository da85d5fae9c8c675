"""float16 in jitted code on CPUs, as its 16 bits: Numba knows the dtype by name there, and makes no code for it.

Arrays of it can be made, indexed, copied and returned. A number of it becomes a float32 or a float64 where Numba wants
one, as in sums and products of its own, is rounded once to become one, and goes to Python as a float.
"""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.extending import NativeValue, lower_cast

from ..jit.compile.numba_internals import PrimitiveModel, _boxers, _unboxers, default_manager
from ..jit.ir.convert import narrow, widen

# Numba's own, which know float32 and float64.
_model, _box, _unbox = (by[types.Float] for by in (default_manager._handlers, _boxers.functions, _unboxers.functions))


class Floats(_model):
    """Numba's model of floats, and one of float16."""

    def __init__(self, dmm, kind):
        if kind == types.float16:
            PrimitiveModel.__init__(self, dmm, kind, ir.IntType(16))
        else:
            super().__init__(dmm, kind)


def _to_python(kind, value, c):
    if kind == types.float16:
        value, kind = _widened(c.context, c.builder, kind, types.float64, value), types.float64
    return _box(kind, value, c)


def _from_python(kind, value, c):
    if kind != types.float16:
        return _unbox(kind, value, c)
    found = _unbox(types.float64, value, c)
    return NativeValue(_narrowed(c.context, c.builder, types.float64, kind, found.value), is_error=found.is_error)


@lower_cast(types.float16, types.float32)
@lower_cast(types.float16, types.float64)
def _widened(context, builder, have, want, value):
    return widen(builder, value, "float16", want.name)


@lower_cast(types.float32, types.float16)
@lower_cast(types.float64, types.float16)
def _narrowed(context, builder, have, want, value):
    return narrow(builder, value if have == types.float32 else _odd(builder, value), "float32", "float16")


@lower_cast(types.Integer, types.float16)
@lower_cast(types.Boolean, types.float16)
def _from_whole(context, builder, have, want, value):
    return _narrowed(context, builder, types.float64, want, context.cast(builder, value, have, types.float64))


@lower_cast(types.float16, types.Integer)
@lower_cast(types.float16, types.Complex)
def _to_others(context, builder, have, want, value):
    return context.cast(builder, _widened(context, builder, have, types.float64, value), types.float64, want)


def _odd(builder, value):
    """A float64 as a float32, towards zero, whose last bit says that something is left out: what is rounded from it to
    fewer bits is rounded once."""
    bits, single, double = ir.IntType(32), ir.FloatType(), ir.DoubleType()
    near = builder.fptrunc(value, single)
    back, told = builder.fpext(near, double), builder.bitcast(near, bits)
    sizes = [builder.call(builder.module.declare_intrinsic("llvm.fabs", [double]), [each]) for each in (back, value)]
    over = builder.zext(builder.fcmp_ordered(">", *sizes), bits)
    odd = builder.or_(builder.sub(told, over), bits(1))
    return builder.bitcast(builder.select(builder.fcmp_ordered("!=", back, value), odd, told), single)


default_manager.register(types.Float, Floats)
_boxers.functions[types.Float], _unboxers.functions[types.Float] = _to_python, _from_python
