"""nbkernels.asarray: operators and ufuncs give NumPy's results, by the library's kernels where it has one."""

import copy
import operator
import pickle

import numpy as np
import pytest

import nbkernels as nb
from nbkernels import array
from nbkernels.dtypes import COMPARISONS
from nbkernels.operations import BINARY
from tests.compare import outcome

OPERATORS = [getattr(operator, name) for name in
             "add sub mul truediv floordiv mod pow matmul lt ge eq ne".split()]  # fmt: skip
PLAIN = np.array([[1.0, 2.0], [3.0, 4.5]])


@pytest.fixture
def ran(monkeypatch):
    """The names of the library's functions that gave a result."""
    names = []

    def noted(function):
        def call(*args, **keywords):
            result = function(*args, **keywords)
            names.append(function.__name__)
            return result

        for method in array.METHODS:
            if hasattr(function, method):
                setattr(call, method, getattr(function, method))
        return call

    monkeypatch.setattr(array, "FUNCTIONS", {ufunc: noted(function) for ufunc, function in array.FUNCTIONS.items()})
    return names


def same(found, expected):
    assert type(found) is (array.Array if isinstance(expected, np.ndarray) else type(expected))
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(np.asarray(found), expected, rtol=4.5e-16)  # pow's 2 ulp


def pairs_of(function):
    """Operands of an operator as arrays that run here, and the same as NumPy's."""
    x, y = nb.asarray(PLAIN), PLAIN[::-1]
    yield from [((x, y), (PLAIN, y)), ((y, x), (y, PLAIN)), ((x, nb.asarray(y)), (PLAIN, y))]
    if function is not operator.matmul:
        for number in (3, 3.5, np.float32(3), True):  # NumPy squares for a power of 2
            yield from [((x, number), (PLAIN, number)), ((number, x), (number, PLAIN))]


@pytest.mark.sampled
@pytest.mark.parametrize("function", OPERATORS, ids=lambda f: f.__name__)
def test_operators_run_here(ran, function):
    """Where somebody watches by the ufuncs, else by compiled code; a second time by what the first has learnt."""
    for given, plain in pairs_of(function):
        with nb.watch() as log:
            same(function(*given), function(*plain))
        assert [call.where for call in log] == ["nbkernels"]
    assert len(ran) == (3 if function is operator.matmul else 11)
    for _ in range(2):
        for given, plain in pairs_of(function):
            same(function(*given), function(*plain))


AT_ONCE = [f for f in OPERATORS if f not in (operator.pow, operator.mod, operator.floordiv)]


@pytest.mark.sampled
@pytest.mark.parametrize("function", AT_ONCE, ids=lambda f: f.__name__)
def test_operators_are_calls_of_compiled_code(function, monkeypatch):
    """No ufunc is asked, of dtypes that were met; and what it would do is done, for other kinds of operands as well."""
    calls = [given for given, _ in pairs_of(function) if not isinstance(given[0], np.generic | bool)]
    calls = [given for given in calls if not isinstance(given[1], np.generic | bool)]
    for given in calls * 2:
        function(*given)
    x = nb.asarray(PLAIN)
    others = [nb.asarray(np.ones((2, 2), "i4")), nb.asarray(np.ones((2, 2), "c8")), np.ones((2, 2, 2)), PLAIN.T[::-1]]
    for other in others:
        same(function(x, other), function(PLAIN, np.asarray(other)))
        same(function(other, x), function(np.asarray(other), PLAIN))
    monkeypatch.setattr(array.Array, "__array_ufunc__", None)
    for given in calls:
        assert type(function(*given)) is array.Array


def test_operators_ask_numpy_where_they_have_to():
    x = nb.asarray(PLAIN.copy())
    with np.errstate(divide="raise"), pytest.raises(FloatingPointError):
        x / np.zeros(2)
    with nb.watch() as log:
        x + x
    assert [call.name for call in log] == ["add"]
    assert (x == None).tolist() == [[False] * 2] * 2  # noqa: E711
    for call in (lambda: x + np.ones(3), lambda: x @ np.ones(3), lambda: x @ 2, lambda: x < np.ones(5)):
        with pytest.raises(ValueError, match=r"matmul|broadcast"):
            call()
    with pytest.raises(TypeError):
        x + object()
    assert type(x[0, 0] + x) is array.Array
    small = nb.asarray(np.array([100], "i1"))
    with pytest.raises(OverflowError):
        small + 300
    assert (small + small).tolist() == [-56]
    x += 1
    x /= np.array([2.0, 4.0])
    same(x, (PLAIN + 1) / [2.0, 4.0])
    y = nb.asarray(np.arange(6))
    y[1:] += y[:-1]
    assert y.tolist() == [0, 1, 3, 5, 7, 9]
    with pytest.raises(ValueError, match="read-only"):
        nb.asarray(np.broadcast_to(1, 6)).__iadd__(1)


