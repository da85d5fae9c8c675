"""Products of dask arrays: one task for each chunk of the result and each chunk along k, added in the order of k.

Where the chunks along k begin at multiples of SEGMENT, later ones are added segment by segment, as one call on whole
arrays adds them: the bits are its bits, whatever the chunks of m and n.
"""

from __future__ import annotations

import itertools
from functools import partial

import dask.array as da
from dask.base import tokenize
from dask.highlevelgraph import HighLevelGraph

from .. import ops
from ..dispatch import ArgumentError
from ..dtypes import HALVES
from ..elementary.real import fma
from ..epilogues import ENDINGS
from ..fusion import elementwise
from .graphs import cast, like, whole

SEGMENT = 4096  # the library's, docs/products.md
# Labels of the axes: of what is added, the two factors and the result. A batch is "...", the inner axis "k".
LABELS = {
    ops.mm: ("", "mk", "kn", "mn"), ops.addmm: ("mn", "mk", "kn", "mn"), ops.addmm_activation: ("mn", "mk", "kn", "mn"),
    ops.bmm: ("", "bmk", "bkn", "bmn"), ops.baddbmm: ("bmn", "bmk", "bkn", "bmn"),
    ops.addbmm: ("mn", "bmk", "bkn", "mn"), ops.mv: ("", "mk", "k", "m"), ops.addmv: ("m", "mk", "k", "m"),
    ops.dot: ("", "k", "k", ""), ops.vdot: ("", "k", "k", ""), ops.outer: ("", "m", "n", "mn"),
    ops.addr: ("mn", "m", "n", "mn"), ops.linear: ("n", "...k", "nk", "...n"),
    ops.matmul: ("", "...mk", "...kn", "...mn"),
}  # fmt: skip
BATCH = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789" + "".join(map(chr, range(0x391, 0x3A1)))  # more than NumPy's 64 - 2
# What is done once, after the sum, and the products of which it is done.
FACTORS = ("beta", "alpha", "activation", "approximate")
PLAIN = {ops.addmm: ops.mm, ops.addmm_activation: ops.mm, ops.baddbmm: ops.bmm, ops.addmv: ops.mv}


def build(op, values, result):
    """The array of a product. `values` are the arguments of the call by their names, with dask arrays."""
    if da.Array is not da.core.Array:  # that of dask's expressions
        raise ArgumentError(f"{op.schema.name}: dask plans queries, and has no products then: set its "
                            "array.query-planning to False")  # fmt: skip
    tensors = [op.names[i] for i in op.keyed]
    keywords = {word: x for word, x in values.items() if word not in tensors and x is not None}
    given = [values[word] for word in tensors]
    added = None if len(given) < 3 else given.pop() if op.function is ops.linear else given.pop(0)
    added_labels, *pair, labels = spelled(op.function, *given, len(result.shape))
    inner = {*pair[0], *pair[1]} - {*labels}
    if keywords.get("alpha", 1) == 0:  # neither factor is read
        given = [x[tuple(slice(0 if label in inner else None) for label in own)] for x, own in zip(given, pair)]
    if inner > {"k"}:  # a batch is summed as well
        given = [whole(x, [a for a, label in enumerate(own) if label in inner]) for x, own in zip(given, pair)]
    if added is not None:
        given.append(added)
        pair.append(added_labels[len(added_labels) - added.ndim :])
    return chained(op, keywords, result, labels, given, pair)


def spelled(function, left, right, ndim):
    """The labels of a call's arrays, with a letter for each axis of a batch and no rows and columns of vectors."""
    added, first, second, result = LABELS[function]
    if function is ops.matmul:
        vectors = "m" * (left.ndim == 1) + "n" * (right.ndim == 1)
        first, second, result = (x.translate(dict.fromkeys(map(ord, vectors))) for x in (first, second, result))
        first, second = (own[-1:] if x.ndim == 1 else own for x, own in ((left, first), (right, second)))
        second = "k" if right.ndim == 1 else second

    def of(labels, ndim):
        count = ndim - len(labels) + 3
        return labels.replace("...", BATCH[len(BATCH) - count :])

    return added, of(first, left.ndim), of(second, right.ndim), of(result, ndim)


