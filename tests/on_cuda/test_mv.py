"""mv by rows that warps stage, and the segments of dot, interpreted (tests/ptx), against the CPU's bits."""

import re

import numpy as np
import pytest

import nbkernels
from tests.compare import same_bits

try:
    from nbkernels.cuda import assemble, mv
except (ImportError, RuntimeError) as error:
    pytest.skip(f"lacks the CUDA wheels: {str(error).splitlines()[0]}", allow_module_level=True)

from nbkernels.cuda.kinds import kind_of
from nbkernels.cuda.product.layout import Access
from nbkernels.cuda.rings import Staged, staged
from tests.on_cuda.test_interpreted import aligned, empty, numbers, readonly
from tests.ptx import launch
from tests.ptx.device import NEWEST, Device

# The CPU's first calls have the bits of its later ones.
pytestmark = [pytest.mark.filterwarnings("ignore::RuntimeWarning"), pytest.mark.usefixtures("at_first")]
FLOATS = ("float16", "bfloat16", "float32", "float64")


@pytest.fixture
def gpu(monkeypatch):
    return Device().installed(monkeypatch)


def form(gpu) -> Staged:
    """How the last mv was staged."""
    (made,) = gpu.launches[-1][0].arguments
    return made


def in_groups(layout, dtype):
    """Whether groups of threads take the rows: those of float64 that are moved by 16 bytes."""
    return dtype == "float64" and layout in ("rows", "rows reversed")


