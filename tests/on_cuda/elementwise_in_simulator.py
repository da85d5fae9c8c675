"""Tests of the CUDA kernels of element-wise operations, folds and sums that need NUMBA_ENABLE_CUDASIM=1.

test_simulator.py runs them.
"""

import contextlib
import math

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import nbkernels
from nbkernels.cuda import elementwise, reduce
from nbkernels.dtypes import resolve, ufunc
from nbkernels.elementary import powers, transcendental
from nbkernels.operations import BINARY, CHAINED, UNARY
from tests.compare import numpys, same_bits
from tests.on_cuda.simulated import device, numbers

# NumPy warns of overflow and NaN in scalars. The CPU's first calls have the bits of its later ones.
pytestmark = [pytest.mark.filterwarnings("ignore::RuntimeWarning"), pytest.mark.usefixtures("at_first")]

OPS = ("add", "subtract", "multiply", "divide", "maximum", "minimum")
SPECIAL = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e-40, 3e38]


def elementwise_run(op, x, y, out, **keywords):
    getattr(elementwise, op)(device(out), *(device(v) if isinstance(v, np.ndarray) else v for v in (x, y)), **keywords)
    return out


@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "uint64"])
@pytest.mark.parametrize("op", OPS)
def test_elementwise_is_the_cpus(rng, op, dtype):
    """The same bits as the CPU's kernel, specials and wrapping included."""
    x, y = rng.integers(0, 127, (2, 4, 5)).astype(dtype)
    if np.dtype(dtype).kind == "f":
        x, y = (np.where(rng.random((4, 5)) < 0.6, rng.choice(SPECIAL, (4, 5)), v).astype(dtype) for v in (x, y))
    expected = getattr(nbkernels, op)(x, y[0])
    same_bits(elementwise_run(op, x, y[0], np.full_like(expected, 77)), expected)


def test_alpha_and_scalars(rng):
    x, y = numbers(rng, 3, 4), numbers(rng, 4)
    for op, alpha in (("add", 0.1), ("subtract", -3)):
        expected = getattr(nbkernels, op)(x, y, alpha=alpha)
        same_bits(elementwise_run(op, x, y, np.full((3, 4), np.nan, "f4"), alpha=alpha), expected)
    same_bits(elementwise_run("divide", 1, x, np.full((3, 4), np.nan, "f4")), np.float32(1) / x)
    same_bits(elementwise_run("multiply", x, 2.5, np.full((3, 4), np.nan, "f4")), x * np.float32(2.5))
    wide = x.astype("f8")
    same_bits(elementwise_run("add", x, wide, np.full((3, 4), np.nan, "f4")), (x + wide).astype("f4"))
    with pytest.raises(TypeError, match="same_kind"):
        elementwise_run("add", x, x, np.zeros((3, 4), "i4"))
    with pytest.raises(TypeError, match=r"longdouble|float128"):
        elementwise_run("add", x, x.astype("g"), np.zeros((3, 4), "g"))


KINDS = ("int8", "uint8", "float32", "float16", "complex64", "bool")


def defined(rows, dtype):
    """Operations that a dtype has; in float64 and complex128, by the same functions, fewer."""
    for op in rows:
        with contextlib.suppress(TypeError):
            resolve(op, np.dtype(dtype), np.dtype(dtype))
            yield op


@pytest.mark.parametrize("dtype", KINDS)
def test_other_operations_are_the_cpus(rng, dtype):
    x, y = rng.integers(1, 12, (2, 3, 4)) % 7
    x, y = x.astype(dtype), (y + (dtype != "bool")).astype(dtype)
    mask = rng.random(4) < 0.5
    for op in defined(BINARY, dtype):
        expected = ufunc(op)(x, y)
        if expected.dtype.kind in "fc":
            rtol = 2e-3 if expected.dtype == "float16" else 1e-6
            np.testing.assert_allclose(elementwise_run(op, x, y, np.zeros_like(expected)), expected, rtol, err_msg=op)
        else:
            same_bits(elementwise_run(op, x, y, np.zeros_like(expected)), expected)
    old = np.zeros_like(expected)
    same_bits(elementwise_run(op, x, y, old, where=device(mask)), np.where(mask, expected, 0).astype(expected.dtype))
    same_bits(elementwise_run(op, x, y[0, 0].item(), old), ufunc(op)(x, y[0, 0]))


