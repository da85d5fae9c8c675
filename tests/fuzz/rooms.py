"""Arrays as a hostile caller has them: of any layout, inside rooms of bytes that show what was written outside."""

from dataclasses import dataclass

import ml_dtypes
import numpy as np

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
INTEGERS = [np.dtype(f"{kind}{size}") for kind in "iu" for size in (1, 2, 4, 8)]
FLOATS = [np.dtype("f2"), BFLOAT16, np.dtype("f4"), np.dtype("f8")]
COMPLEXES = [np.dtype("c8"), np.dtype("c16")]
DTYPES = [np.dtype(bool), *INTEGERS, *FLOATS, *COMPLEXES]
FILL, GUARD = 0xA5, 256
SIZES = [*range(71), 97, 127, 131, 257]
KINDS = ["C", "F", "permuted", "padded", "steps", "reversed", "record", "unaligned", "any"]


@dataclass
class Placed:
    """A view of a room of bytes."""

    room: np.ndarray
    view: np.ndarray

    @property
    def offset(self):
        return self.view.__array_interface__["data"][0] - self.room.ctypes.data

    def elements(self, chosen=True):
        """Which of the room's bytes belong to the elements that `chosen` chooses."""
        found = np.zeros(self.room.size, bool)
        view, item = self.view, self.view.itemsize
        if view.size:
            shadow = np.ndarray((*view.shape, item), bool, found, self.offset, (*view.strides, 1))
            shadow[...] = np.broadcast_to(chosen, view.shape)[..., None]
        return found


def pick(rng, choices):
    """One of a list, whatever its elements are."""
    return choices[int(rng.integers(len(choices)))]


def chance(rng, probability):
    return bool(rng.random() < probability)


def a_shape(rng, most=4, large=0.01):
    """Sizes of 0 to 70 and beyond, few of them empty; a few thousand elements at most, in a `large` one a million."""
    if chance(rng, large):
        return pick(rng, [(70_001,), (300, 311), (1031, 257), (64, 33, 131), (2, 3, 40_000), (1_000_003,)])
    ndim = int(rng.choice([0, 1, 1, 2, 2, 2, 3, 3, 4, 5][: 2 * most + 2]))
    shape, left = [], 4000
    for _ in range(ndim):
        size = pick(rng, SIZES[:9] if chance(rng, 0.6) else SIZES)
        size = 1 if size == 0 and chance(rng, 0.8) else min(size, max(left, 1))
        shape.append(size)
        left //= max(size, 1)
    return tuple(shape[i] for i in rng.permutation(ndim))


def narrowed(rng, shape):
    """A shape that broadcasts to `shape`: some sizes 1, some dimensions in front away."""
    sizes = [1 if chance(rng, 0.15) else n for n in shape]
    return tuple(sizes[int(rng.integers(len(sizes) + 1)) if sizes and chance(rng, 0.25) else 0 :])


