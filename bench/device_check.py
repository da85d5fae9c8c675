"""The CUDA kernels on a GPU: right, how large, how fast. Run by bench/device_check.sh, which says what it needs.

    --tune         time every candidate tile beside the default
    --quick        small sizes
    --correctness  only that, of small sizes; the one part that also runs in Numba's simulator

Products are held against float64 with the bound of any order of summation, |error| <= gamma (|alpha| |A||B| + |beta x|)
with gamma = (k + 3) u / (1 - (k + 3) u), and against the CPU kernels, bit by bit, those of other dtypes against these
alone. Exit status: 0 if all is right, 1 if not, 2 where something is missing.
"""

import argparse
import datetime
import itertools
import json
import os
import sys
from pathlib import Path

import numpy as np
from device_arrays import DTYPES, SIMULATED, combinations, drawn, numbers, same_bits, tiled, upload
from device_speed import gemm_speed, launch_cost, libraries_here, loop_speed

LAYOUTS = {
    "N": lambda x: x,
    "T": lambda x: np.asfortranarray(x),
    "reversed": lambda x: np.ascontiguousarray(x[::-1, ::-1])[::-1, ::-1],
    "strided": lambda x: np.repeat(np.repeat(x, 2, 0), 3, 1)[::2, ::3],
}
OPS = ("add", "subtract", "multiply", "divide", "maximum", "minimum")
failures = []


def missing():
    """What is not here that the kernels need, or ""."""
    try:
        from numba import cuda

        if not SIMULATED:
            from nbkernels.cuda import assemble  # noqa: F401
    except ImportError as error:
        return f"numba-cuda with its CUDA libraries ({error})"
    return "" if SIMULATED or cuda.is_available() else "a CUDA GPU with its driver"


def check(right, what):
    if not right:
        failures.append(what)
        print("FAILED:", what)


# --- correctness -----------------------------------------------------------------------------------------------------


def products(tiles_of, rng):
    """Every tile at sizes across its edges, in all layouts; segments; beta and alpha of every kind."""
    from nbkernels.cuda import gemm
    from nbkernels.dispatch.devices import NUMBA

    for dtype in DTYPES:
        for tile in tiles_of(dtype):
            layouts = itertools.cycle(itertools.product("CF", LAYOUTS, LAYOUTS, LAYOUTS))
            for (m, n, k), (beta, alpha) in cases(sizes(tile), ((0, 1), (0.75, -1.25), (1, 0))):
                a, b = numbers(rng, m, k, dtype=dtype), numbers(rng, k, n, dtype=dtype)
                x = numbers(rng, m, n, dtype=dtype) if beta else np.full((m, n), np.nan, dtype)
                order, *names = next(layouts)
                out = upload(np.full((m, n), np.nan, dtype, order))
                args = [upload(LAYOUTS[name](array)) for name, array in zip(names, (x, a, b))]
                gemm.gemm(*map(NUMBA.view, (out, *args)), beta, alpha, tile)
                label = f"{dtype} {tile} {m}x{n}x{k} {order} {' '.join(names)} beta={beta} alpha={alpha}"
                near(np.ascontiguousarray(out.copy_to_host()), x, a, b, beta, alpha, label)
            print("right:" if not failures else "checked:", dtype, tile)


def sizes(tile):
    edge = [(1, 1, 1), (tile.bm + 1, tile.bn - 1, 2 * tile.bk + 1), (3, tile.bn + 3, tile.bk - 1)]
    return edge if SIMULATED else [*edge, (tile.bm * 9 + 5, tile.bn * 2 + 1, 133), (257, 129, 4096 * 2 + 5)]


def cases(sizes, factors):
    """Every size with every pair of factors; in the simulator, which takes seconds for a tile, each with another."""
    every = list(itertools.product(sizes, factors))
    return every[:: len(factors) + 1] if SIMULATED else every