@pytest.mark.parametrize("dtype", KINDS)
def test_operations_of_one_are_the_cpus(rng, dtype):
    x, mask = (rng.integers(1, 12, (3, 4)) % 7).astype(dtype), rng.random(4) < 0.5
    if dtype[0] in "fc":
        x = x / 7 + (0.5j * x if dtype[0] == "c" else 0)
        x = x.astype(dtype)
    below_one = x
    for op in defined(UNARY, dtype):
        if UNARY[op].cost == CHAINED and dtype[0] not in "fc":
            continue  # in float16, float32 or float64
        x = below_one + x.dtype.type(1) if op == "acosh" else below_one
        expected, kernel = numpys(op)(x), getattr(elementwise, op)
        out = np.zeros_like(expected)
        kernel(device(out), device(x))
        if expected.dtype.kind in "fc":
            np.testing.assert_allclose(out, expected, rtol=2e-3 if dtype == "float16" else 1e-6, atol=1e-7)
        else:
            same_bits(out, expected)
        masked = np.zeros_like(expected)
        kernel(device(masked), device(x), where=device(mask))
        same_bits(masked, np.where(mask, out, 0).astype(expected.dtype))


@pytest.mark.parametrize("dtype", ["float32", "complex64", "int16", "float16"])
def test_rounding_to_decimals_is_the_cpus(rng, dtype):
    x = (rng.standard_normal((3, 5)) * 100).astype(dtype)
    if dtype == "complex64":
        x = x - 1j * x[::-1]
        x[0, 0] = complex(np.inf, 1.25)
    for decimals in (1, -1, 0):
        expected, out, mask = nbkernels.round(x, decimals), np.zeros_like(x), rng.random((3, 5)) < 0.5
        elementwise.round(device(out), device(x), decimals)
        same_bits(out, expected)
        masked = np.zeros_like(x)
        elementwise.round(device(masked), device(x), decimals, where=device(mask))
        same_bits(masked, np.where(mask, expected, np.zeros_like(x)))
    elementwise.round(device(x), device(x), 1)
    same_bits(x, nbkernels.round(x, 1))


def test_elementwise_overlap_and_many_chunks(rng, monkeypatch):
    monkeypatch.setattr(elementwise, "THREADS", 32)
    elementwise.kernel.cache_clear()
    x = numbers(rng, 7, 61)
    expected = x[1:] + x[:-1]
    elementwise_run("add", x[1:], x[:-1], x[1:])
    same_bits(x[1:], expected)
    expected = x * x[:1]
    elementwise_run("multiply", x, x[:1].copy(), x)  # element for element: in place
    same_bits(x, expected)
    elementwise.kernel.cache_clear()


@settings(max_examples=20)
@given(st.data(), st.lists(st.integers(0, 4), max_size=5), st.integers(0, 2**32))
def test_any_broadcast(data, shape, seed):
    rng = np.random.default_rng(seed)

    def view(full):
        sizes = [data.draw(st.sampled_from([n, 1])) for n in full][data.draw(st.integers(0, len(full))) :]
        steps = [data.draw(st.sampled_from([1, -1, 2])) for _ in sizes]
        order = data.draw(st.permutations(range(len(sizes))))
        whole = np.asarray(numbers(rng, *(sizes[d] * abs(steps[d]) for d in order))).transpose(np.argsort(order))
        return whole[(*(slice(None, None, step) for step in steps), ...)]

    x, y = view(shape), view(shape)
    expected = x + y
    same_bits(elementwise_run("add", x, y, np.full_like(expected, np.nan)), expected)


