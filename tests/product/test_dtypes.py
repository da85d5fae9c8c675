"""addmm and mm of every dtype but float32 and float64: exact against NumPy's integers and against the stated chains."""

import ctypes
import itertools

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import nbkernels
from nbkernels.cpu.gemm import blocking as tiles
from nbkernels.cpu.gemm import call, gemm, kinds
from nbkernels.cpu.gemm import kernels as packed
from nbkernels.cpu.gemm.general_entry import general
from nbkernels.jit.ir import chain
from tests import reference
from tests.cases import EVERY, LAYOUTS, bias_shapes, forms

INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
HALVES = (np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16))
BYTES = ("int8", "uint8")
MORE = [*INTEGERS[1:6], "uint64", HALVES[1], "complex128"]
EACH = forms("int8", "int64", "bool", HALVES[0], "complex64", sampled=MORE)
SHAPES = [(1, 1, 1), (3, 5, 7), (8, 48, 4), (9, 49, 33), (40, 100, 1501), (20, 2, 4099)]  # across mr, nr, kc, a segment
# "every other" and "padded" fill what lies between with NaN, which integers have not.
DENSE = [name for name in LAYOUTS if name not in ("every other", "padded")]
ORDERS = "C", "F"


def spread(x):
    """x with unequal gaps between its elements in both directions: no path copies or transposes it."""
    return np.repeat(np.repeat(x, 2, 0), 3, 1)[::2, ::3]


def ragged(x):
    """x in rows that are one element longer: where words hold several, rows are not whole words apart."""
    return np.pad(x, ((0, 0), (0, 1)))[:, :-1]


def numbers(rng, shape, dtype):
    """All of a dtype's range, its ends more often than chance has them."""
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return rng.random(shape) < 0.05
    if dtype.kind not in "iu":
        return rng.standard_normal(shape).astype(dtype)
    info = np.iinfo(dtype)
    x = rng.integers(info.min, info.max, shape, dtype, endpoint=True)
    ends = rng.integers(0, 8, shape)
    return np.where(ends == 0, info.min, np.where(ends == 1, info.max, x)).astype(dtype)


def run(x, a, b, beta, alpha, dtype, **keywords):
    """The product through every layout class of the operands and of out; all must agree."""
    results = []
    layouts = np.ascontiguousarray, np.asfortranarray, spread
    for left, right, to in itertools.product((*layouts, ragged), layouts, layouts):
        out = to(np.ones((a.shape[0], b.shape[1]), dtype))
        gemm.gemm(out, x, left(a), right(b), beta, alpha, **keywords)
        results.append(out)
    for result in results[1:]:
        np.testing.assert_array_equal(result, results[0])
    return results[0]


def wrapping(value, dtype):
    return np.array([value % (1 << 8 * np.dtype(dtype).itemsize)], f"u{np.dtype(dtype).itemsize}").view(dtype)


@pytest.mark.sampled
@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers_wrap(rng, dtype):
    for m, n, k in SHAPES:
        a, b, x = (numbers(rng, shape, dtype) for shape in ((m, k), (k, n), (n,)))
        product = a @ b
        np.testing.assert_array_equal(run(None, a, b, 0, 1, dtype), product)
        for beta, alpha in ((1, 1), (-3, 7), (2**63 - 1, -(2**63)), (10**30, 5)):
            expected = wrapping(beta, dtype) * x + wrapping(alpha, dtype) * product
            np.testing.assert_array_equal(run(x, a, b, beta, alpha, dtype), expected)


