"""dot and vdot: their own order of summation, bit for bit, whatever the dtype, strides and threads."""

import ml_dtypes
import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import nbkernels as nb
from nbkernels.cpu.gemv import dot
from nbkernels.cpu.runtime import threads
from nbkernels.dtypes import INTEGERS
from tests import reference
from tests.cases import LAYOUTS, whole_numbers
from tests.compare import same_bits

SIZES = (1, 2, 15, 16, 17, 63, 64, 65, 127, 128, 1000, 4095, 4096, 4097, 8192, 13_000)


def vectors(rng, k, dtype):
    if np.dtype(dtype).kind == "c":
        return [(rng.standard_normal((k, 2)) @ [1, 1j]).astype(dtype) for _ in range(2)]
    return [rng.standard_normal(k).astype(dtype) for _ in range(2)]


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"])
def test_the_order_is_the_one_that_is_promised(rng, dtype):
    for k in SIZES if dtype != "float64" else (1, 17, 64, 65, 4097):  # exact fractions take their time
        a, b = vectors(rng, k, dtype)
        expected = reference.dot(a, b)
        same_bits(nb.dot(a, b), expected)
        same_bits(nb.matmul(a, b), expected)
        same_bits(nb.vdot(a, b), reference.dot(a.conj(), b) if dtype == "complex64" else expected)
    if dtype == "float32":  # not that of a product: or this test could not tell them apart
        assert nb.mm(a[None], b[:, None])[0, 0] != expected


@pytest.mark.parametrize("dtype", ["float16", ml_dtypes.bfloat16])
def test_halves_are_summed_as_float32_and_rounded_once(rng, dtype):
    for k in (1, 65, 5000):
        a, b = vectors(rng, k, dtype)
        same_bits(nb.dot(a, b), reference.dot(a.astype("f4"), b.astype("f4")).astype(dtype))


def test_complex128(rng):
    """Its planes are float64 as complex64's are float32: on numbers of few bits every order gives one sum."""
    a, b = ((rng.integers(-9, 9, (5000, 2)) @ [1, 1j]) for _ in range(2))
    assert nb.dot(a, b) == a @ b
    assert nb.vdot(a[::-3], b[::-3]) == np.vdot(a[::-3], b[::-3])


@pytest.mark.parametrize("dtype", [*INTEGERS, "bool"])
def test_whole_numbers_have_one_sum(rng, dtype):
    """Modulo 2**bits, from end to end of their range, of any strides and sizes, by one thread and by all; bool's is
    whether any of the products is true."""
    low, high = (0, 1) if dtype == "bool" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    for k in (0, 1, 3, 31, 63, 64, 65, 129, 1000, 4095, 4096, 4097, 20_000, 500_001):
        a, b = (rng.integers(low, high, 3 * k, np.int64 if dtype == "bool" else dtype, endpoint=True) for _ in "ab")
        a, b = a.astype(dtype), b.astype(dtype)
        for x, y in ((a[:k], b[:k]), (a[::3], b[::-3]), (a[k : 2 * k][::-1], b[:k]), (a[:k], np.repeat(b[:1], k))):
            wanted = np.dot(x, y)
            assert wanted == (x & y).any() if dtype == "bool" else wanted.dtype == dtype
            same_bits(nb.dot(x, y), wanted)
            same_bits(nb.vdot(x, y), wanted)
            out = np.empty((), dtype)
            assert nb.dot(x, y, out=out) is out
            same_bits(out, wanted)
    few = np.array([low, high, high], dtype)
    exact = sum(int(p) * int(q) for p, q in zip(few, few[::-1]))
    bits = 8 * few.itemsize
    assert int(nb.dot(few, few[::-1])) % 2**bits == (exact > 0 if dtype == "bool" else exact % 2**bits)


@settings(max_examples=60)
@given(st.integers(1, 9000), st.sampled_from(["float32", "complex64"]), st.sampled_from([1, -1, 2, -3, 0]),
       st.sampled_from([1, -1, 5, 0]), st.integers(0, 2**32))  # fmt: skip
