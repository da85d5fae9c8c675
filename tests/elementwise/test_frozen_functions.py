"""elementwise, fuse and epilogues compute with what their functions read now; what raises does so before a write."""

import cmath
import math
import types

import numpy as np
import pytest

import nbkernels as nb
from nbkernels.frozen import Frozen
from tests.processes import python

X = np.array([0.0, 1.0, 2.0])
K, TABLE, PAIR = 1.0, np.arange(3.0), (1.0, 2.0)
MODULE = types.ModuleType("settings")
MODULE.k, MODULE.inner = 1.0, types.ModuleType("inner")
MODULE.inner.k = 1.0


def helper(x):
    return x * K


def other(x):
    return x - 5


def closed(k):
    def function(x):
        return x + k

    def change(value):
        nonlocal k
        k = value

    return function, change


def set_global(name):
    return lambda value: globals().__setitem__(name, value)


CLOSED, change_closed = closed(1.0)
# A function, how to change what it reads, and two values.
CHANGES = {
    "global": (lambda x: x + K, set_global("K"), 1.0, 2.0),
    "global of a helper": (lambda x: helper(x) + 1, set_global("K"), 1.0, 2.0),
    "helper": (lambda x: helper(x) + 1, set_global("helper"), helper, other),
    "code of a helper": (lambda x: other(x), lambda code: setattr(other, "__code__", code), other.__code__,
                         (lambda x: x * 7).__code__),
    "cell": (CLOSED, change_closed, 1.0, 2.0),
    "kind": (lambda x: x + K, set_global("K"), 1.0, 1j),
    "sign of zero": (lambda x: math.copysign(x, K), set_global("K"), 0.0, -0.0),
    "module": (lambda x: x + MODULE.k, lambda value: setattr(MODULE, "k", value), 1.0, 2.0),
    "module in a module": (lambda x: x + MODULE.inner.k, lambda v: setattr(MODULE.inner, "k", v), 1.0, 2.0),
    "function of a module": (lambda x: MODULE.k(x), lambda v: setattr(MODULE, "k", v), helper, other),
    "elements": (lambda x: TABLE[int(x)], lambda value: TABLE.__setitem__(1, value), 1.0, 2.0),
    "tuple": (lambda x: x + PAIR[1], set_global("PAIR"), (1.0, 2.0), (1.0, 3.0)),
    "name of a built-in": (lambda x: abs(x), set_global("abs"), abs, other),
}  # fmt: skip


@pytest.fixture(autouse=True)
def as_it_was():
    """What a test changes is put back."""
    kept = K, TABLE.copy(), PAIR, helper, other.__code__, MODULE.k, MODULE.inner.k
    yield
    globals().update(K=kept[0], PAIR=kept[2], helper=kept[3])
    TABLE[:], other.__code__, MODULE.k, MODULE.inner.k = kept[1], *kept[4:]
    globals().pop("abs", None)
    change_closed(1.0)


@pytest.mark.parametrize("case", CHANGES)
def test_what_changed_is_seen(case):
    """By each form, in each way a call goes: first, planned, recalled, with out, on Meta; what was is seen again."""
    function, change, *values = CHANGES[case]
    operation = nb.elementwise(function)
    for value in (*values, *values):
        change(value)
        expected = np.array([function(x) for x in X])
        for _ in range(3):
            for found in (operation(X), nb.fuse(function, X)):
                np.testing.assert_array_equal(found, expected)
                np.testing.assert_array_equal(np.signbit(found.real), np.signbit(expected.real))
                assert found.dtype == expected.dtype
            np.testing.assert_array_equal(operation(X, out=np.empty_like(expected)), expected)
        assert operation(nb.MetaArray((3,), "f8")).dtype == expected.dtype


def test_lambdas_of_one_code_are_told_apart_by_what_they_close_over():
    found = [nb.fuse(closed(k)[0], np.arange(2)) for k in (1, 1.0, True, 1 + 0j, 1)]
    assert [x.dtype.name for x in found] == ["int64", "float64", "int64", "complex128", "int64"]
    table = np.zeros(2)
    for value in (1.0, 2.0):
        table[:] = value
        assert nb.fuse(lambda x: table[0] + x, X)[0] == value
    first, change = closed(1.0)
    nb.fuse(first, X)
    change(5.0)
    assert nb.fuse(closed(1.0)[0], X)[0] == 1.0  # the first one's cell is another
    assert nb.fuse(first, X)[0] == 5.0


