"""The sum over products of two arrays' elements, by labels of their axes: as a product of matrices, or of elements.

    contract(a, "ij", b, "jk", "ki")[k, i] = the sum over j of a[i, j] * b[j, k]

A label in both operands and in the result is a batch's, one in both alone is summed over, one in a single operand is a
row or a column, or is summed first. Operands are viewed where strides allow it, as np.reshape does, else copied.
"""

from __future__ import annotations

import functools
import importlib
import re
from math import prod
from typing import NamedTuple

import numpy as np

from . import ops
from .dtypes import HALVES, known


class Declined(Exception):
    """NumPy has to do a call: str() says why."""


def elements(x):
    """x as a plain array, if it is one, a NumPy number, or anything that lists numbers."""
    if type(x) is np.ndarray:
        return x
    if isinstance(x, np.ndarray):
        raise Declined(f"an operand is a {type(x).__name__}")
    return np.asarray(x)


def operands(*given):
    """The operands as plain arrays of dtypes that the library knows, or a Declined that names one."""
    arrays = tuple(map(elements, given))
    for x in arrays:
        if not known(x.dtype):
            raise Declined(f"an operand is {type(x).__name__} of {x.dtype}")
    return arrays


def contract(a, first, b, second, result, out=None, conj=None):
    """The sum over the labels that the result lacks; `conj="a"` conjugates a. A 0-d result is a number.

    Labels of one size, or of size 1 in one operand. `out` has the result's shape and dtype, or is declined.
    """
    dtype = a.dtype if a.dtype is b.dtype else np.result_type(a, b)
    first, second, result = tuple(first), tuple(second), tuple(result)
    diagonals, axes, others = alone(first, second, result)
    if diagonals:
        (a, first), (b, second) = diagonal(a, first), diagonal(b, second)
        _, axes, others = alone(first, second, result)
    a, first = summed(a, first, axes, dtype)
    b, second = summed(b, second, others, dtype)
    way = plan(first, second, result, a.shape, a.strides, b.shape)
    if out is not None and (out.dtype != dtype or out.shape != way.shape):
        raise Declined("out has another shape or dtype")
    if out is not None and not out.flags.writeable:
        raise Declined("out is read-only")
    left, right = way.operands
    rows, columns = left.grouped(a.astype(dtype, copy=False)), right.grouped(b.astype(dtype, copy=False))
    if not way.inner:
        return ops.multiply(rows.conj() if conj else rows, columns, out=out)
    keywords = {"conj": conj} if conj else {}
    into = None if out is None or way.rowwise else way.merged(out)
    if into is not None:
        ops.matmul(rows, columns, out=into, **keywords)
        return out
    if way.rowwise:
        rows, columns = rows[..., 0, :], columns[..., 0]
        alike = rows.shape == columns.shape
        found = row_sums(*((rows, columns) if alike else np.broadcast_arrays(rows, columns)), conj)
    else:
        found = ops.matmul(rows, columns, **keywords)
    if out is None and way.same:
        return found
    if out is None and not result:
        return found if np.ndim(found) == 0 else found.reshape(())[()]
    found = found.reshape(way.made).transpose(way.back)
    if out is None:
        return found
    np.copyto(out, found)
    return out


DOT = "nbkernels.cpu.gemv.dot"  # by name, at the first call


def row_sums(a, b, conj=None):
    """The sums over the last axis of a * b, of two arrays of one dtype and shape with two dimensions at least, with the
    bits of `dot`, or of `vdot` for conj="a". Rows of float32 and float64 with fewer terms than dot has chains are
    sooner summed as products, with the bits of `mm`."""
    dot, k = _dot(), a.shape[-1]
    short = k < dot.MANY and a.dtype.char in "fd"
    if 0 in a.shape or (short and a.ndim > 2 and a.flags.c_contiguous and b.flags.c_contiguous):
        return ops.matmul(a[..., None, :], b[..., None])[..., 0, 0]
    if a.ndim > 2:  # by a copy, if need be: 57x51x34 of float32, one of them backwards, 295 us, so 35
        return row_sums(a.reshape(-1, k), b.reshape(-1, k), conj).reshape(a.shape[:-1])
    return ops.bmm(a[:, None], b[..., None])[:, 0, 0] if short else dot.rows(a, b, conj or "")


