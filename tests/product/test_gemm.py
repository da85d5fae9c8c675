"""addmm and mm on the CPU: the stated order, bit for bit, what is read and written, errors; test_every_path.py has each
path in every layout."""

import itertools

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import nbkernels
from nbkernels.cpu.gemm import blocking as tiles
from nbkernels.cpu.gemm import context_setup, gemm
from nbkernels.cpu.gemm.context import NEAR_L2
from nbkernels.cpu.gemm.paths import legal, only
from nbkernels.cpu.runtime.status import DONE, PACKED, PATHS
from tests import reference
from tests.cases import LAYOUTS, TRANSPOSES, bias_shapes, normal, operands, whole_numbers
from tests.paths import tiny
from tests.processes import python

DTYPES = ("float32", "float64")


def paths(dtype, k):
    """Every way to compute a product: as chosen, the packed path with default and tiny tiles."""
    yield "chosen", lambda *args: gemm.gemm(*args)
    yield "packed", lambda *args: gemm.gemm(*args, tiles.default(dtype))
    yield "tiny tiles", lambda *args: gemm.gemm(*args, tiny(dtype))


def whole(rng, m, n, k, dtype, layouts=("C", "C")):
    return operands(rng, m, n, k, dtype, layouts, whole_numbers)


def blank(m, n, dtype, layout="C"):
    return LAYOUTS[layout](np.full((m, n), np.nan, dtype))


def repeated(matrix, axis):
    """The first row or column in place of all, by a stride of 0."""
    if axis is None or matrix.shape[axis] == 0:
        return matrix
    return np.broadcast_to(matrix.take([0], axis), matrix.shape)


@given(data=st.data())
@settings(max_examples=150)
def test_addmm_against_integers(data):
    dtype = data.draw(st.sampled_from(DTYPES))
    m, n, k = (data.draw(st.integers(0, 45)) for _ in range(3))
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    a, b = whole(rng, m, n, k, dtype, [data.draw(st.sampled_from(sorted(LAYOUTS))) for _ in range(2)])
    a, b = (repeated(matrix, data.draw(st.sampled_from([None, None, None, 0, 1]))) for matrix in (a, b))
    x = whole_numbers(rng, data.draw(st.sampled_from(bias_shapes(m, n))), dtype)
    beta, alpha = (data.draw(st.integers(-3, 3)) for _ in range(2))
    expected = beta * x.astype(np.int64) + alpha * (a.astype(np.int64) @ b.astype(np.int64))
    np.testing.assert_array_equal(nbkernels.addmm(x, a, b, beta=beta, alpha=alpha), expected)
    out = blank(m, n, dtype, data.draw(st.sampled_from(sorted(LAYOUTS))))
    assert nbkernels.addmm(x, a, b, beta=beta, alpha=alpha, out=out) is out
    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("dtype", DTYPES)
def test_bits_are_the_stated_chain(rng, dtype):
    """float64's reference is exact fractions, hence small."""
    shapes = [(5, 7, 60), (1, 9, 33), (13, 1, 40)]
    shapes += [(3, 5, 4097), (2, 40, 700), (14, 35, 513), (2, 3, 9001)] if dtype == "float32" else [(2, 2, 4099)]
    for m, n, k in shapes:
        a, b = operands(rng, m, n, k, dtype)
        x = normal(rng, (m, n), dtype)
        expected = reference.addmm(x, a, b, 0.7, -1.3)
        for (la, lb), lc, (name, path) in itertools.product(TRANSPOSES.values(), "CF", paths(dtype, k)):
            out = blank(m, n, dtype, lc)
            path(out, x, LAYOUTS[la](a), LAYOUTS[lb](b), 0.7, -1.3)
            np.testing.assert_array_equal(out, expected, f"{name} {la}{lb} {lc} {m}x{n}x{k}")


@pytest.mark.sampled
@pytest.mark.parametrize("dtype", DTYPES)
def test_bits_do_not_depend_on_tiles_threads_or_company(rng, dtype):
    m, n, k = 150, 210, 5000
    a, b = operands(rng, m, n, k, dtype)
    x = normal(rng, (n,), dtype)
    expected = nbkernels.addmm(x, a, b)
    available = numba.get_num_threads()
    for workers, choice in itertools.product({1, available}, [tiny(dtype), *tiles.candidates(dtype)]):
        numba.set_num_threads(workers)
        try:
            out = blank(m, n, dtype)
            gemm.gemm(out, x, a, b, 1, 1, choice)
        finally:
            numba.set_num_threads(available)
        np.testing.assert_array_equal(out, expected, f"{choice}, {workers} threads")
    for rows, columns in ((slice(3, 4), slice(None)), (slice(None), slice(7, 8)), (slice(5, 25), slice(100, 117))):
        part = nbkernels.addmm(x[columns], a[rows], b[:, columns])
        np.testing.assert_array_equal(part, expected[rows, columns])