def near(result, x, a, b, beta, alpha, label):
    """Within the bound, and the CPU's bits where the CPU kernels are here."""
    a64, b64, k = a.astype("f8"), b.astype("f8"), a.shape[1]
    addend = 0 if beta == 0 else beta * x.astype("f8")
    exact = alpha * (a64 @ b64) + addend
    unit = (k + 3) * np.finfo(result.dtype).eps / 2
    bound = unit / (1 - unit) * (abs(alpha) * (abs(a64) @ abs(b64)) + abs(addend))
    if result.dtype == np.float64:
        bound = 2 * bound  # the reference rounds as well
    check(bool((abs(result - exact) <= bound).all()), f"{label}: error {np.nanmax(abs(result - exact)):.2g}")
    if cpu is not None:
        expected = np.empty_like(result)
        cpu(expected, x, a, b, beta, alpha)
        check(bool((result.view("u1") == expected.view("u1")).all()), f"{label}: not the CPU's bits")


def other_products(tiles_of, rng):
    """Every other dtype against the CPU's bits: tile edges, layouts, factors, conjugates, segments, dot."""
    from nbkernels import dot
    from nbkernels.cuda import gemm
    from nbkernels.cuda.kinds import kind_of
    from nbkernels.dispatch.devices import NUMBA

    for dtypes in combinations():
        names, to = [d.name for d in dtypes], dtypes[2]
        whole, conjugates = to.kind in "iub", itertools.cycle(("", "a", "b", "ab") if to.kind == "c" else ("",))
        pairs = ((3, -5), (1, 1), (1, 0)) if whole else ((0.75, -1.25), (0, 1), (1, 0))
        pairs = ((1, 1),) if to.kind == "b" else ((0.5 - 2j, 1 + 0.25j), *pairs) if to.kind == "c" else pairs
        layouts = itertools.cycle(itertools.product("CF", LAYOUTS, LAYOUTS))
        for tile in tiles_of(kind_of(*names).chain)[:2]:
            for (m, n, k), (beta, alpha) in cases(sizes(tile), pairs):
                a, b, x = (drawn(rng, shape, d) for shape, d in zip(((m, k), (k, n), (m, n)), dtypes))
                (order, *lay), conj = next(layouts), next(conjugates)
                out, expected = upload(np.ones((m, n), to, order)), np.empty((m, n), to)
                args = [upload(array) for array in (x, LAYOUTS[lay[0]](a), LAYOUTS[lay[1]](b))]
                gemm.gemm(*map(NUMBA.view, (out, *args)), beta, alpha, tile, conj)
                cpu(expected, x, a, b, beta, alpha, None, conj)
                label = f"{' '.join(names)} {tile} {m}x{n}x{k} {order} {' '.join(lay)} {beta} {alpha} {conj}"
                check(same_bits(out.copy_to_host(), expected), f"{label}: not the CPU's bits")
        for k in (5, 100) if SIMULATED else (1000, 9001):
            a, b, wider = drawn(rng, k, dtypes[0]), drawn(rng, k, dtypes[1]), to if to != dtypes[0] else None
            result = dot(upload(a), upload(b), out_dtype=wider).copy_to_host()
            check(same_bits(result, np.asarray(dot(a, b, out_dtype=wider))), f"dot {' '.join(names)} {k}")
        print("right:" if not failures else "checked:", *names)


def blocks(tiles_of, rng):
    """The block's product in a user's kernel against the CPU's bits: of float32, float64, halves and bytes."""
    from nbkernels.cuda.block import BlockGemm
    from nbkernels.cuda.kinds import kind_of

    for names in (*((d, d, d) for d in DTYPES), ("float16", "float16", "float32"), ("uint8", "int8", "int32")):
        dtypes, layouts = [np.dtype(name) for name in names], itertools.cycle(itertools.product("CF", LAYOUTS, LAYOUTS))
        for tile in tiles_of(kind_of(*names).chain)[: 1 if SIMULATED else 3]:
            run = tiled(BlockGemm(*names, tiles=tile))
            shapes, factors = sizes(tile)[1 : 2 if SIMULATED else 4], ((0, 1), (3, -2))[SIMULATED:]
            for (m, n, k), (beta, alpha) in itertools.product(shapes, factors):
                a, b, c = (drawn(rng, shape, d) for shape, d in zip(((m, k), (k, n), (m, n)), dtypes))
                (order, *lay), expected = next(layouts), np.empty_like(c)
                out = upload(np.array(c, order=order))
                run(out, upload(LAYOUTS[lay[0]](a)), upload(LAYOUTS[lay[1]](b)), alpha, beta)
                cpu(expected, c, a, b, beta, alpha)
                label = f"block gemm {' '.join(names)} {tile} {m}x{n}x{k} {order} {' '.join(lay)} {beta} {alpha}"
                check(same_bits(out.copy_to_host(), expected), f"{label}: not the CPU's bits")
    print("right:" if not failures else "checked:", "block gemm in a user's kernel")