def test_strides_change_no_bit(k, dtype, sa, sb, seed):
    def strided(x, step):
        """x's elements `step` apart, NaN between them; of a step of 0, the first, k times."""
        if step == 0:
            return np.broadcast_to(x[:1], x.shape)
        room = np.full(len(x) * abs(step), np.nan, x.dtype)[:: abs(step)]
        view = room[::-1] if step < 0 else room
        view[...] = x
        return view

    a, b = (strided(x, step) for x, step in zip(vectors(np.random.default_rng(seed), k, dtype), (sa, sb)))
    same_bits(nb.dot(a, b), nb.dot(np.ascontiguousarray(a), np.ascontiguousarray(b)))
    same_bits(nb.vdot(a, b), nb.dot(a.conj(), np.ascontiguousarray(b)))


def test_threads_change_no_bit(rng, monkeypatch):
    monkeypatch.setattr(threads, "count", numba.get_num_threads)
    a, b = vectors(rng, 300_007, "float32")
    expected = reference.dot(a, b)
    for count in range(1, numba.config.NUMBA_NUM_THREADS + 1):
        numba.set_num_threads(count)
        same_bits(nb.dot(a, b), expected)
        same_bits(nb.dot(a[::-1], b[::-1][::-1][::-1]), reference.dot(a[::-1], b[::-1]))
        out = np.empty((), "f4")
        assert nb.dot(a, b, out=out) is out
        same_bits(out, expected)


def test_out_may_be_one_of_the_numbers(rng):
    a, b = vectors(rng, 9000, "float32")
    expected, out = nb.dot(a, b), a[4500:4501].reshape(())
    nb.dot(a, b, out=out)
    same_bits(out, expected)


def test_underflow_to_minus_zero_survives():
    """A chain that is not stepped keeps its sign; sums of it and of empty chains are +0, as additions say."""
    tiny = np.full(3, 1e-30, "f4")
    same_bits(nb.dot(tiny, -tiny), reference.dot(tiny, -tiny))
    a, b = np.full(64 + 1, 1e-30, "f4"), np.full(64 + 1, -1e-30, "f4")
    found = nb.dot(a, b)
    same_bits(found, reference.dot(a, b))
    assert np.signbit(found)


def test_nan_beyond_the_ends_is_not_read(rng):
    for dtype in ("float32", "float16", "complex64"):
        room = np.full(400, np.nan, dtype)
        room[100:237] = 1
        assert nb.dot(room[100:237], room[100:237]) == 137
        assert nb.dot(room[236:99:-1], room[100:237]) == 137


def test_strides_of_records_and_empty_vectors(rng):
    records = np.zeros(50, np.dtype([("x", "f4"), ("y", "u1")]))
    records["x"] = np.arange(50)
    assert nb.dot(records["x"], records["x"]) == np.dot(np.arange(50.0), np.arange(50.0))
    assert nb.dot(np.empty(0, "f4"), np.empty(0, "f4")) == 0
    big = np.arange(5, dtype=">f4")
    assert nb.dot(big.astype("f4"), big.astype("f4")) == 30
    readonly = np.array(np.nan, "f4")
    readonly.flags.writeable = False
    with pytest.raises(nb.dispatch.OutError, match="read-only"):
        nb.dot(np.ones(3, "f4"), np.ones(3, "f4"), out=readonly)


