"""Transposed operands: squares in registers; beyond the caches tiles and lines; all end anywhere."""

import numpy as np
import pytest

from nbkernels import add, fuse, less


@pytest.mark.sampled
@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "float16"])
@pytest.mark.parametrize(("rows", "columns"), [(64, 64), (61, 73), (7, 700), (700, 7), (3, 2000), (2000, 3), (90, 300)])
def test_squares_that_end_anywhere(rows, columns, dtype, rng):
    count = rows * columns
    for start in (0, 1, 5):
        x = rng.integers(-9, 9, count + 16).astype(dtype)[start : start + count].reshape(columns, rows).T
        y = rng.integers(-9, 9, (rows, columns)).astype(dtype)
        room = np.full(count + 40, 77, dtype)
        out = room[20 + start : 20 + start + count].reshape(rows, columns)
        for first, second in ((y, x), (x, y), (x, x[::-1]), (x, y[0]), (y[:, :1], x)):
            expected = first + second
            out[...] = 77
            np.testing.assert_array_equal(add(first, second, out=out), expected)
            assert (room[: 20 + start] == 77).all()
            assert (room[20 + start + count :] == 77).all()
        truths = np.full(count + 40, 77, np.int8)
        into = truths[20 + start : 20 + start + count].view(bool).reshape(rows, columns)
        np.testing.assert_array_equal(less(y, x, out=into), y < x)
        assert (truths[: 20 + start] == 77).all()
        assert (truths[20 + start + count :] == 77).all()
        np.testing.assert_array_equal(add(y, x, alpha=2), y + 2 * x)
        np.testing.assert_array_equal(add(y.astype("int32"), x, out=np.empty(y.shape)), y + x)
        z = y.copy()
        add(z, x, out=z)
        np.testing.assert_array_equal(z, y + x)


def test_squares_of_every_layer(rng):
    x = rng.integers(-9, 9, (5, 6, 33, 40)).astype("float32")
    y = rng.integers(-9, 9, (5, 6, 40, 33)).astype("float32")
    turned, back = x.transpose(0, 1, 3, 2), np.ascontiguousarray(x[::-1])[::-1].transpose(0, 1, 3, 2)
    np.testing.assert_array_equal(add(y, turned, out=np.empty_like(y)), y + turned)
    np.testing.assert_array_equal(
        add(y[:, ::2], back[:, ::2], out=np.empty_like(y[:, ::2])), y[:, ::2] + turned[:, ::2]
    )


@pytest.mark.parametrize("dtype", ["int32", "int64"])
@pytest.mark.parametrize(("rows", "columns"), [(1031, 1039), (45, 30_000), (30_000, 45)])
def test_more_than_four_mebibytes_from_anywhere_in_a_line(rows, columns, dtype):
    count = rows * columns
    for start in (0, 5):
        x = np.arange(count + 16, dtype=dtype)[start : start + count].reshape(columns, rows).T
        y = np.arange(count, dtype=dtype)[::-1].reshape(rows, columns)
        room = np.full(count + 40, -1, dtype)
        out = room[20 + start : 20 + start + count].reshape(rows, columns)
        add(y, x, out=out)
        np.testing.assert_array_equal(out, x + y)
        assert (room[: 20 + start] == -1).all()
        assert (room[20 + start + count :] == -1).all()
        np.testing.assert_array_equal(fuse(lambda a, b, c: a + b - c)(x, y, x[::-1]), x + y - x[::-1])


@pytest.mark.sampled
@pytest.mark.parametrize("dtype", ["int8", "int16", "float32", "int64"])
@pytest.mark.parametrize("rows", [45, 321, 2048])
def test_streamed_rows_of_whole_lines(rows, dtype, rng):
    columns = (16 << 20) // rows // np.dtype(dtype).itemsize // 64 * 64 + 64
    for start, spare in ((0, 0), (5, 64)):
        room = np.resize(rng.integers(-9, 9, 99_991).astype(dtype), rows * columns + 16)
        x, y = (room[start : start + rows * columns].reshape(columns, rows).T, room[: rows * columns].reshape(rows, -1))
        whole = np.full((rows + 2, columns + spare), 77, dtype)
        out = whole[1:-1, :columns]
        for first, second in ((y, x), (x, y[:1]), (x[::-1], y)):
            add(first, second, out=out)
            np.testing.assert_array_equal(out, first + second)
        fuse(lambda a, b, c: a + b - c)(x, y, x[::-1], out=out)
        np.testing.assert_array_equal(out, x + y - x[::-1])
        assert (whole[0] == 77).all()
        assert (whole[-1] == 77).all()
        assert (whole[:, columns:] == 77).all()


@pytest.mark.parametrize("dtype", ["int16", "float32", "float64"])
def test_several_outputs_one_of_them_transposed(dtype, rng):
    a, b = rng.integers(-9, 9, (2, 130, 300)).astype(dtype)
    sums, differences = np.empty_like(a), np.empty((300, 130), dtype).T
    fuse(lambda a, b: (a + b, a - b))(a, b, out=(sums, differences))
    np.testing.assert_array_equal(sums, a + b)
    np.testing.assert_array_equal(differences, a - b)
