"""The functions that `elementwise` and `epilogue` make, called in jitted code.
The former are loops of one or two arguments, as those of element-wise operations; an epilogue is a product, and then
its function over the whole."""

from __future__ import annotations

import functools
import hashlib

import numpy as np
from numba import types
from numba.extending import overload

from .. import ops
from ..cpu.elementwise.loop import Loop
from ..cpu.elementwise.planner import MOST
from ..jit.compile.numba_internals import TypingError, cpu_target
from .elementwise import first_of, kind_of, looped, masked_by, number, out_dtype, runner, same, second_of
from .memory import absent, named

SAMPLES = {int: 1, float: 1.0, complex: 1j}


def _dtypes(name, operands):
    """The dtypes that the function is called with, and what each operand brings."""
    kinds = [kind_of(name, key, x) for key, x in operands.items()]
    arrays = [k for k, x in zip(kinds, operands.values()) if isinstance(x, types.Array)]
    if not arrays:
        raise TypingError(f"{name}: no array among {', '.join(operands)}")
    return kinds, tuple(np.result_type(*arrays, SAMPLES[k]) if k in SAMPLES else k for k in kinds)


def _operation(made, operands, out, where):
    """The jitted function (x, y, out, where) of what `elementwise` made, for operands of these Numba types."""
    name = made.__name__
    if len(operands) > 2:
        raise TypingError(f"{name}: it has {len(operands)} arguments, and jitted code calls functions of one or two")
    kinds, dtypes = _dtypes(name, operands)
    try:
        version = made.version()
        adopted, results = made.adopted(version, dtypes)
    except TypeError as error:
        raise TypingError(str(error)) from None
    if adopted.raises or len(results) > 1:
        why = "may raise" if adopted.raises else f"has {len(results)} results"
        raise TypingError(f"{name}: its function {why}: call it from Python")
    masked, (result,), names = masked_by(name, where), results, tuple(d.name for d in dtypes)
    arrays = [x for x in (*operands.values(), where) if isinstance(x, types.Array)]
    ndim = max(x.ndim for x in arrays)
    if ndim > MOST:
        raise TypingError(f"{name}: at most {MOST} dimensions, not {ndim}")
    stored = result if absent(out) else out_dtype(name, out, result, ndim)
    record = Loop(adopted.function, names, (*names, *(d.name for d in adopted.results)), stored.name, masked=masked)
    convert = [
        same if isinstance(x, types.Array) else named(number(name, key, k, d), name, key, k, d)
        for (key, x), k, d in zip(operands.items(), kinds, dtypes)
    ]
    alone = len(operands) == 1
    body = looped(
        name,
        runner(record, record),
        [*convert, same] if alone else convert,
        result=(stored, ndim, ndim > 1 and all(x.layout == "F" for x in arrays if x.ndim == ndim)),
        factor=np.int64,
        check=first_of,
        mask=first_of if masked and not alone else second_of,
        choose=second_of,
        fresh=absent(out),
    )
    loops = named(body, record)
    if not alone:
        call = lambda x, y, out, where: loops(x, y, 1, out, where, None)  # noqa: E731
    elif masked:  # which is the second operand of loops of one
        call = lambda x, y, out, where: loops(x, where, 1, out, None, None)  # noqa: E731
    else:
        call = lambda x, y, out, where: loops(x, x, 1, out, None, None)  # noqa: E731
    return named(call, record, "call", alone)


CALL = """
def stand({first}, out=None, where=None):
    raise NotImplementedError

def typed({first}, out=None, where=None):
    body = operation(made, dict({operands}), out, where)
    def run({first}, out=None, where=None):
        return body({x}, {y}, out, where)
    run.__name__ = run.__qualname__ = body.py_func.__name__ + "_of"
    return run
"""

ENDED = """
def stand(input, mat1, mat2{more}, beta=1, alpha=1, out=None):
    raise NotImplementedError

def typed(input, mat1, mat2{more}, beta=1, alpha=1, out=None):
    def run(input, mat1, mat2{more}, beta=1, alpha=1, out=None):
        return apply(addmm(input, mat1, mat2, beta=beta, alpha=alpha){more}, out=out)
    run.__name__ = run.__qualname__ = name
    return run
"""


def _taught(text, scope, words):
    exec(text.format(**words), scope)
    overload(scope["stand"])(scope["typed"])
    cpu_target.typing_context.refresh()
    return cpu_target.typing_context.resolve_value_type(scope["stand"])


def _digest(made):
    """Of what its function is and reads."""
    return hashlib.sha256(repr(made.version().frozen.key).encode()).hexdigest()[:16]


@functools.cache
def of_elementwise(made):
    """The Numba type of what `elementwise` made: that of a function which stands for it."""
    names = [p.name for p in made.parameters]
    words = dict(first=", ".join(names), operands=", ".join(f"{n}={n}" for n in names), x=names[0], y=(names * 2)[1])
    return _taught(CALL, {"operation": _operation, "made": made}, words)


@functools.cache
def of_epilogue(made):
    """And of what `epilogue` made."""
    names = [p.name for p in made.apply.parameters]
    scope = {"apply": made.apply, "addmm": ops.addmm, "name": f"epilogue_{_digest(made.apply)}"}
    return _taught(ENDED, scope, dict(more="".join(f", {name}" for name in names[1:])))
