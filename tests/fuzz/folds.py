"""reduce, accumulate, outer, at and sum_to of arrays of any layout, against NumPy's and by higher precision."""

import numpy as np

import nbkernels
from nbkernels.dtypes import ASSOCIATIVE
from nbkernels.operations import BINARY, PAIRWISE

from . import judge
from .elementwise import over
from .rooms import DTYPES, FLOATS, a_shape, chance, lay, narrowed, pick, values

OPS = [op for op in BINARY if op != "ldexp"]  # NumPy folds that of small integers, and refuses to beside bfloat16
# Rounded at each step, in no order that is promised: held against sums in higher precision.
ROUNDED = [op for op, row in BINARY.items() if row.fold == PAIRWISE]
# Of floats, functions that differ from NumPy's by an ulp at each step: of these only layouts and forms are compared; so
# of complex quotients.
LOOSE = [op for op, row in BINARY.items() if row.ulp]


def theme(rng):
    """A method, an operation and dtypes: of the array, and of an out or of what is asked for."""
    op = pick(rng, sorted(ASSOCIATIVE)) if chance(rng, 0.5) else pick(rng, OPS)
    method = pick(rng, ["reduce", "reduce", "reduce", "accumulate", "outer", "at", "sum_to"])
    return method, "add" if method == "sum_to" else op, pick(rng, DTYPES), pick(rng, DTYPES)


def case(theme, rng, tell):
    {"reduce": reduce, "accumulate": accumulate, "outer": outer, "at": at, "sum_to": sum_to}[theme[0]](
        *theme[1:], rng, tell
    )


def moody(op, dtype, rng):
    if op in ROUNDED and dtype.kind in "cfV":
        return "mild"
    return pick(rng, ["wild", "mild"])


def axes_of(rng, ndim, one=False):
    if ndim == 0:
        return pick(rng, [None, 0, -1, ()])
    single = int(rng.integers(-ndim, ndim))
    if one or chance(rng, 0.5):
        return single
    some = tuple(int(a) for a in rng.permutation(ndim)[: int(rng.integers(0, ndim + 1))])
    return pick(rng, [None, some, (single,), tuple(a - ndim for a in some)])


def reduce(op, dtype, other, rng, tell):
    x = values(rng, a_shape(rng), dtype, moody(op, dtype, rng))
    words, given = {"axis": axes_of(rng, x.ndim, op not in ASSOCIATIVE)}, []
    if chance(rng, 0.3):
        words["keepdims"] = True
    if chance(rng, 0.3):
        words["initial"] = pick(rng, [0, 1, 2, 5, *([0.5, -1.5] if dtype.kind in "cfV" else [])])
    if chance(rng, 0.45):
        mask = lay(rng, rng.random(narrowed(rng, x.shape)) < 0.6, readable=True)
        given, words["where"] = [mask], mask.view
        if getattr(np, op).identity is None and chance(rng, 0.9):
            words["initial"] = 1
    if chance(rng, 0.1):
        words["dtype"], x = other, values(rng, x.shape, dtype, "whole")
    tame = "dtype" in words
    placed = lay(rng, x, readable=True)
    run = getattr(nbkernels, op).reduce
    tell(f"{op}.reduce({judge.shown(placed.view)}, {spelt(words)})")
    copy = {key: value.copy("C") if isinstance(value, np.ndarray) else value for key, value in words.items()}
    x = placed.view.copy("C")
    base = judge.called(lambda: run(x, **copy), [], again=False)
    wanted = judge.attempt(lambda: numpys(op, "reduce", x, **copy))
    loose = op in LOOSE or (op == "divide" and np.asarray(base).dtype.kind == "c")
    if not loose or judge.refused(wanted) or judge.refused(base):
        compare(op, base, wanted, x, copy)
    found = judge.called(lambda: run(placed.view, **words), [placed, *given])
    same(found, base)
    if not judge.refused(base):
        into(lambda out: run(placed.view, out=out, **(words if tame else words | {"dtype": np.asarray(base).dtype})),
             base, [placed, *given], rng, tell)  # fmt: skip
        other_out(op, x, placed, words, copy, other, np.asarray(base), rng, tell)