def cpu_kernel():
    """The CPU's addmm, or None where it cannot be imported."""
    try:
        from nbkernels.cpu.gemm.gemm import addmm
    except ImportError as error:
        print(f"not compared with the CPU's bits: {error}")
        return None
    return addmm


def loops(rng):
    """Element-wise operations exactly, sums of whole numbers exactly, over layouts and broadcasts."""
    from device_orders import batches, streams, values

    import nbkernels
    from nbkernels.cuda import reduce
    from nbkernels.dispatch.devices import NUMBA

    m, n = (7, 11) if SIMULATED else (1003, 517)
    for dtype, (name, lay) in itertools.product(DTYPES, LAYOUTS.items()):
        a, b = numbers(rng, m, n, dtype=dtype), numbers(rng, m, n, dtype=dtype)
        for operation, second in itertools.product(OPS, (b, b[:1], b[:, :1], b[0], 2.5)):
            out = upload(np.full((m, n), np.nan, dtype))
            other = upload(lay(second) if np.ndim(second) == 2 else second) if np.ndim(second) else second
            getattr(nbkernels, operation)(upload(lay(a)), other, out=out)
            expected = getattr(np, operation)(a, second)
            check(np.array_equal(out.copy_to_host(), expected), f"{operation} {dtype} {name} {np.shape(second)}")
        out = upload(np.full((m, n), np.nan, dtype))
        nbkernels.add(upload(lay(a)), upload(lay(b)), alpha=0.1, out=out)
        expected = a + np.dtype(dtype).type(0.1) * b
        check(np.array_equal(out.copy_to_host(), expected), f"add alpha {dtype} {name}: contracted?")
        whole = rng.integers(-9, 10, (m, n)).astype(dtype)
        for shape in ((n,), (m, 1), (1, n), (), (1, 1)):
            out = upload(np.full(shape, np.nan, dtype))
            reduce.sum_to(NUMBA.view(out), NUMBA.view(upload(lay(whole))))
            axes = (0, 1) if shape in ((), (1, 1)) else 1 if shape == (m, 1) else 0
            expected = whole.sum(axis=axes).reshape(shape)
            check(np.array_equal(out.copy_to_host(), expected), f"sum_to {shape} {dtype} {name}")
    methods(rng)
    batches(rng, check)
    values(rng, check)
    streams(check)
    print("right:" if not failures else "checked:", "element-wise operations, sums, folds in order and at")


def methods(rng):
    """Folds in order, with what they start from and masks, and at with repeated indices: NumPy's, bit for bit."""
    import nbkernels

    m, n = (5, 9) if SIMULATED else (257, 3001)
    for dtype in DTYPES:
        x, mask = rng.integers(-9, 10, (m, n)).astype(dtype), rng.random((m, n)) < 0.5
        for axis in (0, 1):
            expected = np.subtract.reduce(x, axis, initial=3, where=mask)
            result = nbkernels.subtract.reduce(upload(x), axis, initial=3, where=upload(mask)).copy_to_host()
            check(np.array_equal(result, expected), f"subtract.reduce {dtype} axis {axis}, initial, where")
        indices, expected, target = rng.integers(0, n, 4 * n), x[0].copy(), upload(x[0].copy())
        terms = rng.standard_normal(4 * n).astype(dtype)
        np.add.at(expected, indices, terms)
        nbkernels.add.at(target, indices, upload(terms))
        check(np.array_equal(target.copy_to_host(), expected), f"add.at {dtype}")
    for dtype, *_ in combinations():
        x = drawn(rng, (m, n), dtype) * (rng.random((m, n)) < 1 / n).astype(dtype)
        expected = x.astype(bool).any(1)
        check(np.array_equal(nbkernels.logical_or.reduce(upload(x), 1).copy_to_host(), expected), f"logical_or {dtype}")


