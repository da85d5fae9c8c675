"""Products of every dtype in jitted functions: the bits of the calls from Python, and callers that Numba keeps on disk.

Compiling is what takes the time: each dtype has one caller, of arrays of any strides, that makes all products.
"""

import os
import pickle
import subprocess
import sys
import textwrap

import numba
import numpy as np
import pytest

import nbkernels as nb
import nbkernels.jitted
from nbkernels.jitted import symbols
from tests.cases import loose
from tests.compare import same_bits

DTYPES = ["int8", "float16", "complex64"]  # of each kind of chain one
OTHERS = ["bool", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "complex128"]


def products(x, a, b, u, v, batch, out, beta, alpha):
    """All of them; u has a's columns and v b's; of `batch`, matrices like b, two go to matmul."""
    nb.addmm(x, a, b, beta=beta, alpha=alpha, out=out)
    held = out.copy()
    nb.addmm_(held, a, b, beta=beta)
    return (
        nb.mm(a, b),
        held,
        nb.matmul(a, batch),
        nb.matmul(u, b),
        nb.addmv(u[:1], a, u, beta=beta, alpha=alpha),
        nb.linear(a, b.T, v),
        nb.outer(u, v),
        nb.dot(u, u[::-1]),
        nb.vdot(u, u[::-1]),
    )


def of_types(function, *args):
    """Jitted for the types of these arguments alone: arrays of few elements are contiguous, and go to it, too."""
    return numba.njit([tuple(map(numba.typeof, args))])(function)