def spelt(words):
    return ", ".join(f"{key}={judge.shown(value)}" for key, value in words.items())


def same(found, base):
    judge.require(judge.refused(found) == judge.refused(base), "one layout is refused, not the other:", repr(found),
                  repr(base))  # fmt: skip
    if not judge.refused(found):
        judge.alike(found, base, "the bits of another layout or form")


def into(run, base, given, rng, tell):
    """The same into an out of the result's dtype, which may lie over what is read."""
    content = values(rng, np.shape(base), np.asarray(base).dtype)
    readable = [p for p in given if p.view.size]
    out = over(rng, content, pick(rng, readable)) if readable and chance(rng, 0.3) else lay(rng, content)
    tell(f"out {judge.shown(out.view)}{' over what is read' if any(out.room is p.room for p in given) else ''}")
    before = out.room.copy()
    found = judge.called(lambda: run(out.view), given, out)
    judge.require(not judge.refused(found), "refused into an out:", repr(found))
    judge.alike(found, base, "the bits of another layout or form")
    out.room[...] = before


def other_out(op, x, placed, words, copy, other, base, rng, tell):
    """Into an out of another dtype: folded in what holds both, then cast; or refused, with nothing written."""
    if "dtype" in words or not chance(rng, 0.3):
        return
    if other.kind in "biu" and base.dtype.kind not in "biu":
        return  # conversions that C leaves open
    out = lay(rng, values(rng, base.shape, other))
    tell(f"out {judge.shown(out.view)}")
    run = getattr(nbkernels, op).reduce
    found = judge.called(lambda: run(placed.view, out=out.view, **words), [placed], out)
    flat = np.zeros(base.shape, other)
    again = judge.called(lambda: run(x, out=flat, **copy), [], again=False)
    same(found, again)


def accumulate(op, dtype, other, rng, tell):
    shape = a_shape(rng)
    words = {"axis": axes_of(rng, len(shape), True)}
    if chance(rng, 0.15):
        words["dtype"] = other
    x = values(rng, shape, dtype, "whole" if "dtype" in words else pick(rng, ["wild", "mild"]))
    placed = lay(rng, x, readable=True)
    run = getattr(nbkernels, op).accumulate
    tell(f"{op}.accumulate({judge.shown(placed.view)}, {spelt(words)})")
    x = placed.view.copy("C")
    base = judge.called(lambda: run(x, **words), [], again=False)
    wanted = judge.attempt(lambda: getattr(np, op).accumulate(x, **words))
    if not judge.refused(base) and not judge.refused(wanted) and np.asarray(base).dtype.kind in "fVc":
        halves = np.asarray(base).dtype.itemsize == 2
        if op in LOOSE or halves or np.asarray(base).dtype.kind == "c":
            wanted = base
    compare(op, base, wanted, x, {})  # in order: every bit
    same(judge.called(lambda: run(placed.view, **words), [placed]), base)
    if not judge.refused(base):
        result = words | {"dtype": np.asarray(base).dtype}
        into(
            lambda out: run(placed.view, out=out, **(words if "dtype" in words else result)), base, [placed], rng, tell
        )


def numpys(op, method, x, **words):
    """NumPy's fold; of halves in float32, rounded once, and sums in higher precision."""
    with np.errstate(all="ignore"):
        ufunc = getattr(np, op)
        plain = getattr(ufunc, method)(x, **words)
        kind = np.asarray(plain).dtype
        if op not in ROUNDED and kind.itemsize == 2 and kind.kind in "fV" and op not in LOOSE:
            return getattr(ufunc, method)(x.astype("f4"), **(words | {"dtype": None})).astype(kind)
        return plain


def compare(op, found, wanted, x, words):
    """NumPy's error; its numbers, exactly but for sums and products of floats."""
    if judge.refused(wanted) or judge.refused(found):
        judge.require(judge.refused(wanted) == judge.refused(found), "NumPy gives", repr(wanted)[:300], "here it is",
                      repr(found)[:300])  # fmt: skip
        return
    found, wanted = np.asarray(found), np.asarray(wanted)
    judge.require((found.dtype, found.shape) == (wanted.dtype, wanted.shape), "NumPy's is", wanted.dtype, wanted.shape,
                  "here it is", found.dtype, found.shape)  # fmt: skip
    if op in ROUNDED and found.dtype.kind in "fVc" and "axis" in words and x.dtype.kind != "b":
        rounded(op, found, x, words)
        return
    equal = (found == wanted) | ((found != found) & (wanted != wanted))
    judge.differ(equal, found, wanted, "NumPy's result differs")


