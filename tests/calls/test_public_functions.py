"""The public functions, with the real kernels: the forms agree to the bit, bad input leaves all as it was."""

from importlib.util import find_spec

import numpy as np
import pytest

import nbkernels as nb
from nbkernels.dispatch import DeviceError, MetaArray, OutError
from tests.cases import BINARY
from tests.processes import python


def draw(*shape, dtype="float64"):
    return np.random.default_rng(sum(shape)).normal(size=shape).astype(dtype)


def cases(dtype="float64"):
    """(name, positional, keywords); in-place works on each."""
    a, b = draw(4, 4, dtype=dtype), draw(4, 4, dtype=dtype)[::-1]
    yield "addmm", (draw(4, 4, dtype=dtype), a, b), dict(beta=-0.5, alpha=2)
    yield "addmm", (draw(4, 4, dtype=dtype), a.T, b.T), {}
    yield "mm", (a, b), {}
    for name in BINARY:
        yield name, (a, b), {}
        yield name, (a, b[0]), {}
        yield name, (a, 2), {}
    yield "add", (a, b), dict(alpha=0.5)
    yield "subtract", (a, b), dict(alpha=-3)


def torch():
    if find_spec("torch") is None:
        pytest.skip("needs torch")
    return __import__("torch")


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_three_forms_give_the_same_bits(dtype):
    for name, args, keywords in cases(dtype):
        expected = getattr(nb, name)(*args, **keywords)
        out = np.full((4, 4), np.nan, dtype)
        padded = np.full((6, 11), np.nan, dtype)[1:5, 1:9:2]
        self = args[0].copy()
        assert getattr(nb, name)(*args, **keywords, out=out) is out
        assert getattr(nb, name)(*args, **keywords, out=padded) is padded
        assert getattr(nb, name + "_")(self, *args[1:], **keywords) is self
        for found in (out, padded, self):
            assert np.array_equal(found, expected), name
        assert np.isnan(padded.base).sum() == 66 - 16


def test_every_kind_of_array_gives_the_same_bits():
    class Sub(np.ndarray):
        pass

    for name, args, keywords in cases():
        function = getattr(nb, name)
        expected = function(*args, **keywords)
        for wrap, kind in ((torch().from_numpy, torch().Tensor), (lambda x: x.view(Sub), Sub)):
            wrapped = [wrap(x.copy()) if isinstance(x, np.ndarray) else x for x in args]
            found = function(*wrapped, **keywords)
            assert type(found) is kind
            assert np.array_equal(np.asarray(found), expected), name
            out = wrap(np.full((4, 4), np.nan))
            assert function(*wrapped, **keywords, out=out) is out
            assert np.array_equal(np.asarray(out), expected), name
            assert getattr(nb, name + "_")(wrapped[0], *wrapped[1:], **keywords) is wrapped[0]
            assert np.array_equal(np.asarray(wrapped[0]), expected), name
        metas = [MetaArray(x.shape, x.dtype, x.strides) if isinstance(x, np.ndarray) else x for x in args]
        meta = function(*metas, **keywords)
        assert (meta.shape, meta.dtype, meta.strides) == (expected.shape, expected.dtype, expected.strides)


# -- linear -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("lead", [(), (1,), (7,), (2, 7), (2, 0, 7), (2, 3, 7)])
@pytest.mark.parametrize("bias", [None, (), (1,), (3,)])
def test_linear_with_leading_dimensions(lead, bias):
    x, w = draw(*lead, 5), draw(3, 5)
    bias = None if bias is None else np.array(draw(*bias))
    expected = x @ w.T + (0 if bias is None else bias)
    for found in (nb.linear(x, w, bias), nb.linear(np.asfortranarray(x), w.copy("F"), bias)):
        assert type(found) is np.ndarray
        np.testing.assert_allclose(found, expected, rtol=1e-13, atol=1e-13)
    t = torch()
    found = nb.linear(t.from_numpy(x), t.from_numpy(w), None if bias is None else t.from_numpy(bias))
    assert type(found) is t.Tensor
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-13, atol=1e-13)
    assert nb.linear(MetaArray(x.shape, x.dtype), MetaArray(w.shape, w.dtype)).shape == expected.shape


def test_linear_says_that_it_was_called():
    for bias in (None, np.ones(3)):
        for out, error in ((3, TypeError), (np.ones((2, 2)), ValueError), (np.ones((2, 3), int), TypeError)):
            with pytest.raises(error, match=r"^linear: "):
                nb.linear(np.ones((2, 4)), np.ones((3, 4)), bias, out=out)


