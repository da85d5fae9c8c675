"""The suites of `python -m nbkernels bench` that have no file of their own: reduce, batch, overhead.

    pytest bench/bench_rooms.py --benchmark-enable -k reduce

Results are held against NumPy's; every peer that is installed is timed in turns, into extra_info.
"""

import numpy as np
import pytest

from nbkernels.benches import measure
from nbkernels.cpu.runtime import threads

CASES = measure.chosen(("reduce", "batch", "overhead"), quick=True)


def named(case):
    return "-".join(filter(None, [case.bench, case.op, "x".join(map(str, case.shape)), case.dtype, case.layout]))


@pytest.mark.parametrize("case", CASES, ids=named)
def test_room(benchmark, case):
    calls = case.calls()
    expected = np.array(calls["NumPy"]())
    np.testing.assert_allclose(np.array(calls["nbkernels"]()), expected, rtol=1e-3, atol=1e-2)
    if not benchmark.disabled:
        benchmark.extra_info.update(measure.row(case, threads.count() if case.parallel else 1, seconds=0.2))
    benchmark(calls["nbkernels"])
