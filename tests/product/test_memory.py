"""What docs/kernels.md says of memory: no path takes more than its buffers."""

import pickle
import tracemalloc
from functools import partial

import numba
import numpy as np
import pytest
from llvmlite import binding

import nbkernels
from nbkernels.cpu.gemm import context as words
from nbkernels.cpu.gemm import short
from nbkernels.cpu.gemm.block import PANEL, ROOM
from nbkernels.cpu.gemm.blocking import WAY, caches, small, vector_registers
from nbkernels.cpu.gemm.kinds import by_unit, default_tiles, kind_of
from nbkernels.cpu.gemm.paths import only
from nbkernels.cpu.gemm.stacks_float import PANELS
from nbkernels.cpu.runtime import workspace
from nbkernels.cpu.runtime.status import PACKED, PATHS
from nbkernels.jit.disk import files
from nbkernels.jit.disk.load import Parts
from tests.cases import TRANSPOSES, normal, operands
from tests.paths import way

OBJECTS = 20_000  # bytes of Python objects, and of what rounds addresses
# Panels of the threads beyond the first one, in the first call in which they meet (jit/abi/workspaces.py).
MEETING = (numba.get_num_threads() - 1) * (PANELS + 128)
SEGMENT = 4096


def peak(call):
    """Bytes that a call holds at its worst, kept pack buffers included."""
    workspace.forget()
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("at", ["taken", "kept"])
def test_the_kept_room_outlives_a_signal(at, monkeypatch):
    """That comes as the room is taken or given back: the next call finds it again."""

    def interrupted(*_):
        raise KeyboardInterrupt

    with workspace.room(1000) as first:
        pass
    with monkeypatch.context() as patch:
        if at == "taken":
            take = workspace._take()
            patch.setattr(workspace, "_take", lambda: lambda words: take(words) and interrupted())
        else:
            patch.setattr(workspace, "_rooms", Rooms(interrupted))
        with pytest.raises(KeyboardInterrupt), workspace.room(1000):
            pass
        rooms = list(workspace._rooms)
    workspace._rooms[:] = rooms
    for _ in range(2):
        with workspace.room(1000) as again:
            assert again == first
            assert workspace._room[workspace.HELD] == workspace.PYTHON
        assert workspace._room[workspace.HELD] == workspace.NOBODY


