"""Calls with one thing wrong, which must be refused."""

import numpy as np
from numpy.lib.stride_tricks import as_strided

import nbkernels

from . import judge
from .rooms import lay, pick, values


def illegal_theme(rng):
    return pick(rng, ["element-wise", "product", "fold", "at"]), pick(
        rng, [np.dtype(c) for c in ("f4", "f8", "i4", "c8")]
    )


def illegal_case(theme, rng, tell):
    """A call with one thing wrong raises an error, and leaves every byte as it was."""
    family, dtype = theme
    m, n = (int(rng.integers(2, 9)) for _ in range(2))
    x, y = (lay(rng, values(rng, (m, n), dtype, "whole")) for _ in range(2))
    out = lay(rng, values(rng, (m, n), dtype))
    function, args, words = {
        "element-wise": lambda: (getattr(nbkernels, pick(rng, LEGAL)), [x.view, y.view], {}),
        "product": lambda: (nbkernels.addmm, [x.view, x.view, lay(rng, values(rng, (n, n), dtype, "whole")).view], {}),
        "fold": lambda: (pick(rng, [nbkernels.add, nbkernels.maximum]).accumulate, [x.view], {"axis": 0}),
        "at": lambda: (nbkernels.add.at, [x.view, [0, 1], y.view[:2]], {}),
    }[family]()
    words = dict(words) if family == "at" else words | {"out": out.view}
    name, spoil = pick(rng, [s for s in SPOILS.items() if family in s[1][0]])
    result = spoil[1](rng, args, words, dtype)
    if result is False:
        return
    told = [*map(judge.shown, args), *(f"{key}={judge.shown(value)}" for key, value in words.items())]
    tell(f"{function.__qualname__} with {name}: {', '.join(told)}")
    found = judge.called(lambda: function(*args, **words), [x, y, out])
    judge.require(judge.refused(found), "not refused:", repr(found)[:200])


LEGAL = ("add", "subtract", "multiply", "divide", "pow", "equal", "logical_or")
EVERY = ("element-wise", "product", "fold", "at")
CALLS = EVERY[:3]


def put(key, make):
    def spoil(rng, args, words, dtype):
        words[key] = make(rng, words.get(key), args, dtype)

    return spoil


def swap(i, make):
    def spoil(rng, args, words, dtype):
        args[i] = make(rng, args[i])

    return spoil


def read_only(rng, out, args, dtype):
    view = out.view()
    view.flags.writeable = False
    return view


def self_read_only(rng, x):
    view = x.view()
    view.flags.writeable = False
    return view


def wider(x):
    return np.ones((x.shape[0], x.shape[1] + 1), x.dtype)


def no_float(rng, args, words, dtype):
    if dtype.kind != "i":
        return False
    words["alpha"] = 0.5
    return None


SPOILS = {
    "an out of another shape": (CALLS, put("out", lambda r, o, a, d: o[:-1])),
    "an out of more dimensions": (CALLS, put("out", lambda r, o, a, d: np.zeros((2, *o.shape), d))),
    "a read-only out": (CALLS, put("out", read_only)),
    "an out that overlaps itself": (CALLS, put("out", lambda r, o, a, d: as_strided(o, o.shape, (d.itemsize, 0)))),
    "a byte-swapped out": (
        ("element-wise", "product"),
        put("out", lambda r, o, a, d: np.zeros(o.shape, d.newbyteorder())),
    ),
    "an out that is no array": (CALLS, put("out", lambda r, o, a, d: pick(r, [3, "x", [1.0], object()]))),
    "a narrower out": (("product",), put("out", lambda r, o, a, d: np.zeros(o.shape, "i1"))),
    "an unknown keyword": (CALLS, put("outt", lambda *_: None)),
    "operands that do not broadcast": (("element-wise",), swap(1, lambda r, y: wider(y))),
    "sizes that do not fit": (("product",), swap(1, lambda r, y: wider(y))),
    "another dtype": (("product",), swap(2, lambda r, y: y.astype("i2"))),
    "a list": (CALLS, swap(0, lambda r, x: x.tolist())),
    "None": (EVERY, swap(0, lambda r, x: None)),
    "a string": (EVERY, swap(0, lambda r, x: "abc")),
    "an array of objects": (EVERY, swap(0, lambda r, x: x.astype(object))),
    "an array of dates": (EVERY, swap(0, lambda r, x: np.zeros(x.shape, "M8[s]"))),
    "long doubles": (EVERY, swap(0, lambda r, x: np.zeros(x.shape, np.longdouble))),
    "a byte-swapped operand": (CALLS, swap(0, lambda r, x: x.astype(x.dtype.newbyteorder()))),
    "a byte-swapped other": (("at",), swap(2, lambda r, x: x.astype(x.dtype.newbyteorder()))),
    "a where of numbers": (("element-wise",), put("where", lambda r, o, a, d: np.ones(a[0].shape, "i1"))),
    "a where that does not broadcast": (("element-wise",), put("where", lambda r, o, a, d: wider(a[0]) > 0)),
    "an unknown casting": (("element-wise",), put("casting", lambda r, *_: pick(r, ["", "sure", 3]))),
    "an unknown order": (("element-wise",), put("order", lambda r, *_: pick(r, ["", "X", 3]))),
    "an unknown dtype": (
        ("element-wise", "fold"),
        put("dtype", lambda r, *_: pick(r, ["", "flot", 3.5, "M8[s]", object])),
    ),
    "an alpha that is no number": (("product",), put("alpha", lambda r, *_: pick(r, ["1", [1], np.ones(2)]))),
    "a beta that is no number": (("product",), put("beta", lambda r, *_: pick(r, ["1", [1], np.ones(2)]))),
    "a float alpha of integers": (("product",), no_float),
    "a wrong out_dtype": (("product",), put("out_dtype", lambda r, *_: pick(r, ["int64", "float16", "x"]))),
    "an unknown mode": (("product",), put("mode", lambda r, *_: pick(r, ["fast", "", 3]))),
    "an unknown conj": (("product",), put("conj", lambda r, *_: pick(r, ["c", "ba", 3]))),
    "tiles of nothing": (("product",), put("tiles", lambda r, *_: pick(r, [(1, 2), (0,) * 6, (-1,) * 6, "abc"]))),
    "an axis out of bounds": (("fold",), put("axis", lambda r, *_: pick(r, [2, -3, 99, 0.5, "0", (0, 1), [0], True]))),
    "an index out of bounds": (("at",), swap(1, lambda r, i: [0, 99])),
    "indices of floats": (("at",), swap(1, lambda r, i: np.array([0.5]))),
    "what does not broadcast": (("at",), swap(2, lambda r, y: np.ones((3, y.shape[1] + 1), y.dtype))),
    "a read-only self": (("at",), swap(0, self_read_only)),
}


CLASSES = {"illegal": (illegal_theme, illegal_case, 2)}
