"""Element-wise kernels on every layout: overlap, steps that loops are made for, large arrays, many dimensions."""

import itertools

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nbkernels
from nbkernels.cpu.elementwise import elementwise, gates
from nbkernels.cpu.runtime import threads
from nbkernels.strides import plan
from tests.compare import same_bits
from tests.elementwise.common import reference, run, values

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # NumPy's, of overflow and division by zero


@given(st.integers(0, 40), st.integers(0, 40), st.integers(1, 60), st.sampled_from([1, -1, 2]), st.booleans())
def test_out_that_overlaps_an_input(shift_out, shift_x, n, step, first):
    base = np.arange(200, dtype="f4")
    cut = [slice(s, s + n * abs(step), abs(step)) for s in (shift_out, shift_x)]
    out, x = base[cut[0]], base[cut[1]][:: 1 if step > 0 else -1]
    other = np.linspace(0, 1, n, dtype="f4")
    expected = np.add(x, other)
    run("add", *((x, other) if first else (other, x)), out)
    same_bits(out, expected)


@pytest.mark.parametrize("dtypes", [("u2", "f8"), ("i8", "i8"), ("f8", "f8"), ("u1", "f8")], ids="-".join)
@pytest.mark.parametrize(("op", "written"), [("less", "?"), ("equal", "?"), ("add", "i1")])
def test_masks_of_any_steps_leave_what_they_hide(op, written, dtypes):
    """Long rows of one byte an element, from every place in a line on: LLVM 22 gives lanes that are none a mask of
    their own, in loops of several vectors before a row's first whole line, and stores by it."""
    rng, n = np.random.default_rng(0), 1 << 15
    x, y = (rng.integers(1, 5, n).astype(dtype) for dtype in dtypes)
    room = np.full(n + 128, 7, np.uint8)
    for step, begins in itertools.product((1, -1, 2, -2, 3, -4), range(0, 64, 5)):
        mask = (rng.random(n * abs(step)) < 0.5)[::step]
        out = room[64 + begins - room.ctypes.data % 64 :][:n].view(written)
        out[...], expected = 1, np.ones(n, written)
        getattr(np, op)(x, y, out=expected, where=mask, casting="unsafe")
        same_bits(run(op, x, y, out, where=mask, casting="unsafe"), expected)


WINDOWS = st.tuples(st.integers(0, 5), st.sampled_from([1, -1, 2, -2, 3]))


