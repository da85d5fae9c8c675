"""Matrix products of every kind, against exact references in the library's order, and within Higham's bound."""

import numpy as np

import nbkernels
from nbkernels.meta import WIDENED
from tests import reference

from . import judge
from .elementwise import over
from .rooms import DTYPES, SIZES, chance, lay, pick, values

F4 = np.dtype("f4")
# name -> whether self is added to the product, the number of chains that a vector's sum has (0: the one of a matrix)
OPS = ["mm", "addmm", "bmm", "baddbmm", "addbmm", "mv", "addmv", "outer", "addr", "dot", "vdot", "matmul", "linear",
       "addmm_activation"]  # fmt: skip
ADDED = ("addmm", "baddbmm", "addbmm", "addmv", "addr", "addmm_activation")
CHAINS = {"dot": 64, "vdot": 64, "mv": 8, "addmv": 8}
MOST = {"f": 40_000, "d": 1500}  # multiply-adds that the slow references are asked for
ACTIVATIONS = [("relu", "none"), ("gelu", "none"), ("gelu", "tanh"), ("silu", "none"), ("tanh", "none"),
               ("sigmoid", "none")]  # fmt: skip


def theme(rng):
    """An operation and the dtypes of its matrices and its result."""
    op, dtype = pick(rng, OPS), pick(rng, DTYPES)
    if op == "addmm_activation":
        dtype = pick(rng, [d for d in DTYPES if d.kind in "fV"])
    wide = np.dtype(WIDENED[dtype.name]) if dtype.name in WIDENED and chance(rng, 0.4) else dtype
    other = pick(rng, [np.dtype("i1"), np.dtype("u1")]) if wide.name == "int32" != dtype.name else dtype
    return op, dtype, other, wide


def sizes(rng):
    """m, n, k: mostly a few, each of them sometimes 0, 1 or large."""
    found = [int(rng.integers(1, 9)) if chance(rng, 0.5) else pick(rng, SIZES[:72]) for _ in range(3)]
    if chance(rng, 0.06):
        found[int(rng.integers(3))] = pick(rng, [97, 131, 257, 513, 1030])
    if chance(rng, 0.02):
        return [int(rng.integers(1, 4)), int(rng.integers(1, 4)), pick(rng, [4095, 4096, 4097, 9001])]
    if chance(rng, 0.02):
        return [pick(rng, [64, 127, 130, 161]) for _ in range(3)]
    return found


def shapes(rng, op, m, n, k):
    """(of self or None, of the factors, of the result)."""
    batch = int(rng.integers(0, 6)) if chance(rng, 0.9) else 33
    if op in ("mm", "addmm", "addmm_activation"):
        return (m, n), [(m, k), (k, n)]
    if op in ("bmm", "baddbmm", "addbmm"):
        return (m, n) if op == "addbmm" else (batch, m, n), [(batch, m, k), (batch, k, n)]
    if op in ("mv", "addmv"):
        return (m,), [(m, k), (k,)]
    if op in ("outer", "addr"):
        return (m, n), [(m,), (n,)]
    if op in ("dot", "vdot"):
        return (), [(k,), (k,)]
    lead = tuple(int(x) for x in rng.integers(1, 5, int(rng.integers(0, 3))))
    if op == "linear":
        left = (*lead, m, k) if chance(rng, 0.7) else (k,)
        return (*left[:-1], n), [left, (n, k)]
    other = tuple(1 if chance(rng, 0.3) else x for x in lead[int(rng.integers(len(lead) + 1)) :])
    left = (*lead, m, k) if chance(rng, 0.75) else (k,)
    right = (*other, k, n) if chance(rng, 0.75) else (k,)
    return np.broadcast_shapes(left[:-2], right[:-2]) + left[-2:-1] + right[-1:] * (len(right) > 1), [left, right]


