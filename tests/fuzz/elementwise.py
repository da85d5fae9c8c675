"""Element-wise operations of two, as functions, in place and into an out, against NumPy's."""

import numpy as np

import nbkernels
from nbkernels.binary import CASTINGS
from nbkernels.dtypes import COMPARISONS, NUMBERS
from nbkernels.operations import BINARY
from tests.compare import epsilon, near, textbook

from . import judge
from .rooms import BFLOAT16, DTYPES, a_shape, chance, lay, narrowed, pick, values

OPS = list(BINARY)
SCALED = ("add", "subtract")
# Python numbers, among them those that few dtypes hold.
SCALARS = [0, 1, 2, 3, -1, -129, 300, 2**31, 2**63, -(2**63), 2**64 - 1, 10**30, 0.5, -0.0, 1e300, float("inf"),
           float("nan"), True, False, 1 + 2j]  # fmt: skip
ALPHAS = [1, 0, -1, 2, 300, True, 0.5, -1.5, 1 - 2j, float("inf")]


def theme(rng):
    """An operation and the dtypes of what it is called with: what takes a compilation."""
    first = pick(rng, DTYPES)
    return pick(rng, OPS), first, first if chance(rng, 0.4) else pick(rng, DTYPES), pick(rng, DTYPES)


def operand(rng, shape, dtype, mood, given):
    """An array of any layout, or a number; what is laid out goes to `given`."""
    if chance(rng, 0.08):
        return values(rng, (), dtype, mood)[()]  # NumPy's scalar, or one of ml_dtypes
    placed = lay(rng, values(rng, shape, dtype, mood), readable=True)
    if chance(rng, 0.1):
        placed.view.flags.writeable = False
    given.append(placed)
    return placed.view


def plain(x):
    return x.copy("C") if isinstance(x, np.ndarray) else x


def case(theme, rng, tell):
    op, *dtypes, other = theme
    shape, keywords, given = a_shape(rng), {}, []
    if chance(rng, 0.15):
        keywords["casting"] = pick(rng, CASTINGS)
    if chance(rng, 0.1):
        keywords["dtype"] = pick(rng, [other, other.name, np.dtype(bool), np.dtype("f8")])
    if chance(rng, 0.1):
        keywords["order"] = pick(rng, "KCFA")
    if op in SCALED and chance(rng, 0.3):
        keywords["alpha"] = pick(rng, ALPHAS)
    mood = "whole" if keywords.get("casting") == "unsafe" else pick(rng, ["wild", "wild", "mild"])
    x, y = (operand(rng, narrowed(rng, shape), dtype, mood, given) for dtype in dtypes)
    if given and chance(rng, 0.15):
        number = pick(rng, SCALARS[:4] if mood == "whole" else SCALARS)
        x, y = (number, y) if isinstance(y, np.ndarray) else (x, number)
        if keywords.get("dtype") in (BFLOAT16, "bfloat16"):
            del keywords["dtype"]  # what numbers become there NumPy itself answers in two ways
        if abs(number) >= 2**63 and isinstance(number, int) and BFLOAT16 in dtypes:
            x, y = (2, y) if x is number else (x, 2)  # which NumPy refuses beside bfloat16
        if op in COMPARISONS and keywords.get("casting") in ("no", "equiv"):
            del keywords["casting"]  # an int that the dtype cannot hold is refused here, and NumPy compares it
    if chance(rng, 0.3):
        mask = lay(rng, rng.random(narrowed(rng, shape)) < 0.6, readable=True)
        given.append(mask)
        keywords["where"] = mask.view
    function, sizes = getattr(nbkernels, op), [np.shape(x), np.shape(y), np.shape(keywords.get("where"))]
    shape = np.broadcast_shapes(*sizes)
    tell(f"{op}({judge.shown(x)}, {judge.shown(y)}, {', '.join(f'{k}={judge.shown(v)}' for k, v in keywords.items())})")
    if type(x) in NUMBERS and type(y) in NUMBERS:
        return
    if op.startswith("logical") and any(type(z) is int and not -(2**63) <= z < 2**63 for z in (x, y)):
        return  # NumPy refuses some of these, for reasons of its own
    wanted = expected(op, plain(x), plain(y), shape, **keywords)
    whole = {k: plain(v) for k, v in keywords.items() if k != "order"}
    base = judge.called(lambda: function(plain(x), plain(y), **whole), [], again=False)
    compare(op, base, wanted, x, y, keywords.get("where", True))
    chosen = keywords["where"].copy() if "where" in keywords else True
    form = pick(rng, ["function", "out", "out", "in place"])
    if form == "function":
        found = judge.called(lambda: function(x, y, **keywords), given, chosen=chosen)
        if not judge.refused(base):
            laid_out(found, keywords.get("order"))
    else:
        if form == "in place" and isinstance(x, np.ndarray):
            out = next(p for p in given if p.view is x)
            call = lambda: getattr(nbkernels, op + "_")(x, y, **{k: v for k, v in keywords.items() if k != "order"})  # noqa: E731
        else:
            out = target(rng, shape, base, other, given)
            call = lambda: function(x, y, out=out.view, **keywords)  # noqa: E731
        tell(f"{form} {judge.shown(out.view)}{'' if out.view.flags.writeable else ' read-only'}")
        why = misfit(out.view, shape, base, keywords.get("casting"))
        found = judge.called(call, given, out, chosen)
        if why:
            judge.require(judge.refused(found), f"not refused: {why}")
            return
        if not judge.refused(base) and not judge.refused(found):
            with np.errstate(all="ignore"):
                base = np.asarray(base).astype(out.view.dtype, copy=False)
            if base.dtype.kind in "biu" and not judge.refused(wanted) and np.asarray(wanted).dtype.kind not in "biu":
                chosen = chosen & fits(wanted, base.dtype)
    judge.require(judge.refused(found) == judge.refused(base), "one layout is refused, not the other:", found, base)
    if not judge.refused(found):
        judge.alike(found, base, "the bits of another layout or form", chosen)


