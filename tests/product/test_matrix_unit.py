"""Products by a matrix unit (jit/ir/amx.py): whole numbers exactly, bfloat16 by a model of the instruction; by the unit
where there is one, and by its emulation everywhere."""

import ctypes
import itertools
import os
import subprocess
import sys
from dataclasses import replace

import llvmlite.binding as llvm
import ml_dtypes
import numpy as np
import pytest
from llvmlite import ir

import nbkernels as nb
from nbkernels.cpu.gemm import context_setup, kinds, matrix_unit
from nbkernels.cpu.gemm.blocking import Tiles
from nbkernels.cpu.gemm.context_setup import swapped
from nbkernels.cpu.gemm.general_entry import general
from nbkernels.cpu.gemm.kinds import by_unit, default_tiles, kind_of
from nbkernels.cpu.gemm.packed import packed
from nbkernels.jit.disk import levels
from nbkernels.jit.ir import amx
from nbkernels.jit.ir.kind import UNIT, Kind
from nbkernels.jit.ir.vector import VOID

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
HALVES = BFLOAT16, np.dtype(np.float16)
BYTES = "int8", "uint8"
SHAPES = (1, 1, 1), (17, 33, 7), (33, 49, 65), (32, 64, 4100)
SMALL = Tiles(32, 32, 64, 32, 64, 64)  # every block is cut


def matrix(rng, shape, dtype, order="C"):
    if dtype in HALVES:
        return np.array(rng.standard_normal(shape), dtype, order=order)
    info = np.iinfo(dtype) if dtype != "bool" else None
    low, high = (info.min, info.max) if info else (0, 1)
    return np.array(rng.integers(low, high + 1, shape), dtype, order=order)


def strided(rng, shape, dtype):
    return matrix(rng, (2 * shape[0], 3 * shape[1]), dtype)[::-2, ::3]


def strided_like(x):
    """The same numbers, of which none are neighbours."""
    found = np.zeros((2 * x.shape[0], 3 * x.shape[1]), x.dtype)[::2, ::3]
    found[...] = x
    return found


def run(out, x, a, b, beta, alpha, kind, tiles=None, workers=1):
    packed(out, 0 if x is None else id(x), a, b, beta, alpha, tiles or default_tiles(kind), kind, workers)
    return out


def model(a, b):
    """Compute what tdpbf16ps makes of bfloat16 matrices, and tdpfp16ps of float16: products are exact in float32."""
    a, b = (np.asarray(x, np.float32) for x in (a, b))
    c = np.zeros((len(a), b.shape[1]), np.float32)
    for p in range(0, a.shape[1], 32):
        even, odd = np.zeros_like(c), np.zeros_like(c)
        for q in range(p, min(p + 32, a.shape[1])):
            (odd if q % 2 else even)[...] += a[:, q : q + 1] * b[q]
        c += even + odd
    return c


@pytest.mark.sampled
@pytest.mark.parametrize(("first", "second"), [*itertools.product(BYTES, BYTES), ("bool", "bool")])
def test_whole_numbers_are_exact(rng, first, second):
    kind = Kind(first, second, "int32", "bool" if first == "bool" else "int32", UNIT)
    for shape, tiles in itertools.product(SHAPES, (None, SMALL)):
        m, n, k = shape
        for order, make in itertools.product("CF", (matrix, strided)):
            lay = (order,) if make is matrix else ()
            a, b = make(rng, (m, k), first, *lay), make(rng, (k, n), second, *lay)
            expected = a @ b if first == "bool" else a.astype("int32") @ b.astype("int32")
            out = np.full((m, n), 1 if first == "bool" else -7, kind.out, order)
            np.testing.assert_array_equal(run(out, None, a, b, 0, 1, kind, tiles), expected)


def test_rows_in_any_order_are_read_in_place(rng):
    """Reversed, repeated and apart, and the last ones of an array, of which no byte beyond is read."""
    kind, b = Kind("int8", "int8", "int32", "int32", UNIT), matrix(rng, (128, 40), "int8")
    room = matrix(rng, (70, 256), "int8")
    for a in (room[::-1, :128], np.broadcast_to(room[:1, 128:], (70, 128)), room[::2, 64:192], room[-33:, 128:]):
        out = np.empty((len(a), 40), "int32")
        np.testing.assert_array_equal(run(out, None, a, b, 0, 1, kind), a.astype("int32") @ b.astype("int32"))


