"""Stage: products by the public functions, beside torch's in turns, by the device's clock.

Calls of less than SHORT are timed in a CUDA graph: the host cannot launch them fast enough. Random operands, torch's
TF32 off where ours is not asked for it. A value is held against torch's within the error bound of sums of k products,
in any order, of the dtype that is summed in.
"""

import functools
import itertools

import device_arrays
from device_cases import dtype_of
from device_many import graphed, timed

import nbkernels as nb

SECONDS = 100
ROUNDS = 7
SHORT = 100  # microseconds
UNITS = {"float64": 2.0**-53, "float16": 2.0**-11, "bfloat16": 2.0**-8, "complex64": 2.0**-24}


def cases():
    """(dtype, m, n, k, layout, number of products, keywords), the most wanted first."""
    for dtype, n in itertools.product(("bfloat16", "float16", "float32", "float64"), (4096, 8192)):
        yield dtype, n, n, n, "NT", 0, {}
    for dtype, layout in itertools.product(("bfloat16", "float32", "float64"), ("NN", "TN", "TT")):
        yield dtype, 4096, 4096, 4096, layout, 0, {}
    yield "int8", 4096, 4096, 4096, "NT", 0, {"out_dtype": "int32"}
    yield "float32", 4096, 4096, 4096, "NT", 0, {"mode": "tf32"}
    for dtype, m in itertools.product(("bfloat16", "float32"), (8, 16, 64, 128, 512)):
        yield dtype, m, 4096, 4096, "NT", 0, {}
    for m, n, k in ((16, 11008, 4096), (16, 4096, 11008), (64, 11008, 4096)):
        yield "bfloat16", m, n, k, "NT", 0, {}
    for dtype, n in itertools.product(("bfloat16", "float32", "float64"), (256, 512, 1024, 2048)):
        yield dtype, n, n, n, "NN", 0, {}
    for dtype, items, n in (("float32", 10_000, 16), ("float32", 10_000, 32), ("float32", 10_000, 64),
                            ("float32", 64, 512), ("bfloat16", 64, 512), ("bfloat16", 10_000, 64)):  # fmt: skip
        yield dtype, n, n, n, "NN", items, {}
    yield "float32", 64, 64, 65_536, "NN", 0, {}
    yield "bfloat16", 64, 64, 65_536, "NN", 0, {}
    yield "complex64", 2048, 2048, 2048, "NN", 0, {}
    yield "bfloat16", 1000, 1001, 999, "NN", 0, {}
    yield "bfloat16", 4096, 4096, 4096, "NN", 0, {"mode": "chain"}


def shaped(layout, m, n, k, items):
    """Shapes in memory of both operands."""
    lead = (items,) if items else ()
    return [(*lead, *(size if order == "N" else size[::-1])) for order, size in zip(layout, ((m, k), (k, n)))]


def calls():
    def made(dtype, m, n, k, layout, items, keywords, stand):
        sizes = shaped(layout, m, n, k, items)
        pair = []
        for order, shape in zip(layout, sizes):
            shape = shape if order == "N" else (*shape[:-2], shape[-1], shape[-2])
            item = dtype_of(dtype).itemsize
            steps = (shape[-1] * item, item) if order == "N" else (item, shape[-2] * item)
            lead = (shape[-1] * shape[-2] * item,) if items else ()
            pair.append(stand(shape, dtype_of(dtype), (*lead, *steps)))
        (nb.bmm if items else nb.mm)(*pair, **keywords)

    return {f"speed {case}": functools.partial(made, *case) for case in cases()}


def run(report, dry):
    library = device_arrays.torch_of(report, dry)
    if library is None:
        return
    torch = library.torch
    for case in list(cases())[:: 9 if dry else 1]:
        dtype, m, n, k, layout, items, keywords = case
        if dry and "mode" in keywords:
            continue
        if dry:
            m, n, k, items = min(m, 48), min(n, 48), min(k, 48), min(items, 2)
        extra = ", ".join(map(str, keywords.values()))
        label = f"{items} of {m}x{n}x{k}" if items else f"{m}x{n}x{k}"
        label = f"{label} {layout} {dtype}{', ' * bool(extra)}{extra}"
        try:
            torch.backends.cuda.matmul.allow_tf32 = keywords.get("mode") == "tf32"
            measured(report, library, label, (dtype, m, n, k, layout, items, keywords), dry)
        except Exception as error:
            report(label, wrong=f"{type(error).__name__}: {error}"[:300])


def measured(report, library, label, case, dry):
    torch, (dtype, m, n, k, layout, items, keywords) = library.torch, case
    kind, pair = getattr(torch, dtype), []
    for order, shape in zip(layout, shaped(layout, m, n, k, items)):
        whole = dtype == "int8"
        x = torch.randint(-99, 99, shape, device=library.device) if whole else torch.randn(shape, device=library.device)
        pair.append(x.to(kind) if order == "N" else x.to(kind).mT)
    ours = functools.partial(nb.bmm if items else nb.mm, *pair, **keywords)
    theirs = functools.partial(torch._int_mm if dtype == "int8" else torch.matmul, *pair)
    found, wanted = ours(), theirs()
    wide = torch.complex128 if kind.is_complex else torch.float64
    far = (found.to(wide) - wanted.to(wide)).abs().max().item() / max(wanted.to(wide).abs().max().item(), 1e-30)
    unit = 2.0**-10 if keywords.get("mode") == "tf32" else UNITS.get(dtype, 2.0**-24)
    bound = 0 if dtype == "int8" else 4 * unit + k * 2.0**-24 * (unit > 2.0**-50) + k * 2.0**-53
    times = {"ours": [], "torch": []}
    for _ in range(1 if dry else ROUNDS):
        for side, call in (("ours", ours), ("torch", theirs)):
            times[side].append(timed(library, call, dry, 3 if m * n * k > 1 << 36 else 20))
    us = {side: sorted(values)[len(values) // 2] for side, values in times.items()}
    work = 2 * m * n * k * max(items, 1) * (4 if kind.is_complex else 1)
    text = f"{label}: {work / us['ours'] / 1e6:.1f} TFLOP/s, torch's time over ours {us['torch'] / us['ours']:.2f}"
    if not dry and max(us.values()) < SHORT:
        us = {side: graphed(library, call) for side, call in (("ours", ours), ("torch", theirs))}
        text += f"; in a graph {us['ours']:.1f} us, {us['torch'] / us['ours']:.2f}"
    row = dict(bench="bmm" if items else "mm", shape=[items, m, n, k] if items else [m, n, k], threads="GPU",
               dtype=", ".join([dtype, *map(str, keywords.values())]), layout=layout, ours_s=us["ours"] / 1e6,
               peers={"torch": us["torch"] / 1e6}, gflops=work / us["ours"] / 1e3, gb_s=None)  # fmt: skip
    wrong = {} if far <= bound else {"wrong": f"{far:.2g} of the largest value off, more than {bound:.2g}"}
    report(label, us=us, far=far, row=row, text=text, **wrong)
