"""Users' functions, gradients, arrays with operators."""

import numpy as np

import nbkernels

from . import judge
from .elementwise import over
from .rooms import DTYPES, a_shape, chance, lay, narrowed, pick, values

# -- functions of a user -----------------------------------------------------------------------------------------------


def axpb(x, y):
    return x * y + 2


def larger(x, y):
    return x if x > y else y - x


def doubled(x):
    return x + x


def both(x, y):
    return x + y, x - y


def triple(x, y, z):
    return x * y - z


FUNCTIONS = {axpb: 2, larger: 2, doubled: 1, both: 2, triple: 3}
MADE = {function: nbkernels.elementwise(function) for function in FUNCTIONS}
VECTORISED = {larger: lambda x, y: np.where(x > y, x, y - x)}
WORK = [np.dtype(c) for c in ("f4", "f8", "i4", "i8", "u1", "c8", "c16")]


def fused_theme(rng):
    function = pick(rng, list(FUNCTIONS))
    dtype = pick(rng, WORK if function is not larger else WORK[:5])
    return function, dtype


def fused_case(theme, rng, tell):
    """elementwise and fuse: every form and layout has the bits of NumPy's steps."""
    function, dtype = theme
    shape, given, words = a_shape(rng), [], {}
    mood = "mild" if dtype.kind == "c" else pick(rng, ["wild", "mild"])
    for _ in range(FUNCTIONS[function]):
        given.append(lay(rng, values(rng, narrowed(rng, shape), dtype, mood), readable=True))
    views = [p.view for p in given]
    if chance(rng, 0.3):
        mask = lay(rng, rng.random(narrowed(rng, shape)) < 0.6, readable=True)
        given.append(mask)
        words["where"] = mask.view
    shape = np.broadcast_shapes(*(p.view.shape for p in given))
    tell(f"{function.__name__}({', '.join(map(judge.shown, views))}, {words and judge.shown(words['where'])})")
    chosen = words["where"].copy() if words else True
    with np.errstate(all="ignore"):
        wanted = VECTORISED.get(function, function)(*(v.copy("C") for v in views))
    made = nbkernels.fuse(function) if chance(rng, 0.3) else MADE[function]
    if function is both:
        found = judge.called(lambda: made(*views, **words)[1], given, chosen=chosen)
        wanted = wanted[1]
    elif chance(rng, 0.5):
        found = judge.called(lambda: made(*views, **words), given, chosen=chosen)
    else:
        content = values(rng, shape, np.asarray(wanted).dtype)
        out = over(rng, content, pick(rng, given)) if chance(rng, 0.3) else lay(rng, content)
        tell(f"out {judge.shown(out.view)}")
        found = judge.called(lambda: made(*views, out=out.view, **words), given, out, chosen)
    judge.require(not judge.refused(found), "refused:", repr(found))
    wanted = np.broadcast_to(wanted, shape)
    if dtype.kind == "c" and function in (axpb, triple):
        chosen = np.broadcast_to(chosen, shape)
        scale = float(np.finfo(dtype).eps) * (8 + 8 * np.abs(wanted))
        judge.differ((abs(found - wanted) <= scale * 40) | ~chosen, found, wanted, "far from NumPy's steps")
    else:
        judge.alike(found, wanted, "not the bits of NumPy's steps", chosen)


# -- gradients ---------------------------------------------------------------------------------------------------------

GRADIENTS = {
    "add": 2, "subtract": 2, "multiply": 2, "divide": 2, "maximum": 2, "atan2": 2, "hypot": 2, "logaddexp": 2,
    "mm": "mn", "matmul": "mn", "linear": "mt", "addmm": "amn", "bmm": "bmn", "mv": "mv", "dot": "vv", "outer": "vw",
    "sum_to": 1,
}  # fmt: skip
REAL = ("maximum", "atan2", "hypot", "logaddexp")


def gradient_theme(rng):
    op = pick(rng, list(GRADIENTS))
    return op, np.dtype("f8") if op in REAL else pick(rng, [np.dtype("f8"), np.dtype("c16")])


