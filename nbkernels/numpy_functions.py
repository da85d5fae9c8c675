"""NumPy's functions of two arrays, with NumPy's signatures, over the operations of this library.

`attempt(function, args, keywords)` is the call of a NumPy function by this library, or the reason why NumPy has to do
it: whatever is wrong with a call is left to NumPy as well, whose errors are then those that the caller sees. Arrays are
ndarrays; dtypes and shapes are NumPy's, and bits those of the operation that runs: mm, mv, dot or multiply.
"""

from __future__ import annotations

import functools
from contextvars import Context
from itertools import pairwise

import numpy as np

from . import ops
from .contractions import Declined, contract, elements, operands, sum_of_products
from .fusion import elementwise

USUAL = {"divide": "warn", "over": "warn", "under": "ignore", "invalid": "warn"}  # what errstate is
QUIET = {"ignore", "warn"}  # what errstate may ask for where kernels run: they do not look for the faults of floats


def attempt(function, args, keywords):
    """(result, "") of a NumPy function's call by this library, or (None, why), with nothing written, where NumPy has to
    do it.

    >>> attempt(np.inner, ([1.0, 2.0], [3.0, 4.0]), {})
    (np.float64(11.0), '')
    >>> attempt(np.einsum, ("ij->j", np.eye(2)), {})
    (None, 'it is no einsum of two operands')
    """
    own = FUNCTIONS.get(function)
    if own is None:
        return None, f"nbkernels has no {function.__name__}"
    if not faults_are_quiet():
        return None, "np.errstate asks for more than warnings"
    try:
        return own(*args, **keywords), ""
    except (Declined, TypeError, ValueError, OverflowError, NotImplementedError) as error:
        return None, str(error) or type(error).__name__


try:  # what np.errstate is, by one object where nobody has asked for anything
    from numpy._core.umath import _extobj_contextvar

    asked_of_faults = _extobj_contextvar.get
    NOTHING_ASKED = Context().run(asked_of_faults)
except (ImportError, LookupError):
    asked_of_faults = NOTHING_ASKED = object


def faults_are_quiet() -> bool:
    """Whether np.errstate asks for no more than warnings of the faults of floats."""
    if asked_of_faults() is NOTHING_ASKED:
        return True
    asked = np.geterr()
    return asked == USUAL or QUIET.issuperset(asked.values())


# -- products ---------------------------------------------------------------------------------------------------------


def dot(a, b, out=None):
    """np.dot: over the last axis of a and the last but one of b; out is as NumPy wants it, or NumPy says so."""
    a, b = operands(a, b)
    first = tuple(range(a.ndim))
    if not (a.ndim and b.ndim):
        second = tuple(range(a.ndim, a.ndim + b.ndim))
        return contract(a, first, b, second, first + second, dense(out))
    second = tuple(range(a.ndim, a.ndim + b.ndim))
    inner = -2 if b.ndim > 1 else -1
    agree(a.shape[-1], b.shape[inner])
    result = first[:-1] + tuple(label for label in second if label != second[inner])
    second = tuple(first[-1] if label == second[inner] else label for label in second)
    return contract(a, first, b, second, result, dense(out))


def dense(out):
    """The out of np.dot, which NumPy takes in C order only."""
    if out is not None and not (isinstance(out, np.ndarray) and out.flags.c_contiguous):
        raise Declined("out is no array in C order")
    return out


def agree(*sizes):
    if len(set(sizes)) > 1:
        raise Declined(f"sizes {' and '.join(map(str, sizes))} do not fit")


def inner(a, b, /):
    """np.inner: over the last axis of both."""
    a, b = operands(a, b)
    first, second = tuple(range(a.ndim)), tuple(range(a.ndim, a.ndim + b.ndim))
    if not (a.ndim and b.ndim):
        return contract(a, first, b, second, first + second)
    agree(a.shape[-1], b.shape[-1])
    return contract(a, first, b, (*second[:-1], first[-1]), first[:-1] + second[:-1])


