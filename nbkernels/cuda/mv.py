"""mv, addmv, dot and vdot on a CUDA device, in the CPU's order.

A sum of mv has 8 chains of float32 and float64 for each segment of 4096 steps, and the one chain of a product in other
dtypes; a sum of dot has 64, and one of halves that become float32. From compute capability 8.0 on warps bring rows of
floats to shared memory ahead (rings.py). Other rows, and the segments of dot, are taken by groups of threads
(kernels/mv.py); the sums of segments are added in order, while others are computed.
"""

from __future__ import annotations

import functools

import numpy as np

from ..jit.ir.kind import BYTES, SIZE, Kind
from ..strides import broadcast_strides
from .call import settled
from .elementwise import copy, fill
from .gemm import factor
from .kinds import kind_of
from .launch import KERNELS, Kernel, capability, elements, launch, pointer, stored
from .memory import empty
from .rings import Staged, staged
from .tiles import PIECE, SEGMENT, WARP

CHAINS, DOT_CHAINS = 8, 64
ROWWISE, COLUMNWISE = 64, 256  # threads of a block: small ones, so that few rows fill many multiprocessors
HELD = 32  # elements of each operand that a thread has under way: more take registers that other blocks need
# Of dot: threads of a block, a warp for each segment, and bytes of each vector that a thread has under way. The fewer
# segments are at work, the fewer sums are left to add when the last of them ends.
DOTWISE, UNDER_WAY = 128, 128
# Bytes of segments' sums that one block adds: 2,048 of float32, 5 us of additions. 134 M float16 have 16 such groups
# and take 125 us at 4.3 TB/s, so that their additions keep up with the loads.
GROUP = 8192


