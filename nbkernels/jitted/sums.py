"""Functions sum_to and reduce in jitted code, of folds in any order.
They call cpu/reduce/sums.py and tell it where the caller's arrays lie."""

from __future__ import annotations

import functools

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from .. import folds, ops
from ..cpu.reduce import loops, reduce
from ..cpu.reduce.sums import SUM
from ..dtypes import ASSOCIATIVE, SIGNLESS, identity, ufunc
from ..extension import teach
from ..jit.compile.numba_internals import TypingError, cgutils
from ..jit.ir.vector import I64
from .memory import absent, described, dtype_asked, dtype_of, named, spec
from .symbols import address as symbol

# The loops of a fold, of terms of a dtype whose partial results have the dtype `work`, to results of a dtype.
PARTS = {
    "walker": lambda op, dtype, work, out: loops.walker(),
    "fold": lambda op, dtype, work, out: reduce._rows_of(op, dtype, work, _exact(op, work)),
    "copy": lambda op, dtype, work, out: reduce.copies_of_items(dtype.itemsize, dtype.itemsize),
    "take": lambda op, dtype, work, out: reduce._loop(op, work, dtype, work),
    "chain": lambda op, dtype, work, out: reduce._loop(op, work, dtype, work, loops.FUSED),
    "merge": lambda op, dtype, work, out: reduce._loop(op, work, work, work),
    "first": lambda op, dtype, work, out: reduce.copies(dtype, work, work),
    "begin": lambda op, dtype, work, out: reduce.copies(work, work, work),
    "give": lambda op, dtype, work, out: reduce.copies(work, work, out),
}


def _part(name, op, *dtypes) -> int:
    return PARTS[name](op, *map(np.dtype, dtypes))


def _exact(op, work):
    """Whether any order gives the same bits."""
    return work.kind in "biu" or (op in reduce.EXACT and work.kind != "c")


@functools.cache
def _folding(op: str, dtype: np.dtype, out: np.dtype):
    """An intrinsic (out, x): fold x, which has elements, to out, whose sizes are x's or 1."""
    work = reduce.working(out)
    numbers = {"item": dtype.itemsize, "width": work.itemsize, "exact": int(_exact(op, work))}

    @intrinsic
    def into(typing, out, x):
        def emit(context, builder, signature, args):
            (target, _, sizes, to), (source, _, shape, steps) = (
                described(context, builder, kind, value) for kind, value in zip((out, x), args)
            )
            lead = x.ndim - out.ndim
            sizes, to = [I64(1)] * lead + sizes, [I64(0)] * lead + to
            dims = [value for d in zip(shape, sizes, to, steps) for value in d]
            values = {name: I64(number) for name, number in numbers.items()}
            for name in PARTS:
                key = name, op, dtype.name, work.name, result
                values[name] = symbol(context, builder, "jitted.sums:_part", *key)
            values |= {"out": target, "x": source, "ndim": I64(x.ndim)}
            facts = cgutils.alloca_once(builder, I64, SUM.words + len(dims))
            for at, value in [*((SUM[name], value) for name, value in values.items()), *enumerate(dims, SUM.words)]:
                builder.store(value, builder.gep(facts, [I64(at)]))
            run = symbol(context, builder, "cpu.reduce.sums:run")
            run = builder.inttoptr(run, ir.FunctionType(ir.VoidType(), [I64]).as_pointer())
            builder.call(run, [builder.ptrtoint(facts, I64)])
            return context.get_dummy_value()

        return types.void(out, x), emit

    result = out.name
    return into


@teach(ops.sum_to)
def _sum_to(self, size):
    if not isinstance(self, types.Array):
        raise TypingError(f"sum_to: self is {self}, and an array is wanted")
    if not isinstance(size, types.BaseTuple) or not all(isinstance(n, types.Integer) for n in size):
        raise TypingError(f"sum_to: size is {size}, and a tuple of ints is wanted")
    dtype = dtype_of("sum_to", "self", self.dtype)
    if dtype.kind == "b":
        raise TypingError("sum_to: self has dtype bool, of which there is no sum")
    into, element = _folding("add", dtype, dtype), self.dtype
    lead, whole = self.ndim - len(size), len(size) == 0
    if lead < 0:
        raise TypingError(f"sum_to: self has {self.ndim} dimensions and cannot be summed to {len(size)}")
    end = _element if whole else _same

    def sum_to(self, size):
        wanted, shape = (1, *size), (1, *self.shape)  # none of which is empty, which could not be indexed
        for d in range(1, len(wanted)):
            if wanted[d] != 1 and wanted[d] != shape[d + lead]:
                raise ValueError("sum_to: self cannot be summed to this shape")
        result = np.zeros(size, element)
        if self.size > 0:
            into(result, self)
        return end(result)

    sum_to.__name__ = sum_to.__qualname__ = f"sum_to_{dtype.name}_{self.ndim}_{len(size)}"
    return sum_to


