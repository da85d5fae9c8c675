"""This library against its peers in one run: interleaved medians, as rows that print and that bench/report.py reads."""

import numpy as np
from tabulate import tabulate

import nbkernels
from nbkernels import tune


def addmm(sizes, dtype="float32", *, seconds=0.5, torch=True, progress=iter):
    """Rows for addmm(bias (n,), a (n, n), b (n, n)) at each n of `sizes`; the peers compute a @ b + bias."""
    rng = np.random.default_rng(0)
    for n in sizes:
        bias, a, b = (rng.standard_normal(shape).astype(dtype) for shape in (n, (n, n), (n, n)))
        calls = {
            "nbkernels": lambda: nbkernels.addmm(bias, a, b),  # noqa: B023 (called before n changes)
            "NumPy": lambda: a @ b + bias,  # noqa: B023
        }
        if torch and (library := _torch()):
            tensors = [library.from_numpy(array) for array in (bias, a, b)]
            calls["torch"] = lambda: library.addmm(*tensors)  # noqa: B023
        yield _row("addmm", [n, n, n], dtype, calls, seconds, progress, flops=2 * n**3)


def add(sizes, dtype="float32", *, seconds=0.5, torch=True, progress=iter):
    """Rows for add(a, b) of two (n,) arrays at each n of `sizes`."""
    rng = np.random.default_rng(0)
    for n in sizes:
        a, b = (rng.standard_normal(n).astype(dtype) for _ in range(2))
        calls = {"nbkernels": lambda: nbkernels.add(a, b), "NumPy": lambda: a + b}  # noqa: B023
        if torch and (library := _torch()):
            tensors = [library.from_numpy(array) for array in (a, b)]
            calls["torch"] = lambda: library.add(*tensors)  # noqa: B023
        yield _row("add", [n], dtype, calls, seconds, progress, flops=n)


def _torch():
    try:
        import torch
    except ImportError:
        return None
    from nbkernels.cpu import threads

    torch.set_num_threads(threads.count())
    return torch


def _row(bench, shape, dtype, calls, seconds, progress, flops):
    from nbkernels.cpu import threads

    times = tune.medians(calls, seconds=seconds, progress=progress)
    ours = times.pop("nbkernels")
    return {
        "bench": bench,
        "shape": shape,
        "dtype": dtype,
        "threads": threads.count(),
        "layout": "NN" if bench == "addmm" else "contiguous",
        "ours_s": ours,
        "peers": times,
        "gflops": flops / ours / 1e9,
        "peak_share": None,
    }


def table(rows):
    """The rows as text: times in microseconds, and how many times longer each peer takes."""
    rows = list(rows)
    peers = list(dict.fromkeys(peer for row in rows for peer in row["peers"]))
    lines = [
        {
            "": row["bench"] + " " + "x".join(map(str, row["shape"])),
            "dtype": row["dtype"],
            "layout": row["layout"],
            "threads": row["threads"],
            **({"plan": row["plan"]} if "plan" in row else {}),
            "nbkernels us": f"{row['ours_s'] * 1e6:.1f}",
            "GFLOP/s": f"{row['gflops']:.1f}",
            **({"of peak": f"{row['peak_share']:.0%}"} if row["peak_share"] else {}),
            **{f"{peer} us": f"{row['peers'][peer] * 1e6:.1f}" for peer in peers if peer in row["peers"]},
            **{f"vs {peer}": f"{row['peers'][peer] / row['ours_s']:.2f}x" for peer in peers if peer in row["peers"]},
        }
        for row in rows
    ]
    return tabulate(lines, headers="keys", disable_numparse=True)
