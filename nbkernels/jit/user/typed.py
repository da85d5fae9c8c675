"""Numba's inference over a user's function, without compiling it: types, and whether it may raise."""

from __future__ import annotations

import functools
import operator
import types as python

import numba
import numpy as np

from ..compile import known
from ..compile.error_model import total
from ..compile.numba_internals import as_dtype, compiler, cpu_target, errors, ir, typed_passes
from ..ir.elements import number
from .scalar_function import SAFE, Typed, signature


def typed(function, copy, dtypes) -> Typed:
    """This of the copy of a function, for arguments of these dtypes."""
    code, typing = _inferred(copy, tuple(number(d.name) for d in dtypes))
    result = typing.return_type
    parts = result.types if isinstance(result, numba.types.BaseTuple) else (result,)
    results = [d.name for d in _dtypes(function, parts, dtypes)]
    names = [as_dtype(numba.types.unliteral(part)).name for part in parts]
    return Typed(results, names, _may_raise(code, typing.typemap))


def _dtypes(function, parts, dtypes) -> tuple[np.dtype, ...]:
    """Dtypes of the results. A kind that the arguments have is as wide as they are, as if Python numbers were weak, and
    integers are signed as the arguments are."""
    joined = functools.reduce(np.promote_types, dtypes)
    results = []
    for part in parts:
        if not isinstance(part, numba.types.Number | numba.types.Boolean):
            raise TypeError(
                f"{signature(function, dtypes)} returns {part}: it should return a number, or a tuple of them"
            )
        dtype = as_dtype(numba.types.unliteral(part))
        kind = "f" if joined.name == "bfloat16" else joined.kind
        whole = (
            dtype.kind in "iu" and kind in "iu" and dtype.itemsize == joined.itemsize
        )  # uint64 + 2 is int64 to Numba
        wider = {dtype.kind, kind} in ({kind}, {"i", "u"}) and dtype.itemsize > joined.itemsize
        results.append(joined if wider or whole else dtype)
    return tuple(results)


@total()
def _inferred(function, arguments):
    """A function as Numba sees it, and the types in it, without compiling it."""
    known.enter()
    typing, target = cpu_target.typing_context, cpu_target.target_context
    typing.refresh()
    target.refresh()
    code = compiler.run_frontend(function)
    return code, typed_passes.type_inference_stage(typing, target, code, arguments, None)


def _may_raise(code, types) -> bool:
    """Whether a function as Numba sees it, with these types of its variables, holds what may raise.

    That is an index, a `raise`, a complex division, which raises on CUDA, a power whose exponent is an integer that is
    not known, of which Numba refuses the smallest one, and a call of what is not known not to.
    """

    def of(variable, *kinds):
        return isinstance(types.get(variable.name), kinds)

    def risky(expr):
        if expr.op in ("getitem", "static_getitem", "typed_getitem"):  # a tuple's known ones are looked at by typing
            fixed = expr.op == "static_getitem" or isinstance(code.get_definition(expr.index), ir.Const)
            return not (fixed and of(expr.value, numba.types.BaseTuple))
        if expr.op in ("binop", "inplace_binop") and expr.fn in (operator.pow, operator.ipow):
            power = code.get_definition(expr.rhs)
            fixed = isinstance(power, ir.Const) and power.value >= 0
            return of(expr.rhs, numba.types.Integer) and not fixed
        if expr.op in ("binop", "inplace_binop") and expr.fn in (operator.truediv, operator.itruediv):
            return of(expr.lhs, numba.types.Complex) or of(expr.rhs, numba.types.Complex)
        if expr.op != "call":
            return expr.op == "make_function"
        called = _called(code, expr.func)
        if called is range:
            return len(expr.args) > 2  # a step may be 0
        if hasattr(called, "py_func"):
            overloads = getattr(known.dispatcher(called), "overloads", ())
            return any(_risky_for(called.py_func, arguments) for arguments in overloads)
        harmless = called in SAFE or isinstance(called, np.ufunc | type)
        return not (harmless or getattr(called, "__module__", "") == "math")

    statements = [statement for block in code.blocks.values() for statement in block.body]
    raising = any(isinstance(statement, ir.Raise) for statement in statements)
    return raising or any(risky(expr) for block in code.blocks.values() for expr in block.find_exprs())


def _risky_for(function, arguments) -> bool:
    """Whether a function that is called with arguments of these types holds what may raise."""
    try:
        code, typing = _inferred(function, arguments)
    except errors.NumbaError:  # it is typed, but not by one step alone: it has a `raise` in it
        return True
    return _may_raise(code, typing.typemap)


def _called(code, variable):
    """The function that a variable stands for; None where only a run would tell."""
    definition = code.get_definition(variable)
    if isinstance(definition, ir.Global | ir.FreeVar):
        return definition.value
    if getattr(definition, "op", None) == "getattr":
        module = _called(code, definition.value)
        return getattr(module, definition.attr, None) if isinstance(module, python.ModuleType) else None
    return None