def tensordot(a, b, axes=2):
    """np.tensordot: over pairs of axes, or the last `axes` of a and the first of b. The result is an array, 0-d too."""
    a, b = operands(a, b)
    try:
        left, right = axes
    except TypeError:
        left, right = range(a.ndim - int(axes), a.ndim), range(int(axes))
    left, right = ([axis] if np.ndim(axis) == 0 else list(axis) for axis in (left, right))
    if len(left) != len(right) or len(left) > min(a.ndim, b.ndim):
        raise Declined("the axes do not pair")
    left, right = ([range(x.ndim)[axis] for axis in axes] for x, axes in ((a, left), (b, right)))
    if len({*left}) < len(left) or len({*right}) < len(right):
        raise Declined("an axis is named twice")
    first, second = list(range(a.ndim)), list(range(a.ndim, a.ndim + b.ndim))
    for axis, other in zip(left, right):
        agree(a.shape[axis], b.shape[other])
        second[other] = first[axis]
    result = [x for x in first if x not in second] + [x for x in second if x not in first]
    return np.asarray(contract(a, first, b, second, result))


def einsum(*args, out=None, optimize=False, dtype=None, casting="safe", order="K"):
    """np.einsum of two operands: a product of matrices, of their elements, or both; `optimize` chooses nothing."""
    left, right, result, a, b = sum_of_products(args)
    if dtype is not None:
        wanted = np.dtype(dtype)
        if not all(np.can_cast(x.dtype, wanted, casting) for x in (a, b)):
            raise Declined(f"operands cannot be cast to {wanted} under casting={casting!r}")
        a, b = (x.astype(wanted, copy=False) for x in (a, b))
    if order not in ("K", "A") and out is None:
        return np.asarray(contract(a, left, b, right, result), order=order)[()]
    return contract(a, left, b, right, result, out)


def multi_dot(arrays, *, out=None):
    """np.linalg.multi_dot: the product of all, in the order that takes the fewest multiplications."""
    arrays = operands(*arrays)
    if len(arrays) < 2 or not all(1 <= x.ndim <= 2 for x in (arrays[0], arrays[-1])):
        raise Declined("there are not two arrays of one or two dimensions")
    if not all(x.ndim == 2 for x in arrays[1:-1]):
        raise Declined("those between the first and the last are no matrices")
    rows = (1,) if arrays[0].ndim == 1 else arrays[0].shape[:1]
    sizes = rows + tuple(x.shape[-1] if x.ndim > 1 or at == 0 else 1 for at, x in enumerate(arrays))
    for left, right in pairwise(arrays):
        agree(left.shape[-1], right.shape[0])

    def product(first, last, out=None):
        if first == last:
            return arrays[first]
        split = cheapest(sizes[first : last + 2])[1] + first
        return dot(product(first, split), product(split + 1, last), out)

    return product(0, len(arrays) - 1, out)


@functools.lru_cache(maxsize=1024)
def cheapest(sizes):
    """(multiplications, where the last product is cut) of a chain of matrices, the i-th sizes[i] x sizes[i + 1]; of
    ways that cost the same the first, as NumPy, but for three where it is (ab)c.

    >>> cheapest((10, 100, 5, 50))
    (7500, 1)
    """
    if len(sizes) < 3:
        return 0, 0
    ways = []
    for cut in range(1, len(sizes) - 1):
        cost = cheapest(sizes[: cut + 1])[0] + cheapest(sizes[cut:])[0] + sizes[0] * sizes[cut] * sizes[-1]
        ways.append((cost, cut - 1))
    return min(ways, key=lambda way: (way[0], -way[1] if len(sizes) == 4 else way[1]))


# -- generalised ufuncs -----------------------------------------------------------------------------------------------