@pytest.mark.parametrize("m", [1, 15, 16, 17, 31, 32, 33, 80])
def test_the_unit_is_configured_for_the_rows_of_each_tile(monkeypatch, rng, m):
    """Once for all tiles of a height that follow, and not at all in the end."""
    kind, heights, call = Kind("int8", "int8", "int32", "int32", UNIT), [], ctypes.CFUNCTYPE(None, ctypes.c_int64)
    configures = call(matrix_unit.brackets("int8"))  # the unit, where there is one, needs it

    @call
    def called(height):
        heights.append(height)
        configures(height)

    monkeypatch.setattr(matrix_unit, "brackets", lambda dtype: ctypes.cast(called, ctypes.c_void_p).value)
    context_setup.template.cache_clear()
    a, b, out = matrix(rng, (m, 128), "int8"), matrix(rng, (128, 70), "int8"), np.empty((m, 70), "int32")
    try:
        run(out, None, a, b, 0, 1, kind, Tiles(32, 32, 128, 4096, 4096, 4096))
    finally:
        context_setup.template.cache_clear()
    np.testing.assert_array_equal(out, a.astype("int32") @ b.astype("int32"))
    assert heights == [32] * (m >= 32) + [m % 32] * (m % 32 > 0) + [0]


def test_every_configuration_is_one_that_the_manual_allows():
    for height in range(1, 33):
        rows = matrix_unit.configured(height)
        assert len(rows) == amx.TILES
        assert all(1 <= each <= amx.ROWS for each in rows)
        assert rows[0] + (height > 16) * rows[2] == height
        assert rows[4:6] == (rows[0], rows[2])


def test_endings_and_results_of_one_byte(rng):
    for m, n, k in SHAPES:
        a, b = matrix(rng, (m, k), "uint8"), matrix(rng, (k, n), "int8")
        wide = a.astype("int64") @ b.astype("int64")
        for out_dtype, tiles in itertools.product(("int32", "int8"), (None, SMALL)):
            kind = Kind("uint8", "int8", "int32", out_dtype, UNIT)
            x = matrix(rng, (m, n), out_dtype)
            expected = (3 * x.astype("int64") - 5 * wide).astype(out_dtype)
            for row in (x, np.asfortranarray(x)):
                np.testing.assert_array_equal(run(np.empty_like(row), row, a, b, 3, -5, kind, tiles), expected)
            np.testing.assert_array_equal(run(x, x, a, b, 3, -5, kind, tiles, workers=2), expected)


@pytest.mark.sampled
@pytest.mark.parametrize("dtype", BYTES)
def test_packed_weights_of_bytes(monkeypatch, rng, dtype):
    """They are packed in the unit's tiles, and products of any number of rows read them."""
    monkeypatch.setattr(kinds, "_of_unit", lambda kind: replace(kind, way=UNIT))
    for m, n, k in SHAPES:
        a, b = matrix(rng, (m, k), dtype), matrix(rng, (k, n), dtype)
        packed = nb.pack(b)
        assert packed.panels.kind.way == UNIT
        np.testing.assert_array_equal(packed.unpack(), b)
        np.testing.assert_array_equal(nb.mm(a, packed, out_dtype="int32"), a.astype("int32") @ b.astype("int32"))
        np.testing.assert_array_equal(nb.mm(a, packed), a @ b)


def test_nothing_beyond_out_is_written(rng):
    room = np.full((40, 80), 77, "int32")
    kind, a, b = (
        Kind("int8", "int8", "int32", "int32", UNIT),
        matrix(rng, (17, 9), "int8"),
        matrix(rng, (9, 35), "int8"),
    )
    run(room[3:20, 4:39], None, a, b, 0, 1, kind)
    np.testing.assert_array_equal(room[3:20, 4:39], a.astype("int32") @ b)
    room[3:20, 4:39] = 77
    assert (room == 77).all()