@given(data=st.data())
@settings(max_examples=100)
def test_public_integers(data):
    dtype = data.draw(st.sampled_from((*INTEGERS, "bool")))
    m, n, k = (data.draw(st.integers(0, 40)) for _ in range(3))
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    left, right = (LAYOUTS[data.draw(st.sampled_from(DENSE))] for _ in range(2))
    a, b = left(numbers(rng, (m, k), dtype)), right(numbers(rng, (k, n), dtype))
    x = numbers(rng, data.draw(st.sampled_from(bias_shapes(m, n))), dtype)
    beta, alpha = (data.draw(st.integers(-3, 3)) for _ in range(2))
    if dtype == "bool":
        expected = (bool(beta) & np.asarray(x)) | (bool(alpha) & (a @ b))
    else:
        expected = wrapping(beta, dtype) * x + wrapping(alpha, dtype) * (a @ b)
    np.testing.assert_array_equal(nbkernels.addmm(np.asarray(x), a, b, beta=beta, alpha=alpha), expected)
    np.testing.assert_array_equal(nbkernels.mm(a, b), a @ b)
    own = np.broadcast_to(x, (m, n)).astype(dtype)
    assert nbkernels.addmm_(own, a, b, beta=beta, alpha=alpha) is own
    np.testing.assert_array_equal(own, expected)


LARGER = (1, 1, 1729), (5, 4, 9)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_stacks_of_little_products_wrap(rng, dtype):
    """Those that need no panels, and their neighbours that do, in every layout, into every second row; nothing else."""
    kind = kinds.kind_of(dtype, dtype, dtype)
    for m, n, k in ((1, 1, 1), (3, 3, 3), (4, 4, 108), (16, 1, 5), (1, 16, 7), (1, 1, 1728), (1, 1, 1729), (5, 4, 9)):
        assert (m * n <= call.OUTPUTS and m * n * k <= call.LITTLE) == ((m, n, k) not in LARGER)
        a, b = numbers(rng, (9, m, k), dtype), numbers(rng, (9, k, n), dtype)
        expected = np.matmul(a, b)
        turned = a.swapaxes(1, 2).copy().swapaxes(1, 2), b.swapaxes(1, 2).copy().swapaxes(1, 2)
        for left, right in itertools.product((a, turned[0], a.repeat(2, 2)[..., ::2]), (b, turned[1])):
            out = np.full((9, 2 * m, n), 77, dtype)
            assert general(kind, 0, 1, np.dtype(dtype), False).stack(out[:, ::2], None, left, right)
            assert np.array_equal(out[:, ::2], expected)
            assert (out[:, 1::2] == 77).all()
        x = numbers(rng, (9, m, n), dtype)
        assert np.array_equal(nbkernels.baddbmm(x, a, b, alpha=3), x + 3 * expected)


@pytest.mark.parametrize("dtype", EACH, ids=str)
def test_a_stack_without_an_out_is_one_with_it(rng, dtype):
    """It has a short way, which leaves to the long one what is unusual: other byte orders, no elements, mistakes."""
    for shape, other in (
        ((5, 3, 4), (5, 4, 2)),
        ((2, 40, 30), (2, 30, 50)),
        ((0, 3, 4), (0, 4, 2)),
        ((3, 2, 0), (3, 0, 2)),
    ):
        a, b = numbers(rng, shape, dtype), numbers(rng, other, dtype)
        out = np.empty((shape[0], shape[1], other[2]), dtype)
        for left, right in ((a, b), (a[:, ::-1], b[..., ::-1])):
            made = nbkernels.bmm(left, right)
            assert made.dtype == dtype
            assert made.tobytes() == nbkernels.bmm(left, right, out=out).tobytes()
            for x in (numbers(rng, out.shape, dtype), numbers(rng, out.shape[2:], dtype), out):
                for factors in ({}, {"beta": 0}, {"alpha": -3, "beta": 2}, {"alpha": 0}):
                    made = nbkernels.baddbmm(x, left, right, **factors)
                    assert made.tobytes() == nbkernels.baddbmm(x, left, right, **factors, out=out.copy()).tobytes()
    swapped = a.astype(a.dtype.newbyteorder())
    if swapped.dtype != a.dtype:
        with pytest.raises(TypeError, match="bmm"):
            nbkernels.bmm(swapped, b)
    for wrong in (b[:1], b[0], b.swapaxes(1, 2)[:, :1]):
        with pytest.raises((ValueError, RuntimeError), match="bmm"):
            nbkernels.bmm(numbers(rng, (5, 3, 4), dtype), wrong)


