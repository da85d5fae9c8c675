"""Measured peaks of the machine: multiply-adds between registers, copies in each cache level, a launch."""

import contextlib
import itertools
import sys

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from .. import tune
from ..cpu.gemm.blocking import default
from ..cpu.gemm.kinds import by_unit, default_tiles, kind_of
from ..cpu.runtime import threads
from ..cpu.runtime.machine import machine
from ..jit.abi.address import copy
from ..jit.compile.cache import compiled
from ..jit.ir.amx import unit
from ..jit.ir.chain import Chain, crossed
from ..jit.ir.kind import UNIT, Kind
from ..jit.ir.vector import ELEMENT, Lanes, loop
from .dtypes import CASES

LARGE = 1024  # rows, columns and steps of a product that takes whatever is fastest
CHAINS = 12  # independent fused multiply-adds in flight: 2 ports x 4 cycles of latency need 8, 16 registers hold 12 + 3


@intrinsic
def _chains(typing, tile, trips):
    """CHAINS vectors x <- fma(x, a, b), `trips` times, in registers; the sum of them all, so that none is dropped."""

    def emit(context, builder, signature, args):
        record = signature.args[0].tile
        lanes = Lanes(builder, record.dtype, record.lanes)
        a, b = (lanes.splat(ir.Constant(ELEMENT[record.dtype], value)) for value in (0.5, 1.0))
        # From 3 on: 2 = 2*0.5 + 1 stays 2, and LLVM would drop that chain (until 2026-11 it did: the peak read 12/11).
        start = [lanes.splat(ir.Constant(ELEMENT[record.dtype], 3.0 + i)) for i in range(CHAINS)]
        end = loop(builder, args[1], start, lambda index, values: [lanes.fma(x, a, b) for x in values])
        total = end[0]
        for value in end[1:]:
            total = builder.fadd(total, value)
        return builder.extract_element(total, ir.IntType(32)(0))

    return getattr(types, tile.tile.dtype)(tile, types.int64), emit


def fma_call(dtype, workers=1, flops=2e8):
    """(call, flops): one call does so many operations, all fused multiply-adds in registers, on `workers` threads."""
    tile = default(dtype).tile(Kind.plain(dtype))

    def work(context, task):
        context[1 + task] = int(_chains(tile, context[0]))

    address = compiled(work, "void(CPointer(int64), int64)", f"bench_fma_chains_{tile}")
    context = np.zeros(1 + workers, np.int64)
    context[0] = int(flops / (2 * CHAINS * tile.lanes * workers))
    return lambda: threads.launch(address, context.ctypes.data, workers), 2 * CHAINS * tile.lanes * workers * context[0]


