"""Every operation on arrays that lie in unusual ways, of sizes that include one element: the numbers do not change."""

import itertools

import ml_dtypes
import numpy as np
import pytest

import nbkernels as nb
from nbkernels.operations import BINARY
from tests.cases import EVERY, LAYOUTS, whole_numbers
from tests.compare import outcome, same_bits

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)


def packed(x):
    """A field of records of a byte and an item: strides that are no multiple of the item's size, for one item too."""
    records = np.zeros(x.shape, [("byte", "u1"), ("item", x.dtype)])
    records["item"] = x
    return records["item"]


def turned(x):
    """The dimensions in another order in memory."""
    return np.ascontiguousarray(np.moveaxis(x, 0, -1)).transpose(x.ndim - 1, *range(x.ndim - 1)) if x.ndim else x


def sparse(x):
    """Every other item, of the last dimension from the end on."""
    return np.repeat(x, 2, axis=-1)[..., ::-1][..., ::-2] if x.ndim else x


def foreign(x):
    """A dtype that is equal to NumPy's own, and another object."""
    return x.view(np.dtype(x.dtype, metadata={"unit": "m"}))


def mixed(x):
    """Each array of a call in another way."""
    return next(ways)(x)


WAYS = {"packed": packed, "turned": turned, "sparse": sparse, "foreign": foreign, "mixed": mixed}
WAYS |= {name: LAYOUTS[name] for name in ("reversed", "unaligned")}
ways = itertools.cycle([packed, turned, foreign, sparse, np.copy])


def laid(way, x):
    """x in one of these ways; without dimensions in two of them at once."""
    return WAYS[way](x) if x.ndim else foreign(packed(x))


# name -> the shapes of its arguments, given sizes; and the same by NumPy.
PRODUCTS = {
    "mm": (lambda b, m, k, n: [(m, k), (k, n)], np.matmul),
    "addmm": (lambda b, m, k, n: [(m, n), (m, k), (k, n)], lambda x, a, b: x + a @ b),
    "bmm": (lambda b, m, k, n: [(b, m, k), (b, k, n)], np.matmul),
    "baddbmm": (lambda b, m, k, n: [(b, m, n), (b, m, k), (b, k, n)], lambda x, a, b: x + a @ b),
    "addbmm": (lambda b, m, k, n: [(m, n), (b, m, k), (b, k, n)], lambda x, a, b: x + (a @ b).sum(0)),
    "mv": (lambda b, m, k, n: [(m, k), (k,)], np.matmul),
    "addmv": (lambda b, m, k, n: [(m,), (m, k), (k,)], lambda x, a, v: x + a @ v),
    "outer": (lambda b, m, k, n: [(m,), (n,)], np.outer),
    "addr": (lambda b, m, k, n: [(m, n), (m,), (n,)], lambda x, v, w: x + np.outer(v, w)),
    "dot": (lambda b, m, k, n: [(k,), (k,)], np.dot),
    "vdot": (lambda b, m, k, n: [(k,), (k,)], np.vdot),
    "linear": (lambda b, m, k, n: [(b, m, k), (n, k), (n,)], lambda x, w, y: x @ w.T + y),
    "matmul": (lambda b, m, k, n: [(b, m, k), (b, k, n)], np.matmul),
    "matmul of a vector": (lambda b, m, k, n: [(k,), (b, k, n)], np.matmul),
    "matmul by a vector": (lambda b, m, k, n: [(b, m, k), (k,)], np.matmul),
    "matmul of a row": (lambda b, m, k, n: [(k,), (k, n)], np.matmul),
    "matmul of a column": (lambda b, m, k, n: [(m, k), (k,)], np.matmul),
    "matmul of vectors": (lambda b, m, k, n: [(k,), (k,)], np.matmul),
}
SIZES = (1, 1, 1, 1), (1, 1, 5, 1), (2, 3, 1, 1), (1, 1, 1, 4), (3, 2, 7, 5)
DTYPES = [np.dtype(name) for name in "f4 f2 c8 i2 ?".split() + ["f8", "c16"] * EVERY] + [BFLOAT16]


@pytest.mark.sampled
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", PRODUCTS)
def test_products(name, dtype, rng):
    shapes, numpys = PRODUCTS[name]
    function, wide = getattr(nb, name.split()[0]), {"b": "?", "c": "c16"}.get(dtype.kind, "f8")
    for sizes, way in itertools.product(SIZES, WAYS):
        plain = [whole_numbers(rng, shape, dtype, 2) for shape in shapes(*sizes)]
        args = [laid(way, x) for x in plain]
        expected = np.asarray(numpys(*(x.astype(wide) for x in plain))).astype(dtype)
        out = laid(way, np.full(expected.shape, 99).astype(dtype))
        for found in (function(*args), function(*args, out=out)):
            assert found.dtype == dtype
            np.testing.assert_array_equal(np.asarray(found), expected, f"{way} {sizes}")
        assert found is out


FOLDS = {"add": "f4 i1", "multiply": "f8", "maximum": "f4", "fmin": "i2", "gcd": "i4", "subtract": "f8"}


