"""out[i] = fn(self[i], other[i]) over broadcast NumPy arrays of any strides.

Kernels get an `out` of the broadcast shape, every check passed. Inputs are read through their strides and converted in
the loop; an input that really overlaps out other than element for element is copied first.
"""

from __future__ import annotations

import functools

import numpy as np

from ... import scalar
from ...dtypes import ALONE, HALVES, kind, known, resolve, settled, ufunc
from ...jit.ir.vector import masked, width_bits
from ...operations import CHAINED, ELEMENTWISE, LIGHT, TEST
from ...rounding import rounded
from ...strides import plan
from . import gates, schedule
from .loop import Loop
from .loops import address

NO_SCALARS = np.empty(0)


def spec(op: str, first, second, out, dtype=None, casting="same_kind", *, checked=True, masked=False, **layout) -> Loop:
    """The loops of an operation over inputs and an output of these dtypes.

    Those that are not `checked` take no note of faults. `layout`: what else Loop says of rows and columns.
    """
    for given in (first, second, out):
        if not known(given):
            raise TypeError(f"{op}: no loop for dtype {given!r}")
    name = op.removesuffix("_scaled")
    *inputs, result = resolve(name, first, second, dtype, casting)
    if not np.can_cast(result, out, casting):
        raise TypeError(f"{name}: cannot cast the result from {result} to {out!r} under casting={casting!r}")
    names = tuple(d.name for d in (*inputs, result))
    return Loop(
        scalar.find(op, *inputs),
        (first.name, second.name),
        names,
        out.name,
        int(op != name),
        masked=masked,
        faults=scalar.find(f"{op}_faults", inputs[0]) if checked else None,
        light=_light(name, inputs[0]),
        # LLVM vectorises none into items of 16 bytes
        paired=_chained(name) and inputs[0].kind == "f" and out.itemsize < 16,
        plain=None if masked else _plain(op, inputs[0]),
        alone=name in ALONE,
        numbers=() if masked else scalar.find(f"{op}_numbers", inputs[0]) or (),
        **layout,
    )


@functools.cache
def loop(*args, **keywords) -> int:
    """Address of the compiled loops of `spec(...)`."""
    return address(spec(*args, **keywords))


def _light(name, work):
    row = ELEMENTWISE[name]
    return row.cost == LIGHT and work.kind in ("f" if row.group == TEST else "fiu")


def _chained(name):
    return ELEMENTWISE[name].cost == CHAINED


def _plain(op, work):
    """The function that is asked first, or None; where vectors convert integers of 64 bits, no other for these."""
    divided = work.kind in "iu" and op != "pow"
    return None if divided and width_bits() == 512 else scalar.find(f"{op}_plain", work)


@functools.lru_cache(maxsize=4096)
def nested(op, dtypes, shapes, strides, dtype, casting, fresh) -> schedule.Nest:
    """The loops of a call, planned and compiled."""
    itemsizes = tuple(d.itemsize for d in dtypes)
    loops, (out, first, second, *mask) = plan(shapes, strides, itemsizes), dtypes
    name = op.removesuffix("_scaled")
    work = resolve(name, first, second, dtype, casting)[0]
    divided = not _chained(name) and _plain(name, work) is not None  # by runs, which lines are not
    # Truths that come of turned inputs are stored by runs where there are no masked stores of bytes.
    light = not mask and _light(name, work) and all(map(masked, itemsizes[loops.kind == "transposed" :]))
    made = gates.choose(loops, itemsizes, light, gates.many(name), not (fresh or mask or divided))
    if mask and not set(made.steps[-1:]) <= {0, 1}:  # LLVM 22 may store past a mask that it has turned in a register:
        made = made._replace(steps=())  # tests/elementwise/test_layouts.py
    compiled = loop(op, first, second, out, dtype, casting, masked=bool(mask), **made._asdict())
    return schedule.Nest(loops, compiled, itemsizes, made, gates.parallel(op), light)


