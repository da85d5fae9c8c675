"""Element-wise operations called from other jitted functions: the bits, dtypes and errors of the calls from Python."""

import functools
import itertools
from array import array

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import nbkernels as nb
import nbkernels.jitted
from nbkernels.cpu.elementwise import planner as within
from nbkernels.strides import plan
from tests.cases import loose
from tests.compare import same_bits
from tests.elementwise.test_strided_plan import operands


@numba.njit
def add(x, y):
    return nb.add(x, y)


@numba.njit
def add_into(x, y, out):
    return nb.add(x, y, out=out)


@numba.njit
def add_scaled(x, y, alpha):
    return nb.add(x, y, alpha=alpha)


@numba.njit
def subtract_in_place(x, y):
    return nb.subtract_(x, y)


@numba.njit
def multiply(x, y):
    return nb.multiply(x, y)


@numba.njit
def powers(x, y):
    return nb.pow(x, y)


@numba.njit
def add_wide(x, y):
    return nb.add(x, y, dtype=np.float64)


@numba.njit
def add_narrow_into(x, y, out):
    return nb.add(x, y, out=out, dtype=NARROW)


NARROW = np.dtype("float32")


@numba.njit
def less(x, y):
    return nb.less(x, y)


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("function", "call", "x", "y"),
    [
        (nb.add, add, np.arange(12.0, dtype="f4").reshape(3, 4), np.arange(4)),  # float64, of int64 and float32
        (nb.multiply, multiply, np.array([[100], [-3]], "i1"), np.array([3, 100, 7], "u1")),  # int16
        (nb.multiply, multiply, np.array([[1 + 2j, -0.0]], "c8"), np.array([True, False])),
        (nb.less, less, np.array([2**63 + 1, 0], "u8"), np.array([[2**63 - 1], [-1]])),  # which no dtype holds both
        (nb.pow, powers, np.array([[3, 5], [2, 0]], "i4").T, np.array([3, 40], "i4")),
        (nb.add, add, np.array(1.5), np.array(2, "i1")),
    ],
    ids=lambda x: getattr(x, "__name__", None),
)
def test_arrays_of_any_two_dtypes_broadcast(function, call, x, y):
    same_bits(call(x, y), function(x, y))


@pytest.mark.parametrize(
    ("function", "call", "x", "number"),
    [
        (nb.add, add, np.ones(3, "f4"), 0.1),
        (nb.add, add, np.ones((2, 3), "i1"), -3),
        (nb.add, add, np.ones(3, "f4"), np.float64(0.1)),  # in jitted code as weak as the float it looks like
        (nb.add, add, np.ones(3, "i2"), np.float32(0.1)),
        (nb.less, less, np.array([5, 200], "u1"), -1),
    ],
)
def test_numbers_are_weak_where_pythons_are(function, call, x, number):
    python = number.item() if isinstance(number, np.float64) else number
    same_bits(call(x, number), function(x, python))


def test_the_dtype_that_is_asked_for():
    x, y, out = np.array([1e8, 0.1], "f4"), np.array([1.0, 0.2], "f4"), np.zeros(2)
    same_bits(add_wide(x, y), nb.add(x, y, dtype=np.float64))
    assert add_narrow_into(x, y, out) is out
    same_bits(out, nb.add(x, y).astype("f8"))
    with pytest.raises(numba.TypingError, match="not defined for complex64"):
        add_wide(np.ones(2, "c8"), y)
    same_bits(numba.njit(lambda x: nb.add(x, 0.1, dtype="float64"))(x), nb.add(x, 0.1, dtype="float64"))
    with pytest.raises(numba.TypingError, match="add: dtype='float46' is none that NumPy knows"):
        numba.njit(lambda x: nb.add(x, x, dtype="float46"))(x)
    with pytest.raises(numba.TypingError, match=r"one of NumPy's, as np.float64, is wanted"):
        numba.njit(lambda x: nb.add(x, x, dtype=2))(x)


def test_layouts_and_outs(rng):
    for layouts in itertools.product((("C", 1), ("F", 1), ("C", 2), ("F", -1)), repeat=3):
        x, y, out = (loose(rng.standard_normal((67, 130)), *layout) for layout in layouts)
        assert add_into(x, y, out) is out
        same_bits(out, x + y)
    column = np.asfortranarray(rng.standard_normal((67, 130)))
    found = add(column, column)
    assert found.flags.f_contiguous
    same_bits(found, column + column)


