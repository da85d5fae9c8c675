"""Every path of a product (nbkernels/cpu/gemm/paths.py): exact on whole numbers, the bits of the packed path, whatever
lies where, whatever is added, by one thread and by more; chosen, asked for, and called directly.

A path that is new needs a row of SIZES, of LIE and of CALLS, and is then held to all of it.
"""

import contextlib
import itertools

import numpy as np
import pytest

import nbkernels
from nbkernels.cpu.gemm import blocking as tiles
from nbkernels.cpu.gemm import gemm
from nbkernels.cpu.gemm.paths import AWAKE, legal, only
from nbkernels.cpu.gemm.short import STEPS
from nbkernels.cpu.runtime import workspace
from nbkernels.cpu.runtime.status import COLUMNS, DEEP, DONE, GEMV, PACKED, PATHS, SHORT, SMALL, THIN
from tests.cases import EVERY, GEMM_SHAPES, LAYOUTS, TRANSPOSES, bias_shapes, normal, operands, whole_numbers
from tests.compare import same_bits
from tests.paths import tiny, with_threads

DTYPES = ("float32", "float64")
TINY = len(PATHS) + max(PATHS)  # the packed path by tiles so small that little arrays cross the edges of all blocks
WAYS = {**PATHS, TINY: "tiny tiles"}

# Round every edge of a path's blocks, from where it would never be chosen to where threads share it.
VECTORS = [*itertools.product((1, 2, 15, 16, 17, 31, 33, 700, 1024), (1, 7, 8, 16, 17, 100, 4096, 4097)),
           *itertools.product((1, 2, 15, 16, 17, 31, 33), (8200, 70_000)), (700, 8200), (100, 512), (64, 1024),
           (256, 256), (402, 300), (44, 5000), (47, 640), (600, 700), (5, 120_000), (1, 600_000),
           (9000, 60)]  # fmt: skip
SIZES = {
    GEMV: [size for m, k in VECTORS for size in ((m, 1, k), (1, m, k))],
    SMALL: GEMM_SHAPES,
    THIN: [(971, 149, 1), (971, 149, 3), (971, 149, 5), (971, 149, 48), (50, 50, 1), (700, 17, 1), (16, 64, 1),
           (240, 150, 1), (64, 700, 16), (700, 64, 5), (179, 2000, 9), (2000, 3001, 40)],
    DEEP: [(2, 3, 513), (4, 5, 9000), (16, 5, 4096), (7, 45, 4097), (3, 701, 520), (701, 3, 8200), (33, 40, 9001),
           (8, 8, 1000), (15, 600, 521), (3, 9, 12_289), (120, 110, 4200), (2001, 4, 300), (7, 2500, 90), (3, 37, 4200),
           (50, 40, 8261), (8, 8, 130), (5, 7, 1001), (40, 3, 200), (9, 4, 129), (6, 500, 303), (5, 6, 20_000)],
    SHORT: [(1, 1, 1), (5, 40, 3), (7, 997, STEPS + 1), (8, 600, 2 * STEPS), (13, 301, 499), (33, 517, 70),
            (301, 9, 140), (16, 1300, 260)],
    COLUMNS: [(2003, 2, 301), (2003, 5, 301), (6001, 33, 512), (1500, 150, 170), (16, 64, 5),
              (1024, 500, 60)],  # whose A, by columns, shares sets of L1, and is packed
    PACKED: GEMM_SHAPES,
    TINY: GEMM_SHAPES,
}  # fmt: skip
LIE = {  # of those that every layout of every operand is tried with
    GEMV: [(1, 1, 1), (1, 1, 90), (5, 1, 1), (9, 1, 11), (25, 1, 40), (70, 1, 3), (33, 1, 70), (1, 1, 9000),
           (1, 33, 70), (64, 1, 1024), (1, 47, 640)],
    SMALL: [(29, 67, 31), (5, 6, 7)],
    THIN: [(971, 149, 2), (29, 67, 31)],
    DEEP: [(13, 70, 8192), (5, 37, 700), (3, 20, 600), (40, 2, 5000), (2001, 7, 100), (3, 901, 128), (9, 8, 150)],
    SHORT: [(9, 270, 150), (270, 9, 150)],
    COLUMNS: [(200, 35, 70), (29, 67, 31)],
    PACKED: [(29, 67, 31)],
    TINY: [(29, 67, 31)],
}  # fmt: skip
EDGES = {**LAYOUTS, "upside down": lambda x: x[::-1].copy()[::-1], "padded F": lambda x: LAYOUTS["padded"](x.T).T}
LARGE = 1e6  # multiply-adds from which only some forms are tried