@pytest.mark.parametrize(
    ("shape", "to"),
    [((5, 7), (7,)), ((5, 7), (5, 1)), ((5, 7), ()), ((3, 4, 5), (4, 1)), ((530, 3), (3,)), ((2, 2100), (2, 1)),
     ((20_000,), ()), ((1, 1, 3), (3,)), ((4,), (4,)), ((0, 3), (3,)), ((3, 0), (0,)), ((2, 1, 3, 2), (1, 3, 1))],
)  # fmt: skip
@pytest.mark.parametrize("flip", [False, True])
def test_sum_to(rng, shape, to, flip):
    x = rng.integers(-9, 10, shape).astype("f4")
    x = np.asfortranarray(x)[::-1] if flip else x
    lead = len(shape) - len(to)
    axes = (*range(lead), *(d + lead for d, n in enumerate(to) if n == 1 and shape[d + lead] != 1))
    out = np.full(to, np.nan, "f4")
    reduce.sum_to(device(out), device(x))
    same_bits(out + 0, x.sum(axis=axes).reshape(to) + 0)


@pytest.fixture
def small_blocks(monkeypatch):
    """Folds in blocks of 32 threads, of which the simulator runs more than of 256."""
    monkeypatch.setattr(reduce, "THREADS", 32)
    reduce.kernel.cache_clear()
    yield
    reduce.kernel.cache_clear()


FOLDS = [("maximum", "float32"), ("add", "int8"), ("add", "float16"), ("multiply", "complex64"),
         ("logical_and", "bool"), ("subtract", "float64")]  # fmt: skip


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize(("op", "dtype"), FOLDS)
def test_folds(rng, op, dtype):
    """Whole numbers, hence NumPy's results: over every dimension, with masks, from views and to them; every step."""
    x = device(rng.integers(1, 3, (3, 40)).astype(dtype)[:, ::-2])
    mine, numpys = getattr(nbkernels, op), getattr(np, op)
    for axis in (0, 1) if op == "subtract" else (1, None):
        expected = np.asarray(numpys.reduce(x._ary, axis))
        out = np.full((2, *expected.shape[::-1]), 7, expected.dtype).T[..., 0]
        mine.reduce(x, axis, out=device(out))
        for result in (mine.reduce(x, axis).copy_to_host(), out):
            np.testing.assert_array_equal(result, expected, strict=True)
    steps = mine.accumulate(x, 1).copy_to_host()
    np.testing.assert_array_equal(steps, numpys.accumulate(x._ary, 1), strict=True)
    few, rows = rng.random(20) < 0.5, rng.random((3, 1)) < 0.5
    for mask, axis in ((True, 1), (few, 0), (rows, 1), (few, ())):
        words = dict(where=mask, initial=1, keepdims=True)
        expected = numpys.reduce(x._ary, axis, **words)
        out = np.full(expected.shape, 7, expected.dtype)
        mine.reduce(x, axis, **words | dict(where=mask if mask is True else device(mask)), out=device(out))
        np.testing.assert_array_equal(out, expected)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("op", ["add", "maximum", "subtract"])
def test_folds_under_a_mask_of_permuted_arrays(rng, op):
    plain = rng.integers(1, 6, (2, 4, 3)).astype("f4")
    mine, numpys = getattr(nbkernels, op), getattr(np, op)
    for axes in ((0, 2, 1), (2, 1, 0), (1, 2, 0)):
        x = plain.transpose(axes)
        mask = rng.random(x.shape) < 0.5
        for axis in (0, 2) if op == "subtract" else (0, 2, (0, 1)):
            words = dict(where=mask, initial=2)
            found = mine.reduce(device(x), axis, **words | dict(where=device(mask))).copy_to_host()
            np.testing.assert_array_equal(found, numpys.reduce(x, axis, **words))


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize(("op", "dtype"), [("gcd", "i4"), ("hypot", "f4")])
def test_what_is_folded_with_nothing_keeps_its_sign(op, dtype):
    x, mask = np.array([[4, 6], [9, 3]], dtype), np.array([[False, False], [True, False]])
    for axis, where, keepdims in ((1, mask, False), (0, mask, True), ((0, 1), mask[:1], False)):
        words = dict(axis=axis, keepdims=keepdims, initial=-4)
        found = getattr(nbkernels, op).reduce(device(x), **words, where=device(where)).copy_to_host()
        np.testing.assert_array_equal(found, getattr(np, op).reduce(x, **words, where=where))


