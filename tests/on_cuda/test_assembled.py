"""The CUDA kernels assembled for two architectures, without a GPU: what the assembler reports of each.

A spilled register or a local array costs more than any tuning wins: both must be zero in every kernel.
"""

import collections
import contextlib
import copy
import inspect
import re
import sys

import numpy as np
import pytest
from numba import cuda, types
from numba.core import errors

from nbkernels import scalar
from nbkernels.elementary import powers, transcendental
from nbkernels.jit.ir.kind import BYTES, Kind
from nbkernels.problem import GemmProblem
from tests import launched

try:
    from nbkernels.cuda import at, compiler, elementwise, gemm, launch, mv, reduce, scan, tiles
    from nbkernels.cuda.assemble import assemble, ptx
    from nbkernels.cuda.block import BlockGemm
    from nbkernels.cuda.kinds import kind_of
    from nbkernels.cuda.product import tensormap
    from nbkernels.cuda.product.config import GemmConfig
    from nbkernels.cuda.product.layout import Access
    from nbkernels.cuda.rings import Staged
    from tests.on_cuda import wheels

    wheels.work()
except (ImportError, RuntimeError) as error:  # a wheel that is not there: Python's, or a library that one brings
    pytest.skip(f"lacks the CUDA wheels: {str(error).splitlines()[0]}",
                allow_module_level=True)  # fmt: skip

NEWEST, OLDEST = (9, 0), (8, 0)
SIZES = [(64, 64), (512, 512), (1024, 1024), (8192, 8192), (4, 8192), (8192, 16), (1797, 64)]
DEFAULTS = {
    dtype: list({tiles.default(GemmProblem(m, n, 1024, dtype), 132): None for m, n in SIZES})
    for dtype in ("float32", "float64")
}
# Older machines have as many registers: the tile that takes most of them stands for the others there.
GEMMS = [(dtype, tile, NEWEST) for dtype, each in DEFAULTS.items() for tile in each] + [
    (dtype, max(each, key=lambda tile: tile.tm * tile.tn), OLDEST) for dtype, each in DEFAULTS.items()
]


def loop(function, dtypes, ndim, second="array", computes=None, scaled=False, masked=False):
    """The kernel of out, self and other of these dtypes; other is an array, or a number."""
    computes = computes or (dtypes[1], dtypes[2], dtypes[0])
    width = 16 // max(np.dtype("u2" if d == "bfloat16" else d).itemsize for d in dtypes)
    way = "vector" if width > 1 else "strided"
    numbers = [(computes[1],) * 2 + ("number",)] if second == "number" else [(dtypes[2], computes[1], way)]
    numbers += [(computes[2],) * 2 + ("number",)] if scaled else []
    inputs = ((dtypes[1], computes[0], way), *numbers)
    dtype = "float32" if computes[0] in ("float16", "bfloat16") else computes[0]
    mask = "same" if masked else None
    return elementwise.kernel(function, dtype, ((dtypes[0], computes[2], way),), inputs, mask, ndim, width, False)


LOOPS = [
    loop(scalar.find(op, np.dtype(dtype)), (dtype,) * 3, ndim, second, scaled="_" in op)
    for op in ("add", "add_scaled", "divide", "maximum")
    for dtype, ndim, second in (("float32", 1, "array"), ("float32", 3, "array"), ("float64", 2, "array"),
                                ("float32", 2, "number"))
]  # fmt: skip
# One of each kind of number; and functions of math under names of their own.
OTHERS = [
    loop(scalar.find(op, np.dtype(dtype)), (dtype,) * 3, 2, masked=masked)
    for op, dtype, masked in (("floor_divide", "int8", False), ("gcd", "uint64", False), ("maximum", "bool", True),
                              ("add", "float16", True), ("divide", "complex64", False), ("copysign", "float32", False))
]  # fmt: skip
# A fold in bools: its terms' truths, of numbers that have none themselves (folds.py).
COMPLEX = loop(scalar.find("not_equal", np.dtype("complex64")), ("bool", "complex64", "complex64"), 1, "number")
FUNCTIONS = [
    loop(function, (dtype,) * 3, 1) for function, dtype in ((powers.pow, "float64"), (transcendental.atan2, "float32"))
]
SCANS = [
    scan.kernel(scalar.find(op, np.dtype(dtype)), item, dtype, (dtype,) * 3, 2)
    for op, item, dtype in (("add", "int8", "int64"), ("subtract", "float16", "float16"), ("maximum", "bool", "bool"))
] + [
    scan.kernel(scalar.find("subtract", np.dtype("float32")), *("float32",) * 2, ("float32",) * 3, 1, True, True),
]


