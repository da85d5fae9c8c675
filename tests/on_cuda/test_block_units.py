"""BlockGemm by matrix units, interpreted: tiles of tiers M and D in kernels of one's own, with the library's bits."""

import sys
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import nbkernels
from tests.compare import same_bits

try:
    from numba import cuda, types

    from nbkernels.cuda import launch
    from nbkernels.cuda.assemble import assemble, ptx
    from nbkernels.cuda.block import BlockGemm
    from nbkernels.cuda.product.config import GemmConfig
    from tests.on_cuda import wheels
    from tests.on_cuda.blocks import tiled
    from tests.ptx.device import NEWEST
    from tests.ptx.launch import run
    from tests.ptx.memory import Memory

    wheels.work()
except (ImportError, RuntimeError) as error:
    pytest.skip(f"lacks the CUDA wheels: {str(error).splitlines()[0]}", allow_module_level=True)

BFLOAT16 = ml_dtypes.bfloat16
EXAMPLES = Path(__file__).parents[2] / "examples"


class Own(launch.Kernel):
    """A user's kernel, compiled as cuda.jit would, for arrays."""

    def __init__(self, body, arrays, threads):
        names = ["uint16" if x.dtype == BFLOAT16 else x.dtype.name for x in arrays]
        signature = tuple(types.Array(getattr(types, name), 2, "A") for name in names)
        super().__init__("tests:none", (body, signature), threads)

    def source(self):
        return self.arguments


def launched(gemm, body, grid, *arrays, cc=NEWEST):
    """Run a kernel on arrays' own memory; an array is seven numbers: two of no use, size, itemsize, address, shape and
    strides."""
    memory, kernel = Memory(), Own(body, arrays, gemm.threads)
    for x in arrays:
        memory.register(x)
    given = [part for x in arrays for part in (0, 0, x.size, x.itemsize, x.ctypes.data, *x.shape, *x.strides)]
    run(ptx(kernel, cc), grid, gemm.threads, given, memory)
    return arrays[0]


def numbers(rng, shape, dtype):
    """Of few bits: sums of them are exact in any order."""
    return rng.integers(0 if np.dtype(dtype).kind == "u" else -3, 4, shape).astype(dtype)


LAYOUTS = {"rows": np.ascontiguousarray, "columns": np.asfortranarray, "apart": lambda x: np.repeat(x, 3, 1)[:, ::3],
           "reversed": lambda x: np.ascontiguousarray(x[::-1, ::-1])[::-1, ::-1]}  # fmt: skip
