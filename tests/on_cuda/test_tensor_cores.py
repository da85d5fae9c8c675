"""Products by tensor cores as a card would run them: PTX for compute capability 9.0, interpreted (tests/ptx).

mma.sync and wgmma are held against each other's bits, and both against float64 within the bound that docs/products.md
states. Whole numbers are exact.
"""

from itertools import product

import ml_dtypes
import numpy as np
import pytest

import nbkernels
from tests.compare import same_bits

try:
    from nbkernels.cuda import epilogue, gemm
    from nbkernels.cuda.kinds import kind_of
    from nbkernels.cuda.product import gemm as products
    from nbkernels.cuda.product import tensor
    from nbkernels.cuda.product.config import GemmConfig
    from tests.ptx.device import NEWEST, Device
except (ImportError, RuntimeError) as error:
    pytest.skip(f"lacks the CUDA wheels: {str(error).splitlines()[0]}", allow_module_level=True)
pytest.importorskip("cuda.bindings.nvjitlink", reason="lacks the CUDA wheels")

BFLOAT16 = ml_dtypes.bfloat16
STORE = {"bfloat16": 2.0**-8, "float16": 2.0**-11, "float32": 2.0**-23}


@pytest.fixture
def gpu(monkeypatch):
    return Device().installed(monkeypatch)


def numbers(rng, *shape, dtype):
    dtype = np.dtype(dtype)
    if dtype.kind in "iu":
        return rng.integers(np.iinfo(dtype).min, np.iinfo(dtype).max + 1, shape).astype(dtype)
    return rng.standard_normal(shape).astype(dtype)


# Layouts by what they do to the last two dimensions: rows of whole 16 bytes, and what tensor copies cannot read.
LAYOUTS = {
    "rows": lambda x: np.ascontiguousarray(x),
    "columns": lambda x: np.ascontiguousarray(x.swapaxes(-1, -2)).swapaxes(-1, -2),
    "apart": lambda x: np.repeat(x, 3, -1)[..., ::3],
    "reversed": lambda x: np.ascontiguousarray(x[..., ::-1, ::-1])[..., ::-1, ::-1],
}


def multiplied(gpu, out, a, b, x=None, beta=0, alpha=1, config=None, mode=None):
    """out = alpha * a @ b + beta * x, which the device computes by a config, or by that of its choice."""
    kind = kind_of(*(each.dtype.name for each in (a, b, out)))
    by = None if x is None else gpu.array(x)
    products.multiply(gpu.array(out), by, gpu.array(a), gpu.array(b), beta, alpha, kind, a.shape[-1], config, mode)
    return out


def right(out, a, b, x=None, beta=0, alpha=1):
    """out is right: exactly, of whole numbers; else within the bound of the order of summation."""
    wide = [each.astype(np.int64 if out.dtype.kind in "iu" else np.float64) for each in (a, b)]
    expected = alpha * np.matmul(*wide) + (0 if x is None else beta * x.astype(wide[0].dtype))
    if out.dtype.kind in "iu":
        np.testing.assert_array_equal(out, expected.astype(out.dtype))
        return
    size = abs(alpha) * np.matmul(*map(abs, wide))
    entry = 2.0**-10 if a.dtype == np.float32 else 0
    bound = STORE[out.dtype.name] * abs(expected) + (a.shape[-1] / 8 * 2.0**-22 + entry) * size
    assert (abs(out.astype(np.float64) - expected) <= bound).all()


def tiers(gpu):
    return [str(kernel).partition(" W ")[1].strip() or "M" for kernel, _ in gpu.launches]


HALVES = [("rows", "columns"), ("rows", "rows"), ("columns", "rows"), ("columns", "columns")]


@pytest.mark.sampled
@pytest.mark.parametrize(("left", "right_"), HALVES)
def test_mma_and_wgmma_have_the_same_bits(gpu, rng, left, right_):
    """Ragged tiles, in each layout without copies: operands of either direction go to shared memory as they lie."""
    a, b = LAYOUTS[left](numbers(rng, 40, 72, dtype=BFLOAT16)), LAYOUTS[right_](numbers(rng, 72, 104, dtype=BFLOAT16))
    mixed = multiplied(gpu, np.full((40, 104), np.nan, BFLOAT16), a, b, config=GemmConfig("M", 32, 64, 32, 3, 2))
    right(mixed, a, b)
    same_bits(multiplied(gpu, np.full((40, 104), np.nan, BFLOAT16), a, b), mixed)
    assert tiers(gpu) == ["M", "W"]