def gufunc(name, first, second, result, conjugated=False):
    """The gufunc of two of this core: labels of the operands' last axes, and of the result's."""

    def call(a, b, /, out=None, *, casting="same_kind", order="K", dtype=None, axes=None, axis=None, keepdims=False):
        a, b = operands(a, b)
        if axis is not None or keepdims:
            if name != "vecdot" or axes is not None:
                raise Declined(f"{name} has no axis and keepdims")
            axis = -1 if axis is None else axis
            axes = [(axis,), (axis,), (axis,) if keepdims else ()]
        if a.ndim < len(first) or b.ndim < len(second):
            raise Declined("an operand has too few dimensions")
        kept = result + "k" * keepdims
        if axes is not None:
            a, b, back = moved(a, b, axes, (len(first), len(second), len(kept)))
        a, b = computed(a, b, dtype, casting)
        conj = "a" if conjugated and a.dtype.kind == "c" else None
        left, right, made, at, by = labelled(first, second, result, a.ndim, b.ndim)
        agree(a.shape[at], b.shape[by])
        found = contract(a, left, b, right, made, conj=conj)
        if keepdims:
            found = np.asarray(found)[..., None]
        if axes is not None and kept:
            found = np.moveaxis(found, range(-len(kept), 0), back)
        return placed(found, out, casting, order)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"np.{name}, with the keywords of ufuncs."
    return call


@functools.lru_cache
def labelled(first, second, result, *dimensions):
    """Labels of operands of so many dimensions, cores last, and of the result; and the axes of label "n" in both."""
    batches = [ndim - len(core) for ndim, core in zip(dimensions, (first, second))]
    at = tuple(range(max(batches)))
    left, right = (at[len(at) - batch :] + tuple(core) for batch, core in zip(batches, (first, second)))
    return left, right, at + tuple(result), left.index("n"), right.index("n")


def moved(a, b, axes, cores):
    """The operands with the named axes last, and where those of the result belong."""
    named = [(x,) if isinstance(x, int) else tuple(x) for x in axes]
    if len(named) == 2 and not cores[2]:
        named.append(())
    if tuple(map(len, named)) != cores:
        raise Declined("axes do not fit the operands")
    a, b = (np.moveaxis(x, named[at], range(-len(named[at]), 0)) for at, x in enumerate((a, b)))
    return a, b, named[2]


def computed(a, b, dtype, casting):
    """The operands in the dtype that a keyword asks for."""
    if dtype is None:
        if casting not in ("same_kind", "unsafe", "safe") and a.dtype != b.dtype:
            raise Declined(f"casting={casting!r} of two dtypes")
        return a, b
    wanted = np.dtype(dtype)
    if not all(np.can_cast(x.dtype, wanted, casting) for x in (a, b)):
        raise Declined(f"operands cannot be cast to {wanted} under casting={casting!r}")
    return tuple(x.astype(wanted, copy=False) for x in (a, b))


def placed(found, out, casting, order):
    """What was found, in an out or in an order."""
    if out is None:
        return found if order in ("K", "A", "C") or np.ndim(found) == 0 else np.asarray(found, order=order)
    if out.shape != np.shape(found) or not out.flags.writeable:
        raise Declined("out has another shape, or cannot be written")
    np.copyto(out, found, casting=casting)
    return out


def matmul(a, b, /, out=None, *, casting="same_kind", order="K", dtype=None, axes=None):
    """np.matmul, with the keywords of ufuncs."""
    usual = casting == "same_kind" and order == "K" and dtype is None and axes is None
    if usual and type(a) is type(b) is np.ndarray and a.dtype == b.dtype and (out is None or out.dtype == a.dtype):
        return ops.matmul(a, b, out=out)
    a, b = operands(a, b)
    if not (a.ndim and b.ndim) or (axes is not None and (a.ndim == 1 or b.ndim == 1)):
        raise Declined("an operand has too few dimensions")
    keywords = dict(casting=casting, order=order, dtype=dtype, axes=axes)
    if a.ndim > 1 and b.ndim > 1:
        return MATRICES(a, b, out, **keywords)
    core = ("n", "n", "") if a.ndim == b.ndim else ("n", "np", "p") if a.ndim == 1 else ("mn", "n", "m")
    return gufunc("matmul", *core)(a, b, out, **keywords)


