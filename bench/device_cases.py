"""The table of calls that machines with a GPU check, and those without one compile for them and rehearse.

Operands are whole numbers of one digit, so that every order of summation gives the same result, and NumPy's in wider
numbers is exact; what is rounded otherwise (exp, divide) names how many units in the last place it may be off.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

FLOATS = ("float32", "float64", "float16", "bfloat16")
DTYPES = (*FLOATS, "complex64", "complex128", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "bool")
WIDE = {"f": np.float64, "V": np.float64, "c": np.complex128, "i": np.int64, "u": np.int64, "b": np.int64}


def dtype_of(name):
    if name != "bfloat16":
        return np.dtype(name)
    import ml_dtypes

    return np.dtype(ml_dtypes.bfloat16)


class Array(NamedTuple):
    """An operand: `layout` is C, T (the last two dimensions transposed), S (every second element of padded rows)."""

    shape: tuple
    dtype: str = "float32"
    layout: str = "C"

    def steps(self):
        """Strides in elements."""
        shape = list(self.shape)
        if self.layout == "T":
            shape[-2:] = shape[:-3:-1]
        steps, step = [], 1 if self.layout != "S" else 2
        for n in reversed(shape):
            steps.insert(0, step)
            step *= n
            step += 3 if self.layout == "S" and len(steps) == 1 else 0
        if self.layout == "T":
            steps[-2:] = steps[:-3:-1]
        return tuple(steps)

    def count(self):
        """Elements from the first to the last."""
        return 1 + sum((n - 1) * step for n, step in zip(self.shape, self.steps())) if 0 not in self.shape else 0

    def strides(self):
        return tuple(step * dtype_of(self.dtype).itemsize for step in self.steps())

    def memory(self, rng):
        """The elements, and those between them."""
        dtype = dtype_of(self.dtype)
        low, high = {"u": (0, 5), "b": (0, 2)}.get(dtype.kind, (-4, 5))
        drawn = rng.integers(low, high, self.count())
        return (drawn + 1j * rng.integers(low, high, self.count()) if dtype.kind == "c" else drawn).astype(dtype)

    def view(self, memory):
        return np.lib.stride_tricks.as_strided(memory, self.shape, self.strides())


class Case(NamedTuple):
    """`call(nb, *arrays)` on a device should give what `wanted(*arrays)` makes of NumPy's wide ones, to `ulps`."""

    name: str
    arrays: tuple[Array, ...]
    call: Callable
    wanted: Callable
    ulps: float = 0


def wide(x):
    return x.astype(WIDE[x.dtype.kind])


def product(dtype):
    """Matrix products: one of bools is an OR of ANDs."""
    return (lambda a, b: (a @ b) > 0) if dtype == "bool" else (lambda a, b: a @ b)


def ended(value, scale, shift):
    return value * scale + shift


SIZES = ((1, 1, 1), (5, 3, 7), (64, 64, 64), (65, 17, 63), (8, 256, 130), (257, 129, 4101))  # m, n, k
PAIRS = ("CC", "CT", "TC", "SS")


