"""What a call costs by the kind of its arrays: ndarray, subclass, memmap, asarray, torch tensor, device array; and
torch's own call.

    NUMBA_NUM_THREADS=1 python bench/bench_overhead.py               # the table
    NUMBA_NUM_THREADS=1 python bench/bench_overhead.py --json FILE   # and its rows
    pytest bench/bench_overhead.py --benchmark-enable                # small calls, through pytest-benchmark

Microseconds of a call; all kinds of one call are timed in turns, torch on one thread. Numba's device arrays have the
host's time of a call that was made before: the driver's place is taken by doubles that only take notes, so no GPU is
needed, and neither the driver's time nor the kernel's is in it.
"""

import argparse
import collections
import contextlib
import json
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
import threadpoolctl
from tabulate import tabulate

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # the tests' doubles of the driver

import nbkernels as nb
from nbkernels import tune
from nbkernels.benches.peers import at_best
from nbkernels.commands.info import meta
from tests import launched

KINDS = "ndarray", "subclass", "memmap", "asarray", "tensor", "device array"
CALLS = [("mm", 8), ("mm", 64), ("mm", 256), ("add", 4), ("linear", 64), ("linear, forwards and backwards", 64),
         ("for_torch(linear), forwards and backwards", 64), ("vjp of mm, both ways", 8)]  # fmt: skip


class Sub(np.ndarray):
    pass


@contextlib.contextmanager
def device():
    """A function that makes device arrays, for as long as there is a device; None without numba-cuda."""
    if not find_spec("numba_cuda"):
        yield None
        return
    with pytest.MonkeyPatch.context() as patch:
        notes = launched.device(patch)
        notes.events = collections.deque(maxlen=0)
        yield notes.array


def kinds(n, device_array=None):
    """An n x n array of each kind, of the same numbers; of device arrays there are none."""
    x = np.random.default_rng(0).standard_normal((n, n), np.float32)
    file = tempfile.NamedTemporaryFile()  # noqa: SIM115 it lives as long as the array
    mapped = np.memmap(file, np.float32, "w+", shape=(n, n))
    mapped[...], mapped.file = x, file
    found = {"ndarray": x, "subclass": x.view(Sub), "memmap": mapped, "asarray": nb.asarray(x)}
    if device_array:
        found["device array"] = device_array((n, n))
    if find_spec("torch"):
        import torch

        found["tensor"] = torch.from_numpy(x.copy())
    return found


def calls(op, n, device_array=None):
    """{kind: the call}; "torch" is torch's own."""
    made = {}
    if op.startswith("vjp"):
        x = kinds(n)["ndarray"]
        return {"ndarray": lambda: nb.vjp(nb.mm, x, x)[1](x)}
    if "forwards" in op:
        if not find_spec("torch"):
            return {}
        import torch

        import nbkernels.torch as nt

        x, weight = (kinds(n)["tensor"].clone().requires_grad_() for _ in range(2))
        bias, grad = torch.ones(n, requires_grad=True), torch.ones(n, n)

        def both(function):
            return lambda: torch.autograd.grad(function(x, weight, bias), (x, weight, bias), grad)

        ours = nb.for_torch(nb.linear) if op.startswith("for_torch") else nt.linear
        return {"tensor": both(ours), "torch": both(torch.nn.functional.linear)}
    for kind, x in kinds(n, device_array).items():
        bias = device_array((n,)) if kind == "device array" else x[0]
        if kind == "asarray":  # as it is written there
            ways = {"mm": lambda x=x: x @ x, "add": lambda x=x: x + x, "linear": lambda x=x, b=bias: x @ x.T + b}
        else:
            ways = {"mm": lambda x=x: nb.mm(x, x), "add": lambda x=x: nb.add(x, x),
                    "linear": lambda x=x, b=bias: nb.linear(x, x, b)}  # fmt: skip
        made[kind] = ways[op]
    if find_spec("torch"):
        import torch

        x = kinds(n)["tensor"]
        bias = x[0]
        own = {"mm": lambda: torch.mm(x, x), "add": lambda: torch.add(x, x),
               "linear": lambda: torch.nn.functional.linear(x, x, bias)}  # fmt: skip
        made["torch"] = own[op]
    return made


def measure(op, n, seconds=2.0):
    """One row: microseconds of each kind."""
    if find_spec("torch"):
        import torch

        torch.set_num_threads(1)
    with device() as device_array, threadpoolctl.threadpool_limits(1):
        times = tune.medians(calls(op, n, device_array), seconds=seconds)
    return {"call": op, "n": n} | {kind: times[kind] * 1e6 for kind in (*KINDS, "torch") if kind in times}


@pytest.mark.parametrize(("op", "n"), [CALLS[0], CALLS[3]])
@pytest.mark.parametrize("kind", KINDS)
def test_overhead(benchmark, op, n, kind):
    if kind == "tensor" and not find_spec("torch"):
        pytest.skip("lacks torch")
    with device() as device_array:
        if kind == "device array" and device_array is None:
            pytest.skip("lacks numba-cuda")
        benchmark(calls(op, n, device_array)[kind])


if __name__ == "__main__":
    at_best()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path, help="a file for the rows")
    parser.add_argument("--seconds", type=float, default=2.0, help="for each row")
    asked = parser.parse_args()
    rows = [measure(op, n, asked.seconds) for op, n in CALLS]
    print(tabulate(rows, headers="keys", floatfmt=".2f"))
    if asked.json:
        asked.json.write_text(json.dumps({"meta": meta(), "rows": rows}, indent=1) + "\n")