def by(way, out, x, a, b, beta, alpha):
    """Whether a path can compute a product, and does."""
    if way == TINY:
        gemm.gemm(out, x, a, b, beta, alpha, tiny(out.dtype.name))
    elif way not in legal(out, x, a, b):
        return False
    else:
        assert gemm.by_path(way, out, x, a, b, beta, alpha) == DONE
    return True


def public(way, out, x, a, b, beta, alpha):
    assert nbkernels.addmm(out if x is None else x, a, b, beta=beta, alpha=alpha, out=out) is out
    return True


def asked(way):
    """Within, public products take the path where it is possible and may be; for TINY, that which is chosen."""
    return contextlib.nullcontext() if way == TINY else only(way)


def each_way(sizes):
    return pytest.mark.parametrize("way", sizes, ids=WAYS.get)


@each_way(SIZES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_bits_are_those_of_the_packed_path(rng, monkeypatch, way, dtype):
    """From every order into both, and in place; where beta is 0 what would be added is NaN. A row and a column of zeros
    of both signs show the sign of what a chain begins with; of float64 every third size."""
    ran, sizes = 0, SIZES[way][:: 1 if EVERY or dtype == "float32" else 3]
    for m, n, k in sizes:
        large = m * n * k > (LARGE if min(m, n) > 1 else LARGE / 50)
        if m * n > 1e6 and dtype == "float64":  # once
            continue
        a, b, x = normal(rng, (m, k), dtype), normal(rng, (k, n), dtype), normal(rng, (m, n), dtype)
        if m > 4 and n > 4:
            a[m // 2], b[:, n // 2] = 0, -0.0
        expected = {}
        for beta, alpha in ((0.7, -1.3), (0, 1), (0, 2.5))[: 1 if large else 3]:
            expected[beta, alpha] = np.empty((m, n), dtype)
            gemm.gemm(expected[beta, alpha], x, a, b, beta, alpha, tiles.default(dtype))
        lain = [(name, LAYOUTS[la](a), LAYOUTS[lb](b)) for name, (la, lb) in TRANSPOSES.items()]
        for workers, run in itertools.product((1, 2)[m * n > 1e6 :], (by, public)):
            with with_threads(workers, monkeypatch), asked(way):
                for (layout, left, right), order, factors in itertools.product(lain, "CF", expected):
                    out = np.empty((m, n), dtype, order=order)
                    for own, bias in ((np.nan, x), (x, out)) if factors[0] else ((np.nan, None),):
                        out[...] = own
                        if run(way, out, bias, left, right, *factors):
                            ran += run is by
                            what = f"{run.__name__} {m}x{n}x{k} {layout} {order} {factors} {workers} {bias is out}"
                            same_bits(out, expected[factors], what)
    assert ran >= 2 * len(sizes)


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_packed_path_is_exact_on_whole_numbers(rng, dtype):
    """What all others are held against."""
    every = sorted({(m, n, k) for sizes in SIZES.values() for m, n, k in sizes if m > 1 or n == 1})
    for m, n, k in every[:: 1 if EVERY or dtype == "float32" else 3]:
        (a, b), x = operands(rng, m, n, k, dtype, numbers=whole_numbers), whole_numbers(rng, (m, n), dtype)
        found = np.full((m, n), np.nan, dtype)
        gemm.gemm(found, x, a, b, 3, -2, tiles.default(dtype))
        np.testing.assert_array_equal(found, 3 * x - 2 * (a.astype("f8") @ b.astype("f8")), f"{m}x{n}x{k}")


@each_way(LIE)
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_layout_of_every_operand(rng, way, dtype):
    """Whole numbers, from between NaN, into a part of an array whose rest stays as it is; of float64 every third."""
    ran, few = 0, 1 if EVERY or dtype == "float32" else 3
    for m, n, k in LIE[way]:
        a, b = operands(rng, m, n, k, dtype, numbers=whole_numbers)
        expected = (a.astype("f8") @ b.astype("f8")).astype(dtype)
        lefts, rights = ({name: lie(each) for name, lie in EDGES.items()} for each in (a, b))
        large = m * n * k > LARGE or m * n > LARGE / 10
        for la, lb, lc in [*itertools.product(lefts, ("C", "F", "reversed") if large else rights, EDGES)][::few]:
            if large and lc != "C" and la not in ("C", "F"):
                continue
            for direct in (True, False):
                out = EDGES[lc](np.full((m, n), np.nan, dtype))
                room = out if out.base is None or out.base.dtype != out.dtype else out.base
                outside = room.size - out.size
                if direct and not by(way, out, None, lefts[la], rights[lb], 0, 1):
                    continue
                ran += direct
                if not direct:
                    with asked(way):
                        assert nbkernels.mm(lefts[la], rights[lb], out=out) is out
                np.testing.assert_array_equal(out, expected, f"{m}x{n}x{k} {la} {lb} {lc}")
                assert np.isnan(room).sum() == outside
    assert ran > 100 * len(LIE[way]) // few


@each_way(LIE)
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_bias(rng, way, dtype):
    """Of every shape that expands and in every layout, into outs of several; and where it overlaps the out."""
    for m, n, k in LIE[way][:3]:
        a, b = operands(rng, m, n, k, dtype, numbers=whole_numbers)
        product = 3 * (a.astype("f8") @ b.astype("f8"))
        with asked(way):
            for shape, layout, lc in itertools.product(bias_shapes(m, n), EDGES, ("C", "F", "every other")):
                if len(shape) == 1 and layout in ("padded F", "upside down"):
                    continue
                x = whole_numbers(rng, shape, dtype)
                x, out = EDGES[layout](x) if shape else x, EDGES[lc](np.full((m, n), np.nan, dtype))
                if way == TINY:
                    by(way, out, np.asarray(x), a, b, 2, 3)
                else:
                    nbkernels.addmm(x, a, b, beta=2, alpha=3, out=out)
                np.testing.assert_array_equal(out, 2 * x + product, f"{m}x{n}x{k} {shape} {layout} {lc}")
            for pick in (lambda o: o[::-1], lambda o: o[:, ::-1], lambda o: o[0], lambda o: o[:, :1], lambda o: o.T):
                out = whole_numbers(rng, (m, n), dtype)
                if pick(out).shape != (n, m) or m == n:
                    expected = 2 * pick(out) + product
                    nbkernels.addmm(pick(out), a, b, beta=2, alpha=3, out=out)
                    np.testing.assert_array_equal(out, expected, f"overlapping: {m}x{n}x{k}")


@each_way(LIE)
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_chain_begins_with_zero_whatever_comes_first(way, dtype):
    ran = 0
    for (m, n, k), layouts in itertools.product(LIE[way], TRANSPOSES.values()):
        a, b, out = np.ones((m, k), dtype), np.ones((k, n), dtype), np.empty((m, n), dtype)
        for first, rest, factor in ((np.inf, 1, 1), (-1, -1, 0)):
            a[:, 0], a[:, 1:], b[...] = first, rest, factor
            if by(way, out, None, LAYOUTS[layouts[0]](a), LAYOUTS[layouts[1]](b), 0, 1):
                ran += 1
                assert (out == (np.inf if factor else 0)).all()
                assert factor or not np.signbit(out).any()
    assert ran >= 2 * len(LIE[way])


WIDE = 149 + AWAKE // 971  # columns of a thin product that threads share
CALLS = [
    (SMALL, 250, 250, 250, "NN", 1), (PACKED, 330, 330, 330, "NN", 1), (COLUMNS, 250, 250, 250, "NN", 2),
    (THIN, 971, WIDE, 3, "NN", 2), (THIN, 971, WIDE, 3, "NT", 2), (THIN, 971, WIDE // 3, 3, "NN", 2),
    (THIN, 971, WIDE // 3, 3, "NT", 2), (DEEP, 8, 8, 900, "NT", 2), (DEEP, 30, 30, 900, "NT", 1),
    (SHORT, 16, 1300, 260, "NN", 1), (GEMV, 1, 300, 300, "NN", 2),
]  # fmt: skip


@pytest.mark.parametrize(("way", "m", "n", "k", "layout", "threads"), CALLS)
def test_the_second_call_asks_python_for_nothing(rng, monkeypatch, way, m, n, k, layout, threads):
    """It is one compiled call, with a room of its own or that which the first has left."""
    a, b = operands(rng, m, n, k, "float64", TRANSPOSES[layout], whole_numbers)
    x, out = whole_numbers(rng, (m, n), "f8"), np.empty((m, n))
    with with_threads(threads, monkeypatch, patched=False), only(way):
        nbkernels.mm(a, b, out=out), nbkernels.addmm(x, a, b, out=out)
        if way == SMALL:
            workspace.forget()
        monkeypatch.setattr(gemm, "by_path", None)
        np.testing.assert_array_equal(nbkernels.mm(a, b, out=out), a @ b)
        np.testing.assert_array_equal(nbkernels.addmm(x, a, b, beta=2, alpha=3, out=out), 2 * x + 3 * (a @ b))


@pytest.mark.parametrize(("way", "m", "n", "k", "path"), [
    (TINY, 4, 4, 4, "small"), (TINY, 1, 300, 300, "gemv"), (TINY, 8, 8, 5000, "deep"),
    (TINY, 2048, 2048, 2048, "packed"), (THIN, 1000, 1000, 8, "thin"), (THIN, 1000, 1000, 513, "packed"),
    (DEEP, 500, 500, 500, "deep"),
])  # fmt: skip
def test_the_path_is_described_that_is_chosen_or_asked_for_where_it_is_possible(way, m, n, k, path):
    with asked(way):
        found = nbkernels.explain(nbkernels.mm, np.empty((m, k), "f4"), np.empty((k, n), "f4"))
    assert found.path == path
    assert path != "packed" or found.tile == str(tiles.default("float32"))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("m", "n"), [(50, 50), (17, 700), (64, 16), (971, 149)])
def test_products_of_one_step_in_place(rng, m, n, dtype):
    """addr, bit for bit, where the last vector of a row meets what the one before has written."""
    u, v, x = (normal(rng, shape, dtype) for shape in (m, n, (m, n)))
    for order, bias in itertools.product("CF", (x, x[:1], x[0], x[:, :1], x[0, 0])):
        expected = np.empty((m, n), dtype, order=order)
        gemm.gemm(expected, np.asarray(bias), u[:, None], v[None], 0.7, -1.3, tiles.default(dtype))
        found = nbkernels.addr(bias, u, v, beta=0.7, alpha=-1.3, out=np.full((m, n), np.nan, dtype, order=order))
        assert found.tobytes() == expected.tobytes()
        if np.shape(bias) == (m, n):
            found[...] = x
            assert nbkernels.addr_(found, u, v, beta=0.7, alpha=-1.3).tobytes() == expected.tobytes()


def test_every_path_is_in_the_tables():
    assert set(SIZES) == set(LIE) == set(WAYS)
    assert {way for way, *_ in CALLS} == set(PATHS)