def products():
    for dtype in DTYPES:
        mm = product(dtype)
        for (m, n, k), (la, lb) in itertools.product(SIZES, PAIRS):
            every = dtype in ("float32", "float64") or (m, la + lb) in ((64, "CC"), (65, "CC"), (257, "CC"), (65, "SS"))
            if not every:
                continue
            arrays = Array((m, k), dtype, la), Array((k, n), dtype, lb)
            yield Case(f"mm {dtype} {m}x{n}x{k} {la}{lb}", arrays, lambda nb, a, b: nb.mm(a, b), mm)
        a, b = Array((33, 20), dtype), Array((20, 40), dtype)
        yield Case(f"mm {dtype} out transposed", (a, b, Array((33, 40), dtype, "T")),
                   lambda nb, a, b, o: nb.mm(a, b, out=o), lambda a, b, o, mm=mm: mm(a, b))  # fmt: skip
        if dtype == "bool":
            continue
        for name, x in (
            ("row", Array((40,), dtype)),
            ("matrix", Array((33, 40), dtype)),
            ("column", Array((33, 1), dtype)),
        ):
            yield Case(f"addmm {dtype} {name}", (x, a, b), lambda nb, x, a, b: nb.addmm(x, a, b, beta=2, alpha=3),
                       lambda x, a, b: 2 * x + 3 * (a @ b))  # fmt: skip
        yield Case(f"addmm_ {dtype}", (Array((33, 40), dtype), a, b), lambda nb, x, a, b: nb.addmm_(x, a, b),
                   lambda x, a, b: x + a @ b)  # fmt: skip
        yield Case(f"linear {dtype}", (Array((3, 5, 20), dtype), Array((40, 20), dtype), Array((40,), dtype)),
                   lambda nb, x, w, b: nb.linear(x, w, b), lambda x, w, b: x @ w.T + b)  # fmt: skip
        stack = Array((3, 17, 20), dtype), Array((3, 20, 9), dtype)
        yield Case(f"bmm {dtype}", stack, lambda nb, a, b: nb.bmm(a, b), lambda a, b: a @ b)
        yield Case(f"mv {dtype}", (Array((33, 70), dtype), Array((70,), dtype)), lambda nb, a, v: nb.mv(a, v),
                   lambda a, v: a @ v)  # fmt: skip
        yield Case(f"dot {dtype}", (Array((1000,), dtype), Array((1000,), dtype)), lambda nb, a, b: nb.dot(a, b),
                   lambda a, b: np.asarray(a @ b))  # fmt: skip
    yield from rarer_products()


