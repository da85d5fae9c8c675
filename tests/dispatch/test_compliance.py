"""Every composite of the table keeps to its trade; and those that do not are told what they did."""

from contextlib import ExitStack
from itertools import islice

import numpy as np
import pytest

import nbkernels as nb
from nbkernels.commands import docs
from nbkernels.dispatch import ComplianceError, Library, MetaArray, comply, keys, views
from nbkernels.ops import LIBRARY

COMPOSITES = [op for op in LIBRARY if op.table.row("CPU").reason in keys.COMPOSITES]


@pytest.mark.parametrize("op", COMPOSITES, ids=lambda op: op.schema.full_name)
def test_every_composite_complies(op):
    def make(shape):
        return np.arange(1.0, 1 + np.prod(shape)).reshape(shape)

    def turned(shape):
        return np.asfortranarray(make(shape)[::-1])

    cases = [*islice(docs.examples(op, make), 4), *islice(docs.examples(op, turned), 4)]
    assert cases
    for args in cases:
        assert np.array_equal(comply(op, *args), op.call(args))


def test_there_are_composites():
    assert {"linear", "matmul", "outer", "addbmm"} <= {op.schema.name for op in COMPOSITES}


def good(self, other):
    if self.ndim == 1 and self.shape == other.shape and self.dtype == np.float64 and self.strides == (8,):
        fresh = nb.add(self[:], other)
        return nb.multiply_(views.restride(fresh, (3,), (8,)), other)
    return nb.add(self, other)


BAD = {
    "looks at data": (lambda self, other: np.asarray(self), "asked an array for '__array__'"),
    "writes data": (lambda self, other: self.__setitem__(0, 1), "asked an array for '__setitem__'"),
    "resizes": (lambda self, other: self.resize((6,)), "asked an array for 'resize'"),
    "takes the address": (lambda self, other: self.ctypes, "asked an array for 'ctypes'"),
    "calls out=": (lambda self, other: nb.add(self, other, out=views.empty(self, (3,), self.dtype)),
                   "f calls add with out=, and its body is not in the out form"),
    "writes self": (lambda self, other: nb.add_(self, other), "f calls add_ to write an array that it was given"),
    "writes a view": (lambda self, other: nb.add_(other[1:], 1), "f calls add_ to write an array that it was given"),
    "makes its own": (lambda self, other: np.zeros(3), "returned a ndarray that no part of it made"),
}  # fmt: skip


@pytest.mark.parametrize(("body", "words"), BAD.values(), ids=BAD)
def test_what_composites_must_not(body, words):
    text = "f(Tensor self, Tensor other) -> Tensor"
    x, y = np.arange(3.0), np.ones(3)
    with Library("tests").define(text, dispatch={"CompositeImplicit": good}) as op:
        assert np.array_equal(comply(op, x, y), [1, 2, 3])
    with Library("tests").define(text, dispatch={"CompositeImplicit": body}) as op:
        with pytest.raises(ComplianceError, match=words):
            comply(op, x, y)
        assert np.array_equal(x, [0, 1, 2])
        assert np.array_equal(y, [1, 1, 1])


def test_bodies_in_the_out_form():
    def meta(self):
        return MetaArray(self.shape, self.dtype)

    def fine(out, self):
        nb.add(self, 1, out=out)

    def wrong(out, self):
        nb.add(self, 1, out=self)

    text = "f(Tensor self) -> Tensor"
    with Library("tests").define(text, structured=meta, dispatch={"CompositeExplicit": fine}) as op:
        assert np.array_equal(comply(op, np.zeros(2)), [1, 1])
    op = Library("tests").define(text, structured=meta, dispatch={"CompositeExplicit": wrong})
    with pytest.raises(ComplianceError, match="f calls add to write an array that it was given"):
        comply(op, np.zeros(2))


def test_an_op_with_a_kernel_is_no_composite():
    with pytest.raises(ComplianceError, match="add is no composite here: its kernel is direct"):
        comply(nb.add.op, np.ones(2), np.ones(2))


@pytest.mark.parametrize("op", COMPOSITES, ids=lambda op: op.schema.full_name)
def test_composites_run_by_overridden_parts_whatever_the_arrays(op):
    """Those that have a fast path for NumPy arrays, too: it is made of the kernels that were declared."""

    def overridden(part):
        def kernel(out, *args):
            mine.replaced(out, *args)
            out += 1

        mine = nb.register(part, "CPU", kernel, override=True)
        return mine

    args = next(docs.examples(op, lambda shape: np.arange(1.0, 1 + np.prod(shape)).reshape(shape)))
    args = args[: sum(not argument.keyword_only for argument in op.arguments)]  # the keywords have their defaults
    op.function(*args)
    before = op.function(*args)  # by the fast path, where there is one
    parts = [each for each in LIBRARY if each.table.row("CPU").reason == "direct" and each.schema.name[0] in "abdm"]
    with ExitStack() as stack:
        for part in parts:
            stack.enter_context(overridden(part))
        found = op.function(*args)
        assert np.array_equal(found, op.function(*[nb.asarray(x) if isinstance(x, np.ndarray) else x for x in args]))
        alone = op.schema.name == "addmm_activation"  # a product with the function in its store: no other op is called
        assert np.array_equal(found, before) is alone
    assert np.array_equal(op.function(*args), before)
