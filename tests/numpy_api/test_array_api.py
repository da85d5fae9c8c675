"""The array API's functions by name, its namespace, and torch's words for axes."""

import inspect
import json

import numpy as np
import pytest

import nbkernels as nb
from nbkernels import array_api as xp
from nbkernels.dispatch import ArgumentError
from tests import array_api_suite


def numbers(*shape, dtype="float32"):
    x = np.random.default_rng(3).standard_normal(shape) * 3
    return (x + 1j if np.dtype(dtype).kind == "c" else x).astype(dtype)


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8", "complex64", "bool"])
@pytest.mark.parametrize("axis", [None, 0, (0, 2), -1])
def test_mean_and_var(dtype, axis):
    x = numbers(3, 4, 5, dtype=dtype)
    for name in ("mean", "var", "std"):
        got, want = (getattr(library, name)(x, axis=axis, keepdims=axis == 0) for library in (nb, np))
        assert (got.shape, got.dtype) == (want.shape, want.dtype)
        assert np.allclose(got, want, rtol=2e-3 if dtype == "float16" else 1e-5)
    assert np.allclose(nb.var(x, axis, correction=1), np.var(x, axis, correction=1), rtol=2e-3)
    assert np.array_equal(nb.std(x, axis, ddof=2), nb.std(x, axis, correction=2))


def test_mean_of_halves_that_overflow_as_a_sum():
    x = np.full(4000, 100, np.float16)
    assert nb.mean(x) == np.float16(100)
    assert nb.mean(x, dtype="float64").dtype == np.float64
    assert nb.var(x) == 0


def test_the_correction_has_two_words():
    assert nb.var(np.array([1.0, 3.0]), ddof=1) == 2
    assert nb.std(np.array([1.0, 3.0]), ddof=0, correction=1) == np.sqrt(2)
    with pytest.raises(ValueError, match="ddof=2 and correction=1: give one"):
        nb.var(np.ones(3), ddof=2, correction=1)


def test_means_of_nothing():
    assert np.isnan(nb.mean(np.empty(0)))
    assert np.isnan(nb.var(np.ones(1), correction=1))
    assert nb.mean(np.empty((0, 2)), 1).shape == (0,)


def test_clip_and_where():
    x = np.array([-3.0, np.nan, 0.5, 7.0])
    for bounds in ((0, 1), (None, 1), (0, None), (np.array([0, 0, 0, 8.0]), 1)):
        assert np.array_equal(nb.clip(x, *bounds), np.clip(x, *bounds), equal_nan=True)
    assert np.array_equal(nb.clip(x), x, equal_nan=True)
    out = np.empty(4)
    assert nb.clip(x, 0, 1, out=out) is out
    i = np.arange(-3, 3, dtype=np.int8)
    assert nb.clip(i, -1, 1).dtype == np.int8
    for both in ((x, 0), (0, x), (x[:, None], x), (i[:4], np.float32(2)), (True, i[:4])):
        got, want = nb.where(x > 0, *both), np.where(x > 0, *both)
        assert got.dtype == want.dtype
        assert np.array_equal(got, want, equal_nan=True)
    assert np.array_equal(nb.where(i, 1.5, 2), np.where(i, 1.5, 2))
    with pytest.raises(OverflowError, match="300"):
        nb.where(i > 0, i, 300)


def test_products():
    a, b = numbers(2, 3, 4), numbers(4, 3, 5)
    assert np.allclose(nb.tensordot(a, b, axes=((1, 2), (1, 0))), np.tensordot(a, b, ((1, 2), (1, 0))), rtol=1e-5)
    assert np.allclose(nb.einsum("aij,jik->ak", a, b), np.einsum("aij,jik->ak", a, b), rtol=1e-5)
    c = numbers(3, 4, dtype="complex64")
    assert np.allclose(nb.vecdot(c, c[0]), (c.conj() * c[0]).sum(-1))
    for v in (c[0], a[0, 0], np.arange(5), np.ones(0), np.ones(3, "f2")):
        found = nb.vecdot(v, v[::-1])
        assert type(found) is type(nb.vdot(v, v[::-1]))
        assert found.tobytes() == nb.vdot(v, v[::-1]).tobytes()
    assert np.allclose(nb.vecdot(a, a, dim=1), (a * a).sum(1), rtol=1e-5)
    assert np.shares_memory(nb.matrix_transpose(a), a)
    assert np.array_equal(nb.matrix_transpose(a), a.transpose(0, 2, 1))
    ours = nb.asarray(a)
    for result in (nb.tensordot(ours, b, axes=((2,), (0,))), nb.vecdot(ours, a), nb.clip(ours, 0, 1), nb.mean(ours, 0)):
        assert type(result) is type(ours)


