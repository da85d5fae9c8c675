"""Users' functions at the end of CUDA products, interpreted: in the store of every tier, with the CPU's bits.

Operands are whole numbers, whose sums are exact in any order, so that tensor cores give the CPU's bits as well.
"""

import ml_dtypes
import numpy as np
import pytest

import nbkernels
from tests.compare import same_bits

try:
    from nbkernels.cuda import epilogue, fused
    from nbkernels.cuda.assemble import assemble
    from nbkernels.cuda.kinds import kind_of
    from nbkernels.cuda.product import gemm as engine
    from nbkernels.cuda.product.config import GemmConfig
    from nbkernels.cuda.product.end import End
    from nbkernels.cuda.product.layout import Access
    from nbkernels.cuda.product.tensormap import Form
    from nbkernels.cuda.product.variant import Variant
    from tests.on_cuda import wheels
    from tests.ptx.device import NEWEST, Device

    wheels.work()
except (ImportError, RuntimeError) as error:
    pytest.skip(f"lacks the CUDA wheels: {str(error).splitlines()[0]}", allow_module_level=True)

BFLOAT16 = ml_dtypes.bfloat16


def scaled(v, scale, shift):
    return v * scale + shift


def clipped(v, low, high):
    return min(max(v, low), high)


def positive(v, scale, shift):
    return v * scale > shift


def turned(v, by, shift):
    return v * by - shift


def halved(v, scale, shift):
    return v // 2 + scale * shift


def run(gpu, function, dtype, product, args, operands, out, before=None, beta=0.5, alpha=2.0, **how):
    """out = function(product, *operands) on the device."""
    how = dict(beta=beta, alpha=alpha, mode=None, conj=None, tiles=None) | how
    given = [gpu.array(x) if x.ndim else x for x in operands]
    arrays = [None if x is None else gpu.array(x) for x in (out, before, *args)]
    adopted = nbkernels.epilogue(function, dtype=dtype).apply.version().function
    epilogue.run(adopted, *arrays[:2], np.dtype(product), *arrays[2:], given, how)


def whole(rng, *shape, dtype):
    return rng.integers(-3, 4, shape).astype(dtype)


# (compute capability, mat1 and mat2, product, function, dtype of its result): every tier, dtypes that change
CASES = [
    (NEWEST, "float32", "float32", scaled, "float32"), (NEWEST, "float64", "float64", clipped, "float64"),
    (NEWEST, "float32", "float32", positive, "bool"), (NEWEST, "float32", "float32", scaled, "float64"),
    (NEWEST, "complex64", "complex64", turned, "complex64"), (NEWEST, "complex128", "complex128", turned, "complex128"),
    (NEWEST, "int64", "int64", halved, "int64"), (NEWEST, "uint32", "uint32", halved, "uint32"),
    (NEWEST, BFLOAT16, BFLOAT16, scaled, BFLOAT16), (NEWEST, BFLOAT16, "float32", scaled, BFLOAT16),
    (NEWEST, "float16", "float16", clipped, "float16"), (NEWEST, "float16", "float16", positive, "bool"),
    (NEWEST, "int8", "int32", scaled, "float32"), (NEWEST, "int8", "int32", halved, "int8"),
    (NEWEST, "uint8", "uint8", halved, "uint8"), ((8, 0), "float64", "float64", scaled, "float32"),
    ((8, 0), BFLOAT16, BFLOAT16, scaled, "float32"), ((8, 6), "int8", "int32", scaled, "float16"),
    ((7, 5), "float32", "float32", scaled, "float32"), ((7, 5), "float16", "float16", scaled, "float32"),
]  # fmt: skip


@pytest.mark.sampled
@pytest.mark.parametrize("order", "CF")
@pytest.mark.parametrize("kept", [False, True], ids=["", "before"])
@pytest.mark.parametrize(("cc", "dtype", "product", "function", "result"), CASES,
                         ids=lambda x: getattr(x, "__name__", None) or str(x).replace(" ", ""))  # fmt: skip
