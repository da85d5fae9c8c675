"""The sum over products of two arrays' elements, by labels of their axes: as a product of matrices, or of elements.

    contract(a, "ij", b, "jk", "ki")[k, i] = the sum over j of a[i, j] * b[j, k]

A label in both operands and in the result is a batch's, one in both alone is summed over, one in a single operand is a
row or a column, or is summed first. Operands are viewed where strides allow it, as np.reshape does, else copied.
"""

from __future__ import annotations

import re
from math import prod

import numpy as np

from . import ops
from .dtypes import HALVES, known


class Declined(Exception):
    """NumPy has to do a call: str() says why."""


def elements(x):
    """x as a plain array, if it is one, a NumPy number, or anything that lists numbers."""
    if isinstance(x, np.ndarray) and type(x) is not np.ndarray:
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
    dtype = np.result_type(a, b)
    first, second, result = tuple(first), tuple(second), tuple(result)
    if len({*result}) < len(result) or not {*result} <= {*first, *second}:
        raise Declined("the result's labels are not those of the operands")
    a, first = diagonal(a, first)
    b, second = diagonal(b, second)
    sizes = common(a, first, b, second)
    if out is not None and (out.dtype != dtype or out.shape != tuple(sizes[x] for x in result)):
        raise Declined("out has another shape or dtype")
    if out is not None and not out.flags.writeable:
        raise Declined("out is read-only")
    a, first = summed(a, first, {*second, *result}, dtype)
    b, second = summed(b, second, {*first, *result}, dtype)
    a, b = a.astype(dtype, copy=False), b.astype(dtype, copy=False)
    inner = [x for x in first if x in second and x not in result]
    if not inner:
        if conj:
            a = a.conj()
        return ops.multiply(spread(a, first, result), spread(b, second, result), out=out)
    inner.sort(key=lambda x: -abs(a.strides[first.index(x)]))
    batch = [x for x in result if x in first and x in second]
    left, right = ([x for x in result if x in own and x not in batch] for own in (first, second))
    left.sort(key=first.index)
    right.sort(key=second.index)
    rows = grouped(a, first, sizes, batch, left, inner)
    columns = grouped(b, second, sizes, batch, inner, right)
    shape = [sizes[x] for x in (*batch, *left, *right)]
    back = [(*batch, *left, *right).index(x) for x in result]
    keywords = {"conj": conj} if conj else {}
    into = None if out is None else merged(out, back, batch, left, right)
    if into is not None:
        ops.matmul(rows, columns, out=into, **keywords)
        return out
    found = ops.matmul(rows, columns, **keywords)
    if out is None and not result:
        return found if np.ndim(found) == 0 else found.reshape(())[()]
    found = np.reshape(found, shape).transpose(back)
    if out is None:
        return found
    np.copyto(out, found)
    return out


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


def common(a, first, b, second):
    """The size of each label: those of both operands, of which one may be 1."""
    sizes = {}
    for x, labels in ((a, first), (b, second)):
        for label, size in zip(labels, x.shape, strict=True):
            had = sizes.setdefault(label, size)
            if had != size and 1 not in (had, size):
                raise Declined(f"sizes {had} and {size} of one label")
            sizes[label] = size if had == 1 else had
    return sizes


def summed(x, labels, needed, dtype):
    """x without the labels that nothing else needs, summed over: in what the product has, so bools by "or"."""
    axes = tuple(d for d, label in enumerate(labels) if label not in needed)
    if not axes:
        return x, labels
    if dtype.name in HALVES:
        raise Declined(f"an operand's own sum in {dtype} would be rounded twice")
    kept = tuple(label for label in labels if label in needed)
    return np.asarray(ops.add.reduce(x, axes, dtype=dtype)), kept


def spread(x, labels, result):
    """x with the result's labels in their order, of size 1 where it has none."""
    order = [labels.index(label) for label in result if label in labels]
    x = x.transpose(order)
    return x[tuple(slice(None) if label in labels else None for label in result)]


def grouped(x, labels, sizes, batch, *groups):
    """x with the batch's labels first and each group of others as one axis, which an empty one has only in a batch."""
    wanted = [*batch, *groups[0], *groups[1]]
    for label in labels:
        if x.shape[labels.index(label)] != sizes[label] and label not in batch:  # a batch broadcasts
            shape = [sizes[y] if y == label else n for y, n in zip(labels, x.shape)]
            x = np.broadcast_to(x, shape)
    x = x.transpose([labels.index(label) for label in wanted])
    merged = [prod(sizes[label] for label in group) for group in groups if group or batch]
    return x.reshape((*x.shape[: len(batch)], *merged))


def merged(out, back, batch, left, right):
    """out as the product's result, if a view is one."""
    if batch and not (left and right):
        return None
    x = out.transpose(np.argsort(back)) if back else out
    shape = [*x.shape[: len(batch)]]
    start = len(batch)
    for group in (left, right):
        if group:
            shape.append(prod(x.shape[start : start + len(group)]))
        start += len(group)
    view = x.view()
    try:
        view.shape = tuple(shape)
    except AttributeError:
        return None
    return view


def sum_of_products(args):
    """(labels of a, labels of b, labels of the result, a, b) of the positional arguments of einsum."""
    if len(args) == 3 and isinstance(args[0], str):
        text, *pair = args
        terms, arrow, result = text.replace(" ", "").partition("->")
        given, result = [spelled(term) for term in terms.split(",")], spelled(result) if arrow else None
    elif len(args) in (4, 5) and not isinstance(args[0], str):
        pair = args[0], args[2]
        given = [["." if label is Ellipsis else label for label in args[at]] for at in (1, 3)]
        result = ["." if label is Ellipsis else label for label in args[4]] if len(args) == 5 else None
    else:
        raise Declined("it is no einsum of two operands")
    if len(given) != 2:
        raise Declined("the subscripts are not of two operands")
    pair = operands(*pair)
    given = [dotted(labels, x.ndim) for labels, x in zip(given, pair)]
    every = sorted({label for labels in given for label in labels if isinstance(label, tuple)})
    named = [label for labels in given for label in labels if not isinstance(label, tuple)]
    if result is None:
        result = [*every, *sorted(label for label in {*named} if named.count(label) == 1)]
    elif "." in result:
        at = result.index(".")
        result = [*result[:at], *every, *result[at + 1 :]]
    if any(label == "." for label in result) or not {*every} <= {*result}:
        raise Declined("an ellipsis that the result lacks, or has twice")
    return (*given, result, *pair)


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