@pytest.mark.parametrize("dtype", EACH, ids=str)
def test_a_vector_is_a_column(rng, dtype):
    """mv, addmv, matmul and dot of a vector, whatever the layout, with and without out, have mm's bits."""
    for m, k in ((2, 0), (1, 1), (50, 30), (7, 900), (3, 4)):
        a, v, x = (numbers(rng, shape, dtype) for shape in ((m, k), k, m))
        column = nbkernels.mm(a, v[:, None])[:, 0].tobytes()
        for left, right in ((a, v), (np.asfortranarray(a), v[::-1][::-1]), (spread(a), np.repeat(v, 2)[::2])):
            out, wide = np.empty(m, dtype), np.empty(2 * m, dtype)
            for made in (nbkernels.mv(left, right), nbkernels.mv(left, right, out=out), nbkernels.matmul(left, right),
                         nbkernels.mv(left, right, out=wide[::2])):  # fmt: skip
                assert made.shape == (m,)
                assert made.tobytes() == column
            added = nbkernels.addmm(x[:, None], a, v[:, None], beta=2, alpha=3)[:, 0].tobytes()
            assert nbkernels.addmv(x, left, right, beta=2, alpha=3).tobytes() == added
            if np.dtype(dtype).kind in "iub":
                assert nbkernels.dot(left[0], right).tobytes() == column[: v.itemsize]
                assert nbkernels.vdot(left[0], right).tobytes() == column[: v.itemsize]
    for wrong in (a, v[:1], v[0]):
        with pytest.raises((ValueError, RuntimeError, TypeError), match="mv"):
            nbkernels.mv(numbers(rng, (3, 4), dtype), wrong)


def test_bool_is_or_of_ands(rng):
    for m, n, k in SHAPES:
        a, b, x = numbers(rng, (m, k), "bool"), numbers(rng, (k, n), "bool"), numbers(rng, (n,), "bool")
        np.testing.assert_array_equal(run(None, a, b, 0, 1, "bool"), a @ b)
        np.testing.assert_array_equal(run(x, a, b, 1, True, "bool"), a @ b | x)
    many = np.ones((1, 1 << 16), bool)  # counts of 2**8 and 2**16 are no 0
    for k in (1 << 8, 1 << 16):
        assert nbkernels.mm(many[:, :k], many.T[:k]).all()
    bytes_of_bools = np.full((3, 3), 6, np.uint8).view(bool)  # true, but not 1
    assert (nbkernels.mm(bytes_of_bools, bytes_of_bools).view(np.uint8) == 1).all()


@pytest.mark.sampled
@pytest.mark.parametrize(("left", "right"), [*itertools.product(BYTES, BYTES)])
def test_bytes_are_widened_exactly(rng, left, right):
    """Ends of the range in every product: instructions that saturate would show."""
    for m, n, k in SHAPES:
        a, b, x = numbers(rng, (m, k), left), numbers(rng, (k, n), right), numbers(rng, (n,), "int32")
        product = a.astype(np.int32) @ b.astype(np.int32)
        np.testing.assert_array_equal(run(None, a, b, 0, 1, "int32"), product)
        np.testing.assert_array_equal(run(x, a, b, 3, -2, "int32"), 3 * x - 2 * product)
        for low, high in itertools.product((np.iinfo(left).min, np.iinfo(left).max), (-128, 127, 0, 255)):
            if np.iinfo(right).min <= high <= np.iinfo(right).max:
                a[...], b[...] = low, high
                assert (nbkernels.mm(a, b, out_dtype="int32") == low * high * k).all()


@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize("wide", [False, True])
def test_halves_are_the_float32_chain_rounded_once(rng, dtype, wide):
    result = np.dtype(np.float32) if wide else dtype
    for m, n, k in SHAPES:
        a, b, x = numbers(rng, (m, k), dtype), numbers(rng, (k, n), dtype), numbers(rng, (n,), result)
        single = a.astype(np.float32), b.astype(np.float32)
        np.testing.assert_array_equal(run(None, a, b, 0, 1, result), reference.matmul(*single).astype(result))
        expected = reference.addmm(x.astype(np.float32), *single, 0.7, -1.3).astype(result)
        np.testing.assert_array_equal(run(x, a, b, 0.7, -1.3, result), expected)


