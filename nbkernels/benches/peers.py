"""The libraries that are measured beside ours, found when they are asked for, and at their best."""

import atexit
import functools
import importlib
import os
import subprocess
import sys

from . import mkl

NAMES = ("NumPy", "torch", "MKL", "numexpr", "CuPy")


@functools.cache
def _module(name):
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


def torch():
    return _module("torch")


def numexpr():
    return _module("numexpr")


def cupy():
    return _module("cupy")


def found() -> list[str]:
    """Names of the peer libraries that can be loaded on this machine, in the order of NAMES."""
    here = {"NumPy": True, "torch": torch(), "MKL": mkl.library(), "numexpr": numexpr(), "CuPy": cupy()}
    return [name for name in NAMES if here[name]]


# -- at their best -----------------------------------------------------------------------------------------------------

# What keeps a library from the kernels that it would choose, or makes it slower: read when it is loaded.
HOLDING = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE", "OPENBLAS_VERBOSE", "MKL_DEBUG_CPU_TYPE", "MKL_ENABLE_INSTRUCTIONS",
           "MKL_CBWR", "MKL_VERBOSE", "ATEN_CPU_CAPABILITY", "ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA", "ONEDNN_VERBOSE",
           "NPY_DISABLE_CPU_FEATURES")  # fmt: skip
# Bits of the vectors of OpenBLAS's kernels by their names, where they are not 128, and of torch's.
WIDTHS = {
    512: ("SkylakeX", "Cooperlake", "Sapphirerapids", "AVX512"),
    256: ("Haswell", "Zen", "Sandybridge", "Bulldozer", "Piledriver", "Steamroller", "Excavator", "AVX2"),
}


def at_best() -> None:
    """Called before anything is measured: start the program anew without HOLDING's variables, where some are set, and
    say at its end which peers are held back all the same."""
    if given := [name for name in HOLDING if name in os.environ]:
        print(f"started anew without {', '.join(given)}, by which peers would be slower", file=sys.stderr, flush=True)
        line = [sys.executable, *sys.orig_argv[1:]]
        environment = {name: value for name, value in os.environ.items() if name not in given}
        sys.exit(subprocess.run(line, env=environment).returncode)
    atexit.register(lambda: print("".join(f"{line}\n" for line in held_back()), end="", file=sys.stderr))


def facts() -> dict[str, dict]:
    """{library: its version, the architecture of its kernels, its threads} of those that this process has loaded."""
    result = {}
    try:
        import threadpoolctl
    except ImportError:
        loaded = ()
    else:
        loaded = threadpoolctl.threadpool_info()
    for each in loaded:
        if each["user_api"] == "blas":
            name = {"openblas": "OpenBLAS", "mkl": "MKL"}.get(each["internal_api"], each["internal_api"])
            owner = next((x for x in ("numpy", "scipy", "torch") if f"{x}.libs" in each["filepath"]), "")
            result[f"{owner}'s {name}" if owner else name] = {
                "version": each["version"], "architecture": each.get("architecture"), "threads": each["num_threads"]
            }  # fmt: skip
    if loaded := sys.modules.get("torch"):
        result["torch"] = {
            "version": loaded.__version__, "architecture": loaded.backends.cpu.get_cpu_capability(),
            "threads": loaded.get_num_threads(),
        }  # fmt: skip
    return result


def held_back(found=None, bits=None) -> list[str]:
    """A line for each of these facts whose kernels have narrower vectors than the processor, of `bits`.

    >>> held_back({"OpenBLAS": {"version": "0.3", "architecture": "Haswell", "threads": 2}}, 512)
    ["OpenBLAS 0.3 is held back: kernels of Haswell have vectors of 256 bits, the processor's have 512"]
    """
    from ..jit.ir.vector import width_bits

    found, bits, lines = facts() if found is None else found, bits or width_bits(), []
    for name, each in found.items():
        kind = each["architecture"]
        width = next((width for width, kinds in WIDTHS.items() if kind in kinds), 128)
        if kind is not None and bits > 128 and width < bits:
            which = f"kernels of {kind} have vectors of {width} bits, the processor's have {bits}"
            lines.append(f"{name} {each['version']} is held back: {which}")
    return lines
