"""Calls of layouts that were planned before, and short rows that are put end to end, against NumPy."""

import numba
import numpy as np
import pytest

import nbkernels
from nbkernels.cpu.elementwise import fast as calls
from nbkernels.cpu.elementwise import gates
from nbkernels.cpu.elementwise import plan_cache as recall
from nbkernels.cpu.elementwise import schedule as nest
from nbkernels.strides import plan


def memory(op):
    """The plans that an operation's fast form keeps."""
    return getattr(calls, f"{op}_fast").calls.memory


def test_a_record_outlives_a_signal_that_comes_as_compiled_code_has_it():
    """Later calls of the layout would read what is there by then."""
    kept, entered, x = recall.Memory(), [], np.ones(3)

    def enter(record):
        entered.append(record)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        kept.keep((0, 0, 0), (), ((0, 0),) * 3, (x, x), enter, ())
    held = [*kept.records.values(), *kept.entering.values()]
    assert [record.ctypes.data for record, _ in held] == entered


def test_more_layouts_than_slots_and_every_call_twice(rng):
    whole = rng.standard_normal((2, 5, 40, 40)).astype("f4")
    used = memory("multiply")
    for rows in range(2, 38):
        for step in (2, 3, -2, -1, 1, 4, -3, 5):
            x, y = (z[:3, :rows, ::step][..., :8] for z in whole)
            for _ in range(2):
                result = nbkernels.multiply(x, y)
                assert np.array_equal(result, x * y)
                assert result.strides == (x * y).strides
    assert 0 < len(used.records) <= recall.SLOTS
    for slot, (record, _) in used.records.items():
        assert used.slots[slot] == record.ctypes.data


def test_a_result_has_its_own_order_whatever_was_called_before(rng):
    x, y = (rng.standard_normal((9, 7, 10)).astype("f4")[:, 1:, ::2] for _ in range(2))
    odd = np.empty((6, 5, 9), "f4").transpose(2, 0, 1)
    for _ in range(2):
        assert nbkernels.maximum(x, y, out=odd) is odd
        assert nbkernels.maximum(x, y).strides == np.maximum(x, y).strides
        np.testing.assert_array_equal(odd, np.maximum(x, y))


@pytest.mark.parametrize("ndim", [32, 33, 64])
def test_as_many_dimensions_as_numpy_has(ndim, rng):
    base = np.ascontiguousarray(rng.standard_normal((2,) * 12).astype("f4").transpose(rng.permutation(12)))
    wide = (1,) * (ndim - 12) + base.shape
    for x in (base[..., ::-1].reshape(wide), base.T.reshape(wide)):
        y, out = x.swapaxes(-1, -2), np.zeros(wide, "f4").swapaxes(-1, -3)
        for _ in range(2):
            np.testing.assert_array_equal(nbkernels.add(x, y), x + y)
            np.testing.assert_array_equal(nbkernels.add(x, y, out=out), x + y)


def test_known_layouts_with_faults_are_done_once():
    """In place, where a second pass would divide once more."""
    divisor = np.arange(120).reshape(3, 8, 5)[:, ::2, 1:4] % 7
    for _ in range(3):
        x = np.arange(1000, 1120).reshape(3, 8, 5)[:, ::2, 1:4]
        with np.errstate(divide="ignore"):
            expected = x // divisor
        with pytest.warns(RuntimeWarning, match="divide by zero"):
            assert nbkernels.floor_divide(x, divisor, out=x) is x
        np.testing.assert_array_equal(x, expected)


@pytest.mark.parametrize("op", ["pow", "atan2"])
def test_costly_operations_on_small_spread_inputs(op, rng):
    """By the bits that they have in one piece."""
    x, y = rng.random((40, 34)) + 0.5, rng.random((34, 40))
    function, whole = getattr(nbkernels, op), x.copy()
    for _ in range(2):
        for a, b in ((x, y.T), (x[:, ::2], y.T[:, 1::2]), (x.ravel()[::3], y.ravel()[::3])):
            np.testing.assert_array_equal(function(a, b), function(a.copy("C"), b.copy("C")))
    assert np.array_equal(x, whole)


