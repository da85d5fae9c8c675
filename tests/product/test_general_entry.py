"""Products of every dtype and number of dimensions in one compiled call: against NumPy's, in whole numbers, exactly."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import nbkernels as nb
from nbkernels.cpu.gemm import call, fast, general_entry
from nbkernels.cpu.gemm.kinds import kind_of
from nbkernels.cpu.runtime import workspace

DTYPES = ["bool", *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))]
DTYPES += ["float16", "float32", "float64", "complex64", "complex128"]


@pytest.fixture(autouse=True)
def later_calls(monkeypatch):
    monkeypatch.setattr(nb.first_calls, "CALLS", 0)


def laid_out(draw, x):
    """Lay the numbers out anew: transposed in memory, reversed, every second one, or with a dimension of 1 expanded."""
    way = draw(st.sampled_from(["as it is", "turned", "reversed", "apart", "expanded"]))
    if way == "turned" and x.ndim > 1:
        return x.swapaxes(-1, -2).copy().swapaxes(-1, -2)
    if way == "reversed":
        return np.ascontiguousarray(x[..., ::-1])[..., ::-1]
    if way == "apart":
        return np.repeat(x, 2, axis=-1)[..., ::2]
    if way == "expanded" and x.ndim > 2:
        return np.broadcast_to(x[:1], x.shape)
    return x


@st.composite
def products(draw):
    """(a, b, an out or None) of one dtype, whose batches broadcast."""
    dtype, size = draw(st.sampled_from(DTYPES)), st.integers(1, 9)
    k, batch = draw(size), draw(st.lists(st.integers(1, 3), max_size=3))
    rng = np.random.default_rng(draw(st.integers(0, 99)))

    def operand(*matrix):
        own = tuple(draw(st.sampled_from([n, 1])) for n in batch[draw(st.integers(0, len(batch))) :])
        return laid_out(draw, rng.integers(0, 4, (*own, *matrix)).astype(dtype))

    a = operand(draw(size), k) if draw(st.integers(0, 5)) else laid_out(draw, rng.integers(0, 4, k).astype(dtype))
    b = operand(k, draw(size)) if draw(st.integers(0, 5)) else laid_out(draw, rng.integers(0, 4, k).astype(dtype))
    shape = np.matmul(a, b).shape
    out = None if not shape or draw(st.booleans()) else laid_out(draw, np.full(shape, 77).astype(dtype)).copy("K")
    return a, b, out


@settings(max_examples=300, deadline=None)
@given(products())
def test_are_numpys(given):
    a, b, out = given
    expected = np.matmul(a, b)
    found = nb.matmul(a, b, out=out)
    assert out is None or found is out
    assert np.array_equal(found, expected)
    if a.ndim + b.ndim > 3 or (a.ndim + b.ndim == 3 and a.dtype.name not in ("float32", "float64")):
        assert np.array_equal(fast.general_fast(a, b, None), expected)  # and it is this call that makes them


@pytest.mark.parametrize("dtype", ["int32", "float16", "float32", "complex64"])
@pytest.mark.parametrize("count", [3, 500])
def test_what_is_added(rng, dtype, count):
    """beta and alpha, x of every shape that broadcasts, by one thread and by two."""
    a, b = (rng.integers(-3, 4, (count, *shape)).astype(dtype) for shape in ((5, 17), (17, 6)))
    for shape in ((), (6,), (5, 1), (1, 5, 6), (count, 1, 1), (count, 5, 6)):
        x = rng.integers(-3, 4, shape).astype(dtype)
        for beta, alpha in ((1, 1), (2, -1), (0, 3)):
            for threads in (1, 2):
                with nb.threads(threads):
                    found = nb.baddbmm(x, a, b, beta=beta, alpha=alpha)
                assert np.array_equal(found, beta * x + alpha * np.matmul(a, b))
    own = np.ones((count, 5, 6), dtype)
    assert nb.baddbmm_(own, a, b, beta=2) is own
    assert np.array_equal(own, 2 + np.matmul(a, b))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("m", "n", "k"), [(3, 5, 7), (20, 33, 40), (9, 70, 600), (1, 64, 64), (64, 1, 64), (4, 96, 8), (120, 113, 90)]
)
def test_the_bits_of_mm(rng, m, n, k, dtype):
    """Of floats, whichever kernel takes them, of stacks that lie evenly in memory and of others."""
    a, b, x = (rng.standard_normal(shape).astype(dtype) for shape in ((2, 6, m, k), (2, 6, k, n), (6, m, n)))
    for left, right in ((a, b), (a[:, ::2], b[:, ::2]), (a[:, :3], b[:, :3]), (a[:, ::-1], b[1]), (a[0, 0], b)):
        found, batch = nb.matmul(left, right), np.broadcast_shapes(left.shape[:-2], right.shape[:-2])
        left, right = (np.broadcast_to(y, (*batch, *y.shape[-2:])) for y in (left, right))
        turned = nb.matmul(left, right, out=np.empty((*batch, n, m), dtype).swapaxes(-1, -2))
        for i in np.ndindex(batch):
            assert found[i].tobytes() == nb.mm(left[i], right[i]).tobytes() == turned[i].tobytes()
    for beta, alpha in ((1, 1), (0, -2), (0.5, 3), (2, 0)):
        found = nb.baddbmm(x, a[0], b[0], beta=beta, alpha=alpha)
        for t in range(6):
            assert np.array_equal(found[t], nb.addmm(x[t], a[0, t], b[0, t], beta=beta, alpha=alpha))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "uint16", "int64", "float16", "complex128"])
@pytest.mark.parametrize(
    ("m", "n", "k"), [(1, 47, 47), (47, 1, 47), (47, 48, 48), (48, 48, 48), (49, 48, 48), (1007, 1, 64), (54, 2, 1024)]
)
def test_few_tiles_and_just_more(rng, m, n, k, dtype):
    """Around what goes without loops, by multiply-adds and by the room that panels of A have; X may be broadcast."""
    a, b, x = (rng.integers(0, 3, shape).astype(dtype) for shape in ((m, k), (k, n), (n,)))
    product = (a.astype(np.complex128) @ b.astype(np.complex128)).real.astype(np.int64).astype(dtype)
    for out in (np.empty((m, n), dtype), np.empty((n, m), dtype).T, np.empty((2 * m, n), dtype)[::2]):
        assert (nb.mm(a, b, out=out) == product).all()
        assert (nb.mm(np.asfortranarray(a), np.asfortranarray(b), out=out) == product).all()
        np.testing.assert_array_equal(nb.addmm(x, a, b, out=out), (product + x).astype(dtype))


@pytest.mark.parametrize("dtype", ["int32", "float32", "complex64"])
def test_declines_with_nothing_written(dtype):
    """Wrong and unusual arrays go to the checks, which raise the error or take another way."""
    a, b = np.ones((2, 3, 4), dtype), np.ones((2, 4, 5), dtype)
    out = np.full((2, 3, 5), 7, dtype)
    for left, right, to in (
        (a, b[:, :3], out),
        (a, np.ones((3, 4, 5), dtype), out),
        (a, b, out[:1]),
        (a, b, np.broadcast_to(out[:1], (2, 3, 5))),
        (a, b, np.lib.stride_tricks.as_strided(out, (2, 3, 5), (out.itemsize,) * 3)),
        (a, b, np.full(out.shape, 7, "int16")),
        (a, b[..., :0], out[..., :0]),
        (a, np.ones(b.shape, "int16"), out),
        (np.ones((2, 3, 4), a.dtype.newbyteorder()), b, out),
        (np.array(1, dtype), b, out),
        (out[..., :4], b, out),
    ):
        assert fast.general_fast(left, right, to) is None
        assert (out == 7).all()
    out.flags.writeable = False
    assert fast.general_fast(a, b, out) is None
    assert fast.general_fast(a, b, None, how=call.STRICT) is not None
    assert fast.general_fast(a, b[:1], None, how=call.STRICT) is None
    assert fast.general_fast(a, b, None, how=general_entry.MATRICES) is None
    with pytest.raises(ValueError, match="matmul"):
        nb.matmul(a, b[:, :3])


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("dtype", ["int8", "int32", "uint64", "float16", "complex64"])
def test_large_products_are_one_call_too(dtype, threads, monkeypatch):
    """By all threads, in any layout of the result; none goes by Python's way to the packed path."""
    rng = np.random.default_rng(5)
    a, b, x = (rng.integers(0, 4, shape).astype(dtype) for shape in ((190, 311), (311, 403), (403,)))
    by_python = [nb.mm(a, b), nb.mv(b, x), nb.addmm(x, a, b, beta=2), nb.mm(a, a.T)]
    with monkeypatch.context() as patch, nb.threads(threads):
        patch.setattr("nbkernels.cpu.gemm.gemm.packed", None)
        for out in (None, np.empty((403, 190), dtype).T, np.empty((190, 806), dtype)[:, ::2]):
            assert np.array_equal(nb.mm(a, b, out=out), by_python[0])
        assert np.array_equal(nb.mv(b, x), by_python[1])
        assert np.array_equal(nb.addmm(x, a, b, beta=2), by_python[2])
        if dtype != "complex64":  # a matrix and its transpose: halves, each a product
            assert np.array_equal(nb.mm(a, a.T), by_python[3])
    wide = np.float64 if np.dtype(dtype).kind == "f" else dtype
    assert np.array_equal(by_python[0], np.matmul(a, b, dtype=wide).astype(dtype))