def test_functions_end_products(monkeypatch, order, kept, cc, dtype, product, function, result):
    """A column, a row that is read backwards, a matrix, a number: with the CPU's bits, `before` as well."""
    gpu, rng = Device(cc).installed(monkeypatch), np.random.default_rng(3)
    m, n, k = 40, 72, 64
    a, b, x = whole(rng, m, k, dtype=dtype), whole(rng, k, n, dtype=dtype), whole(rng, n, dtype=product)
    real = np.dtype(result if np.dtype(result).kind not in "b" else product)
    operands = [whole(rng, m, 1, dtype=real), whole(rng, n, dtype=real)[::-1]]
    if function is scaled and order == "F":
        operands = [whole(rng, m, n, dtype=real), np.asarray(0.5, real)]
    exact = np.dtype(product).kind in "iu"
    factors = dict(beta=2, alpha=3) if exact else dict(beta=0.5, alpha=2.0)
    mode = "chain" if np.dtype(dtype).itemsize == 2 and np.dtype(dtype).kind in "fV" else None
    ending = nbkernels.epilogue(function, dtype=result)
    wide = None if np.dtype(product) == np.dtype(dtype) else np.dtype(product).name
    before = np.empty((m, n), product) if kept else None
    expected = ending(x, a, b, *operands, before=before, mode=mode, out_dtype=wide, **factors)
    out, mine = np.full((m, n), 1, result, order), np.full((m, n), 1, product, "F") if kept else None
    run(gpu, function, result, product, (x, a, b), operands, out, mine, **factors)
    same_bits(np.ascontiguousarray(out), expected)
    if kept:
        same_bits(np.ascontiguousarray(mine), before)
    assert (len(gpu.launches) == 1) == (cc >= (8, 0))


CONFIGS = {
    "S": ("float32", GemmConfig("S", 32, 32, 16, 2, 1)), "D": ("float64", GemmConfig("D", 32, 32, 16, 4, 4)),
    "M": (BFLOAT16, GemmConfig("M", 32, 32, 32, 4, 2)), "W": (BFLOAT16, GemmConfig("W", 64, 64, 64, 4, 4)),
    "split": ("float32", GemmConfig("S", 32, 32, 16, 4, 4, split=True)),
    "W columns": (BFLOAT16, GemmConfig("W", 64, 64, 64, 4, 4)),
    "W split": ("int8", GemmConfig("W", 64, 64, 128, 4, 4, split=True)),
}  # fmt: skip


@pytest.mark.parametrize("name", CONFIGS)
def test_every_tile_has_its_own_rows_and_columns(monkeypatch, name):
    """Several tiles of each tier, ragged, in items of a batch, and in segments: the operands tell every place apart."""
    gpu, rng = Device(multiprocessors=2).installed(monkeypatch), np.random.default_rng(4)
    dtype, config = CONFIGS[name]
    m, n, k, items = (config.bm + 6, 40, 4160, 2) if "split" in name else (70, 80, 64, 3)
    a, b = whole(rng, items, m, k, dtype=dtype), whole(rng, items, n, k, dtype=dtype).swapaxes(1, 2)
    product = np.dtype("int32" if dtype == "int8" else dtype)
    places = np.arange(items * m * n, dtype="f4").reshape(items, m, n)
    out, before = np.zeros((items, m, n), "f4"), np.zeros((items, m, n), product)
    if "columns" in name:
        out = np.zeros((items, n, m), "f4").swapaxes(1, 2)
    made = fused.adopted(plus, (product, np.dtype("f4")))
    after = epilogue.After(made.function, made.dtype, product.name, made.takes, made.results[0], (gpu.array(places),),
                           gpu.array(before))  # fmt: skip
    kind = kind_of(np.dtype(dtype).name, np.dtype(dtype).name, product.name)
    arrays = gpu.array(out), None, gpu.array(a), gpu.array(b)
    engine.multiply(*arrays, 0, 1, kind, k, config, ending=after.ending(arrays[0]))
    wanted = (a.astype("f8") @ b.astype("f8")).astype(product)
    same_bits(before, wanted)
    same_bits(out, wanted.astype("f4") + places)