MATRICES = gufunc("matmul", "mn", "np", "mp")
GUFUNCS = {
    "vecdot": gufunc("vecdot", "n", "n", "", conjugated=True),
    "matvec": gufunc("matvec", "mn", "n", "m"),
    "vecmat": gufunc("vecmat", "n", "nm", "m", conjugated=True),
}

# -- choices ----------------------------------------------------------------------------------------------------------


def _chosen(condition, x, y):
    return x if condition else y


@functools.cache
def chooser(dtype):
    """x where a condition is true, else y, in a dtype."""
    return elementwise(_chosen, dtypes=dtype)


def where(condition, *both):
    """np.where of a condition and two."""
    if len(both) != 2:
        raise Declined("it is a search for what is true")
    numbers = [type(x) in (int, float, complex) for x in both]
    strong = [x if number else elements(x) for x, number in zip(both, numbers)]
    dtype = np.result_type(*strong)
    operands(*(x for x, number in zip(strong, numbers) if not number), np.empty(0, dtype))
    for x in strong:
        if type(x) is int and dtype.kind in "iu" and not np.iinfo(dtype).min <= x <= np.iinfo(dtype).max:
            raise Declined(f"{x} is out of bounds for {dtype}")
    (condition,) = operands(condition)
    if condition.dtype != bool:
        condition = ops.not_equal(condition, 0)
    x, y = (np.asarray(x, dtype) if number else x for x, number in zip(strong, numbers))
    return np.asarray(chooser(dtype)(condition, x, y))


def holds(x, bound):
    """Whether minimum(x, bound) has the dtype and the shape of the array x."""
    if type(x) is not np.ndarray or x.ndim == 0:
        return False
    if type(bound) in (int, float):
        return x.dtype.kind == "f" or type(bound) is int
    return isinstance(bound, np.ndarray | np.generic) and bound.dtype == x.dtype and bound.shape in ((), x.shape)


def clip(a, lowest, highest, /, out=None, *, casting="same_kind", order="K", dtype=None, where=True):
    """The ufunc of np.clip: minimum(maximum(a, lowest), highest), in the dtype that holds all three."""
    if order != "K" or casting != "same_kind":
        raise Declined("the order or the casting are asked for")
    if dtype is None:
        dtype = np.result_type(*(x if type(x) in (int, float, complex) else elements(x) for x in (a, lowest, highest)))
    mask = {} if where is True else {"where": where}
    if out is not None and not np.can_cast(dtype, out.dtype, casting):
        raise Declined(f"the result cannot be cast from {dtype} to {out.dtype}")
    if out is None or out.dtype != dtype or mask or getattr(lowest, "ndim", 0):
        low = ops.maximum(a, lowest, dtype=dtype)
        if out is None and not mask and holds(low, highest):
            return ops.minimum(low, highest, out=low)
        return ops.minimum(low, highest, dtype=dtype, out=out, **mask)
    apart = isinstance(highest, np.ndarray) and np.may_share_memory(highest, out)
    return ops.minimum(ops.maximum(a, lowest, dtype=dtype, out=None if apart else out), highest, out=out)


def round(a, decimals=0, out=None):
    """np.round, to decimals by powers of ten."""
    (a,) = operands(a)
    return ops.round(a, decimals, out=out)


UFUNCS = {np.matmul: matmul} | {getattr(np, name): own for name, own in GUFUNCS.items() if hasattr(np, name)}
FUNCTIONS = UFUNCS | {
    np.dot: dot, np.inner: inner, np.tensordot: tensordot, np.einsum: einsum, np.linalg.multi_dot: multi_dot,
    np.where: where, np.round: round,
}  # fmt: skip
