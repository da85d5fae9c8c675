"""StridedPlan against NumPy's broadcasting and against the plain meaning of strides: which addresses meet which."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbkernels.strides import StridedPlan, broadcast_shapes, broadcast_strides, output_strides, plan

SIZES = st.lists(st.integers(0, 4), max_size=5).map(tuple)


@given(st.lists(SIZES, min_size=1, max_size=3))
def test_broadcast_shapes_is_numpys(shapes):
    try:
        expected = np.broadcast_shapes(*shapes)
    except ValueError:
        with pytest.raises(ValueError, match=r"do not broadcast: sizes \d and \d in dimension \d"):
            broadcast_shapes(*shapes)
    else:
        assert broadcast_shapes(*shapes) == expected


def test_broadcast_error_names_sizes_and_dimension():
    with pytest.raises(ValueError, match=r"shapes \(2, 3\) and \(4, 1, 5\) .* sizes 3 and 5 in dimension 2"):
        broadcast_shapes((2, 3), (), (4, 1, 5))


@st.composite
def operands(draw):
    """An output of some layout and two inputs that broadcast to it, by shape and byte strides."""
    shape = draw(st.lists(st.integers(1, 4), max_size=5).map(tuple))
    itemsizes = tuple(draw(st.sampled_from([1, 4, 8])) for _ in range(3))
    order = draw(st.permutations(range(len(shape))))
    shapes, strides = [shape], []
    for _ in range(2):
        lead = draw(st.integers(0, len(shape)))
        shapes.append(tuple(draw(st.sampled_from([1, n])) for n in shape[lead:]))
    for p, (size, width) in enumerate(zip(shapes, itemsizes)):
        dims = [d for d in order if d < len(size)] if p == 0 or draw(st.booleans()) else range(len(size))
        step, result = width, [0] * len(size)
        for d in reversed(list(dims)):
            result[d] = step * draw(st.sampled_from([1, -1]))
            step *= size[d] * draw(st.sampled_from([1, 1, 2]))
        if p and draw(st.booleans()):
            result = [draw(st.sampled_from([s, 0])) for s in result]
        strides.append(tuple(result))
    return tuple(shapes), tuple(strides), itemsizes


def meetings(shape, strides, offsets):
    """The addresses, one an operand, that meet at each element: as a multiset."""
    result = []
    for index in itertools.product(*map(range, shape)):
        result.append(tuple(o + sum(i * s for i, s in zip(index, step)) for step, o in zip(strides, offsets)))
    return sorted(result)


@given(operands())
def test_plan_visits_the_same_addresses_together(case):
    shapes, strides, itemsizes = case
    loops = plan(shapes, strides, itemsizes)
    spread = [broadcast_strides(shapes[0], n, s) for n, s in zip(shapes, strides)]
    assert meetings(loops.shape, loops.strides, loops.offsets) == meetings(shapes[0], spread, (0, 0, 0))
    assert 1 not in loops.shape
    assert all(s > 0 for s in loops.strides[0]), "the output runs forward"


@given(operands())
def test_plan_is_coalesced_and_ordered(case):
    loops = plan(*case)
    for d in range(len(loops.shape) - 1):
        adjacent = all(s[d] == loops.shape[d + 1] * s[d + 1] for s in loops.strides)
        assert loops.kind == "transposed" or not adjacent, loops
    inner = [abs(s[-1]) for s in loops.strides if s]
    assert not inner or inner[0] == min(map(abs, loops.strides[0]))


@given(operands())
def test_plan_kind_tells_the_inner_steps(case):
    loops, itemsizes = plan(*case), case[2]
    inner = [s[-1] for s in loops.strides] if loops.shape else list(itemsizes)
    if loops.kind == "contiguous":
        assert inner == list(itemsizes)
    elif loops.kind == "scalar":
        assert inner[0] == itemsizes[0]
        assert all(s in (0, w) for s, w in zip(inner, itemsizes))
        assert inner != list(itemsizes)
    else:
        assert loops.kind in ("strided", "transposed")


def strides_of(*arrays):
    return tuple(a.shape for a in arrays), tuple(a.strides for a in arrays), tuple(a.itemsize for a in arrays)


def kind_of(*arrays):
    loops = plan(*strides_of(*arrays))
    return loops.kind, loops.shape


def test_kinds_by_example():
    a = np.zeros((64, 32), np.float32)
    row, column = np.zeros(32, np.float32), np.zeros((64, 1), np.float32)
    assert kind_of(a, a, a) == ("contiguous", (2048,))
    assert kind_of(a.T, a.T, a.T) == ("contiguous", (2048,))
    assert kind_of(a[::-1, ::-1], a[::-1, ::-1], a[::-1, ::-1]) == ("contiguous", (2048,))
    assert kind_of(a, a, row) == ("contiguous", (64, 32))
    assert kind_of(a, a, column) == ("scalar", (64, 32))
    assert kind_of(a, a, row[:1]) == ("scalar", (2048,))
    assert kind_of(a, a, a[::-1, ::-1]) == ("strided", (2048,))
    assert kind_of(a[:, ::2], a[:, ::2], a[:, ::2]) == ("strided", (1024,))
    assert kind_of(a, a, np.zeros((32, 64), np.float32).T) == ("transposed", (64, 32))
    assert kind_of(a[:0], a[:0], row) == ("empty", (0,))
    assert kind_of(*[np.zeros(())] * 3) == ("contiguous", ())


def test_transposed_dimension_is_next_to_the_innermost():
    out, x = np.zeros((5, 6, 70), np.float32), np.zeros((70, 6, 5), np.float32).T
    loops = plan(*strides_of(out, x))
    assert loops.kind == "transposed"
    assert loops.shape == (6, 5, 70)
    assert loops.strides[1][-2] == 4


def test_mixed_itemsizes_coalesce():
    assert kind_of(np.zeros((3, 4)), np.zeros((3, 4), np.int8), np.zeros((3, 4), np.float32)) == ("contiguous", (12,))


@pytest.mark.parametrize("ndim", [32, 64])
def test_many_dimensions(ndim):
    shape = (2,) + (1,) * (ndim - 2) + (3,)
    strides = (12,) + (4,) * (ndim - 1)
    assert plan((shape, shape), (strides, strides), (4, 4)) == StridedPlan((6,), ((4,), (4,)), (0, 0), "contiguous")
    every_other = tuple(8 * 2**d for d in reversed(range(ndim)))
    assert len(plan(((2,) * ndim,) * 2, (every_other, every_other), (4, 4)).shape) == 1


@given(st.lists(st.integers(1, 4), min_size=1, max_size=5).map(tuple), st.data())
def test_output_order_follows_the_first_full_size_input(shape, data):
    order = data.draw(st.permutations(range(len(shape))))
    x = np.zeros([shape[d] for d in order], np.float32).transpose(np.argsort(order))
    y = np.zeros(shape[1:], np.float64)
    result = output_strides(shape, (y.shape, x.shape), (y.strides, x.strides), 4)
    assert [s for s, n in zip(result, shape) if n > 1] == [s for s, n in zip(x.strides, shape) if n > 1]


def test_output_order_by_example():
    c, f, row = (24, 4), (4, 16), (4,)
    shape = (4, 6)
    assert output_strides(shape, (shape, shape), (c, f), 4) == c
    assert output_strides(shape, (shape, shape), (f, c), 4) == f
    assert output_strides(shape, ((6,), shape), (row, f), 4) == f
    assert output_strides(shape, ((6,), (4, 1)), (row, (4, 4)), 4) == c
    assert output_strides(shape, (shape,), ((0, 4),), 8) == (48, 8), "a repeated row says nothing about the order"
    assert output_strides(shape, (shape,), ((-4, -16),), 4) == f, "strides of the result are positive"
    assert output_strides((0, 3), ((0, 3),), ((12, 4),), 4) == (12, 4)


def test_plan_prints():
    text = str(plan(((4, 6), (4, 6), (6,)), ((24, 4), (24, 4), (4,)), (4, 4, 4)))
    assert text == "contiguous 4 x 6: out (24, 4), in1 (24, 4), in2 (0, 4)"