M, WIDE = GemmConfig("M", 32, 32, 32, 3, 2), GemmConfig("M", 32, 32, 64, 2, 4)
CASES = {
    "bfloat16": ((BFLOAT16,) * 3, M, NEWEST, "rows", "rows"),
    "float16": (("f2", "f2", "f4"), M, (8, 0), "apart", "columns"),
    "tfloat32": (("f4",) * 3, M, NEWEST, "columns", "reversed"),
    "bytes": (("u1", "i1", "i4"), WIDE, (8, 0), "rows", "rows"),
    "D": (("f8",) * 3, GemmConfig("D", 32, 32, 16, 2, 4), NEWEST, "rows", "columns"),
    "D8": (("f8",) * 3, GemmConfig("D8", 32, 32, 16, 2, 4), (8, 0), "reversed", "apart"),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_the_library_s_results(rng, name):
    """Four tiles, three of them ragged, two calls that go on with the same chains, alpha and beta, any strides."""
    dtypes, config, cc, of_a, of_b = CASES[name]
    gemm = BlockGemm(*map(np.dtype, dtypes), tiles=config)
    m, n, k = gemm.bm + 7, gemm.bn + 9, 70
    a, b = LAYOUTS[of_a](numbers(rng, (m, k), dtypes[0])), LAYOUTS[of_b](numbers(rng, (k, n), dtypes[1]))
    c = np.asfortranarray(numbers(rng, (m, n), dtypes[2]))
    wanted = (2 * (a.astype("f8") @ b.astype("f8")) - c.astype("f8")).astype(c.dtype)
    same_bits(launched(gemm, tiled(gemm, 32, 2, -1), (2, 2), c, a, b, cc=cc), wanted)


def test_d_keeps_the_chain(rng):
    """Numbers that round: the bits of nbkernels.mm, also where a call ends in the middle of one's steps."""
    gemm = BlockGemm("float64", tiles=CASES["D"][1])
    a, b = rng.standard_normal((20, 37)), rng.standard_normal((37, 30))
    same_bits(launched(gemm, tiled(gemm, 6), 1, np.full((20, 30), np.nan), a, b), nbkernels.mm(a, b))


@pytest.mark.parametrize("shape", [(1, 1, 1), (3, 32, 0), (32, 5, 40), (0, 3, 2)], ids=str)
def test_edges(rng, shape):
    """Nothing beyond is read, which the interpreter traps, or written; no steps give zeros; NaN in C is not read."""
    m, n, k = shape
    a, b = numbers(rng, (m, k), "f2"), numbers(rng, (k, n), "f2")
    whole = np.full((m + 2, n + 2), np.nan, "f4")
    gemm = BlockGemm("float16", out="float32", tiles=M)
    launched(gemm, tiled(gemm), 1, whole[1:-1, 1:-1], a, b)
    same_bits(np.ascontiguousarray(whole[1:-1, 1:-1]), a.astype("f4") @ b.astype("f4"))
    assert np.isnan(whole).sum() == 2 * (m + n) + 4


@pytest.mark.parametrize("config", [M, GemmConfig("M", 64, 32, 32, 2, 4), CASES["D"][1]], ids=str)
def test_places_are_those_of_the_chains(rng, config):
    gemm = BlockGemm("float64" if config.tier == "D" else "float16", out="float64" if config.tier == "D" else "float32",
                     tiles=config)  # fmt: skip

    def kernel(c, a, b):
        chains = gemm.zeros()
        gemm.multiply(chains, a, b, gemm.scratch())
        for i in range(gemm.tm):
            for j in range(gemm.tn):
                row, column = gemm.place(i, j)
                c[row, column] = chains[i, j]

    dtype = "f8" if config.tier == "D" else "f2"
    a, b = numbers(rng, (config.bm, 32), dtype), numbers(rng, (32, config.bn), dtype)
    c = np.full((config.bm, config.bn), np.nan, "f8" if config.tier == "D" else "f4")
    same_bits(launched(gemm, kernel, 1, c, a, b), (a.astype("f8") @ b.astype("f8")).astype(c.dtype))
    assert gemm.tm * gemm.tn * gemm.threads == config.bm * config.bn


def test_the_example(rng):
    """Two layers in one kernel, the hidden one in shared memory, which the second product reads from."""
    sys.path.insert(0, str(EXAMPLES))
    import perceptron_on_cuda as example

    sys.path.pop(0)
    layer, (m, n) = example.layer, (75, 40)
    x, w1, w2 = numbers(rng, (m, 48), "f2"), numbers(rng, (48, 128), "f2"), numbers(rng, (128, n), "f2")
    body = example.perceptron.py_func
    hidden = np.maximum(x.astype("f4") @ w1, 0).astype("f2")
    y = launched(layer, body, 2, np.full((m, n), np.nan, "f2"), x, w1, w2)
    same_bits(y, (hidden.astype("f8") @ w2.astype("f8")).astype("f2"))
    text, _ = cuda.compile_ptx(body, Own(body, (y, x, w1, w2), layer.threads).source()[1], device=False, cc=NEWEST)
    assert "mma.sync.aligned.m16n8k16" in text  # as cuda.jit compiles it
    assert ".local" not in text
    used = assemble(Own(body, (y, x, w1, w2), layer.threads), NEWEST).resources
    assert used.spilled == used.stack == 0
    assert used.shared == layer.shared + 2 * 64 * 128


def test_what_no_block_can_make():
    for dtypes, config, says in (
        (("float32",), GemmConfig("S", 32, 32, 16, 2, 4), "tier 'S' is none of M, D8, D"),
        (("float64",), M, "tier M multiplies"),
        (("float32",), CASES["D"][1], "tier D multiplies float64, not float32"),
        (("float16",), GemmConfig("M", 128, 128, 64, 4, 8), "bytes of shared memory are more than the 49152"),
        (("float16",), GemmConfig("M", 32, 32, 32, 1, 2), "stages=1"),
        (("int16",), M, "tier M multiplies"),
    ):
        with pytest.raises(ValueError, match=f"no block gemm of .* goes by .*{says}"):
            BlockGemm(*dtypes, tiles=config)
