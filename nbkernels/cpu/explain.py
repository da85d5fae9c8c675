"""Facts about what the CPU's kernels would do with a call: the choices that the kernels themselves make."""

from __future__ import annotations

from dataclasses import replace
from math import prod

import numpy as np

from .. import scalar
from ..dtypes import ALONE, kind, name_of, resolve, settled
from ..jit.disk.cached_code import kept
from ..jit.ir.kind import Kind
from ..jit.ir.vector import SIZE
from ..strides import plan
from .elementwise import gates
from .gemm import syrk
from .gemm.block import kernel_for
from .gemm.blocking import caches, given, small
from .gemm.context import buffers
from .gemm.context_setup import swapped
from .gemm.gemm import clash, same
from .gemm.general_entry import shared as shared_stack
from .gemm.kinds import by_unit, default_mode, in_place, kind_of, of_depth, tiles_of
from .gemm.paths import path_of, seen, shared
from .gemm.stacks import choose as batch_path
from .gemm.tuned import slot_of, tuned
from .gemv.dot import DTYPES
from .gemv.jobs import ROWS_SHARED, SHARED
from .runtime import threads
from .runtime.status import BY_COLUMNS, BY_ROWS, GEMV, PACKED, PATHS, SMALL

# The compiled function that does the work of each path; its name goes on with the dtype.
WORK = {"gemv": "gemv", "thin": "gemm_thin", "deep": "gemm_deep", "short": "gemm_short", "columns": "gemm_columns",
        "packed": "gemm_multiply", "stack, one thread a product": "gemm_multiply",
        "stack of tiny": "gemm_tiny", "stack of small": "gemm_batch", "stack of even": "gemm_even",
        "stack of vectors": "gemm_vectors"}  # fmt: skip
OF_SMALL = {SMALL: "gemm_block", BY_ROWS: "gemm_even_rows", BY_COLUMNS: "gemm_even_upright"}


def overlaps(out, x) -> bool:
    """Whether a kernel sees out and x clash; arrays that are not there yet clash with nothing."""
    real = isinstance(out, np.ndarray) and isinstance(x, np.ndarray)
    return real and not same(out, x) and clash(out, x)


def written(out, x) -> bool:
    """Whether x is the very elements of out: a product reads them after the first is written."""
    return isinstance(out, np.ndarray) and isinstance(x, np.ndarray) and same(out, x)