def target(rng, shape, base, other, given):
    """An out: of the result's dtype or of another, apart from all or over an input, rarely one that will not do."""
    result = other if judge.refused(base) else np.asarray(base).dtype
    if chance(rng, 0.25):
        result = other
    with np.errstate(all="ignore"):
        content = values(rng, shape, result)
    rooms = [p.room for p in given if p.view.flags.writeable and p.view.size]
    out = lay(rng, content) if not rooms or chance(rng, 0.7) else over(rng, content, pick(rng, given))
    if chance(rng, 0.03):
        out.view.flags.writeable = False
    elif chance(rng, 0.03) and shape and shape[-1] > 1:
        out = lay(rng, values(rng, (*shape[:-1], shape[-1] + 1), result))
    elif chance(rng, 0.03) and shape and max(shape) > 1 and 0 not in shape:
        out.view = np.ndarray(shape, result, out.room, 256, (0,) * len(shape))
    return out


def over(rng, content, placed):
    """An out that may share memory with an input: the same elements, shifted by some, transposed, or anywhere."""
    view, low = placed.view, placed.offset
    inside = np.lib.array_utils.byte_bounds(view) if view.size else None
    same = view.shape == content.shape and view.dtype == content.dtype and 0 not in view.strides
    if same and inside and chance(rng, 0.7):
        shift = view.itemsize * int(rng.integers(-2, 3))
        start = placed.room.ctypes.data
        strides = view.strides
        if len(set(view.shape)) == 1 and chance(rng, 0.5):
            strides = strides[::-1]
        if start <= inside[0] + shift and inside[1] + shift <= start + placed.room.size:
            return type(placed)(placed.room, np.ndarray(view.shape, view.dtype, placed.room, low + shift, strides))
    before = placed.room.copy()
    out = lay(rng, content, room=placed.room)
    if out.room is placed.room:
        placed.room[...] = before
    return out


def fits(values, dtype):
    """Where numbers have a value in dtype: of the others C leaves the conversion open."""
    real, most = np.asarray(values).real.astype("f8"), float(np.iinfo(dtype).max) if dtype.kind != "b" else np.inf
    least = float(np.iinfo(dtype).min) if dtype.kind == "i" else 0
    return (dtype.kind == "b") | ((real > least - 1) & (real < most))


