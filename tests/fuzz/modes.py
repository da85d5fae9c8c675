"""Flush-to-zero and rounding set before, during and after calls that threads share: every thread computes as the
caller does in that very call."""

import numba
import numpy as np

import nbkernels
from tests.modes import FLUSH, UP, computing

from . import judge
from .rooms import chance, pick

DTYPES = [np.dtype(c) for c in ("f4", "f8", "c8", "c16")]
HALVED = nbkernels.elementwise(lambda x: x * 0.5)
# name -> the call, the shapes of its operands: large enough for threads
CALLS = {
    "mm": (nbkernels.mm, [(151, 163), (163, 157)]),
    "bmm": (nbkernels.bmm, [(67, 31, 29), (67, 29, 37)]),
    "mv": (nbkernels.mv, [(701, 523), (523,)]),
    "dot": (nbkernels.dot, [(500_001,)] * 2),
    "multiply": (nbkernels.multiply, [(300_007,)] * 2),
    "add": (nbkernels.add, [(601, 503), (503,)]),
    "sqrt": (nbkernels.sqrt, [(300_007,)]),
    "exp": (nbkernels.exp, [(300_007,)]),
    "sum": (lambda x: nbkernels.add.reduce(x, axis=1), [(911, 403)]),
    "elementwise": (HALVED, [(601, 503)]),
    "fuse": (lambda x, y: nbkernels.fuse(lambda x, y: x * y - x, x, y), [(601, 503), (601, 1)]),
}


def theme(rng):
    return pick(rng, list(CALLS)), pick(rng, DTYPES)


def operand(rng, shape, dtype, low):
    """Random numbers around 2**low, of which some are subnormal."""
    real = np.dtype(dtype.char.lower())
    parts = [np.ldexp(rng.standard_normal(shape), rng.integers(low - 6, low + 6, shape)).astype(real) for _ in "ri"]
    return parts[0] if dtype.kind == "f" else (parts[0] + 1j * parts[1]).astype(dtype)


def case(theme, rng, tell):
    """In every mode, whatever the calls before were made in, all threads have one thread's bits."""
    name, dtype = theme
    call, shapes = CALLS[name]
    least = np.finfo(dtype).minexp
    lows = [least] if len(shapes) == 1 or name == "add" else [least // 2, least - least // 2]
    given = [operand(rng, shape, dtype, low) for shape, low in zip(shapes, lows * 2)]
    if name == "exp":
        given = [(least * np.log(2) * rng.uniform(0.95, 1.05, shapes[0])).astype(dtype)]
    workers = numba.get_num_threads()
    for more in [pick(rng, [0, FLUSH, UP, FLUSH | UP]) for _ in range(4)]:
        tell(f"{name} of {dtype.name} with modes {more:#x}")
        with computing(more), np.errstate(all="ignore"):
            found = call(*given)
            if chance(rng, 0.5):
                found = call(*given)  # by a helper that is awake
            numba.set_num_threads(1)
            try:
                expected = call(*given)
            finally:
                numba.set_num_threads(workers)
        judge.alike(found, expected, f"modes {more:#x}: differs from one thread's")


CLASSES = {"modes": (theme, case, 1)}
