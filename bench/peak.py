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
