"""Products of matrices, batches and vectors in jitted code, of every dtype that Numba knows.
They use one thread, or as many as a block of nbkernels.threads says.

The dtypes, and what is wrong with them, are those of the rules that the calls from Python have (meta.py, products.py):
they get specs whose sizes only run time tells.
"""

from __future__ import annotations

import functools

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from .. import meta, ops, products
from ..cpu.gemm import call
from ..cpu.gemm.kinds import kind_of
from ..cpu.gemv import mv
from ..cpu.runtime import status
from ..extension import teach
from ..jit.abi.ndarray import MOST
from ..jit.compile.numba_internals import RETCODE_USEREXC, TypingError, cgutils
from ..jit.ir.vector import I64
from .memory import absent, address, described, dtype_asked, header, named, spec
from .symbols import address as symbol

MESSAGES = {
    status.INNER: "nbkernels: the operands cannot be multiplied, their inner sizes differ",
    status.BATCHES: "nbkernels: the batches differ in size",
    status.OUT: "nbkernels: out has not the product's shape",
    status.SELF: "nbkernels: self cannot be expanded to the product's shape",
    status.OVERLAPS: "nbkernels: out overlaps a matrix or a vector",
    status.OVERLAPS_SELF: "nbkernels: out overlaps self",
    status.TWICE: "nbkernels: out has one element in several places",
    status.UNEVEN: "nbkernels: strides that are no multiple of the item's size",
}


def _raised(context, builder, fault):
    """Raise a fault as an error, in one place: so Numba sees that arrays need no references of their own until then."""
    python, convention, found = context.get_python_api(builder), context.call_conv, None
    with builder.if_then(builder.icmp_signed("!=", fault, I64(status.DONE)), likely=False):
        for each, text in MESSAGES.items():
            error = python.serialize_object(convention.build_excinfo_struct(ValueError, (text,), None, None))
            told = builder.icmp_signed("==", fault, I64(each))
            found = error if found is None else builder.select(told, error, found)
        stored = builder.store(found, convention._get_excinfo_argument(builder.function))
        stored.set_metadata("numba_exception_output", builder.module.add_metadata([ir.IntType(1)(1)]))
        convention._return_errcode_raw(builder, RETCODE_USEREXC)


# -- kernels, which callers know by symbols ----------------------------------------------------------------------------


def _plan(*kind) -> int:
    return call.plan(kind_of(*kind))[0]


def _alone(ndims, *kind) -> int:
    """Return the address of what multiplies small operands, or 0; a matrix by a vector in the order of mv."""
    found = call.alone(kind_of(*kind))
    return mv.native(kind[0]) if found and sorted(ndims) == [1, 2] else found


# -- how operands become matrices --------------------------------------------------------------------------------------


def _as_it_is(shape, steps):
    return shape, steps


def _row(shape, steps):
    return ([I64(1), *shape], [I64(0), *steps]) if len(shape) < 2 else (shape, steps)


def _column(shape, steps):
    return [*shape, I64(1)], [*steps, I64(0)]


def _transposed(shape, steps):
    return shape[::-1], steps[::-1]


def _one(shape, steps):
    return [I64(1)] * 2, [I64(0)] * 2


# Views of out, of what is added, of the factors.
PLAIN = (_as_it_is,) * 4
VIEWS = {
    "linear": (_row, _as_it_is, _row, _transposed),
    "outer": (_as_it_is, _as_it_is, _column, _row),
    "addr": (_as_it_is, _as_it_is, _column, _row),
    "dot": (_one, _as_it_is, _row, _column),
    "vdot": (_one, _as_it_is, _row, _column),
}


# -- the call ----------------------------------------------------------------------------------------------------------


