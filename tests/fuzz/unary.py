"""Element-wise operations of one, on special values and others, over outputs that hold anything, against NumPy's."""

import numpy as np

import nbkernels
from nbkernels.operations import UNARY
from tests.compare import numpys, off_alone

from . import judge
from .elementwise import over
from .rooms import DTYPES, a_shape, chance, lay, narrowed, pick, specials, values

OPS = list(UNARY)


def theme(rng):
    return pick(rng, OPS), pick(rng, DTYPES)


def drawn(rng, shape, dtype):
    """The special numbers of a dtype, one after another from anywhere on, or any."""
    if chance(rng, 0.4):
        return values(rng, shape, dtype)
    found = specials(dtype)
    return np.resize(np.roll(found, int(rng.integers(found.size))), shape)


def case(theme, rng, tell):
    """Every layout and form has the bits of contiguous arrays, and these are NumPy's or within a few ulp of them."""
    op, dtype = theme
    shape, function = a_shape(rng), getattr(nbkernels, op)
    placed = lay(rng, drawn(rng, shape, dtype), readable=True)
    given, words = [placed], {}
    if chance(rng, 0.3):
        mask = lay(rng, rng.random(narrowed(rng, shape)) < 0.6, readable=True)
        given.append(mask)
        words["where"] = mask.view
    tell(f"{op}({judge.shown(placed.view)}, {words and judge.shown(words['where'])})")
    x, chosen = placed.view.copy("C"), words["where"].copy() if words else True
    wanted = judge.attempt(lambda: numpys(op)(x))
    base = judge.called(lambda: function(x), [], again=False)
    judge.require(judge.refused(base) == judge.refused(wanted), "NumPy gives", wanted, "here it is", base)
    if judge.refused(base):
        return
    base, wanted = np.asarray(base), np.asarray(wanted)
    judge.require(base.dtype == wanted.dtype, "NumPy's is", wanted.dtype, "here it is", base.dtype)
    judge.differ(~off_alone(op, base, x), base, wanted, "far from NumPy's result")
    form = pick(rng, ["function", "out", "out", "in place"])
    if form == "in place" and base.dtype == dtype and 0 not in placed.view.strides:
        found = judge.called(lambda: getattr(nbkernels, f"{op}_")(placed.view, **words), given, placed, chosen)
    elif form == "function":
        found = judge.called(lambda: function(placed.view, **words), given, chosen=chosen)
    else:
        poison = rng.integers(0, 256, base.size * base.itemsize, np.uint8).view(base.dtype).reshape(base.shape)
        out = over(rng, poison, placed) if chance(rng, 0.2) else lay(rng, poison)
        tell(f"out {judge.shown(out.view)}{' over what is read' if out.room is placed.room else ''}")
        found = judge.called(lambda: function(placed.view, out=out.view, **words), given, out, chosen)
    judge.require(not judge.refused(found), "one layout is refused, not the other:", repr(found))
    judge.alike(found, base, "the bits of another layout or form", chosen)


CLASSES = {"of one": (theme, case, 4)}
