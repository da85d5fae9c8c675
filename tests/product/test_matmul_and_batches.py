"""The products built on addmm: batches, vectors, matmul. Exact on whole numbers, bit for bit those of mm and addmm."""

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import nbkernels as nb
from nbkernels.dispatch import MetaArray, OutError
from tests import reference
from tests.cases import LAYOUTS, normal, whole_numbers
from tests.compare import same_bits
from tests.reference import bound

DTYPES = ("float32", "float64")
# name -> (shapes of the arguments, the same by NumPy); beta and alpha where the op has them
SHAPES = {
    "bmm": [(3, 4, 5), (3, 5, 2)],
    "baddbmm": [(3, 4, 2), (3, 4, 5), (3, 5, 2)],
    "addbmm": [(4, 2), (3, 4, 5), (3, 5, 2)],
    "mv": [(4, 5), (5,)],
    "addmv": [(4,), (4, 5), (5,)],
    "outer": [(4,), (5,)],
    "addr": [(4, 5), (4,), (5,)],
    "dot": [(7,), (7,)],
    "vdot": [(7,), (7,)],
    "matmul": [(3, 4, 5), (5, 2)],
}
PRODUCT = {
    "bmm": np.matmul, "addbmm": lambda a, b: (a @ b).sum(0), "mv": np.matmul, "outer": np.outer,
    "dot": np.dot, "vdot": np.dot, "matmul": np.matmul,
}  # fmt: skip
PRODUCT |= {"baddbmm": PRODUCT["bmm"], "addmv": PRODUCT["mv"], "addr": PRODUCT["outer"]}
ADDS = ("baddbmm", "addbmm", "addmv", "addr")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_exact_in_every_layout_and_form(rng, name, dtype, layout):
    function = getattr(nb, name)
    args = [LAYOUTS[layout](whole_numbers(rng, shape, dtype)) for shape in SHAPES[name]]
    if name in ADDS:
        keywords, expected = dict(beta=2, alpha=-3), 2 * args[0] - 3 * PRODUCT[name](*args[1:])
    else:
        keywords, expected = {}, PRODUCT[name](*args)
    found = function(*args, **keywords)
    np.testing.assert_array_equal(found, expected)
    assert (found.dtype, found.shape) == (np.dtype(dtype), np.shape(expected))
    out = LAYOUTS[layout](np.full(np.shape(expected), np.nan, dtype)) if np.ndim(expected) else np.array(np.nan, dtype)
    assert function(*args, **keywords, out=out) is out
    np.testing.assert_array_equal(out, expected)
    if name == "bmm":
        mine, square = LAYOUTS[layout](args[0].copy()), whole_numbers(rng, (3, 5, 5), dtype)
        expected = mine @ square
        assert nb.bmm_(mine, square) is mine
        np.testing.assert_array_equal(mine, expected)
    if name in ADDS:
        mine = LAYOUTS[layout](args[0].copy())
        assert getattr(nb, name + "_")(mine, *args[1:], **keywords) is mine
        np.testing.assert_array_equal(mine, expected)
        for self in (np.asarray(args[0].ravel()[0]), args[0][:1], args[0][..., :1]):  # self expands
            first = args[0].ravel()[0] if self.ndim == 0 else self
            expected_ = 2 * first - 3 * PRODUCT[name](*args[1:])
            np.testing.assert_array_equal(function(self, *args[1:], **keywords), expected_)


@pytest.mark.parametrize("dtype", DTYPES)
def test_batches_have_the_bits_of_one_product(rng, dtype):
    for batch, m, n, k in (
        (7, 3, 4, 5),
        (2, 70, 33, 90),
        (33, 16, 16, 16),
        (5, 43, 10, 130),
        (3, 41, 20, 70),
        (3, 1, 9, 40),
        (5, 1, 90, 80),
        (3, 300, 1, 61),
        (2, 5, 3, 4100),
        (1, 9, 9, 9),
    ):
        a, b, x = (normal(rng, (batch, *shape), dtype) for shape in ((m, k), (k, n), (m, n)))
        for left, right in ((a, b), (a, b.transpose(0, 2, 1).copy().transpose(0, 2, 1)), (a[:1], b), (a, b[:1])):
            left, right = (np.broadcast_to(z, (batch, *z.shape[1:])) for z in (left, right))
            found = nb.bmm(left, right)
            for i in range(batch):
                same_bits(found[i], nb.mm(left[i], right[i]))
            for self in (x, x[0, 0], x[:, :, :1], x[:1, :, :], x.transpose(0, 2, 1).copy().transpose(0, 2, 1)):
                added = nb.baddbmm(self, left, right, beta=0.3, alpha=1.7)
                whole = np.broadcast_to(self, x.shape)
                for i in range(0, batch, 1 + batch // 9):
                    same_bits(added[i], nb.addmm(whole[i], left[i], right[i], beta=0.3, alpha=1.7))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("count", "m", "n", "k"), [(4, 150, 140, 130), (9, 131, 200, 67), (3, 130, 128, 129)])
