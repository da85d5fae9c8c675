"""sum_to: right for every shape, stride and dtype, in the order that its module states, whatever the layout."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbkernels.cpu.reduce import plan, reduce
from nbkernels.dtypes import INTEGERS
from nbkernels.strides import reduce_plan
from tests.compare import same_bits


@np.errstate(all="ignore")
def in_order(terms):
    """The sum of a 1-D array, term by term, as nbkernels/cpu/reduce/reduce.py states it; integers wrap."""
    zero = np.full(1, -0.0 if terms.dtype.kind == "f" else 0, terms.dtype)[0]
    sums = []
    for count, start in enumerate(range(0, len(terms), plan.BLOCK), 1):
        block = terms[start : start + plan.BLOCK]
        count_of_lanes = plan.LANES if len(block) >= plan.DEALT else 1
        lanes = [zero] * count_of_lanes
        for k, term in enumerate(block):
            lanes[k % count_of_lanes] = lanes[k % count_of_lanes] + term
        half = count_of_lanes // 2
        while half:
            lanes = [lanes[i] + lanes[i + half] for i in range(half)]
            half //= 2
        sums.append(lanes[0])
        while len(block) == plan.BLOCK and count % 2 == 0:
            last = sums.pop()
            sums.append(sums.pop() + last)
            count //= 2
    while len(sums) > 1:
        last = sums.pop()
        sums.append(sums.pop() + last)
    return sums[0]


def axes(shape, to):
    lead = len(shape) - len(to)
    return tuple(range(lead)) + tuple(d + lead for d, n in enumerate(to) if n == 1 and shape[d + lead] != 1)


def reference(x, to):
    """Every element summed alone, its terms in C order."""
    reduced = axes(x.shape, to)
    kept = [d for d in range(x.ndim) if d not in reduced]
    rows = x.transpose(kept + list(reduced)).reshape(-1, math.prod(x.shape[d] for d in reduced))
    return np.array([in_order(row) for row in np.ascontiguousarray(rows)], x.dtype).reshape(to)


def run(x, to):
    out = np.full(to, np.nan if x.dtype.kind == "f" else 77, x.dtype)
    reduce.sum_to(out, x)
    return out


@st.composite
def cases(draw):
    shape = tuple(draw(st.lists(st.sampled_from([1, 2, 3, 5, 7, 17, 40]), max_size=4)))
    lead = draw(st.integers(0, len(shape)))
    to = tuple(draw(st.sampled_from([1, n])) for n in shape[lead:])
    order = draw(st.permutations(range(len(shape))))
    steps = [draw(st.sampled_from([1, 1, -1, 2])) for _ in shape]
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    dtype = draw(st.sampled_from(["f4", "f8", "i1", "i4", "u8", "i2"]))
    sizes = [shape[d] * abs(steps[d]) for d in order]
    x = (rng.standard_normal(sizes) * 100).astype("i8").astype(dtype) if dtype[0] != "f" else rng.standard_normal(sizes)
    x = x.astype(dtype).transpose(np.argsort(order)) if shape else x.astype(dtype)
    x = x[(..., *(slice(None, None, s) for s in steps))][(..., *(slice(0, n) for n in shape))]
    return x, to


@given(cases(), st.booleans())
def test_any_shape_and_strides_in_the_stated_order(case, reverse):
    x, to = case
    x.flags.writeable = False
    expected = reference(x, to)
    same_bits(run(x, to), expected)
    base = np.full([2 * n for n in to], 77, x.dtype)
    out = base[(..., *(slice(None, None, -2 if reverse else 2) for _ in to))]
    reduce.sum_to(out, x)
    same_bits(out, expected)
    out[...] = 77
    assert (base == 77).all(), "what lies between out's elements is untouched"


@pytest.mark.parametrize("terms", [1, 2, 15, 16, 17, 255, 256, 257, 511, 512, 513, 16383, 16384, 16385, 32768, 50_001])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int8"])
def test_every_edge_and_every_path_gives_the_same_bits(terms, dtype, rng):
    """Few or many elements; terms adjacent, apart, reversed or transposed: one result."""
    columns = 20 if terms < 20_000 else 3
    x = (rng.standard_normal((terms, columns)) * 60).astype(dtype)
    expected = np.array([in_order(x[:, j]) for j in (0, 1, 2)], dtype)
    for layout in (x, x.T.copy().T, x[:, :3], np.repeat(x, 2, 0)[::2], x[::-1].copy()[::-1]):
        same_bits(run(layout, (layout.shape[1],))[:3], expected)
    for j in range(3):
        same_bits(run(x[:, j], ()), expected[j])
        same_bits(run(np.ascontiguousarray(x[:, j]), ()), expected[j])
    same_bits(run(x.T, (columns, 1))[:3, 0], expected)


def test_threads_do_not_change_a_bit(monkeypatch, rng):
    x = rng.standard_normal((700, 900)).astype("f4")
    alone, whole = (run(x, (900,)), run(x, (700, 1)), run(x, ())), run(x[:, :768].copy(), ())
    monkeypatch.setattr(plan, "PARALLEL", 1)
    for tasks in (2, 3, 7):
        monkeypatch.setattr(reduce.threads, "count", lambda tasks=tasks: tasks)
        for expected, to in zip(alone, [(900,), (700, 1), ()]):
            same_bits(run(x, to), expected)
        same_bits(run(np.asfortranarray(x), ()), alone[2])
        same_bits(run(np.asfortranarray(x[:, :768]), ()), whole)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_rows_side_by_side_have_the_bits_of_terms_in_order(dtype, rng):
    """Rows that touch, of some blocks each or hardly one: every phase, the last rows, the rest, shares of columns."""
    for shape in (
        (2, 256),
        (5, 257),
        (70, 300),
        (33, 1024),
        (300, 259),
        (4, 9000),
        (3, 4011),
        (20, 1008),
        (7, 9, 1003),
        (2, 100, 1024),
        (4, 300, 701),
        (40, 13, 1000),
        (37, 11, 29),
        (9, 7, 64),
        (3, 5, 90, 2),
    ):
        x = rng.standard_normal(shape) + 1 + (1j * rng.standard_normal(shape) if dtype[0] == "c" else 0)
        x = x.astype(dtype)
        for op in ("add", "multiply")[: 1 if dtype[0] == "c" else 2]:
            x = x if op == "add" else (1 + x / 1000).astype(dtype)
            expected = np.empty((1,) * x.ndim, dtype)
            reduce.fold(op, expected, x, x.dtype)
            for y in (np.asfortranarray(x), np.asfortranarray(x[:, ::-1])[:, ::-1], aside(x)):
                loops = reduce.reduce_plan((expected.shape, y.shape), (expected.strides, y.strides), y.itemsize)
                for tasks in (1, 2, 5):
                    out = np.full(expected.shape, np.nan, dtype)
                    reduce._by_rows(op, loops, out.dtype, y.dtype, tasks).run(out, y)
                    same_bits(out, expected)


def aside(x):
    """The same values in Fortran's order, beginning an item into a line, with others around."""
    wide = np.full(x.size + 32, np.nan, x.dtype)
    start = (1 - wide.ctypes.data // x.itemsize) % (64 // x.itemsize)
    view = wide[start : start + x.size].reshape(x.shape, order="F")
    view[...] = x
    return view


@pytest.mark.parametrize("dtype", ["float32", "float64", *INTEGERS])
def test_every_dtype(dtype, rng):
    x = (rng.standard_normal((37, 90)) * 100).astype("i8").astype(dtype)
    for to in [(90,), (37, 1), (), (1, 90), (1, 1)]:
        with np.errstate(all="ignore"):
            expected = x.sum(axis=axes(x.shape, to), dtype=dtype).reshape(to)
        same_bits(run(x, to), expected)


def test_specials(rng):
    x = rng.standard_normal((50, 4))
    x[3, 0], x[7, 1], x[8, 1], x[9, 2] = np.nan, np.inf, -np.inf, np.inf
    result = run(x, (4,))
    assert np.isnan(result[:2]).all()
    assert result[2] == np.inf
    assert np.isfinite(result[3])
    assert np.signbit(run(np.full((20, 3), -0.0), (3,))).all()
    assert not np.signbit(run(np.array([-0.0, 0.0]), ()))


def test_no_terms_give_zeros():
    for shape, to in [((0, 3), (3,)), ((0,), ()), ((2, 0), (2, 1))]:
        same_bits(run(np.empty(shape), to), np.zeros(to))
    same_bits(run(np.empty((0, 3)), (0, 1)), np.zeros((0, 1)))


def test_repeated_terms(rng):
    x = np.broadcast_to(rng.standard_normal((1, 5)), (1000, 5))
    same_bits(run(x, (5,)), reference(x, (5,)))
    same_bits(run(x, (1000, 1)), reference(x, (1000, 1)))


def test_out_that_overlaps_its_input(rng):
    x = rng.standard_normal((30, 8))
    expected = reference(x, (8,))
    reduce.sum_to(x[4], x)
    same_bits(x[4], expected)


def test_the_error_grows_slowly(rng):
    x = rng.random(1 << 20).astype("f4")
    exact = math.fsum(x.astype("f8"))
    assert abs(float(run(x, ())) - exact) / exact < 3e-7
    ones = np.ones((1 << 25,), "f4")
    assert run(ones, ()) == 1 << 25, "a running sum in float32 stops at 2^24"


def test_many_dimensions(rng):
    x = rng.standard_normal((2, 1) * 10 + (3, 1) * 2 + (1,) * 8)
    to = (1,) * 20 + (3, 1) * 2 + (1,) * 8
    same_bits(run(x, to), reference(x, to))
    y = rng.standard_normal((2,) * 12).transpose(np.roll(np.arange(12), 5))
    to = (1, 2) * 6
    same_bits(run(y, to), reference(y, to))


def test_plan_prints_and_coalesces():
    plan = reduce_plan(((3, 1), (4, 2, 3, 5)), ((4, 4), (120, 60, 20, 4)), 4)
    assert plan.sizes == (8, 5)
    assert plan.steps == (60, 4)
    assert plan.kept.shape == (3,)
    assert str(plan) == "sum of 8 x 5 by (60, 4), kept strided 3: out (4,), in1 (20,)"
    turned = reduce_plan(((), (4, 3, 7)), ((), (-4, 16, 0)), 4, ordered=False)
    assert (turned.sizes, turned.steps, turned.kept.offsets) == ((7, 12), (0, 4), (0, -12))