def rarer_products():
    for dtype in ("float32", "float64", "bfloat16"):
        a = functools.partial(Array, dtype=dtype)
        yield Case(f"mv transposed {dtype}", (a((33, 70), layout="T"), a((70,))), lambda nb, m, v: nb.mv(m, v),
                   lambda m, v: m @ v)  # fmt: skip
        yield Case(f"addmv {dtype}", (a((33,)), a((33, 70)), a((70,))), lambda nb, x, m, v: nb.addmv(x, m, v, alpha=2),
                   lambda x, m, v: x + 2 * (m @ v))  # fmt: skip
        yield Case(f"bmm transposed {dtype}", (a((3, 17, 20), layout="T"), a((3, 20, 9), layout="S")),
                   lambda nb, x, y: nb.bmm(x, y), lambda x, y: x @ y)  # fmt: skip
        yield Case(f"bmm tiny {dtype}", (a((300, 16, 16)), a((300, 16, 16))), lambda nb, x, y: nb.bmm(x, y),
                   lambda x, y: x @ y)  # fmt: skip
        yield Case(f"baddbmm row {dtype}", (a((9,)), a((3, 17, 20)), a((3, 20, 9))),
                   lambda nb, x, y, z: nb.baddbmm(x, y, z, beta=2), lambda x, y, z: 2 * x + y @ z)  # fmt: skip
        yield Case(f"addbmm {dtype}", (a((17, 9)), a((3, 17, 20)), a((3, 20, 9))),
                   lambda nb, x, y, z: nb.addbmm(x, y, z), lambda x, y, z: x + (y @ z).sum(0))  # fmt: skip
        yield Case(f"matmul broadcast {dtype}", (a((2, 1, 5, 20)), a((3, 20, 9))), lambda nb, x, y: nb.matmul(x, y),
                   lambda x, y: x @ y)  # fmt: skip
        yield Case(f"matmul stack by matrix {dtype}", (a((4, 5, 20)), a((20, 9))), lambda nb, x, y: nb.matmul(x, y),
                   lambda x, y: x @ y)  # fmt: skip
        yield Case(f"outer {dtype}", (a((33,)), a((40,))), lambda nb, x, y: nb.outer(x, y), np.outer)
        yield Case(f"addr {dtype}", (a((33, 40)), a((33,)), a((40,))), lambda nb, x, y, z: nb.addr(x, y, z),
                   lambda x, y, z: x + np.outer(y, z))  # fmt: skip
        yield Case(f"addmm_activation {dtype}", (a((40,)), a((33, 20)), a((20, 40))),
                   lambda nb, x, y, z: nb.addmm_activation(x, y, z),
                   lambda x, y, z: np.maximum(x + y @ z, 0))  # fmt: skip
        yield Case(f"mm k = 0 {dtype}", (a((5, 0)), a((0, 7))), lambda nb, x, y: nb.mm(x, y), lambda x, y: x @ y)
        yield Case(f"mm k = 65536 {dtype}", (a((8, 65536)), a((65536, 8))), lambda nb, x, y: nb.mm(x, y),
                   lambda x, y: x @ y)  # fmt: skip
        yield Case(f"addmm beta = 0 {dtype}", (a((33, 40)), a((33, 20)), a((20, 40))),
                   lambda nb, x, y, z: nb.addmm(x, y, z, beta=0), lambda x, y, z: y @ z)  # fmt: skip
    for first, out in (("int8", "int32"), ("uint8", "int32"), ("float16", "float32"), ("bfloat16", "float32")):
        yield Case(f"mm {first} to {out}", (Array((65, 70), first), Array((70, 33), first)),
                   lambda nb, x, y, out=out: nb.mm(x, y, out_dtype=out), lambda x, y: x @ y)  # fmt: skip
    for dtype in ("float16", "bfloat16", "float32", "float64"):
        for layout in "CT":
            yield Case(f"mv long {dtype} {layout}", (Array((2501, 4203), dtype, layout), Array((4203,), dtype)),
                       lambda nb, a, v: nb.mv(a, v), lambda a, v: a @ v)  # fmt: skip
        x = Array((700_001,), dtype)
        yield Case(f"dot long {dtype}", (x, x), lambda nb, a, b: nb.dot(a, b), lambda a, b: np.asarray(a @ b))
    for dtype in ("float16", "bfloat16", "int8"):
        for la, lb in PAIRS:
            yield Case(f"mm odd {dtype} {la}{lb}", (Array((133, 999), dtype, la), Array((999, 201), dtype, lb)),
                       lambda nb, a, b: nb.mm(a, b), lambda a, b: a @ b)  # fmt: skip
    for dtype in ("float32", "float64", "complex64", "float16", "bfloat16", "int8"):
        of = functools.partial(Array, dtype="int32" if dtype == "int8" else dtype)
        arrays = of((48,)), Array((133, 8), dtype), Array((8, 48), dtype), of((133, 1)), of((48,), layout="S")
        how = dict(out_dtype="int32") if dtype == "int8" else {}
        to = "float32" if dtype in ("bfloat16", "int8") else None
        yield Case(f"epilogue {dtype}", arrays, lambda nb, *x, to=to, how=how: nb.epilogue(ended, dtype=to)(*x, **how),
                   lambda x, a, b, s, t: (x + a @ b) * s + t)  # fmt: skip
        yield Case(f"epilogue before {dtype}", (*arrays, of((133, 48), layout="T")),
                   lambda nb, *x, how=how: (nb.epilogue(ended)(*x[:-1], before=x[-1], **how), x[-1])[1],
                   lambda x, a, b, s, t, before: x + a @ b)  # fmt: skip
    yield Case("mm overlapping out", (Array((64, 64)),), lambda nb, x: nb.mm(x, x, out=x), lambda x: x @ x)
    yield Case("mm complex64 conj b", (Array((9, 8), "complex64"), Array((8, 7), "complex64")),
               lambda nb, x, y: nb.mm(x, y, conj="b"), lambda x, y: x @ y.conj())  # fmt: skip


ARITHMETIC = {"add": np.add, "subtract": np.subtract, "multiply": np.multiply, "maximum": np.maximum,
              "minimum": np.minimum, "less": np.less, "equal": np.equal}  # fmt: skip
LAYOUTS = {"contiguous": (Array((61, 130)), Array((61, 130))), "row": (Array((61, 130)), Array((130,))),
           "column": (Array((61, 130)), Array((61, 1))), "transposed": (Array((61, 130)), Array((61, 130), layout="T")),
           "strided": (Array((61, 130), layout="S"), Array((61, 130), layout="S")),
           "5-D": (Array((3, 1, 4, 1, 5)), Array((2, 1, 6, 1))), "empty": (Array((0, 5)), Array((5,))),
           "0-d": (Array((61, 130)), Array(()))}  # fmt: skip