def rounded(op, found, x, words):
    """|error| <= n eps times the sum of the terms' sizes, or times the product."""
    wide = np.clongdouble if x.dtype.kind == "c" or found.dtype.kind == "c" else np.longdouble
    words = {key: value for key, value in words.items() if key != "dtype"}
    x = x.astype("f4" if x.dtype.kind == "V" else x.dtype).astype(wide)
    exact = getattr(np, op).reduce(x, **words)
    size = np.add.reduce(abs(x), **(words | ({"initial": abs(words["initial"])} if "initial" in words else {})))
    n = x.size / max(np.size(found), 1) + 3
    unit = {"f": 2.0**-10, "V": 2.0**-7}[found.dtype.kind] if found.dtype.itemsize == 2 else float(
        np.finfo(found.dtype).eps)  # fmt: skip
    if op == "multiply":
        size = abs(exact)
    if found.dtype.itemsize == 2:  # in float32, then rounded once
        allowed = n * 2.0**-23 * size + unit * abs(exact)
    else:
        allowed = n * unit * size
    allowed = allowed + (
        2.0**-24 if found.dtype.char == "e" else float(1e-300 if found.dtype.char in "dgDG" else 2.0**-120)
    )
    most = 6e4 if found.dtype.char == "e" else 1e37 if found.dtype.char in "fFE" else 1e300
    wrong = (abs(exact) < most) & ~(abs(found.astype(wide) - exact) <= allowed)
    if op == "multiply":  # what overflows on the way may come back to 0 in another order
        wrong &= np.isfinite(found.astype(wide))
    judge.differ(~wrong, found, np.asarray(exact), "beyond the bound")


def outer(op, dtype, other, rng, tell):
    x, y = (lay(rng, values(rng, a_shape(rng, 2, 0)[:2], d), readable=True) for d in (dtype, other))
    if x.view.size * y.view.size > 100_000:
        return
    run = getattr(nbkernels, op).outer
    tell(f"{op}.outer({judge.shown(x.view)}, {judge.shown(y.view)})")
    left, right = x.view.copy("C"), y.view.copy("C")
    ones = (1,) * right.ndim
    base = judge.called(lambda: getattr(nbkernels, op)(left.reshape(left.shape + ones), right), [], again=False)
    wanted = judge.attempt(lambda: getattr(np, op).outer(left, right))
    if judge.refused(wanted) or judge.refused(base):
        compare(op, base, wanted, left, {})
    same(judge.called(lambda: run(x.view, y.view), [x, y]), base)
    if not judge.refused(base):
        into(lambda out: run(x.view, y.view, out=out), base, [x, y], rng, tell)


def indices(rng, shape, tell):
    """What indexes an array, rarely out of bounds."""
    n, count = shape[0], int(rng.integers(0, 40))
    high = n + (1 if chance(rng, 0.05) else 0)
    flat = rng.integers(-n, max(high, 1 - n), count) if high else np.zeros(0, int)
    kind = pick(rng, ["array", "array", "list", "slice", "mask", "int", "pair"])
    if kind == "array":
        dtype = pick(rng, [d for d in DTYPES if d.kind in "iu"])
        return lay(rng, (abs(flat) if dtype.kind == "u" else flat).astype(dtype), readable=True).view
    if kind == "pair" and len(shape) > 1 and shape[1]:
        return flat, rng.integers(-shape[1], shape[1], count)
    if kind == "slice":
        return slice(*(None if chance(rng, 0.3) else int(rng.integers(-n - 2, n + 3)) for _ in range(2)),
                     pick(rng, [None, 1, 2, -1, -3]))  # fmt: skip
    if kind == "mask":
        return lay(rng, rng.random(n) < 0.5).view
    if kind == "int" and n:
        return int(rng.integers(-n, n))
    return [int(i) for i in flat]


