"""quantize, Quantized and linear_q against plain NumPy, their order of summation bit for bit."""

import itertools
import pickle

import ml_dtypes
import numpy as np
import pytest

import nbkernels
from nbkernels import Quantized, linear_q, quantize
from tests.reference import SEGMENT, fma32

HIGH = {"int8": 127, "int4": 7}
# Outputs, k and a group: of one block and of several, of one word and less, that do not divide, with two segments.
SIZES = [(1, 1, None), (5, 3, None), (17, 40, 8), (33, 133, 32), (130, 256, 128), (3, 4300, 96), (20, 4101, None)]


def made(n, k, group, dtype="int8", zeros=False, scales="float32", seed=0):
    rng, high = np.random.default_rng((seed, n, k)), HIGH[dtype]
    values = rng.integers(-high - 1, high + 1, (n, k)).astype(np.int8)
    groups = -(-k // (group or k))
    factors = (rng.random((n, groups)) + 0.01).astype(ml_dtypes.bfloat16 if scales == "bfloat16" else scales)
    points = rng.integers(-high - 1, high + 1, (n, groups)) if zeros else None
    if dtype == "int4":
        whole = np.concatenate([values, np.zeros((n, k % 2), np.int8)], 1)
        held = whole[:, ::2] & 15 | whole[:, 1::2] << 4
    else:
        held = values
    w = Quantized(held, factors, points, dtype=dtype, group=group, k=k)
    return w, values, factors.astype(np.float32), points


def floats(*shape, seed=1):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def shifted(values, zeros, group):
    """value - zero, in int64."""
    if zeros is None:
        return values.astype(np.int64)
    return values.astype(np.int64) - zeros.repeat(group, 1)[:, : values.shape[1]]


def model(x, values, scales, zeros, group):
    """The documented order, one step after another."""
    k = values.shape[1]
    group = group or k
    differences = shifted(values, zeros, group).astype(np.float32)
    total = np.zeros((len(x), len(values)), np.float32)
    starts = sorted({*range(0, k, group), *range(0, k, SEGMENT)})
    for start, end in zip(starts, [*starts[1:], k]):
        chain = np.zeros_like(total)
        for p in range(start, end):
            chain = fma32(x[:, p, None], differences[None, :, p], chain)
        total = fma32(scales[None, :, start // group], chain, total)
    return total


def same(a, b):
    """Bit for bit, but for the payloads of NaN."""
    nan = np.isnan(a)
    return (
        a.dtype == b.dtype
        and np.array_equal(nan, np.isnan(b))
        and np.array_equal(a[~nan].view("i4"), b[~nan].view("i4"))
    )


@pytest.mark.parametrize("zeros", [False, True])
@pytest.mark.parametrize("dtype", HIGH)
@pytest.mark.parametrize(("n", "k", "group"), SIZES)
def test_the_order_is_that_of_the_model(n, k, group, dtype, zeros):
    w, *parts = made(n, k, group, dtype, zeros)
    x = floats(19, k)
    expected = model(x, *parts, group)
    for rows in (1, 2, 3, 8, 19):
        assert same(linear_q(x[:rows], w), expected[:rows])


@pytest.mark.parametrize("scales", ["float16", "bfloat16"])
def test_scales_of_halves(scales):
    w, *parts = made(40, 100, 32, "int4", True, scales)
    assert w.scales.dtype.name == scales
    x = floats(3, 100)
    assert same(linear_q(x, w), model(x, *parts, 32))


def test_threads_and_batches_share_the_bits():
    w, *_ = made(700, 600, 64)
    x, bias = floats(2, 7, 600), floats(700)
    whole = linear_q(x, w, bias, "gelu")
    assert whole.shape == (2, 7, 700)
    with nbkernels.threads(1):
        assert same(linear_q(x, w, bias, "gelu"), whole)
    for i in range(2):
        assert same(linear_q(x[i], w, bias, "gelu"), whole[i])
    assert same(linear_q(x[1, 3], w, bias, "gelu"), whole[1, 3])


@pytest.mark.parametrize("activation", ["relu", "gelu", "silu", "sigmoid", "tanh"])
def test_bias_and_activation_are_the_librarys(activation):
    w, *_ = made(37, 50, 16)
    x, bias = floats(9, 50), floats(37)
    sums = linear_q(x, w)
    assert same(linear_q(x, w, bias), sums + bias)
    eye = np.eye(37, dtype=np.float32)
    expected = nbkernels.addmm_activation(np.zeros(37, np.float32), sums + bias, eye, activation=activation)
    assert same(linear_q(x, w, bias, activation), expected)


@pytest.mark.parametrize("dtype", HIGH)
def test_within_the_bound_of_exact_arithmetic(dtype):
    w, *_ = made(50, 700, 64, dtype, True)
    x, weights = floats(5, 700), w.dequantize().astype(np.float64)
    steps = 700 + 11 + 1  # of chains, of scales, and dequantize's own rounding
    bound = steps * 2.0**-24 / (1 - steps * 2.0**-24) * (abs(x.astype(np.float64)) @ abs(weights).T)
    assert (abs(linear_q(x, w) - x.astype(np.float64) @ weights.T) <= bound).all()


@pytest.mark.parametrize("dtype", HIGH)
def test_zeros_nan_and_infinity_in_x(dtype):
    w, *parts = made(20, 30, 8, dtype)
    x = floats(4, 30)
    x[0, 3], x[1, 5], x[2, 29], x[3] = np.nan, np.inf, -np.inf, -0.0
    with np.errstate(invalid="ignore"):
        assert same(linear_q(x, w), model(x, *parts, 8))


def test_any_layout_of_x():
    w, *_ = made(20, 30, 8)
    x = floats(4, 30)
    expected = linear_q(x, w)
    wide = floats(8, 60)
    wide[::2, ::2] = x
    locked = x.copy()
    locked.flags.writeable = False
    odd = np.frombuffer(b"." + x.tobytes(), np.uint8)[1:].view(np.float32).reshape(x.shape)
    for each in (wide[::2, ::2], np.asfortranarray(x), locked, x[::-1][::-1], odd):
        assert same(linear_q(each, w), expected)
    assert same(linear_q(np.broadcast_to(x[:1], (5, 30)), w), expected[:1].repeat(5, 0))
    assert same(linear_q(x.astype(">f4"), Quantized(w.values, w.scales.astype(">f4"), group=8)), expected)
    halves = x.astype(ml_dtypes.bfloat16)
    assert same(linear_q(halves, w), linear_q(halves.astype(np.float32), w))


@pytest.mark.parametrize(("rows", "n", "k"), [(0, 5, 8), (3, 0, 8), (3, 5, 0), (0, 0, 0)])
def test_empty(rows, n, k):
    w, bias = quantize(np.ones((n, k)), dtype="int4"), np.arange(n, dtype=np.float32)
    assert w.dequantize().shape == (n, k)
    assert np.array_equal(linear_q(np.ones((rows, k), np.float32), w, bias), np.zeros((rows, n)) + bias)
    assert np.array_equal(linear_q(np.ones((rows, k), np.float32), w, bias, dynamic=True), np.zeros((rows, n)) + bias)
    assert linear_q(np.ones((2, 0, k), np.float32), w).shape == (2, 0, n)


# -- rows of x quantised, too ------------------------------------------------------------------------------------------


def exact(x, values, scales, zeros, group):
    """The documented steps, whole numbers in int64."""
    k = values.shape[1]
    group, high = group or k, np.float32(127)
    differences, total = shifted(values, zeros, group), np.zeros((len(x), len(values)), np.float32)
    steps, factors = np.zeros(x.shape, np.int64), np.zeros((len(x), 1), np.float32)
    for row, most in enumerate(abs(x).max(1)):
        factors[row] = max(most / high, np.float32(2.0**-126)) if np.isfinite(most) else np.nan
        if np.isfinite(most):
            steps[row] = [min(max(round(float(v / factors[row, 0])), -127), 127) for v in x[row]]
    for g, start in enumerate(range(0, k, group)):
        part = slice(start, start + group)
        sums = steps[:, part] @ differences[:, part].T
        assert abs(sums).max() < 2**31
        total = fma32(scales[None, :, g], sums.astype(np.float32), total)
    return total * factors


@pytest.mark.parametrize("zeros", [False, True])
@pytest.mark.parametrize("dtype", HIGH)
@pytest.mark.parametrize(("n", "k", "group"), SIZES)
def test_dynamic_is_exact(n, k, group, dtype, zeros):
    w, *parts = made(n, k, group, dtype, zeros)
    x = floats(19, k)
    expected = exact(x, *parts, group)
    for rows in (1, 2, 3, 8, 19):
        assert same(linear_q(x[:rows], w, dynamic=True), expected[:rows])
    bias = floats(n)
    assert same(linear_q(x, w, bias, "relu", dynamic=True), np.maximum(expected + bias, 0))


def test_dynamic_rows_of_zeros_tiny_numbers_and_none():
    w, *parts = made(20, 40, 16, "int4")
    x = floats(6, 40)
    x[0], x[1], x[2, 3], x[3, 4] = 0, 1e-39, np.nan, np.inf
    x[4] = 3e38 * np.sign(x[4])
    x[5, :2] = x[5].max() * 2, x[5].max()  # 63.5: half to even
    with np.errstate(invalid="ignore", over="ignore"):
        expected = exact(x, *parts, 16)
    assert np.isnan(expected[2:4]).all()
    assert same(linear_q(x, w, dynamic=True), expected)


def test_dynamic_threads_share_the_bits():
    w, *_ = made(700, 600, 64)
    x = floats(2, 7, 600)
    whole = linear_q(x, w, dynamic=True)
    with nbkernels.threads(1):
        assert same(linear_q(x, w, dynamic=True), whole)
    assert same(linear_q(x[1, 3], w, dynamic=True), whole[1, 3])


@pytest.mark.parametrize("zero", [-128, 127])
def test_dynamic_sums_up_to_the_ends_of_int32(zero):
    """The deepest group there may be, of the largest products, is exact; one step more is refused."""
    deepest = (2**31 - 1) // (127 * 255)
    for k in (deepest, deepest + 1):
        values = np.full((1, k), 127 if zero < 0 else -128, np.int8)
        w = Quantized(values, np.ones(1, np.float32), np.array([zero]))
        x = np.ones((1, k), np.float32)
        if k == deepest:
            expected = np.float32(127 * 255 * k) * (np.float32(1) / np.float32(127))
            assert linear_q(x, w, dynamic=True) == (expected if zero < 0 else -expected)
        else:
            with pytest.raises(ValueError, match="groups of 66311 at most, for sums of 66312 int8 can exceed int32"):
                linear_q(x, w, dynamic=True)
            assert np.isfinite(linear_q(x, w)).all()
    with pytest.raises(ValueError, match="groups of 1127288 at most"):
        linear_q(np.ones(1127296, np.float32), quantize(np.ones((1, 1127296), np.float32), dtype="int4"), dynamic=True)


@pytest.mark.parametrize("zero", [-8, 7])
def test_dynamic_sums_of_the_largest_int4(zero):
    """None is lost where pairs of products are added in fewer bits than the sum has."""
    value, k = (7, -8)[zero > 0], 72
    values = np.full((20, k // 2), (value & 15) * 17, np.uint8).view(np.int8)
    w = Quantized(values, np.ones((20, 1), np.float32), np.full((20, 1), zero), dtype="int4")
    for rows, sign in itertools.product((1, 2, 9), (1, -1)):
        expected = np.float32(sign * 127 * (value - zero) * k) * (np.float32(1) / np.float32(127))
        assert (linear_q(np.full((rows, k), sign, np.float32), w, dynamic=True) == expected).all()


# -- quantize ----------------------------------------------------------------------------------------------------------


def by_hand(weight, group, dtype, symmetric, scales):
    """(values, scales, zeros) group by group."""
    (n, k), high = weight.shape, HIGH[dtype]
    one = np.float32(1 if symmetric else 2 * high + 1)
    values, factors, zeros = np.zeros((n, k), np.int8), [], []
    for row in range(n):
        for start in range(0, k, group):
            part = weight[row, start : start + group]
            least, most = min(part.min(), np.float32(0)), max(part.max(), np.float32(0))
            scale = max(most, -least) / np.float32(high) if symmetric else most / one - least / one
            scale = max(scale, np.float32(2.0**-126 if scales == "float32" else 2.0**-14)).astype(scales)
            zero = 0 if symmetric else min(max(round(float(-high - 1 - least / np.float32(scale))), -high - 1), high)
            for p, v in enumerate(part):
                value = round(float(v / np.float32(scale))) + zero  # Python's round: half to even
                values[row, start + p] = min(max(value, -high - (not symmetric)), high)
            factors.append(scale)
            zeros.append(zero)
    return values, np.array(factors).reshape(n, -1), np.array(zeros).reshape(n, -1)


@pytest.mark.parametrize("scales", ["float32", "float16"])
@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("dtype", HIGH)
@pytest.mark.parametrize(("k", "group"), [(64, 16), (37, 16), (7, None)])
def test_quantize(k, group, dtype, symmetric, scales):
    weight = floats(6, k) * np.float32(3)
    weight[0], weight[1], weight[2, :5] = 0, abs(weight[1]), 1e-30
    w = quantize(weight, group, dtype, symmetric, scales)
    values, factors, zeros = by_hand(weight, group or k, dtype, symmetric, scales)
    step, zeros = (factors.astype(np.float32).repeat(group or k, 1)[:, :k], None if symmetric else zeros)
    assert np.array_equal(w.scales, factors)
    assert (w.zeros is None) == symmetric
    assert symmetric or np.array_equal(w.zeros, zeros)
    back = shifted(values, zeros, group or k).astype(np.float32) * step
    assert same(w.dequantize(), back)
    # Half a step, one of which may be lost to a scale that was rounded down, or to the zero's own rounding.
    assert (abs(back - weight) <= step * (0.5 + (scales == "float16" or not symmetric))).all()


def test_the_axis_of_k():
    weight = floats(24, 10)
    for options in ({}, {"group": 8, "dtype": "int4", "symmetric": False}):
        expected = quantize(weight, **options)
        for axis, given in ((1, weight), (0, weight.T), (-2, weight.T)):
            found = quantize(given, axis=axis, **options)
            assert (found.shape, found.values.tobytes()) == ((24, 10), expected.values.tobytes())
            assert found.scales.tobytes() == expected.scales.tobytes()


def test_tensors():
    torch = pytest.importorskip("torch")
    x, weight, bias = floats(2, 3, 40), floats(7, 40), floats(7)
    w, tensor = quantize(torch.from_numpy(weight), group=8), torch.from_numpy(x)
    assert w.values.tobytes() == quantize(weight, group=8).values.tobytes()
    for given in (tensor, tensor.bfloat16(), tensor.half()):
        found = linear_q(given, w, torch.from_numpy(bias), "silu")
        assert (type(found), found.dtype, found.shape) == (torch.Tensor, torch.float32, (2, 3, 7))
        assert same(found.numpy(), linear_q(given.float().numpy(), w, bias, "silu"))
    with pytest.raises(TypeError, match="requires grad"):
        linear_q(tensor.requires_grad_(), w)


def test_halves_go_to_even_and_what_is_beyond_saturates():
    w = quantize(np.array([[0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 127.0]]))
    assert w.values.tolist() == [[0, 2, 2, 0, -2, -2, 127]]
    # The scale 1.0038 is 1 in bfloat16, by which 255.98 is 256 steps above a zero point of -128.
    w = quantize(np.array([[0.0, 255.98]]), symmetric=False, scales="bfloat16")
    assert (w.scales.tolist(), w.zeros.tolist(), w.values.tolist()) == ([[1]], [[-128]], [[-128, 127]])


def test_int4_lies_low_nibble_first():
    w = quantize(np.array([[1.0, -2.0, 7.0]]), dtype="int4")
    assert w.values.tolist() == [[0xE1 - 256, 7]]
    again = Quantized(w.values.view(np.uint8), w.scales, dtype="int4", k=3)
    assert np.array_equal(again.dequantize(), [[1, -2, 7]])
    assert Quantized(w.values, w.scales, dtype="int4").shape == (1, 4)


@pytest.mark.parametrize("scales", ["float32", "bfloat16"])
@pytest.mark.parametrize("symmetric", [True, False])
def test_pickles_and_does_not_change(symmetric, scales):
    w = quantize(floats(19, 37), 16, "int4", symmetric, scales)
    again = pickle.loads(pickle.dumps(w))
    assert repr(again) == repr(w)
    assert again.nbytes == w.nbytes
    assert same(again.dequantize(), w.dequantize())
    x = floats(2, 37)
    assert same(linear_q(x, again), linear_q(x, w))
    for change in (lambda: setattr(w, "group", 8), lambda: delattr(w, "words"), lambda: w.words.fill(0)):
        with pytest.raises((AttributeError, ValueError)):
            change()
    w.values[:], w.scales[:] = 0, 0  # copies
    assert same(again.dequantize(), w.dequantize())


ONES, SCALES = np.ones((4, 32), np.int8), np.ones((4, 2), np.float32)
W = Quantized(ONES, SCALES, group=16)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: Quantized(ONES, SCALES[:, :1], group=16), ValueError, r"scales must be of shape \(4, 2\)"),
        (lambda: Quantized(ONES, SCALES.T, group=16), ValueError, r"scales must be of shape \(4, 2\)"),
        (lambda: Quantized(ONES, SCALES[:, 0], group=16), ValueError, r"scales must be of shape \(4, 2\)"),
        (lambda: Quantized(ONES, SCALES * 0, group=16), ValueError, "scales must be positive and finite"),
        (lambda: Quantized(ONES, -SCALES, group=16), ValueError, "scales must be positive and finite"),
        (lambda: Quantized(ONES, SCALES * np.nan, group=16), ValueError, "scales must be positive and finite"),
        (lambda: Quantized(ONES, SCALES * np.inf, group=16), ValueError, "scales must be positive and finite"),
        (lambda: Quantized(ONES, SCALES.astype(float), group=16), TypeError, "scales must be float32, float16"),
        (lambda: Quantized(ONES, SCALES, SCALES, group=16), TypeError, "zeros must be whole numbers"),
        (lambda: Quantized(ONES, SCALES, np.full((4, 2), 128), group=16), ValueError, "zeros of int8 are from -128 to"),
        (lambda: Quantized(ONES, SCALES, ONES, group=16), ValueError, r"zeros must be of shape \(4, 2\)"),
        (lambda: Quantized(ONES.view(np.uint8), SCALES, group=16), TypeError, "values of int8 are in an int8 array"),
        (lambda: Quantized(ONES, SCALES, dtype="int4", group=16, k=62), ValueError, "do not hold 62 int4 in a row"),
        (lambda: Quantized(ONES, SCALES, group=12), ValueError, "group must be a multiple of 8, not 12"),
        (lambda: Quantized(ONES, SCALES, group=0), ValueError, "group must be a multiple of 8, not 0"),
        (lambda: Quantized(ONES, SCALES, group=16.0), TypeError, "group must be a whole number"),
        (lambda: Quantized(ONES[0], SCALES), ValueError, "values must have 2 dimensions"),
        (lambda: Quantized(ONES, SCALES, dtype="int2"), TypeError, "dtype must be 'int8' or 'int4', not 'int2'"),
        (lambda: quantize([[1.0]]), TypeError, "weight must be an array, not a list"),
        (lambda: quantize(ONES), TypeError, "weight must be of floats, not int8"),
        (lambda: quantize(SCALES * np.nan), ValueError, "weight has NaN or infinity"),
        (lambda: quantize(SCALES * 1e38, scales="float16"), ValueError, "such large weights are no float16"),
        (lambda: quantize(SCALES, scales="float64"), TypeError, "scales must be float32, float16"),
        (lambda: linear_q(SCALES, W), ValueError, r"x of shape \(4, 2\) and weights of \(4, 32\) do not fit"),
        (lambda: quantize(SCALES, axis=2), ValueError, "axis must be 0 or 1, or -2 or -1, not 2"),
        (lambda: linear_q(np.float32(1), W), ValueError, r"x of shape \(\) and weights of"),
        (lambda: linear_q(nbkernels.meta((2, 32), "f4"), W), TypeError, "x must be an array on the CPU, not"),
        (lambda: linear_q(np.ones((2, 32)), W), TypeError, "x must be float32, float16, bfloat16, not float64"),
        (lambda: linear_q(np.ones((2, 32), np.float32), ONES), TypeError, "w must be what quantize makes, not a"),
        (lambda: linear_q(np.ones(32, np.float32), W, SCALES[0]), ValueError, r"bias of shape \(2,\) for 4 outputs"),
        (lambda: linear_q(np.ones(32, np.float32), W, np.ones(4)), TypeError, "bias must be float32, float16"),
        (lambda: linear_q(np.ones(32, np.float32), W, activation="selu"), ValueError, "activation must be gelu"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_said(call, error, words):
    with pytest.raises(error, match=words), np.errstate(over="ignore"):
        call()
