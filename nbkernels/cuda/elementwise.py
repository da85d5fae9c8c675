"""out[k] = fn(*inputs)[k] over broadcast device arrays of any strides, all of a function's outputs in one pass.

Kernels get outs of the broadcast shape, every check passed; an input may be a Python number, a parameter of the
kernel. Each input is converted to what is computed in, each result to its out's dtype. Where an input really overlaps
an out other than element for element, it is copied first.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np

from .. import scalar
from ..dispatch.driver import simulated
from ..dtypes import ALONE, HALVES, kind, known, resolve, settled
from ..jit.ir.kind import BYTES, SIGNLESS
from ..rounding import rounded
from ..strides import broadcast_strides, plan
from .launch import KERNELS, Kernel, elements, launch, pointer
from .memory import clash, empty, part, same

THREADS = 128  # per block
WIDEST = 16  # bytes that a thread moves by one instruction at most
# Pieces of a thread whose loads are under way at a time, of vectors and of single elements. One vector for each thread
# of a full multiprocessor is enough: add of float16 takes 211 us at 45 registers a thread, 185 at the 32 that let 16
# blocks work at a time, and 224 by two vectors (H200, 2026-11); float32 takes 185 by each.
VECTORS, SINGLES, BLOCKS = 1, 4, 16
TURNED = 2  # inputs whose tiles are brought to shared memory: two take at most 34 of its 48 KiB


@functools.cache
def kernel(function, dtype, outs, inputs, mask, ndim: int, width: int, wide: bool) -> Kernel:
    """The loop over operands that are (dtype in memory, dtype as computed, way), as kernels/elementwise.py has them."""
    arguments = function, dtype, outs, inputs, mask, ndim, width, VECTORS if width > 1 else SINGLES, THREADS, wide
    halves = width > 1 and any(name in HALVES for name, *_ in outs)
    return Kernel(f"{KERNELS}.elementwise:make", arguments, THREADS, BLOCKS if halves else 1)


@functools.cache
def tiled(function, dtype, outs, inputs, mask, ndim: int, width: int) -> Kernel:
    """The kernel that computes by tiles, where an input's neighbours lie along another loop (kernels/transposed.py)."""
    arguments = function, dtype, outs, inputs, mask, ndim, width, tile_side(inputs), THREADS
    return Kernel(f"{KERNELS}.transposed:make", arguments, THREADS)


def tile_side(inputs) -> int:
    """Side of a tile: 64 elements of up to 4 bytes, and 32 of larger ones, so that two inputs fit in shared memory."""
    return 32 if any(BYTES[SIGNLESS.get(name, name)] > 4 for name, _, way in inputs if "turned" in way) else 64