def test_one_thread_a_product_of_larger_ones(rng, dtype, count, m, n, k):
    a, b = whole_numbers(rng, (count, m, k), dtype), whole_numbers(rng, (count, k, n), dtype)
    x, whole = whole_numbers(rng, (count, m, n), dtype), np.matmul(a, b)
    upright = np.ascontiguousarray(a.swapaxes(1, 2)).swapaxes(1, 2)  # packed, in a room for each thread
    for left, expected in ((a, whole), (upright, whole), (a[:, ::-1], whole[:, ::-1])):
        np.testing.assert_array_equal(nb.bmm(left, b), expected)
    turned = np.full((count, n, m), np.nan, dtype).swapaxes(1, 2)
    np.testing.assert_array_equal(nb.baddbmm(x, upright, b, beta=2, alpha=-1, out=turned), 2 * x - whole)
    np.testing.assert_array_equal(nb.baddbmm_(x.copy(), a, b, beta=2, alpha=-1), 2 * x - whole)


@settings(max_examples=60)
@given(st.data())
def test_any_stack(data):
    """Layouts, broadcast and interleaved stacks, in-place: against integers."""
    batch, m, n, k = (data.draw(st.integers(1, high)) for high in (9, 40, 40, 70))
    rng, layout = np.random.default_rng(0), st.sampled_from(sorted(LAYOUTS))
    orders = st.permutations([0, 1, 2])

    def drawn(shape):
        order = data.draw(orders)
        x = LAYOUTS[data.draw(layout)](whole_numbers(rng, tuple(shape[d] for d in order), "float32"))
        return x.transpose(np.argsort(order))

    a, b, x = drawn((batch, m, k)), drawn((batch, k, n)), drawn((batch, m, n))
    expected = 2 * x.astype(int) - 3 * (a.astype(int) @ b.astype(int))
    out = drawn((batch, m, n))
    assert nb.baddbmm(x, a, b, beta=2, alpha=-3, out=out) is out
    np.testing.assert_array_equal(out, expected)
    assert nb.baddbmm_(x, a, b, beta=2, alpha=-3) is x
    np.testing.assert_array_equal(x, expected)


@pytest.mark.parametrize("dtype", DTYPES)
def test_outer_products_have_the_bits_of_matrices(rng, dtype):
    for m, k in ((5, 7), (200, 300), (3, 5000)):
        v, w = normal(rng, k, dtype), normal(rng, m, dtype)
        same_bits(nb.outer(w, v), nb.mm(w[:, None], v[None]))
        same_bits(nb.addr(v, w, v, beta=-1.5, alpha=0.1), nb.addmm(v, w[:, None], v[None], beta=-1.5, alpha=0.1))


@st.composite
def factors(draw):
    """Shapes of two arrays that NumPy's matmul takes, empty ones and 1-D ones among them."""
    sizes = st.integers(0, 5)
    m, k, n = draw(sizes), draw(sizes), draw(sizes)
    batches = draw(hnp.mutually_broadcastable_shapes(num_shapes=2, max_dims=3, min_side=0, max_side=4)).input_shapes
    left = draw(st.sampled_from([(*batches[0], m, k), (k,)]))
    return left, draw(st.sampled_from([(*batches[1], k, n), (k,)]))


@settings(max_examples=120)
@given(factors(), st.data())
def test_matmul_is_numpys(shapes, data):
    rng = np.random.default_rng(0)
    a, b = (LAYOUTS[data.draw(st.sampled_from(sorted(LAYOUTS)))](whole_numbers(rng, s, "float32")) for s in shapes)
    expected = np.matmul(a, b)
    found = nb.matmul(a, b)
    np.testing.assert_array_equal(found, expected)
    assert found.shape == expected.shape
    out = np.full(expected.shape, np.nan, "float32")
    out = LAYOUTS[data.draw(st.sampled_from(["C", "F", "every other"]))](out) if out.ndim else out
    assert nb.matmul(a, b, out=out) is out
    np.testing.assert_array_equal(out, expected)