def test_epilogues_see_it_as_well():
    global K
    capped = nb.epilogue(lambda v: v * K)
    for K in (2.0, 3.0):
        np.testing.assert_array_equal(capped(np.zeros(2), np.eye(2), np.eye(2)), np.eye(2) * K)


def test_a_function_that_reads_nothing_new_is_not_compiled_anew():
    global K
    operation = nb.elementwise(lambda x: x + K)
    operation(X)
    version = operation.version()
    K = float("1.0")  # another object
    assert operation.version() is version
    K = 2.0
    assert operation.version() is not version
    K = 1.0
    assert operation.version() is version
    assert Frozen(helper).key == Frozen(helper).key


def test_another_process_does_not_find_the_old_code():
    """Values of modules, and of globals whose order changed, are part of a file's name."""
    source = """
import types, numpy as np, nbkernels as nb
{order}
m = types.ModuleType("m"); m.k = {k}
assert nb.fuse(lambda x: x * a - b + m.k, np.full(2, 10.0)).tolist() == [10 * a - b + m.k] * 2
"""
    for order, k in (("a = 1.0; b = 2.0", 1.0), ("a = 1.0; b = 2.0", 5.0), ("b = 1.0; a = 2.0", 1.0)):
        python(source.format(order=order, k=k))


# -- what cannot be compiled, and what raises --------------------------------------------------------------------------

LIST, MAPPING, SET, BIG = [1.0], {1: 1.0}, {1}, np.zeros(200_000)


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda x: x + LIST[0], "it reads a list, which is no constant"),
        (lambda x: x + len(LIST), "it reads a list"),
        (lambda x: x + MAPPING[1], "it reads a dict"),
        (lambda x: x + len(SET), "it reads a set"),
        (lambda x: x + BIG[0], "it reads an array of 1600000 bytes"),
        (lambda x: x + nowhere, "'nowhere' is not defined"),  # noqa: F821
    ],
)
def test_what_no_constant_can_be(function, words):
    for call in (lambda: nb.fuse(function, X), lambda: nb.elementwise(function)(X)):
        with pytest.raises(TypeError, match=rf"\(x: float64\) does not compile: .*{words}"):
            call()


def test_a_list_in_a_closure_and_a_name_without_value():
    held = [1.0]
    with pytest.raises(TypeError, match="does not compile: it reads a list"):
        nb.fuse(lambda x: x + held[0], X)
    with pytest.raises(NameError, match="reads 'later', which has no value yet"):
        nb.fuse(lambda x: x + later, X)
    later = 1.0
    assert nb.fuse(lambda x: x + later, X)[0] == 1.0


def picky(x):
    if x > 1:
        raise ValueError(f"no {x}")
    return x


RAISING = {
    "array": (lambda x: TABLE[int(x * 1e6)], IndexError),
    "array of a helper": (lambda x: at(x), IndexError),
    "tuple": (lambda x: PAIR[int(x)], IndexError),
    "raise of a helper": (lambda x: picky(x), ValueError),
    "step": (lambda x: steps(x), ValueError),
}


def at(x):
    return TABLE[int(x) * 1000]


def steps(x):
    found = 0.0
    for i in range(0, 3, int(x)):
        found += i
    return found


