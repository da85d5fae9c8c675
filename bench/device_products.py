"""Products on a GPU, right and fast: bits beside the CPU's and torch's, times beside torch, a JSON line each.

    python bench/device_products.py --build DIR [--jobs N] [GROUP ...]      compiles what groups need, without a GPU
    python bench/device_products.py --cubins DIR [--out FILE] [GROUP ...]   runs them, and compiles nothing

Groups are processes with a time limit of their own (`--seconds`). Times are medians by the device's events, of a graph
of repeated calls; ours and torch's take turns. It wants nbkernels' package, numpy, torch and the driver; to build,
numba-cuda.
"""

import argparse
import concurrent.futures
import functools
import json
import multiprocessing
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

LAYOUTS = ("NN", "NT", "TN", "TT")
# Configs beside the chosen one, as (tier, bm, bn, bk, stages, warps).
LARGE, TWICE, HALF = ("S", 128, 256, 8, 4, 8), ("S", 128, 128, 8, 4, 4), ("S", 64, 64, 16, 4, 4)
DOUBLE = ("D", 128, 128, 16, 6, 8)


def case(dtype, m, n, k, layout="NN", items=None, config=None, **more):
    return dict(dtype=dtype, m=m, n=n, k=k, layout=layout, items=items, config=config, **more)


def groups():
    """{name: (seconds, cases)}, the most doubtful first."""
    f32, f64 = "float32", "float64"

    def square(dtype, *sizes, layout="NN", **more):
        return [case(dtype, n, n, n, layout, **more) for n in sizes]

    def batch(dtype, items, n, *configs):
        return [case(dtype, n, n, n, items=items, config=each) for each in (None, *configs)]

    def rows(dtype, m, n, k, *configs):
        return [case(dtype, m, n, k, config=each) for each in (None, *configs)]

    return {
        "squares": (45, square(f32, 4096, 2048, 8192)
                    + square(f64, 4096, 2048)),
        "batches": (30, batch(f32, 10_000, 64, HALF) + batch(f32, 10_000, 32, ("S", 32, 32, 16, 3, 2))
                    + batch(f32, 10_000, 16) + batch(f32, 64, 512, TWICE)),
        "rows": (40, rows(f32, 64, 4096, 4096, HALF, ("S", 32, 64, 16, 4, 4)) + rows(f32, 128, 4096, 4096)
                 + rows(f32, 8, 4096, 4096) + rows(f32, 16, 4096, 4096) + rows(f32, 32, 4096, 4096)
                 + rows(f32, 128, 11008, 4096) + rows(f32, 2048, 11008, 4096, LARGE)),
        "small": (40, rows(f32, *[1024] * 3, HALF, TWICE) + rows(f32, *[512] * 3, ("S", 32, 64, 16, 4, 4), HALF)
                  + rows(f32, *[256] * 3, ("S", 32, 32, 16, 4, 4)) + rows(f32, *[1536] * 3, TWICE, LARGE)
                  + square(f64, 1024, 512, 256)),
        "layouts": (40, [x for layout in LAYOUTS[1:] for x in square(f32, 4096, layout=layout)]
                    + square(f64, 4096, layout="NT")),
        "edges": (60, [case(d, *s, layout, exact=True) for d in (f32, f64) for layout in ("NN", "TT")
                       for s in ((1000, 1001, 1002), (4095, 513, 777))] + [case(f32, 4095, 4097, 4093)]),
        "long": (40, [case(d, *s) for d in (f32, f64) for s in ((64, 64, 65_536), (300, 200, 10_001))]
                 + rows(f32, 4096, 4096, 16_384)),
        "others": (60, [x for d in ("complex64", "complex128", "int32", "int64", "int8") for x in square(d, 2048)]),
        "double": (40, square(f64, 8192) + square(f64, 4096, 2048, config=DOUBLE)),
    }  # fmt: skip


def kind(each):
    from nbkernels.cuda.kinds import kind_of

    return kind_of(*[each["dtype"]] * 3)


def config(each):
    from nbkernels.cuda.product.config import GemmConfig

    return GemmConfig(*each["config"]) if each["config"] else None


def planned(each, device):
    """The plan of a case whose arrays are aligned, without arrays."""
    from nbkernels.cuda.product.gemm import Matrix, plan

    (m, n, k), items = (each[x] for x in "mnk"), each["items"] or 1

    def matrix(rows, columns, order):
        item = rows * columns if each["items"] else 0
        return Matrix(0, each["dtype"], *((columns, 1) if order == "N" else (1, rows)), item)

    first, second = each["layout"]
    matrices = matrix(m, n, "N"), None, matrix(m, k, first), matrix(k, n, second)
    return plan(*matrices, (m, n, k, items), kind(each), device, config(each))