def test_matmul_repeats_nothing_in_memory():
    one = np.ones(1, np.float32)
    a, b = np.broadcast_to(one, (3, 1_000_000, 2, 3)), np.ones((3, 4), np.float32)
    out = np.broadcast_to(one, (3, 1_000_000, 2, 4))
    assert out.nbytes < 2**31
    assert (nb.matmul(a[:, :2000], b) == 3).all()
    assert (nb.matmul(b[:2, :3], np.broadcast_to(one, (50_000, 3, 1))) == 3).all()


@pytest.mark.parametrize("name", ADDS)
def test_zero_factors_leave_unread(name, rng):
    self, *pair = (whole_numbers(rng, shape, "float64") for shape in SHAPES[name])
    nan = [np.full(x.shape, np.nan) for x in (self, *pair)]
    np.testing.assert_array_equal(getattr(nb, name)(nan[0], *pair, beta=0), PRODUCT[name](*pair))
    np.testing.assert_array_equal(getattr(nb, name)(self, *nan[1:], beta=2, alpha=0), 2 * self)
    np.testing.assert_array_equal(getattr(nb, name)(*nan, beta=0, alpha=0), 0 * self)


def test_empty_batches_and_depths():
    for batch, m, k, n in ((0, 2, 3, 4), (2, 0, 3, 4), (2, 3, 0, 4), (2, 3, 4, 0), (0, 0, 0, 0)):
        a, b = np.ones((batch, m, k)), np.ones((batch, k, n))
        np.testing.assert_array_equal(nb.bmm(a, b), a @ b)
        np.testing.assert_array_equal(nb.baddbmm(np.float64(3), a, b), 3 + a @ b)
        np.testing.assert_array_equal(nb.addbmm(np.float64(3), a, b, beta=2), 6 + (a @ b).sum(0))
    np.testing.assert_array_equal(nb.mv(np.ones((3, 0)), np.ones(0)), np.zeros(3))
    assert nb.dot(np.ones(0), np.ones(0)) == 0
    assert nb.outer(np.ones(0), np.ones(2)).shape == (0, 2)


def test_out_may_overlap_the_inputs(rng):
    room = whole_numbers(rng, (6, 4, 4), "float64")
    for pick in (
        lambda r: (r[:4], r[1:5], r[2:6]),  # shifted by whole matrices: out[1] is mat2[0]
        lambda r: (r[:3], r[3:], r[:3].transpose(0, 2, 1)),
        lambda r: (r[::-1], r, r),
    ):
        mine = room.copy()
        a, b, out = pick(mine)
        expected = a @ b
        nb.bmm(a, b, out=out)
        np.testing.assert_array_equal(out, expected)
    for out_ in (lambda v: v[1:5], lambda v: v[:4][::-1]):
        v, a = np.arange(6.0), room[0]
        expected = a @ v[:4]
        np.testing.assert_array_equal(nb.mv(a, v[:4], out=out_(v)), expected)
    b = room.copy()
    expected = 1 + (b[:3] @ b[3:]).sum(0)
    np.testing.assert_array_equal(nb.addbmm(np.float64(1), b[:3], b[3:], out=b[4]), expected)


A, V = np.ones((2, 3)), np.ones(3)
B3, F4 = np.ones((4, 2, 3)), np.ones((2, 3), np.float32)
BAD = [
    ("bmm", (B3, A), ValueError, r"mat2 must be 3-D, and it is 2-D"),
    ("bmm", (B3, np.ones((3, 3, 2))), ValueError, r"as many matrices: self \(4, 2, 3\) and mat2 \(3, 3, 2\)"),
    ("bmm", (B3, B3), ValueError, "3 columns and those of mat2 2 rows"),
    ("bmm", (B3, B3.astype("f4")), TypeError, "self is float64 and mat2 is float32"),
    ("baddbmm", (np.ones(3), B3, np.ones((4, 3, 2))), ValueError, r"self \(3,\) does not expand to \(4, 2, 2\)"),
    ("addbmm", (np.ones((4, 2, 2)), B3, np.ones((4, 3, 2))), ValueError, r"does not expand to \(2, 2\)"),
    ("mv", (A, A), ValueError, "self must be 2-D and vec 1-D"),
    ("mv", (A, np.ones(2)), ValueError, "self has 3 columns and vec 2 elements"),
    ("mv", (A, V.astype("f4")), TypeError, "self is float64 and vec is float32"),
    ("addmv", (np.ones((2, 1)), A, V), ValueError, r"self \(2, 1\) does not expand to \(2,\)"),
    ("outer", (A, V), ValueError, "self must be 1-D, and it is 2-D"),
    ("addr", (V, V, A), ValueError, "vec2 must be 1-D"),
    ("dot", (V, np.ones(2)), ValueError, r"of one size: self \(3,\) and tensor \(2,\)"),
    ("vdot", (V, A), ValueError, "other must be 1-D"),
    ("matmul", (A, A), ValueError, "the last size of input is 3 and other has 2 rows"),
    ("matmul", (np.float64(1), A), ValueError, "both must have a dimension"),
    ("matmul", (B3, np.ones((3, 3, 2))), ValueError, "sizes 4 and 3 in dimension 0"),
    ("matmul", (A, F4.astype("g")), TypeError, "other has dtype"),
    ("matmul", ([[1.0]], A), TypeError, "input must be an array, not a list"),
    ("dot", (V.astype(object), V.astype(object)), TypeError, "dtype object"),
]


