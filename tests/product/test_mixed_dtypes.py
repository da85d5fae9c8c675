"""Products of two dtypes: matmul, dot, outer and linear convert to NumPy's common one before, mm and addmm refuse."""

import ctypes
import itertools
import time

import ml_dtypes
import numpy as np
import pytest
from llvmlite import ir

import nbkernels as nb
from nbkernels import background, first_calls, ops
from nbkernels.cpu.gemv import mv
from nbkernels.dtypes import DTYPES, WIDENED
from nbkernels.jit.compile import python_first
from nbkernels.jit.compile.routine import routine
from nbkernels.jit.ir.convert import Widened
from nbkernels.jit.ir.vector import I64, Lanes

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


def large(dtype, shape=(303, 1411)):
    x = np.random.default_rng(3).integers(-100, 100, shape)
    x = x > 0 if dtype == "bool" else x / 7 if "float" in dtype else abs(x) if dtype == "uint8" else x << 40
    return x.astype(getattr(ml_dtypes, dtype, dtype))


@pytest.mark.sampled
@pytest.mark.parametrize(("stored", "dtype"), [("float32", "float64"), ("int64", "float64"), ("bool", "float32")])
def test_a_large_matrix_is_converted_as_a_vector_meets_it(monkeypatch, stored, dtype):
    """To the bits of a copy, in any layout, by rows and columns, segments, jobs; by the fast path and the other."""
    rng = np.random.default_rng(4)
    lines = [large(stored, shape) for shape in ((1, 140_001), (140_001, 1))]
    for shape in ((303, 1411), (1411, 303), (16, 8301)):
        x = large(stored, shape)
        lines += [x, np.asfortranarray(x), x[::-1], np.asfortranarray(x)[:, ::-1]]
    cases = [(a, rng.standard_normal(a.shape[1]).astype(dtype)) for a in lines]
    expected = [nb.mv(a.astype(dtype), v) for a, v in cases]
    monkeypatch.setattr(ops, "copy", None)  # nothing is copied: a copy would raise
    monkeypatch.setattr(mv, "mv", None)
    for (a, v), result in zip(cases, expected):
        equal_bits(np.asarray(nb.matmul(nb.asarray(a), nb.asarray(v))), result)
    monkeypatch.setattr(ops, "_mv_widened", None)  # what the general path calls
    for (a, v), result in zip(cases, expected):
        out = np.full(len(a), np.nan, dtype)
        equal_bits(nb.matmul(a, v), result)
        equal_bits(nb.matmul(v, a.T), result)
        assert nb.matmul(a, v[::-1][::-1], out=out) is out
        equal_bits(out, result)
        equal_bits(nb.matmul(a, v, out=np.empty((len(a), 3), dtype)[:, 1]), result)
    monkeypatch.undo()
    assert f"converted from {stored} as they are read" in str(nb.explain(nb.matmul, *cases[0]))


def test_every_dtype_that_is_widened():
    """The first vectors of a matrix by the loads that do it, in LLVM IR, against NumPy's casts."""
    for dtype, narrow in WIDENED.items():
        for stored in narrow:
            values = large(stored, 16)
            if stored == "float16":
                values[:3] = np.inf, 6e-8, -0.0
            found = np.empty(16, dtype)
            widening(stored, dtype)(values.ctypes.data, found.ctypes.data)
            equal_bits(found, values.astype(dtype))


def widening(stored, dtype):
    """The C function that reads 16 numbers and stores them, from the one address to the other."""

    def define(module, name):
        function = ir.Function(module, ir.FunctionType(ir.VoidType(), [I64, I64]), name)
        builder = ir.IRBuilder(function.append_basic_block())
        read = Widened(builder, stored, 4, want=dtype)
        write = Lanes(builder, dtype, 4)
        source, target = (builder.inttoptr(x, y.element.as_pointer()) for x, y in zip(function.args, (read, write)))
        for first in range(0, 16, 4):
            write.store(read.load(read.at(source, first)), write.at(target, first))
        builder.ret_void()

    return ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_int64)(routine(f"widening_{stored}_{dtype}", define))


def test_a_large_matrix_of_odd_addresses_or_with_gaps():
    """Those that are not read as they lie, and what overlaps out: converted before."""
    memory, v = np.zeros(4 * 400 * 400 + 1, np.uint8), some(400, "float64")
    odd, gaps = memory[1:].view("float32").reshape(400, 400), np.zeros((400, 400, 2), "float32")[..., 0]
    odd[...] = gaps[...] = some((400, 400), "float32", 1)
    expected = nb.matmul(gaps.astype("float64"), v)
    for a in (odd, gaps, nb.asarray(odd)):
        equal_bits(np.asarray(nb.matmul(a, v)), expected)
    inside = np.ascontiguousarray(gaps)
    out = inside.reshape(-1)[800:1600].view("float64")
    assert nb.matmul(inside, v, out=out) is out
    equal_bits(out, expected)


def test_the_first_large_matrices_are_converted_before(monkeypatch):
    """So that no program waits for a kernel that a few calls do not pay for."""
    a, v = large("int16"), some(1411, "float64")
    expected = nb.mv(a.astype("float64"), v)
    monkeypatch.setattr(first_calls, "CALLS", 3)
    monkeypatch.setattr(python_first, "on_disk", lambda name: False)
    monkeypatch.setattr(mv, "_known", None)
    for _ in range(3):
        equal_bits(nb.matmul(a, v), expected)
    nb.matmul(a, v)  # has the code compiled in the background
    while background.busy():
        time.sleep(0.01)
    with pytest.raises(TypeError, match="not callable"):
        nb.matmul(a, v)


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
