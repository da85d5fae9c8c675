"""Facts about what the CUDA kernels would do with a call: the choices that the kernels themselves make."""

from __future__ import annotations

import math

from ..dispatch.driver import DeviceView
from ..jit.ir.kind import SIZE
from ..modes import asked
from ..problem import GemmProblem
from ..strides import plan
from .kinds import kind_of
from .launch import capability, multiprocessors
from .product.gemm import planned
from .product.pack import copies
from .tiles import default, given
from .tuned import place, slot_of, tuned


def placed(x):
    """x; what has no memory yet as an array that is aligned."""
    return x if x is None or isinstance(x, DeviceView) else DeviceView(0, x.shape, x.strides, x.dtype, 0, 0, None, None)


def facts(name: str, pointwise: bool, out, values) -> dict:
    """The facts of a kernel by its name and its arguments, of which shape, dtype and strides are known."""
    if 0 in out.shape:
        return dict(path="nothing: an empty result", flops=0)
    if name in ("addmm", "mm", "baddbmm", "bmm"):
        a, b = values[name in ("addmm", "baddbmm") :][:2]
        *items, m, n = out.shape
        k, (mode, conj, tiles), chain = a.shape[-1], values[-3:], kind_of(*[a.dtype.name] * 3).chain
        flops = 2 * math.prod(out.shape) * k
        if tiles is None and capability() >= (8, 0):
            mode = mode or asked(a.dtype.name, of_gpus=True)
            kind = kind_of(*(x.dtype.name for x in (a, b, out)), conj or "", None if mode == "tf32" else mode)
            made = planned(*map(placed, (out, None, a, b)), kind, k, mode=mode)
            config = made.launches[0][0].config
            packed = sorted(side.operand for side in copies(made).values())
            tile = f"{config}{', tuned' * made.tuned}"
            return dict(path=f"tier {config.tier}", mode=mode, tile=tile, copies=packed, flops=flops)
        if items:
            return dict(path="simt, a launch for each item", flops=flops)
        own = tuned(chain, slot_of(out, a, b), place()) if tiles is None else None
        chosen = default(GemmProblem(m, n, k, chain), multiprocessors()) if tiles is None else given(tiles, chain)
        return dict(path="simt", tile=f"{own}, tuned" if own else str(chosen), flops=flops)
    if name in ("mv", "addmv"):
        mat = values[name == "addmv"]
        own = mat.dtype.name in SIZE and out.dtype == mat.dtype
        return dict(path="8 chains" if own else "one chain", flops=2 * mat.shape[0] * mat.shape[1])
    if name in ("dot", "vdot"):
        return dict(path="64 chains", flops=2 * values[0].shape[0])
    if pointwise:
        operands = [out, *(x for x in values if hasattr(x, "strides"))]
        loops = plan(*(tuple(tuple(getattr(x, word)) for x in operands) for word in ("shape", "strides")),
                     tuple(x.dtype.itemsize for x in operands))  # fmt: skip
        return dict(path="tiles" if loops.kind == "transposed" else "loop", layout=str(loops), flops=loops.size)
    return {}