def case(theme, rng, tell):
    op, first, second, wide = theme
    m, n, k = sizes(rng)
    whole, factors = shapes(rng, op, m, n, k)
    mood = pick(rng, ["mild", "mild", "mild", "wild", "whole"])
    given = [lay(rng, values(rng, s, d, mood), readable=True) for s, d in zip(factors, (first, second))]
    keywords, selves = {}, []
    if wide != first:
        keywords["out_dtype"] = wide.name
    if first.kind == "c" and op != "vdot" and op != "addmm_activation" and chance(rng, 0.3):
        keywords["conj"] = pick(rng, ["a", "b", "ab"])
    if op == "linear" and chance(rng, 0.6):
        selves = [lay(rng, values(rng, pick(rng, [(n,), (1,), ()]), wide, mood), readable=True)]
    if op in ADDED:
        spread = [whole, whole, tuple(1 if chance(rng, 0.5) else x for x in whole), whole[1:], ()]
        selves = [lay(rng, values(rng, pick(rng, spread), wide, mood), readable=True)]
        for name in ("beta", "alpha"):
            if chance(rng, 0.6):
                keywords[name] = factor(rng, wide)
    if op == "addmm_activation":
        keywords["activation"], keywords["approximate"] = pick(rng, ACTIVATIONS)
    args = [*given, *selves] if op == "linear" else [*selves, *given]
    function, views = getattr(nbkernels, op), [p.view for p in args]
    form = pick(rng, ["function", "out", "out", "in place"])
    in_place = form == "in place" and op in ADDED and views[0].shape == whole
    tell(f"{op}({', '.join(map(judge.shown, views))}, {keywords}) {'in place' if in_place else ''}")
    copies = [v.copy("C") for v in views]
    base = judge.called(lambda: function(*copies, **keywords), [], again=False)
    judge.require(not judge.refused(base), "refused:", repr(base))
    judge.require(
        (base.shape, base.dtype) == (whole, wide), "the result is", base.shape, base.dtype, "not", whole, wide
    )
    check(op, np.asarray(base), copies, wide, keywords)
    if form == "function":
        found = judge.called(lambda: function(*views, **keywords), args)
    elif in_place:
        found = judge.called(lambda: getattr(nbkernels, op + "_")(*views, **keywords), args, args[0])
        if not own_elements(views[0]):
            judge.require(judge.refused(found), "not refused: elements of self share memory")
            return
    else:
        content = values(rng, whole, wide)
        out = over(rng, content, pick(rng, args)) if chance(rng, 0.3) else lay(rng, content)
        shared = any(out.room is p.room for p in args)
        tell(f"out {judge.shown(out.view)}{' in the room of an operand' if shared else ''}")
        found = judge.called(lambda: function(*views, out=out.view, **keywords), args, out)
    judge.require(not judge.refused(found), "refused:", repr(found))
    judge.alike(found, base, "the bits of another layout or form")


def factor(rng, dtype):
    if dtype.kind in "biu":
        return pick(rng, [0, 1, -1, 2, 3, 127, -7])
    return pick(rng, [0, 1, 0.0, -0.0, -1, 0.5, 1.7, -3.25, *([0.5 - 2j, 1j] if dtype.kind == "c" else [])])


def own_elements(x):
    return all(n <= 1 or s for n, s in zip(x.shape, x.strides)) or not x.size


# -- what must come out ------------------------------------------------------------------------------------------------


def check(op, found, args, wide, keywords):
    """The contiguous call against the reference: bit for bit where that is quick, else within the bound."""
    beta, alpha = keywords.get("beta", 1), keywords.get("alpha", 1)
    a, b = args[:2] if op == "linear" else args[-2:]
    a = a.conj() if "a" in keywords.get("conj", "") or op == "vdot" else a
    b = b.conj() if "b" in keywords.get("conj", "") else b
    x = args[0] if op in ADDED else args[2] if op == "linear" and len(args) > 2 else None
    with np.errstate(all="ignore"):
        if op == "addmm_activation":
            check_activation(found, args, wide, keywords)
            return
        a, b, chains = matrices(op, a, b, wide)
        cost = found.size * a.shape[-1]
        slow = op == "addbmm" or isinstance(alpha, complex) or isinstance(beta, complex)
        if wide.kind in "biu":
            exactly(found, *whole_numbers(a, b, x, found.shape, beta, alpha, op))
        elif not slow and cost <= MOST["f" if a.dtype.char in "fF" else "d"]:
            exactly(found, in_order(a, b, x, found.shape, beta, alpha, chains, wide), wide)
        else:
            bounded(found, a, b, x, beta, alpha, op, wide)


def matrices(op, a, b, wide):
    """Both factors as stacks of matrices in the dtype that is summed in, and the number of chains."""
    work = F4 if wide.kind in "fV" and wide.itemsize == 2 else wide
    chains = CHAINS.get(op, 0)
    if op == "matmul" and min(a.ndim, b.ndim) == 1:
        chains = 64 if a.ndim == b.ndim == 1 else 8 if max(a.ndim, b.ndim) == 2 else 0
    if (chains == 8 and a.dtype.char not in "fd") or wide != a.dtype:
        chains = 0
    if op in ("outer", "addr"):
        a, b = a[:, None], b[None]
    b = b.T if op == "linear" else b
    if a.ndim == 1:
        a = a[None]
    if b.ndim == 1:
        b = b[:, None]
    return a.astype(work), b.astype(work), chains


