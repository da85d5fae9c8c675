"""Products of two dtypes: matmul, dot, outer and linear convert to NumPy's common one before, mm and addmm refuse."""

import itertools

import ml_dtypes
import numpy as np
import pytest

import nbkernels as nb
from nbkernels import ops
from nbkernels.dtypes import DTYPES

PAIRS = [("int32", "float64"), ("float32", "float64"), ("bool", "int8"), ("uint8", "int8"), ("int64", "uint64"),
         ("float32", "complex128"), ("float16", "float32"), ("int16", "complex64"),
         (ml_dtypes.bfloat16, "float32")]  # fmt: skip


def some(shape, dtype, seed=0):
    x = np.random.default_rng(seed).integers(0, 5, shape)
    return (x / 3 if np.dtype(dtype).kind in "fcV" else x).astype(dtype)


def equal_bits(found, expected):
    assert (found.dtype, np.shape(found)) == (expected.dtype, np.shape(expected))
    assert np.asarray(found).tobytes() == np.asarray(expected).tobytes()


@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_results_are_those_of_casting_first(first, second):
    wide = np.result_type(first, second)
    for (p, q), turn in itertools.product([("n", "w"), ("w", "n")], [False, True]):
        dtypes = dict(n=first, w=second)
        a, b = some((4, 5), dtypes[p]), some((5, 4), dtypes[q], 1)
        a, b = (b.T, a.T[::-1][::-1]) if turn else (a, b)
        x, y = a.astype(wide), b.astype(wide)
        equal_bits(nb.matmul(a, b), nb.matmul(x, y))
        equal_bits(nb.matmul(a[None], np.stack([b, b])), nb.matmul(x[None], np.stack([y, y])))
        equal_bits(nb.matmul(a, b[:, 0]), nb.matmul(x, y[:, 0]))
        equal_bits(nb.matmul(a[0], b), nb.matmul(x[0], y))
        equal_bits(nb.matmul(a[0], b[:, 1]), nb.matmul(x[0], y[:, 1]))
        equal_bits(nb.dot(a[1], b[:, 1]), nb.dot(x[1], y[:, 1]))
        equal_bits(nb.outer(a[1], b[0]), nb.outer(x[1], y[0]))
        equal_bits(nb.linear(a, b.T), nb.linear(x, y.T))
        equal_bits(nb.linear(a, b.T, b[0]), nb.linear(x, y.T, y[0]))
        equal_bits(nb.linear(a, a, b[0]), nb.linear(x, x, y[0]))
        out = np.zeros((4, 4), wide)
        assert nb.matmul(a, b, out=out) is out
        equal_bits(out, nb.matmul(x, y))
        equal_bits(np.matmul(nb.asarray(a), b), np.asarray(nb.matmul(x, y)).view(type(nb.asarray(a))))


def test_dtypes_are_numpys():
    dtypes = [np.dtype(getattr(ml_dtypes, d, d)) for d in DTYPES]
    for first, second in itertools.product(dtypes, dtypes):
        try:
            expected = np.result_type(first, second)
        except TypeError:
            with pytest.raises(TypeError, match="no dtype holds the numbers of input"):
                nb.matmul(nb.meta((2, 3), first), nb.meta((3, 2), second))
            continue
        assert nb.matmul(nb.meta((2, 3), first), nb.meta((3, 2), second)).dtype == expected


def test_what_is_refused():
    a, b = np.ones((3, 3), "f4"), np.ones((3, 3))
    out = np.full((3, 3), 7, "f4")
    for call, error in [
        (lambda: nb.mm(a, b), "share a dtype"),
        (lambda: nb.addmm(a, a, b), "share a dtype"),
        (lambda: nb.bmm(a[None], b[None]), "share a dtype"),
        (lambda: nb.matmul(a, b, out=out), "float64"),
        (lambda: nb.matmul(a, b.astype("g")), "input has dtype|other has dtype"),
        (lambda: nb.matmul(a, b.astype(">f8")), "byte-swapped"),
        (lambda: nb.matmul(a, b, out_dtype="float64"), "out_dtype"),
    ]:
        with pytest.raises(TypeError, match=error):
            call()
    assert (out == 7).all()
    widened = nb.matmul(np.ones((2, 3), "u1"), np.ones((3, 2), "i1"), out_dtype="int32")
    assert widened.dtype == np.int32


def test_derivatives_have_the_dtypes_of_the_factors():
    a, b = some((4, 5), "float32"), some((5, 3), "complex128", 1)
    y, back = nb.vjp(nb.matmul, a, b)
    grad = some((4, 3), "complex128", 2)
    for found, x, expected in zip(back(grad), (a, b), ((grad @ b.conj().T).real, a.T @ grad)):
        assert found.dtype == x.dtype
        np.testing.assert_allclose(found, expected, rtol=1e-6)
    x, weight, bias = some((4, 5), "float32"), some((3, 5), "float64", 1), some((3,), "float32", 2)
    y, back = nb.vjp(nb.linear, x, weight, bias)
    assert y.dtype == np.float64
    assert [g.dtype for g in back(np.ones((4, 3)))] == ["f4", "f8", "f4"]


def test_explain_tells_of_the_copy():
    text = str(nb.explain(nb.matmul, np.ones((20, 20), "i4"), np.ones((20, 20))))
    assert "fmax" in text


def test_plain_arrays_take_the_way_of_one_dtype(monkeypatch):
    """Matrices, vectors, stacks and linear: not the general path, which takes 25 times as long."""
    a, b, bias = some((4, 5), "float32"), some((5, 4), "float64", 1), some(4, "int32", 2)
    calls = [lambda: nb.matmul(a, b), lambda: nb.matmul(b, a), lambda: nb.matmul(a[0], b),
             lambda: nb.matmul(a, b[:, 0]), lambda: nb.matmul(a[None], b[None]), lambda: nb.dot(a[0], b[:, 0]),
             lambda: nb.outer(a[0], b[0]),
             lambda: nb.linear(a, b.T), lambda: nb.linear(a, b.T, bias), lambda: nb.linear(a, a, bias)]  # fmt: skip
    expected = [call() for call in calls for _ in range(50)][::50]  # the first ones are NumPy's

    def refused(*args, **keywords):
        raise AssertionError("a copy by the general path")

    monkeypatch.setattr(ops, "copy", refused)
    for call, result in zip(calls, expected):
        equal_bits(call(), result)


def test_an_out_that_overlaps_what_is_converted():
    memory = np.zeros(9)
    a, b = memory.view("float32")[:9].reshape(3, 3), some((3, 3), "float64")
    a[...] = some((3, 3), "float32", 1)
    expected = nb.matmul(a.astype("float64"), b)
    assert nb.matmul(a, b, out=memory.reshape(3, 3)).base is memory
    equal_bits(memory.reshape(3, 3), expected)
    narrow, both = some((3, 3), "float32", 2), b.copy()
    equal_bits(nb.matmul(narrow, both, out=both), nb.matmul(narrow.astype("float64"), b))


def test_a_vdot_of_two_dtypes_is_refused():
    for _ in range(40):
        with pytest.raises(TypeError, match="share a dtype"):
            nb.vdot(np.ones(3, "f4"), np.ones(3))