def binary(op: str, out, self, other, alpha=1, where=None, casting=None, dtype=None, fresh=False, first=False) -> None:
    """out = op(self, other), or op_scaled(self, other, alpha) for an alpha that is not 1, where `where` is not False.

    `first`: the caller has found it to be one of the first calls. `fresh`: nobody has touched out's memory. The system
    zeroes such a page at the first store, in the cache: streaming stores would wait for it to be written back (16 M
    f32, one thread: 21 ms against 17).
    """
    casting = casting or "same_kind"
    self, other, work = _arrays(op, self, other, dtype, casting)
    scalars, checked = NO_SCALARS, scalar.find(f"{op}_faults", work)
    if op == "pow" and work.kind == "i":
        refuse_negative(other.astype(work, copy=False), where)
    if alpha != 1:
        op += "_scaled"
        scalars = _wrapped(alpha, work)
    if out.size == 0:
        return
    if checked:
        scalars = np.zeros(2, np.int64)
    inputs = (self, other) if where is None else (self, other, np.asarray(where))
    arrays = (out, *(apart(out, x) for x in inputs))
    dtypes, shapes = tuple(x.dtype for x in arrays), tuple(x.shape for x in arrays)
    loops = nested(op, dtypes, shapes, tuple(x.strides for x in arrays), dtype, casting, fresh)
    loops.run(arrays, scalars.ctypes.data, first)
    if checked and scalars.any():
        warn(op, scalars)


def _arrays(op, self, other, dtype, casting):
    """Return self and other as arrays, and the dtype that self is computed in; Python numbers convert by NEP 50."""
    if isinstance(self, np.ndarray) and isinstance(other, np.ndarray):
        return self, other, resolve(op, self.dtype, other.dtype, dtype, casting)[0]
    values = settled(op, self, other), settled(op, other, self)
    work = resolve(op, *map(kind, values), dtype, casting)
    self, other = (x if isinstance(x, np.ndarray) else np.asarray(x, d) for x, d in zip(values, work))
    return self, other, work[0]


def refuse_negative(exponents, where):
    """Raise for a negative exponent of integers, before anything is written."""
    if exponents.size and exponents.min() < 0 and (where is None or np.any(where & (exponents < 0))):
        raise ValueError("pow: integers to negative integer powers are not allowed")


def warn(op, faults):
    """NumPy's warning (or what its errstate asks for) of the kinds of faults that were met."""
    smallest = np.iinfo(np.int64).min
    for met, pair in zip(faults, ((1, 0), (smallest, -1))):
        if met:
            if op in ALONE:
                pair = pair[1:]
            ufunc(op)(*map(np.int64, pair))


def _wrapped(value, dtype: np.dtype) -> np.ndarray:
    """A scalar as an array of one element, an integer modulo 2^bits, of the dtype that is computed in."""
    if dtype.kind in "iu":
        return np.array([int(value) % (1 << 8 * dtype.itemsize)], f"u{dtype.itemsize}").view(dtype)
    return np.array([value], np.float32 if dtype.name in HALVES else dtype)


def apart(out, x):
    """x, or a copy where out really overlaps it other than element for element."""
    if x is out or not np.may_share_memory(out, x):
        return x
    layouts = [(a.ctypes.data, a.shape, a.strides, a.itemsize) for a in (out, x)]
    if layouts[0] == layouts[1]:
        return x
    try:
        overlap = np.shares_memory(out, x, max_work=10_000)
    except np.exceptions.TooHardError:
        overlap = True
    return x.copy() if overlap else x


def __getattr__(name: str):
    """The kernel of an operation, by its name: made when it is first asked for."""
    if not scalar.exists(name):
        raise AttributeError(f"no element-wise operation is called {name}")
    way = _alone if name in ALONE else binary if scalar.exists(f"{name}_scaled") else _unscaled
    globals()[name] = made = functools.partial(way, name)
    return made


def _alone(op, out, self, where=None, casting=None, dtype=None) -> None:
    binary(op, out, self, self, 1, where, casting, dtype)


def round(out, self, decimals=0, where=None, casting=None, dtype=None) -> None:
    def run(op, *operands, **keywords):
        (_alone if op in ALONE else _unscaled)(op, *operands, **keywords)

    rounded(run, np.empty, getattr, out, self, decimals, where, casting, dtype)


def _unscaled(op, out, self, other, where=None, casting=None, dtype=None) -> None:
    binary(op, out, self, other, 1, where, casting, dtype)