def whole_numbers(a, b, x, shape, beta, alpha, op):
    """The result modulo 2**bits; of bools "or" of "and"s."""
    dtype = a.dtype
    product = np.matmul(a, b)
    if op == "addbmm":
        product = np.logical_or.reduce(product) if dtype.kind == "b" else product.sum(0, dtype=dtype)
    product = product.reshape(shape)
    if dtype.kind == "b":
        product = product & bool(alpha)
        return (product if x is None else product | (np.broadcast_to(x, shape) & bool(beta))), dtype
    scale = lambda value: np.array(value % 2 ** (8 * dtype.itemsize), f"u{dtype.itemsize}").view(dtype)  # noqa: E731
    product = product * scale(alpha)
    return (product if x is None else scale(beta) * x + product).astype(dtype), dtype


def in_order(a, b, x, shape, beta, alpha, chains, wide):
    """Each matrix of a stack by the library's order of summation; the ending once; one rounding."""
    lead = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    full = (*lead, a.shape[-2], b.shape[-1])
    left, right = np.broadcast_to(a, lead + a.shape[-2:]), np.broadcast_to(b, lead + b.shape[-2:])
    total = np.zeros(full, a.dtype)
    for i in np.ndindex(lead):
        if a.shape[-1] and alpha != 0:
            total[i] = one(left[i], right[i], chains)
    total = total.reshape(shape)
    if x is None and alpha == 1:
        return total.astype(wide)
    x = np.zeros((), wide) if x is None or beta == 0 else x
    return ended(np.broadcast_to(x, shape), total, 0 if x is None else beta, alpha).astype(wide)


def one(a, b, chains):
    if 0 in (a.shape[0], b.shape[1]):
        return np.empty((a.shape[0], b.shape[1]), a.dtype)
    if not chains:
        return reference.complex_matmul(a, b) if a.dtype.kind == "c" else reference.matmul(a, b)
    if a.shape[0] == 1 and b.shape[1] > 1:
        return reference.in_chains(np.ascontiguousarray(b.T), a[0], chains)[None]
    return reference.in_chains(a, b[:, 0], chains)[:, None]


def ended(x, total, beta, alpha):
    """fma(beta, x, alpha * total), part by part for real factors."""
    if total.dtype.kind == "c":
        result = np.empty(total.shape, total.dtype)
        x = x.astype(total.dtype)
        result.real, result.imag = (ended(p, t, beta, alpha) for p, t in ((x.real, total.real), (x.imag, total.imag)))
        return result
    kind = total.dtype.type
    scaled = kind(alpha) * total
    return scaled if beta == 0 else reference.FMA[total.dtype](kind(beta), x.astype(total.dtype), scaled)


def exactly(found, expected, dtype):
    expected = np.asarray(expected).astype(dtype, copy=False)
    equal = (found == expected) | ((found != found) & (expected != expected))
    judge.differ(equal, found, expected, "not the reference's")


def bounded(found, a, b, x, beta, alpha, op, wide):
    """|error| <= gamma_(k+2) |alpha| |A| |B| + ..., and the rounding to the result's dtype; of finite numbers."""
    high = np.clongdouble if wide.kind == "c" else np.longdouble
    p, q = a.astype(high), b.astype(high)
    sums = [np.matmul(p, q), np.matmul(abs(p), abs(q))]
    if op == "addbmm":
        sums = [s.sum(0) for s in sums]
    exact, size = (s.reshape(found.shape) for s in sums)
    exact, size = (alpha * exact, abs(alpha) * size) if alpha != 0 else (exact * 0, size * 0)
    if alpha == 0:
        exact, size = np.zeros(found.shape, high), np.zeros(found.shape, np.longdouble)
    if x is not None and beta != 0:
        exact, size = exact + beta * x.astype(high), size + abs(beta) * abs(x.astype(high))
    unit = float(np.finfo(a.dtype).eps) / 2
    steps = (a.shape[-1] * (a.shape[0] if op == "addbmm" else 1) + 6) * unit * (3 if wide.kind == "c" else 1)
    allowed = steps / (1 - steps) * size + float(np.finfo(a.dtype).smallest_subnormal) * (a.shape[-1] + 2)
    if wide.itemsize == 2:
        allowed = allowed + size * (2.0**-10 if wide.kind == "f" else 2.0**-7) + 1e-7
        if op == "addbmm":
            return
    largest = 60000 if wide.char == "e" else 1e37 if wide.char in "fF" or wide.kind == "V" else 1e307
    fine = np.isfinite(exact) & (size < largest)
    wrong = fine & ~(abs(found.astype(high) - exact) <= allowed)
    judge.differ(~wrong, found, np.asarray(exact), "beyond the bound")


def check_activation(found, args, wide, keywords):
    """The bits of addmm followed by the function."""
    from nbkernels.epilogues import ENDINGS

    words = {key: value for key, value in keywords.items() if key in ("beta", "alpha", "out_dtype")}
    product = nbkernels.addmm(*args, **words)
    check("addmm", product, args, wide, words)
    judge.alike(
        found, ENDINGS[keywords["activation"], keywords["approximate"]].apply(product), "addmm, then the function"
    )


CLASSES = {"product": (theme, case, 7)}