def chained(op, keywords, result, labels, given, own):
    """The graph: for each chunk of the result a chain of tasks along k, and one that ends it."""
    chunks, given = da.core.unify_chunks(*itertools.chain(*zip(given, own)), warn=False)
    along = chunks.get("k", (1,))
    once = partial(op.function, **keywords)
    if len(along) > 1:
        own_keywords = {word: x for word, x in keywords.items() if word not in FACTORS}
        if result.dtype.name in HALVES:  # summed in float32, rounded once
            own_keywords["out_dtype"] = "float32"
            given = [x.astype(result.dtype) for x in given]
        product = partial(PLAIN.get(op.function, op.function), **own_keywords)
        last = partial(finish, result.dtype, {word: keywords[word] for word in FACTORS if word in keywords})
        starts = [0, *itertools.accumulate(along[:-1])]
        step = None if any(start % SEGMENT for start in starts) else SEGMENT
        more = partial(extended, product, [axes.index("k") for axes in own[:2]], step)
    name = f"{op.schema.name}-{tokenize(op.function, keywords, labels, own, *given)}"
    layer = {}
    for index in itertools.product(*(range(len(chunks[label])) for label in labels)):
        at = dict(zip(labels, index))
        factors = [[block(x, axes, at | {"k": k}) for x, axes in zip(given[:2], own)] for k in range(len(along))]
        added = [block(x, axes, at) for x, axes in zip(given[2:], own[2:])]
        if len(along) == 1:
            before, after = (factors[0], added) if op.function is ops.linear else (added, factors[0])
            layer[(name, *index)] = (once, *before, *after)
            continue
        total = ()
        for k, pair in enumerate(factors):
            task = (more, *total, *pair) if k else (product, *pair)
            total = ((f"{name}-chain", *index, k),)
            layer[total[0]] = task
        layer[(name, *index)] = (last, *total, *added)
    graph = HighLevelGraph.from_collections(name, layer, dependencies=list(given))
    return da.Array(graph, name, tuple(chunks[label] for label in labels), meta=like(result, given))


def block(x, axes, at):
    """The key of x's chunk there; the only one along an axis is repeated."""
    return (x.name, *(at[label] if count > 1 else 0 for label, count in zip(axes, x.numblocks)))


# What tasks call. Chunks are never written.


def extended(product, axes, step, total, left, right):
    """total and, added to it in turn, the products of these chunks' parts of `step` along k; None: of all of them."""
    size = left.shape[axes[0]]
    out = None
    for start in range(0, size, step or size):
        part = slice(start, start + (step or size))
        found = product(*(x[(*[slice(None)] * axis, part)] for x, axis in zip((left, right), axes)))
        total = ops.add(total, found, out=out)
        out = total if total.ndim else None  # a number of NumPy's is not written
    return total


def finish(dtype, factors, total, added=None):
    """beta * added + alpha * total and its activation, rounded to the dtype."""
    beta, alpha = factors.get("beta", 1), factors.get("alpha", 1)
    if dtype.kind == "b":
        beta, alpha = bool(beta), bool(alpha)
    if alpha != 1:
        total = ops.multiply(total, alpha)
    if added is not None and beta != 0:
        if beta == 1:
            total = ops.add(total, added)
        elif total.dtype.kind == "f":
            total = scaled(total, added.astype(total.dtype), float(beta))
        else:
            total = ops.add(total, added, alpha=beta)
    if "activation" in factors:
        total = ENDINGS[factors["activation"], factors["approximate"]].apply(total)
    return cast(total, dtype)


@elementwise
def scaled(total, added, beta):
    """beta * added + total, rounded once, as products add what is scaled."""
    return fma(beta, added, total)