@pytest.fixture
def near(monkeypatch):
    """Caches so small that a little A is larger."""
    monkeypatch.setattr(context_setup, "caches", lambda: (1 << 15, 1 << 16))
    context_setup.template.cache_clear()
    yield NEAR_L2 << 16
    context_setup.template.cache_clear()


@pytest.mark.parametrize("k", [700, 5000])
@pytest.mark.parametrize("dtype", DTYPES)
def test_an_a_larger_than_the_caches_has_the_bits_of_its_parts(rng, near, dtype, k):
    """The packed path takes such an A by stretches."""
    choice = tiles.default(dtype)
    m, n = 2 * near // (min(k, choice.kc) * np.dtype(dtype).itemsize) + 55, 2 * choice.nb + 5
    a, b, x = normal(rng, (m, k), dtype), normal(rng, (k, n), dtype), normal(rng, (n,), dtype)
    parts = [nbkernels.addmm(x, a[i : i + 101], b, alpha=3) for i in range(0, m, 101)]
    try:
        for workers, layout in itertools.product((1, 2), ("C", "every other")):
            numba.set_num_threads(min(workers, numba.config.NUMBA_NUM_THREADS))
            out = blank(m, n, dtype, layout)
            gemm.gemm(out, x, a, b, 1, 3, choice)
            np.testing.assert_array_equal(out, np.concatenate(parts), f"{layout}, {workers} threads")
    finally:
        numba.set_num_threads(numba.config.NUMBA_NUM_THREADS)


PIECES = """
import numpy as np
from nbkernels.cpu.gemm.blocking import WAY, small
from nbkernels.cpu.gemm.columns import door
from nbkernels.cpu.gemm.context_setup import filled
from nbkernels.cpu.gemm.kinds import default_tiles, kind_of
kind = kind_of(*["float32"] * 3)
tile = small("float32")
for panels in (11, 5, *range(1, 13)):
    for workers in (2, 3):
        m, n, k = 5 * tile.mr + 1, panels * tile.nr - 3, 40
        a = np.arange(k * WAY // 4, dtype="f4").reshape(k, WAY // 4)[:, :m].T % 7
        b, out = np.arange(k * n, dtype="f4").reshape(k, n) % 5, np.empty((m, n), "f4")
        f, _ = filled(out, 0, a, b, 0, 1, default_tiles(kind), kind, workers)
        door("float32").product(f, 0.0, 1.0, workers)
        assert (out == a.astype(int) @ b.astype(int)).all(), (panels, workers)
"""


def test_a_piece_of_few_columns_is_packed_as_the_others():
    """By itself its A would be read in place, by other micro-kernels, in a process that has none yet: with 32 registers
    against the last 5 of 11 panels, else against the last 2 of 5."""
    python(PIECES)


@pytest.mark.parametrize("zero", [0, 0.0, -0.0, False])
@pytest.mark.parametrize("n", [5, 200])
def test_beta_zero_never_reads_self(rng, zero, n):
    a, b = whole(rng, n, n, n, "float32")
    for poison in (np.nan, np.inf):
        result = nbkernels.addmm(np.full(n, poison, np.float32), a, b, beta=zero)
        np.testing.assert_array_equal(result, a @ b)
        own = np.full((n, n), poison, np.float32)
        nbkernels.addmm_(own, a, b, beta=zero)
        np.testing.assert_array_equal(own, a @ b)


@pytest.mark.parametrize("n", [5, 200])
def test_alpha_zero_never_reads_the_matrices(rng, n):
    poison, x = np.full((n, n), np.nan, np.float32), whole_numbers(rng, (n,), "float32")
    for alpha in (0, -0.0, False):
        np.testing.assert_array_equal(nbkernels.addmm(x, poison, poison, alpha=alpha, beta=2), np.tile(2 * x, (n, 1)))
    np.testing.assert_array_equal(nbkernels.addmm(poison, poison, poison, alpha=0, beta=0), np.zeros((n, n)))


def test_nan_and_inf_go_where_they_belong():
    a = np.ones((40, 40), np.float32)
    b = a.copy()
    a[3, 5], b[7, 9] = np.nan, np.inf
    for out in (nbkernels.mm(a, b), nbkernels.mm(np.asfortranarray(a), b)):
        assert np.isnan(out[3]).all()
        assert not np.isnan(np.delete(out, 3, 0)).any()
        assert np.isinf(np.delete(out, 3, 0)[:, 9]).all()


@pytest.mark.parametrize(("m", "n", "k"), [(0, 3, 4), (3, 0, 4), (0, 0, 0), (3, 4, 0), (200, 200, 0)])
def test_empty_sizes(m, n, k):
    a, b, x = np.ones((m, k)), np.ones((k, n)), np.full((m, n), 7.0)
    np.testing.assert_array_equal(nbkernels.addmm(x, a, b, beta=0.5), 0.5 * x)
    np.testing.assert_array_equal(nbkernels.addmm(x * np.nan, a, b, beta=0), np.zeros((m, n)))
    np.testing.assert_array_equal(nbkernels.mm(a, b), np.zeros((m, n)))