def _factors(context, builder, kind, chain, beta, alpha):
    """Address of checked.FACTORS numbers in the dtype of chains, and beta and alpha as `checked` takes them."""

    def number(value):
        """The factor, or of whole and complex numbers whether it is 0, 1 or neither."""
        if kind == types.float64:
            return value
        parts = [value] if kind == types.int64 else cgutils.unpack_tuple(builder, value, 2)
        real, double = parts[0], ir.DoubleType()
        if kind == types.int64:
            none, unit = (builder.icmp_signed("==", real, I64(n)) for n in (0, 1))
        else:
            real_is = [builder.fcmp_ordered("==", real, double(n)) for n in (0, 1)]
            none, unit = (builder.and_(each, builder.fcmp_ordered("==", parts[1], double(0))) for each in real_is)
        return builder.select(none, double(0), builder.select(unit, double(1), double(2)))

    element = getattr(types, chain)
    one, minus = (context.get_constant(element, n) for n in (1, -1))
    told = [number(beta), number(alpha)]
    beta, alpha = (context.cast(builder, value, kind, element) for value in (beta, alpha))
    unread = builder.fcmp_ordered("==", told[0], ir.DoubleType()(0))
    values = alpha, beta, builder.select(unread, one, minus), beta
    room = cgutils.alloca_once(builder, alpha.type, call.FACTORS)
    for i, value in enumerate(values):
        builder.store(value, builder.gep(room, [I64(i)]))
    return builder.ptrtoint(room, I64), told


@functools.cache
def _product(names, conj, views, strict, truth):
    """An intrinsic: cpu/gemm/call.py for arrays, or its error; `names`: dtypes of the factors and the result;
    `strict`: batches are alike, and not broadcast; `truth`: beta and alpha are true or false."""
    kind = kind_of(*names, conj)

    @intrinsic
    def product(typing, out, x, a, b, beta, alpha):
        def emit(context, builder, signature, args):
            told, ndims = cgutils.alloca_once(builder, I64, 4), []
            for p, (array, view) in enumerate(zip((out, x, a, b), views)):
                value = args[p]
                if isinstance(array, types.NoneType):
                    array, value = out, args[0]
                data, _, shape, steps = described(context, builder, array, value)
                shape, steps = view(shape, steps)
                builder.store(header(builder, data, shape, steps), builder.gep(told, [I64(p)]))
                ndims.append(len(shape))
            factors, known = _factors(context, builder, beta, kind.chain, *args[4:])
            alone, key = I64(0), (*names, conj)
            if call.alone(kind):
                alone = symbol(context, builder, "jitted.products:_alone", tuple(ndims[2:]), *key)
            size = I64(context.get_abi_sizeof(context.get_value_type(getattr(types, kind.chain))))
            given = [
                builder.ptrtoint(told, I64),
                alone,
                symbol(context, builder, "jitted.products:_plan", *key),
                factors,
                size,
                *known,
                I64(int(strict)),
            ]
            function = ir.FunctionType(I64, [value.type for value in given]).as_pointer()
            run = symbol(context, builder, "cpu.gemm.call:checked")
            _raised(context, builder, builder.call(builder.inttoptr(run, function), given))
            return context.get_dummy_value()

        return types.void(out, x, a, b, beta, alpha), emit

    return product


@functools.cache
def _call_dot(dtype, conj):
    @intrinsic
    def sums(typing, k, a, sa, b, sb, out):
        """The sum of products of two vectors at addresses, strides in elements, to an address."""

        def emit(context, builder, signature, args):
            kind = ir.FunctionType(ir.VoidType(), [I64] * 6).as_pointer()
            run = symbol(context, builder, "cpu.gemv.dot:native", dtype, conj)
            builder.call(builder.inttoptr(run, kind), args)
            return context.get_dummy_value()

        return types.void(*[types.int64] * 6), emit

    return sums


# -- what is given -----------------------------------------------------------------------------------------------------

PYTHON = {types.Boolean: True, types.Integer: 1, types.Float: 1.0, types.Complex: 1j}


def _sample(op, name, x):
    """A Python number of the kind that a factor's Numba type has."""
    if not isinstance(x, types.Type):
        return x
    if isinstance(x, types.Omitted):
        return x.value
    found = next((value for kind, value in PYTHON.items() if isinstance(x, kind)), None)
    if found is None:
        raise TypingError(f"{op}: {name} must be a number, not {x}")
    return found


def _text(op, name, x):
    """A keyword that is a string, or None."""
    if absent(x):
        return None
    if not isinstance(x, types.StringLiteral):
        raise TypingError(f"{op}: {name} must be a string that is written in the call, not {x}")
    return x.literal_value


def _ruled(op, rule, arrays, numbers, out_dtype, conj, mode, tiles):
    """What comes out, by the rule that the call from Python has: its spec."""
    if not (absent(mode) and absent(tiles)):
        raise TypingError(f"{op}: {'mode' if absent(tiles) else 'tiles'} cannot be given in jitted code")
    specs = {name: None if absent(x) and name == "bias" else spec(op, name, x) for name, x in arrays.items()}
    keywords = {name: _sample(op, name, x) for name, x in numbers.items()}
    keywords |= {"out_dtype": dtype_asked(op, "out_dtype", out_dtype)}
    if op != "vdot":
        keywords["conj"] = _text(op, "conj", conj)
    try:
        return rule(**specs, **keywords)
    except (TypeError, ValueError) as error:
        raise TypingError(str(error)) from None