@pytest.mark.parametrize(
    ("call", "kind", "said"),
    [
        (lambda x: nb.mean([1.0]), ArgumentError, "mean: x must be an array, not a list"),
        (lambda x: nb.mean(x, dtype=int), TypeError, "mean: dtype must be that of floats .* not int64"),
        (lambda x: nb.mean(x, 7), ValueError, "axis 7 is out of bounds"),
        (lambda x: nb.where(x, x, [1]), ArgumentError, "where: y must be an array, not a list"),
        (lambda x: nb.clip("a", 0, 1), ArgumentError, "clip: x must be an array"),
        (lambda x: nb.matrix_transpose(x[0]), ValueError, "matrix_transpose: x must have two dimensions"),
        (lambda x: nb.vecdot(x, x[:, :1].repeat(2, 1)), ValueError, "vecdot: sizes 3 and 2 do not fit"),
        (lambda x: nb.einsum("ii", x), ValueError, "einsum: it is no einsum of two operands"),
        (lambda x: nb.einsum("ij,ij", x, nb.meta((2, 3), "f4")), ArgumentError, "einsum: arrays of NumPy are taken"),
        (lambda x: nb.mean(x, 1, dim=1), TypeError, "mean: axis=1 and dim=1 are one argument"),
        (lambda x: nb.add.reduce(x, 0, dim=1), TypeError, "add.reduce: axis=0 and dim=1 are one argument"),
        (lambda x: nb.add.accumulate(x, axis=0, dim=0), TypeError, "add.accumulate: axis=0 and dim=0"),
        (lambda x: nb.var(x, keepdims=True, keepdim=True), TypeError, "keepdims=True and keepdim=True"),
    ],
)
def test_what_is_refused(call, kind, said):
    with pytest.raises(kind, match=said):
        call(np.ones((2, 3), np.float32))


def test_torchs_words():
    x = numbers(3, 4, 5)
    assert np.array_equal(nb.add.reduce(x, dim=1, keepdim=True), nb.add.reduce(x, 1, keepdims=True))
    assert np.array_equal(nb.maximum.reduce(x, dim=[0, 2]), x.max((0, 2)))
    assert np.array_equal(nb.add.accumulate(x, dim=2), nb.add.accumulate(x, 2))
    assert np.array_equal(nb.mean(x, dim=(0, 1), keepdim=True), nb.mean(x, (0, 1), keepdims=True))
    assert inspect.signature(nb.add.reduce).parameters["axis"].default == 0
    assert np.array_equal(nb.add.reduce(x), x.sum(0, dtype=np.float32)) or np.allclose(nb.add.reduce(x), x.sum(0))


def test_arrays_of_other_libraries():
    torch = pytest.importorskip("torch", reason="lacks torch")
    x = numbers(3, 4)
    t = torch.tensor(x)
    for name, args in (("clip", (0, 1)), ("mean", (0,)), ("var", (1,)), ("matrix_transpose", ())):
        result = getattr(nb, name)(t, *args)
        assert type(result) is torch.Tensor
        assert np.allclose(result.numpy(), getattr(nb, name)(x, *args), rtol=1e-5)
    assert np.array_equal(nb.where(t > 0, t, 0).numpy(), np.where(x > 0, x, 0))
    with pytest.raises(ArgumentError, match="vecdot: arrays of NumPy are taken, and one is torch's"):
        nb.vecdot(t, t)


def test_graphs_of_dask():
    da = pytest.importorskip("dask.array", reason="lacks dask.array")
    x = numbers(5, 6)
    lazy = da.from_array(x, chunks=2)
    for call in (lambda x: nb.mean(x, 0), lambda x: nb.var(x), lambda x: nb.clip(x, 0, 1), lambda x: nb.where(x, x, 2)):
        assert np.allclose(call(lazy).compute(scheduler="synchronous"), call(x), rtol=1e-5)