@pytest.mark.sampled
@pytest.mark.parametrize(("op", "dtype"), [(op, dtype) for op, dtypes in FOLDS.items() for dtype in dtypes.split()])
def test_folds_under_a_mask(op, dtype, rng):
    """The result has its elements in their places, whatever the order of the array's in memory."""
    numpys, mine = getattr(np, op).reduce, getattr(nb, op).reduce
    plain = rng.integers(1, 6, (2, 4, 3)).astype(dtype)
    permuted = [plain.transpose(axes) for axes in itertools.permutations(range(3))]
    repeated = [np.broadcast_to(plain[:1], plain.shape).T, np.broadcast_to(plain[:, :1], (2, 4, 3)).transpose(2, 0, 1)]
    for x in (*permuted, *repeated, *(WAYS[way](plain) for way in WAYS), packed(plain[:1, :1, :1])):
        mask = rng.random(x.shape) < 0.6
        masks = mask, mask[:1], mask[..., :1], mask[0], np.asfortranarray(mask), np.array(False)
        axes = (0, 1, 2) if op == "subtract" else (0, 1, -1, (0, 1), (2, 0), None, ())
        for axis, keepdims, where in itertools.product(axes, (False, True), masks):
            keywords = dict(axis=axis, keepdims=keepdims, where=where, initial=2)
            expected = numpys(x, **keywords)
            what = f"{x.strides} {axis} {keepdims} {where.shape}"
            same_bits(mine(x, **keywords), expected, what)
            for order in "CF":
                out = np.full(expected.shape, 77, expected.dtype, order)
                assert mine(x, **keywords, out=out) is out
                same_bits(out, expected, what)


@pytest.mark.sampled
@pytest.mark.parametrize("op", BINARY)
def test_element_wise(op, rng):
    """New results and outs are those of arrays in C order, of the methods too."""
    function = getattr(nb, op)
    dtype = next(d for d in ("f4", "i4") if type(outcome(function, *np.ones((2, 1), d))) is np.ndarray or op == "ldexp")
    for shape, way in itertools.product(((1,), (1, 1), (3, 1), (2, 3, 4)), WAYS):
        x, y = (rng.integers(1, 5, shape).astype("i4" if op == "ldexp" and name == "y" else dtype) for name in "xy")
        calls = [(function, x, y), (function.outer, x, y)]
        if shape and not isinstance(outcome(function.reduce, x), type):
            calls += [(function.reduce, x), (function.accumulate, x)]
        for call, *arrays in calls:
            expected, args, what = call(*arrays), [laid(way, each) for each in arrays], f"{call} {shape} {way}"
            same_bits(call(*args), expected, what)
            out = laid(way, np.zeros(np.shape(expected), expected.dtype))
            assert call(*args, out=out) is out
            same_bits(out, expected, f"out {what}")
        if shape and len(calls) > 2:
            mine, plain, index = WAYS[way](x), x.copy(), np.zeros(3, int)
            function.at(mine, WAYS[way](index), y[0]), function.at(plain, index, y[0])
            same_bits(mine, plain, f"at {shape} {way}")


def test_folds_in_order_whose_out_is_an_operand():
    """All that is read is read before it is written: self over no axis, and the mask."""
    for x in (np.arange(3.0), np.array(5.0)):
        expected = np.subtract(2, x)
        nb.subtract.reduce(x, axis=() if x.ndim else 0, initial=2, out=x)
        np.testing.assert_array_equal(x, expected)
    x, mask = np.arange(24, dtype="i1").reshape(4, 6), np.ones((4, 6), bool)
    mask[1], mask[2, 3] = False, False
    expected = np.subtract.reduce(x, axis=0, where=mask.copy(), initial=1)
    out = mask[1].view("i1")
    assert nb.subtract.reduce(x, axis=0, where=mask, initial=1, out=out) is out
    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize(("op", "dtype"), [("maximum", "c8"), ("minimum", "c16"), ("fmax", "c16"), ("fmin", "c8")])
def test_which_complex_nan_comes_out_is_no_matter_of_layout(op, dtype, rng):
    nans = np.array([complex(np.nan, 2), complex(0.3, np.nan), complex(np.nan, np.nan), 1 + 1j])
    for size in (2, 3, 17, 200):
        x = rng.choice(nans, size).astype(dtype)
        expected = getattr(nb, op).reduce(x)
        for same in (x[::-1].copy()[::-1], np.repeat(x, 3)[::3], np.stack([x, x], 1)[:, 0]):
            same_bits(getattr(nb, op).reduce(same), expected, op)


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
def test_floats_that_do_not_fit_a_uint64_are_one_number_in_every_layout(dtype, rng):
    x = np.repeat(np.array([-1.0, -2.5, 3.0, np.nan, np.inf, -np.inf, 6e4, -6e4]), 37).astype(dtype)
    rng.shuffle(x)
    if dtype != "f2":
        x[::5] *= np.asarray(2.0**47, dtype)
    for shape in ((296,), (8, 37), (37, 8)):
        y = x.reshape(shape)
        expected = nb.multiply(y, 1, casting="unsafe", out=np.zeros(shape, "u8"))
        for out in (np.zeros((*shape, 3), "u8")[..., 1], np.zeros(shape, "u8")[::-1], np.zeros(shape[::-1], "u8").T):
            assert nb.multiply(y, 1, casting="unsafe", out=out) is out
            np.testing.assert_array_equal(out, expected)
        alone = [int(nb.multiply(np.array(v), 1, casting="unsafe", out=np.zeros((), "u8"))) for v in y.flat]
        assert expected.ravel().tolist() == alone