def product(out, x, a, b, beta=0, alpha=1, mode=None, conj=None, tiles=None) -> dict:
    """A matrix product or a batch of them; `x` may be None."""
    *batch, m, n = out.shape
    k, count, size = a.shape[-1], prod(batch), out.dtype.itemsize
    x = None if beta == 0 else x
    work = dict(path="nothing: an empty result", flops=0, layout=layout(a, b))
    if 0 in out.shape:
        return work
    if k == 0 or alpha == 0:
        return work | dict(path="beta * self alone", flops=0 if x is None else count * m * n)
    kind = of_depth(kind_of(*(name_of(each.dtype) for each in (a, b, out)), conj, mode), k)
    work |= {"mode": mode or default_mode(kind.a)}
    if x is None and alpha == 1 and mode is None and tiles is None and not batch and syrk.symmetric(a, b):
        return work | dict(path="one triangle, mirrored", threads=threads.count(), flops=m * n * k)
    ready = getattr(b, "memory", None) is not None  # panels.py's
    kind = replace(b.kind, out=kind.out) if ready else kind
    cut = b.tiles if ready else None if tiles is None else given(tiles, kind)
    plain = kind.a in SIZE and not conj and mode is None and cut is None
    single = (a if n == 1 else b).strides[-2:] if in_place(kind) and cut is None and 1 in (m, n) else ()
    way = path_of(out, x, a, b, threads.count()) if plain else GEMV if size in single else PACKED
    path = PATHS[way]
    stack = batch_path(out, x, a, b, threads.count(), kind.a, alpha) if count > 1 and plain else None
    whole = {"mat1": a, "mat2": b, "self": x}
    present = {name: each for name, each in whole.items() if each is not None}
    copies = [name for name, each in present.items() if any(s % each.dtype.itemsize for s in each.strides)]
    clashes = [name for name, each in present.items() if overlaps(out, each) or (name != "self" and written(out, each))]
    result = f"{out.shape} {out.dtype}, {count * m * n * size} bytes: out overlaps {', '.join(clashes)}"
    temporaries = [result] if clashes else []
    kind = kind if cut else by_unit(kind, m, n, k)
    steps = k if plain or min(m, n) > 1 else k * a.dtype.itemsize
    which, workers = slot_of(out, a, b), threads.count() if shared(way if plain else PACKED, m, n, steps) else 1
    tiles = cut or tiles_of(kind, which)
    if path == "packed":
        temporaries.append(panels(out, a, b, tiles, kind, workers))
    turns = shared_stack(count, (m, n, k), threads.count(), size if plain else 0, caches()[1])
    if stack is not None:
        path, workers, temporaries = f"stack of {stack[0]}", stack[1], temporaries[: len(clashes) > 0]
    elif count > 1 and cut is None and turns and not (copies or clashes):
        path, workers, temporaries = "stack, one thread a product", turns, []
    shown = f"{tiles}, tuned" if cut is None and tiles == tuned(kind, which) else str(tiles)
    tile = shown if path == "packed" or not plain else f"{small(kind.a).mr}x{small(kind.a).nr}"
    flops = 2 * count * m * n * k * (4 if out.dtype.kind == "c" else 1)
    if path == "small":
        *sizes, rows = seen(out, x, a, b)
        name = OF_SMALL[kernel_for(small(kind.a), rows and x is None and alpha == 1, *sizes)]
    else:
        name = WORK[path]
    code = kept(f"{name}_{kind if name == 'gemm_multiply' else kind.a}")
    path = "packed, mat2 beforehand" if ready else path
    return work | dict(path=path, tile=tile, code=code, threads=workers, copies=copies,
                       temporaries=temporaries, flops=flops)  # fmt: skip


def panels(out, mat1, mat2, tiles, kind, workers) -> str:
    """What the packed path makes beside out, planes of sums aside; C' = B' A' where out's columns are contiguous."""
    (m, n), k = out.shape[-2:], mat1.shape[-1]
    if swapped(out, mat2, kind):
        m, n, kind = n, m, kind.swapped()
    return f"panels of mat1 and mat2, {sum(buffers(m, n, k, tiles, tiles.tile(kind), workers)[:2])} bytes"


def dot(out, a, mode) -> dict:
    """A sum of the products of two vectors as a."""
    if name_of(a.dtype) not in DTYPES or not a.shape[0] or mode is not None or out.dtype != a.dtype:
        return dict(path="mm of a row and a column", flops=2 * a.shape[0])
    shared = 2 * a.shape[0] * a.dtype.itemsize > SHARED
    flops = 2 * a.shape[0] * (4 if a.dtype.kind == "c" else 1)
    code = kept(f"dot_work_{name_of(a.dtype)}")
    return dict(path="64 chains", code=code, threads=threads.count() if shared else 1, flops=flops)