@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_every_half_survives(dtype):
    """All 2**16 numbers, subnormals, infinities and NaN; and scaled ones that round to even, overflow or vanish."""
    every, one = np.arange(1 << 16, dtype=np.uint16).view(dtype).reshape(256, 256), np.eye(256, dtype=dtype)
    single = every.astype(np.float32)

    def same(result, expected):
        with np.errstate(all="ignore"):
            np.testing.assert_array_equal(result.astype(np.float32), expected.astype(dtype).astype(np.float32))

    with np.errstate(all="ignore"):
        finite = np.where(np.isfinite(single), single, 0)
        same(nbkernels.mm(finite.astype(dtype), one), finite)
        same(nbkernels.mm(one, finite.astype(dtype)), finite)
        same(nbkernels.addmm(every, one, one, alpha=0), single)
        same(nbkernels.addmm(every, one, one, alpha=2.0**-30), single + np.float32(2.0**-30) * np.eye(256, dtype="f4"))
        for factor in (1 + 2.0**-9, 1 + 2.0**-12, 2.0**-8, 3.0, 1e38):
            same(nbkernels.addmm(every, one, one * 0, beta=factor), np.float32(factor) * single)


def test_halves_of_torch():
    torch = pytest.importorskip("torch", reason="needs torch")
    a, b = torch.randn(20, 30), torch.randn(30, 40)
    for dtype in (torch.bfloat16, torch.float16):
        out = nbkernels.mm(a.to(dtype), b.to(dtype), out_dtype=torch.float32)
        assert torch.equal(out, nbkernels.mm(a.to(dtype).float(), b.to(dtype).float()))
        half = nbkernels.mm(a.to(dtype), b.to(dtype))
        assert half.dtype == dtype
        assert torch.equal(half, out.to(dtype))


@pytest.mark.parametrize("dtype", [*INTEGERS, "bool", *HALVES], ids=str)
def test_family_takes_every_dtype(rng, dtype):
    """linear, bmm, matmul and mv run the same kernels; empty and unread operands as with floats."""
    x, w, bias = numbers(rng, (2, 3, 5), dtype), numbers(rng, (4, 5), dtype), numbers(rng, (4,), dtype)
    flat = nbkernels.addmm(bias, x.reshape(6, 5), w.T)
    np.testing.assert_array_equal(nbkernels.linear(x, w, bias), flat.reshape(2, 3, 4))
    np.testing.assert_array_equal(nbkernels.matmul(x, w.T), nbkernels.mm(x.reshape(6, 5), w.T).reshape(2, 3, 4))
    np.testing.assert_array_equal(nbkernels.bmm(x, x.transpose(0, 2, 1))[1], nbkernels.mm(x[1], x[1].T))
    np.testing.assert_array_equal(nbkernels.mv(w, x[0, 0]), nbkernels.mm(w, x[0].T)[:, 0])
    assert not nbkernels.mm(x[0, :, :0], w[:, :0].T).any()
    np.testing.assert_array_equal(nbkernels.addmm(bias, x[0], w.T, alpha=0), np.broadcast_to(bias, (3, 4)))


@pytest.mark.parametrize("dtype", ["int8", "int64", "bool", "float16", "complex64"])
def test_small_products_in_one_call(rng, dtype):
    """The general entry, through the public functions, makes of them what the packed path makes."""
    layouts = np.ascontiguousarray, np.asfortranarray, spread
    for m, n, k in ((1, 1, 1), (4, 4, 4), (8, 48, 31), (9, 49, 33), (60, 70, 50), (3, 5, 1200)):
        a, b, x = (numbers(rng, shape, dtype) for shape in ((m, k), (k, n), (m, n)))
        if dtype == "complex64":
            a = a + 1j * numbers(rng, a.shape, dtype)
        expected, scaled = np.ones_like(x), np.ones_like(x)
        gemm.gemm(expected, x, a, b, 1, 1)
        gemm.gemm(scaled, x, a, b, 3, 2)
        for left, right, to in itertools.product(layouts, repeat=3):
            out = to(np.ones_like(x))
            nbkernels.addmm(to(x), left(a), right(b), out=out)
            np.testing.assert_array_equal(out, expected)
            np.testing.assert_array_equal(nbkernels.addmm(right(x), left(a), right(b), beta=3, alpha=2), scaled)
    own = to(x)  # in place
    assert nbkernels.addmm_(own, a, b) is own
    np.testing.assert_array_equal(own, expected)
    square = numbers(rng, (40, 40), dtype)
    shared = square.copy()
    nbkernels.mm(shared[:30, :30], shared[5:35, 5:35], out=shared[10:, 10:])  # overlap: by way of a copy
    np.testing.assert_array_equal(shared[10:, 10:], nbkernels.mm(square[:30, :30], square[5:35, 5:35]))
    shared.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        nbkernels.mm(square, square, out=shared)
    if np.dtype(dtype).kind in "iu":
        with pytest.raises(TypeError):
            nbkernels.addmm(square, square, square, alpha=1.0)
    with pytest.raises(TypeError):
        nbkernels.addmm(square, square, np.ones((40, 40), "float32"))