@intrinsic
def _steps(typing, tile, trips, memory):
    """CHAINS chains of the tile's kind, `trips` steps each; operands come from `memory`, anew each time."""

    def emit(context, builder, signature, args):
        record = signature.args[0].tile
        ops = Chain(builder, record.kind, record.lanes)
        words, planes, start = ops.words, record.kind.planes, ops.opened(ops.zero)
        parts = len(start)  # registers of a chain
        memory = builder.inttoptr(args[2], words.element.as_pointer())
        pure, forget = ir.FunctionType(ir.VoidType(), []), "~{memory}"

        def load(first):
            return [words.load(words.at(memory, (first + i) * record.lanes)) for i in range(planes)]

        def body(index, values):
            builder.call(ir.InlineAsm(pure, "", forget, True), [])
            wide = 3 // parts  # numbers across, as many registers as 16 leave beside the chains
            across = [load(planes * q) for q in range(wide)]
            result = []
            for i in range(0, CHAINS // parts, wide):
                down = load(planes * (wide + i // wide))
                for j in range(wide):
                    at = (i + j) * parts
                    result += ops.step(down, across[j], values[at : at + parts])
            return result

        end = loop(builder, args[1], start * (CHAINS // parts), body)
        end = [plane for at in range(0, len(end), parts) for plane in ops.closed(end[at : at + parts])]
        total = end[0]
        for value in end[1:]:
            total = (builder.fadd if ops.plane.startswith("float") else builder.add)(total, value)
        number = builder.extract_element(total, ir.IntType(32)(0))
        return (
            builder.fptosi(number, ir.IntType(64))
            if ops.plane.startswith("float")
            else (number if number.type.width == 64 else builder.sext(number, ir.IntType(64)))
        )

    return types.int64(tile, types.int64, types.int64), emit


@intrinsic
def tiles_multiplied(typing, tile, trips, memory):
    """0, after the products of `trips` times two tiles of A and two of B: the most that the unit can do."""

    def emit(context, builder, signature, args):
        kind = signature.args[0].tile.kind
        engine = unit(kind.a)(builder)
        engine.begin()
        for tile in range(8):
            engine.zero(tile)

        def body(index, _):
            for i, j in itertools.product(range(2), range(2)):
                engine.dot(kind.a, kind.b, 2 * i + j, 4 + i, 6 + j)
            return []

        loop(builder, args[1], [], body)
        engine.end()
        return ir.IntType(64)(0)

    return types.int64(tile, types.int64, types.int64), emit


def step_call(tile, operations=1e9):
    """(call, operations): one call does so many, all steps of chains of the tile's kind."""

    by = tiles_multiplied if tile.kind.way == UNIT else _steps

    def work(context, task):
        context[0] = by(tile, context[1], context[2])

    address = compiled(work, "void(CPointer(int64), int64)", f"bench_step_peak_{tile}")
    room = np.zeros(64 * 32, np.uint8)
    planes = tile.kind.planes
    numbers = CHAINS // (2 if crossed(tile.kind) else planes)
    if tile.kind.way == UNIT:
        each = 2 * tile.mr * tile.nr * tile.group
    else:
        each = 2 * planes**2 * numbers * tile.lanes * tile.group
    context = np.array([0, operations / each, -(-room.ctypes.data // 64) * 64], np.int64)

    def call(room=room):
        threads.launch(address, context.ctypes.data, 1)

    return call, each * int(context[1])


def steps_of(name, operations=1e9):
    """`step_call` of a product of the suite of dtypes."""
    (left, right), words = CASES[name]
    kind = kind_of(left, right, words.get("out_dtype", left), mode=words.get("mode"))
    kind = by_unit(kind, *[LARGE] * 3)
    return step_call(default_tiles(kind).tile(kind), operations)


@contextlib.contextmanager
def workers(count):
    """This library, NumPy's BLAS and torch on `count` threads."""
    available = numba.get_num_threads()
    numba.set_num_threads(count)
    torch = sys.modules.get("torch")
    before = torch.get_num_threads() if torch else None
    try:
        if torch:
            torch.set_num_threads(count)
        with _blas(count):
            yield
    finally:
        numba.set_num_threads(available)
        if torch:
            torch.set_num_threads(before)


def _blas(count):
    """NumPy's BLAS likewise, where threadpoolctl is installed; else its threads are what they are."""
    try:
        import threadpoolctl
    except ImportError:
        return contextlib.nullcontext()
    return threadpoolctl.threadpool_limits(count)


# -- bandwidth and launches --------------------------------------------------------------------------------------------

LEVELS = ("L1", "L2", "L3", "memory")
LEAST_BESIDE = 64 << 20  # bytes of a copy that no cache holds, where there is no third level


def level_bytes(level) -> int | None:
    """Bytes of source and target of a thread's copy that stays in a level: half of it; None where there is none."""
    found = machine()
    if level == "memory":
        return max(4 * found.l3, LEAST_BESIDE)
    size = {"L1": found.l1, "L2": found.l2, "L3": found.l3}[level]
    return size // 2 or None


def copy_call(level, workers=1, traffic=1 << 26):
    """(call, bytes): one call reads and writes so many on each of `workers` threads, by memcpy within a level; a shared
    level is shared out. None where the machine has no such level."""
    size = level_bytes(level)
    if size is None:
        return None
    size = size // (workers if level in ("L3", "memory") else 1) // 2 // 64 * 64
    trips = max(1, traffic // (2 * size))
    room = np.zeros(workers * 2 * (size + 64) + 64, np.uint8)
    first = -(-room.ctypes.data // 64) * 64

    def work(context, task):
        source = context[0] + task * context[3]
        for _ in range(context[1]):
            copy(source + context[2] + 64, source, context[2])

    address = compiled(work, "void(CPointer(int64), int64)", "bench_copy")
    context = np.array([first, trips, size, 2 * (size + 64)], np.int64)

    def call(room=room):
        threads.launch(address, context.ctypes.data, workers)

    return call, 2 * size * trips * workers


def peaks(workers=1, dtype="float32", seconds=0.6) -> dict:
    """{"gflops": of multiply-adds, "gb_s": {level: of copies, bytes read and written}, "launch_us", "threads"}."""
    fma, flops = fma_call(dtype, workers)
    calls, moved = {"fma": fma}, {}
    for level in LEVELS:
        if found := copy_call(level, workers):
            calls[level], moved[level] = found
    nothing = compiled(lambda context, task: None, "void(CPointer(int64), int64)", "bench_nothing")
    calls["launch"] = lambda: threads.launch(nothing, 0, workers)
    times = {name: min(each) for name, each in tune.samples(calls, seconds=seconds, rounds=5).items()}
    return {"gflops": flops / times["fma"] / 1e9, "launch_us": times["launch"] * 1e6, "threads": workers,
            "gb_s": {level: size / times[level] / 1e9 for level, size in moved.items()}, "dtype": dtype}  # fmt: skip