def elements():
    for (name, wanted), (layout, pair) in itertools.product(ARITHMETIC.items(), LAYOUTS.items()):
        for dtype in DTYPES if name == "add" else ("float32", "bfloat16", "int32"):
            if dtype == "float32" or layout in ("contiguous", "row") or (name, layout) == ("add", "transposed"):
                arrays = tuple(x._replace(dtype=dtype) for x in pair)
                made = (lambda x, y: (x + y) > 0) if dtype == "bool" else wanted
                yield Case(f"{name} {dtype} {layout}", arrays, functools.partial(_operation, name), made)
    x = Array((61, 130))
    for dtype in FLOATS:
        y = x._replace(dtype=dtype)
        yield Case(f"add alpha {dtype}", (y, y), lambda nb, a, b: nb.add(a, b, alpha=2), lambda a, b: a + 2 * b)
        yield Case(f"add number {dtype}", (y,), lambda nb, a: nb.add(a, 2.5), lambda a: a + 2.5)
        yield Case(f"divide {dtype}", (y,), lambda nb, a: nb.divide(a, 3.0), lambda a: a / 3, 1)
        for name in ("exp", "tanh"):
            yield Case(f"{name} {dtype}", (y,), functools.partial(_operation, name), getattr(np, name), 4)
        yield Case(f"add_ {dtype}", (y, y), lambda nb, a, b: nb.add_(a, b), lambda a, b: a + b)
        yield Case(f"add out {dtype}", (y, y, y._replace(layout="T")), lambda nb, a, b, o: nb.add(a, b, out=o),
                   lambda a, b, o: a + b)  # fmt: skip
        yield Case(f"add itself {dtype}", (y,), lambda nb, a: nb.add(a, a, out=a), lambda a: a + a)
    yield Case("add float32 float64", (x, x._replace(dtype="float64")), lambda nb, a, b: nb.add(a, b), np.add)
    yield Case("add int32 float32", (x._replace(dtype="int32"), x), lambda nb, a, b: nb.add(a, b), np.add)
    yield Case("where=", (x, x, x._replace(dtype="bool"), x), lambda nb, a, b, m, o: nb.add(a, b, where=m, out=o),
               lambda a, b, m, o: np.where(m, a + b, o))  # fmt: skip
    yield Case("floor_divide int32", (x._replace(dtype="int32"), x._replace(dtype="int32")),
               lambda nb, a, b: nb.floor_divide(a, b),
               lambda a, b: np.where(b == 0, 0, a // np.where(b == 0, 1, b)))  # fmt: skip


def _operation(name, nb, *arrays):
    return getattr(nb, name)(*arrays)


def folds():
    for dtype in ("float32", "float64", "float16", "bfloat16", "int32", "complex64"):
        x = Array((37, 130), dtype)
        for layout in "CTS" if dtype == "float32" else "C":
            y = x._replace(layout=layout)
            for shape, axes in (((130,), 0), ((37, 1), 1), ((), None)):
                yield Case(f"sum_to {shape} {dtype} {layout}", (y,), lambda nb, a, shape=shape: nb.sum_to(a, shape),
                           lambda a, shape=shape, axes=axes: np.asarray(a.sum(axes)).reshape(shape))  # fmt: skip
        yield Case(f"sum_to long {dtype}", (Array((3, 70_000), dtype),), lambda nb, a: nb.sum_to(a, (3, 1)),
                   lambda a: a.sum(1, keepdims=True))  # fmt: skip
        if dtype == "complex64":
            continue
        for name, axis in itertools.product(("add", "maximum"), (0, 1)):
            yield Case(f"{name}.reduce {axis} {dtype}", (x,), functools.partial(_method, name, "reduce", axis),
                       lambda a, name=name, axis=axis: getattr(np, name).reduce(a, axis))  # fmt: skip
        for axis in (0, 1):
            yield Case(f"add.accumulate {axis} {dtype}", (Array((9, 40), dtype),),
                       functools.partial(_method, "add", "accumulate", axis),
                       lambda a, axis=axis: np.cumsum(a, axis))  # fmt: skip
    yield Case("add.at", (Array((50,)), Array((120,))), _at, _at_wanted)
    yield from large_folds()


def large_folds():
    """Of sizes at which kernels change their ways."""
    for dtype in ("float32", "float16", "int32", "float64"):
        for shape, axis in (((5, 40, 49), (0, 2)), ((6, 40, 64), (0, 2)), ((70_001, 3), 0), ((3000, 20), 1),
                            ((700, 1032), 0), ((300, 2051), 1), ((4, 70, 32), 1), ((1000, 1001), (0, 1))):  # fmt: skip
            for layout in "CS" if dtype == "float32" else "C":
                yield Case(f"add.reduce {shape} {axis} {dtype} {layout}", (Array(shape, dtype, layout),),
                           functools.partial(_method, "add", "reduce", axis),
                           lambda a, axis=axis: np.asarray(a.sum(axis)))  # fmt: skip
    for dtype, name in (("float32", "add"), ("float64", "add"), ("float16", "maximum"), ("int32", "add"),
                        ("bfloat16", "maximum"), ("float32", "subtract"), ("uint8", "bitwise_xor")):  # fmt: skip
        for shape, axis in (((300, 700), 0), ((300, 700), 1), ((70, 5003), 1), ((5003, 70), 0), ((3, 100_001), 1),
                            ((200_003,), 0)):  # fmt: skip
            for layout in "CTS" if (dtype, name) == ("float32", "add") and len(shape) > 1 else "C":
                yield Case(f"{name}.accumulate {shape} {axis} {dtype} {layout}", (Array(shape, dtype, layout),),
                           functools.partial(_method, name, "accumulate", axis),
                           functools.partial(_accumulated, name, axis))  # fmt: skip


def _accumulated(name, axis, x):
    return getattr(np, name).accumulate(x, axis)


def _method(name, method, axis, nb, x):
    return getattr(getattr(nb, name), method)(x, axis)


INDICES = [i * 7 % 50 for i in range(120)]


def _at(nb, x, y):
    nb.add.at(x, INDICES, y)
    return x


def _at_wanted(x, y):
    x = x.copy()
    np.add.at(x, INDICES, y)
    return x


def square_plus(x, y):
    return x * y + 1


def functions():
    """Functions of one's own, and gradients."""
    x = Array((61, 130))
    yield Case("elementwise", (x, Array((130,))), lambda nb, a, b: _own(nb)(a, b), lambda a, b: a * b + 1)
    a, b = Array((33, 20)), Array((40, 20))
    yield Case("vjp of linear", (a, b, Array((33, 40))), lambda nb, x, w, g: nb.vjp(nb.linear, x, w)[1](g)[1],
               lambda x, w, g: g.T @ x)  # fmt: skip
    yield Case(
        "vjp of a function", (x, x, x), lambda nb, u, v, g: nb.vjp(_own(nb), u, v)[1](g)[0], lambda u, v, g: g * v
    )


@functools.cache
def _own(nb):
    return nb.elementwise(square_plus)


def cases():
    return [*products(), *elements(), *folds(), *functions()]


def calls():
    """The cases as nbkernels.cuda.rehearsal takes calls."""
    return [(case.name, functools.partial(_rehearsed, case)) for case in cases()]


def _rehearsed(case, stand):
    import nbkernels

    return case.call(nbkernels, *(stand(x.shape, dtype_of(x.dtype), x.strides()) for x in case.arrays))


def expected(case, memories):
    """What a case's call should give on these memories, in wide numbers."""
    views = [array.view(memory) for array, memory in zip(case.arrays, memories)]
    with np.errstate(all="ignore"):
        return np.asarray(case.wanted(*map(wide, views)))


DIGITS = {"float64": 52, "float32": 23, "float16": 10, "bfloat16": 7}


def difference(case, found, wanted):
    """What is wrong with the result `found`, a NumPy array, beside the `expected`; "" where nothing is."""
    if found.shape != wanted.shape:
        return f"shape {found.shape}, not {wanted.shape}"
    with np.errstate(all="ignore"):
        wanted = wanted.astype(found.dtype)
        if case.ulps == 0:
            wrong = wide(found) != wide(wanted)
        else:
            close = np.abs(wide(wanted)) * case.ulps * 2.0 ** -DIGITS[found.dtype.name]
            wrong = ~(np.abs(wide(found) - wide(wanted)) <= close)
    if not wrong.any():
        return ""
    first = tuple(int(i) for i in np.argwhere(np.atleast_1d(wrong))[0])
    found, wanted = np.atleast_1d(found)[first], np.atleast_1d(wanted)[first]
    return f"{int(wrong.sum())} of {wrong.size} elements, first at {first}: {found}, not {wanted}"