def _checked_out(op, out, result):
    """An error where an out, by its Numba type, does not take the result."""
    given = spec(op, "out", out)
    ndim = len(result.shape)
    if len(given.shape) != ndim:
        raise TypingError(f"{op}: an out of {ndim or 'no'} dimensions is wanted, not {out}")
    if given.dtype != result.dtype:
        raise TypingError(f"{op}: out has dtype {given.dtype} and the result {result.dtype}")
    if not out.mutable:
        raise TypingError(f"{op}: out is read-only")


# -- shapes of new results ---------------------------------------------------------------------------------------------

_SHAPES = {
    "linear": lambda a, b: a.shape[:-1] + b.shape[:1],
    "outer": lambda a, b: (a.shape[0], b.shape[0]),
    "addr": lambda a, b: (a.shape[0], b.shape[0]),
    (2, 2): lambda a, b: (a.shape[0], b.shape[1]),
    (3, 3): lambda a, b: a.shape[:2] + b.shape[2:],
    (2, 1): lambda a, b: a.shape[:1],
    (1, 2): lambda a, b: b.shape[1:],
    (1, 1): lambda a, b: (),
}
# Of matmul, 3 for more than 2 dimensions.
_OF_BATCHES = {
    (3, 1): lambda a, b: a.shape[:-1],
    (1, 3): lambda a, b: b.shape[:-2] + b.shape[-1:],
}


def _of_batches(a, b):
    return np.broadcast_shapes(a.shape[:-2], b.shape[:-2]) + (a.shape[-2], b.shape[-1])


def _shape(op, ndims):
    short = tuple(min(n, 3) for n in ndims)
    if op == "matmul" and max(short) > 2:
        return _OF_BATCHES.get(short, _of_batches)
    return _SHAPES.get(op) or _SHAPES[short]


# -- the operations ----------------------------------------------------------------------------------------------------


@numba.njit(inline="always")
def _same(x):
    return x


def _converting(name, dtype):
    """A function of an array: as one of a dtype."""
    wanted = dtype.type
    return named(lambda x: x.astype(wanted), name, dtype)