def plus(v, place):
    return v + place


def test_operands_that_overlap_out(monkeypatch):
    """An operand that lies in out otherwise than element for element is copied first; so is one that mat1 lies in."""
    gpu, rng = Device().installed(monkeypatch), np.random.default_rng(5)
    a, b = whole(rng, 40, 40, dtype="f4"), whole(rng, 40, 40, dtype="f4")
    memory = whole(rng, 40, 40, dtype="f4")
    expected = nbkernels.epilogue(scaled)(np.zeros(40, "f4"), a, b, memory.T.copy(), 1.0)
    out = memory.copy()
    run(gpu, scaled, None, "f4", (np.zeros(40, "f4"), a, b), [out.T, np.asarray(1, "f4")], out, beta=1, alpha=1)
    same_bits(out, expected)
    mine = a.copy()
    expected = nbkernels.epilogue(scaled)(np.zeros(40, "f4"), a, b, memory, 1.0)
    run(gpu, scaled, None, "f4", (np.zeros(40, "f4"), mine, b), [memory, np.asarray(1, "f4")], mine, beta=1, alpha=1)
    same_bits(mine, expected)
    mine, out = a.copy(), np.empty_like(a)  # `before` in the place of mat1: no kernel may read it and write it
    gpu.launches.clear()
    run(gpu, scaled, None, "f4", (np.zeros(40, "f4"), mine, b), [memory, np.asarray(1, "f4")], out, mine, 1, 1)
    same_bits(mine, a @ b)
    same_bits(out, expected)
    assert len(gpu.launches) > 1


@pytest.mark.parametrize("case", ["alpha", "beta", "k"])
def test_what_is_not_read(monkeypatch, case):
    """alpha = 0, beta = 0 beside NaN, and no steps of k: the function takes what addmm would give."""
    gpu = Device().installed(monkeypatch)
    k = 0 if case == "k" else 8
    a, b, x = np.ones((5, k), "f4"), np.ones((k, 6), "f4"), np.ones(6, "f4")
    for each in {"alpha": (a, b), "beta": (x,), "k": ()}[case]:
        each[...] = np.nan
    factors = dict(beta=float(case != "beta"), alpha=float(case != "alpha"))
    operands, out = [np.ones(6, "f4"), np.asarray(1, "f4")], np.zeros((5, 6), "f4")
    expected = nbkernels.epilogue(scaled)(x, a, b, *operands, **factors)
    run(gpu, scaled, None, "f4", (x, a, b), operands, out, **factors)
    same_bits(out, expected)


@pytest.mark.parametrize(("dtype", "config"), [("float32", GemmConfig("S", 128, 256, 8, 4, 8)),
                                               (BFLOAT16, GemmConfig("W", 128, 256, 64, 4, 8))])  # fmt: skip
def test_functions_need_no_local_memory(dtype, config):
    """With two operands and `before` the largest tiles stay in registers."""
    name = np.dtype(dtype).name
    made, kind = fused.adopted(scaled, (np.dtype(dtype), *[np.dtype("f4")] * 2)), kind_of(name, name, name)
    end = End(made.function, made.dtype, name, (name, made.results[0]), (("float32", "float32"),) * 2, True)
    variant = Variant(config, kind, Access("k", 1), Access("l", 4), 4, True, end=end)
    kernel = engine.kernel(Form(config, kind, c="any", end=end) if config.tier == "W" else variant)
    used = assemble(kernel, NEWEST + ("a",)).resources
    assert used.spilled == used.stack == 0, used
