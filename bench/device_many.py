"""Stage: stacks of products and long sums, beside torch's in turns, by the device's clock."""

import functools
import time

import device_arrays
import numpy as np
from device_cases import Array, dtype_of

import nbkernels as nb

SECONDS = 45
SHAPES = (("bmm", (10_000, 16, 16), (10_000, 16, 16)), ("bmm", (10_000, 64, 64), (10_000, 64, 64)),
          ("bmm", (64, 512, 512), (64, 512, 512)), ("mm", (64, 65536), (65536, 64)))  # fmt: skip
ROWS = [(*shape, dtype) for dtype in ("float32", "bfloat16") for shape in SHAPES]


def calls():
    def made(name, first, second, dtype, stand):
        getattr(nb, name)(
            *(stand(x.shape, dtype_of(dtype), x.strides()) for x in (Array(first, dtype), Array(second, dtype)))
        )

    return {f"many {row}": functools.partial(made, *row) for row in ROWS}


def run(report, dry):
    torch = device_arrays.torch_of(report, dry)
    if torch is None:
        return
    torch.torch.backends.cuda.matmul.allow_tf32 = False
    for name, first, second, dtype in ROWS[:: 7 if dry else 1]:
        label = f"{name} {first} {second} {dtype}"
        try:
            pair = [Array(first, dtype), Array(second, dtype)]
            a, b = (torch.put(x, x.memory(np.random.default_rng(0))) for x in pair)
            ours, theirs = (
                functools.partial(getattr(nb, name), a, b),
                functools.partial(getattr(torch.torch, name), a, b),
            )
            found, wanted = ours(), theirs()  # whole numbers of one digit: float32 sums are exact
            same = bool((found == wanted).all())
            launches = counted(ours) if not dry else None
            times = {"ours": [], "torch": []}
            for _ in range(1 if dry else 9):
                for side, call in (("ours", ours), ("torch", theirs)):
                    times[side].append(timed(torch, call, dry))
            us = {side: sorted(values)[len(values) // 2] for side, values in times.items()}
            said = f"{us['ours']:.1f} us, torch {us['torch']:.1f}, ratio {us['torch'] / us['ours']:.2f}"
            facts = {} if same else {"wrong": "other numbers than torch's"}
            report(label, us=us, launches=launches, text=f"{label}: {said}, launches {launches}", **facts)
        except Exception as error:
            report(label, wrong=f"{type(error).__name__}: {error}"[:300])


def timed(library, call, dry, count=5):
    """Microseconds of one of `count` calls in a row."""
    call()
    if dry:
        start = time.perf_counter()
        call()
        return (time.perf_counter() - start) * 1e6
    torch = library.torch
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    for _ in range(count):
        call()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) / count * 1e3


def graphed(library, call, count=20):
    """Microseconds of one of `count` calls in a CUDA graph: of the device alone, where the host takes longer."""
    torch = library.torch
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(count):
            call()
    return sorted(timed(library, graph.replay, False, 3) for _ in range(5))[2] / count


def counted(call):
    """Launches of a call that has been made before."""
    from nbkernels.cuda import launch

    made, start = [], launch.Launch.__call__
    launch.Launch.__call__ = lambda self: (made.append(self), start(self))[1]
    try:
        call()
    finally:
        launch.Launch.__call__ = start
    return len(made)