def misfit(out, shape, base, casting):
    """Why a result cannot go to out, if it cannot."""
    if judge.refused(base):
        return "no such call"
    result = np.asarray(base).dtype
    if not out.flags.writeable:
        return "out is read-only"
    if out.shape != shape:
        return "the shape of out"
    if not np.can_cast(result, out.dtype, casting or "same_kind"):
        return f"no cast from {result}"
    if 0 in out.strides and any(n > 1 and s == 0 for n, s in zip(out.shape, out.strides)) and out.size:
        return "elements of out share memory"
    return None


def expected(op, x, y, shape, where=None, alpha=1, order=None, **keywords):
    """NumPy's result, or its error. Its own where and out are left alone: some such calls end the process."""

    def run():
        first, second = x, y
        if where is not None:  # what is not chosen is not computed, so it cannot be an error
            first, second = (np.broadcast_to(z, shape).copy() if isinstance(z, np.ndarray) else z for z in (x, y))
            if op == "pow" and isinstance(second, np.ndarray):
                second[~np.broadcast_to(where, shape)] = 1
        result = getattr(np, op)(first, second, **keywords)
        if type(alpha) is not int or alpha != 1:
            result = scaled(op, result.dtype, first, second, alpha)
        return np.broadcast_to(result, shape)

    return judge.attempt(run)


def scaled(op, dtype, x, y, alpha):
    """x + alpha * y, each step rounded; that of halves once, at the end."""
    kinds = {bool: "b", int: "biufcV", float: "fcV", complex: "c"}[type(alpha)]
    if dtype.kind not in kinds:
        raise TypeError(f"alpha {alpha} and {dtype}")
    work = np.dtype("f4") if dtype.itemsize == 2 and dtype.kind in "fV" else dtype
    x, y = (np.asarray(z).astype(dtype).astype(work) for z in (x, y))
    if dtype.kind in "iu":
        alpha = np.array(int(alpha) % 2 ** (8 * dtype.itemsize), f"u{dtype.itemsize}").view(dtype)
    alpha = np.asarray(alpha).astype(work)
    # Of complex numbers NumPy's own product is contracted or not, by machine.
    return getattr(np, op)(x, textbook(y, alpha) if work.kind == "c" else np.multiply(y, alpha)).astype(dtype)


def compare(op, found, wanted, x, y, chosen):
    """NumPy's error, or its numbers as near as the library says."""
    if judge.refused(wanted) and op == "pow" and not np.any(chosen):
        return  # a power that no element asks for: of 0-d arrays NumPy refuses it all the same
    if judge.refused(wanted) or judge.refused(found):
        judge.require(judge.refused(wanted) == judge.refused(found), "NumPy gives", repr(wanted)[:300], "here it is",
                      repr(found)[:300])  # fmt: skip
        return
    found = np.asarray(found)
    judge.require((found.dtype, found.shape) == (wanted.dtype, wanted.shape), "NumPy's is", wanted.dtype, wanted.shape,
                  "here it is", found.dtype, found.shape)  # fmt: skip
    chosen = np.broadcast_to(chosen, found.shape)
    sides = [np.broadcast_to(np.asarray(z), found.shape)[chosen] for z in (x, y)]
    found, wanted = found[chosen], wanted[chosen]
    try:
        with np.errstate(all="ignore"):
            if op == "logaddexp":
                found = cancelled(found, wanted, *sides)
            near(op, found, wanted, *sides)
    except AssertionError as error:
        raise judge.Finding(f"NumPy's result differs: {' '.join(str(error).split())[:400]}") from None


def cancelled(found, wanted, x, y):
    """found, as wanted where it is so but for a few units of the larger operand: near 0 a logarithm has no more."""
    sizes = np.fmax(1, np.fmax(abs(x.astype("f8")), abs(y.astype("f8"))))
    close = abs(found.astype("f8") - wanted.astype("f8")) <= 4 * epsilon(found.dtype) * sizes
    return np.where(close, wanted, found)


def laid_out(found, order):
    """A new result lies densely, in the order that was asked for."""
    if isinstance(found, np.ndarray) and found.size:
        dense = sum((n - 1) * abs(s) for n, s in zip(found.shape, found.strides)) + found.itemsize == found.nbytes
        judge.require(dense, "a new result has gaps:", found.shape, found.strides)
        if order in ("C", "F"):
            judge.require(found.flags[f"{order}_CONTIGUOUS"], "not in order", order, found.shape, found.strides)


CLASSES = {"element-wise": (theme, case, 8)}