def values(rng, shape, dtype, mood="wild"):
    """Numbers of a dtype: "wild" of every size and every special one, "mild" normal ones, "whole" from 0 to 9."""
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(bool)
    if mood == "whole":
        return rng.integers(0, 10, shape).astype(dtype)
    if dtype.kind == "c":
        part = dtype.char.lower()
        x = np.empty(shape, dtype)
        x.real, x.imag = (values(rng, shape, part, mood) for _ in range(2))
        return x
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        if mood == "mild":
            return rng.integers(max(info.min, -9), 10, shape).astype(dtype)
        x = rng.integers(info.min, info.max, shape, dtype, endpoint=True)
        small = rng.integers(max(info.min, -9), 40, shape).astype(dtype)
        edges = rng.choice(np.array([info.min, info.max, info.min + 1, 0, 1, info.max // 2 + 1], dtype), shape)
        return np.where(rng.random(shape) < 0.3, x, np.where(rng.random(shape) < 0.3, edges, small))
    with np.errstate(all="ignore"):
        x = rng.standard_normal(shape)
        if mood == "wild":
            x = np.where(rng.random(shape) < 0.2, x * 10.0 ** rng.integers(-9, 10, shape), x)
            x = np.where(rng.random(shape) < 0.15, rng.integers(-5, 6, shape), x).astype(dtype)
            special = rng.choice(specials(dtype).view(f"u{dtype.itemsize}"), shape).view(dtype)
            return np.where(rng.random(shape) < 0.2, special, x)
        return x.astype(dtype)


def specials(dtype):
    """Every special number of a dtype; of a complex one every pair of its parts'."""
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return np.array([False, True])
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return np.array(sorted({info.min, info.min + 1, max(info.min, -1), 0, 1, 2, info.max - 1, info.max}), dtype)
    if dtype.kind == "c":
        parts = specials(dtype.char.lower())
        found = np.empty((parts.size, parts.size), dtype)
        found.real, found.imag = parts, parts[:, None]
        return found.ravel()
    info, one = ml_dtypes.finfo(dtype), dtype.type(1)
    tiny, least, most = info.tiny, info.smallest_subnormal, info.max
    found = [0, one, np.inf, np.nan, tiny, least, most, info.eps, 0.5, tiny - least, 3 * float(least)]
    found += [one + info.eps, one - info.epsneg, 1.5, 2.5]
    return np.array([sign * dtype.type(x) for x in found for sign in (one, -one)], dtype)


def strides_of(rng, shape, item, kind):
    """(strides in bytes, bytes below the first element, bytes from it on) of a layout without shared memory."""
    order = list(range(len(shape)))
    if kind in ("F", "permuted", "any", "record"):
        order = order[::-1] if kind == "F" else [int(d) for d in rng.permutation(len(shape))]
    strides, reach, low = [0] * len(shape), item, 0
    for inner, d in enumerate(reversed(order)):
        gap = 0
        if kind == "record" and inner == 0:
            gap = pick(rng, [1, 2, 3, 5, 7, item, item + 1])
        elif kind == "steps" or (kind == "any" and inner == 0):
            gap = item * int(rng.integers(0, 3))
        elif kind in ("padded", "any"):
            gap = item * int(rng.integers(0, 4)) + (
                int(rng.integers(0, 9)) if kind == "any" and chance(rng, 0.3) else 0
            )
        step = reach + gap
        if shape[d] > 1:
            reach += step * (shape[d] - 1)
            if kind == "reversed" or (kind in ("any", "permuted", "record") and chance(rng, 0.3)):
                low += step * (shape[d] - 1)
                step = -step
        elif kind != "C" and chance(rng, 0.5):  # what nobody steps over may be anything
            step = pick(rng, [0, 1, item + 1, -item, 3 * item, 1 << 20, step])
        strides[d] = step
    return tuple(strides), low, reach - low


def lay(rng, x, kind=None, readable=False, room=None):
    """An array with the elements of x in a room of its own, or in one that is there already (over what it has)."""
    kind = pick(rng, KINDS) if kind is None else kind
    x = np.asarray(x)
    if readable and x.size and x.ndim and chance(rng, 0.15):  # repeated without being so in memory
        repeated = [chance(rng, 0.5) for _ in x.shape]
        one = x[tuple(slice(0, 1) if r else slice(None) for r in repeated)]
        placed = lay(rng, one, kind)
        strides = tuple(0 if r else s for r, s in zip(repeated, placed.view.strides))
        view = np.ndarray(x.shape, x.dtype, placed.room, placed.offset, strides)
        return Placed(placed.room, view)
    strides, low, high = strides_of(rng, x.shape, x.itemsize, kind)
    shift = int(rng.integers(1, 16)) if kind == "unaligned" or (kind == "any" and chance(rng, 0.2)) else 0
    if room is None:
        room = a_room(low + high + 2 * GUARD + 16)
        at = low + GUARD + shift
        at += -(at - shift - low) % 16
    else:
        at = low + int(rng.integers(0, max(room.size - high - low, 1)))
        at -= (at - low) % x.itemsize if kind != "unaligned" and at - low >= x.itemsize else 0
    if at < low or at + high > room.size:
        return lay(rng, x, kind)
    view = np.ndarray(x.shape, x.dtype, room, at, strides)
    view[...] = x
    return Placed(room, view)


def a_room(size):
    """Bytes from a multiple of 64 on."""
    raw = np.full(size + 64, FILL, np.uint8)
    return raw[-raw.ctypes.data % 64 :][:size]