def numbers(rng, dtype, shape):
    if dtype.startswith("complex"):
        return (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(dtype)
    if dtype == "float16":
        return rng.standard_normal(shape).astype(dtype)
    if dtype == "bool":
        return rng.random(shape) < 0.3
    info = np.iinfo(dtype)
    return rng.integers(info.min, info.max, shape, dtype, endpoint=True)


@pytest.mark.sampled
@pytest.mark.parametrize("dtype", DTYPES)
def test_bits_are_those_of_calls_from_python(rng, dtype):
    """Edges of every tile, segments of k, strides of all kinds, factors, what is added of every shape."""
    alpha, beta = {"c": (0.5 - 1j, 2j), "f": (0.5, -1.5)}.get(np.dtype(dtype).kind, (3, -2))
    call = None
    for (m, n, k), order, step in (
        ((5, 3, 7), "C", 2),
        ((1, 37, 20), "F", -1),
        ((33, 1, 4), "C", -1),
        ((50, 70, 4500), "C", 2),
        ((97, 101, 103), "F", 2),
    ):
        a, b, out = (loose(numbers(rng, dtype, shape), order, step) for shape in ((m, k), (k, n), (m, n)))
        u, v = (numbers(rng, dtype, 2 * size)[::2] for size in (k, n))
        batch = numbers(rng, dtype, (2, k, 2 * n))[..., ::2]
        for x in (numbers(rng, dtype, (2 * m, 2 * n))[::2, ::2], numbers(rng, dtype, (1, 2 * n))[:, ::2]):
            expected = out.copy()
            call = call or of_types(products, x, a, b, u, v, batch, out, beta, alpha)
            found = call(x, a, b, u, v, batch, out, beta, alpha)
            for got, want in zip(found, products(x, a, b, u, v, batch, expected, beta, alpha)):
                same_bits(np.asarray(got, want.dtype), want, (dtype, m, n, k))
            same_bits(out, expected)


@numba.njit
def numba_mm(a, b):
    return nb.mm(a, b)


@pytest.mark.sampled
@pytest.mark.parametrize("dtype", OTHERS)
def test_other_dtypes(rng, dtype):
    for m, n, k in ((5, 3, 7), (50, 70, 4500)):
        a, b = (loose(numbers(rng, dtype, shape)) for shape in ((m, k), (k, n)))
        same_bits(numba_mm(a, b), nb.mm(a, b))


@numba.njit
def widened(a, b, x, u, v):
    """Results wider than the factors', and factors of two dtypes."""
    return (
        nb.mm(a, a.T, out_dtype=np.int32),
        nb.addmm(x, a, b, out_dtype="int32"),
        nb.dot(a[0], b[:, 0], out_dtype=np.int32),
        nb.matmul(a, u),
        nb.linear(u, v.T, a[:, 0]),
        nb.outer(a[0], v[0]),
        nb.dot(v[0], a[0, : len(v[0])]),
    )


def test_wider_results_and_mixed_dtypes(rng):
    a, b, x = numbers(rng, "int8", (9, 9)), numbers(rng, "uint8", (9, 9)), numbers(rng, "int32", (9,))
    u, v = numbers(rng, "float16", (9, 9)), rng.standard_normal((9, 9)).astype("f4")
    for got, want in zip(widened(a, b, x, u, v), widened.py_func(a, b, x, u, v)):
        same_bits(np.asarray(got, want.dtype), want)


@numba.njit
def conjugated(a, b):
    return nb.mm(a, b, conj="a"), nb.dot(a[0], b[0], conj="b")


def test_conjugates(rng):
    a, b = numbers(rng, "complex64", (2, 5, 5))
    for got, want in zip(conjugated(a, b), conjugated.py_func(a, b)):
        same_bits(np.asarray(got, want.dtype), want)


def unread(x, a, b, beta, alpha):
    return nb.addmm(x, a, b, beta=beta, alpha=alpha), nb.mm(a, b)


@pytest.mark.parametrize("dtype", ["complex64", "int16"])
def test_zero_factors_and_products_of_nothing(dtype):
    nan, one = (np.full((6, 6), value).astype(dtype)[::2, ::2] for value in (7, -1))
    if dtype == "complex64":
        nan[...] = np.nan
    call, tall, flat = of_types(unread, nan, one, one, 0, 0), nan[:, :0], nan[:0]
    for args, expected in (
        ((nan, one, one, 0, 1), 3 * one * one),
        ((one, nan, nan, 1, 0), one),
        ((one, tall, flat, 1, 1), one),
        ((nan, tall, flat, 0, 1), 0 * one),
        ((flat, flat, one, 1, 1), flat),
        ((tall, one, tall, 1, 1), tall),
    ):
        found = call(*args)
        np.testing.assert_array_equal(found[0], expected)
        for got, want in zip(found, unread(*args)):
            same_bits(got, want)


@numba.njit
def halves(x, number):
    made = np.empty(3, np.float16)
    made[0], made[1], made[2] = x[0, 0] + x[0, 1], number, np.float32(x[1, 0])
    return made, x[0, 0], nb.exp(x), nb.add(x, 0.1)


def test_numbers_of_float16():
    """As 16 bits, rounded once: 2049 + 2**-30 is nearer to 2050."""
    x = np.array([[1.5, 2.25], [-0.1, np.nan]], "f2")
    made, first, exp, added = halves(x, 2049 + 2.0**-30)
    same_bits(made, np.array([3.75, 2050, x[1, 0]], "f2"))
    assert first == 1.5
    same_bits(exp, nb.exp(x))
    same_bits(added, nb.add(x, 0.1))
    for number in (65519.99999, 65520.0, 2.0**-25, 2.0**-25 + 2.0**-60, -np.inf, np.nan, np.float16(0.3)):
        with np.errstate(over="ignore"):
            same_bits(halves(x, number)[0][1:2], np.array([number], "f8").astype("f2"))


def test_a_block_of_threads_says_by_how_many(rng):
    """The bits stay; in a thread of its own, as those of a prange are, too."""
    for dtype in ("int16", "float32"):
        a, b = (numbers(rng, "int16", (300, 300)).astype(dtype) for _ in range(2))
        expected = nb.mm(a, b)
        with nb.threads(2):
            same_bits(numba_mm(a, b), expected)


# -- on disk -----------------------------------------------------------------------------------------------------------

SCRIPT = """
    import numba, numpy as np, nbkernels as nb, nbkernels.jitted

    @numba.njit(cache=True)
    def layer(x, w, v):
        nb.addmm_(x, w, w, alpha=2)
        return nb.linear(x, w, x[0]), nb.dot(v, v), nb.sum_to(nb.add(x, v), (3,))

    w, v = (np.arange(9, dtype="f4") % 5).reshape(3, 3), np.arange(3, dtype="i1")
    for got, want in zip(layer(w.copy(), w, v), layer.py_func(w.copy(), w, v)):
        np.testing.assert_array_equal(got, want)
    found = nb.specializations()
    print(sum(layer.stats.cache_hits.values()), sum(layer.stats.cache_misses.values()),
          sum(each.where == "compiled" for each in found), len(found) > 0)
"""


def test_the_second_process_compiles_nothing(tmp_path):
    """Neither the caller nor a kernel; the third, beside another version of the library, both."""
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(SCRIPT))
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    command, how = [sys.executable, "-W", "error", script], dict(capture_output=True, text=True, check=True)
    first, second = (subprocess.run(command, env=environment, **how).stdout.split() for _ in range(2))
    assert first[:2] == ["0", "1"]
    assert second == ["1", "0", "0", "True"]


def test_callers_of_another_version_are_compiled_anew(monkeypatch):
    """Numba takes an OSError from a file on disk for a file that is not there."""
    symbol = symbols.Symbol("cpu.gemm.call:checked")
    assert pickle.loads(pickle.dumps(symbol)) == symbol
    stored = pickle.dumps(symbol)
    monkeypatch.setattr(symbols, "version", lambda: "another")
    with pytest.raises(OSError, match="another version of nbkernels"):
        pickle.loads(stored)