def gradient_case(theme, rng, tell):
    """vjp along a random direction, against a central difference."""
    op, dtype = theme
    m, n, k, b = (int(rng.integers(1, 7)) for _ in range(4))
    letters = {"m": (m, k), "n": (k, n), "t": (n, k), "a": (m, n), "v": (k,), "w": (n,)}
    if isinstance(GRADIENTS[op], int):
        shape = tuple(int(x) for x in rng.integers(1, 5, int(rng.integers(0, 4))))
        sizes = [narrowed(rng, shape) for _ in range(GRADIENTS[op])]
    else:
        sizes = [
            (letters[c] if op != "bmm" else (b, *letters[c])) for c in GRADIENTS[op].removeprefix("b" * (op == "bmm"))
        ]
    args = [values(rng, s, dtype, "mild") for s in sizes]
    if op in ("divide", "hypot", "atan2"):
        args[1] = args[1] + np.copysign(1, args[1].real)
    placed = [lay(rng, x, readable=False) for x in args]
    words = {}
    if op == "addmm":
        words = {"beta": 0.5, "alpha": pick(rng, [2, -1.5])}
    function = getattr(nbkernels, op)
    call = lambda *x: function(*x, **words)  # noqa: E731
    if op == "sum_to":
        to = tuple(1 if chance(rng, 0.5) else s for s in sizes[0])
        call = lambda x: function(x, to)  # noqa: E731
    tell(f"vjp of {op}({', '.join(judge.shown(p.view) for p in placed)}, {words})")
    found = judge.attempt(lambda: nbkernels.vjp(call, *(p.view for p in placed)))
    judge.require(not judge.refused(found), "refused:", repr(found))
    result, pull = found
    grad = values(rng, np.shape(result), dtype, "mild")
    parts = judge.attempt(lambda: pull(grad))
    judge.require(not judge.refused(parts), "refused:", repr(parts))
    for i, (x, part) in enumerate(zip(args, parts)):
        part = np.asarray(part)
        judge.require((part.shape, part.dtype) == (x.shape, x.dtype), "the gradient of argument", i, "is", part.shape,
                      part.dtype)  # fmt: skip
        way, step = values(rng, x.shape, dtype, "mild"), 1e-6
        sides = [
            np.asarray(call(*(z + sign * step * way if j == i else z for j, z in enumerate(args)))) for sign in (1, -1)
        ]
        slope = float(np.sum(grad.conj() * (sides[0] - sides[1])).real) / (2 * step)
        along = float(np.sum(part.conj() * way).real)
        size = 1 + float(np.sum(abs(part) * abs(way))) + abs(slope)
        judge.require(
            abs(slope - along) <= 1e-5 * size, "the gradient of argument", i, "is", along, "along, not", slope
        )


# -- arrays with operators ---------------------------------------------------------------------------------------------

OPERATORS = {
    "x + y": "add", "x - y": "subtract", "x * y": "multiply", "x / y": "divide", "x // y": "floor_divide",
    "x % y": "remainder", "x < y": "less", "x == y": "equal", "x >= y": "greater_equal", "x & y": "bitwise_and",
    "x | y": "bitwise_or", "x ^ y": "bitwise_xor", "np.maximum(x, y)": "maximum", "x @ y.T": "matmul",
    "x.sum(0)": "", "x.sum(axis=-1, where=where)": "", "x.max()": "", "np.add.reduce(x, 1, where=where)": "",
    "np.add.accumulate(x, 1)": "", "np.add.outer(x[0], y[:, 0])": "", "x.mean(0)": "", "np.sqrt(abs(x))": "",
    "np.add(x, y, where=where, out=np.zeros(x.shape, x.dtype))": "",
}  # fmt: skip


def array_theme(rng):
    return pick(rng, list(OPERATORS)), pick(rng, [d for d in DTYPES if d.kind != "V" and d.itemsize != 2])


def array_case(theme, rng, tell):
    """What asarray gives computes what NumPy does: the same errors, dtypes and numbers."""
    text, dtype = theme
    shape = tuple(int(x) for x in rng.integers(1, 9, 2))
    given = [lay(rng, values(rng, shape, dtype, "mild"), readable=True) for _ in range(2)]
    mask = lay(rng, rng.random(shape) < 0.6, readable=True)
    tell(f"{text} of {', '.join(judge.shown(p.view) for p in (*given, mask))}")
    names = {"np": np, "where": mask.view}
    run = lambda make: eval(text, names | {key: make(p.view) for key, p in zip("xy", given)})  # noqa: E731
    wanted = judge.attempt(lambda: run(lambda v: v.copy("C")))
    found = judge.called(lambda: run(nbkernels.asarray), [*given, mask])
    judge.require(judge.refused(wanted) == judge.refused(found), "NumPy gives", repr(wanted), "here it is", repr(found))
    if judge.refused(found):
        return
    found, wanted = np.asarray(found), np.asarray(wanted)
    judge.require((found.dtype, found.shape) == (wanted.dtype, wanted.shape), "NumPy's is", wanted.dtype, wanted.shape,
                  "here it is", found.dtype, found.shape)  # fmt: skip
    with np.errstate(all="ignore"):
        close = (found == wanted) | ((found != found) & (wanted != wanted))
        if found.dtype.kind in "fc":
            close |= abs(found - wanted) <= 1e-5 * (9 if dtype.char in "fF" else 1e-8) * (20 + abs(wanted))
    judge.differ(close, found, wanted, "NumPy's result differs")


CLASSES = {
    "function": (fused_theme, fused_case, 2),
    "gradient": (gradient_theme, gradient_case, 2),
    "array": (array_theme, array_case, 2),
}