def test_operators_run_what_was_registered():
    """A kernel that somebody puts in the place of the library's is asked by operators, too."""
    x = nb.asarray(PLAIN)
    x + x
    asked = []

    def mine(out, self, other, alpha, where, casting, dtype):
        asked.append(1)
        np.add(self, other, out=out)

    with nb.register("add", "CPU", mine, override=True):
        same(x + x, PLAIN + PLAIN)
    assert asked == [1]
    same(x + x, PLAIN + PLAIN)
    assert asked == [1]


def test_out_and_in_place_are_the_very_object(ran):
    x, plain = nb.asarray(PLAIN.copy()), np.zeros((2, 2))
    assert np.add(x, x, out=plain) is plain
    np.testing.assert_array_equal(plain, 2 * PLAIN)
    assert np.add(x, 1, out=x) is x
    before = x
    x *= 2
    assert x is before
    np.testing.assert_array_equal(np.asarray(x), 2 * (PLAIN + 1))
    assert ran == ["add", "add", "multiply"]
    whole = nb.asarray(np.arange(4))
    with pytest.raises(TypeError, match="same_kind"):
        whole += 0.5
    assert whole.tolist() == [0, 1, 2, 3]


def test_methods_of_ufuncs():
    x, counts = nb.asarray(PLAIN), nb.asarray(np.zeros(3))
    same(np.add.reduce(x, axis=1), np.add.reduce(PLAIN, axis=1))
    same(np.maximum.reduce(x, axis=None), np.maximum.reduce(PLAIN, axis=None))
    same(np.add.accumulate(x, 1), np.add.accumulate(PLAIN, 1))
    same(np.subtract.outer(x[0], x[1]), np.subtract.outer(PLAIN[0], PLAIN[1]))
    same(x.sum(), PLAIN.sum())
    np.add.at(counts, [0, 0, 2], 1)
    assert counts.tolist() == [2, 0, 1]