@dataclass(frozen=True)
class Walk:
    """Loops over arrays, as kernels walk them: `width` neighbours at a time along the innermost one.

    `ways` are the arrays', "vector", "same", "strided", or "turned W" of an input that touches along the loop before,
    where W elements are a vector; strides are in elements, offsets in bytes.
    """

    shape: tuple[int, ...]
    strides: tuple[tuple[int, ...], ...]
    offsets: tuple[int, ...]
    width: int
    ways: tuple[str, ...]

    @property
    def pieces(self) -> int:
        """Of how many pieces all are."""
        *outer, inner = self.shape
        return int(np.prod(outer, dtype=int)) * -(-inner // self.width)

    @property
    def divisors(self):
        """What divides by the number of pieces along each loop, as kernels/elementwise.py has it."""
        counts = [*self.shape[:-1], -(-self.shape[-1] // self.width)]
        return tuple(divisor(n, self.pieces >= 1 << 31) for n in counts)


def divisor(n: int, wide: bool) -> tuple[int, int]:
    """(multiplier, shift): x // n == x * multiplier >> shift for all x below 2**31; of `wide` ones n itself."""
    bits = (n - 1).bit_length()
    return (n, 0) if wide else (-(-(1 << 31 + bits) // n), 31 + bits)


@functools.lru_cache(maxsize=4096)
def walk(shapes, strides, itemsizes, places) -> Walk:
    """The walk over arrays, the first of which has the broadcast shape. `places` are addresses modulo WIDEST.

    >>> walk(((4, 6), (6,)), ((24, 4), (4,)), (4, 4), (0, 0)).ways
    ('strided', 'strided')
    >>> walk(((4, 8), (8,), (4, 1)), ((32, 4), (4,), (4, 4)), (4, 4, 4), (0, 0, 0))
    Walk(shape=(4, 8), strides=((8, 1), (0, 1), (1, 0)), offsets=(0, 0, 0), width=4, ways=('vector', 'vector', 'same'))
    """
    loops = plan(shapes, strides, itemsizes)
    shape, steps = loops.shape or (1,), [each or (0,) for each in loops.strides]
    touch = [each[-1] == size for each, size in zip(steps, itemsizes)]
    turned = [touch[0] and len(shape) > 1 and each[-2] == size != each[-1] != 0 for each, size in zip(steps, itemsizes)]

    def aligned(p, width, along):
        """Whether vectors begin at multiples of their size, along a loop."""
        others = [step for d, step in enumerate(steps[p]) if d != along % len(shape)]
        return all(at % (width * itemsizes[p]) == 0 for at in (places[p] + loops.offsets[p], *others))

    width = max(1, WIDEST // max(itemsizes))
    if shape[-1] < width or not touch[0] or (loops.kind == "transposed" and not any(turned)):
        width = 1
    if not all(aligned(p, width, -1) for p, one in enumerate(touch) if one):
        width = 1  # neighbours that touch, but do not begin where a whole vector may
    ways = []
    for p, (each, size) in enumerate(zip(steps, itemsizes)):
        wide = max(1, WIDEST // size)
        turned[p] = turned[p] and sum(way.startswith("turned") for way in ways) < TURNED
        ways.append("same" if each[-1] == 0 else "vector" if touch[p] and width > 1 else "strided" if not turned[p]
                    else f"turned {wide if aligned(p, wide, -2) else 1}")  # fmt: skip
    steps = tuple(tuple(s // size for s in each) for each, size in zip(steps, itemsizes))
    return Walk(shape, steps, loops.offsets, width, tuple(ways))


def apply(function, dtype, outs, inputs, computes, results, where=None) -> None:
    """outs[k] = function(*inputs)[k], where `where` is not False.

    The function is compiled for `dtype`; inputs, arrays and numbers, become `computes`, and what it returns `results`.
    Outs do not share memory with one another.
    """
    if outs[0].size == 0:
        return
    arrays = [x for x in (*inputs, where) if is_array(x)]
    copied = {id(x): apart(outs, x) for x in arrays}
    inputs, where = [copied.get(id(x), x) for x in inputs], copied.get(id(where), where)
    arrays = [*outs, *(x for x in (*inputs, where) if is_array(x))]
    for x in arrays:
        elements(x, x.strides)  # raises where they are no multiples of its size
    at = tuple(int(pointer(x)) % WIDEST for x in arrays) if not simulated() else (0,) * len(arrays)
    found = walk(*(tuple(tuple(getattr(x, name)) for x in arrays) for name in ("shape", "strides")),
                 tuple(x.dtype.itemsize for x in arrays), at)  # fmt: skip
    ways, _names = iter(found.ways), [x.dtype.name for x in arrays]
    made = [(x.dtype.name, result, next(ways)) for x, result in zip(outs, results)]
    read = [(x.dtype.name, c, next(ways)) if is_array(x) else (c, c, "number") for x, c in zip(inputs, computes)]
    mask = None if where is None else next(ways)
    numbers = tuple(number(x, np.dtype(c)) for x, c in zip(inputs, computes) if not is_array(x))
    operands = tuple(map(pointer, arrays, found.offsets)), found.strides, numbers
    loop, stream = (function, dtype, tuple(made), tuple(read), mask, len(found.shape), found.width), outs[0].stream
    if any(way.startswith("turned") for way in found.ways):
        side, (*outer, rows, columns) = tile_side(read), found.shape
        tiles = -(-rows // side), -(-columns // side)
        grid = tiles[0] * tiles[1] * int(np.prod(outer, dtype=int))
        launch(tiled(*loop), grid, tiles, rows, columns, found.shape, *operands, stream=stream)
        return
    wide = found.pieces >= 1 << 31
    compiled = kernel(*loop, wide)
    grid = -(-found.pieces // (THREADS * compiled.arguments[7]))
    pieces = found.pieces if wide else np.uint32(found.pieces)
    launch(compiled, grid, pieces, found.shape[-1], found.shape, found.divisors, *operands, stream=stream)


def apart(outs, x):
    """x, or a copy where an out really overlaps it other than element for element."""
    for out in outs:
        if not same(out, x, broadcast_strides(out.shape, x.shape, x.strides)) and clash(out, x):
            other = empty(x.shape, outs[0], x.dtype)
            copy(other, x)
            return other
    return x


def run(function, out, self, other, compute, alpha=None, where=None) -> None:
    """out = function(self, other), or function(self, other, alpha), computed in `compute`, where `where` is."""
    inputs, names = [self, other], [d.name for d in compute]
    computes = names[:2]
    if alpha is not None:
        inputs, computes = [*inputs, alpha], [*computes, "float32" if names[2] in HALVES else names[2]]
    dtype = "float32" if names[0] in HALVES else names[0]
    apply(function, dtype, [out], inputs, computes, names[2:], where)


def number(value, dtype):
    """A number as a kernel takes it: rounded to its dtype, and a half then as a float32."""
    return np.float32(dtype.type(value)) if dtype.name in HALVES else dtype.type(value)


def binary(op: str, out, self, other, alpha=1, where=None, casting=None, dtype=None) -> None:
    """out = op(self, other), or op_scaled(self, other, alpha) for an alpha that is not 1, where `where` is not False.

    What the CPU warns of, or refuses after a look at the elements, goes unsaid here: x // 0 of integers is 0, and a
    negative power of theirs is its whole part, without a word.
    """
    for x in (out, self, other):
        if is_array(x) and not known(x.dtype):
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


def is_array(x) -> bool:
    return hasattr(x, "address")


def __getattr__(name: str):
    """The kernel of an operation, by its name: made when it is first asked for."""
    if not scalar.exists(name):
        raise AttributeError(f"no element-wise operation is called {name}")
    way = _alone if name in ALONE else binary if scalar.exists(f"{name}_scaled") else _unscaled
    globals()[name] = made = functools.partial(way, name)
    return made


def _alone(op, out, self, where=None, casting=None, dtype=None) -> None:
    binary(op, out, self, self, 1, where, casting, dtype)


def round(out, self, decimals=0, where=None, casting=None, dtype=None) -> None:
    def run(op, *operands, **keywords):
        (_alone if op in ALONE else _unscaled)(op, *operands, **keywords)

    rounded(run, lambda shape, dtype: empty(shape, out, dtype), part, out, self, decimals, where, casting, dtype)


def _unscaled(op, out, self, other, where=None, casting=None, dtype=None) -> None:
    binary(op, out, self, other, 1, where, casting, dtype)
