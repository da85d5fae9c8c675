"""sum_to: the folds of cpu/terms.py, by a context that is made in the function that calls it."""

from __future__ import annotations

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.core.errors import TypingError
from numba.extending import intrinsic, overload

from .. import ops
from ..cpu import reduce, terms
from ..jit.fold import BLOCK, DEALT, LANES
from ..jit.vector import I64, LINE
from .memory import address, dtype_of

FOLD, JOBS, TASKS, COPY, WIDTH, CHUNK, LENGTH, ROOM, OUT, IN, NEUTRAL = (word // 8 for word in (
    terms.FOLD, terms.JOBS, terms.TASKS, terms.COPY, terms.WIDTH, terms.CHUNK, terms.LENGTH, terms.ROOM, terms.OUT,
    terms.IN, terms.NEUTRAL))  # fmt: skip
KEPT, REDUCED, TERMS, TAKE, CHAIN, MERGE, FIRST, GIVE, ITEM, LANE, LEVELS, ROOMS, TURN, HIGH, HEADER = (
    word // 8 for word in (
        terms.KEPT, terms.REDUCED, terms.TERMS, terms.TAKE, terms.CHAIN, terms.MERGE, terms.FIRST, terms.GIVE,
        terms.ITEM, terms.LANE, terms.LEVELS, terms.ROOMS, terms.TURN, terms.HIGH, terms.HEADER))  # fmt: skip
GATHER, FUSED, DESK, WIDE, ALONE = terms.GATHER, terms.FUSED, terms.DESK, reduce.WIDE, reduce.ALONE


@numba.njit
def _context(out, x, width, exact):
    """What terms.walk reads of a sum of x, which has elements, to out; its codes are still to come. See
    reduce.prepared; neighbouring dimensions are joined where they are one walk, and stay in their order."""
    lead, item = x.ndim - out.ndim, x.itemsize
    kept, folded = np.zeros((x.ndim + 1, 3), np.int64), np.zeros((x.ndim + 1, 2), np.int64)
    keeps, folds, count = 0, 0, 1
    for d in range(x.ndim):
        n, step = x.shape[d], x.strides[d]
        if n == 1:
            continue
        if d >= lead and out.shape[d - lead] == n:
            to = out.strides[d - lead]
            joined = keeps > 0 and kept[keeps - 1, 1] == n * to and kept[keeps - 1, 2] == n * step
            keeps += not joined
            kept[keeps - 1] = (n * kept[keeps - 1, 0] if joined else n), to, step
        else:
            joined = folds > 0 and folded[folds - 1, 1] == n * step
            folds += not joined
            folded[folds - 1] = (n * folded[folds - 1, 0] if joined else n), step
            count *= n
    if keeps == 0:
        kept[0, 0], keeps = 1, 1
    if folds == 0:
        folded[0, 0], folded[0, 1], folds = 1, item, 1
    columns = kept[keeps - 1, 0]
    nearest = np.abs(folded[:folds, 1]).min()
    across = columns > 1 and abs(kept[keeps - 1, 2]) <= nearest
    lanes = 1 if exact or count < DEALT else LANES
    chunk = min(columns, max(16, (WIDE if lanes > 1 else ALONE) // width))
    length = (count if exact else BLOCK) if across else GATHER
    levels = 1
    while count // length >> levels - 1 > 0:
        levels += 1
    held = 0 if folds == 1 and folded[0, 1] == item else min(GATHER, chunk * count)
    room = levels * chunk * width + (DESK + lanes * chunk * width if across else held * item)
    room = (room + LINE - 1) // LINE * LINE + 2 * LINE
    words = HEADER + 3 * keeps + 2 * folds
    context = np.empty(words + (room + LINE) // 8, np.int64)
    context[:HEADER] = 0
    context[FOLD] = not across
    context[JOBS] = (columns + chunk - 1) // chunk * kept[: keeps - 1, 0].prod()
    context[TASKS], context[WIDTH], context[ITEM], context[CHUNK], context[LENGTH] = 1, width, item, chunk, length
    context[ROOM], context[ROOMS], context[LEVELS], context[LANE], context[HIGH] = room, 8 * words, levels, lanes, 16
    context[KEPT], context[REDUCED], context[TERMS] = keeps, folds, count
    context[OUT], context[IN], context[NEUTRAL] = address(out), address(x), address(context)
    context[HEADER : HEADER + 3 * keeps] = kept[:keeps].copy().reshape(3 * keeps)
    context[HEADER + 3 * keeps : words] = folded[:folds].copy().reshape(2 * folds)
    return context


def _walker(dtype: np.dtype, work: np.dtype):
    """An intrinsic (context) that sums items of a dtype by a context, once it has entered the codes that these need."""
    codes = {
        FOLD: reduce._rows_of("add", dtype, work, work.kind in "iu"),
        COPY: reduce._copies(*(np.dtype(f"V{dtype.itemsize}"),) * 3),
        TAKE: reduce._loop("add", work, dtype, work),
        CHAIN: reduce._loop("add", work, dtype, work, FUSED),
        MERGE: reduce._loop("add", work, work, work),
        FIRST: reduce._copies(dtype, work, work),
        GIVE: reduce._copies(work, work, dtype),
    }
    kind = ir.FunctionType(ir.VoidType(), [I64] * 2).as_pointer()

    @intrinsic
    def walk(typing, words):
        def emit(context, builder, signature, args):
            def code(part):
                return context.add_dynamic_addr(builder, part, info="nbkernels sum")

            array = context.make_array(signature.args[0])(context, builder, args[0])
            for word, part in codes.items():
                at = builder.gep(array.data, [I64(word)])
                value = builder.ptrtoint(code(part), I64)
                builder.store(builder.mul(value, builder.load(at)) if word == FOLD else value, at)
            at = builder.ptrtoint(array.data, I64)
            builder.call(builder.bitcast(code(terms.walker()), kind), [at, I64(0)])
            return context.get_dummy_value()

        return types.void(words), emit

    return walk


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
    walk, element, width, exact = _walker(dtype, work), self.dtype, work.itemsize, work.kind in "iu"
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
            walk(_context(np.atleast_1d(result), np.atleast_1d(self), width, exact))
        return end(result)

    sum_to.__name__ = sum_to.__qualname__ = f"sum_to_{dtype.name}_{self.ndim}_{len(size)}"
    return sum_to


@numba.njit(inline="always")
def _same(x):
    return x


@numba.njit(inline="always")
def _element(x):
    return x[()]
