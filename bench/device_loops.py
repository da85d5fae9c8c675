"""Stage: element-wise operations, folds, scans and products with vectors, beside torch's, by the device's clock.

Arrays are larger than the L2 cache; bytes are those of every operand, once.
"""

import functools

import device_arrays
import numpy as np
from device_cases import Array, dtype_of
from device_many import timed

import nbkernels as nb

SECONDS = 90
N = 8192  # rows and columns; of halves twice as many columns
ROUNDS = 7


def arrays(dtype, n):
    """{name: Array}: of n x m elements, m by the dtype, and what broadcasts to them."""
    m = n * 4 // dtype_of(dtype).itemsize
    shapes = {"x": (n, m), "y": (n, m), "t": (m, n), "row": (m,), "column": (n, 1), "wide": (n, 2 * m), "vector": (m,),
              "tall": (n,), "long": (n * m,), "longer": (n * m,), "short": (n * m // 64, 64),
              "images": (n // 64, 64, m)}  # fmt: skip
    return {name: Array(shape, dtype) for name, shape in shapes.items()}


def rows():
    """(name, dtype, operands, ours, torch's, arrays that are moved as parts of an n x m one)"""
    for d in ("float32", "float16"):
        yield "add contiguous", d, "x y", lambda x, y: nb.add(x, y), lambda t, x, y: t.add(x, y), 3
        yield "add row", d, "x row", lambda x, r: nb.add(x, r), lambda t, x, r: t.add(x, r), 2
        yield "add column", d, "x column", lambda x, c: nb.add(x, c), lambda t, x, c: t.add(x, c), 2
        yield "add transposed", d, "x t", lambda x, y: nb.add(x, turned(y)), lambda t, x, y: t.add(x, y.T), 3
        yield "add strided", d, "wide y", lambda x, y: nb.add(halved(x), y), lambda t, x, y: t.add(x[:, ::2], y), 4
        yield "exp", d, "x", lambda x: nb.exp(x), lambda t, x: t.exp(x), 2
        yield "sum rows", d, "x", lambda x: nb.add.reduce(x, 1), lambda t, x: t.sum(x, 1), 1
        yield "sum columns", d, "x", lambda x: nb.add.reduce(x, 0), lambda t, x: t.sum(x, 0), 1
        yield "sum all", d, "x", lambda x: nb.add.reduce(x, (0, 1)), lambda t, x: t.sum(x), 1
        yield "sum short rows", d, "short", lambda x: nb.add.reduce(x, 1), lambda t, x: t.sum(x, 1), 1
        yield "sum channels", d, "images", lambda x: nb.add.reduce(x, (0, 2)), lambda t, x: t.sum(x, (0, 2)), 1
        yield "mv columns", d, "t vector", lambda x, v: nb.mv(turned(x), v), lambda t, x, v: t.mv(x.T, v), 1
        yield "mv", d, "x vector", lambda x, v: nb.mv(x, v), lambda t, x, v: t.mv(x, v), 1
        yield "dot", d, "long longer", lambda x, y: nb.dot(x, y), lambda t, x, y: t.dot(x, y), 2
    d = "float32"
    yield "less", d, "x y", lambda x, y: nb.less(x, y), lambda t, x, y: t.lt(x, y), 2.25
    yield "x*y+1", d, "x y", lambda x, y: FUSED(x, y), lambda t, x, y: t.addcmul(y.new_ones(()), x, y), 3
    yield "mv float64", "float64", "x vector", lambda x, v: nb.mv(x, v), lambda t, x, v: t.mv(x, v), 1
    yield "accumulate 0", d, "x", lambda x: nb.add.accumulate(x, 0), lambda t, x: t.cumsum(x, 0), 2
    yield "accumulate long", d, "long", lambda x: nb.add.accumulate(x, 0), lambda t, x: t.cumsum(x, 0), 2
    yield "accumulate 1", d, "x", lambda x: nb.add.accumulate(x, 1), lambda t, x: t.cumsum(x, 1), 2


# add.at of (dtype, shape of out, number of indices), beside torch's index_add_: of float32 it adds in any order.
ATS = (("float32", (1 << 20,), 1 << 20), ("int32", (1 << 20,), 1 << 20), ("float32", (50_000, 64), 1 << 18))


@nb.elementwise
def FUSED(x, y):
    return x * y + 1


def turned(x):
    return nb.dispatch.views.transpose(x)


def halved(x):
    return nb.dispatch.views.index(x, (slice(None), slice(None, None, 2)))


def calls():
    def made(operands, ours, dtype, stand):
        given = arrays(dtype, N)
        ours(*(stand(given[name].shape, dtype_of(dtype), given[name].strides()) for name in operands.split()))

    return {f"loops {name} {d}": functools.partial(made, operands, ours, d)
            for name, d, operands, ours, _, _ in rows()} | {
            f"loops add.at {row}": functools.partial(at, *row) for row in ATS}  # fmt: skip


def at(dtype, shape, count, stand):
    sizes = (shape, dtype), ((count,), "int64"), ((count, *shape[1:]), dtype)
    out, indices, x = (stand(size, np.dtype(d), Array(size, d).strides()) for size, d in sizes)
    nb.add.at(out, indices, x)


def run(report, dry):
    torch = device_arrays.torch_of(report, dry)
    if torch is None:
        return
    module, n = torch.torch, 64 if dry else N
    for each in ATS[:: 9 if dry else 1]:
        try:
            named(report, torch, *each, dry)
        except Exception as error:
            report(f"add.at {each}", wrong=f"{type(error).__name__}: {error}"[:300])
    for name, d, operands, ours, theirs, parts in rows():
        label = f"{name} {d}"
        try:
            shapes, kind = arrays(d, n), getattr(module, d)
            given = [module.randn(shapes[each].shape, device=torch.device).to(kind) for each in operands.split()]
            first, second = functools.partial(ours, *given), functools.partial(theirs, module, *given)
            far = (first().double() - second().double()).abs().max().item()
            times = {"ours": [], "torch": []}
            for _ in range(1 if dry else ROUNDS):
                for side, call in (("ours", first), ("torch", second)):
                    times[side].append(timed(torch, call, dry))
            us = {side: sorted(values)[len(values) // 2] for side, values in times.items()}
            rate = parts * n * shapes["x"].shape[1] * dtype_of(d).itemsize / us["ours"] / 1e3
            text = (
                f"{label}: {us['ours']:.1f} us, {rate:.0f} GB/s, torch's time over ours {us['torch'] / us['ours']:.2f}"
            )
            bench, _, layout = name.partition(" ")
            row = dict(bench=bench, shape=list(shapes["x"].shape), dtype=d, threads="GPU", ours_s=us["ours"] / 1e6,
                       peers={"torch": us["torch"] / 1e6}, gflops=None, gb_s=rate)  # fmt: skip
            report(label, us=us, far=far, row=row | ({"layout": layout} if layout else {}), text=text)
        except Exception as error:
            report(label, wrong=f"{type(error).__name__}: {error}"[:300])


def named(report, torch, dtype, shape, count, dry):
    """add.at of random indices."""
    module, device, kind = torch.torch, torch.device, getattr(torch.torch, dtype)
    count = count >> 8 if dry else count
    indices = module.randint(0, shape[0], (count,), device=device)
    x = (4 * module.randn((count, *shape[1:]), device=device)).to(kind)
    outs = [module.zeros(shape, device=device, dtype=kind) for _ in range(2)]
    calls = {"ours": lambda: nb.add.at(outs[0], indices, x), "torch": lambda: outs[1].index_add_(0, indices, x)}
    for call in calls.values():
        call()
    far = (outs[0].double() - outs[1].double()).abs().max().item()
    us = {side: sorted(timed(torch, call, dry) for _ in range(1 if dry else ROUNDS))[ROUNDS // 2 * (not dry)]
          for side, call in calls.items()}  # fmt: skip
    row = dict(bench="add.at", shape=[*shape, count], dtype=dtype, threads="GPU", ours_s=us["ours"] / 1e6,
               peers={"torch": us["torch"] / 1e6}, gflops=None,
               gb_s=sum(each.nbytes for each in (outs[0], indices, x)) / us["ours"] / 1e3)  # fmt: skip
    text = f"add.at {dtype} {count} into {shape}: {us['ours']:.1f} us, ratio {us['torch'] / us['ours']:.2f}"
    report(f"add.at {dtype} {shape}", us=us, far=far, row=row, text=text)