@pytest.mark.parametrize(("name", "args", "kind", "words"), BAD, ids=lambda v: v if isinstance(v, str) else "")
def test_bad_input_is_one_clear_error(name, args, kind, words):
    out = np.full((2, 2), np.nan)
    for keywords in ({}, {"out": out}):
        with pytest.raises(kind, match=f"^{name}: .*{words}"):
            getattr(nb, name)(*args, **keywords)
    assert np.isnan(out).all()


@pytest.mark.parametrize("name", SHAPES)
def test_outs_that_cannot_be_written(name):
    args = [np.ones(shape) for shape in SHAPES[name]]
    right = getattr(nb, name)(*args)
    outs = [(np.full((9, 9, 9), np.nan), "never resized"), (np.full(right.shape, np.nan, "f4"), "float32")]
    if right.ndim:
        outs.append((np.lib.stride_tricks.as_strided(np.zeros(1), right.shape, (0,) * right.ndim), "share memory"))
    for out, words in outs:
        before = out.tobytes()
        with pytest.raises(OutError, match=f"^{name}: .*{words}"):
            getattr(nb, name)(*args, out=out)
        assert out.tobytes() == before


def test_meta_arrays_run_nothing():
    for name, shapes in SHAPES.items():
        real = getattr(nb, name)(*[np.ones(s, "f4") for s in shapes])
        assert getattr(nb, name)(*[MetaArray(s, "float32") for s in shapes]).shape == real.shape


def test_out_may_overlap_an_input_whose_batches_no_stride_joins(rng):
    """Several products, each of which would write what another reads."""
    a, b, w = (
        rng.normal(size=(3, 2, 4, 4)).transpose(1, 0, 2, 3),
        rng.normal(size=(2, 3, 4, 4)),
        rng.normal(size=(4, 4)),
    )
    expected, linear = nb.matmul(a, b), nb.linear(a, w, w[0])
    for function, rest, result in ((nb.matmul, (b,), expected), (nb.linear, (w, w[0]), linear)):
        x = a.copy("K")
        out = x[::-1]
        assert function(x, *rest, out=out) is out
        assert np.array_equal(out, result)


@pytest.mark.parametrize("dtype", ["bool", "int8", "float16", "float32", "complex64", "complex128"])
def test_what_goes_by_a_temporary_keeps_its_bits(dtype):
    """Infinities of complex numbers, and bools, in an out that overlaps an input whose batches no stride joins."""
    x = np.array([0, 1, 1, 0, 2, 1] * 8).astype(dtype).reshape(3, 2, 4, 2).transpose(1, 0, 2, 3)
    if np.dtype(dtype).kind in "fc":
        x[0, 0, 1, 0] = x[1, 2, 3, 1] = np.inf
    eye = np.ones((2, 3, 2, 1), dtype)
    eye = np.concatenate([eye, 1 - eye if dtype != "bool" else ~eye], -1)
    with np.errstate(all="ignore"):
        expected = nb.matmul(x.copy(), eye)
    out = x[::-1]
    assert nb.matmul(x, eye, out=out) is out
    same_bits(out, expected)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("m", "n", "k"), [(32, 31, 33), (20, 17, 40), (9, 50, 64), (70, 9, 100)])
def test_stacks_beyond_the_caches(rng, dtype, m, n, k):
    """Of more than 8 MB, whose matrices are asked for ahead, the last ones' followers too."""
    count = (9 << 20) // ((m * k + k * n + m * n) * np.dtype(dtype).itemsize)
    a, b, x = (normal(rng, shape, dtype) for shape in ((count, m, k), (count, k, n), (count, m, n)))
    some = [*range(0, count, 40), count - 2, count - 1]
    for right in (b, np.ascontiguousarray(b.swapaxes(1, 2)).swapaxes(1, 2)):
        found, added = nb.bmm(a, right), nb.baddbmm(x, a, right, beta=-0.5, alpha=3)
        for t in some:
            same_bits(found[t], nb.mm(a[t], right[t]))
            same_bits(added[t], nb.addmm(x[t], a[t], right[t], beta=-0.5, alpha=3))
        wider = a.astype(np.longdouble if dtype == "float64" else "f8")
        assert (abs(found - np.matmul(wider, right)) <= bound(a, right)).all()
    turned = np.full((count, n, m), np.nan, dtype).swapaxes(1, 2)
    np.testing.assert_array_equal(nb.bmm(a, b, out=turned), nb.bmm(a, b))