def test_what_comes_back_is_a_number(rng):
    for dtype in sorted(dot.DTYPES):
        a = np.ones(70, ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
        assert type(nb.dot(a, a)) is a.dtype.type
    for wrong in (a[0, ...], a[None]):
        with pytest.raises((TypeError, ValueError)):
            nb.dot(wrong, a)


def test_more_segments_than_the_stack_holds():
    k = 4096 * (dot.HERE // 4 + 4)
    one = np.broadcast_to(np.float32(1), k)  # sums of whole segments are exact
    assert nb.dot(one, one) == k


def test_layouts_of_cases(rng):
    for make in LAYOUTS.values():
        a = make(rng.standard_normal((3, 70)).astype("f4"))
        same_bits(nb.dot(a[1], a[2]), reference.dot(a[1], a[2]))


def test_chains_are_whole_vectors():
    for name in dot.DTYPES:
        assert dot.MANY % dot.tile_of(name).lanes == 0


@pytest.mark.sampled
@pytest.mark.parametrize(
    "dtype", ["float32", "float64", "float16", "bfloat16", "complex64", "complex128", "i1", "u8", "?"]
)
def test_rows_have_the_bits_of_dot(rng, monkeypatch, dtype):
    """vecdot, and einsum of rows, whatever the shape, strides and threads, among the first calls and later."""
    dtype = np.dtype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
    rowwise = nb.vdot if dtype.kind == "c" else nb.dot
    for shape in ((1, 64), (3, 65), (50, 100), (2, 3, 4097), (4, 9000), (700, 70)):
        a, b = (np.stack([x.reshape(shape) for x in vectors(rng, np.prod(shape), "c16")]) * 3).real.astype(dtype)
        if dtype.kind == "c":
            a = a + dtype.type(1j) * b[..., ::-1]
        for left, right in ((a, b), (a[..., ::-1], b[::-1]), (np.asfortranarray(a), b), (a, b[:1])):
            rows = np.broadcast_to(right, left.shape)
            for calls in (0, 1 << 60)[: 1 + (a.size < 1000)]:
                monkeypatch.setattr(nb.first_calls, "CALLS", calls)
                found, plain = nb.vecdot(left, right), nb.einsum("...j,...j->...", left, right)
                for index in np.ndindex(shape[:-1]):
                    same_bits(found[index], rowwise(left[index], rows[index]))
                    same_bits(plain[index], nb.dot(left[index], rows[index]))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_short_rows_of_floats_are_products(rng, dtype):
    for k in (1, 3, 63):
        a, b = (rng.standard_normal((40, k)).astype(dtype) for _ in range(2))
        same_bits(nb.vecdot(a, b), nb.bmm(a[:, None], b[:, :, None])[:, 0, 0])


@pytest.mark.parametrize("dtype", ["float32", "int32", "float16", "complex64", "bool"])
@pytest.mark.parametrize("op", [nb.dot, nb.vdot], ids=["dot", "vdot"])
def test_matrices_are_refused(op, dtype):
    """Whose rows the compiled code sums for vecdot; before a call of vectors and after one."""
    a, v, out = np.ones((3, 4), dtype), np.ones(4, dtype), np.zeros(3, dtype)
    for _ in range(2):
        for args in ((a, a), (v, a), (a, v), (a[None], a[None]), (a[0, 0, ...], v)):
            for into in (None, out, out[0, ...]):
                with pytest.raises(ValueError, match="must be 1-D"):
                    op(*args, out=into)
        assert not out.any()
        assert op(v, v) == (1 if dtype == "bool" else 4)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "float16", "complex64"])
@pytest.mark.parametrize("k", [0, 1, 7, 70])
def test_rows_of_stacks_have_one_sum_however_they_lie(rng, dtype, k):
    a, b = (whole_numbers(rng, (3, 4, 5, k), dtype) / 4 for _ in range(2))
    a, b = ((x if dtype == "int32" else x * 1.1).astype(dtype) for x in (a, b))
    parts = [lambda x: x[::-1], lambda x: x[:, ::2], lambda x: x.transpose(2, 0, 1, 3), np.asfortranarray]
    parts += [lambda x: np.broadcast_to(x[:, :1], x.shape), lambda x: x[:0], lambda x: x[:, 0]]
    for part in parts:
        x, y = part(a), part(b)
        p, q = np.ascontiguousarray(x), np.ascontiguousarray(y)
        expected = nb.vecdot(p, q)
        for found in (nb.vecdot(x, y), nb.vecdot(x, q), nb.vecdot(p, y)):
            same_bits(found, expected)
        for at in np.ndindex(expected.shape):
            same_bits(nb.vecdot(x[at][None], y[at][None])[0], expected[at])