def mv(out, x, a, v, beta=0, alpha=1, mode=None) -> dict:
    """A matrix times a vector; `x` may be None."""
    (m, k), x = a.shape, None if beta == 0 else x
    if name_of(v.dtype) not in SIZE or 0 in a.shape or alpha == 0 or mode is not None or out.dtype != v.dtype:
        return dict(path="mm with the vector as a column", flops=2 * m * k * (4 if a.dtype.kind == "c" else 1))
    step, along = (stride // a.dtype.itemsize for stride in a.strides)
    form = "columns" if step == 1 and m > 1 else "rows" if along == 1 or k == 1 else "rows, copied one at a time"
    present = {name: each for name, each in dict(mat=a, vec=v, self=x).items() if each is not None}
    copies = [name for name, each in present.items() if any(s % each.dtype.itemsize for s in each.strides)]
    clashes = [name for name, each in present.items() if overlaps(out, each) or (name != "self" and written(out, each))]
    temporaries = [f"{out.shape} {out.dtype}, {m * out.dtype.itemsize} bytes: out overlaps {', '.join(clashes)}"]
    alone = SHARED if form == "columns" else ROWS_SHARED
    workers = threads.count() if m * k * a.dtype.itemsize > alone else 1
    kind = Kind(name_of(a.dtype), *[name_of(v.dtype)] * 3)
    form += "" if kind.same else f", converted from {kind.a} as they are read"
    return dict(path=f"8 chains, by {form}", code=kept(f"mv_work_{kind}"), threads=workers, copies=copies,
                temporaries=temporaries * (clashes != []), flops=2 * m * k)  # fmt: skip


def layout(a, b) -> str:
    """NN, NT, TN or TT: T where the columns are nearer in memory than the rows."""
    return "".join("-" if hasattr(x, "memory") else "T" if abs(x.strides[-2]) < abs(x.strides[-1]) else "N"
                   for x in (a, b))  # fmt: skip


def elementwise(out, arrays) -> dict:
    """A loop over broadcast arrays."""
    operands = [out, *arrays]
    clashes = [x for x in arrays if overlaps(out, x)]
    if 0 in out.shape:
        return dict(path="nothing: an empty result", flops=0, layout="empty")
    itemsizes = tuple(x.dtype.itemsize for x in operands)
    loops = plan(*(tuple(tuple(getattr(x, name)) for x in operands) for name in ("shape", "strides")), itemsizes)
    path = "streaming stores" if gates.streamed(loops, itemsizes) and isinstance(out, np.ndarray) else "loops"
    temporaries = [f"{x.shape} {x.dtype}, {x.nbytes} bytes: a copy of an input that out overlaps" for x in clashes]
    workers = threads.count() if loops.size >= gates.PARALLEL else 1
    return dict(path=path, layout=str(loops), threads=workers, temporaries=temporaries, flops=loops.size)


def loop(name, self, other, alpha=1, *others) -> str:
    """What is known of the compiled loops of an operation of two; of one operand they read it twice."""
    kinds = (kind(settled(name, x, y)) for x, y in ((self, other), (other, self)))
    work = resolve(name, *kinds)
    given = "_".join(name_of(getattr(x, "dtype", w)) for x, w in zip((self, other), work))
    scaled = scalar.exists(f"{name}_scaled") and alpha != 1
    return kept(f"loop_{name}{'_scaled' * scaled}_{given}_by")


def facts(name: str, pointwise: bool, out, values) -> dict:
    """The facts of a kernel by its name and its arguments: arrays, or what has shape, dtype and strides as they do."""
    if name in ("addmm", "baddbmm"):
        self, left, right, beta, alpha, *rest = values
        return product(out, self, left, right, beta, alpha, *rest)
    if name in ("mm", "bmm"):
        self, mat2, *rest = values
        return product(out, None, self, mat2, 0, 1, *rest)
    if name == "mv":
        return mv(out, None, *values[:2], mode=values[3])
    if name == "_mv_widened":
        return mv(out, None, *values)
    if name == "addmv":
        return mv(out, *values[:5], mode=values[6])
    if name in ("dot", "vdot"):
        return dot(out, values[0], values[3])
    if pointwise:
        told = elementwise(out, [x for x in values if hasattr(x, "strides")])
        if name == "round" and values[1]:
            return told | dict(path="multiply, round and divide, one after another", flops=3 * told["flops"])
        return told if 0 in out.shape else told | dict(code=loop(name, *(values[:1] * 2 if name in ALONE else values)))
    if name in ("reduce", "accumulate", "sum_to"):
        op = "add" if name == "sum_to" else values[1]
        return dict(code=kept(f"loop_{op}_*{name_of(values[0].dtype)}"))
    return {}