@pytest.mark.sampled
@pytest.mark.parametrize("right_", ["rows", "columns"])
def test_the_largest_tile(monkeypatch, rng, right_):
    """Two warpgroups, four chunks of mat2, and blocks that make several tiles each, with the bits of a small tile."""
    gpu = Device(multiprocessors=2).installed(monkeypatch)
    a, b = numbers(rng, 300, 72, dtype=BFLOAT16), LAYOUTS[right_](numbers(rng, 72, 264, dtype=BFLOAT16))
    outs = [
        multiplied(
            gpu, np.full((300, 264), np.nan, BFLOAT16), a, b, config=GemmConfig("W", *tile, 64, 3, tile[0] // 16)
        )
        for tile in ((128, 256), (64, 64))
    ]
    same_bits(*outs)
    right(outs[0], a, b)


@pytest.mark.parametrize("right_", ["rows", "columns"])
def test_results_by_columns(gpu, rng, right_):
    """Of a tile whose columns are no power of two: several pieces, and chunks of mat2 that are not full."""
    a, b = numbers(rng, 72, 40, dtype=np.float16), LAYOUTS[right_](numbers(rng, 40, 56, dtype=np.float16))
    out = LAYOUTS["columns"](np.zeros((72, 56), np.float16))
    right(multiplied(gpu, out, a, b, config=GemmConfig("W", 64, 48, 64, 3, 4)), a, b)
    assert gpu.launches[0][0].arguments[0].c == "columns"


@pytest.mark.parametrize("layout", ["apart", "reversed"])
def test_layouts_that_tensor_copies_cannot_read(gpu, rng, layout):
    a, b = (LAYOUTS[layout](numbers(rng, *shape, dtype=np.float16)) for shape in ((20, 24), (24, 40)))
    out = multiplied(gpu, LAYOUTS[layout](np.zeros((20, 40), np.float16)), a, b)
    same_bits(out, multiplied(gpu, np.zeros((20, 40), np.float16), *map(np.ascontiguousarray, (a, b))))
    assert tiers(gpu) == ["M", "W"]


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("dtypes", "k"),
    [(("int8", "int8", "int32"), 33), (("uint8", "int8", "int32"), 80), (("int8", "int8", "int8"), 33),
             (("uint8", "int8", "int32"), 33), (("int8", "int8", "int32"), 80), (("int8", "int8", "int8"), 80)],
)  # fmt: skip
def test_bytes_are_exact(gpu, rng, dtypes, k):
    """mat2 lies by rows, which tensor cores do not read, or by columns; alpha and beta are whole numbers."""
    a, b = (numbers(rng, *shape, dtype=dtype) for shape, dtype in zip(((40, k), (k, 48)), dtypes))
    x = numbers(rng, 48, dtype=dtypes[2])
    for each in (b, LAYOUTS["columns"](b)):
        out = multiplied(gpu, np.zeros((40, 48), dtypes[2]), a, each, x, 3, -2)
        right(out, a, b, x, 3, -2)


@pytest.mark.parametrize("layout", ["rows", "columns"])
def test_tfloat32_is_a_mode(gpu, rng, layout):
    a, b = numbers(rng, 40, 44, dtype="f4"), numbers(rng, 44, 36, dtype="f4")
    out = np.full((40, 36), np.nan, "f4")
    gemm.gemm(gpu.array(out), None, gpu.array(a), gpu.array(LAYOUTS[layout](b)), 0, 1, mode="tf32")
    right(out, a, b)
    assert tiers(gpu) == ["M" if layout == "rows" else "W"]
    assert (out != nbkernels.mm(a, b)).any()


@pytest.mark.sampled
@pytest.mark.parametrize(
    "config",
    [GemmConfig(*sizes, split=split) for sizes in (("M", 32, 32, 32, 3, 2), ("W", 64, 32, 64, 3, 4))
             for split in (False, True)],
)  # fmt: skip
def test_segments_are_added_in_order(gpu, rng, config):
    a, b = numbers(rng, 8, 2 * 4096 + 40, dtype=BFLOAT16), numbers(rng, 2 * 4096 + 40, 16, dtype=BFLOAT16)
    whole, parts = np.full((8, 16), np.nan, "f4"), []
    multiplied(gpu, whole, a, b, config=config)
    for p in range(0, a.shape[1], 4096):
        parts.append(multiplied(gpu, np.zeros((8, 16), "f4"), a[:, p : p + 4096], b[p : p + 4096], config=config))
    same_bits(whole, parts[0] + parts[1] + parts[2])
    right(whole, a, b)


def test_batches_share_a_matrix_and_add_x(gpu, rng):
    """One launch, whose items share mat2; x is a row; neighbours of out in memory keep what they have."""
    a, b, x = numbers(rng, 3, 40, 72, dtype=np.float16), numbers(rng, 72, 48, dtype=np.float16), np.arange(48.0)
    room, b = np.full((3, 40, 56), -1, np.float16), np.broadcast_to(b, (3, 72, 48))
    for beta, by in ((0, None), (2, x.astype(np.float16))):
        out = room[:, :, :48]
        given = None if by is None else gpu.array(by)
        gemm.baddbmm(gpu.array(out), given, gpu.array(a), gpu.array(b), beta, 0.5)
        right(out, a, b, by, beta, 0.5)
        assert (room[:, :, 48:] == -1).all()
    assert tiers(gpu) == ["W", "W"]


def test_nothing_is_read_outside(gpu, rng):
    """Every ragged size around a tile's edges; the interpreter traps what lies outside."""
    for m, n, k in product((1, 16, 65), (8, 72), (8, 136)):
        a, b = numbers(rng, m, k, dtype=np.float16), numbers(rng, k, n, dtype=np.float16)
        right(multiplied(gpu, np.full((m, n), np.nan, np.float16), a, b), a, b)