def test_linear_of_an_input_that_no_view_flattens():
    x, w, b = draw(4, 3, 6, 5), draw(2, 5), draw(2)
    for y in (x.transpose(2, 1, 0, 3), x[:, ::-1], x[:, :, ::2], x.transpose(0, 2, 1, 3)[1:], x[..., ::-1]):
        np.testing.assert_allclose(nb.linear(y, w, b), y @ w.T + b, rtol=1e-13)
        np.testing.assert_allclose(nb.linear(y, w), y @ w.T, rtol=1e-13)


def test_linear_says_what_does_not_fit():
    with pytest.raises(ValueError, match=r"^linear: the last sizes of input and weight differ: input \(2, 4\)"):
        nb.linear(np.ones((2, 4)), np.ones((3, 5)))
    with pytest.raises(ValueError, match=r"^linear: bias \(2,\) does not expand to \(3,\)"):
        nb.linear(np.ones((2, 5)), np.ones((3, 5)), np.ones(2))
    with pytest.raises(TypeError, match=r"^linear: weight must be an array, not None"):
        nb.linear(np.ones((2, 5)), None)
    with pytest.raises(TypeError, match=r"^linear: input has dtype (longdouble|float)"):
        nb.linear(np.ones((2, 5), np.longdouble), np.ones((3, 5)))


# -- sum_to -----------------------------------------------------------------------------------------------------------


def test_sum_to():
    x = draw(4, 2, 3)
    assert nb.sum_to(x, (4, 2, 3)) is x
    assert nb.sum_to(x, [4, 2, 3]) is x
    np.testing.assert_allclose(nb.sum_to(x, (2, 1)), x.sum(axis=(0, 2))[:, None])
    out = np.full((2, 3), np.nan)
    assert nb.sum_to(x, (2, 3), out=out) is out
    np.testing.assert_allclose(out, x.sum(axis=0))
    same = np.full((4, 2, 3), np.nan)
    assert nb.sum_to(x, (4, 2, 3), out=same) is same
    assert np.array_equal(same, x)
    assert np.array_equal(nb.sum_to(np.ones((0, 3)), (1, 3)), np.zeros((1, 3)))
    assert nb.sum_to(np.ones((3, 0)), (1, 0)).shape == (1, 0)
    t = torch().from_numpy(x)
    assert nb.sum_to(t, (4, 2, 3)) is t
    np.testing.assert_allclose(nb.sum_to(t, ()).numpy(), x.sum())


# -- bad input --------------------------------------------------------------------------------------------------------


def read_only(x):
    x.flags.writeable = False
    return x


def shared(shape, strides, dtype="float64"):
    return np.lib.stride_tricks.as_strided(np.zeros(64, dtype), shape, strides)


