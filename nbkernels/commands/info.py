"""Facts about this machine and installation: `python -m nbkernels info`, and the meta of benchmark results."""

import datetime
import importlib.metadata
import os
import platform
from pathlib import Path

from nbkernels.plots import columns

# Those that decide which instructions the kernels use, now or in later kernels.
FEATURES = "sse4.2 avx avx2 fma f16c avx512f avx512bw avx512vl avx512bf16 avx512vnni".split()
FEATURES += "amx-bf16 amx-fp16 amx-int8 neon sve".split()


def version(package):
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def cpu():
    """The processor's own name where the system tells it, else what LLVM calls it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def gpus():
    """One line per CUDA GPU, or the one line that says why there is none."""
    try:
        from numba import cuda
    except ImportError as error:
        return [f"none: numba.cuda cannot be imported ({error})"]
    package = version("numba-cuda")
    through = (
        f"numba-cuda {package}" if package else "numba-cuda not installed: pip install 'nbkernels[cuda13]' or [cuda12]"
    )
    if os.environ.get("NUMBA_ENABLE_CUDASIM", "0") not in ("", "0"):
        return ["none: Numba's CUDA simulator is on (NUMBA_ENABLE_CUDASIM)"]
    if not cuda.is_available():
        return [f"none: no usable driver or device ({through})"]
    lines = []
    for device in cuda.gpus:
        name = device.name.decode() if isinstance(device.name, bytes) else device.name
        lines.append(
            f"{device.id}: {name}, compute capability {'.'.join(map(str, device.compute_capability))} ({through})"
        )
    return lines


def cut(dtype):
    """The tiles of large products, and whose they are."""
    from nbkernels.cpu.gemm import kinds, tuned

    kind = kinds.kind_of(dtype, dtype, dtype)
    own = sum(tuned.tuned(kind, which) is not None for which in range(tuned.SLOTS))
    text = f"{kinds.default_tiles(kind)}, derived from registers and caches"
    return f"{text}; by the tuner in {own} of {tuned.SLOTS} classes and layouts" if own else text


def winners():
    """A line for each winner of the tuner that is kept for this machine, and why a file of them is not read."""
    from nbkernels import winners as found
    from nbkernels.cpu.gemm import cost
    from nbkernels.cpu.runtime import machine
    from nbkernels.tuning import keep

    store = found.store()
    if store is None:
        return
    if wrong := store.problem():
        yield wrong
    if os.environ.get("NBKERNELS_TUNED", "1") == "0":
        yield "not used: NBKERNELS_TUNED=0"
    for line in keep.shown(keep.kept(store, machine.place())):
        yield ": ".join(filter(None, line.values()))
    for dtype in cost.DTYPES:
        if fitted := cost.fitted(dtype):
            ratio = found.entries()[machine.plan_key(dtype)].get("ratio")
            said = f": {ratio:.2f}x" if isinstance(ratio, float) else ""
            yield f"paths of {dtype} by costs of this machine, fitted from those of {fitted[0]}{said}"


def peaks():
    """What `tune` measured of the machine, in lines."""
    from nbkernels import winners as found
    from nbkernels.cpu.runtime import machine

    store = found.store()
    top = store and store.get(f"peaks on {machine.place()}")
    if isinstance(top, dict) and {"gflops", "gb_s", "threads", "dtype"} <= set(top):
        widths = ", ".join(f"{level} {width:.0f} GB/s" for level, width in top["gb_s"].items())
        yield f"{top['gflops']:.0f} GFLOP/s of {top['dtype']} by {top['threads']} threads, copies: {widths}"


def packaged():
    """A line for each level of processors that the package has compiled kernels for: which one is used, and why
    another is not; or the one line that says why there is none."""
    from nbkernels.jit.disk import levels

    level, reasons = levels.serving()
    lines = []
    for each in levels.packaged():
        files = list(levels.files_of(each))
        size = f"{each}: {len(files)} kernels, {sum(file.stat().st_size for file in files) / 1e6:.1f} MB"
        why = f"not used: {reasons[each]}" if each in reasons else f"not used: {level} has more"
        lines.append(f"{size}, {'used' if each == level else why}")
    return lines or [f"no kernels that serve: {levels.problem() or 'this is a pure wheel, or a clone'}"]


def matrix_unit() -> str:
    """The dtypes that the processor's matrix unit multiplies, or why none."""
    from nbkernels.jit.disk import levels
    from nbkernels.jit.ir import amx

    if "amx-tile" not in levels.target()[2]:
        return "none"
    dtypes = [dtype for dtype in ("int8", "bfloat16", "float16") if amx.available(dtype)]
    return (
        f"AMX, {' and '.join((', '.join(dtypes[:-1]), dtypes[-1]))}"
        if dtypes
        else "AMX, which the system does not let this process use"
    )


def modes() -> str:
    """The modes of halves where a call names none."""
    from nbkernels.cpu.gemm.kinds import default_mode

    try:
        return ", ".join(f"{dtype} {default_mode(dtype)}" for dtype in ("float16", "bfloat16"))
    except ValueError as error:  # of the environment
        return str(error)


def facts():
    """(name, value) of everything that `info` prints."""
    from nbkernels.cpu.gemm import blocking, cost
    from nbkernels.cpu.runtime import machine, threads
    from nbkernels.jit.disk import files, levels, upkeep
    from nbkernels.jit.ir import vector

    _, target, features = levels.target()
    found = machine.machine()
    return [
        ("nbkernels", version("nbkernels")),
        ("Python", f"{platform.python_version()} ({platform.python_implementation()}, {platform.platform()})"),
        *((name, version(name) or "not installed") for name in ("numba", "llvmlite", "numpy")),
        *((name, version(name) or "not installed") for name in ("numba-cuda", "cupy", "torch")),
        ("CPU", f"{cpu()} (LLVM: {target})"),
        ("caches", ", ".join(f"{name.upper()} {size >> 10} KiB" for name, size in found.sizes.items() if size)),
        *([("machine", machine.problem())] if machine.problem() else []),
        ("features", " ".join(name for name in FEATURES if name in features) or "none of those that matter here"),
        ("matrix unit", matrix_unit()),
        ("modes", modes()),
        ("vectors", f"{vector.width_bits()} bits, {blocking.vector_registers()} registers"),
        ("costs", cost.PROBLEM or f"{cost.kind()}: {cost.KINDS[cost.kind()]['source']}"),
        *((f"tiles {dtype}", cut(dtype)) for dtype in ("float32", "float64")),
        *(("peak", line) for line in peaks()),
        *(("tuned", line) for line in winners()),
        ("threads", f"{threads.count()} of {os.cpu_count()} cores, layer {threads.layer()}"),
        *(("cache", line) for line in (files.status(), *upkeep.doubts())),
        *(("packaged", line) for line in packaged()),
        *(("GPU", line) for line in gpus()),
    ]


def text():
    return columns.pairs(facts())


def meta():
    """What a benchmark result must say about where it was measured; see bench/report.py."""
    from nbkernels.benches import peers
    from nbkernels.jit.disk import levels
    from nbkernels.jit.ir import vector

    name = f"{cpu()} (LLVM: {levels.target()[1]}, vectors of {vector.width_bits()} bits)"
    names = "nbkernels", "numba", "llvmlite", "numpy", "torch"
    versions = {"python": platform.python_version()} | {name: version(name) for name in names if version(name)}
    return {"cpu": name, "cores": os.cpu_count(), "versions": versions, "date": datetime.date.today().isoformat(),
            "peers": peers.facts()}  # fmt: skip