@pytest.mark.usefixtures("small_blocks")
def test_folds_of_numbers_as_bools():
    x = np.array([[1, -1, 0], [0.5, np.nan, -3]], np.float32)
    for op in ("add", "less"):
        for words in ({}, {"initial": True}):
            found = getattr(nbkernels, op).reduce(device(x), 1, dtype=bool, **words).copy_to_host()
            assert np.array_equal(found, getattr(np, op).reduce(x, 1, dtype=bool, **words))
        found = getattr(nbkernels, op).accumulate(device(x), 1, dtype=bool).copy_to_host()
        assert np.array_equal(found, getattr(np, op).accumulate(x, 1, dtype=bool))


@pytest.mark.parametrize(("op", "dtype"), [*FOLDS, ("floor_divide", "int16")])
def test_at(rng, op, dtype):
    """One index after the other, as NumPy's: repeated, masks, pairs, of views, by numbers and by arrays."""
    whole = rng.integers(1, 5, (6, 10)).astype(dtype)
    row, words = rng.integers(1, 3, 4).astype(dtype), whole[0, :1].item()
    for indices in ([0, 2, 0, -1], ([0, 1, 0, 1], [2, 2, 2, -2]), (slice(None), [1, 1, 1, 1]), np.array([2, 2, 0, 2])):
        for other in (words, row, row[:1], row[::-1]):
            x, y = whole[::-1, ::2][:4, :4].copy(), whole.copy()[::-1, ::2][:4, :4]
            getattr(np, op).at(x, indices, other)
            getattr(nbkernels, op).at(device(y), indices, device(other) if isinstance(other, np.ndarray) else other)
            np.testing.assert_array_equal(y, x)
    x = np.arange(5.0)
    nbkernels.add.at(device(x), device(np.array([0, 4, 4])), device(x[1:4]))  # read before it is written
    assert x.tolist() == [1, 1, 2, 3, 9]
    nbkernels.add.at(device(x), [], 1)
    with pytest.raises(IndexError, match="out of bounds"):
        nbkernels.add.at(device(x), [0, 5], 1)
    with pytest.raises(nbkernels.dispatch.DeviceError, match="other on CPU"):
        nbkernels.add.at(device(x), [0, 1], np.ones(2))
    with pytest.raises(TypeError, match="cannot cast"):
        nbkernels.add.at(device(np.arange(3)), 0, 1.5)
    unsigned = np.array([2**63 + 5, 5], np.uint64)  # compared as numbers
    nbkernels.less.at(device(unsigned), [0, 1], device(np.array([2**63 - 1, -1])))
    assert unsigned.tolist() == [0, 0]
    assert x.tolist() == [1, 1, 2, 3, 9]


def test_sum_to_over_its_own_input(rng):
    """Reversed, so that a block of 32 sums writes what the next one reads."""
    x = rng.integers(-9, 10, (3, 40)).astype("f4")
    expected = x.sum(0)
    reduce.sum_to(device(x[1, ::-1]), device(x))
    np.testing.assert_array_equal(x[1, ::-1], expected)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "complex64", "bool"])