OK, F4, I4, OBJECT = np.ones((2, 2)), np.ones((2, 2), np.float32), np.ones((2, 2), np.int32), np.ones((2, 2), object)
SWAPPED = np.ones((2, 2), np.dtype(np.float64).newbyteorder())
BAD = [
    ("addmm", (OK, OK, np.ones((3, 2))), {}, ValueError, "2x2 and 3x2"),
    ("addmm", (np.ones(3), OK, OK), {}, ValueError, r"self \(3,\) does not expand to \(2, 2\)"),
    ("addmm", (OK, np.ones(2), OK), {}, ValueError, "mat1 must be 2-D"),
    ("addmm", (OK, np.ones((1, 2, 2)), OK), {}, ValueError, "mat1 must be 2-D"),
    ("addmm", (OK, np.array(1.0), OK), {}, ValueError, "mat1 must be 2-D"),
    ("addmm", (F4, OK, OK), {}, TypeError, "self is float32 and mat2 is float64"),
    ("addmm", (OK, F4, OK), {}, TypeError, "mat1 is float32 and mat2 is float64"),
    ("addmm", (OBJECT, OBJECT, OBJECT), {}, TypeError, "dtype object; supported are"),
    ("addmm", (I4, I4, I4), dict(alpha=0.5), TypeError, "alpha=0.5 is a float and the matrices are int32: pass an int"),
    ("addmm", (I4, I4, I4), dict(beta=1j), TypeError, "beta=1j is complex"),
    ("mm", (I4, I4), dict(out_dtype="float32"), TypeError, "out_dtype float32 cannot be had from self int32"),
    (
        "mm",
        (F4, F4),
        dict(mode="bf16_dot"),
        ValueError,
        "'bf16_dot' for float32; there is 'amx' for float16 and bfl",
    ),
    (
        "mm",
        (F4, F4),
        dict(conj="a"),
        ValueError,
        "conj is 'a', 'b' or 'ab' for complex matrices; it is 'a' for f",
    ),
    ("addmm", (OBJECT, OBJECT, OBJECT), {}, TypeError, "dtype object"),
    ("addmm", (SWAPPED, SWAPPED, SWAPPED), {}, TypeError, "byte-swapped"),
    ("addmm", (None, OK, OK), {}, TypeError, "self must be an array, not None"),
    ("addmm", (1.0, OK, OK), {}, TypeError, "self must be an array, not a float"),
    ("addmm", (OK, [[1.0]], OK), {}, TypeError, "mat1 must be an array, not a list"),
    ("addmm", (OK, OK, "x"), {}, TypeError, "mat2 must be an array, not a str"),
    ("addmm", (OK, OK, OK), dict(beta=None), TypeError, "beta must be a number, not None"),
    ("addmm", (OK, OK, OK), dict(alpha="2"), TypeError, "alpha must be a number, not '2'"),
    ("addmm", (OK, OK, OK), dict(alpha=OK), TypeError, "alpha must be a number, not a ndarray"),
    ("addmm", (OK, OK, OK), dict(beta=1j), TypeError, "beta=1j is complex"),
    ("addmm", (OK, OK, OK), dict(beta=10**400), OverflowError, "beta is an int too large"),
    ("addmm", (MetaArray((2, 2), "float64"), OK, OK), {}, DeviceError, "self on Meta, mat1 on CPU, mat2 on CPU"),
    ("addmm", (np.ma.ones((2, 2)), OK, OK), {}, TypeError, "self is a masked array"),
    ("mm", (OK, np.ones((3, 2))), {}, ValueError, "2x2 and 3x2"),
    ("mm", (OK, F4), {}, TypeError, "self is float64 and mat2 is float32"),
    ("mm", (OK, None), {}, TypeError, "mat2 must be an array, not None"),
    ("add", (OK, np.ones(3)), {}, ValueError, "sizes 2 and 3 in dimension 1"),
    ("add", (OK, None), {}, TypeError, "other must be an array or a Python number, not None"),
    ("add", (OK, OBJECT), {}, TypeError, "other has dtype object"),
    ("fmod", (OK, 1j), {}, TypeError, "not defined for float64 and complex"),
    ("add", (I4, 2**31), {}, OverflowError, "other=2147483648 is out of bounds for int32"),
    ("add", (I4.astype("int8"), 300), {}, OverflowError, "out of bounds for int8"),
    ("add", (I4, I4), dict(alpha=0.5), TypeError, "alpha=0.5 is a float and the result is int32"),
    ("add", (OK, OK), dict(alpha=True), TypeError, "alpha=True is a bool"),
    ("add", (OK, OK), dict(alpha=None), TypeError, "alpha must be a number"),
    ("subtract", (OK > 0, OK > 0), {}, TypeError, "not defined for bool and bool"),
    ("divide", (SWAPPED, OK), {}, TypeError, "self is byte-swapped"),
    ("maximum", (OK, "x"), {}, TypeError, "other must be an array or a Python number, not a str"),
    ("sum_to", (OK, (3,)), {}, ValueError, r"\(2, 2\) cannot be summed to the shape \(3,\)"),
    ("sum_to", (OK, 2), {}, TypeError, "size must be a sequence of ints, not 2"),
    ("sum_to", (OBJECT, ()), {}, TypeError, "dtype object"),
    ("sum_to", (np.ones((2, 3), bool), (3,)), {}, TypeError, "dtype bool"),
]


@pytest.mark.parametrize(
    ("name", "args", "keywords", "kind", "words"), BAD, ids=lambda v: v if isinstance(v, str) else ""
)
def test_bad_input_is_one_clear_error(name, args, keywords, kind, words):
    function, out = getattr(nb, name), np.full((2, 2), np.nan)
    if name in ("add", "mm", "addmm"):  # the fast path is in place before it is tried with what it must refuse
        function(*[OK] * len(args))
    for call in (lambda: function(*args, **keywords), lambda: function(*args, **keywords, out=out)):
        with pytest.raises(kind, match=f"^{name}: .*{words}"):
            call()
    assert np.isnan(out).all()


