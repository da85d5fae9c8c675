"""What docs/products.md says of memory: no path takes more than its buffers."""

import tracemalloc

import numba
import numpy as np
import pytest

import nbkernels
from nbkernels.cpu import gemm, words
from nbkernels.cpu.kinds import default_tiles, kind_of
from nbkernels.cpu.tiles import small
from tests.cases import LAYOUTS, TRANSPOSES

OBJECTS = 20_000  # bytes of Python objects, and of what rounds addresses
SEGMENT = 4096


def peak(call):
    """Bytes that a call holds at its worst, kept pack buffers included."""
    words._rooms.clear()
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def stated(path, m, n, k, layout, dtype, threads):
    """Bytes, by the table of the document."""
    size, tile, segments = np.dtype(dtype).itemsize, small(dtype), -(-k // SEGMENT)
    if path == "gemv":
        return 8 * segments * m * n
    if path == "thin":
        return 0 if layout[1] == "N" else size * k * (n + tile.nr)
    if path == "deep":
        return size * (threads * tile.nr * min(k, SEGMENT) + segments * m * n)
    if path == "columns":
        return 0 if layout[0] == "N" else size * k * (m + tile.mr)
    if path == "packed":
        kind = kind_of(dtype, dtype, dtype)
        tiles = default_tiles(kind)
        return sum(words.buffers(m, n, k, tiles, tiles.tile(kind), threads))
    return 0


SHAPES = [
    ("small", 100, 100, 100), ("gemv", 1, 2000, 9000), ("gemv", 5000, 1, 60), ("thin", 900, 800, 40),
    ("deep", 8, 300, 9000), ("deep", 1000, 10, 600), ("columns", 250, 250, 250), ("packed", 600, 700, 900),
]  # fmt: skip


@pytest.mark.parametrize(("path", "m", "n", "k"), SHAPES)
def test_a_product_takes_its_buffers(path, m, n, k):
    dtype, threads = "float32", numba.get_num_threads()
    chosen = gemm.choose(m, n, k, threads)
    assert chosen == path or (path == "columns" and threads == 1)
    for layout in TRANSPOSES:
        a, b = (
            LAYOUTS[name](np.ones(shape, dtype))
            for name, shape in zip(TRANSPOSES[layout], ((m, k), (k, n)), strict=True)
        )
        out = np.empty((m, n), dtype)
        nbkernels.mm(a, b, out=out)  # compile
        assert out[0, 0] == k
        used = peak(lambda: nbkernels.mm(a, b, out=out))  # noqa: B023
        assert used <= stated(chosen, m, n, k, layout, dtype, threads) + OBJECTS, layout


@pytest.mark.parametrize(("count", "n"), [(2000, 8), (50, 60)])
def test_stacks_take_none(count, n):
    a, out = np.ones((count, n, n), np.float32), np.empty((count, n, n), np.float32)
    b = np.broadcast_to(a[:1], a.shape)
    for call in (lambda: nbkernels.bmm(a, b, out=out), lambda: nbkernels.matmul(a, a[:1], out=out)):
        call()
        assert peak(call) <= OBJECTS
