"""out[i] = fn(self[i], other[i]) over broadcast device arrays of any strides: a grid-stride kernel over a StridedPlan.

Kernels get an `out` of the broadcast shape, every check passed; self or other may be a Python scalar. Both are
converted to what is computed in, the result to out's. Where an input really overlaps out other than element for
element, the result goes through a temporary.
"""

from __future__ import annotations

import functools

import numpy as np

from .. import scalar
from ..dtypes import ALONE, HALVES, kind, known, resolve, settled
from ..strides import broadcast_strides, plan
from .launch import KERNELS, Kernel, elements, launch, multiprocessors, pointer
from .memory import clash, empty, same

THREADS = 256  # per block
BLOCKS = 8  # per multiprocessor: what its 2048 threads allow; more of them would be started one after the other
# Elements of a thread at a time, their loads all under way before the first is needed: with 1024 threads on each of an
# H200's 132 multiprocessors, 4 x 2 loads of 4 bytes are 4.3 MB in flight; 4.3 TB/s at 1 us of latency ask for as much.
EACH = 4


@functools.cache
def kernel(function, dtypes, compute, ndim: int, arrays: tuple[bool, bool], scaled=False, masked=False) -> Kernel:
    """out = function(self, other) for dtypes (out, self, other), computed in `compute` (self, other, result).

    `arrays`: whether self and other are arrays; scaled: the function takes alpha too; masked: only where a mask is.
    """
    arguments = function, dtypes, compute, ndim, arrays, scaled, masked, THREADS, EACH
    return Kernel(f"{KERNELS}.elementwise:make", arguments, THREADS)


def run(function, out, self, other, compute, alpha=None, where=None) -> None:
    """out = function(self, other), or function(self, other, alpha), computed in `compute`, where `where` is."""
    if out.size == 0:
        return
    inputs = [x for x in (self, other, where) if _is_array(x)]
    if any(not same(out, x, broadcast_strides(out.shape, x.shape, x.strides)) and clash(out, x) for x in inputs):
        temporary = empty(out.shape, out)
        run(function, temporary, self, other, compute, alpha, where)
        run(scalar.find("first", out.dtype), out, temporary, temporary, (out.dtype,) * 3, None, where)
        return
    arrays = [out, *inputs]
    loops = plan(*(tuple(tuple(getattr(x, name)) for x in arrays) for name in ("shape", "strides")),
                 tuple(x.dtype.itemsize for x in arrays))  # fmt: skip
    shape = loops.shape or (1,)
    walks = iter([(pointer(x, offset), elements(x, strides) or (0,)) for x, offset, strides
                  in zip(arrays, loops.offsets, loops.strides)])  # fmt: skip
    still = (0,) * len(shape)
    target = next(walks)
    x, y = (next(walks) if _is_array(x) else (_number(x, d), still) for x, d in zip((self, other), compute))
    mask = next(walks) if where is not None else (target[0], still)
    dtypes = tuple(x.dtype.name if _is_array(x) else d.name for x, d in zip((out, self, other), (None, *compute)))
    names, given = tuple(d.name for d in compute), (_is_array(self), _is_array(other))
    compiled = kernel(function, dtypes, names, len(shape), given, alpha is not None, where is not None)
    blocks = min(-(-loops.size // (THREADS * EACH)), multiprocessors() * BLOCKS)
    scale = (np.float32 if names[2] in HALVES else compute[2].type)(1 if alpha is None else alpha)
    launch(compiled, blocks, loops.size, shape, *target, *x, *y, *mask, scale, stream=out.stream)


def _number(value, dtype):
    """A Python number as a kernel takes it: rounded to its dtype, and a half then as a float32."""
    return np.float32(dtype.type(value)) if dtype.name in HALVES else dtype.type(value)


def binary(op: str, out, self, other, alpha=1, where=None, casting=None, dtype=None) -> None:
    """out = op(self, other), or op_scaled(self, other, alpha) for an alpha that is not 1, where `where` is not False.

    What the CPU warns of, or refuses after a look at the elements, goes unsaid here: x // 0 of integers is 0, and a
    negative power of theirs is its whole part, without a word.
    """
    for x in (out, self, other):
        if _is_array(x) and not known(x.dtype):
            raise TypeError(f"{op}: no CUDA loop for dtype {x.dtype!r}")
    values = settled(op, self, other), settled(op, other, self)
    compute = resolve(op, *map(kind, values), dtype, casting or "same_kind")
    if not np.can_cast(compute[2], out.dtype, casting or "same_kind"):
        raise TypeError(f"{op}: cannot cast the result from {compute[2]} to {out.dtype} under casting='same_kind'")
    if where is False:
        return
    name = op if alpha == 1 else f"{op}_scaled"
    function = scalar.find(name, *compute[:2])
    run(function, out, *values, compute, None if alpha == 1 else alpha, None if where is True else where)


def copy(out, x) -> None:
    """out = x."""
    run(scalar.find("first", out.dtype), out, x, x, (out.dtype,) * 3)


def fill(out, value) -> None:
    """out = value, a Python scalar."""
    run(scalar.find("first", out.dtype), out, value, value, (out.dtype,) * 3)


def _is_array(x) -> bool:
    return hasattr(x, "strides")


def __getattr__(name: str):
    """The kernel of an operation, by its name: made when it is first asked for."""
    if not scalar.exists(name):
        raise AttributeError(f"no element-wise operation is called {name}")
    way = _alone if name in ALONE else binary if scalar.exists(f"{name}_scaled") else _unscaled
    globals()[name] = made = functools.partial(way, name)
    return made


def _alone(op, out, self, where=None, casting=None, dtype=None) -> None:
    binary(op, out, self, self, 1, where, casting, dtype)


def _unscaled(op, out, self, other, where=None, casting=None, dtype=None) -> None:
    binary(op, out, self, other, 1, where, casting, dtype)
