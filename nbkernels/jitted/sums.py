"""sum_to: cpu/sums.py, which the caller tells where its arrays lie."""

from __future__ import annotations

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.errors import TypingError
from numba.extending import intrinsic, overload

from .. import ops
from ..cpu.reduce import loops, reduce, sums
from ..cpu.reduce.sums import SUM
from ..jit.vector import I64
from .memory import described, dtype_of


def _loops(dtype: np.dtype, work: np.dtype) -> dict:
    """What a sum of items of a dtype goes by, as words of sums.SUM."""
    return {
        "item": dtype.itemsize,
        "width": work.itemsize,
        "exact": int(work.kind in "iu"),
        "walker": loops.walker(),
        "fold": reduce._rows_of("add", dtype, work, work.kind in "iu"),
        "copy": reduce._copies(*(np.dtype(f"V{dtype.itemsize}"),) * 3),
        "take": reduce._loop("add", work, dtype, work),
        "chain": reduce._loop("add", work, dtype, work, loops.FUSED),
        "merge": reduce._loop("add", work, work, work),
        "first": reduce._copies(dtype, work, work),
        "give": reduce._copies(work, work, dtype),
    }


def _summing(dtype: np.dtype, work: np.dtype):
    """An intrinsic (out, x): sum x, which has elements, to out."""
    words = _loops(dtype, work)

    @intrinsic
    def into(typing, out, x):
        def emit(context, builder, signature, args):
            (target, _, sizes, to), (source, _, shape, steps) = (
                described(context, builder, kind, value) for kind, value in zip((out, x), args)
            )
            lead = x.ndim - out.ndim
            sizes, to = [I64(1)] * lead + sizes, [I64(0)] * lead + to
            dims = [value for d in zip(shape, sizes, to, steps) for value in d]
            values = {name: I64(word) for name, word in words.items() if name in ("item", "width", "exact")}
            for name in words.keys() - values.keys():  # an address of this process: the caller is not kept on disk
                values[name] = builder.ptrtoint(
                    context.add_dynamic_addr(builder, words[name], info="nbkernels sum"), I64
                )
            values |= {"out": target, "x": source, "ndim": I64(x.ndim)}
            facts = cgutils.alloca_once(builder, I64, SUM.words + len(dims))
            for at, value in [*((SUM[name], value) for name, value in values.items()), *enumerate(dims, SUM.words)]:
                builder.store(value, builder.gep(facts, [I64(at)]))
            run = context.add_dynamic_addr(builder, sums.run(), info="nbkernels sum")
            run = builder.bitcast(run, ir.FunctionType(ir.VoidType(), [I64]).as_pointer())
            builder.call(run, [builder.ptrtoint(facts, I64)])
            return context.get_dummy_value()

        return types.void(out, x), emit

    return into


@overload(ops.sum_to)
def _sum_to(self, size):
    if not isinstance(self, types.Array):
        raise TypingError(f"sum_to: self is {self}, and an array is wanted")
    if not isinstance(size, types.BaseTuple) or not all(isinstance(n, types.Integer) for n in size):
        raise TypingError(f"sum_to: size is {size}, and a tuple of ints is wanted")
    dtype = dtype_of("sum_to", "self", self.dtype)
    if dtype.kind == "b":
        raise TypingError("sum_to: self has dtype bool, of which there is no sum")
    work = reduce.working(dtype)
    into, element = _summing(dtype, work), self.dtype
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