# --- resources -------------------------------------------------------------------------------------------------------


def resources(tiles_of):
    """{kernel: what the assembler says}, of the device's architecture."""
    from numba import cuda

    from nbkernels import scalar
    from nbkernels.cuda import elementwise, gemm, reduce
    from nbkernels.cuda.assemble import assemble
    from nbkernels.cuda.kinds import kind_of
    from nbkernels.jit.kind import Kind

    cc = cuda.get_current_device().compute_capability
    kernels = [gemm.kernel(tile, Kind.plain(dtype)) for dtype in DTYPES for tile in tiles_of(dtype)]
    kinds = dict.fromkeys(kind_of(*(d.name for d in dtypes)) for dtypes in combinations())
    kernels += [gemm.kernel(tile, kind) for kind in kinds for tile in tiles_of(kind.chain)[-1:]]
    for dtype, ndim in itertools.product(DTYPES, (1, 2)):
        kernels.append(elementwise.kernel(scalar.common.add, (dtype,) * 3, (dtype,) * 3, ndim, (True, True)))
    kernels += [
        reduce.kernel(scalar.common.add, "float32", "float32", 1, 1, lanes, lanes == 8) for lanes in (8, 32, 256)
    ]
    found = {str(kernel): assemble(kernel, cc).resources for kernel in kernels}
    for name, used in found.items():
        print(f"{name:48} {used}")
        check(used.spilled == used.stack == 0, f"{name}: {used}")
    return {name: vars(used) for name, used in found.items()}


def main():
    global cpu
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for option in ("tune", "quick", "correctness"):
        parser.add_argument(f"--{option}", action="store_true")
    options = parser.parse_args()
    if lacks := missing():
        print(f"device check: this machine lacks {lacks}", file=sys.stderr)
        return 2
    from nbkernels.cuda import tiles
    from nbkernels.cuda.tiles import GemmProblem, Tiles

    def tiles_of(dtype):
        if SIMULATED:
            return [Tiles(16, 32, 4, 4, 4) if np.dtype(dtype).itemsize == 4 else Tiles(8, 16, 4, 2, 2)]
        if options.tune:
            return tiles.candidates(dtype)
        return list({tiles.default(GemmProblem(n, n, n, dtype), 132): None for n in (64, 256, 512, 1024, 2048, 8192)})

    cpu, rng, results = cpu_kernel(), np.random.default_rng(0), {}
    products(tiles_of, rng)
    if cpu is not None:
        other_products(tiles_of, rng)
        blocks(tiles_of, rng)
    loops(rng)
    if not (options.correctness or SIMULATED):
        from numba import cuda

        results["resources"] = resources(tiles_of)
        libraries = libraries_here()
        edges = (512, 1024) if options.quick else (512, 1024, 2048, 4096, 8192)
        results["rows"] = gemm_speed(edges, libraries, options.tune, rng)
        results["rows"] += loop_speed(2048 if options.quick else 8192, libraries, rng)
        results["launch_us"] = launch_cost(libraries, rng)
        device = cuda.get_current_device()
        name = device.name.decode() if isinstance(device.name, bytes) else device.name
        results["meta"] = {"cpu": name, "cores": device.MULTIPROCESSOR_COUNT, "date": datetime.date.today().isoformat(),
                           "versions": {"numpy": np.__version__}}  # fmt: skip
        directory = Path(os.environ.get("OUT") or Path(__file__).parent / "results")
        directory.mkdir(parents=True, exist_ok=True)
        file = directory / f"device-{name.lower().replace(' ', '-')}.json"
        file.write_text(json.dumps(results, indent=1), encoding="utf-8")
        print("results:", file)
    print(f"device check: {len(failures)} failed" if failures else "device check: all right")
    return int(bool(failures))


if __name__ == "__main__":
    sys.exit(main())