def shifted(x):
    """A C-order copy that begins one element after a multiple of 16 bytes."""
    whole = aligned(np.empty(x.size + 16 // x.itemsize, x.dtype))
    made = whole[1 : x.size + 1].reshape(x.shape)
    made[...] = x
    return made


def padded(x):
    """Rows that begin at multiples of 16 bytes, the last of them a ragged one."""
    wide = 16 // x.itemsize
    whole = aligned(np.empty((x.shape[0], -(-x.shape[1] // wide) * wide), x.dtype))
    made = whole[:, : x.shape[1]]
    made[...] = x
    return made


LAYOUTS = {
    "rows": padded,
    "rows, unaligned": shifted,
    "rows reversed": lambda x: padded(x[::-1])[::-1],
    "steps reversed": lambda x: padded(x[:, ::-1])[:, ::-1],
    "every second step": lambda x: np.repeat(x, 2, 1)[:, ::2],
    "columns": lambda x: padded(np.ascontiguousarray(x.T)).T,
    "columns, unaligned": lambda x: shifted(np.ascontiguousarray(x.T)).T,
    "columns reversed": lambda x: padded(np.ascontiguousarray(x.T)[::-1])[::-1].T,
}


def check(gpu, a, v, x=None, beta=0, alpha=1):
    out = empty(2 * a.shape[0], a.dtype.name)
    given = [None if each is None else gpu.array(readonly(each)) for each in (x, a, v)]
    mv.addmv(gpu.array(out[::2]), *given, beta, alpha)
    expected = nbkernels.mv(a, v) if x is None else nbkernels.addmv(x, a, v, beta=beta, alpha=alpha)
    same_bits(out[::2], expected)
    same_bits(out[1::2], empty(a.shape[0], a.dtype.name))


@pytest.mark.sampled
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts_of_rows(gpu, rng, layout, dtype):
    """Sizes around a block's rows and a stage's steps; nothing outside the arrays is read, or written beside out."""
    for m, k in ((1, 260), (31, 256), (32, 263), (33, 271), (64, 320), (67, 321)):
        a, v = LAYOUTS[layout](numbers(rng, m, k, dtype=dtype)), aligned(numbers(rng, k, dtype=dtype))
        check(gpu, a, v)
        if m == 67 and not in_groups(layout, dtype):  # more rows than a warp has, so that their order is known
            whole = layout in ("rows", "rows reversed", "columns", "columns reversed")
            assert form(gpu).access.vector == (16 // a.itemsize if whole else 1)
            assert form(gpu).access.plain == (not whole and a.itemsize < 4)
            assert form(gpu).access.order == ("l" if "columns" in layout else "k")


@pytest.mark.sampled
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("layout", ["rows", "columns"])
@pytest.mark.parametrize("k", [4096, 4097, 8192, 12300, 20500])
def test_segments_of_rows(gpu, rng, dtype, layout, k):
    """Of one warp, two and four, which have one each, none, or several; with a rest."""
    a, v, x = numbers(rng, 33, k, dtype=dtype), aligned(numbers(rng, k, dtype=dtype)), numbers(rng, 33, dtype=dtype)
    check(gpu, LAYOUTS[layout](a), v, x, 2, -3)
    assert in_groups(layout, dtype) or form(gpu).warps == {1: 1, 2: 2}.get(-(-k // 4096), 4)
    check(gpu, LAYOUTS[layout](a), v)


def test_vectors_that_are_copied_first(gpu, rng):
    """Those that do not begin at a multiple of 16 bytes, or are not contiguous; and no step at all."""
    a, whole = aligned(numbers(rng, 35, 300)), numbers(rng, 700)
    for v in (shifted(whole[:300]), whole[:600:2], whole[300:0:-1], np.broadcast_to(whole[:1], 300)):
        check(gpu, a, v)
    check(gpu, a[:, :0], whole[:0])
    check(gpu, a, whole[:300], whole[:35], 2, 0)
    check(gpu, np.broadcast_to(a[:1], a.shape), whole[:300])


def test_no_copy_ends_beyond_an_array(gpu, rng):
    """One row for all, and one column for all, whose last 16 bytes are not all theirs."""
    row, column, v = (aligned(numbers(rng, size)) for size in (299, 35, 299))
    check(gpu, np.broadcast_to(row, (35, 299)), v)
    check(gpu, np.broadcast_to(column[:, None], (35, 299)), v)


def test_an_out_among_what_is_read(gpu, rng):
    a, v = aligned(numbers(rng, 40, 300)), numbers(rng, 300)
    expected = nbkernels.mv(a, v)
    mv.mv(gpu.array(v[7:47]), gpu.array(a), gpu.array(v))
    same_bits(v[7:47], expected)


def test_which_rows_are_staged():
    """Floats that are not complex, of 512 bytes and more."""
    kind = kind_of(*["float16"] * 3)
    assert staged(kind, 1, 256, 64, 256, 1) == Staged(kind, 1, Access("k", 8), 1)
    assert staged(kind, 1, 9000, 64, 1, 9008) == Staged(kind, 1, Access("l", 8), 4)
    assert staged(kind, 1, 8192, 64, 8193, 1) == Staged(kind, 1, Access("k", 1, plain=True), 2)
    assert staged(kind, 1, 255, 64, 256, 1) is None
    assert staged(kind_of(*["float64"] * 3), 8, 8192, 64, 8193, 1) is not None
    for dtype in ("complex64", "int32", "bool", "float64"):
        assert staged(kind_of(*[dtype] * 3), 1, 8192, 64, 8192, 1) is None


@pytest.mark.sampled
@pytest.mark.parametrize("dtype", FLOATS)
def test_rings_fit_and_loads_are_wide(dtype):
    """99 KB, which every card from 8.0 on gives a block; and 16 bytes by one copy, by one load, without divisions."""
    kind, size = kind_of(*[dtype] * 3), np.dtype("f2" if dtype == "bfloat16" else dtype).itemsize
    for order in "kl":
        for warps in (1, 2, 4):
            assert Staged(kind, 1, Access(order, 16 // size), warps).shared + 4 * 64 * 8 <= 99 << 10
    made = Staged(kind, 8 if size > 2 else 1, Access("k", 16 // size), 2)
    text = assemble.ptx(mv.stager(made), NEWEST)
    assert text.count("cp.async.cg.shared.global") == 2 * 8 + 1
    assert text.count("cp.async.ca") == (16 // size if size > 2 else 0)  # the last elements of v
    assert len(re.findall(r"ld\.shared\.(?:v4\.b32|v2\.b64)", text)) >= 2 * 8
    assert not re.search(r"\.local|\b(?:div|rem)\.", text)


# --- dot --------------------------------------------------------------------------------------------------------------


def shuffled(monkeypatch, together, order):
    """Run `together` threads at a time, and the blocks of a grid in an order of their numbers."""
    threads = launch.Threads

    def made(compiled, whole, blocks):
        places = order(whole.grid[0])
        return threads(compiled, whole, [(int(places[i]), j, k) for i, j, k in blocks])

    monkeypatch.setattr(launch, "TOGETHER", together)
    monkeypatch.setattr(launch, "Threads", made)


ORDERS = {"first to last": np.arange, "last to first": lambda n: np.arange(n)[::-1],
          "drawn": lambda n: np.random.default_rng(n).permutation(n)}  # fmt: skip


@pytest.mark.sampled
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("together", [1, 1000, 1 << 15])
def test_segments_are_added_in_order_in_any_order_of_blocks(gpu, rng, monkeypatch, order, together):
    """201 segments, the last of a few steps, in groups of 16; of one block at a time, several, or all."""
    k = 200 * 4096 + 5
    a, b = (aligned(numbers(rng, k)) for _ in range(2))
    expected, out = np.asarray(nbkernels.dot(a, b)), empty((), "f4")
    monkeypatch.setattr(mv, "GROUP", 16 * 4)
    shuffled(monkeypatch, together, ORDERS[order])
    mv.dot(gpu.array(out), gpu.array(readonly(a)), gpu.array(readonly(b)))
    same_bits(out, expected)
    assert gpu.launches[-1][1] == (51, 1, 1)


@pytest.mark.sampled
@pytest.mark.parametrize("dtype", [*FLOATS, "complex64", "complex128", "int16", "int64", "bool"])
@pytest.mark.parametrize("k", [4096, 4097, 32 * 4096, 33 * 4096 - 1])
def test_groups_of_segments(gpu, rng, monkeypatch, dtype, k):
    """Of one group alone, of whole ones and with a rest."""
    monkeypatch.setattr(mv, "GROUP", 16 * 8)
    whole = [numbers(rng, k + 1, dtype=dtype) for _ in range(2)]
    for a, b in ((aligned(whole[0][:k]), aligned(whole[1][1:])), (shifted(whole[0][:k]), aligned(whole[1][:k]))):
        out = empty((), dtype)
        mv.dot(gpu.array(out), gpu.array(readonly(a)), gpu.array(readonly(b)))
        same_bits(out, np.asarray(nbkernels.dot(a, b)))


def test_halves_that_become_float32(gpu, rng):
    """One chain a segment; with zeros of either sign, and what is no number."""
    a, b = (aligned(numbers(rng, 9000, dtype="float16")) for _ in range(2))
    out = empty((), "float32")
    mv.dot(gpu.array(out), gpu.array(a), gpu.array(b), out_dtype=np.dtype("float32"))
    same_bits(out, np.asarray(nbkernels.dot(a, b, out_dtype=np.dtype("float32"))))


@pytest.mark.parametrize("value", [0.0, -0.0, np.inf, np.nan])
def test_sums_of_special_numbers(gpu, value):
    a, out = np.full(9000, value, "f4"), empty((), "f4")
    mv.dot(gpu.array(out), gpu.array(a), gpu.array(np.ones(9000, "f4")))
    same_bits(out, np.asarray(nbkernels.dot(a, np.ones(9000, "f4"))))