def build_one(place, arch, kernel):
    from nbkernels.cuda import cubins

    begin = time.perf_counter()
    cubins.carry(kernel, arch, pathlib.Path(place))
    return str(cubins.machine(kernel, arch).resources), time.perf_counter() - begin


def build(place, names, jobs, device=((9, 0), 132)):
    """The kernels of groups as a folder of carried cubins."""
    from nbkernels.cuda import cubins
    from nbkernels.cuda.product.gemm import kernel

    variants = list({v: 0 for name in names for each in groups()[name][1] for v, _ in planned(each, device).launches})
    task = functools.partial(build_one, place, cubins.architecture(device[0]))
    with concurrent.futures.ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn")) as pool:
        for variant, (text, seconds) in zip(variants, pool.map(task, map(kernel, variants))):
            print(f"{seconds:5.1f} s {text}: {variant}", flush=True)


def tensors(torch, each, seed=0):
    """(a, b, out) of a case: normal numbers, or small whole ones."""
    generator = torch.Generator("cuda").manual_seed(seed)
    dtype, lead = getattr(torch, each["dtype"]), (each["items"],) if each["items"] else ()

    def one(rows, columns, order):
        shape = (*lead, rows, columns) if order == "N" else (*lead, columns, rows)
        if dtype.is_floating_point or dtype.is_complex:
            made = torch.randn(shape, dtype=dtype, device="cuda", generator=generator)
        else:
            made = torch.randint(-100, 100, shape, dtype=dtype, device="cuda", generator=generator)
        return made if order == "N" else made.mT

    m, n, k = (each[x] for x in "mnk")
    return (
        one(m, k, each["layout"][0]),
        one(k, n, each["layout"][1]),
        torch.full((*lead, m, n), 7, dtype=dtype, device="cuda"),
    )


def seconds(torch, calls, rounds=7):
    """{name: median seconds of a call}: each is captured in a graph, as often as 2 ms hold it; in turns."""
    runs = {}
    for name, call in calls.items():
        call()
        torch.cuda.synchronize()
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        call()
        end.record()
        torch.cuda.synchronize()
        count = max(1, min(50, int(2 / max(begin.elapsed_time(end), 1e-3))))
        try:
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                for _ in range(count):
                    call()
            runs[name] = graph.replay, count, "graph"
        except Exception as error:
            torch.cuda.synchronize()
            runs[name] = (
                (lambda call=call, count=count: [call() for _ in range(count)]),
                count,
                f"no graph: {error}"[:200],
            )
    times = {name: [] for name in runs}
    for _ in range(rounds):
        for name, (run, count, _) in runs.items():
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
            run()
            end.record()
            torch.cuda.synchronize()
            times[name].append(begin.elapsed_time(end) / 1e3 / count)
    return {name: statistics.median(each[1:]) for name, each in times.items()}, {n: r[2] for n, r in runs.items()}


def differences(torch, got, wanted):
    """(elements whose bits differ, the largest difference over the largest element)"""
    got, wanted = got.contiguous(), wanted.to(got.device).contiguous()
    size = got.element_size()
    whole = {1: torch.int8, 2: torch.int16, 4: torch.int32}.get(size, torch.int64)
    bits = (got.view(whole) != wanted.view(whole)).sum().item()
    wide = torch.complex128 if got.is_complex() else torch.float64
    far = (got.to(wide) - wanted.to(wide)).abs().max() / wanted.to(wide).abs().max().clamp(min=1e-300)
    return bits, far.item()


def reference(torch, each, a, b):
    """The CPU's bits of a block of rows and columns, which the order of summation makes the whole product's."""
    import nbkernels

    rows, columns = (sorted({*range(min(x, 24)), *range(max(0, x - 24), x)}) for x in (each["m"], each["n"]))
    item = (each["items"] - 1,) if each["items"] else ()
    left, right = a[item][rows].cpu().contiguous(), b[item][:, columns].cpu().contiguous()
    return item, rows, columns, torch.from_numpy(np.asarray(nbkernels.mm(left.numpy(), right.numpy())))


