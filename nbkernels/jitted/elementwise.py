"""Element-wise operations: their loops become part of the function that calls them.

Numbers are weak where Python's are: an int64, a float64 or a complex128, which an int, a float and a complex are in
jitted code, takes the array's dtype where its kind can hold it. NumPy's numbers of other dtypes, and bools, bring
their own.
"""

from __future__ import annotations

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from .. import ops, scalar
from ..binary import factor
from ..cpu.elementwise import planner
from ..cpu.elementwise.elementwise import spec
from ..cpu.elementwise.loops import loops
from ..cpu.elementwise.planner import MOST, OPERAND, OPERANDS
from ..dtypes import COMPARISONS, resolve
from ..extension import teach
from ..jit.abi.address import scratch
from ..jit.compile.build import embedded
from ..jit.compile.numba_internals import TypingError
from ..jit.ir.vector import I64
from ..operations import BINARY, UNARY
from . import symbols
from .memory import absent, described, dtype_asked, dtype_of, named

WEAK = {types.int64: int, types.float64: float, types.complex128: complex}
NUMBER = 16  # bytes for one of any dtype
NUMBERS = OPERAND.bytes * OPERANDS  # alpha, where the blocks end, then the operands that are numbers
ROOM = NUMBERS + NUMBER * OPERANDS


# -- what an operation is, by the types of its operands ---------------------------------------------------------------


def kind_of(op, name, x):
    """What an operand brings to the choice of dtypes: as dtypes.kind, of a Numba type."""
    array = isinstance(x, types.Array)
    if not array and not isinstance(x, types.Number | types.Boolean):
        raise TypingError(f"{op}: {name} is {x}, and an array or a number is wanted")
    if not array and x in WEAK:
        return WEAK[x]
    return dtype_of(op, name, x.dtype if array else x)


def _resolved(op, self, other, wanted):
    """(self, other, result): the dtypes that operands of these Numba types are computed in and come out as."""
    if not (isinstance(self, types.Array) or isinstance(other, types.Array)):
        raise TypingError(f"{op}: no array among self and other: {self}, {other}")
    kinds = [kind_of(op, "self", self), kind_of(op, "other", other)]
    for i, beside in enumerate((kinds[1], kinds[0])):
        if op in COMPARISONS and kinds[i] is int and getattr(beside, "kind", "") in "iu":
            kinds[i] = np.dtype(np.int64)  # compared exactly, whatever it is
    try:
        return kinds, resolve(op, *kinds, wanted)
    except TypeError as error:
        raise TypingError(str(error)) from None


def _scaled(op, result, alpha):
    """Whether alpha, by its Numba type, was given; an error where it is not a number of the result's kind."""
    if absent(alpha):
        return False
    kinds = {types.Boolean: bool, types.Integer: int, types.Float: float, types.Complex: complex}
    python = next((python for kind, python in kinds.items() if isinstance(alpha, kind)), None)
    if python is None:
        raise TypingError(f"{op}: alpha is {alpha}, and a number is wanted")
    try:
        factor(op, result, python(1))
    except TypeError as error:
        raise TypingError(str(error)) from None
    return True


# -- operands in words ------------------------------------------------------------------------------------------------


@intrinsic
def _describe(typing, words, p, x):
    """Fill in the block of operand p, a number or an array."""
    if isinstance(x, types.Array):
        return types.void(words, p, x), _describe_array

    def emit(context, builder, signature, args):
        value = context.get_value_as_data(builder, x, args[2])
        at = builder.add(args[0], builder.add(I64(NUMBERS), builder.mul(args[1], I64(NUMBER))))
        builder.store(value, builder.inttoptr(at, value.type.as_pointer()))
        _write(builder, args, [at, I64(context.get_abi_sizeof(value.type)), I64(0)])
        return context.get_dummy_value()

    return types.void(words, p, x), emit


def _describe_array(context, builder, signature, args):
    kind = signature.args[2]
    data, item, shape, steps = described(context, builder, kind, args[2])
    _write(builder, args, [data, item, I64(kind.ndim), *shape])
    _write(builder, args, steps, OPERAND["step"])
    return context.get_dummy_value()


def _write(builder, args, values, first=0):
    """Store words of an operand's block."""
    at = builder.add(builder.mul(args[1], I64(OPERAND.words)), I64(first))
    block = builder.gep(builder.inttoptr(args[0], I64.as_pointer()), [at])
    for i, value in enumerate(values):
        builder.store(value, builder.gep(block, [I64(i)]))


@intrinsic
def _shape(typing, words, ndim):
    """The shape of operand 0, of `ndim` (a literal) dimensions."""

    def emit(context, builder, signature, args):
        words = builder.inttoptr(args[0], I64.as_pointer())
        sizes = [builder.load(builder.gep(words, [I64(OPERAND["shape"] + d)])) for d in range(ndim.literal_value)]
        return context.make_tuple(builder, signature.return_type, sizes)

    literal = isinstance(ndim, types.IntegerLiteral)
    return (types.UniTuple(types.int64, ndim.literal_value)(words, ndim), emit) if literal else None