def at(op, dtype, other, rng, tell):
    shape = a_shape(rng, 3, 0) or (3,)
    x = lay(rng, values(rng, shape, dtype))
    where = indices(rng, shape, tell)
    fitting = judge.attempt(lambda: x.view[where].shape)
    sizes = () if judge.refused(fitting) else narrowed(rng, fitting)
    y = lay(rng, values(rng, sizes, other), readable=True)
    number = pick(rng, [0, 1, 2, 300, -1, 0.5]) if chance(rng, 0.2) else y.view
    tell(f"{op}.at({judge.shown(x.view)}, {where!r}, {judge.shown(number)})".replace("\n", " "))
    expected = x.view.copy("C")
    index = where.copy() if isinstance(where, np.ndarray) else where
    wanted = judge.attempt(lambda: getattr(np, op).at(expected, index, number.copy() if number is y.view else number))
    run = lambda array: getattr(nbkernels, op).at(array, where, number)  # noqa: E731
    base = x.view.copy("C")
    result = judge.called(lambda: run(base), [y], again=False)
    loop = judge.attempt(lambda: getattr(np, op).resolve_dtypes((dtype, np.asarray(number).dtype, None))[2])
    held = number is y.view or not isinstance(number, int) or dtype.kind not in "iu" or (
        np.iinfo(dtype).min <= number <= np.iinfo(dtype).max)  # fmt: skip
    # else NumPy's `at` goes by rules of its own: an int that the dtype cannot hold is no error
    if held and not judge.refused(loop) and np.can_cast(loop, dtype, "same_kind"):
        judge.require(judge.refused(wanted) == judge.refused(result), "NumPy gives", repr(wanted), "here it is",
                      repr(result))  # fmt: skip
    if judge.refused(result):
        judge.require(judge.refused(judge.called(lambda: run(x.view), [x, y])), "one layout is refused, not the other")
        return
    # NumPy's `at` takes a Python number for an int64 or a float64: both are float64, whose next number is a nearer one.
    strong = number is not y.view and (dtype == np.uint64 or op == "nextafter")
    if op not in LOOSE and not judge.refused(wanted) and dtype.kind != "c" and dtype not in FLOATS[:2] and not strong:
        compare(op, base, expected, base, {})
    before = x.room.copy()
    judge.attempt(lambda: run(x.view))
    outside = (x.room != before) & ~x.elements()
    judge.require(not outside.any(), "written outside of what is self's")
    judge.alike(x.view, base, "the bits of another layout")


def sum_to(op, dtype, other, rng, tell):
    x = lay(rng, values(rng, a_shape(rng), dtype, moody("add", dtype, rng)), readable=True)
    shape = x.view.shape
    lead = int(rng.integers(0, len(shape) + 1)) if chance(rng, 0.6) else 0
    size = tuple(1 if chance(rng, 0.4) else n for n in shape[lead:])
    tell(f"sum_to({judge.shown(x.view)}, {size})")
    flat = x.view.copy("C")
    base = judge.called(lambda: nbkernels.sum_to(flat, size), [], again=False)
    axes = (*range(lead), *(lead + d for d, n in enumerate(size) if n == 1 != shape[lead + d]))
    wanted = judge.attempt(lambda: np.add.reduce(flat, axes, dtype=dtype, keepdims=True).reshape(size))
    if dtype.kind == "b":
        judge.require(judge.refused(base), "a sum of bools as bools")
        return
    if not axes:
        judge.require(nbkernels.sum_to(x.view, size).tobytes() == flat.tobytes(), "self is not returned")
        return
    if dtype.kind in "cfV" and not judge.refused(base):
        judge.require((base.shape, base.dtype) == (size, dtype), "the sum is", base.shape, base.dtype)
        rounded("add", np.asarray(base).reshape(np.add.reduce(flat, axes, keepdims=True).shape), flat,
                {"axis": axes, "keepdims": True})  # fmt: skip
    else:
        compare("add", base, wanted, flat, {})
    same(judge.called(lambda: nbkernels.sum_to(x.view, size), [x]), base)


CLASSES = {"fold": (theme, case, 6)}
