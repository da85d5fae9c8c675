"""Calls of compiled loops from compiled code, by their address."""

from __future__ import annotations

from llvmlite import ir

from ..compile.lazy import intrinsic, jit, types
from ..ir.vector import I64, VOID, once


def _binary(module) -> ir.Function:
    """void(loops, three pointers, rows, columns, three row steps, three column steps): adjacent rows are passed as one.

    One LLVM function a module, not inlined: a jitted helper with a dozen callers takes 0.7 s longer to compile.
    """
    helper, builder = once(module, "call_binary", [I64] * 12)
    if builder is None:
        return helper
    function, rows, columns = helper.args[0], helper.args[4], helper.args[5]
    pointers, row_steps, column_steps = helper.args[1:4], helper.args[6:9], helper.args[9:12]
    one = ir.IntType(1)(1)
    for ahead, step in zip(row_steps, column_steps):
        one = builder.and_(one, builder.icmp_signed("==", ahead, builder.mul(columns, step)))
    all_columns = builder.select(one, builder.mul(rows, columns), columns)
    addresses = []
    for values in (pointers, row_steps, column_steps):
        room = builder.alloca(ir.ArrayType(I64, 3))
        for p, value in enumerate(values):
            builder.store(value, builder.gep(room, [I64(0), I64(p)]))
        addresses.append(builder.ptrtoint(room, I64))
    loops = builder.inttoptr(function, ir.FunctionType(VOID, [I64] * 6).as_pointer())
    builder.call(loops, [addresses[0], builder.select(one, I64(1), rows), all_columns, *addresses[1:], I64(0)])
    builder.ret_void()
    return helper


@intrinsic
def call_rows(typing, function, pointers, sizes, row_steps, column_steps):
    """Call loops of two inputs: three addresses, (rows, columns), three steps from row to row and column to column."""

    def emit(context, builder, signature, args):
        given = [builder.extract_value(each, i) for each in args[1:] for i in range(each.type.count)]
        builder.call(_binary(builder.module), [args[0], *given])
        return context.get_dummy_value()

    three = types.UniTuple(types.int64, 3)
    return types.void(types.int64, three, types.UniTuple(types.int64, 2), three, three), emit


@jit(forceinline=True)
def call_binary(function, pointers, columns, steps):
    """Call loops of two inputs for one row."""
    call_rows(function, pointers, (1, columns), (0, 0, 0), steps)