OUTS = [
    (np.full((2, 3), np.nan), "never resized"),
    (np.full((2,), np.nan), "never resized"),
    (np.full((1, 2, 2), np.nan), "never resized"),
    (read_only(np.full((2, 2), np.nan)), "read-only"),
    (np.zeros((2, 2), np.int32), "int32"),
    (np.full((2, 2), np.nan).astype(SWAPPED.dtype), "float64"),
    (shared((2, 2), (0, 8)), "share memory"),
    (shared((2, 2), (8, 8)), "share memory"),
]


@pytest.mark.parametrize(("out", "words"), OUTS, ids=[words for _, words in OUTS])
@pytest.mark.parametrize("name", ["addmm", "mm", *BINARY])
def test_outs_that_cannot_be_written(name, out, words):
    function, before = getattr(nb, name), out.tobytes()
    args = [OK] * (3 if name == "addmm" else 2)
    function(*args)
    with pytest.raises(OutError, match=f"^{name}: .*{words}"):
        function(*args, out=out)
    assert out.tobytes() == before


def test_the_gemm_family_casts_nothing():
    for name, args in (("mm", (OK, OK)), ("addmm", (OK, OK, OK))):
        with pytest.raises(TypeError, match="the result is float64, which has another dtype than out: float32"):
            getattr(nb, name)(*args, out=np.zeros((2, 2), np.float32))


def test_element_wise_results_are_cast_into_out():
    for name in BINARY:
        x, y = draw(3, 4), draw(4)
        out = np.zeros((3, 4), np.float32)
        assert getattr(nb, name)(x, y, out=out) is out
        assert np.array_equal(out, getattr(np, name)(x, y).astype(np.float32))
    small = np.array([100, 100], np.int8)
    assert nb.add_(small, np.array([1000, 1], np.int32)) is small
    assert np.array_equal(small, np.array([1100, 101], np.int32).astype(np.int8))


def test_in_place_never_expands():
    for call in (
        lambda x: nb.addmm_(x, OK, OK),
        lambda x: nb.add_(x, OK),
        lambda x: nb.mm_(x[None], np.ones((2, 3))),
    ):
        x = np.ones(2)
        with pytest.raises(OutError, match="the in-place form never expands self"):
            call(x)
        assert np.array_equal(x, [1, 1])


def test_gradients_run_through_the_library():
    """The three products of a linear layer, from row-major arrays."""
    x, w, grad = draw(7, 5), draw(3, 5), draw(7, 3)
    _, dx, dw = nb.addmm.op.gradient(grad, np.zeros(3), x, w.T)
    np.testing.assert_allclose(dx, grad @ w, rtol=1e-13)
    np.testing.assert_allclose(dw, x.T @ grad, rtol=1e-13)
    assert dw.T.flags.c_contiguous, "the gradient of a transposed weight is transposed as well"


def test_a_user_defines_an_op():
    """From the public names alone."""

    def meta(self, by):
        return MetaArray(self.shape, self.dtype)

    def kernel(out, self, by):
        nb.multiply(self, by, out=out)

    text = "scaled(Tensor self, Scalar by) -> Tensor"
    with nb.define(text, structured=meta, dispatch={"CPU": kernel}) as op:
        assert np.array_equal(op.function(OK, 3), OK * 3)
        with nb.register("scaled", "CPU", lambda out, self, by: out.fill(by), override=True):
            assert np.array_equal(op.function(OK, 3), np.full((2, 2), 3))
        assert np.array_equal(op.function(OK, 3), OK * 3)
    with nb.define(text, structured=meta, dispatch={"CPU": kernel}):
        pass


def test_a_registered_kernel_takes_over_and_gives_back():
    expected = nb.mm(OK, OK)
    with nb.register(nb.mm, "CPU", lambda out, self, mat2, mode, conj, tiles: out.fill(7), override=True):
        assert np.array_equal(nb.mm(OK, OK), np.full((2, 2), 7))
        assert "test_public_functions" in str(nb.mm.table())
    assert np.array_equal(nb.mm(OK, OK), expected)


def test_importing_imports_no_compiler():
    python("import nbkernels, sys; assert not {'numba', 'torch', 'cupy', 'llvmlite'} & set(sys.modules)")