@intrinsic
def _fit(typing, words, given):
    """planner.fit, of the operands at `words`."""

    def emit(context, builder, signature, args):
        return builder.call(embedded(context, builder, planner.fit(), ir.FunctionType(I64, [I64] * 2)), args)

    return types.int64(types.int64, types.int64), emit


def runner(plain, scaled):
    """An intrinsic that calls planner.run with the loops of one record or, unless `one`, of the other."""

    @intrinsic
    def run(typing, words, one, room):
        def emit(context, builder, signature, args):
            symbols.of_version(context)
            kind = ir.FunctionType(ir.VoidType(), [I64] * 6)
            inner = [builder.ptrtoint(embedded(context, builder, loops(x), kind), I64) for x in (plain, scaled)]
            outer = embedded(context, builder, planner.run(), ir.FunctionType(I64, [I64] * 4))
            place = I64(0)
            if isinstance(room, types.Array):
                array = context.make_array(room)(context, builder, args[2])
                place = builder.ptrtoint(array.data, I64)
            scalars = builder.add(args[0], I64(NUMBERS))
            return builder.call(outer, [args[0], builder.select(args[1], *inner), scalars, place])

        return types.int64(words, one, room), emit

    return run


# -- the operation ----------------------------------------------------------------------------------------------------


def number(op, name, kind, dtype):
    """A number as one of the dtype that it is computed in; an error at run time where that cannot hold an int."""
    to = dtype.type
    if kind is int and dtype.kind == "f":
        return lambda x: to(np.float64(x))  # as NumPy does
    if kind is not int or dtype.kind not in "iu":
        return lambda x: to(x)
    bounds = np.iinfo(dtype)
    least, most = bounds.min, min(bounds.max, np.iinfo(np.int64).max)
    problem = f"{op}: {name} is out of bounds for {dtype} ({bounds.min} to {bounds.max})"

    def number(x):
        if x < least or x > most:
            raise OverflowError(problem)
        return to(x)

    return number


@numba.njit
def _natural(x, where):
    """Raise where an exponent is negative that is not masked off."""
    if np.asarray(np.logical_and(x < 0, where)).any():
        raise ValueError("pow: integers to negative integer powers are not allowed")


def out_dtype(op, out, result, ndim):
    """The dtype of an out, by its Numba type, that a result of a dtype and so many dimensions can go to."""
    if not isinstance(out, types.Array) or not out.mutable or out.ndim != ndim:
        raise TypingError(f"{op}: an array of {ndim} dimensions to write to is wanted, and out is {out}")
    dtype = kind_of(op, "out", out)
    if not np.can_cast(result, dtype, "same_kind"):
        raise TypingError(f"{op}: the result is {result}, which cannot be cast (same_kind) to out: {dtype}")
    return dtype


def masked_by(op, where):
    """Whether `where`, by its Numba type, was given; an error where it is neither bools nor a bool."""
    if absent(where):
        return False
    if getattr(where, "dtype", where) != types.boolean:
        raise TypingError(f"{op}: where is {where}, and an array of bools, or a bool, is wanted")
    return True


def _operation(op, self, other, alpha, out, where, dtype, in_place):
    """The function (self, other, alpha, out, where, dtype) of an operation for operands of these Numba types."""
    target = self if in_place else out
    operands = self, other
    wanted = dtype_asked(op, "dtype", dtype)
    kinds, (*work, result) = _resolved(op, *operands, wanted)
    masked = masked_by(op, where)
    arrays = [x for x in operands if isinstance(x, types.Array)]
    ndim = max(x.ndim for x in (*arrays, where) if isinstance(x, types.Array))
    if ndim > MOST:
        raise TypingError(f"{op}: at most {MOST} dimensions, not {ndim}")
    stored = result if absent(target) else out_dtype(op, target, result, ndim)
    inputs = [k if isinstance(x, types.Array) else w for x, k, w in zip(operands, kinds, work)]
    keywords = dict(dtype=wanted, masked=masked, checked=False)
    record = spec(op, *inputs, stored, **keywords)
    scaled = spec(f"{op}_scaled", *inputs, stored, **keywords) if _scaled(op, result, alpha) else record
    convert = [
        same if isinstance(x, types.Array) else named(number(op, name, k, w), op, name, k, w)
        for x, name, k, w in zip(operands, ("self", "other"), kinds, work)
    ]
    columns = ndim > 1 and all(x.layout == "F" for x in arrays if x.ndim == ndim)
    body = looped(
        op,
        runner(record, scaled),
        convert,
        result=(stored, ndim, columns),
        factor=result.type,
        check=_natural if op == "pow" and work[0].kind == "i" else first_of,
        mask=first_of if masked else second_of,
        choose=first_of if in_place else second_of,
        fresh=absent(target),
    )
    body.__name__ = body.__qualname__ = f"{op}_{record}_{scaled == record}"
    return body


