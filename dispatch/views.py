"""Zero-copy views and empty arrays of any library, for code that is written over arrays of all of them."""

from math import prod

from . import arrays, layout


def spec(x):
    """Shape, dtype and strides of an array, as a Spec; None and Python numbers are themselves."""
    adapter = arrays.adapter_for(x)
    return x if adapter is None else adapter.spec(x)


def is_array(x):
    """Whether x is an array of a library that is known."""
    return arrays.adapter_for(x) is not None


def restride(x, shape, strides):
    return arrays.adapter_for(x).restride(x, shape, strides)


def index(x, key):
    """x[key], for a key of integers, slices, None and ...: right also where the library's own is not."""
    return arrays.adapter_for(x).index(x, key)


def flip(x, axis):
    """x from its end on along an axis, for its reader: a view or a copy."""
    return arrays.adapter_for(x).flip(x, axis)


def turned(x):
    """x with its last two dimensions exchanged."""
    return arrays.adapter_for(x).turned(x)


def transpose(x):
    """x with its dimensions reversed."""
    adapter = arrays.adapter_for(x)
    return adapter.permute(x, range(len(adapter.spec(x).shape))[::-1])


def permute(x, axes):
    """x with its dimensions in the order of `axes`."""
    adapter = arrays.adapter_for(x)
    shape = adapter.spec(x).shape
    ndim = len(shape)
    order = [axis + ndim if axis < 0 else axis for axis in axes]
    if sorted(order) != list(range(ndim)):
        raise ValueError(f"axes {tuple(axes)} are not a permutation of the {ndim} dimensions of {tuple(shape)}")
    return adapter.permute(x, order)


def reshape(x, shape, copy):
    """x with other sizes, one of which may be -1, in C order: a view, else one of copy(x), which lies so."""
    s = spec(x)
    known, total = prod(size for size in shape if size != -1), prod(s.shape)
    if shape.count(-1) == 1 and known and total % known == 0:
        shape = tuple(total // known if size == -1 else size for size in shape)
    if prod(shape) != total or min(shape, default=0) < 0:
        raise ValueError(f"an array of shape {tuple(s.shape)} cannot be reshaped to {shape}")
    steps = layout.c_strides(s.shape, s.dtype.itemsize)
    if any(size > 1 and have != want for size, have, want in zip(s.shape, s.strides, steps, strict=True)):
        x = copy(x)
    return restride(x, shape, layout.c_strides(shape, s.dtype.itemsize))


def column(x):
    """A vector (m,) as a matrix (m, 1); a 0-d array is itself."""
    s = spec(x)
    return restride(x, (*s.shape, 1), (*s.strides, 0)) if s.shape else x


def row(x):
    """A vector (n,) as a matrix (1, n)."""
    s = spec(x)
    return restride(x, (1, *s.shape), (0, *s.strides))


def expand(x, shape):
    """x as an array of a shape that it broadcasts to, with strides of 0 where it is repeated."""
    s = spec(x)
    lead = len(shape) - len(s.shape)
    fits = lead >= 0 and all(size in (1, want) for size, want in zip(s.shape, shape[max(lead, 0) :], strict=False))
    if not fits:
        raise ValueError(f"{s.shape} does not expand to {tuple(shape)}")
    steps = tuple(
        step if size == want else 0 for size, want, step in zip(s.shape, shape[lead:], s.strides, strict=True)
    )
    return restride(x, tuple(shape), (0,) * lead + steps)


def flatten(x):
    """x (..., k) as a matrix (rows, k), or None where its strides allow no such view."""
    s = spec(x)
    strides = layout.flat_strides(s.shape, s.strides)
    return None if strides is None else restride(x, (prod(s.shape[:-1]), s.shape[-1]), strides)


def overlap(x, y):
    """Whether the memory between the first and the last byte of x meets that of y."""
    ends = []
    for each in (x, y):
        adapter = arrays.adapter_for(each)
        s, address = adapter.spec(each), adapter.address(each)
        if address is None or 0 in s.shape:
            return False
        low, high = layout.reach(s.shape, s.strides)
        ends.append((adapter.device(each), address + low, address + high + s.dtype.itemsize))
    (here, start, stop), (there, first, last) = ends
    return here == there and start < last and first < stop


def empty(like, shape, dtype):
    """A new C-order array of like's kind, on its device."""
    adapter = arrays.adapter_for(like)
    with adapter.guard(adapter.device(like)):
        return adapter.wrap(adapter.empty(like, shape, dtype, layout.c_strides(shape, dtype.itemsize)), like)
