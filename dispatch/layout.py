"""Questions about strides that need nothing but the numbers: overlap, views. Strides are in bytes."""

from itertools import pairwise
from operator import index


def c_strides(shape, itemsize):
    """Strides of a C-order array: (2, 3) of 8 bytes -> (24, 8)."""
    strides, step = [], itemsize
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))


def reach(shape, strides):
    """Offsets of the lowest and of the highest element from the first one: (2, 3), (-24, 8) -> (-24, 16)."""
    steps = [(size - 1) * stride for size, stride in zip(shape, strides, strict=True)]
    return sum(step for step in steps if step < 0), sum(step for step in steps if step > 0)


def overlaps_itself(shape, strides, itemsize):
    """Whether two elements share memory. Exact, but for layouts that need more than 10,000 steps of search: True."""
    if 0 in shape:
        return False
    span = itemsize
    for size, stride in zip(shape[::-1], strides[::-1], strict=True):  # in C order: the usual case ends here
        if size > 1:
            if stride < span:
                break
            span += stride * (size - 1)
    else:
        return False
    axes = sorted((abs(stride), size) for size, stride in zip(shape, strides, strict=True) if size > 1)
    span = itemsize
    for stride, size in axes:
        if stride < span:
            break
        span += stride * (size - 1)
    else:
        return False  # every step clears all that the smaller steps can reach
    axes.reverse()
    reach = [itemsize - 1]
    for stride, size in reversed(axes):
        reach.insert(0, reach[0] + stride * (size - 1))
    budget = iter(range(10_000))

    def meets(axis, offset, moved):
        """Whether index differences along axis, axis + 1 ... can bring `offset` to less than an element."""
        if next(budget, None) is None:
            return True
        if axis == len(axes):
            return moved
        stride, size = axes[axis]
        if stride == 0:
            return True
        # only differences that the remaining axes can still bring back; by symmetry the first move is forwards
        low = max(-((offset + reach[axis + 1]) // stride), 1 - size) if moved else 0
        high = min((reach[axis + 1] - offset) // stride, size - 1)
        return any(meets(axis + 1, offset + step * stride, moved or step > 0) for step in range(low, high + 1))

    return meets(0, 0, False)


def flat_strides(shape, strides):
    """Strides of the view that makes one dimension of all but the last, or None where no view can."""
    lead = [(size, stride) for size, stride in zip(shape[:-1], strides[:-1], strict=True) if size != 1]
    for (_, outer), (size, inner) in pairwise(lead):
        if outer != size * inner and 0 not in shape:
            return None
    return (lead[-1][1] if lead else strides[-1], strides[-1])


def indexed(shape, strides, key):
    """(shape, strides, offset) of the view that integers, slices, None and ... choose: NumPy's basic indexing.

    >>> from nbkernels.dispatch.layout import indexed
    >>> indexed((4, 6), (48, 8), (slice(None, None, -1), 2))
    ((4,), (-48,), 160)
    """
    key = list(key) if isinstance(key, tuple) else [key]
    taken = sum(part is not None and part is not Ellipsis for part in key)
    if taken > len(shape):
        raise IndexError(f"{taken} indices for an array of shape {tuple(shape)}")
    dots = [i for i, part in enumerate(key) if part is Ellipsis]
    if len(dots) > 1:
        raise IndexError("an index can have only one ...")
    at = dots[0] if dots else len(key)
    key[at : at + 1] = [slice(None)] * (len(shape) - taken)
    sizes, steps, offset, dims = [], [], 0, iter(zip(shape, strides, strict=True))
    for part in key:
        if part is None:
            sizes.append(1)
            steps.append(0)
            continue
        size, stride = next(dims)
        if isinstance(part, slice):
            start, stop, step = part.indices(size)
            sizes.append(len(range(start, stop, step)))
            steps.append(stride * step)
            offset += start * stride if sizes[-1] else 0
            continue
        if isinstance(part, bool) or not hasattr(type(part), "__index__"):
            raise TypeError(f"views are made by integers, slices, None and ..., not by {type(part).__name__}")
        place = index(part)
        if not -size <= place < size:
            raise IndexError(f"index {place} is out of bounds for a size of {size}")
        offset += (place + size if place < 0 else place) * stride
    return tuple(sizes), tuple(steps), offset