def test_the_rest_is_numpys(ran):
    x = nb.asarray(PLAIN)
    same(np.spacing(x), np.spacing(PLAIN))
    same(np.concatenate([x, x]), np.concatenate([PLAIN, PLAIN]))
    same(x + [1, 2], PLAIN + [1, 2])
    same(x.astype(np.longdouble) + 1, PLAIN.astype(np.longdouble) + 1)
    assert (nb.asarray([1, 2], object) + 1).tolist() == [2, 3]
    quotient, remainder = np.divmod(x, 2)
    same(quotient, PLAIN // 2)
    same(remainder, PLAIN % 2)
    into = np.empty((2, 2))
    fraction, exponent = np.frexp(x, out=(into, None))
    assert fraction is into
    same(exponent, np.frexp(PLAIN)[1])
    assert ran == []
    same(np.add(x[0], 1, out=nb.asarray(np.zeros((3, 2)))), np.tile(PLAIN[0] + 1, (3, 1)))  # a larger out


def test_masked_operands_are_refused():
    x, masked = nb.asarray(PLAIN.copy()), np.ma.array(PLAIN, mask=[[1, 0], [0, 0]])
    calls = [
        lambda: x + masked, lambda: masked @ x, lambda: x @ masked, lambda: np.dot(x, masked),
        lambda: np.sqrt(x, out=masked), lambda: np.concatenate([x, masked]), lambda: np.where(x, masked, x),
        lambda: np.add.reduce(x, out=masked), lambda: np.einsum("ij,jk", x, masked), lambda: x.__iadd__(masked),
        lambda: x < masked,
    ]  # fmt: skip
    for call in calls:
        with pytest.raises(TypeError, match="a masked array, whose mask would be lost"):
            call()
    np.testing.assert_array_equal(x, PLAIN)
    assert (masked + x).mask.tolist() == masked.mask.tolist()  # by np.ma, which keeps the mask


def test_functions_run_here():
    x, y = nb.asarray(PLAIN), PLAIN[::-1]
    with nb.watch() as log:
        same(np.dot(x, y), PLAIN.dot(y))
        same(np.dot(y, x), y.dot(PLAIN))
        same(np.inner(x, y), np.inner(PLAIN, y))
        same(np.tensordot(x, y, 1), PLAIN.dot(y))
        same(np.einsum("ij,kj->ik", x, y), PLAIN.dot(y.T))
        same(np.linalg.multi_dot([x, y, x]), PLAIN.dot(y).dot(PLAIN))
        same(np.vecdot(x, y), np.vecdot(PLAIN, y))
        same(np.where(y > 2, x, 0), np.where(y > 2, PLAIN, 0))
        same(np.clip(x, 1.5, y), np.clip(PLAIN, 1.5, y))
        same(x.clip(None, 2), PLAIN.clip(None, 2))
        same(x.mean(), PLAIN.mean())
        same(np.mean(x, axis=0), PLAIN.mean(axis=0))
        same(np.dot(x, 2), PLAIN * 2)
        same(np.var(x, axis=1), PLAIN.var(axis=1))
        same(x.astype("f4").std(), PLAIN.astype("f4").std())
    assert log.fallbacks == []
    into = nb.asarray(np.zeros((2, 2)))
    assert np.dot(x, y, into) is into
    assert np.einsum("ij,jk", x, y, out=into) is into
    assert into.tolist() == PLAIN.dot(y).tolist()


def test_subok_and_axes():
    x, y = nb.asarray(PLAIN), PLAIN[::-1]
    assert type(np.add(x, y, subok=False)) is np.ndarray
    assert type(np.matmul(x, y, subok=False)) is np.ndarray
    assert type(np.cos(x, subok=False)) is np.ndarray
    assert type(np.add(x, y, subok=True)) is array.Array
    with nb.watch() as log:
        same(np.matmul(x, y, axes=[(1, 0), (0, 1), (1, 0)]), (PLAIN.T @ y).T)
        same(np.matmul(x, y, dtype="f8", casting="safe"), PLAIN @ y)
        same(np.add(x, y, subok=True), PLAIN + y)
    assert log.fallbacks == []
    with pytest.raises(TypeError, match="casting rule"):
        np.matmul(x, y, dtype="i4")


@pytest.mark.sampled
@pytest.mark.parametrize("name", COMPARISONS)
@pytest.mark.parametrize("number", [-129, 70000, 1 << 65, 1])
def test_masked_comparisons_with_any_int(name, number):
    """The library's and those that it leaves to NumPy, which would end the process where no element is such an int."""
    ufunc, plain = getattr(np, name), np.array([[0, 1, 2], [3, 1, 65535]], "u2")
    x, mask = nb.asarray(plain), np.array([True, False, True])
    for pair, plainly in (((x, number), (plain, number)), ((number, x), (number, plain))):
        expected = ufunc(*plainly)
        for where in (mask, mask.tolist(), np.zeros((2, 1), bool)):
            wanted = np.where(where, expected, True)
            for keywords in ({}, {"subok": True}, {"casting": "no"}, {"order": "F", "subok": False}):
                out = np.ones((2, 3), bool)
                assert ufunc(*pair, where=where, out=out, **keywords) is out
                same(nb.asarray(out), wanted)
                found = ufunc(*pair, where=where, **keywords)
                same(np.where(where, found, True).view(array.Array), wanted)
        with pytest.raises(TypeError):
            ufunc(*pair, where=np.array([0, 1, 1]), out=out)
        with pytest.raises(ValueError):
            ufunc(*pair, where=[True, False], out=out, subok=True)


def test_sums_under_a_mask_of_permuted_arrays():
    x = np.arange(24.0).reshape(2, 4, 3).transpose(0, 2, 1)
    for axis in (0, 1, 2, (0, 2), None):
        same(nb.asarray(x).sum(axis, where=x % 3 > 0), x.sum(axis, where=x % 3 > 0))


FOLDS = [op for op in BINARY if isinstance(getattr(np, op, None), np.ufunc)]


@pytest.mark.sampled
@pytest.mark.parametrize("op", FOLDS)
def test_folds_of_nothing(op):
    """Without elements, without chosen ones, with initial=None, which takes away the identity: NumPy's results and
    errors."""
    for shape in ((0, 3), (2, 3)):
        x = np.ones(shape, "i8" if op.startswith(("bitwise", "gcd", "lcm")) else "f8")
        for mask in ({}, {"where": False}, {"where": x == 0}, {"where": x == 1}):
            for initial in ({}, {"initial": None}, {"initial": 1}):
                expected = outcome(getattr(np, op).reduce, x, **mask, **initial)
                found = outcome(getattr(np, op).reduce, nb.asarray(x), **mask, **initial)
                if isinstance(expected, type):
                    assert found is expected
                else:
                    same(found, expected)
    for method in ("sum", "prod"):
        with pytest.raises(ValueError, match="no identity"):
            getattr(nb.asarray(np.ones((0, 3))), method)(axis=0, initial=None)


def test_asarray_copies_nothing_and_survives_pickle():
    x = nb.asarray(PLAIN)
    assert np.shares_memory(x, PLAIN)
    assert np.shares_memory(nb.asarray(x), x)
    assert nb.asarray(PLAIN, "f4").dtype == np.float32
    for other in (pickle.loads(pickle.dumps(x)), copy.deepcopy(x), x.copy(), x.T, x[0], nb.mm(x, x), nb.add(x, x)):
        assert type(other) is array.Array
    read_only = nb.asarray(np.broadcast_to(1.0, 3))
    with pytest.raises(ValueError, match="read-only"):
        read_only += 1


def test_operations_that_are_methods():
    """Those of the table with the variant "method", as long as they are there; ndarray's own come first."""
    x = nb.asarray(PLAIN.copy())

    def like(self, *args):
        return nb.meta(self.shape, self.dtype)

    def kernel(out, self, by):
        np.multiply(self, by, out=out)

    declared = dict(structured=like, dispatch={"CPU": kernel})
    with nb.define("scaled(Tensor self, Scalar by) -> Tensor", variants="function, method", **declared) as op:
        found = x.scaled(2)
        assert type(found) is array.Array
        assert found.tolist() == (PLAIN * 2).tolist()
        assert x.scaled_(by=3) is x
        assert x.tolist() == (PLAIN * 3).tolist()
        assert not hasattr(PLAIN, "scaled")
        assert x.scaled.__func__ is op.function
    with nb.define("sum(Tensor self, Scalar by) -> Tensor", variants="method", **declared):
        assert x.sum() == PLAIN.sum() * 3
    with (
        nb.define("scaled(Tensor self, Scalar by) -> Tensor", variants="function", **declared),
        pytest.raises(AttributeError, match="'Array' object has no attribute 'scaled'"),
    ):
        x.scaled  # noqa: B018


# -- faults of numbers ------------------------------------------------------------------------------------------------

FAULTS = {
    "divide": (np.divide, [1.0], [0.0]),
    "invalid": (np.subtract, [np.inf], [np.inf]),
    "over": (np.multiply, [1e300], [1e300]),
    "under": (np.multiply, [1e-300], [1e-300]),
}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("dtype", ["f4", "f8", "c16"])
def test_errstate_holds(fault, dtype, capfd):
    """As NumPy's, for operators, out=, products and folds, in each of its modes."""
    ufunc, x, y = FAULTS[fault]
    with np.errstate(all="ignore"):
        x, y = np.array(x, dtype), np.array(y, dtype)
        if dtype == "f4":
            x, y = (np.clip(z, *[np.finfo("f4").max * s for s in (-1, 1)]) if fault == "over" else z for z in (x, y))
            x, y = (z + np.float32(1e-30) if fault == "under" else z for z in (x, y))
    asked = []
    for left, right in ((nb.asarray(x), y), (x, nb.asarray(y)), (nb.asarray(x), nb.asarray(y))):
        with np.errstate(**{"all": "ignore", fault: "raise"}):
            for call in (lambda a, b: ufunc(a, b), lambda a, b: ufunc(a, b, out=nb.asarray(np.empty(1, dtype)))):
                with pytest.raises(FloatingPointError, match=fault):
                    call(left, right)
        with np.errstate(**{"all": "ignore", fault: "call"}, call=lambda *args: asked.append(args)):
            ufunc(left, right)
        with np.errstate(**{"all": "ignore", fault: "print"}):
            ufunc(left, right)
    assert len(asked) == 3
    assert capfd.readouterr().err.count("Warning") == 3


def test_errstate_holds_in_place_for_folds_and_for_products():
    x, big = nb.asarray([1.0]), nb.asarray([1e308, 1e308])
    with np.errstate(all="raise"):
        with pytest.raises(FloatingPointError):
            x /= 0
        with pytest.raises(FloatingPointError):
            big.sum()
        with pytest.raises(FloatingPointError):
            np.add.accumulate(big)
        with pytest.raises(FloatingPointError):
            big[:, None] @ big[None]
        with pytest.raises(FloatingPointError):
            nb.asarray([1]) // 0
        np.testing.assert_array_equal(nb.asarray([1.0]) + 1, [2.0])


def test_masked_arrays_are_refused():
    masked = np.ma.array(PLAIN, mask=[[1, 0], [0, 0]])
    for x in (masked, masked[0], [masked, masked], [[1.0], (masked[0],)], np.ma.masked):
        with pytest.raises(TypeError, match=r"asarray: a masked array.*x.filled\(value\)"):
            nb.asarray(x)
    assert nb.asarray(masked.data).tolist() == PLAIN.tolist()