@numba.njit(inline="always")
def _same(x):
    return x


@numba.njit(inline="always")
def _element(x):
    return x[()]


# -- reduce ------------------------------------------------------------------------------------------------------------


def _axes(title, axis):
    """What a keyword `axis` says, by its Numba type: an int, a tuple of them, or None."""
    if not isinstance(axis, types.Type):
        return axis
    if isinstance(axis, types.Omitted):
        return axis.value
    if isinstance(axis, types.NoneType):
        return None
    if isinstance(axis, types.IntegerLiteral):
        return axis.literal_value
    if isinstance(axis, types.BaseTuple) and all(isinstance(a, types.IntegerLiteral) for a in axis):
        return tuple(a.literal_value for a in axis)
    raise TypingError(f"{title}: axis must be an int, a tuple of ints or None that is written in the call, not {axis}")


def _kept(title, keepdims):
    if not isinstance(keepdims, types.Type):
        return keepdims
    if isinstance(keepdims, types.Omitted):
        return keepdims.value
    if not isinstance(keepdims, types.BooleanLiteral):
        raise TypingError(f"{title}: keepdims must be True or False, written in the call, not {keepdims}")
    return keepdims.literal_value


def _shape_of(name, ndim, wanted):
    """A jitted function of a shape: what `wanted` says for each dimension, "n" its size, "1" one, "" nothing."""
    sizes = {"n": "shape[{d}]", "1": "1"}
    parts = [sizes[word].format(d=d) for d, word in enumerate(wanted) if word]
    scope = {}
    exec(f"def of(shape):\n    return ({''.join(f'{part}, ' for part in parts)})", scope)
    return named(scope["of"], "shape", ndim, *(word or "0" for word in wanted))


def _reduction(op, self, axis, dtype, keepdims):
    title = f"{op}.reduce"
    x = spec(title, "self", self)
    if op not in ASSOCIATIVE or op in SIGNLESS:
        raise TypingError(f"{title}: jitted code folds what may come in any order; call {title} from Python")
    keepdims, given = _kept(title, keepdims), dtype_asked(title, "dtype", dtype)
    try:
        axes = folds.normal(op, _axes(title, axis), self.ndim)
        result = folds.reduce(x._replace(shape=(2,) * self.ndim), op, axes, keepdims=keepdims, dtype=given).dtype
    except (TypeError, ValueError, IndexError) as error:
        raise TypingError(str(error)) from None
    ones = ["1" if d in axes else "n" for d in range(self.ndim)]
    kept = ones if keepdims else ["" if d in axes else "n" for d in range(self.ndim)]
    wide, narrow = _shape_of(op, self.ndim, ones), _shape_of(op, self.ndim, kept)
    into, element, end = _folding(op, x.dtype, result), result.type, _same if any(kept) else _element
    nothing = ufunc(op).identity is None
    start = element(0) if nothing else identity(op, result)[()]
    if result == np.float16:
        start = np.float32(start)
    problem = f"{title} has no identity: there is nothing to reduce"

    def run(self):
        result = np.empty(wide(self.shape), element)
        if self.size > 0:
            into(result, self)
        elif result.size > 0:
            if nothing:
                raise ValueError(problem)
            result[...] = start
        return end(result.reshape(narrow(self.shape)))

    return named(run, op, "reduce", x.dtype, result, *(word or "0" for word in kept), *ones)


def _teach(op):
    """Overload op.reduce."""

    def typed(self, axis=0, dtype=None, out=None, keepdims=False, initial=None, where=None):
        for name, x in (("out", out), ("initial", initial), ("where", where)):
            if not absent(x):
                raise TypingError(f"{op}.reduce: {name} cannot be given in jitted code")
        body = _reduction(op, self, axis, dtype, keepdims)

        def run(self, axis=0, dtype=None, out=None, keepdims=False, initial=None, where=None):
            return body(self)

        run.__name__ = run.__qualname__ = body.py_func.__name__ + "_call"
        return run

    teach(METHODS[op].reduce)(typed)


METHODS = {name: function for name, function in vars(ops).items() if hasattr(function, "reduce")}

for _op in METHODS:
    _teach(_op)
