"""How fast the CUDA kernels are on a GPU, beside torch and CuPy: what device_check.py measures once they are right."""

import functools
import itertools
import time

import numpy as np
from device_arrays import DTYPES, View, numbers, tiled

from nbkernels import tune
from nbkernels.benches import measure, peers
from nbkernels.tuning.cuda import Cuda
from nbkernels.tuning.race import Race


def medians(calls, seconds=0.3, rounds=7):
    """{name: median seconds of one call by the device's clock}, timed in turns."""
    return {name: tune.middle(times) for name, times in measure.gpu_samples(calls, seconds, rounds).items()}


def libraries_here():
    """The array libraries with a GPU that are here: {name: (from a device array, mm(a, b, out), add(a, b, out))}."""
    found, torch, cupy = {}, peers.torch(), peers.cupy()
    if torch and torch.cuda.is_available():
        torch.backends.cuda.matmul.allow_tf32 = False
        found["torch"] = (
            lambda x: torch.as_tensor(x, device="cuda"),
            lambda a, b, out: torch.mm(a, b, out=out),
            lambda a, b, out: torch.add(a, b, out=out),
        )
    if cupy:
        found["CuPy"] = (
            cupy.asarray,
            lambda a, b, out: cupy.matmul(a, b, out=out),
            lambda a, b, out: cupy.add(a, b, out=out),
        )
    print("peers:", ", ".join(found) or "none")
    return found


def row(bench, shape, dtype, times, work, unit, **more):
    ours = times.pop("ours")
    against = "  ".join(f"{name} {work / seconds:.1f} ({seconds / ours:.2f}x)" for name, seconds in times.items())
    name = f"{bench:8} {dtype} {'x'.join(map(str, shape)):16}"
    print(f"{name} {work / ours:9.1f} {unit}  {more.get('tile', more.get('layout')):16} {against}")
    return {"bench": bench, "shape": list(shape), "dtype": dtype, "threads": "GPU", "ours_s": ours, "peers": times,
            "gflops": work / ours if unit == "GFLOP/s" else None, "gb_s": work / ours if unit == "GB/s" else None,
            **more}  # fmt: skip


def gemm_speed(edges, libraries, sweep, rng):
    """GFLOP/s of square products; with `sweep`, the fastest of all candidates, raced as `nbkernels tune` does."""
    from numba import cuda

    import nbkernels
    from nbkernels.cuda import launch, tiles
    from nbkernels.cuda.block import BlockGemm
    from nbkernels.problem import GemmProblem

    rows = []
    for dtype, n in itertools.product(DTYPES, edges):
        a, b = cuda.to_device(numbers(rng, n, n, dtype=dtype)), cuda.to_device(numbers(rng, n, n, dtype=dtype))
        out = cuda.device_array((n, n), dtype)
        chosen = tiles.default(GemmProblem(n, n, n, dtype), launch.multiprocessors())
        calls = {"ours": functools.partial(nbkernels.mm, a, b, out=out)}
        calls["in a user's kernel"] = functools.partial(tiled(BlockGemm(dtype, tiles=chosen)), out, a, b, 1, 0)
        for name, (view, mm, _) in libraries.items():
            calls[name] = functools.partial(mm, *map(view, (a, b, out)))
        rows.append(row("mm", (n, n, n), dtype, medians(calls), 2 * n**3 / 1e9, "GFLOP/s", tile=str(chosen)))
        if sweep:
            race = Race((side := Cuda(dtype)).sample, side.default, [(n, n, n, "NN", 1)])
            ranked = race.run(side.candidates([(n, n, n)]))
            times = {str(tile): race.seconds(tile, race.lanes[0]) for tile in ranked}
            print("   fastest:", ", ".join(f"{name} {2 * n**3 / times[name] / 1e9:.0f}" for name in list(times)[:5]))
            rows[-1]["candidates"] = times
    return rows


def loop_speed(n, libraries, rng):
    """GB/s of add in four layouts and of sum_to over rows, columns and all; each array counted once."""
    from numba import cuda

    import nbkernels
    from nbkernels.cuda import reduce
    from nbkernels.dispatch.devices import NUMBA

    rows = []
    a, b, out = (cuda.to_device(numbers(rng, n, n)) for _ in range(3))
    line = cuda.to_device(numbers(rng, n))
    turned = cuda.as_cuda_array(View(b, 0, np.lib.stride_tricks.as_strided(np.zeros(1, "f4"), (n, n), (4, 4 * n))))
    for layout, other, size in (("contiguous", b, 12), ("row", line, 8), ("transposed", turned, 12)):
        calls = {"ours": functools.partial(nbkernels.add, a, other, out=out)}
        for name, (view, _, add) in libraries.items():
            calls[name] = functools.partial(add, *map(view, (a, other, out)))
        rows.append(row("add", (n, n), "float32", medians(calls), size * n * n / 1e9, "GB/s", layout=layout))
    for layout, shape in (("rows", (n,)), ("columns", (n, 1)), ("all", ())):
        target = cuda.device_array(shape, "float32")
        calls = {"ours": functools.partial(reduce.sum_to, NUMBA.view(target), NUMBA.view(a))}
        rows.append(row("sum_to", (n, n), "float32", medians(calls), 4 * n * n / 1e9, "GB/s", layout=layout))
    return rows


def launch_cost(libraries, rng, calls=2000):
    """Microseconds of the host for one small product that is not waited for."""
    from numba import cuda

    import nbkernels
    from nbkernels.cuda import gemm
    from nbkernels.dispatch.devices import NUMBA

    a, b, out = (cuda.to_device(numbers(rng, 32, 32)) for _ in range(3))
    todo = {
        "nbkernels.mm": functools.partial(nbkernels.mm, a, b, out=out),
        "the kernel alone": functools.partial(gemm.mm, *map(NUMBA.view, (out, a, b))),
    }
    for name, (view, mm, _) in libraries.items():
        todo[name] = functools.partial(mm, *map(view, (a, b, out)))
    cost = {}
    for name, call in todo.items():
        call()
        cuda.synchronize()
        start = time.perf_counter()
        for _ in range(calls):
            call()
        cost[name] = (time.perf_counter() - start) / calls * 1e6
        cuda.synchronize()
    print("launch of a 32x32x32 product, us:", ", ".join(f"{name} {us:.1f}" for name, us in cost.items()))
    return cost