@pytest.mark.sampled
@pytest.mark.parametrize("wide", [True, False], ids=["float32", "own"])
@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_halves_have_the_order_of_their_mode(rng, dtype, wide):
    out = "float32" if wide else dtype.name
    kind = Kind(dtype.name, dtype.name, "float32", out, UNIT)
    for m, n, k in (*SHAPES[:3], (33, 32, 1000)):
        a, b = matrix(rng, (m, k), dtype), matrix(rng, (k, n), dtype)
        expected = model(a, b).astype("float32" if wide else dtype)
        for (left, right), tiles in itertools.product([(a, b), (a.copy("F"), b.copy("F"))], (None, SMALL)):
            found = run(np.empty_like(expected), None, left, right, 0, 1, kind, tiles)
            assert found.tobytes() == expected.tobytes()
    least = np.array(1, "u2").view(dtype)
    tiny, large = np.full((4, 4), least, dtype), np.full((4, 4), 1024, dtype)
    found = run(np.ones((4, 4), expected.dtype), None, tiny, large, 0, 1, kind)  # bfloat16's are taken for 0
    assert (found.astype("float64") == (0 if dtype == BFLOAT16 else 2.0**-12)).all()
    odd = np.array([[np.inf, 1], [np.nan, 1]], dtype)
    found = run(np.empty((2, 2), expected.dtype), None, odd, np.eye(2, dtype=dtype), 0, 1, kind)
    np.testing.assert_array_equal(found.astype("float32"), [[np.inf, np.nan], [np.nan, np.nan]])


def test_products_go_by_the_unit_where_there_is_one(rng):
    kind = kind_of("int8", "int8", "int32")
    here = amx.available("int8")
    assert (by_unit(kind, 96, 96, 97).way == UNIT) == here
    assert by_unit(kind, 96, 96, 96).way != UNIT
    assert by_unit(kind_of("int16", "int16", "int16"), 512, 512, 512).way != UNIT
    a, b = matrix(rng, (130, 200), "int8"), matrix(rng, (200, 140), "uint8")
    expected = a.astype("int32") @ b.astype("int32")
    np.testing.assert_array_equal(nb.mm(a, b, out_dtype="int32"), expected)
    np.testing.assert_array_equal(nb.addmm(expected, a, b, out_dtype="int32", beta=-1, alpha=2), expected)
    square = matrix(rng, (130, 130), "int8")
    np.testing.assert_array_equal(nb.mm(square, square.T), square @ square.T)
    truth = matrix(rng, (130, 130), "bool")
    np.testing.assert_array_equal(nb.mm(truth, truth), truth @ truth)
    assert nb.explain(nb.mm, a, b, out_dtype="int32").tile.startswith("32x32 ") == here


@pytest.mark.parametrize(("a", "b"), [("int8", "int8"), ("uint8", "int8"), ("bfloat16", "bfloat16")])
def test_few_rows_and_contiguous_columns(rng, a, b):
    """The unit takes these columns as the rows of B' A', of operands that are alike: with an addend, an epilogue and in
    stacks, too, and beside products of other rows, steps and layouts."""
    half = a == "bfloat16"
    kind = Kind(a, b, "float32", "bfloat16", UNIT) if half else Kind(a, b, "int32", "int32", UNIT)
    for m, n, k, turned in ((1, 70, 192, a == b), (16, 33, 1030, a == b), (17, 33, 1100, False), (16, 33, 128, False)):
        dtypes = (BFLOAT16,) * 2 if half else (a, b)
        left, right = (matrix(rng, shape, dtype) for shape, dtype in (((m, k), dtypes[0]), ((n, k), dtypes[1])))
        out, x = np.empty((m, n), BFLOAT16 if half else "int32"), matrix(rng, (n,), BFLOAT16 if half else "int32")
        assert swapped(out, right.T, kind) == turned
        product = model(left, right.T) if half else left.astype("int32") @ right.T.astype("int32")
        run(out, None, left, right.T, 0, 1, kind)
        assert out.tobytes() == product.astype(out.dtype).tobytes()
        run(out, x, left, right.T, 1, 1, kind)
        assert out.tobytes() == (product + x.astype(product.dtype)).astype(out.dtype).tobytes()
        stack = np.empty((3, m, n), out.dtype)
        given = np.stack([left] * 3), np.stack([right] * 3).swapaxes(1, 2)
        assert general(kind, 0, 1, out.dtype, True).stack(stack, None, *given)
        assert stack.tobytes() == 3 * product.astype(out.dtype).tobytes()


