"""What one machine can do at most, measured: python bench/peak.py prints the FMA peak of each dtype and thread count."""

import time

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from tabulate import tabulate

from nbkernels.cpu import threads
from nbkernels.cpu.tiles import default
from nbkernels.jit.cache import compiled
from nbkernels.jit.vector import ELEMENT, Lanes, loop

CHAINS = 12  # independent fused multiply-adds in flight: 2 ports x 4 cycles of latency need 8, 16 registers hold 12 + 3


@intrinsic
def _chains(typing, tile, trips):
    """CHAINS vectors x <- fma(x, a, b), `trips` times, all in registers; the sum of them all, so that none is dropped."""

    def emit(context, builder, signature, args):
        record = signature.args[0].tile
        lanes = Lanes(builder, record.dtype, record.lanes)
        a, b = (lanes.splat(ir.Constant(ELEMENT[record.dtype], value)) for value in (0.5, 1.0))
        start = [lanes.splat(ir.Constant(ELEMENT[record.dtype], float(i))) for i in range(CHAINS)]
        end = loop(builder, args[1], start, lambda index, values: [lanes.fma(x, a, b) for x in values])
        total = end[0]
        for value in end[1:]:
            total = builder.fadd(total, value)
        return builder.extract_element(total, ir.IntType(32)(0))

    return getattr(types, tile.tile.dtype)(tile, types.int64), emit


def fma_peak(dtype, workers=1, seconds=0.05, rounds=9):
    """GFLOP/s of fused multiply-adds between registers on `workers` threads: the best of `rounds`."""
    tile = default(dtype).tile(dtype)

    def work(context, task):
        context[1 + task] = int(_chains(tile, context[0]))

    address = compiled(work, "void(CPointer(int64), int64)", f"bench_fma_peak_{tile}")
    context, best = np.zeros(1 + workers, np.int64), 0.0
    context[0] = 100_000
    available = numba.get_num_threads()
    numba.set_num_threads(workers)
    try:
        for _ in range(rounds):
            start = time.perf_counter()
            threads.launch(address, context.ctypes.data, workers)
            took = time.perf_counter() - start
            best = max(best, 2 * CHAINS * tile.lanes * workers * context[0] / took / 1e9)
            context[0] = max(1, int(context[0] * seconds / took))
    finally:
        numba.set_num_threads(available)
    return best


if __name__ == "__main__":
    counts = sorted({1, threads.count()})
    rows = [[dtype, n, f"{fma_peak(dtype, n):.1f}"] for dtype in ("float32", "float64") for n in counts]
    print(tabulate(rows, headers=["dtype", "threads", "GFLOP/s"], disable_numparse=True))