@pytest.mark.parametrize("dtype", ["float16", ml_dtypes.bfloat16])
def test_sums_of_many_products_of_halves_are_rounded_once(rng, dtype):
    """As float32 has them, to the bit; NaN in self does not count where beta is 0."""
    ones = np.ones((3000, 2, 1), dtype), np.ones((3000, 1, 3), dtype)
    assert (nb.addbmm(np.full(3, np.nan, dtype), *ones, beta=0) == np.asarray(3000).astype(dtype)).all()
    x, a, b = (rng.standard_normal(shape).astype(dtype) for shape in ((5, 1), (40, 5, 7), (40, 7, 6)))
    expected = nb.addbmm(x.astype("f4"), a, b, beta=0.5, alpha=-2, out_dtype="f4").astype(dtype)
    same_bits(nb.addbmm(x, a, b, beta=0.5, alpha=-2), expected)
    out = np.zeros((6, 5), dtype).T
    assert nb.addbmm(x, a, b, beta=0.5, alpha=-2, out=out) is out
    same_bits(out, expected)
    out[:] = x
    nb.addbmm_(out, a, b, beta=0.5, alpha=-2)
    same_bits(out, expected)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_a_complex_vector_times_a_matrix_has_one_order_whatever_was_called_before(rng, dtype):
    """Its steps' terms have an order, which mv of the matrix's transpose turns round."""
    nb.mv(np.ones((3, 4), dtype), np.ones(4, dtype))  # from here on mv of this dtype is compiled
    for k, n in ((7, 48), (127, 127), (0, 3), (3, 0)):
        a, b = ((rng.standard_normal(s) + 1j * rng.standard_normal(s)).astype(dtype) for s in (k, (k, n)))
        expected = reference.complex_matmul(a[None], b)[0] if k and n else np.zeros(n, dtype)
        out = np.full(2 * n, np.nan, dtype)[::2]
        assert nb.matmul(a, b, out=out) is out
        for found in (nb.matmul(a, b), np.asarray(nb.asarray(a) @ b), out, nb.matmul(a[::-1][::-1], b.T.copy().T)):
            same_bits(np.ascontiguousarray(found), expected)
    with pytest.raises(ValueError, match="matmul"):
        nb.matmul(a, np.ones((5, 2), dtype))


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "float16", "complex64"])
@pytest.mark.parametrize("k", [1, 7, 65, 4100])
def test_linear_of_stacks_and_vectors_has_the_bits_of_matrices(rng, dtype, k):
    """Stacks that lie in any way, of no matrices too, and vectors, with a bias of the layer's width or none."""
    stack, w, bias = (whole_numbers(rng, s, dtype) for s in ((3, 4, k), (5, k), (5,)))
    parts = [stack[:, ::2], stack[::-1], stack.transpose(1, 0, 2), np.broadcast_to(stack[:1], (2, 4, k)), stack[:0]]
    parts += [stack[..., ::2], stack[0, 0], stack[0, 0, ::2], np.asfortranarray(stack), stack[:, None]]
    for x, b in ((x, b) for x in parts for b in (None, bias)):
        matrix = w[:, : x.shape[-1]]
        rows = np.ascontiguousarray(x).reshape(-1, x.shape[-1])
        expected = nb.linear(rows, matrix, b).reshape(*x.shape[:-1], 5)
        same_bits(nb.linear(x, matrix, b), expected)
        out = np.empty((*expected.shape, 2), dtype)[..., 0]
        assert nb.linear(x, matrix, b, out=out) is out
        same_bits(out, expected)
    if k == 65:  # too small, of another width, read-only: errors as of the general path
        for bad in (bias[:4], bias[:1, None].repeat(5, 1)[:, :1]):
            with pytest.raises(ValueError, match="bias"):
                nb.linear(stack[:, ::2], w, bad)
        with pytest.raises(ValueError, match="linear"):
            nb.linear(stack[:, ::2], w[:, 1:])
        sealed = np.empty((3, 2, 5), dtype)
        sealed.flags.writeable = False
        with pytest.raises(ValueError, match="read-only"):
            nb.linear(stack[:, ::2], w, bias, out=sealed)