def test_a_large_product_does_not_wait_for_the_workspace():
    """Another thread may have the one that is kept."""
    a = np.ones((600, 600), "int32")
    nb.mm(a, a)
    with workspace.room(1 << 20):
        assert (nb.mm(a, a) == 600).all()
    held, workspace._room[workspace.HELD] = workspace._room[workspace.HELD], workspace.COMPILED
    try:
        assert (nb.mm(a, a) == 600).all()
    finally:
        workspace._room[workspace.HELD] = held


def test_tuned_kinds_go_by_their_tiles(monkeypatch):
    a = np.ones((150, 150), "int32")
    monkeypatch.setattr(general_entry, "tuned", lambda kind, which: which == 3)
    fast.forget()
    try:
        assert fast.general_fast(a, a, None) is None
        assert fast.general_fast(a[:90], a, None) is None
        assert fast.general_fast(a[:9], a, None) is not None
    finally:
        monkeypatch.undo()
        fast.forget()
    assert fast.general_fast(a, a, None) is not None


def test_a_product_keeps_the_plans_that_it_reads():
    """Threads that make the first products at once have one each, of which a cache keeps the last."""
    made = general_entry._made(kind_of("int32", "int32", "int32"), 1, 1, np.dtype("int32"), False)
    call_words, _, plans = made.words
    assert [words[0] for words in plans] == [call_words.plan, call_words.shallow]
    assert all(words[0] == words[1].buffer_info()[0] for words in plans)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int8", "int32", "bool", "complex64"])
def test_what_is_added_has_no_more_dimensions_than_the_product(dtype):
    """Also where those before are of size 1: nothing of them would be left over."""
    a, b, v = np.ones((2, 4), dtype), np.ones((4, 3), dtype), np.ones(4, dtype)
    calls = (
        (nb.addmm, (2, 3), a, b),
        (nb.addmv, (2,), a, v),
        (nb.baddbmm, (5, 2, 3), a[None].repeat(5, 0), b[None].repeat(5, 0)),
    )
    for function, shape, *factors in calls:
        for own in (shape, (1,) * len(shape)):
            out = np.zeros(shape, dtype)
            for _ in range(2):
                with pytest.raises(ValueError, match=rf"{function.__name__}: self \(1, .*\) does not expand to"):
                    function(np.ones((1, *own), dtype), *factors, out=out)
                with pytest.raises(ValueError, match="does not expand to"):
                    function(np.ones((1, *own), dtype), *factors)
            assert not out.any()