def looped(op, run, convert, *, result, factor, check, mask, choose, fresh):
    """The function (self, other, alpha, out, where, dtype) of loops that `run` knows. `convert`: each operand to what
    they read; `result`: its dtype, its dimensions, and whether it lies in Fortran's order; `check` looks at `other`
    beside the mask; `choose` finds what is written, of self and out, unless the result is `fresh`."""
    (first, second), (stored, ndim, columns) = convert, result
    element, make, end = stored.type, _columns if columns else _rows, same if ndim else _element
    apart, wrong, twice = (f"{op}: {text}" for text in PROBLEMS)

    def new(self, other, alpha=1, out=None, where=None, dtype=None):
        words, y, chosen = scratch(ROOM), second(other), mask(where, True)
        _describe(words, 0, factor(alpha))  # which lies where a number in the output's place would
        _describe(words, 1, first(self))
        _describe(words, 2, y)
        _describe(words, 3, chosen)
        if _fit(words, 0) != planner.DONE:
            raise ValueError(apart)
        check(y, chosen)
        result = make(_shape(words, ndim), element)
        _describe(words, 0, result)
        run(words, alpha == 1, None)
        return end(result)

    def into(self, other, alpha=1, out=None, where=None, dtype=None):
        words, target, y, chosen = scratch(ROOM), choose(self, out), second(other), mask(where, True)
        _describe(words, 0, factor(alpha))
        _describe(words, 0, target)
        _describe(words, 1, first(self))
        _describe(words, 2, y)
        _describe(words, 3, chosen)
        status = _fit(words, 1)
        if status == planner.MISMATCH:
            raise ValueError(apart)
        if status == planner.RESHAPED:
            raise ValueError(wrong)
        if status == planner.SHARED:
            raise ValueError(twice)
        check(y, chosen)
        room = run(words, alpha == 1, None)
        if room > 0:
            run(words, alpha == 1, np.empty(room, np.uint8))
        return target

    return new if fresh else into


PROBLEMS = (
    "the shapes do not broadcast",
    "out has not the result's shape, and is never resized or broadcast into",
    "elements of out share memory: pass an array that owns each of its elements",
)


@numba.njit(inline="always")
def same(x):
    return x


@numba.njit(inline="always")
def first_of(x, y):
    return x


@numba.njit(inline="always")
def second_of(x, y):
    return y


@numba.njit(inline="always")
def _element(x):
    return x[()]


@numba.njit(inline="always")
def _rows(shape, dtype):
    return np.empty(shape, dtype)


@numba.njit(inline="always")
def _columns(shape, dtype):
    return np.empty(shape[::-1], dtype).T


def _teach(op):
    """Overload the public functions of an operation."""
    scaled = scalar.exists(f"{op}_scaled")

    def typed(self, other, alpha=1, out=None, where=None, dtype=None):
        if not (scaled or absent(alpha)):
            raise TypingError(f"{op} takes no alpha")
        return _operation(op, self, other, alpha, out, where, dtype, False)

    def in_place(self, other, alpha=1, out=None, where=None, dtype=None):
        if not absent(out) or not (scaled or absent(alpha)):
            raise TypingError(f"{op}_ takes no {'alpha' if absent(out) else 'out'}")
        return _operation(op, self, other, alpha, out, where, dtype, True)

    teach(getattr(ops, op))(typed)
    teach(getattr(ops, f"{op}_"))(in_place)


def _teach_alone(op):
    """Overload the public functions of an operation of one: it gets its operand twice."""

    def operation(self, out, where, dtype, in_place):
        if not isinstance(self, types.Array):
            raise TypingError(f"{op}: self is {self}, and an array is wanted")
        body = _operation(op, self, self, types.none, out, where, dtype, in_place)
        return named(body, body.__name__)

    def typed(self, out=None, where=None, dtype=None):
        body = operation(self, out, where, dtype, False)
        return lambda self, out=None, where=None, dtype=None: body(self, self, 1, out, where, dtype)

    def in_place(self, where=None, dtype=None):
        body = operation(self, None, where, dtype, True)
        return lambda self, where=None, dtype=None: body(self, self, 1, None, where, dtype)

    def rounded(self, decimals=0, out=None, where=None, dtype=None):
        whole(decimals)
        body = operation(self, out, where, dtype, False)
        return lambda self, decimals=0, out=None, where=None, dtype=None: body(self, self, 1, out, where, dtype)

    def rounded_in_place(self, decimals=0, where=None, dtype=None):
        whole(decimals)
        body = operation(self, None, where, dtype, True)
        return lambda self, decimals=0, where=None, dtype=None: body(self, self, 1, None, where, dtype)

    def whole(decimals):
        if getattr(decimals, "value", decimals) != 0:
            raise TypingError("round: decimals cannot be given in jitted code: call np.round")

    if op == "round":
        typed, in_place = rounded, rounded_in_place
    teach(getattr(ops, op))(typed)
    teach(getattr(ops, f"{op}_"))(in_place)


for _op in BINARY:
    _teach(_op)
for _op in UNARY:
    _teach_alone(_op)