def test_small_products_with_keywords(rng):
    """out_dtype, conj and mode in one call: what the packed path makes of them, or the same errors as ever."""
    cases = [("int8", "uint8", "int32", {}), ("uint8", "uint8", "int32", {}), ("float16", "float16", "float32", {})]
    cases += [("complex64", "complex64", "complex64", {"conj": "b"})]
    if "bf16" in chain.ways():
        cases += [(HALVES[1], HALVES[1], out, {"mode": "bf16_dot"}) for out in (HALVES[1], "float32")]
    for (left, right, out, keywords), order in itertools.product(cases, ORDERS):
        a, b, x = (numbers(rng, s, d) for s, d in (((5, 9), left), ((9, 7), right), ((5, 7), out)))
        a, b = (each * np.complex64(1 - 2j) if left == "complex64" else each for each in (a, b))
        expected, got = np.ones_like(x), np.ones_like(x, order=order)
        gemm.gemm(expected, x, a, b, 1, 2, **keywords)
        keywords = keywords | ({} if out == left else {"out_dtype": out})
        np.testing.assert_array_equal(nbkernels.addmm(x, a, b, alpha=2, out=got, **keywords), expected)
        product = np.zeros_like(x)
        gemm.gemm(product, None, a, b, 0, 1, **{k: v for k, v in keywords.items() if k != "out_dtype"})
        np.testing.assert_array_equal(nbkernels.mm(a, b, **keywords), product)
        assert nbkernels.addmm(x, a[:, :0], b[:0], **keywords).dtype == np.dtype(out)
    a = np.ones((4, 4), np.int8)
    for bad in ({"out_dtype": "int64"}, {"out_dtype": "no such"}, {"out_dtype": [4]}):
        with pytest.raises(TypeError):
            nbkernels.mm(a, a, **bad)
    for bad in ({"mode": "bf16_dot"}, {"conj": "a"}):
        with pytest.raises(ValueError):
            nbkernels.mm(a, a, **bad)
    with pytest.raises(OverflowError, match="beta"):
        nbkernels.addmm(np.ones((4, 4), "int32"), a, a, beta=10**400, out_dtype="int32")


def test_out_and_self_have_the_result_dtype(rng):
    a = numbers(rng, (4, 4), "int8")
    out = np.full((4, 4), 9, np.int32)
    assert nbkernels.mm(a, a, out_dtype="int32", out=out) is out
    np.testing.assert_array_equal(out, a.astype(np.int32) @ a.astype(np.int32))
    with pytest.raises(TypeError, match="the result is int32, which has another dtype than out: int8"):
        nbkernels.mm(a, a, out_dtype="int32", out=a.copy())
    with pytest.raises(TypeError, match="self is int8 and out_dtype is int32"):
        nbkernels.addmm(a, a, a, out_dtype="int32")
    with pytest.raises(TypeError, match="must share a dtype"):
        nbkernels.mm(a, a.view(np.uint8))
    assert nbkernels.mm(a, a.view(np.uint8), out_dtype=np.int32).dtype == np.int32