@given(st.tuples(WINDOWS, WINDOWS), st.tuples(WINDOWS, WINDOWS), st.tuples(WINDOWS, WINDOWS), st.booleans())
def test_windows_of_one_array(first, second, third, turned):
    """out and both inputs cut from the same memory, interleaved, crossed, shifted or reversed."""
    base = np.arange(900, dtype="f4").reshape(30, 30)

    def window(spans, n=3):
        view = base[tuple(slice(10 + a, None, s) if s > 0 else slice(10 + a + 3, None, s) for a, s in spans)]
        return view[:n, :n]

    out, x, y = window(first), window(second), window(third)
    y = y.T if turned else y
    expected, before = np.add(x, y), base.copy()
    written = np.zeros((30, 30), bool)
    np.lib.stride_tricks.as_strided(
        written.ravel()[(out.ctypes.data - base.ctypes.data) // 4 :], out.shape, [s // 4 for s in out.strides]
    )[...] = True
    assert nbkernels.add(x, y, out=out) is out
    same_bits(out, expected)
    np.testing.assert_array_equal(base[~written], before[~written])


def test_views_that_interleave_are_not_copied():
    """Their extents meet, their elements do not: an exact answer is asked for, and says so."""
    base = np.arange(64, dtype="f4").reshape(8, 8)
    for out, x in ((base[:, ::2], base[:, 1::2]), (base[::2], base[1::2]), (base[:, :4], base[:, 4:])):
        assert elementwise.apart(out, x) is x
    shifted = base[:, 4:8]
    assert elementwise.apart(base[:, 1:5], shifted) is not shifted


def test_out_that_is_the_transpose_of_an_input():
    base = np.arange(100, dtype="f4").reshape(10, 10)
    expected = base + base.T
    run("add", base, base.T, base)
    same_bits(base, expected)


def test_out_that_holds_the_broadcast_row():
    base = np.arange(20, dtype="f4").reshape(4, 5)
    expected = base + base[1]
    run("add", base, base[1], base)
    same_bits(base, expected)


def test_in_place_makes_no_copy(monkeypatch):
    x = np.ones((50, 40), "f4")
    monkeypatch.setattr(np, "shares_memory", lambda *a, **k: pytest.fail("a copy was considered"))
    run("add", x, x, x)
    run("multiply", x[::2], x[::2], x[::2])
    assert x[1, 0] == 2
    assert x[0, 0] == 4


@pytest.mark.parametrize(
    ("dtypes", "steps"),
    [
        ("f4 f4", (2, 2)),
        ("f4 f8", (-2, 3)),
        ("i1 f4", (4, -4)),
        ("f4 f4", (-1, 1)),
        ("f8 i2", (-1, 0)),
        ("c8 f4", (3, 1)),
        ("c16 f8", (2, -2)),
    ],
)
def test_steps_that_loops_are_made_for(dtypes, steps, rng):
    """Rows of all lengths modulo a vector; what lies behind the last element of a row is not read."""
    for rows, columns in ((1, 4096), (41, 101), (60, 79), (900, 5), (300, 14), (200, 23)):
        views = []
        for dtype, step in zip(dtypes.split(), steps):
            size = max(1, (columns - 1) * abs(step) + 1)
            whole = values(rng, (rows, size), "f4").astype(dtype)
            views.append(np.broadcast_to(whole[:, :1], (rows, columns)) if step == 0 else whole[:, ::step])
            assert views[-1].shape == (rows, columns)
        same_bits(run("multiply", *views), np.multiply(*views))
        mask = rng.integers(0, 2, (rows, 2 * columns)).astype(bool)[:, ::2]
        out, expected = (np.full((rows, columns), 77, np.result_type(*views)) for _ in range(2))
        same_bits(run("multiply", *views, out, where=mask), np.multiply(*views, out=expected, where=mask))


@pytest.mark.parametrize("columns", [1, 3, 130, 4099])
def test_large_arrays_stream_and_run_in_tasks(columns, monkeypatch, rng):
    """The paths of 16 M elements at a size that is quick: several tasks, streaming stores, ragged ends."""
    monkeypatch.setattr(gates, "PARALLEL", 1)
    monkeypatch.setattr(gates, "STREAMED", 1)
    monkeypatch.setattr(gates, "TURNED", 1)
    monkeypatch.setattr(threads, "count", lambda: 3)
    n = 40_000 // columns
    for dtype, shift in itertools.product(["float32", "complex64", "int8", "complex128"], [0, 1, 5]):
        x = values(rng, (n, columns), "float32" if dtype.startswith("complex") else dtype).astype(dtype)
        raw = np.full(x.nbytes + 64, 0x5A, np.uint8)
        out = raw[shift : shift + x.nbytes].view(dtype).reshape(x.shape)
        turned, spread = x.T.copy().T, x.repeat(2, 1)[:, ::2]
        others = x, x[0], x[:, :1], x[::-1], turned, spread, x[:1, :1]
        for first, y in *((x, y) for y in others), (turned, turned), (spread, spread[:, ::-1]):
            expected = reference("add", first, y)
            raw[:] = 0x5A
            same_bits(run("add", first, y, out), expected)
            assert (raw[:shift] == 0x5A).all()
            assert (raw[shift + x.nbytes :] == 0x5A).all()


def test_streaming_loops_are_chosen_by_size():
    a = np.empty(gates.STREAMED // 4, "f4")
    rows, narrow, turned = a.reshape(-1, 2048), a.reshape(-1, 4), np.empty((2048, len(a) // 2048), "f4").T
    cases = [
        (a, a, True),
        (a, a[:1], True),
        (a, a[::-1], True),
        (rows, rows[0], True),
        (a[1:], a[1:], False),  # less than STREAMED
        (narrow, narrow[0], False),  # rows shorter than some lines
        (rows, turned, True),  # by tiles of 16 lines
    ]
    for x, y, expected in cases:
        loops = plan((x.shape, x.shape, y.shape), (x.strides, x.strides, y.strides), (4, 4, 4))
        assert gates.streamed(loops, (4, 4, 4)) is expected, loops
    assert not gates.streamed(plan((a.shape,) * 2, ((8,), (4,)), (4, 4)), (4, 4))


@pytest.mark.parametrize("dtype", ["float16", ml_dtypes.bfloat16])
@pytest.mark.parametrize("op", ["add", "maximum", "less"])
def test_rows_of_halves_of_every_length(op, dtype, rng):
    """By vectors of ever fewer elements: the bits of single elements, also in place, and nothing beyond a row."""
    function = getattr(nbkernels, op)
    x, y = rng.standard_normal((2, 3, 150)).astype(dtype)
    for n in range(140):
        for other in (y[:, :n], y[:1, :n], y[:, :1]):
            expected = np.array([[function(a, b) for a, b in zip(*rows)] for rows in
                                 zip(x[:, :n:7], np.broadcast_to(other, (3, n))[:, ::7])])  # fmt: skip
            out = np.full((3, 150), 9, bool if op == "less" else dtype)
            function(x[:, :n], other, out=out[:, :n])
            np.testing.assert_array_equal(out[:, :n:7].astype("f4"), expected.reshape(3, -1).astype("f4"))
            assert (out[:, n:] == np.array(9).astype(out.dtype)).all()
        if op != "less":
            place = x.copy()
            function(place[:, :n], y[:, :n], out=place[:, :n])
            np.testing.assert_array_equal(place[:, n:].astype("f4"), x[:, n:].astype("f4"))
            np.testing.assert_array_equal(place[:, :n].astype("f4"), function(x[:, :n], y[:, :n]).astype("f4"))


def test_short_rows_beside_one_row_or_a_column(rng):
    """They go end to end; what all rows share is put there once, however full the first run is."""
    for dtype in ("float32", "int8", "complex128"):
        for shape in ((256, 3), (2711, 3), (9001, 2), (40, 70, 5), (300, 4, 2, 3), (2, 3000, 4)):
            x = rng.integers(0, 50, shape).astype(dtype)
            others = x.reshape(-1, shape[-1])[1].copy(), x[..., :1].copy(), x[:1].copy(), x[::-1]
            for y in others:
                same_bits(nbkernels.subtract(x, y), np.subtract(x, y))
                same_bits(nbkernels.subtract(y, x), np.subtract(y, x))
                same_bits(nbkernels.add_(x.copy(), y), np.add(x, y))
            same_bits(nbkernels.where(x == 7, x, others[0]), np.where(x == 7, x, others[0]))
            apart = x[:, : shape[1] // 2 + 1]  # rows that are no one stretch of memory
            same_bits(nbkernels.subtract(apart, apart[(1,) * (x.ndim - 1)]), apart - apart[(1,) * (x.ndim - 1)])


def test_many_dimensions(rng):
    x = rng.standard_normal((2,) * 12).astype("f4").reshape((2, 1) * 12 + (1,) * 8)
    y = x.T
    same_bits(run("add", x, x), x + x)
    z = rng.standard_normal((2,) * 12)
    same_bits(run("add", z, z.T), z + z.T)
    same_bits(run("add", z[::-1, ::-1], z.T[..., ::-1]), z[::-1, ::-1] + z.T[..., ::-1])
    assert y.ndim == 32


def test_repeated_and_windowed_inputs(rng):
    x = rng.standard_normal(64)
    windows = np.lib.stride_tricks.sliding_window_view(x, 9)
    repeated = np.broadcast_to(x[:9], windows.shape)
    same_bits(run("multiply", windows, repeated), windows * repeated)