def test_chains_are_a_mode(gpu, rng):
    a, b = numbers(rng, 20, 40, dtype=np.float16), numbers(rng, 40, 24, dtype=np.float16)
    out = np.zeros((20, 24), np.float16)
    gemm.gemm(gpu.array(out), None, gpu.array(a), gpu.array(b), 0, 1, mode="chain")
    same_bits(out, nbkernels.mm(a, b))
    same_bits(nbkernels.mm(a, b, mode="chain"), nbkernels.mm(a, b))
    with pytest.raises(ValueError, match="'tf32' needs a GPU"):
        nbkernels.mm(np.eye(3, dtype="f4"), np.eye(3, dtype="f4"), mode="tf32")


def test_every_config_is_legal():
    for dtype in ("bfloat16", "int8", "float32"):
        assert len(tensor.configs("M", dtype, NEWEST)) == len(tensor.MIXED) - (dtype == "int8")
        for config in tensor.configs("W", dtype, NEWEST):
            form = tensor.Form(config, kind_of(dtype, dtype, dtype if dtype != "int8" else "int32"), "k", "k")
            assert form.shared <= tensor.SHARED


def on_a_line(x):
    """A C-order copy that begins at a multiple of 128 bytes."""
    made = np.empty(x.nbytes + 128, np.uint8)
    made = made[-made.ctypes.data % 128 :][: x.nbytes].view(x.dtype).reshape(x.shape)
    made[...] = x
    return made


@pytest.mark.sampled
@pytest.mark.parametrize("order", "CF")
@pytest.mark.parametrize(("m", "n", "multiprocessors"), [(16, 256, 132), (112, 128, 132), (40, 512, 132), (48, 64, 1),
                                                         (64, 80, 1), (16, 112, 1)])  # fmt: skip
def test_results_of_any_order_are_whole(monkeypatch, order, m, n, multiprocessors):
    """Tiles of part of a line of C, by rows and by columns, with x and without: no element is left as it was."""
    gpu = Device(multiprocessors=multiprocessors).installed(monkeypatch)
    rng, kind = np.random.default_rng(0), np.dtype(BFLOAT16)
    a, b, x = (on_a_line(rng.integers(-3, 4, shape).astype(kind)) for shape in ((m, 64), (n, 64), (m, n)))
    for beta in (0, 1):
        memory = on_a_line(np.full((m, n) if order == "C" else (n, m), 77).astype(kind))
        out = memory if order == "C" else memory.T
        gemm.addmm(gpu.array(out), gpu.array(x), gpu.array(a), gpu.array(b.T), beta, 1)
        expected = a.astype("f4") @ b.T.astype("f4") + beta * x.astype("f4")
        same_bits(np.ascontiguousarray(out), expected.astype(kind))
    assert {kernel.make.rpartition(".")[2] for kernel, _ in gpu.launches} == {"wgmma:make"}


ACTIVATIONS = [("relu", "none", 64), ("gelu", "none", 4160), ("gelu", "tanh", 64), ("silu", "none", 4160),
               ("tanh", "none", 64), ("sigmoid", "none", 4160)]  # fmt: skip


@pytest.mark.sampled
@pytest.mark.parametrize("how", ACTIVATIONS, ids=lambda how: " ".join(map(str, how)))
@pytest.mark.parametrize(("cc", "dtype"), [
    (NEWEST, "float32"), (NEWEST, "float64"), (NEWEST, "bfloat16"), (NEWEST, "float16"), ((8, 0), "bfloat16")
])  # fmt: skip
def test_activations_end_products(monkeypatch, rng, cc, dtype, how):
    """In every tier, in one launch, with the CPU's bits: sums of whole numbers are exact in any order."""
    gpu = Device(cc).installed(monkeypatch)
    *how, k = how
    kind = np.dtype(BFLOAT16 if dtype == "bfloat16" else dtype)
    a, b, x = (rng.integers(-2, 3, shape).astype(kind) for shape in ((40, k), (k, 72), (72,)))
    factors = dict(activation=how[0], approximate=how[1], beta=0.5, alpha=0.0625)
    expected = nbkernels.addmm_activation(x, a, b, **factors, mode="chain" if kind.itemsize == 2 else None)
    out = np.full(expected.shape, 77).astype(kind)
    epilogue.addmm_activation(*map(gpu.array, (out, x, a, b)), 0.5, 0.0625, *how)
    same_bits(out, expected)
    assert len(gpu.launches) == 1


def test_activations_before_compute_capability_8(monkeypatch, rng):
    gpu = Device((7, 5)).installed(monkeypatch)
    a, b, x = (rng.standard_normal(shape).astype("f4") for shape in ((9, 20), (20, 11), (11,)))
    out = np.full((9, 11), np.nan, "f4")
    epilogue.addmm_activation(*map(gpu.array, (out, x, a, b)), 1, 1, "gelu", "tanh")
    same_bits(out, nbkernels.addmm_activation(x, a, b, activation="gelu", approximate="tanh"))