def _summing(op, dtype, conj):
    """dot, of vectors of one dtype: the number."""
    sums, wanted, title = _call_dot(dtype.name, conj), dtype.type, op

    def inner(a, b):
        size, total = a.itemsize, np.zeros(1, wanted)
        if len(a) != len(b):
            raise ValueError("nbkernels: the vectors differ in length")
        if a.strides[0] % size != 0 or b.strides[0] % size != 0:
            raise ValueError("nbkernels: strides that are no multiple of the item's size")
        if len(a) > 0:
            sums(len(a), address(a), a.strides[0] // size, address(b), b.strides[0] // size, address(total))
        return total[0]

    return named(inner, "inner", title, dtype, conj)


def _body(op, result, x, a, b, conj, out, widened):
    """The jitted function (x, a, b, beta, alpha, out) of operands of these Numba types."""
    names = [spec(op, "", each).dtype for each in (a, b)]
    to = result.dtype if not widened else None
    convert = [_same if to is None or dtype == to else _converting("converted", to) for dtype in names]
    first, second = convert
    third = _converting("converted", to) if not absent(x) and to and spec(op, "", x).dtype != to else _same
    names = tuple(dtype.name if to is None else to.name for dtype in names)
    title, fresh, dtype = (op, *names, result.dtype, conj), absent(out), result.dtype.type
    vectors = (a.ndim, b.ndim) == (1, 1)
    if vectors and op in ("dot", "vdot", "matmul") and not widened:
        sums = _summing(op, result.dtype, conj)

        def number(x, a, b, beta, alpha, out):
            return sums(first(a), second(b))

        def stored(x, a, b, beta, alpha, out):
            out[()] = sums(first(a), second(b))
            return out

        return named(number if fresh else stored, *title)
    strict = op not in ("matmul", "linear")
    views = VIEWS.get("dot" if vectors and op == "matmul" else op, PLAIN)
    run = _product((*names, result.dtype.name), conj, views, strict, result.dtype.kind == "b")
    shape, end = named(_shape(op, (a.ndim, b.ndim)), "shape", op, a.ndim, b.ndim), _same if result.shape else _element

    def new(x, a, b, beta, alpha, out):
        made = np.empty(shape(a, b), dtype)
        run(made, x, a, b, beta, alpha)
        return end(made)

    def into(x, a, b, beta, alpha, out):
        run(out, x, a, b, beta, alpha)
        return out

    plain = named(new if fresh else into, *title, inline="always")
    if {first, second, third} == {_same}:
        return plain
    return named(lambda x, a, b, beta, alpha, out: plain(third(x), first(a), second(b), beta, alpha, out), *title)


@numba.njit(inline="always")
def _element(x):
    return x[()]


def _number(dtype):
    """A function that makes a factor one as `_factors` takes it."""
    if dtype.kind == "b":
        return named(lambda x: np.int64(x != 0), "factor", dtype)
    wanted = {"f": np.float64, "c": np.complex128}.get(dtype.kind, np.int64)
    return named(lambda x: wanted(x), "factor", wanted.__name__)


def implementation(op, rule, roles, given):
    """The function (x, a, b, beta, alpha, out), one for a factor, and the beta of an operation that has none, of a call
    with arguments of these Numba types; `roles`: which of them is added, which are multiplied."""
    added, *pair = roles
    arrays = {name: given[name] for name in (added, *pair) if name}
    numbers = {name: given[name] for name in ("beta", "alpha") if name in given}
    keywords = [given[name] for name in ("out_dtype", "conj", "mode", "tiles")]
    result = _ruled(op, rule, arrays, numbers, *keywords)
    x, (a, b), out = given.get(added), (given[name] for name in pair), given["out"]
    if max(each.ndim for each in arrays.values() if not absent(each)) > MOST:
        raise TypingError(f"{op}: arrays have at most {MOST} dimensions in jitted code")
    if not absent(out):
        _checked_out(op, out, result)
    conj = _text(op, "conj", given["conj"]) or ("a" if op == "vdot" and result.dtype.kind == "c" else "")
    body = _body(op, result, x, a, b, conj, out, not absent(given["out_dtype"]))
    return body, _number(result.dtype), int(not absent(x))


KEYWORDS = "out=None, out_dtype=None, conj=None, mode=None, tiles=None"
FACTORS = "beta=1, alpha=1, "
CALL = """
def typed({parameters}):
    body, factor, default = implementation({op!r}, rule, {roles!r}, dict(locals(){more}))
    def run({parameters}):
        return body({x}, {a}, {b}, factor({beta}), factor({alpha}), {out})
    run.__name__ = run.__qualname__ = body.py_func.__name__ + "_call"
    return run
"""


def _teach(op, a, b, added=None, in_place=False):
    """Overload a public function, whose factors and what it adds have these names."""
    rule, scaled = getattr(meta, op, None) or getattr(products, op), added and op != "linear"
    first = f"{a}, {b}, {added}=None, " if op == "linear" else f"{added}, {a}, {b}, " if added else f"{a}, {b}, "
    keywords = KEYWORDS.partition(", ")[2] if in_place else KEYWORDS
    words = dict(
        parameters=first + (FACTORS if scaled else "") + keywords,
        op=op,
        roles=(added, a, b),
        more=f", out={added}" if in_place else "",
        x=added,  # None where nothing is
        a=a,
        b=b,
        beta="beta" if scaled else "default",
        alpha="alpha" if scaled else 1,
        out=added if in_place else "out",
    )
    scope = {"implementation": implementation, "rule": rule}
    exec(CALL.format(**words), scope)
    teach(getattr(ops, f"{op}_" if in_place else op))(scope["typed"])


_teach("mm", "self", "mat2")
_teach("bmm", "self", "mat2")
_teach("mv", "self", "vec")
_teach("outer", "self", "vec2")
_teach("dot", "self", "tensor")
_teach("vdot", "self", "other")
_teach("matmul", "input", "other")
_teach("linear", "input", "weight", "bias")
for _op, *_pair in (
    ("addmm", "mat1", "mat2"),
    ("baddbmm", "batch1", "batch2"),
    ("addmv", "mat", "vec"),
    ("addr", "vec1", "vec2"),
):
    _teach(_op, *_pair, "self")
    _teach(_op, *_pair, "self", in_place=True)