@pytest.mark.parametrize("case", RAISING)
@pytest.mark.parametrize("size", [3, 100_000])
def test_an_element_that_raises_raises_and_nothing_is_written(case, size, capfd):
    function, error = RAISING[case]
    operation = nb.elementwise(function)
    x = np.full(size, 1.0 if case == "step" else 0.0)
    x[size // 2] = 2.0 if case != "step" else 0.0
    out, mask = np.full(size, 7.0), np.ones(size, bool)
    mask[size // 2] = False
    for _ in range(2):
        with pytest.raises(error):
            operation(x, out=out)
        assert (out == 7).all()
    expected = [function(v) if m else 7.0 for v, m in zip(x, mask)]
    np.testing.assert_array_equal(operation(x, out=out, where=mask), expected)
    assert capfd.readouterr().err == ""


def test_what_numba_raises_and_numpy_does_not():
    """A division by 0 gives what NumPy's does, in place as well."""
    x = np.array([0.0, 2.0, 0.0])
    np.testing.assert_array_equal(nb.fuse(lambda x: x**-1, x), [np.inf, 0.5, np.inf])
    powers = nb.fuse(lambda x, n: (x**n, n), x, np.array([-1, 2, 0]))
    np.testing.assert_array_equal(powers[0], [np.inf, 4.0, 1.0])
    z = x + 0j
    nb.fuse(lambda z: z / z, z, out=z)
    np.testing.assert_array_equal(np.isnan(z.real), [True, False, True])
    assert z[1] == 1


ROOTS = {
    "np.sqrt": (lambda z: np.sqrt(z), np.sqrt),
    "cmath.sqrt": (lambda z: cmath.sqrt(z), np.sqrt),
    "cmath.asin": (lambda z: cmath.asin(z), np.arcsin),
    "cmath.acos": (lambda z: cmath.acos(z), np.arccos),
    "cmath.acosh": (lambda z: cmath.acosh(z), np.arccosh),
    "cmath.asinh of a helper": (lambda z: asinh(z), np.arcsinh),
    "quotient": (lambda z: 1 / np.sqrt(z), lambda z: 1 / np.sqrt(z)),
}


def asinh(z):
    return cmath.asinh(z)


@pytest.mark.sampled
@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # NumPy's, of infinities
@pytest.mark.parametrize("case", ROOTS)
@pytest.mark.parametrize("dtype", ["c8", "c16"])
def test_square_roots_of_subnormal_numbers_in_a_users_function(case, dtype, capfd):
    """Numba's own divides by what has underflowed."""
    function, reference = ROOTS[case]
    tiny = np.array([5e-324j, 1.5e-323j, -5e-324, 4, 1 + 5e-324j, 1e-310 - 1e-320j, 9]).astype(dtype)
    wide = reference(tiny.astype(np.clongdouble if dtype == "c16" else "c16"))
    for made in (nb.elementwise(lambda z: function(z)), lambda *args, **words: nb.fuse(function, *args, **words)):
        out = np.full((len(tiny), 2), 77, dtype)[:, 0]
        made(tiny, out=out)
        fine = np.isfinite(tiny) & np.isfinite(wide.astype(dtype))
        size = np.spacing(np.abs(wide[fine]).astype(out.real.dtype))
        assert np.all(np.abs(out[fine] - wide[fine]) <= 8 * size), (out, wide)
        assert not (out == 77).any()
    assert capfd.readouterr().err == ""


def test_what_divides_by_a_root_of_0():
    """As what divides by 0: the two parts over 0."""
    for function in (lambda v: 1 / v, lambda v: 1 / cmath.sqrt(v)):
        found = nb.elementwise(function)(np.array([0, 4j - 4j, 1]))
        assert np.isinf(found.real[:2]).all()
        assert np.isnan(found.imag[:2]).all()
        assert found[2] == 1


def test_the_smallest_exponent_is_refused_and_nothing_is_written(capfd):
    """Numba raises for it, whatever it is a power of."""
    out = np.full(3, 7)
    power = nb.elementwise(lambda x, n: x**n)
    with pytest.raises(ValueError, match="negative integer powers"):
        power(np.array([2, 3, 4]), np.array([1, -(2**63), 2]), out=out)
    assert (out == 7).all()
    np.testing.assert_array_equal(power(np.array([2, 3, 4]), np.array([1, 3, 2]), out=out), [2, 27, 16])
    assert capfd.readouterr().err == ""


def test_epilogues_raise_before_out_is_written():
    scaled = nb.epilogue(lambda v, i: v * TABLE[int(i)])
    a, out = np.eye(2), np.full((2, 2), 7.0)
    np.testing.assert_array_equal(scaled(np.zeros(2), a, a, np.array([1, 2]), out=out), [[1, 0], [0, 2]])
    out[:] = 7
    with pytest.raises(IndexError):
        scaled(np.zeros(2), a, a, np.array([1, 5000]), out=out)
    assert (out == 7).all()