def test_alpha_and_in_place(rng):
    x, y = rng.standard_normal((2, 50, 3)).astype("f4")
    for alpha in (1.0, 0.1, -0.0):
        same_bits(add_scaled(x, y, alpha), nb.add(x, y, alpha=alpha))
    expected = x - y[0]
    assert subtract_in_place(x, y[0]) is x
    same_bits(x, expected)


@numba.njit
def add_where(x, y, out, where):
    return nb.add(x, y, out=out, where=where)


@numba.njit
def powers_where(x, y, where):
    return nb.pow_(x, y, where=where)


def test_where(rng):
    x, y = rng.standard_normal((2, 67, 130))
    for shape, order in (((67, 130), "C"), ((67, 130), "F"), ((67, 1), "C")):
        mask = loose(rng.random(shape) < 0.5, order)
        out, expected = np.full((2, 67, 130), 7.0)
        nb.add(x, y, out=expected, where=mask)
        assert add_where(x, y, out, mask) is out
        same_bits(out, expected)
    for number in (True, False):
        same_bits(add_where(x, y, np.zeros_like(x), number), np.where(number, x + y, 0))
    flags = rng.random((5, 5)) < 0.5
    expected = nb.add(flags, True, out=flags.copy(), where=flags.T.copy())
    same_bits(add_where(flags, True, flags, flags.T), expected)  # a mask that is being written
    with pytest.raises(ValueError, match="do not broadcast"):
        add_where(x, y, out, loose(np.ones((67, 3), bool)))
    x = np.array([[3, 5], [2, 0]], "i4")
    same_bits(powers_where(x, np.array([2, -1], "i4"), np.array([True, False])), np.array([[9, 5], [4, 0]], "i4"))
    with pytest.raises(ValueError, match="negative integer powers"):
        powers_where(x, np.array([2, -1], "i4"), np.array([False, True]))
    new = numba.njit(lambda x, mask: nb.multiply(x, 2, where=mask))(np.arange(3.0), np.array([[True], [True]]))
    same_bits(new, np.array([[0.0, 2, 4]] * 2))
    with pytest.raises(numba.TypingError, match="an array of bools, or a bool, is wanted"):
        add_where(x, x, x, x)


def test_overlap_of_out_and_inputs(rng):
    for out_rows, rows in itertools.product((slice(1, None), slice(None, -1)), repeat=2):
        room = loose(rng.standard_normal((41, 8)))
        out, x, y = room[out_rows], room[rows], room[rows, ::-1]
        expected = x + y
        add_into(x, y, out)
        same_bits(out, expected)


def test_errors_come_before_any_write():
    x, out = loose(np.ones((3, 4)), step=2), loose(np.full((3, 4), np.nan))
    alike = np.lib.stride_tricks.as_strided(out, (3, 4), (8, 8))
    for error, why, call in (
        (ValueError, "do not broadcast", lambda: add_into(x, x[:2], out)),
        (ValueError, "not the result's shape", lambda: add_into(x, x, out[:2])),
        (ValueError, "not the result's shape", lambda: add_into(x[:1], x[:1], out)),
        (ValueError, "share memory", lambda: add_into(x, x, alike)),
        (OverflowError, r"other is out of bounds for int8 \(-128 to 127\)", lambda: add(np.ones((2, 3), "i1"), 300)),
        (ValueError, "negative integer powers", lambda: powers(np.ones((2, 2), "i4").T, np.array([3, -1], "i4"))),
        (ValueError, "do not broadcast", lambda: powers(np.ones((2, 3), "i4").T, np.array([3, 1, 1], "i4"))),
    ):
        with pytest.raises(error, match=why):
            call()
    assert np.isnan(out).all()


