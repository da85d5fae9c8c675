"""round to decimals, NumPy's way: scaled by a power of ten, to whole numbers, and back, by a device's own kernels."""

import math

import numpy as np

from .dtypes import resolve

ENOUGH = 400  # decimals: from 309 on a power of ten is infinite


def rounded(run, new, part, out, self, decimals, where=None, casting=None, dtype=None):
    """out = self to so many decimals, where `where` is not False.

    run(op, out, *operands, where, casting, dtype) is the device's kernel of an element-wise operation, new(shape,
    dtype) an array there, part(x, name) the real or the imaginary part of a complex one, as a view.
    """
    result = resolve("round", self.dtype, self.dtype, dtype, casting or "same_kind")[2]
    if decimals == 0 or (decimals > 0 and result.kind in "iu"):
        run("round", out, self, where=where, casting=casting, dtype=dtype)
        return
    there, back = ("multiply", "divide") if decimals > 0 else ("divide", "multiply")
    power = math.prod([10.0] * min(abs(decimals), ENOUGH))  # rounded at each step from 10**23 on, as NumPy's
    work = np.dtype(np.float64) if result.kind in "iu" else result
    step = out if where is None and out.dtype == work and work.kind != "c" else new(self.shape, work)
    read = self
    if self.dtype != step.dtype or work.kind == "c":
        run("positive", step, self, casting="unsafe")
        read = step
    for name in ("real", "imag") if work.kind == "c" else ("",):  # inf times a complex 10 is NaN in both parts
        x, y, target = (part(a, name) if name else a for a in (read, step, out))
        run(there, y, x, power)
        run("round", y, y)
        run(back, target, y, power, where=where, casting="unsafe")
