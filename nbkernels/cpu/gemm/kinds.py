"""The kind of a product by its dtypes, and the tiles for it."""

from __future__ import annotations

import functools
from dataclasses import replace

from ...dtypes import HALVES
from ...jit.disk import levels
from ...jit.ir import amx
from ...jit.ir.chain import crossed, ways
from ...jit.ir.kind import BYTES, SIGNLESS, UNIT, Kind
from ...jit.ir.vector import SIZE, width_bits
from ...modes import asked
from . import matrix_unit
from .blocking import Tiles, caches, default, sized, vector_registers
from .paths import PARALLEL
from .tuned import tuned

MODES = {"bf16_dot": "bf16", "amx": UNIT}
NEEDED = {"bf16_dot": "AVX512_BF16", "amx": "AMX, of float16 AMX-FP16, and a system that lets programs use it"}
# LLVM's name of a processor without a matrix unit -> the mode in which bfloat16 is fastest; elsewhere it is "chain".
FASTEST = {"znver4": "bf16_dot", "znver5": "bf16_dot"}
SHALLOW = 16  # steps of k up to which mode "amx" is that of chains, never tuned; of tiles of 32 most would be zeros
WIDENED = {"float16": "float32", "bfloat16": "float32", "int8": "int32", "uint8": "int32"}  # by out_dtype


def kind_of(a: str, b: str, out: str, conj: str | None = None, mode: str | None = None) -> Kind:
    """The kind for operands and a result of these dtypes, by NumPy's names.

    >>> print(kind_of("float32", "float32", "float32"))
    float32
    >>> kind_of("float16", "float16", "float32").chain, kind_of("uint64", "uint64", "uint64").chain
    ('float32', 'int64')
    """
    return _kind_of(a, b, out, conj or "", mode or default_mode(a))


def default_mode(dtype: str) -> str | None:
    """The mode of halves where a call names none: what is asked for, else what this processor is fastest by."""
    return asked(dtype) or _fastest(dtype) if dtype in HALVES else None


def takes(dtype: str, mode: str) -> bool:
    """Whether products of a dtype have a mode on this processor."""
    return has(mode, dtype) if mode in MODES else mode == "chain" and dtype in HALVES


@functools.cache
def _fastest(dtype: str) -> str:
    name = "amx" if has("amx", dtype) else FASTEST.get(levels.target()[1], "chain")
    return name if has(name, dtype) else "chain"


@functools.cache
def _kind_of(a, b, out, conj, mode) -> Kind:
    if mode == "tf32":
        raise ValueError("mode 'tf32' needs a GPU of compute capability 8.0 or newer; leave mode out on the CPU")
    if mode in MODES:
        if not has(mode, a):
            raise ValueError(f"mode {mode!r} needs a processor with {NEEDED[mode]}; leave mode out")
        return Kind(a, b, "float32", out, MODES[mode])
    if a in HALVES:
        return Kind(a, b, "float32", out)
    if a.startswith(("float", "complex")):
        return Kind(a, b, a, out, conj=conj)
    a, b, out = (SIGNLESS.get(name, name) for name in (a, b, out))
    if a in ("int32", "int64"):
        return Kind(a, b, a, out, "mul")
    way = next(way for way in ("bytes", "pairs", "mul") if way in (*ways(), "mul") and (way, a) != ("bytes", "int16"))
    if out in ("int8", "uint8"):  # modulo 256 signs do not matter: those of the instruction need no offset
        a, b, out = "uint8", "int8", "int8"
    return Kind(a, b, "int32", out, way)


def has(mode: str, dtype: str = "bfloat16") -> bool:
    """Tell whether this processor has the instruction of a mode for halves of a dtype, if it is one of processors."""
    own = amx.available(dtype) if MODES.get(mode) == UNIT else dtype == "bfloat16" and MODES.get(mode) in ways()
    return mode not in MODES or (dtype in HALVES and own)


def of_depth(kind: Kind, k: int) -> Kind:
    """The kind of products over k steps: in mode "amx" those of few are chains."""
    few = k <= SHALLOW and kind.way == UNIT and kind.chain == "float32"
    return kind_of(kind.a, kind.b, kind.out, mode="chain") if few else kind


def kind_of_panels(name: str, k: int) -> Kind:
    """The kind for which a matrix of a dtype is packed; products that read it may have another result."""
    kind = of_depth(kind_of(name, name, "int32" if name in ("int8", "uint8") else name), k)
    return _of_unit(kind)


def by_unit(kind: Kind, m: int, n: int, k: int) -> Kind:
    """The kind by which an m x n product over k steps of one kind is computed: bytes go by the matrix unit, if there is
    one, where packing its panels does not take longest. Their sums are the same in any order."""
    return _of_unit(kind) if m * n * k > PARALLEL else kind


@functools.cache
def _of_unit(kind: Kind) -> Kind:
    bytes_alone = BYTES[kind.a] == BYTES[kind.b] == 1 and kind.chain == "int32"
    return replace(kind, way=UNIT) if bytes_alone and amx.available("int8") else kind


@functools.cache
def in_place(kind: Kind) -> bool:
    """Whether a matrix that meets one column, or one row, is read as it lies, where it can be (gemv/other_dtypes.py):
    of products of one dtype. Floats have other paths."""
    return kind.a == kind.b == kind.chain == kind.out and kind.chain not in SIZE and not crossed(kind)


@functools.cache
def default_tiles(kind: Kind) -> Tiles:
    """Derived ones: those of float32 or float64, whose words are as large; kc counts elements."""
    if kind.way == UNIT:
        return matrix_unit.tiles(kind.items, caches()[1])
    # An element takes two accumulators: 2x2, 4x1, 3x1 vectors are level, 3x2 spills.
    if crossed(kind):
        mr, vectors = (5, 2) if vector_registers() == 32 else (2, 2)
        return sized(mr, vectors * width_bits() // 64, 8, *caches())
    if kind.planes == 1:
        tiles = default("float64" if BYTES[kind.word] == 8 else "float32")
        if kind.way == "mul":  # a product needs a register until it is added: 8x3 spills (67 Gop/s for 77, 2026-11)
            mr = tiles.mr - 1
            tiles = replace(tiles, mr=mr, mc=tiles.mc // mr * mr)
        return replace(tiles, kc=tiles.kc * kind.group)
    # An element takes two accumulators, a vector of B and one of A two registers: 30 of 32, 16 of 16. There 6x1 have 12
    # chains for two dependent steps of 4 cycles, 2x2 have 8 (Zen 3, n = 600, of NumPy's speed: .96 and .88).
    mr, vectors = (6, 2) if vector_registers() == 32 else (6, 1)
    size = BYTES[kind.word]
    return sized(mr, vectors * width_bits() // (8 * size), 2 * size, *caches())


def tiles_of(kind: Kind, which: int) -> Tiles:
    """The tuner's for a slot (tuned.py), or the derived ones."""
    return tuned(kind, which) or default_tiles(kind)