@pytest.fixture
def by_the_unit(monkeypatch):
    """Calls that name no mode go by the unit, or, where there is none, by its emulation."""
    monkeypatch.setattr(kinds, "has", lambda mode, dtype="": True)
    with nb.modes("amx"):
        yield
    kinds._kind_of.cache_clear()


@pytest.mark.parametrize(("k", "n"), [(1, 5), (16, 35), (17, 33), (70, 1), (1100, 64)])
@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_one_order_in_every_call(by_the_unit, rng, dtype, k, n):
    """That of the instruction, and of chains where there are few steps: of plain and packed matrices, and of stacks."""
    a, b = matrix(rng, (40, k), dtype), matrix(rng, (k, n), dtype)
    expected = nb.mm(a, b, mode="chain") if k <= kinds.SHALLOW else model(a, b).astype(dtype)
    packed, weight = nb.pack(b), nb.pack(b.T, for_="weight")
    assert packed.unpack().tobytes() == b.tobytes()
    assert (packed.panels.kind.way == UNIT) == (k > kinds.SHALLOW)
    found = [nb.mm(a, b), nb.mm(a, b, mode="amx"), nb.mm(a, packed), nb.linear(a, weight), nb.linear(a, b.T)]
    found += [*nb.bmm(np.stack([a, a]), np.stack([b, b])), nb.mm(b.T, a.T).T, nb.mm(strided_like(a), b)]
    found += [np.concatenate([nb.mm(row[None], b) for row in a]), nb.addmm(expected, a, b, beta=0)]
    for each in found:
        assert np.ascontiguousarray(each).tobytes() == expected.tobytes()
    wide = nb.mm(a, b, out_dtype="float32").astype(dtype)
    assert wide.tobytes() == expected.tobytes()
    told = nb.explain(nb.mm, a, b)
    assert told.mode == "amx"
    assert ("_amx_32x32" in told.code) == (k > kinds.SHALLOW), told.code


def test_a_processor_without_the_unit(rng):
    a, b = matrix(rng, (40, 70), BFLOAT16), matrix(rng, (70, 35), BFLOAT16)
    if not amx.available("bfloat16"):
        with pytest.raises(ValueError, match="mode 'amx' needs a processor with AMX"):
            nb.mm(a, b, mode="amx")
    else:
        with nb.modes():
            assert kinds.default_mode("bfloat16") == "amx"
            assert nb.mm(a, b).tobytes() == nb.mm(a, b, mode="amx").tobytes()
    a, b = a.astype("float16"), b.astype("float16")
    if not amx.available("float16"):
        with pytest.raises(ValueError, match="mode 'amx' needs a processor with AMX, of float16 AMX-FP16"):
            nb.mm(a, b, mode="amx")
        if amx.available("bfloat16"):
            with nb.modes("amx"):  # is of bfloat16 alone
                assert nb.explain(nb.mm, a, b).mode == "chain"


def test_float16_is_the_units_where_it_has_it():
    """No processor here may run it: LLVM's text of the instruction."""
    module = ir.Module()
    function = ir.Function(module, ir.FunctionType(VOID, []), "dots")
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    amx.Unit(builder).dot("float16", "float16", 0, 4, 6)
    builder.ret_void()
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    target = llvm.Target.from_triple("x86_64-unknown-linux-gnu")
    machine = target.create_target_machine(features="+amx-tile,+amx-fp16")
    assert "tdpfp16ps" in machine.emit_assembly(llvm.parse_assembly(str(module)))
    assert kinds.default_mode("float16") == ("amx" if amx.available("float16") else "chain")


def test_a_refusal_means_no_unit(monkeypatch):
    monkeypatch.setattr(amx, "permitted", lambda: False)
    assert not amx.available("int8")


if amx.available("int8"):  # else the tests above ran by emulation

    def test_the_emulation_passes_the_same_tests():
        features = ",".join(f"+{each}" for each in sorted(levels.target()[2]) if not each.startswith("amx"))
        environment = os.environ | {"NUMBA_CPU_NAME": levels.target()[1], "NUMBA_CPU_FEATURES": features}
        which = "(mode and float32 or by_the_unit or in_every_call) and not float16"  # which went by it before
        line = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", __file__, "-k", which]
        done = subprocess.run(line, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout
