"""Operands of products by tensor cores that are copied first (nbkernels/cuda/product/pack.py): when, and to which bits.

Kernels run on the interpreter (tests/ptx). A product has the bits that it has of aligned operands.
"""

import ml_dtypes
import numpy as np
import pytest

import nbkernels
from tests.compare import same_bits

try:
    from nbkernels.cuda import gemm, launch
    from nbkernels.cuda.kinds import kind_of
    from nbkernels.cuda.product import pack
    from nbkernels.cuda.product.pack import Matrix, packing
    from tests import launched
    from tests.ptx.device import Device
except (ImportError, RuntimeError) as error:
    pytest.skip(f"lacks the CUDA wheels: {str(error).splitlines()[0]}", allow_module_level=True)
pytest.importorskip("cuda.bindings.nvjitlink", reason="lacks the CUDA wheels")

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
H200, A100 = ((9, 0), 132), ((8, 0), 108)


# --- when -------------------------------------------------------------------------------------------------------------


def matrix(rows, columns, dtype, order="N", pitch=None, item=0, start=0):
    """By rows, "N", or by columns, "T", so many elements apart; the first at an address."""
    steps = (pitch or columns, 1) if order == "N" else (1, pitch or rows)
    return Matrix(start, dtype, *steps, item)


def sides(a, b, sizes, out=None, device=H200):
    """How mat1 and mat2 are packed: "k" or "l", the direction that is contiguous then, or "" where they are not."""
    found = packing(a, b, (*sizes, 1)[:4], kind_of(a.dtype, b.dtype, out or a.dtype), device)
    return ["" if type(x) is Matrix else "k" if along == 1 else "l"
            for x, along in zip(found, (found[0].column, found[1].row))]  # fmt: skip


def square(n, dtype="bfloat16", orders="NN", pitch=None):
    return *(matrix(n, n, dtype, order, pitch) for order in orders), (n, n, n)


def test_large_products_pack_what_does_not_fit():
    even, odd = matrix(2000, 2008, "bfloat16"), matrix(2008, 2001, "bfloat16")
    assert sides(even, odd, (2000, 2001, 2008)) == ["", "l"]
    assert sides(odd.transposed, even.transposed, (2001, 2000, 2008)) == ["l", ""]
    for device in (H200, A100):
        for orders, found in (("NN", "kl"), ("NT", "kk"), ("TN", "ll"), ("TT", "lk")):
            assert sides(*square(2047, orders=orders), device=device) == [*found]
            assert sides(*square(2048, "float16", orders), device=device) == ["", ""]
        assert sides(*square(2048, pitch=2049), device=device) == ["k", "l"]
        start = matrix(2048, 2048, "float16", start=2)
        assert sides(start, start, (2048,) * 3, device=device) == ["k", "l"]


def test_wgmma_multiplies_bytes_and_tfloat32_along_k():
    for dtype, out in (("int8", "int32"), ("uint8", "int32"), ("float32", "float32")):
        assert sides(*square(4096, dtype), out=out) == ["", "k"]
        assert sides(*square(4096, dtype, "TT"), out=out) == ["k", ""]
        assert sides(*square(4096, dtype, "NT"), out=out) == ["", ""]
    assert sides(*square(4096, "int8"), out="int32", device=A100) == ["", "k"]  # which takes bytes along k alone, too
    assert sides(*square(4096, "float32"), device=A100) == ["", ""]


def test_small_products_read_operands_where_they_lie():
    for n in (1, 17, 127, 300):
        for dtype in ("bfloat16", "int8", "float32"):
            for device in (H200, A100):
                out = "int32" if dtype == "int8" else dtype
                assert sides(*square(n, dtype, pitch=n | 1), out=out, device=device) == ["", ""]


def test_what_all_items_share_is_packed_once():
    a, b = matrix(300, 301, "float16", item=300 * 301), matrix(301, 299, "float16")
    first, second = packing(a, b, (300, 299, 301, 64), kind_of(*["float16"] * 3), H200)
    assert (first.shape, second.shape) == ((64, 300, 301), (1, 301, 299))
    assert (first.item, second.item) == (300 * 304, 0)
    assert second.address == first.end == 64 * 300 * 304 * 2


# --- to which bits ----------------------------------------------------------------------------------------------------


@pytest.fixture
def gpu(monkeypatch):
    return Device().installed(monkeypatch)


@pytest.fixture
def always(monkeypatch):
    """Whatever does not fit is packed."""
    monkeypatch.setattr(pack, "START", -(10**9))


def numbers(rng, *shape, dtype):
    if dtype.kind in "iu":
        return rng.integers(np.iinfo(dtype).min, np.iinfo(dtype).max + 1, shape).astype(dtype)
    return rng.standard_normal(shape).astype(dtype)


def wide(x, columns):
    """x in rows that are so many elements longer, from the second of them on."""
    room = np.full((*x.shape[:-1], x.shape[-1] + columns), 99).astype(x.dtype)
    room[..., 1 : 1 + x.shape[-1]] = x
    return room[..., 1 : 1 + x.shape[-1]]


LAYOUTS = {
    "odd rows": lambda x: wide(x, 3),
    "odd columns": lambda x: wide(x.mT, 5).mT,
    "apart": lambda x: np.repeat(x, 3, -1)[..., ::3],
    "backwards": lambda x: np.ascontiguousarray(x[..., ::-1, ::-1])[..., ::-1, ::-1],
    "columns backwards": lambda x: np.ascontiguousarray(x.mT[..., ::-1, :])[..., ::-1, :].mT,
}
DTYPES = {"bfloat16": (BFLOAT16, BFLOAT16, BFLOAT16), "float16": ("f2", "f2", "f4"), "bytes": ("i1", "u1", "i4"),
          "tf32": ("f4", "f4", "f4")}  # fmt: skip


def readonly(x):
    x.flags.writeable = False
    return x


def product(gpu, out, a, b, x=None, beta=0, alpha=1):
    gemm.gemm(gpu.array(out), None if x is None else gpu.array(x), *(gpu.array(readonly(each)) for each in (a, b)),
              beta, alpha, mode="tf32" if a.dtype == "f4" else None)  # fmt: skip
    return out


def read(gpu):
    """Of each launch: "copy", or the tier and how operands are read."""
    found = [(kernel.make.rpartition(".")[2], kernel.arguments[0]) for kernel, _ in gpu.launches]
    gpu.launches.clear()
    return ["copy" if make in ("elementwise:make", "transposed:make") else f"{v.config.tier} {v.a} {v.b}"
            for make, v in found]  # fmt: skip


@pytest.mark.sampled
@pytest.mark.usefixtures("always")
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", DTYPES)
def test_packed_operands_have_the_bits_of_aligned_ones(gpu, rng, name, layout):
    """What pads their rows is full of NaN; what lies around out stays."""
    first, second, third = map(np.dtype, DTYPES[name])
    m, n, k = 40, 48, 80
    a, b, x = numbers(rng, m, k, dtype=first), numbers(rng, k, n, dtype=second), numbers(rng, n, dtype=third)
    aligned = product(gpu, np.zeros((m, n), third), a, np.ascontiguousarray(b.T).T, x, 2, 3)
    assert read(gpu) == ["W k k"]
    out = wide(np.zeros((m, n), third), 3)
    whole = out.base.copy()
    same_bits(product(gpu, out, LAYOUTS[layout](a), LAYOUTS[layout](b), x, 2, 3), aligned)
    *copies, kernel = read(gpu)
    assert copies == ["copy"] * 2
    assert kernel[0] == "W"
    out[...] = whole[..., 1 : 1 + n]
    same_bits(out.base, whole)


@pytest.mark.sampled
@pytest.mark.usefixtures("always")
@pytest.mark.parametrize("name", ["bytes", "tf32"])
def test_what_lies_across_k_is_turned(gpu, rng, name):
    """By tiles and vectors, of aligned operands: mat1 by columns and mat2 by rows."""
    first, second, third = map(np.dtype, DTYPES[name])
    a, b = numbers(rng, 80, 96, dtype=first), numbers(rng, 96, 112, dtype=second)
    found = product(gpu, np.zeros((80, 112), third), np.ascontiguousarray(a.T).T, b)
    turned = [kernel.arguments[3][0][2] for kernel, _ in gpu.launches[:2]]
    assert turned == [f"turned {16 // first.itemsize}"] * 2
    assert read(gpu) == ["copy", "copy", "W k k"]
    same_bits(product(gpu, np.zeros((80, 112), third), a, np.ascontiguousarray(b.T).T), found)
    assert read(gpu) == ["W k k"]


@pytest.mark.sampled
@pytest.mark.usefixtures("always")
@pytest.mark.parametrize("name", ["bfloat16", "bytes", "tf32"])
def test_before_wgmma(monkeypatch, rng, name):
    """Compute capability 8.0: by copies of 16 bytes, ragged in every size."""
    gpu = Device(cc=(8, 0)).installed(monkeypatch)
    first, second, third = map(np.dtype, DTYPES[name])
    a, b = numbers(rng, 33, 43, dtype=first), numbers(rng, 43, 35, dtype=second)
    found = product(gpu, np.zeros((33, 35), third), wide(a, 2), wide(b, 3))
    size = 16 // first.itemsize
    assert read(gpu) == ["copy", "copy", f"M k{size} {'k' if first.itemsize == 1 else 'l'}{size}"]
    monkeypatch.setattr(pack, "START", 10**9)
    same_bits(product(gpu, np.zeros((33, 35), third), wide(a, 2), wide(b, 3)), found)
    assert len(gpu.launches) == 1