@pytest.mark.parametrize(
    ("call", "args", "why"),
    [
        (add, (1, 2.0), "no array among"),
        (add, ([1.0], np.ones(3)), "an array or a number is wanted"),
        (add, (np.ones(3, "M8[s]"), np.ones(3)), "self has dtype datetime64"),
        (numba.njit(lambda x, y: nb.bitwise_and(x, y)), (np.ones(3), np.ones(3)), "not defined for float64"),
        (add_into, (np.ones(3), np.ones(3), np.ones(3, int)), "cannot be cast"),
        (add_into, (np.ones(3), np.ones(3), np.broadcast_to(1.0, (3,))), "to write to is wanted"),
        (add_into, (np.ones(3), np.ones(3), np.ones((1, 3))), "1 dimensions"),
        (add_scaled, (np.ones(3, int), np.ones(3, int), 0.5), "alpha=1.0 is a float"),
        (numba.njit(lambda x, y: nb.multiply(x, y, alpha=2)), (np.ones(3), np.ones(3)), "takes no alpha"),
    ],
)
def test_types_that_operations_do_not_take_are_told(call, args, why):
    with pytest.raises(numba.TypingError, match=why):
        call(*args)


@functools.cache
def of_any_strides():
    """Operations of 3-D arrays, compiled once for all strides: of two, and of two with an out."""
    f8, i4, b1 = (numba.types.Array(t, 3, "A") for t in (numba.float64, numba.int32, numba.boolean))
    less_into = numba.njit((f8, i4, b1))(lambda x, y, out: nb.less(x, y, out=out))
    in_place = numba.njit((f8, i4))(lambda x, y: nb.multiply_(x, y))
    return numba.njit((f8, i4))(multiply.py_func), less_into, in_place


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_any_layouts_give_what_python_calls_give(data):
    """New, into an out and in place."""
    multiply, less_into, multiply_in_place = of_any_strides()
    shape = tuple(data.draw(st.lists(st.sampled_from([0, 1, 2, 9, 70]), min_size=3, max_size=3)))
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))

    def array(dtype, broadcast=True):
        sizes = [n if not broadcast or data.draw(st.booleans()) else 1 for n in shape]
        order = data.draw(st.permutations(range(3)))
        steps = [data.draw(st.sampled_from([1, -1, 2, -3])) for _ in range(3)]
        room = rng.integers(-9, 9, [sizes[d] * abs(steps[d]) + 1 for d in order]).astype(dtype)
        room = room.transpose(np.argsort(order))[tuple(slice(None, None, s) for s in steps)]
        return np.lib.stride_tricks.as_strided(room, sizes, room.strides)

    x, y = array("f8"), array("i4")
    same_bits(multiply(x, y), nb.multiply(x, y))
    expected = nb.less(x, y)
    out = array(bool, False)[tuple(slice(n) for n in expected.shape)]
    if out.shape == expected.shape:
        assert less_into(x, y, out) is out
        same_bits(out, expected)
    z = array("f8", False)
    try:
        expected = nb.multiply_(z.copy(), y)
    except ValueError:  # y's shape is the larger one
        return
    assert multiply_in_place(z, y) is z
    same_bits(z, expected)


@numba.njit(parallel=True)
def rows(x, y):
    out = np.empty_like(x)
    for i in numba.prange(len(x)):
        nb.add(x[i], y, out=out[i])
    return out


def test_in_parallel_loops(rng):
    x = rng.standard_normal((40, 30))
    same_bits(rows(x, x[0]), x + x[0])


@numba.njit
def planned(words, plan):
    """The words of a plan, and how many loops it has."""
    return within._planned(words, within.loops_at(plan))


@settings(max_examples=300, deadline=None)
@given(operands())
def test_plans_are_those_of_strides(layout):
    shapes, strides, itemsizes = layout
    words = [within.OPERAND.array() for _ in range(within.OPERANDS)]
    for block, size, steps, width in zip(words, shapes, strides, itemsizes):
        block.width, block.ndim = width, len(size)
        block.shape[: len(size)], block.step[: len(size)] = array("q", size), array("q", steps)
    found, blocks = within.LOOPS.array(), np.array(words)
    loops, transposed = planned(blocks.ctypes.data, found.buffer_info()[0])
    expected = plan(shapes, strides, itemsizes)
    sizes, *steps = np.array(found[within.LOOPS["lead"] :][: loops * within.ROW]).reshape(-1, within.ROW).T
    skipped = loops - len(expected.shape)
    assert tuple(sizes) == (1,) * skipped + expected.shape
    assert tuple(tuple(s[skipped:]) for s in steps) == (*expected.strides, (0,) * len(expected.shape))  # no mask
    assert tuple(found.base) == (*expected.offsets, 0)
    assert transposed == (expected.kind == "transposed")