@functools.cache
def kernel(kind: Kind, chains: int, width: int, across: bool) -> Kernel:
    """y = beta * x + alpha * A @ v by rows; `width` neighbouring elements of A and v are moved together; across:
    neighbouring threads take neighbouring rows."""
    threads, ahead = COLUMNWISE if across else ROWWISE, min(8, max(2, HELD // max(width, chains // WARP)))
    return Kernel(f"{KERNELS}.mv:make", (kind, chains, width, across, threads, ahead), threads)


@functools.cache
def stager(form: Staged) -> Kernel:
    """y = beta * x + alpha * A @ v by rows, or columns, that warps bring to shared memory (kernels/rings.py)."""
    return Kernel(f"{KERNELS}.rings:make", (form,), WARP * form.warps, 1, form.shared)


@functools.cache
def segments(kind: Kind, chains: int, width: int, group: int) -> Kernel:
    """out = the sum of products of two vectors, whose sums of segments are added by groups."""
    each = max(width, chains // WARP) if chains > 1 else width
    ahead = min(32, max(2, UNDER_WAY // (each * BYTES[kind.a])))
    return Kernel(f"{KERNELS}.mv:dot", (kind, chains, width, DOTWISE, ahead, group), DOTWISE)


def lanes(chains: int, width: int) -> int:
    """Threads that take a row or a segment together."""
    return chains // max(width, chains // WARP) if chains > 1 else 1


def together(kind: Kind, most: int, *operands) -> int:
    """How many neighbouring elements are moved by one instruction: all that `most` bytes hold, where the operands, each
    (array, distance of its pieces, stride), begin at such pieces."""
    width = most // BYTES[kind.a] if BYTES[kind.a] == BYTES[kind.b] else 1
    bytes_ = width * BYTES[kind.a]
    fits = all(step == 1 and row % width == 0 and x.address % bytes_ == 0 for x, row, step in operands)
    return width if fits else 1


def rows(kind: Kind, chains: int, sizes, out, addend, left, right, beta, alpha, stream) -> None:
    """Launch the kernel of mv: sizes are (rows, steps), left and right (array, strides of rows, steps)."""
    count, k = sizes
    width = together(kind, PIECE, left, right)
    across = width == 1 and abs(left[1]) < abs(left[2])
    made = kernel(kind, chains, width, across)
    at = [(pointer(x, 0, stored(name)), *steps) for name, (x, *steps) in zip((kind.a, kind.b), (left, right))]
    blocks = -(-count // (made.threads // lanes(chains, width)))
    launch(made, blocks, (count, k, int(addend is not None)), out, addend or out, *at, factor(beta, kind),
           factor(alpha, kind), stream=stream)  # fmt: skip


def by_stages(form: Staged, sizes, out, addend, left, vec, beta, alpha, stream) -> None:
    """Launch the kernel of rings; a vector that is not contiguous, or not aligned to 16 bytes, is copied first."""
    kind, (count, k) = form.kind, sizes
    if elements(vec, vec.strides) != (1,) or vec.address % PIECE:
        vec = copied(vec, vec.dtype)
    mat, *steps = left
    launch(stager(form), -(-count // form.slice.lines), (count, k, int(addend is not None)), out, addend or out,
           (pointer(mat, 0, stored(kind.a)), *steps), pointer(vec, 0, stored(kind.b)), factor(beta, kind),
           factor(alpha, kind), stream=stream)  # fmt: skip


def addmv(out, self, mat, vec, beta, alpha, out_dtype=None, mode=None, conj=None) -> None:
    """out = beta * self + alpha * (mat @ vec)."""
    kind, (m, k) = kind_of(*(each.dtype.name for each in (mat, vec, out)), conj or "", mode), mat.shape
    if m == 0:
        return
    chains = CHAINS if kind == Kind.plain(kind.chain) and kind.chain in SIZE else 1
    left, right = (mat, *elements(mat, mat.strides)), (vec, 0, *elements(vec, vec.strides))
    with settled(out, self, (mat, vec), beta, alpha, k) as (target, x, alpha, k):
        written = pointer(target, 0, stored(kind.out)), *elements(target, target.strides)
        addend = None
        if x is not None:
            steps = elements(x, broadcast_strides((m,), x.shape, x.strides))
            addend = pointer(x, 0, stored(kind.out)), *steps
        form = staged(kind, chains, k, mat.address, *left[1:]) if capability() >= (8, 0) else None
        if form:
            by_stages(form, (m, k), written, addend, left, vec, beta, alpha, out.stream)
        else:
            rows(kind, chains, (m, k), written, addend, left, right, beta, alpha, out.stream)


def mv(out, self, vec, out_dtype=None, mode=None, conj=None) -> None:
    """out = self @ vec."""
    addmv(out, None, self, vec, 0, 1, out_dtype, mode, conj)


def dot(out, self, tensor, out_dtype=None, mode=None, conj=None) -> None:
    """out = the sum over i of self[i] * tensor[i]; vectors of two dtypes are converted to out's before."""
    if out_dtype is None and self.dtype != tensor.dtype:
        self, tensor = (x if x.dtype == out.dtype else copied(x, out.dtype) for x in (self, tensor))
    kind = kind_of(*(x.dtype.name for x in (self, tensor, out)), conj or "", mode)
    (k,), chains = self.shape, 1 if kind.way == "fma" and out.dtype != self.dtype else DOT_CHAINS
    left, right = ((x, 0, *elements(x, x.strides)) for x in (self, tensor))
    target = pointer(out, 0, stored(kind.out))
    if k <= SEGMENT:
        rows(kind, chains, (1, k), (target, 1), None, left, right, 0, 1, out.stream)
        return
    group, count = GROUP // BYTES[kind.chain], -(-k // SEGMENT)
    width = together(kind, PIECE if chains == 1 else min(PIECE, 2 * BYTES[kind.a]), left, right)
    sums = empty((count + count // group,), out, np.dtype(kind.chain))  # of segments, and totals of whole groups
    arrived = empty((-(-count // group),), out, np.dtype("int32"))
    fill(arrived, 0)
    at = [(pointer(x, 0, stored(name)), step) for name, (x, _, step) in zip((kind.a, kind.b), (left, right))]
    launch(segments(kind, chains, width, group), -(-count // (DOTWISE // lanes(chains, width))), k, target,
           pointer(sums), pointer(arrived), *at, stream=out.stream)  # fmt: skip


def copied(x, dtype):
    """A contiguous copy of x in a dtype."""
    made = empty(x.shape, x, dtype)
    copy(made, x)
    return made


def vdot(out, self, other, out_dtype=None, mode=None) -> None:
    """out = the sum over i of conj(self[i]) * other[i]."""
    dot(out, self, other, out_dtype, mode, "a" if self.dtype.kind == "c" else None)