def test_numbers_go_by_value_and_halves_by_their_bits(rng, dtype):
    """On either side, as alpha, as initial; NaN and infinities of bfloat16, ties to even: the CPU's bits."""
    name, dtype = dtype, np.dtype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
    x = np.array([0, 1, 1.0078125, -3, 3e38, np.nan, np.inf, 1e-40, 0.333]).astype(dtype)
    number = {"complex64": 1.3 - 2.7j, "bool": True}.get(name, 1.00390625)
    ops = ("logical_and", "add", "maximum") if name == "bool" else ("add", "multiply", "subtract")
    for op in ops:
        for first, second in ((x, number), (number, x), (x, x[::-1])):
            want = getattr(nbkernels, op)(first, second)
            same_bits(elementwise_run(op, first, second, np.zeros_like(want)), want)
    if name != "bool":
        want = nbkernels.subtract(x, x[::-1], alpha=number)
        same_bits(elementwise_run("subtract", x, x[::-1], np.zeros_like(want), alpha=number), want)
    want = np.asarray(nbkernels.add.accumulate(x))
    same_bits(nbkernels.add.accumulate(device(x)).copy_to_host(), want)
    same_bits(nbkernels.maximum.reduce(device(x[1:4]), initial=number).copy_to_host(),
              np.asarray(nbkernels.maximum.reduce(x[1:4], initial=number)))  # fmt: skip
    for where in (False, np.arange(9) % 2 == 0):
        old = x[::-1].copy()
        given = device(where) if isinstance(where, np.ndarray) else where
        same_bits(elementwise_run("add", x, x, old, where=given), np.where(where, nbkernels.add(x, x), x[::-1]))


# --- functions of floats ----------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_transcendental_functions_have_the_cpus_bits(rng, dtype):
    x, y = numbers(rng, 7, dtype=dtype), numbers(rng, 7, dtype=dtype)
    for function in (powers.pow, transcendental.atan2, transcendental.hypot, transcendental.logaddexp):
        out = np.full(7, np.nan, dtype)
        elementwise.run(function, device(out), device(abs(x)), device(y), (np.dtype(dtype),) * 3)
        same_bits(out, [function(a, b) for a, b in zip(abs(x), y, strict=True)])


# --- a user's function -------------------------------------------------------------------------------


def test_a_function_over_device_arrays(rng):
    """Two results, broadcast, masked, one of them over the memory of an argument; bits as in plain Python."""
    x, y, mask = numbers(rng, 3, 5), numbers(rng, 6, 2)[:5, 1], rng.random((3, 5)) < 0.5
    smooth = nbkernels.elementwise(lambda a, b, c: (math.tanh(a) * b + c, a > b))
    expected, first = x.copy(), np.zeros(x.shape, bool)
    for i in np.argwhere(mask):
        a, b = x[i[0], ::-1][i[1]], y[i[1]]
        expected[tuple(i)], first[tuple(i)] = transcendental.tanh(a) * b + np.float32(2), a > b
    outs = x, np.zeros(x.shape, bool)
    smooth(device(x[:, ::-1]), device(y), 2, out=tuple(map(device, outs)), where=device(mask))
    same_bits(outs[0], expected)
    same_bits(outs[1], first)


TABLE = np.arange(3.0)


def test_a_function_that_may_raise_is_refused_before_it_runs():
    """Kernels cannot tell of an index beyond an array: it would end the process."""
    x, out = np.ones(3), np.full(3, 7.0)
    with pytest.raises(TypeError, match="may raise, as an index beyond an array does"):
        nbkernels.fuse(lambda v: TABLE[int(v)], device(x), out=device(out))
    assert (out == 7).all()


def test_integers_divided_by_zero_and_negative_powers():
    """As docs/elementwise.md says: 0, and the whole part, where the CPU warns and raises."""
    x, zero = device(np.array([4, -4, 0])), device(np.zeros(3, int))
    for function in (nbkernels.floor_divide, nbkernels.remainder, nbkernels.fmod):
        assert function(x, zero).copy_to_host().tolist() == [0, 0, 0]
    bases, powers = device(np.array([2, 1, -1, 3])), device(np.array([-1, -1, -3, -2]))
    assert nbkernels.pow(bases, powers).copy_to_host().tolist() == [0, 1, -1, 0]
