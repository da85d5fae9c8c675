"""What the machine can do at most, measured: python bench/peak.py prints the FMA peak by dtype and threads."""

import contextlib
import itertools
import sys

import numba
import numpy as np
import threadpoolctl
from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from tabulate import tabulate

from nbkernels import tune
from nbkernels.cpu import threads
from nbkernels.cpu.tiles import default
from nbkernels.jit.cache import compiled
from nbkernels.jit.chain import Chain, crossed
from nbkernels.jit.kind import Kind
from nbkernels.jit.vector import ELEMENT, Lanes, loop

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


def step_call(tile, operations=1e9):
    """(call, operations): one call does so many, all steps of chains of the tile's kind."""

    def work(context, task):
        context[0] = _steps(tile, context[1], context[2])

    address = compiled(work, "void(CPointer(int64), int64)", f"bench_step_peak_{tile}")
    room = np.zeros(64 * 32, np.uint8)
    planes = tile.kind.planes
    numbers = CHAINS // (2 if crossed(tile.kind) else planes)
    each = 2 * planes**2 * numbers * tile.lanes * tile.group
    context = np.array([0, operations / each, -(-room.ctypes.data // 64) * 64], np.int64)

    def call(room=room):
        threads.launch(address, context.ctypes.data, 1)

    return call, each * int(context[1])


@contextlib.contextmanager
def workers(count):
    """This library, NumPy's BLAS and torch on `count` threads."""
    available = numba.get_num_threads()
    numba.set_num_threads(count)
    torch = sys.modules.get("torch")
    if torch:
        torch.set_num_threads(count)
    try:
        with threadpoolctl.threadpool_limits(count):
            yield
    finally:
        numba.set_num_threads(available)


if __name__ == "__main__":
    rows = []
    for dtype, count in itertools.product(("float32", "float64"), sorted({1, threads.count()})):
        with workers(count):
            call, flops = fma_call(dtype, count)
            rows.append([dtype, count, f"{flops / tune.medians({'peak': call})['peak'] / 1e9:.1f}"])
    print(tabulate(rows, headers=["dtype", "threads", "GFLOP/s"], disable_numparse=True))
