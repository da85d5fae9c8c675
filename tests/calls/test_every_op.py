"""What holds for every op of the table, those that are added later too: arrays without data, one page, one result."""

from importlib.util import find_spec
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

import nbkernels
from nbkernels.commands import docs
from nbkernels.dispatch import MetaArray
from nbkernels.ops import LIBRARY
from tests.processes import python

PAGE = Path(__file__).resolve().parents[2] / "docs" / "ops.md"
OPS = [pytest.param(op, id=op.schema.full_name) for op in LIBRARY]
FLOAT = np.dtype("float64")


def dtype_of(op):
    """A dtype that the op has a rule for: float64 where it may."""
    return next(dtype for dtype in (FLOAT, np.dtype("int64"), np.dtype(bool)) if docs.result(op, dtype) is not None)


def calls(op):
    """A few argument lists, of C-order and of transposed NumPy arrays."""
    dtype = dtype_of(op)

    def plain(shape):
        return np.arange(1, 1 + np.prod(shape)).reshape(shape).astype(dtype)

    def turned(shape):
        return np.asfortranarray(plain(shape))

    return [*islice(docs.examples(op, plain), 2), *islice(docs.examples(op, turned), 1)]


def as_meta(x):
    return MetaArray(x.shape, x.dtype, x.strides) if isinstance(x, np.ndarray) else x


def steps(x):
    """Strides of the dimensions that have more than one element."""
    return [stride for n, stride in zip(x.shape, x.strides) if n > 1]


@pytest.mark.parametrize("op", OPS)
def test_meta_arrays_tell_what_comes_out(op):
    cases = calls(op)
    assert cases, "no call found: give docs.examples the shapes that it takes"
    for args in cases:
        found, expected = op.call([as_meta(x) for x in args]), op.call(args)
        assert type(found) is MetaArray
        assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
        assert steps(found) == steps(np.asarray(expected))


@pytest.mark.parametrize("op", OPS)
def test_torch_tensors_and_numpy_arrays_give_equal_values(op):
    if find_spec("torch") is None:
        pytest.skip("needs torch")
    import torch

    for args in calls(op)[:1]:
        tensors = [torch.from_numpy(x) if isinstance(x, np.ndarray) else x for x in args]
        found = op.call(tensors)
        assert type(found) is torch.Tensor
        np.testing.assert_array_equal(found.numpy(), op.call(args))


def test_gradients_of_meta_arrays_have_the_shapes_of_their_arguments():
    for op in LIBRARY:
        if op.table.row("AutogradMeta").row is None:
            continue
        for args in islice(docs.examples(op, lambda shape: nbkernels.meta(shape, FLOAT)), 3):
            keywords = {a.name: x for a, x in zip(op.arguments, args) if a.keyword_only}
            rest = [x for a, x in zip(op.arguments, args) if not a.keyword_only]
            tensors = [args[i] for i in op.tensors if isinstance(args[i], MetaArray)]
            found = [x for x in op.gradient(op.call(args), *rest, **keywords) if x is not None]
            assert [x.shape for x in found] == [x.shape for x in tensors], op


def test_meta_arrays_compile_nothing():
    code = """
import sys, nbkernels
from nbkernels.commands import docs
from nbkernels.ops import LIBRARY
for op in LIBRARY: next(docs.examples(op, lambda shape: nbkernels.meta(shape, "int64")), None)
assert docs.page() and not {"numba", "llvmlite"} & set(sys.modules)
"""
    python(code)


def without_bfloat16(text):
    """NumPy knows it where ml_dtypes is installed."""
    return text.replace(", bfloat16", "").replace("bfloat16, ", "")


def test_the_page_of_all_ops_is_in_step():
    """If this fails: python -m nbkernels docs docs/ops.md"""
    assert without_bfloat16(PAGE.read_text(encoding="utf-8")) == without_bfloat16(docs.page())


def test_the_page_says_what_a_reader_asks():
    section = docs.section(LIBRARY["sum_to"])
    for part in ("sum_to(Tensor(a) self, int[] size)", "out = self, summed", "sum_to(…, out=)", "float32", "CUDA",
                 "gradient: self: `expand(grad, spec(self).shape)`"):  # fmt: skip
        assert part in section
    assert "composite" in docs.section(LIBRARY["outer"])