def test_negative_powers_of_a_known_layout():
    x, y, out = np.full((4, 3, 6), 3)[:, :2, ::2], np.full((4, 3, 6), 2)[:, :2, ::2], np.zeros((4, 2, 3), int)
    for _ in range(2):
        assert (nbkernels.pow(x, y, out=out) == 9).all()
    y[3, 1, 2] = -1
    with pytest.raises(ValueError, match="negative"):
        nbkernels.pow(x, y, out=out)
    assert (out == 9).all()


def test_overlap_and_read_only_outputs_of_a_known_layout(rng):
    apart = rng.standard_normal((2, 12, 12))
    whole = rng.standard_normal((12, 12))
    layout = np.s_[::2, 1:12:2]
    for _ in range(2):
        x, y, out = apart[0][layout], apart[1][layout], np.empty((12, 12))[layout]
        assert np.array_equal(nbkernels.minimum(x, y, out=out), np.minimum(x, y))
    for shift in (0, 1, 2):  # in place, apart though their extents meet, and overlapping
        base = whole.copy()
        out, x = base[: 12 - shift : 2, 1:12:2], base[shift::2, 1:12:2]
        expected = np.minimum(x, apart[1][layout][: len(x)])
        for _ in range(2):
            base[...] = whole
            assert np.array_equal(nbkernels.minimum(x, apart[1][layout][: len(x)], out=out[: len(x)]), expected)
    out = np.zeros((12, 12))[layout]
    out.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        nbkernels.minimum(apart[0][layout], apart[1][layout], out=out)
    assert not out.any()


@pytest.mark.parametrize("workers", [1, 2])
def test_large_known_layouts_over_threads(workers, rng):
    available = numba.get_num_threads()
    numba.set_num_threads(min(workers, available))
    try:
        n = gates.PARALLEL
        x, y = rng.standard_normal((2, n // 4, 6, 3)).astype("f4")[..., 1:6:2, :]
        for scale in (1, 2.5):
            for _ in range(3):
                result = nbkernels.add(x, y, alpha=scale)
                assert np.array_equal(result, x + y * np.float32(scale))
    finally:
        numba.set_num_threads(available)


@pytest.mark.parametrize("dtype", ["i1", "f2", "f4", "f8", "c16"])
@pytest.mark.parametrize("columns", [1, 2, 5, 16, 31, 63])
def test_short_rows_end_to_end(dtype, columns, rng):
    """Every distance of neighbours, rows at the very end of memory, repeated rows and columns, masks."""
    rows = 1 + 128 // columns
    for step in (1, 2, 3, 4, 7, -1, -2, -4, -6):
        size = (columns - 1) * abs(step) + 1
        views = []
        for seed in range(2):
            whole = rng.integers(-9, 9, (5, rows, size + seed)).astype(dtype)[..., seed:]
            views.append(whole[..., ::step])
        x, y = views
        for other in (y, y[:1], y[:, :1], y[..., :1], y[0, 0]):
            assert np.array_equal(nbkernels.subtract(x, other), x - other)
        mask = rng.integers(0, 2, x.shape).astype(bool)
        out, expected = (np.full(x.shape, 7, dtype) for _ in range(2))
        assert np.array_equal(
            nbkernels.subtract(x, y, out=out, where=mask), np.subtract(x, y, out=expected, where=mask)
        )


def test_what_is_collected():
    def loops(shape, *strides):
        return nest.Nest(plan((shape,) * len(strides), strides, (4,) * len(strides)), 0, (4,) * len(strides))

    dense, spread = (144, 24, 4), (800, 64, 8)
    assert loops((50, 6, 6), dense, spread, dense).gathered == (0, 4, 0)
    assert loops((50, 6, 6), dense, spread, (0, 0, 0)).gathered == (0, 4, 0)
    assert loops((50, 6, 6), dense, (0, 0, 4), dense).gathered == (0, 4, 0)
    assert not loops((50, 6, 6), spread, dense, dense).gathered  # the output is not contiguous
    assert not loops((5, 6, 100), (2400, 400, 4), (9600, 1600, 8), (2400, 400, 4)).gathered  # long rows