class Rooms(list):
    """The list of rooms, with a signal as one is put there."""

    def __init__(self, interrupted):
        super().__init__(workspace._rooms)
        self.interrupted = interrupted

    def append(self, room):
        super().append(room)
        self.interrupted()


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
        there = vector_registers() == 32 and (layout[0] == "N" or m * size % WAY)
        each = min(size * k * (m + tile.mr), caches()[1])
        return 0 if there or n <= (2 if tile.narrow else 5) * tile.nr else threads * each
    if path == "short":
        few = min(m, n)
        return threads * size * ((few + tile.mr) * k + short.STEPS * tile.nr + few * (short.BROAD // size + tile.nr))
    if path == "packed":
        kind = kind_of(dtype, dtype, dtype)
        tiles = default_tiles(kind)
        return sum(words.buffers(m, n, k, tiles, tiles.tile(kind), threads))
    return 0


SHAPES = [
    ("small", 60, 60, 60), ("gemv", 1, 2000, 9000), ("gemv", 5000, 1, 60), ("thin", 900, 800, 30),
    ("deep", 8, 300, 9000), ("deep", 1000, 10, 600), ("columns", 250, 250, 250), ("packed", 600, 700, 900),
    ("columns", 700, 40, 300), ("short", 16, 2048, 512),
    ("short", 20, 3000, 700),
]  # fmt: skip


@pytest.mark.parametrize(("path", "m", "n", "k"), SHAPES)
def test_a_product_takes_its_buffers(path, m, n, k):
    dtype, threads, (number,) = "float32", numba.get_num_threads(), (way for way, name in PATHS.items() if name == path)
    for layout in TRANSPOSES:
        a, b = operands(None, m, n, k, dtype, TRANSPOSES[layout], lambda _, *ones: np.ones(*ones))
        out = np.empty((m, n), dtype)
        with only(number):
            assert way(m, n, k, threads, dtype, layout) == path
            nbkernels.mm(a, b, out=out)  # compile
            assert out[0, 0] == k
            used = peak(partial(nbkernels.mm, a, b, out=out))
        assert used <= stated(path, m, n, k, layout, dtype, threads) + OBJECTS, layout


@pytest.mark.parametrize("threads", [1, 2, 3, 8])
@pytest.mark.parametrize(("m", "n", "k"), [(480, 960, 5000), (97, 101, 700), (5000, 33, 600), (16, 4800, 9000)])
def test_buffers_hold_the_planes_of_a_block(m, n, k, threads):
    """All of its elements, in as many pieces as threads have; by one thread the panels of a block of B at most."""
    tiles, kind = default_tiles(kind_of(*["float32"] * 3)), kind_of(*["float32"] * 3)
    _, b, plane = words.buffers(m, n, k, tiles, tiles.tile(kind), threads)
    assert plane >= 4 * words.even(m, tiles.mc, tiles.mr) * words.even(n, tiles.nc, tiles.nr)
    assert b >= 4 * min(k, tiles.kc) * min(n, tiles.nb)


@pytest.mark.parametrize(("left", "to"), [("int8", "int32"), ("float16", "float32"), ("complex64", "complex64")])
def test_other_dtypes_take_their_buffers(left, to):
    threads = numba.get_num_threads()
    for m, n, k in ((200, 300, 5000), (130, 1000, 90)):
        kind = by_unit(kind_of(left, left, to), m, n, k)
        tiles = default_tiles(kind)
        a, b, out = np.ones((m, k), left), np.ones((k, n), left), np.empty((m, n), to)
        call = partial(nbkernels.mm, a, b, out_dtype=to, out=out)
        call()
        assert peak(call) <= sum(words.buffers(m, n, k, tiles, tiles.tile(kind), threads)) + OBJECTS
    a, out = np.ones((500, 30, 40), left), np.empty((500, 30, 30), to)
    call = partial(nbkernels.bmm, a, a.transpose(0, 2, 1), out_dtype=to, out=out)
    call()
    panels = threads * sum(words.buffers(30, 30, 40, tiles, tiles.tile(kind), 1)[:2])
    assert peak(call) <= max((threads - 1) * ROOM, panels) + OBJECTS  # threads may not have met before


def test_rooms_that_compiled_code_keeps():
    """1 MiB for each of what runs small products and stacks, for jitted code, too, 64 KiB more for B in some, 128
    KiB for stacks, else nothing; read from the object code in the cache. With narrow vectors the products of stacks and
    jitted code read A in place."""
    for dtype in ("float32", "float64", "int8"):
        nbkernels.mm(*[np.ones((20, 20), dtype)] * 2)
    for number in PATHS:
        for dtype in ("float32", "float64"):  # whatever the processor's costs would choose
            with only(number):
                nbkernels.mm(*[np.ones((150, 150), dtype)] * 2)
    kept = {}
    for file in [*files.directory().glob("gemm_*.nbc"), *files.directory().glob("product_*.nbc")]:
        code = Parts(*pickle.loads(files.read(file))).code
        sections = binding.ObjectFileRef.from_data(code).sections()
        name = "product_checked" if file.name.startswith("gemm_serial") else file.name.rpartition("-")[0]
        # Whole KiB: a room that is acquire has a table of some words beside it.
        kept[name] = sum(section.size() for section in sections if b"bss" in (section.name() or b"")) & -1024
    rooms = {name: size for name, size in kept.items() if size > 4096}
    sizes = {
        "gemm_block": ROOM + PANEL,
        "product_": ROOM,
        **({} if small("float32").narrow else {"gemm_native": ROOM}),
        "gemm_batch_float": PANELS,
    }
    assert rooms == {name: size for name in kept for start, size in sizes.items() if name.startswith(start)}
    assert len(rooms) >= 3


@pytest.mark.parametrize(("count", "n"), [(2000, 8), (50, 30)])
def test_stacks_take_none(count, n):
    a, out = np.ones((count, n, n), np.float32), np.empty((count, n, n), np.float32)
    b = np.broadcast_to(a[:1], a.shape)
    for call in (lambda: nbkernels.bmm(a, b, out=out), lambda: nbkernels.matmul(a, a[:1], out=out)):
        call()
        assert peak(call) <= MEETING + OBJECTS


def test_stacks_of_larger_matrices_take_at_most_a_room_for_each_thread():
    """Where vectors are narrow, or A is stored by columns that share sets of L1, and more than five panels of B meet
    it. Else none."""
    threads = numba.get_num_threads()
    a, out = np.ones((2 * threads, 200, 200), np.float32), np.empty((2 * threads, 200, 200), np.float32)
    crowded, narrow = np.ones((2 * threads, 200, WAY // 4), np.float32)[..., :200], threads * small("float32").narrow
    for left, rooms in ((a, narrow), (a.swapaxes(1, 2), narrow), (crowded.swapaxes(1, 2), threads)):
        nbkernels.bmm(left, a, out=out)
        used = peak(partial(nbkernels.bmm, left, a, out=out))
        assert used <= rooms * ROOM + MEETING + OBJECTS


@only(PACKED)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_linear_layer_takes_no_transposed_copy(rng, dtype):
    """Y = X W', dX = dY W, dW = dY' X: the buffers, which are less than one operand."""
    n = 1600 if dtype == "float32" else 2400
    x, w = (normal(rng, (n, n), dtype) for _ in range(2))
    out = np.empty((n, n), dtype)
    for layout, a, b in (("NT", x, w.T), ("NN", x, w), ("TN", x.T, w)):
        nbkernels.mm(a, b, out=out)  # compile
        used = peak(partial(nbkernels.mm, a, b, out=out))
        assert used <= stated("packed", n, n, n, layout, dtype, numba.get_num_threads()) + OBJECTS
        assert used < x.nbytes


def test_linear_copies_no_operand():
    """The result, and the buffers of one product of 1024 rows, or of 256 products of four, which need none."""
    x, w, b = np.ones((4, 256, 1000)), np.ones((500, 1000)), np.ones(500)
    kind = kind_of("float64", "float64", "float64")
    tiles = default_tiles(kind)
    panels = sum(words.buffers(1024, 500, 1000, tiles, tiles.tile(kind), numba.get_num_threads())[:2])
    for y, buffers in ((x, panels), (x.transpose(1, 0, 2), 0)):
        nbkernels.linear(y, w, b)
        assert peak(partial(nbkernels.linear, y, w, b)) < 8 * 4 * 256 * 500 + buffers + min(x.nbytes, w.nbytes) / 2
