"""The functions of transcendental.py, circular.py, hyperbolic.py and powers.py: time against NumPy and torch, errors.

    python bench/bench_transcendental.py               # ns an element, 10,000 elements, one thread
    python bench/bench_transcendental.py --ulp         # largest errors: float32 over every argument (half an hour)
    python bench/bench_transcendental.py --ulp --quick # over every 1024th, a minute

float32 is measured against NumPy's float64 (erf: the C library's), float64 against NumPy's long double where that has
64 bits of fraction, erf against mpmath.
"""

import argparse
import math

import numpy as np
import pytest
from numba import njit
from tabulate import tabulate

from nbkernels import tune
from nbkernels.benches.peers import at_best
from nbkernels.elementary import circular, hyperbolic, powers, transcendental
from nbkernels.jit.compile import known

CIRCULAR = ("sin", "cos", "tan", "asin", "acos", "atan")
HYPERBOLIC = ("sinh", "cosh", "asinh", "acosh", "atanh", "cbrt")
ONE = ("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "tanh", "erf", *CIRCULAR, *HYPERBOLIC)
TWO = ("pow", "atan2", "hypot", "logaddexp")
NUMPY = {"pow": "power", "atan2": "arctan2"}
CHUNK = 1 << 22
known.enter()  # compiled code finds the functions from here on


def compiled(name):
    """loop(inputs..., out)"""
    rooms = dict.fromkeys(CIRCULAR, circular) | dict.fromkeys(HYPERBOLIC, hyperbolic) | {"pow": powers}
    function = getattr(rooms.get(name, transcendental), name)
    if name in ONE:

        def loop(x, out):
            for i in range(x.size):
                out[i] = function(x[i])
    else:

        def loop(x, y, out):
            for i in range(x.size):
                out[i] = function(x[i], y[i])

    return njit(loop, error_model="numpy")


def exact(name, arguments, wide):
    """The function in a wider type."""
    arguments = [a.astype(wide) for a in arguments]
    if name == "logaddexp":  # NumPy's goes by the C library's log1p and exp, in any type
        return np.maximum(*arguments) + np.log1p(np.exp(-np.abs(arguments[0] - arguments[1])))
    if name != "erf":
        return getattr(np, NUMPY.get(name, name))(*arguments)
    if wide is np.float64:
        return np.vectorize(math.erf)(arguments[0])
    import mpmath

    with mpmath.workprec(80):
        high = [mpmath.erf(mpmath.mpf(float(x))) for x in arguments[0]]
        return np.array([np.longdouble(float(v)) + np.longdouble(float(v - float(v))) for v in high])


def ulps(name, arguments, result):
    """Errors in units of the last place of the exact values; infinite where one is special and the other is not."""
    real = result.dtype.type
    value = exact(name, arguments, np.float64 if real is np.float32 else np.longdouble)
    rounded = value.astype(real)
    unit = np.maximum(np.spacing(np.abs(rounded)), np.spacing(real(0))).astype(value.dtype)
    if name == "logaddexp":
        terms = np.maximum(*arguments), np.log1p(np.exp(-np.abs(arguments[0] - arguments[1])))
        unit = np.maximum(unit, np.spacing(np.maximum(*map(np.abs, terms))))
    error = np.abs(result.astype(value.dtype) - value) / unit
    special = ~np.isfinite(rounded) | ~np.isfinite(result)
    agree = (rounded == result) | (np.isnan(rounded) & np.isnan(result))
    # the last before infinity, on one side only
    edge = np.isinf(rounded) != np.isinf(result)
    limit = np.finfo(real).max
    agree |= edge & (np.abs(np.clip(value, -limit, limit)) == limit) & (np.abs(np.clip(result, -limit, limit)) == limit)
    return np.where(special, np.where(agree, 0, np.inf), error)


def samples(name, dtype, quick, rng):
    """Chunks of arguments: every float32 of a function of one, else random bits and random magnitudes near 1."""
    whole = np.uint32 if dtype == "float32" else np.uint64
    if name in ONE and dtype == "float32":
        for start in range(0, 1 << 32, CHUNK):
            yield (np.arange(start, start + CHUNK, 1024 if quick else 1, dtype=np.uint32).view(np.float32),)
        return
    small = 1 << (14 if name == "erf" else 18)
    count = 2 if quick else 64 if dtype == "float32" else 8
    for i in range(count):
        size = small if dtype == "float64" and name == "erf" else small * 4 if quick else CHUNK // 2
        arguments = []
        for _ in range(1 if name in ONE else 2):
            bits = rng.integers(0, np.iinfo(whole).max, size, whole, endpoint=True).view(dtype)
            near = (rng.standard_normal(size) * 10.0 ** rng.uniform(-3, 3, size)).astype(dtype)
            arguments.append(near if i % 2 else bits)
        yield tuple(arguments)


def worst(name, dtype, quick=False):
    """(largest error in ulp, its arguments)"""
    rng, loop = np.random.default_rng(0), compiled(name)
    found = (-1.0, None)
    for arguments in samples(name, dtype, quick, rng):
        out = np.empty_like(arguments[0])
        loop(*arguments, out)
        with np.errstate(all="ignore"):
            errors = ulps(name, arguments, out)
        at = int(np.argmax(errors))
        found = max(found, (float(errors[at]), tuple(float(a[at]) for a in arguments)))
    return found


def measure(name, dtype, seconds=0.3, size=10_000):
    """One row of times."""
    rng = np.random.default_rng(0)
    x = (rng.random(size) * 4 + 0.1).astype(dtype)
    y = (rng.standard_normal(size) * 2).astype(dtype)
    inputs, out, loop = (x,) if name in ONE else (x, y), np.empty_like(x), compiled(name)
    calls = {"nbkernels": lambda: loop(*inputs, out)}
    if name != "erf":
        calls["NumPy"] = lambda: getattr(np, NUMPY.get(name, name))(*inputs, out=out)
    try:
        import torch

        torch.set_num_threads(1)
        tensors, into = [torch.from_numpy(a) for a in inputs], torch.from_numpy(out)
        calls["torch"] = lambda: getattr(torch, name)(*tensors, out=into)
    except ImportError:
        pass
    times = tune.medians(calls, seconds=seconds)
    return {"function": name, "dtype": dtype} | {who: time / size * 1e9 for who, time in times.items()}


@pytest.mark.parametrize("name", ONE + TWO)
def test_transcendental(benchmark, name):
    low, high = {"asin": (-1, 1), "acos": (-1, 1), "atanh": (-0.99, 0.99), "acosh": (1, 4)}.get(name, (0.5, 2))
    x = np.linspace(low, high, 10_000, dtype=np.float32)
    inputs, out, loop = (x,) if name in ONE else (x, x), np.empty_like(x), compiled(name)
    benchmark(loop, *inputs, out)
    assert ulps(name, inputs, out).max() <= (4 if name in CIRCULAR + HYPERBOLIC else 2.5)


if __name__ == "__main__":
    at_best()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ulp", action="store_true", help="measure errors")
    parser.add_argument("--quick", action="store_true", help="fewer arguments")
    parser.add_argument("names", nargs="*", default=ONE + TWO, help="functions")
    options = parser.parse_args()
    rows = []
    for name in options.names:
        for dtype in ("float32", "float64"):
            if options.ulp:
                error, where = worst(name, dtype, options.quick)
                rows.append({"function": name, "dtype": dtype, "ulp": error, "at": where})
                print(rows[-1], flush=True)
            else:
                rows.append(measure(name, dtype))
    print(tabulate(rows, headers="keys", floatfmt=".3f"))