def test_tiles_of_other_kinds(rng):
    """Small tiles cross every block edge; bits do not depend on them."""
    for dtype, out in (("int8", "int32"), ("int64", "int64"), ("float16", "float16")):
        kind = kinds.kind_of(dtype, dtype, out)
        base = kinds.default_tiles(kind)
        tiny = tiles.Tiles(base.mr, base.nr, 24, 2 * base.nr, 4 * base.mr, 4 * base.nr)
        a, b, x = numbers(rng, (70, 203), dtype), numbers(rng, (203, 301), dtype), numbers(rng, (301,), out)
        np.testing.assert_array_equal(run(x, a, b, 3, 2, out, tiles=tiny), run(x, a, b, 3, 2, out))


# -- complex ----------------------------------------------------------------------------------------------------------


def complex_numbers(rng, shape, dtype):
    return (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(dtype)


@pytest.mark.parametrize("conj", ["", "a"])
def test_complex_is_the_stated_chain(rng, conj):
    for m, n, k in ((3, 5, 7), (13, 33, 40), (2, 3, 4099)):
        a, b, x = (complex_numbers(rng, shape, "complex64") for shape in ((m, k), (k, n), (n,)))
        left, right = (each.conj() if name in conj else each for name, each in (("a", a), ("b", b)))
        np.testing.assert_array_equal(run(None, a, b, 0, 1, a.dtype, conj=conj), reference.complex_matmul(left, right))
        expected = reference.complex_addmm(x, left, right, 0.5 - 2j, 1.25)
        np.testing.assert_array_equal(run(x, a, b, 0.5 - 2j, 1.25, a.dtype, conj=conj), expected)


@pytest.mark.parametrize("dtype", ["complex64"] + ["complex128"] * EVERY)
def test_complex_whole_numbers(rng, dtype):
    """Exact in any order of summation, so that NumPy is the reference; through the public functions."""
    for m, n, k in SHAPES:
        a, b, x = ((rng.integers(-4, 5, (*s, 2)) @ [1, 1j]).astype(dtype) for s in ((m, k), (k, n), (n,)))
        np.testing.assert_array_equal(run(None, a, b, 0, 1, dtype), a @ b)
        np.testing.assert_array_equal(nbkernels.addmm(x, a, b, beta=2j, alpha=1 - 1j), 2j * x + (1 - 1j) * (a @ b))
        np.testing.assert_array_equal(nbkernels.mm(a, b.T.conj().T), a @ b.conj())
        np.testing.assert_array_equal(nbkernels.mm(a, b, conj="b"), a @ b.conj())


def test_real_factors_keep_complex_infinities():
    a = np.array([[np.inf + 0j, 1j]], np.complex64)
    one = np.eye(2, dtype=np.complex64)
    assert nbkernels.addmm(a, one[:1] * 0, one)[0, 0] == np.inf
    assert nbkernels.addmm(a, one[:1], one, beta=0, alpha=2)[0, 0] == 2


def test_complex_sums_of_nothing_leave_beta_self():
    x = np.array([[np.inf + 0j, complex(-0.0, -0.0)], [complex(0.0, -np.inf), 3 - 4j]], np.complex64)
    none, one = np.zeros((2, 0), np.complex64), np.ones((2, 2), np.complex64)
    for words in (dict(mat1=none, mat2=none.T), dict(mat1=one, mat2=one, alpha=0)):
        assert nbkernels.addmm(x, **words).tobytes() == x.tobytes()
        assert nbkernels.addmm(x, **words, beta=2).tobytes() == (2 * x.view("f4")).tobytes()
        assert nbkernels.addmm(x, **words, beta=2j)[1, 1] == 8 + 6j
        own = x.copy()
        nbkernels.addmm(own, **words, out=own.T)
        assert own.tobytes() == x.T.tobytes()


def test_complex_vdot_and_gradients(rng):
    a, b, grad = (complex_numbers(rng, s, "complex128") for s in ((3, 4), (4, 5), (3, 5)))
    np.testing.assert_allclose(nbkernels.vdot(a[0], b[:, 0]), np.vdot(a[0], b[:, 0]), rtol=1e-14)
    for left in (a, np.asfortranarray(a)):
        first, second = nbkernels.mm.op.gradient(grad, left, b)
        np.testing.assert_allclose(first, grad @ b.conj().T, rtol=1e-14)
        np.testing.assert_allclose(second, a.conj().T @ grad, rtol=1e-14)
    first = nbkernels.addmm.op.gradient(grad, grad, a, b, alpha=2j, output_mask=[False, True, False])[1]
    np.testing.assert_allclose(first, -2j * grad @ b.conj().T, rtol=1e-14)


# -- the mode of bfloat16 ---------------------------------------------------------------------------------------------


def bf16_dot(a, b):
    """Pairs of k; odd before even, each multiplied and added in one rounding."""
    odd = a.shape[1] % 2
    a, b = np.pad(a.astype(np.float32), ((0, 0), (0, odd))), np.pad(b.astype(np.float32), ((0, odd), (0, 0)))
    total = None
    for start in range(0, a.shape[1], reference.SEGMENT):
        sums = np.zeros((a.shape[0], b.shape[1]), np.float32)
        for p in range(start, min(start + reference.SEGMENT, a.shape[1]), 2):
            for q in (p + 1, p):
                sums = reference.fma32(a[:, q, None], b[None, q, :], sums)
        total = sums if total is None else total + sums
    return total


def test_bf16_dot(rng):
    if "bf16" not in chain.ways():
        a = np.ones((2, 2), ml_dtypes.bfloat16)
        with pytest.raises(ValueError, match="mode 'bf16_dot' needs"):
            nbkernels.mm(a, a, mode="bf16_dot")
        return
    for m, n, k in SHAPES:
        a, b = (numbers(rng, shape, ml_dtypes.bfloat16) for shape in ((m, k), (k, n)))
        expected = bf16_dot(a, b)
        for out in (np.float32, ml_dtypes.bfloat16):
            np.testing.assert_array_equal(run(None, a, b, 0, 1, out, mode="bf16_dot"), expected.astype(out))
    np.testing.assert_array_equal(nbkernels.mm(a, b, mode="bf16_dot", out_dtype="float32"), expected)


def test_factors_that_are_equal_but_for_a_zeros_sign():
    """0+2j and -0+2j give zeros of other signs, whichever came first."""
    x, one = np.zeros(1, complex), np.array([[1 + 0j]])
    for factor in (complex(0.0, 2.0), complex(-0.0, 2.0), complex(0.0, 2.0)):
        product = nbkernels.addmm(x, one, one, beta=0, alpha=factor)
        assert np.signbit(product.real[0, 0]) == np.signbit(factor.real)


@pytest.mark.parametrize("side", ["a", "b"])
@pytest.mark.parametrize("dtype", ["complex64", "complex128", "float16"])
def test_a_panel_is_what_it_should_be_and_nothing_beside_it_is_written(dtype, side):
    """Rows and columns in place, of which whole vectors may be stored over what is stored later, but not at the end."""
    kind = kinds.kind_of(dtype, dtype, dtype)
    tile = kinds.default_tiles(kind).tile(kind)
    pitch, size, planes = tile.mr if side == "a" else tile.nr, tile.size_a, 2 if dtype.startswith("complex") else 1
    what = packed.PANEL_A if side == "a" else packed.PANEL_B
    pack = ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * 6)(packed._pack_kernel(tile, what))
    rng = np.random.default_rng(5)
    for kb, width, order in itertools.product((1, 2, 7, 8, 9, 17), {1, pitch - 1, pitch}, ORDERS):
        x = numbers(rng, (width, kb), dtype).copy(order)
        along, down = (stride // size for stride in x.strides)
        panel = np.full(kb * planes * pitch + 64, 7, tile.dtype)
        pack(x.ctypes.data, along, down, width, kb, panel.ctypes.data)
        expected = np.zeros((kb, planes, pitch), tile.dtype)
        for plane, values in enumerate((x.real, x.imag)[:planes]):
            expected[:, plane, :width] = values.T
        assert np.array_equal(panel[: expected.size], expected.ravel(), equal_nan=True), (kb, width, order)
        assert (panel[expected.size :] == 7).all(), (kb, width, order)