def measure(torch, each, device, say):
    from nbkernels.cuda.product import gemm
    from nbkernels.dispatch import arrays

    a, b, out = tensors(torch, each)
    view, made = arrays.adapter_for(out).view, planned(each, device)

    def call():
        gemm.multiply(view(out), None, view(a), view(b), 0, 1, kind(each), each["k"], config(each))

    line = dict(each, variant=str(made.variant), launches=len(made.launches), blocks=made.launches[0][1])
    call()
    torch.cuda.synchronize()
    item, rows, columns, wanted = reference(torch, each, a, b)
    part = out[item][rows][:, columns]
    line["bits_cpu"], line["error_cpu"] = differences(torch, part, wanted)
    calls = {"ours": call}
    theirs = torch.empty_like(out)
    if a.is_floating_point() or a.is_complex():
        product = torch.bmm if each["items"] else torch.mm
        product(a, b, out=theirs)
        line["bits_torch"], line["error_torch"] = differences(torch, out, theirs)
        calls["torch"] = lambda: product(a, b, out=theirs)
    if not each.get("exact"):
        times, how = seconds(torch, calls)
        line |= {f"{name}_us": round(x * 1e6, 2) for name, x in times.items()} | {"how": how["ours"]}
        work = 2 * each["m"] * each["n"] * each["k"] * (each["items"] or 1) * (4 if a.is_complex() else 1)
        line["tflops"] = round(work / times["ours"] / 1e12, 2)
        if "torch" in times:
            line["ratio"] = round(times["torch"] / times["ours"], 3)
    say(line)


def run(name, say, place):
    import torch

    from nbkernels.cuda import cubins

    if place:
        cubins.CARRIED.append(pathlib.Path(place))

    torch.backends.cuda.matmul.allow_tf32 = False
    _, cases = groups()[name]
    properties = torch.cuda.get_device_properties(0)
    device = (properties.major, properties.minor), properties.multi_processor_count
    say(dict(group=name, device=properties.name, torch=torch.__version__, multiprocessors=device[1]))
    torch.empty(1, device="cuda")
    for each in cases:
        try:
            measure(torch, each, device, say)
        except Exception as error:
            say(dict(each, failed=f"{type(error).__name__}: {error}"[:600]))
            if "CUDA" in str(error) and "memory" in str(error):
                raise


def summary(lines):
    """What a reader wants first: wrong bits, failures, ratios."""
    failed = [x for x in lines if "failed" in x]
    wrong = [x for x in lines if x.get("bits_cpu")]
    for x in (*failed, *wrong):
        print(json.dumps(x)[:400])
    for x in (x for x in lines if "ours_us" in x):
        print(f"{x['dtype']:10} {x['items'] or '':>6} {x['m']}x{x['n']}x{x['k']} {x['layout']} {x['ours_us']:9.1f} us "
              f"{x['tflops']:7.2f} T {x.get('ratio', 0):6.3f} of torch, bits {x['bits_cpu']} "
              f"{x.get('bits_torch', '-')}; {x['variant'][:90]}")  # fmt: skip
    print(f"{len(failed)} failed, {len(wrong)} of {sum('bits_cpu' in x for x in lines)} with other bits than the CPU's")


def package():
    """A folder in which the clone is a package, so that nothing has to be installed."""
    root, made = pathlib.Path(__file__).resolve().parent.parent, pathlib.Path(tempfile.mkdtemp())
    (made / "nbkernels").mkdir()
    for each in (root / "nbkernels").iterdir():
        (made / "nbkernels" / each.name).symlink_to(each)
    (made / "nbkernels" / "dispatch").symlink_to(root / "dispatch")
    return str(made)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("group", nargs="*", default=list(groups()))
    parser.add_argument("--build", metavar="DIR")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--cubins", metavar="DIR")
    parser.add_argument("--out", default=os.path.join(os.environ.get("OUT", "."), "products.jsonl"))
    parser.add_argument("--seconds", type=float, help="time limit of a group in the place of its own")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()

    def say(line):
        with open(given.out, "a") as file:
            print(json.dumps(line), file=file, flush=True)

    if given.inside:
        if given.build:
            build(given.build, given.group, given.jobs)
        else:
            run(given.group[0], say, given.cubins)
        return
    path = os.pathsep.join([package(), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {**os.environ, "PYTHONPATH": path}
    command = [sys.executable, os.path.abspath(__file__), "--inside"]
    if given.build:
        raise SystemExit(
            subprocess.call(
                [*command, "--build", given.build, "--jobs", str(given.jobs), *given.group], env=environment
            )
        )
    begin = os.path.getsize(given.out) if os.path.exists(given.out) else 0
    for name in given.group:
        limit = given.seconds or groups()[name][0]
        run_one = [*command, name, "--out", given.out, *(["--cubins", given.cubins] if given.cubins else [])]
        try:
            done = subprocess.run(run_one, env=environment, timeout=limit, capture_output=True, text=True, check=False)
            if done.returncode:
                say(dict(group=name, failed=done.stderr[-800:]))
        except subprocess.TimeoutExpired:
            say(dict(group=name, failed=f"not done after {limit} s"))
    with open(given.out) as file:
        file.seek(begin)
        summary([json.loads(line) for line in file])


if __name__ == "__main__":
    main()