@functools.cache
def _dot():
    return importlib.import_module(DOT)


@functools.lru_cache(1024)
def alone(first, second, result):
    """Whether a label is twice in an operand, and the axes of each operand whose labels nothing else needs."""
    if len({*result}) < len(result) or not {*result} <= {*first, *second}:
        raise Declined("the result's labels are not those of the operands")
    axes, others = (
        tuple(d for d, label in enumerate(own) if label not in {*other, *result})
        for own, other in ((first, second), (second, first))
    )
    return len({*first}) < len(first) or len({*second}) < len(second), axes, others


def diagonal(x, labels):
    """x and its labels, each of which is there once: of one that is there twice the diagonal is taken."""
    if len({*labels}) == len(labels):
        return x, labels
    kept, shape, strides = list(dict.fromkeys(labels)), [], []
    for label in kept:
        own = [d for d, each in enumerate(labels) if each == label]
        if len({x.shape[d] for d in own}) > 1:
            raise Declined("a diagonal of sizes that differ")
        shape.append(x.shape[own[0]])
        strides.append(sum(x.strides[d] for d in own))
    return np.lib.stride_tricks.as_strided(x, shape, strides, writeable=False), tuple(kept)


def summed(x, labels, axes, dtype):
    """x and its labels without some axes, summed over: in what the product has, so bools by "or"."""
    if not axes:
        return x, labels
    if dtype.name in HALVES:
        raise Declined(f"an operand's own sum in {dtype} would be rounded twice")
    kept = tuple(label for d, label in enumerate(labels) if d not in axes)
    return np.asarray(ops.add.reduce(x, axes, dtype=dtype)), kept


class Operand(NamedTuple):
    """How an operand is viewed: its size-1 axes at their full sizes where `whole` is a shape, then its axes in an order
    and shaped anew. `same`: as it is."""

    whole: tuple | None
    order: tuple
    shape: tuple
    same: bool = False

    def grouped(self, x):
        if self.same:
            return x
        x = x if self.whole is None else np.broadcast_to(x, self.whole)
        return x.transpose(self.order).reshape(self.shape)


class Plan(NamedTuple):
    """A product for one contraction: `inner` are the labels that it sums over, `operands` how each operand is viewed,
    `shape` the result's shape. The product has the shape `made` and, for its axes, the labels `groups`: batch, rows
    and columns; `back` is the order of these axes in the result. `same`: the product is the result; `rowwise`: each
    element is a sum over rows of its own."""

    inner: tuple
    operands: tuple
    shape: tuple
    made: tuple = ()
    back: tuple = ()
    groups: tuple = ()
    same: bool = False
    rowwise: bool = False

    def merged(self, out):
        """out as the product's result, if a view is one."""
        batch, left, right = map(len, self.groups)
        if batch and not (left and right):
            return None
        x = out.transpose(np.argsort(self.back)) if self.back else out
        shape = [*x.shape[:batch]]
        for start, group in ((batch, left), (batch + left, right)):
            if group:
                shape.append(prod(x.shape[start : start + group]))
        view = x.view()
        try:
            view.shape = tuple(shape)
        except AttributeError:
            return None
        return view


@functools.lru_cache(1024)
def plan(first, second, result, shape, strides, other):
    """The Plan of operands with these labels and shapes, each label once; `strides` are the first one's, whose longest
    axis of those summed over comes first."""
    sizes = common(shape, first, other, second)
    whole = tuple(sizes[x] for x in result)
    inner = [x for x in first if x in second and x not in result]
    if not inner:
        return Plan((), tuple(spread(n, own, result) for n, own in ((shape, first), (other, second))), whole)
    inner.sort(key=lambda x: -abs(strides[first.index(x)]))
    batch = [x for x in result if x in first and x in second]
    left, right = ([x for x in result if x in own and x not in batch] for own in (first, second))
    left.sort(key=first.index)
    right.sort(key=second.index)
    views = grouped(shape, first, sizes, batch, left, inner), grouped(other, second, sizes, batch, inner, right)
    made = (*batch, *left, *right)
    back, groups = tuple(made.index(x) for x in result), (tuple(batch), tuple(left), tuple(right))
    same = made == result and len(batch) < 2 and len(left) == len(right) == 1  # a row, a column and a batch at most
    rowwise = bool(batch) and not (left or right)
    return Plan(tuple(inner), views, whole, tuple(sizes[x] for x in made), back, groups, same, rowwise)


