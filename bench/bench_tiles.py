"""Tiles of both devices through pytest-benchmark; `python -m nbkernels tune` sweeps and draws them.

    pytest bench/bench_tiles.py --benchmark-enable -k "tiles and 256"
    pytest bench --benchmark-enable --benchmark-json A.json        # python -m nbkernels bench --compare A.json B.json

The id of a test says dtype, n and tiles. Each is checked against the default's result, and its ratio to the default, in
turns, goes to extra_info. CUDA's are skipped where there is no GPU.
"""

import numpy as np
import pytest

import nbkernels
from nbkernels import tune
from nbkernels.tuning import cuda
from nbkernels.tuning.cpu import Cpu
from nbkernels.tuning.matrices import matrices

SIZES = (256, 1024)
DEPTHS = (256, 512, 1024)


def cpu_cases():
    """The default's register tile at three depths, and the next best one."""
    for dtype in ("float32", "float64"):
        side = Cpu(dtype)
        cuts = [side.default, *(side.complete({"kc": kc}) for kc in DEPTHS)]
        mr, nr = side.register_tiles()[0]
        cuts.append(side.complete({"mr": mr, "nr": nr}))
        for n in SIZES:
            for cut in dict.fromkeys(cuts):
                yield pytest.param(dtype, n, cut, side.default, id=f"{dtype}-{n}-{str(cut).replace(' ', '-')}")


@pytest.mark.parametrize(("dtype", "n", "cut", "default"), list(cpu_cases()))
def test_tiles(benchmark, dtype, n, cut, default):
    a, b, out = matrices(n, n, n, "NN", dtype)

    def call(tiles=cut):
        return nbkernels.mm(a, b, out=out, tiles=tiles)

    expected = call(default).copy()
    out.fill(np.nan)
    np.testing.assert_array_equal(call(), expected)
    if not benchmark.disabled:
        times = tune.medians({"these": call, "default": lambda: call(default)}, seconds=0.3)
        benchmark.extra_info.update(tiles=str(cut), default_over_these=times["default"] / times["these"])
    benchmark(call)


@pytest.mark.gpu
@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("dtype", cuda.DTYPES)
def test_cuda_tiles(benchmark, dtype, n):
    if why := cuda.missing():
        pytest.skip(why)
    side = cuda.Cuda(dtype)
    lane = (n, n, n, "NN", 1)
    found = {str(each): side.sample(each, lane) for each in side.candidates([(n, n, n)])}
    benchmark.extra_info.update({name: 2 * n**3 / seconds / 1e9 for name, seconds in found.items()})
    benchmark.pedantic(side.sample, (side.default, lane))