def rows(way, op, out, item=None, target="i4", ndim=1, columns=1):
    """The kernel of `at` that adds rows in one of its ways."""
    out = np.dtype(out)
    return at.kernel(way, op, (out,) * 3, out, np.dtype(item or out), np.dtype(target), ndim, columns)


ATS = [
    at.locating(np.dtype("i8"), np.dtype("i4"), 1, True), at.locating(np.dtype("u1"), np.dtype("i8"), 3, False),
    rows("once", "divide", "c8", target="i8"), rows("once", "add", "f2", "i1"), rows("atomic", "add", "i4"),
    rows("atomic", "subtract", "i8", ndim=2, columns=2), rows("atomic", "multiply", "u1"),
    rows("atomic", "maximum", "f2"), rows("atomic", "minimum", "f8"), rows("atomic", "logical_or", "?"),
    rows("ordered", "add", "f4"), rows("ordered", "add", "c16"), rows("ordered", "add", "f2", "i1"),
    rows("ordered", "multiply", "c8", columns=2), rows("ordered", "remainder", "f8"),
    rows("ordered", "logical_or", "?"),
]  # fmt: skip
DOTS = [
    mv.segments(kind, 64, 1 if kind.chain == "complex128" else 2, mv.GROUP // BYTES[kind.chain])
    for kind in (*(kind_of(*[d] * 3) for d in ("float32", "float64", "complex64", "complex128", "bfloat16", "float16")),
                 kind_of("uint8", "int8", "int32"))
] + [mv.segments(kind_of("float16", "float16", "float32"), 1, 8, mv.GROUP // 4)]  # fmt: skip
MVS = [mv.kernel(kind_of(*[dtype] * 3), *how) for dtype, *how in
       (("float32", 8, 4, False), ("float32", 8, 1, True), ("float64", 8, 2, False), ("complex64", 1, 2, False),
        ("float16", 1, 8, False), ("bfloat16", 1, 1, True))]  # fmt: skip
STAGED = [
    mv.stager(Staged(kind_of(*[dtype] * 3), chains, Access(order, vector, vector == 1 and chains == 1), warps))
    for dtype, chains, order, vector, warps in (
        ("float16", 1, "k", 8, 4), ("float16", 1, "l", 8, 1), ("bfloat16", 1, "k", 8, 2), ("bfloat16", 1, "k", 1, 4),
        ("float16", 1, "l", 1, 2), ("float32", 8, "k", 4, 2), ("float32", 8, "l", 4, 4), ("float32", 8, "k", 1, 4),
        ("float64", 8, "k", 2, 1), ("float64", 8, "l", 2, 2), ("float64", 8, "l", 1, 4),
    )
]  # fmt: skip
# Of the other dtypes one of each kind, with the tiles of a large product: of every way to load, step and end.
KINDS = [
    kind_of(*dtypes, *conj)
    for *dtypes, conj in (("float16", "float16", "float32", ()), (*("bfloat16",) * 3, ()), (*("complex64",) * 3, "b"),
                          (*("complex128",) * 3, ()), ("uint8", "int8", "int32", ()), (*("int64",) * 3, ()),
                          (*("bool",) * 3, ()))
]  # fmt: skip
SUMS = [
    reduce.kernel(scalar.common.add, dtype, dtype, loops, lanes, width // BYTES[dtype], way, across, False)
    for dtype in ("float32", "float64")
    for loops, lanes, width, way, across in (((1, 1), 8, 16, "vector", True), ((2, 2), 32, 16, "apart", False),
                                             ((1, 1), 256, 16, "vector", False))
] + [
    reduce.kernel(scalar.find(op, np.dtype(work)), item, work, (1, 1), 32, width, "vector", False, False)
    for op, item, work, width in (
        ("maximum", "float16", "float32", 8),
        ("logical_and", "bool", "bool", 8),
        ("multiply", "complex64", "complex64", 2),
    )
]  # fmt: skip
# The largest tile with all that may come, and the smaller ones, each with another operand layout, store and dtype.
WGMMAS = [
    tensormap.Form(GemmConfig("W", bm, bn, 128 // BYTES[dtypes[0]], stages, bm // 16), kind_of(*dtypes), *form)
    for bm, bn, stages, dtypes, *form in (
        (128, 256, 4, ("bfloat16",) * 3, "k", "l", "rows", "long"),
        (128, 256, 4, ("float16", "float16", "float32"), "l", "k", "any"),
        (64, 16, 21, ("float16",) * 3, "l", "k", "columns", "sum"),
        (64, 64, 4, ("uint8", "int8", "int32"), "k", "k", "rows", "part"),
        (128, 192, 4, ("float32",) * 3, "k", "k", "rows", "long"),
    )
]


@pytest.mark.sampled
@pytest.mark.parametrize("form", WGMMAS, ids=str)
def test_wgmma(form):
    kernel = tensormap.kernel(form)
    used = assemble(kernel, (9, 0)).resources
    print(kernel, used)
    assert used.spilled == used.stack == used.shared == 0  # shared memory is the launch's to give
    assert used.registers * kernel.threads <= 65536
    assert kernel.shared <= 227 << 10


@pytest.mark.sampled
@pytest.mark.parametrize(("dtype", "tile", "cc"), GEMMS, ids=str)
def test_gemm(dtype, tile, cc):
    kernel = gemm.kernel(tile, Kind.plain(dtype))
    used = assemble(kernel, cc).resources
    print(kernel, cc, used)
    assert used.spilled == used.stack == 0
    assert used.shared == tile.shared(4 if dtype == "float32" else 8) <= 48 << 10
    assert used.registers * kernel.threads * kernel.blocks <= 65536
    assert used.registers >= tile.tm * tile.tn * (1 if dtype == "float32" else 2)  # or the chains are not there


@pytest.mark.sampled
@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_gemm_of_other_dtypes(kind):
    tile, size = tiles.default(GemmProblem(8192, 8192, 1024, kind.chain), 132), BYTES[kind.chain]
    kernel = gemm.kernel(tile, kind)
    used = assemble(kernel, NEWEST).resources
    print(kernel, used)
    assert used.spilled == used.stack == 0
    assert used.shared == tile.shared(size)
    assert used.registers * kernel.threads * kernel.blocks <= 65536
    assert used.registers >= tile.tm * tile.tn * size // 4


@pytest.mark.sampled
@pytest.mark.parametrize("kernel", [*LOOPS, COMPLEX, *FUNCTIONS, *SUMS, *SCANS, *ATS, *DOTS, *MVS], ids=str)
def test_loops_and_sums(kernel):
    used = assemble(kernel, NEWEST).resources
    print(kernel, used)
    assert used.spilled == used.stack == 0
    assert 65536 // (used.registers * kernel.threads) * kernel.threads >= 448  # threads of a multiprocessor


@pytest.mark.sampled
@pytest.mark.parametrize("cc", [NEWEST, OLDEST])
@pytest.mark.parametrize("kernel", STAGED, ids=str)
def test_staged_rows(kernel, cc):
    """Registers are there for eight warps of a multiprocessor, or for all that its shared memory holds rings of."""
    used = assemble(kernel, cc).resources
    print(kernel, cc, used)
    assert used.spilled == used.stack == 0
    resident = (227 << 10) // kernel.shared * kernel.threads
    assert 65536 // (used.registers * kernel.threads) * kernel.threads >= min(256, resident)


def unnamed(text):
    """PTX without Numba's names, which count what it has compiled."""
    return re.sub(r"(_ZN|_cudapy_smem_)\w+", "", text)


@pytest.mark.parametrize("kernel", [SUMS[0], LOOPS[0], gemm.kernel(DEFAULTS["float32"][0], Kind.plain("float32"))])
def test_what_numba_is_spared_changes_no_ptx(monkeypatch, kernel):
    """Nothing is copied, no variable's life is computed, no type of a call inferred twice; Numba's own way does all."""
    done = collections.Counter()

    def counted(owner, name):
        own = getattr(owner, name)
        monkeypatch.setattr(owner, name, lambda *args, **keywords: done.update([name]) or own(*args, **keywords))

    counted(copy, "deepcopy")
    counted(compiler.postproc.analysis, "compute_live_map")
    counted(compiler.types.BaseFunction, "get_call_type")
    counted(compiler.ssa, "_find_defs_violators")
    counted(compiler.compiler_machinery, "SimpleTimer")
    made, spared = unnamed(ptx(kernel, NEWEST)), done.copy()
    assert set(spared) == {"get_call_type"}
    monkeypatch.setattr(sys.modules[ptx.__module__], "spared", contextlib.nullcontext)
    assert unnamed(ptx(kernel, NEWEST)) == made
    assert len(done) == 5
    assert done["get_call_type"] - spared["get_call_type"] > 2 * spared["get_call_type"]


def test_numba_is_as_it_was_afterwards():
    def all_of_it():
        return [inspect.getattr_static(owner, name) for owner, name, _ in compiler.WAYS]

    before = all_of_it()
    with contextlib.suppress(ZeroDivisionError), compiler.spared():
        meanwhile = all_of_it()
        raise ZeroDivisionError
    assert not set(meanwhile) & set(before)
    assert all_of_it() == before


def test_a_kernel_that_nvvm_refuses_is_compiled_elsewhere(monkeypatch):
    """In a process of its own; where that cannot be, the error is what NVVM said."""
    room, kernel = sys.modules[ptx.__module__], LOOPS[0]

    def refuse(handle):
        raise room.nvjitlink.nvJitLinkError(5)

    monkeypatch.setattr(room.nvjitlink, "complete", refuse)
    assert assemble(kernel, NEWEST).resources.registers
    assert ".visible .entry" in ptx(kernel, NEWEST)
    monkeypatch.setattr(room, "CHILD", "raise SystemExit(1)")
    with pytest.raises(room.Refused):
        ptx(kernel, NEWEST)


def test_every_candidate_asks_for_registers_that_exist():
    for dtype in ("float32", "float64"):
        for tile in tiles.candidates(dtype):
            kernel = gemm.kernel(tile, Kind.plain(dtype))
            assert kernel.threads * kernel.blocks <= 1024


def test_chains_are_fused_and_stay_in_registers():
    """8x8 in each thread, two steps of k in the loop's body, one row of X in the epilogue's."""
    text = ptx(gemm.kernel(tiles.Tiles(128, 128, 8, 8, 8), Kind.plain("float32")), NEWEST)
    assert text.count("fma.rn.f32") == 2 * 64 + 8
    assert "ld.shared.v4.f32" in text
    assert ".local" not in text
    assert "ld.f32" not in text  # no generic load: what is not shared is known to be global


def test_whole_numbers_are_multiplied_in_their_own_width():
    """Numba computes with int64, and the compiler takes that back: 4x4 in each thread, two steps of k."""
    text = ptx(gemm.kernel(tiles.Tiles(64, 64, 8, 4, 4), kind_of("uint8", "int8", "int32")), NEWEST)
    assert 2 * 16 <= text.count("mad.lo.s32") < 3 * 16
    assert ".local" not in text


def test_sums_of_products_are_not_contracted():
    """x + alpha*y keeps its two roundings, as on the CPU."""
    text = ptx(loop(scalar.common.add_scaled, ("float32",) * 3, 1, scaled=True), NEWEST)
    assert "fma.rn" not in text
    assert "mul.rn.f32" in text
    assert "add.rn.f32" in text
    assert "ld.f32" not in text


def test_launch(monkeypatch):
    """What the driver is handed: stream, grid and block, the arguments with tuples laid open."""
    gpu = launched.device(monkeypatch)
    launch.launch(SUMS[0], (7, 2), 1, (2, 3), np.float32(4), np.complex64(5 + 6j), launch.Place(9), stream=0xAB)
    ((kernel, arguments, stream),) = gpu.launches
    assert (kernel, stream, arguments.sizes) == (SUMS[0], 0xAB, [8, 8, 8, 4, 4, 4, 8])
    bits = [int(np.float32(x).view("i4")) for x in (4, 5, 6)]
    assert list(arguments) == [1, 2, 3, *bits, 9]


class Own(launch.Kernel):
    """A kernel of the test's own."""

    def __init__(self, body, signature, threads):
        super().__init__("tests:none", (body, signature), threads)

    def source(self):
        return self.arguments


block = BlockGemm("float32", tiles=(64, 64, 8, 4, 4))


def product(c, a, b):
    """A user's kernel, with the block's product in a global."""
    row, column = cuda.blockIdx.y * block.bm, cuda.blockIdx.x * block.bn
    chains, scratch = block.zeros(), block.scratch()
    block.multiply(chains, a[row : row + block.bm], b[:, column : column + block.bn], scratch)
    block.store(c[row : row + block.bm, column : column + block.bn], chains, 2, 3)


def matrices(*names):
    return tuple(types.Array(getattr(types, name), 2, "A") for name in names)


def test_block_gemm_in_a_users_kernel():
    """As cuda.jit compiles it: chains in registers, two steps of k and C, three barriers."""
    text, _ = cuda.compile_ptx(product, matrices(*["float32"] * 3), device=False, cc=NEWEST)
    assert ".local" not in text
    assert text.count("fma.rn.f32") == (2 + 1) * 16
    assert text.count("bar.sync") == 3
    assert "ld.shared.v4.f32" in text


def test_block_gemm_assembled():
    """With its block's product in a closure, which two calls use with one shared memory."""
    gemm = BlockGemm("uint8", "int8", "int32", tiles=(64, 64, 8, 4, 4))

    def kernel(c, a, b):
        chains, scratch = gemm.zeros(), gemm.scratch()
        gemm.multiply(chains, a[:, :9], b[:9], scratch)
        gemm.multiply(chains, a[:, 9:], b[9:], scratch)
        gemm.store(c, chains)

    signature = matrices("int32", "uint8", "int8")
    used = assemble(Own(kernel, signature, gemm.threads), NEWEST).resources
    print(gemm, used)
    assert used.spilled == used.stack == 0
    assert used.shared == gemm.shared
    assert gemm.tm * gemm.tn <= used.registers <= 128


def test_what_does_not_fit_a_block_gemm_is_a_typing_error():
    with pytest.raises(errors.TypingError, match="c must be a matrix of float32, and it is array"):
        cuda.compile_ptx(lambda c: block.store(c, block.zeros()), matrices("float64"), device=False, cc=NEWEST)


@pytest.mark.parametrize("kernel", OTHERS, ids=str)
def test_every_kind_of_number_compiles(kernel):
    assert ".entry" in ptx(kernel, NEWEST)