def common(shape, first, other, second):
    """The size of each label: those of both operands, of which one may be 1."""
    sizes = {}
    for lengths, labels in ((shape, first), (other, second)):
        for label, size in zip(labels, lengths, strict=True):
            had = sizes.setdefault(label, size)
            if had != size and 1 not in (had, size):
                raise Declined(f"sizes {had} and {size} of one label")
            sizes[label] = size if had == 1 else had
    return sizes


def spread(shape, labels, result):
    """An operand with the result's labels in their order, of size 1 where it has none."""
    order = tuple(labels.index(label) for label in result if label in labels)
    return Operand(None, order, tuple(shape[labels.index(x)] if x in labels else 1 for x in result))


def grouped(shape, labels, sizes, batch, *groups):
    """An operand with the batch's labels first and each group of others as one axis, which an empty one has only in a
    batch, where it broadcasts."""
    whole = tuple(n if x in batch else sizes[x] for n, x in zip(shape, labels))
    order = tuple(labels.index(label) for group in (batch, *groups) for label in group)
    kept = (whole[labels.index(x)] for x in batch)
    made = *kept, *(prod(sizes[x] for x in group) for group in groups if group or batch)
    same = made == shape and order == tuple(range(len(order)))
    return Operand(whole if whole != shape else None, order, made, same)


def sum_of_products(args):
    """(labels of a, labels of b, labels of the result, a, b) of the positional arguments of einsum."""
    if len(args) == 3 and isinstance(args[0], str):
        text, *pair = args
        if text.count(",") != 1:
            raise Declined("the subscripts are not of two operands")
        a, b = operands(*pair)
        return (*subscripts(text, a.ndim, b.ndim), a, b)
    if len(args) in (4, 5) and not isinstance(args[0], str):
        a, b = operands(args[0], args[2])
        given = [["." if label is Ellipsis else label for label in args[at]] for at in (1, 3)]
        result = ["." if label is Ellipsis else label for label in args[4]] if len(args) == 5 else None
        return (*labelled(given, result, (a.ndim, b.ndim)), a, b)
    raise Declined("it is no einsum of two operands")


@functools.lru_cache(1024)
def subscripts(text, *dimensions):
    """The labels of both operands, of so many dimensions, and of the result."""
    terms, arrow, result = text.replace(" ", "").partition("->")
    return labelled([spelled(term) for term in terms.split(",")], spelled(result) if arrow else None, dimensions)


def labelled(given, result, dimensions):
    """The labels with each ellipsis spelled out, those of the result found where it is None."""
    given = [dotted(labels, ndim) for labels, ndim in zip(given, dimensions)]
    every = sorted({label for labels in given for label in labels if isinstance(label, tuple)})
    named = [label for labels in given for label in labels if not isinstance(label, tuple)]
    if result is None:
        result = [*every, *sorted(label for label in {*named} if named.count(label) == 1)]
    elif "." in result:
        at = result.index(".")
        result = [*result[:at], *every, *result[at + 1 :]]
    if any(label == "." for label in result) or not {*every} <= {*result}:
        raise Declined("an ellipsis that the result lacks, or has twice")
    return tuple(map(tuple, (*given, result)))


def spelled(term):
    """The labels of a term's subscripts: letters, and "." for an ellipsis."""
    if not re.fullmatch(r"(?:[A-Za-z]|\.\.\.)*", term):
        raise Declined(f"the subscripts {term!r} are no letters")
    return list(term.replace("...", "."))


def dotted(labels, ndim):
    """Labels with an ellipsis spelled out: as tuples that count its axes from the right."""
    if labels.count(".") > 1 or ("." not in labels and len(labels) != ndim) or len(labels) > ndim + 1:
        raise Declined("the subscripts do not fit the operands' dimensions")
    if "." not in labels:
        return labels
    at, count = labels.index("."), ndim - len(labels) + 1
    return [*labels[:at], *((-i,) for i in range(count, 0, -1)), *labels[at + 1 :]]
