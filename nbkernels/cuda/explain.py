"""What the CUDA kernels would do with a call, as plain facts: the choices that the kernels themselves make."""

from __future__ import annotations

import math

from ..jit.kind import SIZE
from ..strides import plan
from .gemm import describe
from .kinds import kind_of
from .launch import capability, multiprocessors
from .product.choose import choose
from .product.gemm import running
from .product.tensor import cut, takes
from .tiles import given
from .tuned import place, slot_of, tuned


def facts(name: str, pointwise: bool, out, values) -> dict:
    """The facts of a kernel by its name and its arguments, of which shape, dtype and strides are known."""
    if 0 in out.shape:
        return dict(path="nothing: an empty result", flops=0)
    if name in ("addmm", "mm", "baddbmm", "bmm"):
        a, b = values[name in ("addmm", "baddbmm") :][:2]
        *items, m, n = out.shape
        k, tiles, chain = a.shape[-1], values[-1], kind_of(*[a.dtype.name] * 3).chain
        flops = 2 * math.prod(out.shape) * k
        if tiles is None and capability() >= (8, 0):
            device, kind = (capability(), multiprocessors()), kind_of(a.dtype.name, b.dtype.name, out.dtype.name)
            if k > 0 and takes(kind, values[-3]):  # of layouts that tensor copies can read
                config = cut(kind, device, *running(out), k, *items)
            else:
                config = choose(*device, chain, *running(out), k, *items)
            return dict(path=f"tier {config.tier}", tile=str(config), flops=flops)
        if items:
            return dict(path="simt, a launch for each item", flops=flops)
        own = tuned(chain, slot_of(out, a, b), place()) if tiles is None else None
        sizes = own or (describe(m, n, k, a.dtype.name).tiles if tiles is None else given(tiles, chain))
        return dict(path="simt", tile=f"{sizes}, tuned" if own else str(sizes), flops=flops)
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