@pytest.mark.parametrize("n", [9, 130])
def test_only_out_is_written(rng, n):
    a, b = whole(rng, n, n, n, "float32")
    for array in (a, b):
        array.flags.writeable = False
    room = np.full((3 * n, 3 * n), 77, np.float32)
    for out in (room[n : 2 * n, n : 2 * n], room.T[n : 2 * n, n : 2 * n], room[n // 2 : n // 2 + 2 * n : 2, ::3][:n]):
        room[...] = 77
        before = np.ones(room.shape, bool)
        offset = (out.__array_interface__["data"][0] - room.__array_interface__["data"][0]) // room.itemsize
        mark = np.lib.stride_tricks.as_strided(before.ravel()[offset:], out.shape, [s // 4 for s in out.strides])
        mark[...] = False
        nbkernels.addmm(a, a, b, out=out)
        np.testing.assert_array_equal(out, a + a @ b)
        assert (room[before] == 77).all()


@pytest.mark.parametrize("n", [12, 150])
def test_out_may_overlap_the_inputs(rng, n):
    room = whole_numbers(rng, (2 * n, 2 * n), "float32")
    for pick in (
        lambda r: (r[:n, :n], r[n:, n:], r[:n, :n]),  # out is mat1
        lambda r: (r[:n, :n], r[n:, n:], r[n:, n:].T),  # out is mat2, transposed
        lambda r: (r[:n, :n], r[n:, n:], r[1 : n + 1, 1 : n + 1]),  # out is mat1, shifted
        lambda r: (r[:n, :n], r[:n, :n], r[:n, :n][::-1]),  # all three, out reversed
    ):
        mine, plain = room.copy(), room.copy()
        a, b, out = pick(mine)
        ra, rb, rout = pick(plain)
        expected = rout + ra @ rb
        assert nbkernels.addmm(out, a, b, out=out) is out
        np.testing.assert_array_equal(out, expected)
    for x in (lambda o: o[::-1], lambda o: o[0], lambda o: o[:, :1], lambda o: o.T):  # self overlaps out otherwise
        out = room[:n, :n].copy()
        expected = x(out) + room[:n, n:] @ room[n:, :n]
        nbkernels.addmm(x(out), room[:n, n:], room[n:, :n], out=out)
        np.testing.assert_array_equal(out, expected)


def test_fields_of_packed_records(rng):
    """Strides that are no multiple of the item size."""
    records = np.zeros((30, 30), np.dtype([("tag", "u1"), ("value", "f4")]))
    records["value"] = whole_numbers(rng, (30, 30), "float32")
    a = records["value"]
    np.testing.assert_array_equal(nbkernels.mm(a, a), a.copy() @ a.copy())
    nbkernels.mm(np.ones((30, 30), np.float32), np.ones((30, 30), np.float32), out=a)
    assert (a == 30).all()
    assert (records["tag"] == 0).all()


def test_huge_broadcast_operands():
    """0 strides: the arrays are far larger than memory, and nothing copies them whole."""
    one = np.ones(1, np.float32)
    a, b = np.broadcast_to(one, (2, 3_000_000)), np.broadcast_to(one, (3_000_000, 3))
    np.testing.assert_array_equal(nbkernels.mm(a, b), np.full((2, 3), 3e6))


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_legal_path_gives_the_same_bits(rng, dtype):
    """Of random products, from any layout, into both orders of out, with and without what is added."""
    found = set()
    for case in range(60):
        m, n, k = (int(2 ** rng.uniform(0, 8.5)) for _ in range(3))
        m, k = (m, k) if case % 3 else (int(rng.integers(1, 4)), 4 * k)
        a, b = operands(rng, m, n, k, dtype, list(TRANSPOSES.values())[case % 4])
        x = normal(rng, (m, n), dtype) if case % 5 < 3 else None
        out = np.empty((m, n), dtype, order="CF"[case // 4 % 2])
        expected = np.empty((m, n), dtype)
        gemm.gemm(expected, x, a, b, 0.5, 2, tiles.default(dtype))
        for way in legal(out, x, a, b):
            out[...] = np.nan
            assert gemm.by_path(way, out, x, a, b, 0.5, 2) == DONE, (PATHS[way], m, n, k)
            np.testing.assert_array_equal(out, expected, f"{PATHS[way]} {m}x{n}x{k}")
            found.add(way)
    assert found == set(PATHS)


def test_large_products_are_one_compiled_call(monkeypatch):
    """Once the room is there; and Python's way gives the same bits."""
    a, b = np.random.default_rng(3).standard_normal((2, 400, 600))
    x = a[0, :400]
    calls = [
        lambda: nbkernels.mm(a, b.T),
        lambda: nbkernels.addmm(x, a, b.T, beta=0.5, alpha=2),
        lambda: nbkernels.mm(a.copy("F"), np.ascontiguousarray(b.T)),
    ]
    expected = [call() for call in calls]
    with only(PACKED):
        for call in calls:
            call()
        monkeypatch.setattr(gemm, "packed", None)
        for call, result in zip(calls, expected):
            assert np.array_equal(call(), result)