@pytest.mark.sampled
@pytest.mark.usefixtures("always")
@pytest.mark.parametrize("k", [70, 4096 + 70])
def test_batches(gpu, rng, k):
    """Items that are walked backwards, and a matrix that all share; several segments of k."""
    a, b = numbers(rng, 3, 9, k, dtype=BFLOAT16), numbers(rng, k, 13, dtype=BFLOAT16)
    x, shared = numbers(rng, 13, dtype=BFLOAT16), np.broadcast_to(wide(b, 2), (3, k, 13))
    found = product(gpu, np.zeros((3, 9, 13), BFLOAT16), wide(a[::-1], 1)[::-1], shared, x, 0.5, -2)
    assert read(gpu)[:2] == ["copy"] * 2
    for item, each in zip(found, a):
        same_bits(item, product(gpu, np.zeros((9, 13), BFLOAT16), each, b, x, 0.5, -2))


@pytest.mark.usefixtures("always")
def test_every_ragged_size(gpu, rng):
    for m, n, k in ((1, 1, 1), (1, 70, 3), (70, 1, 65), (65, 33, 1), (3, 5, 129)):
        a, b = numbers(rng, m, k, dtype=np.dtype("i1")), numbers(rng, k, n, dtype=np.dtype("i1"))
        expected = a.astype("i4") @ b.astype("i4")
        same_bits(product(gpu, np.zeros((m, n), "i4"), wide(a, 2), wide(b, 2)), expected)


def test_copies_of_less_than_16_bytes(monkeypatch, rng):
    """Operands of small products whose rows begin at multiples of 4 or 8 bytes, and single elements, have the same
    bits."""
    gpu, found = Device(cc=(8, 0)).installed(monkeypatch), []
    a, b = numbers(rng, 37, 44, dtype=BFLOAT16), numbers(rng, 44, 36, dtype=BFLOAT16)
    for pitch in (48, 44, 46, 45):
        lines = [np.zeros((len(x), pitch), BFLOAT16)[:, : x.shape[1]] for x in (a, b)]
        for line, x in zip(lines, (a, b)):
            line[...] = x
        found.append(product(gpu, np.zeros((37, 36), BFLOAT16), *lines))
        same_bits(found[0], found[-1])
    assert read(gpu) == ["M k8 l8", "M k4 l4", "M k2 l2", "M k1p l1p"]


def test_explain_says_what_is_packed(monkeypatch):
    notes = launched.device(monkeypatch)
    monkeypatch.setenv("NBKERNELS_MODE", "")
    for shape, dtype, found in (
        ((1999, 2001), "f2", ("mat1", "mat2")),
        ((2000, 2001), "f2", ("mat2",)),
        ((100, 101), "f2", ()),
        ((2048, 2048), "f2", ()),
        ((2048, 2048), "i1", ("mat2",)),
    ):
        k, n = shape
        told = nbkernels.explain(nbkernels.mm, notes.array((n, k), dtype), notes.array((k, n), dtype))
        assert told.copies == found
        assert told.path == ("tier M" if k < 200 else "tier W")


@pytest.mark.parametrize("dtype", ["f2", "i1"])
def test_copies_are_repeated_with_the_call(monkeypatch, dtype):
    """From the third call on the general path is not taken: room is made anew, copies and the product are launched."""
    notes = launched.device(monkeypatch)
    monkeypatch.setenv("NBKERNELS_MODE", "")
    a, b = notes.array((1600, 1601), dtype), notes.array((1601, 1603), dtype)
    size = 1600 * -(-1601 * np.dtype(dtype).itemsize // 128) * 128
    for call in range(4):
        if call == 2:
            monkeypatch.setattr(launch, "loaded", None)
        notes.events.clear()
        nbkernels.mm(a, b)
        rooms = [event[1] for event in notes.events if event[0] == "allocate"]
        *copies, (_, arguments, _) = notes.launches
        maps = [x % (1 << 64) for x in arguments[:2]]
        assert len(copies) == 2
        assert [x - max(rooms) for x in sorted(maps)] == [0, size]
        assert sorted(x for _, given, _ in copies for x in given if x in maps) == sorted(maps)
