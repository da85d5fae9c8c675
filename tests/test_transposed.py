"""Transposed operands too large for the caches: squares, tiles, lines and bands that end anywhere."""

import numpy as np
import pytest

from nbkernels import add, fuse


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