# -- the namespace ----------------------------------------------------------------------------------------------------


def test_the_namespace_is_told_by_arrays():
    x = nb.asarray([1.0, 2.0])
    assert x.__array_namespace__() is xp
    assert x.__array_namespace__(api_version="2022.12") is xp
    with pytest.raises(ValueError, match="1999"):
        x.__array_namespace__(api_version="1999.01")
    assert all(hasattr(xp, name) for name in xp.__all__)


def test_what_comes_out_of_it_is_of_its_kind_and_ran_here():
    x = xp.reshape(xp.arange(6, dtype=xp.float32), (2, 3))
    kind = type(nb.asarray(0))
    with nb.watch() as log:
        results = [xp.sum(x), xp.matmul(x, x.T), xp.exp(x), xp.tensordot(x, x), xp.where(x > 1, x, x), xp.vecdot(x, x),
                   xp.clip(x, 1, 2), xp.mean(x, axis=0)]  # fmt: skip
    assert {type(result) for result in results} == {kind}
    assert len(log) >= 7  # mean is operations, which nobody watches
    assert not log.fallbacks
    for result in (xp.zeros(3), xp.linalg.inv(xp.eye(2)), xp.fft.fft(x), *xp.unique_counts(x), xp.concat([x, x])):
        assert type(result) is kind
    assert np.isnan(xp.var(xp.asarray(np.nan)))
    assert type(xp.einsum("ij,kj->ik", x, x)) is kind  # beyond the standard
    assert xp.float16 is np.float16
    with pytest.raises(AttributeError, match="no attribute 'zzz'"):
        _ = xp.zzz
    assert xp.isdtype(xp.float32, "real floating")


@pytest.mark.parametrize(("numpys", "code"), [([False] * 9, 1), ([False, False, True], 0), ([True], 0)])
def test_the_suite_fails_where_a_test_fails_here_alone(numpys, code, monkeypatch, tmp_path, capsys):
    """`numpys` are the outcomes of NumPy's runs, of which some draw at random."""
    draws = iter(numpys + [numpys[-1]] * 30)

    def outcomes(folder, module, *how):
        return {"test_fft": {"test_one": next(draws) if module == "numpy" else True, "test_two": False}}

    monkeypatch.setattr(array_api_suite, "outcomes", outcomes)
    file = tmp_path / "counts.json"
    monkeypatch.setattr("sys.argv", ["suite", str(tmp_path), "--json", str(file)])
    assert array_api_suite.main() == code
    assert ("here alone: ['test_one']" in capsys.readouterr().out) == code
    (row,) = json.loads(file.read_text())["rows"]
    assert (row["tests"], row["ours_failed"]) == (2, ["test_one"])


def test_the_suite_found_nothing_here_alone():
    counts = json.loads((array_api_suite.ROOT / "bench" / "results" / "array-api.json").read_text(encoding="utf-8"))
    assert counts["meta"]["commit"] == array_api_suite.COMMIT
    assert [row["file"] for row in counts["rows"] if array_api_suite.alone(row)] == []
    files = {
        "test_operators_and_elementwise_functions",
        "test_linalg",
        "test_statistical_functions",
        "test_special_cases",
    }
    assert files <= {row["file"] for row in counts["rows"]}


def test_where_of_an_array_and_a_number():
    """It is what a condition of numbers gives, which goes by the general way, and has NumPy's values."""
    condition = np.array([True, False, True])

    def outcome(*arguments):
        try:
            return nb.where(*arguments)
        except (OverflowError, TypeError) as error:
            return type(error), str(error)

    for dtype in ("?", "i1", "u1", "i4", "u8", "f2", "f4", ">f4", "F"):
        array = np.ones(3, dtype)
        for number in (0, -1, 2, 300, 2.5, float("nan"), True, 2j):
            for both in ((array, number), (number, array)):
                found, expected = outcome(condition, *both), outcome(condition.view(np.int8), *both)
                if isinstance(expected, tuple):
                    assert found == expected
                else:
                    assert found.dtype == expected.dtype == np.result_type(*both)
                    np.testing.assert_array_equal(found, expected)
                    np.testing.assert_array_equal(found, np.where(condition, *both))
