"""One step of k by a thread: it loads its part of a column of A and a row of B from shared memory, and multiplies.

Chains and operands are local arrays of words, which become registers because every index is a constant. The operands of
a few steps have places in turn, so that the next steps' are loaded while this one's are multiplied.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from dataclasses import dataclass

from llvmlite import ir
from numba import types

from ...jit.ir.kind import BYTES, Kind
from . import ptx
from .config import DEPTHS, PIECE, GemmConfig
from .layout import Part, Slice, part
from .ptx import ARRAY, primitive


@dataclass(frozen=True)
class Atom:
    """A tier's step. Of a thread: words of chains, in `groups` that the epilogue takes one after the other; words of A
    and of B for a step. A slice takes `steps`, each of `depth` steps of k, and operands are loaded `ahead` steps early.

    load(builder, step, a, b)          words of A and words of B, of a slice whose numbers of this thread lie at a and b
    multiply(builder, chains, x, y)    the chains after a step
    """

    kind: Kind
    chains: int
    groups: int
    a: int
    b: int
    depth: int
    steps: int
    ahead: int
    load: Callable
    multiply: Callable
    guarded: bool = False  # beyond the last step of k slices hold zeros, which change no sum

    @property
    def held(self) -> int:
        """Words of operands that are on their way or in use."""
        return (self.ahead + 1) * (self.a + self.b)


def joined(lists) -> list:
    return [*itertools.chain.from_iterable(lists)]


def pieces(count: int, lanes: int, width: int) -> list[tuple[int, int]]:
    """(first line, lines) of each load of a thread of tier S: up to `width` lines side by side, of `count` in all.

    >>> pieces(8, 8, 4), pieces(2, 4, 4)
    ([(0, 4), (32, 4)], [(0, 2)])
    """
    wide = min(count, width)
    return [(i * lanes * wide, wide) for i in range(count // wide)]


@functools.cache
def simt(config: GemmConfig, kind: Kind, a: Slice, b: Slice) -> Atom:
    """Chains of fused multiply-adds, tm x tn elements of a thread, walked column by column, to and fro: a step finds
    one of its operands in the register file's cache, and the other in the bank that is free."""
    mine, planes, size = part(config, kind.chain), kind.planes, BYTES[kind.chain]
    tm, tn, width = mine.tm, mine.tn, PIECE // size
    sides = (a, pieces(tm, mine.lm, width)), (b, pieces(tn, mine.ln, width))

    def load(builder, step, *addresses):
        found = []
        for (slice_, each), address in zip(sides, addresses):
            places = ((first + step * slice_.step) * size for first, _ in each)
            words = [
                ptx.load_shared(builder, kind.word, wide * planes, address, at) for (_, wide), at in zip(each, places)
            ]
            found.append(joined(words))
        return found

    def multiply(builder, chains, x, y):
        chains = list(chains)
        for j in range(tn):
            for i in range(tm) if j % 2 == 0 else reversed(range(tm)):
                at = (i * tn + j) * planes
                if planes == 1:
                    chains[at] = ptx.fma(builder, x[i], y[j], chains[at])
                else:
                    numbers = (*x[2 * i : 2 * i + 2], *y[2 * j : 2 * j + 2], *chains[at : at + 2])
                    chains[at : at + 2] = complexes(builder, kind, *numbers)
        return chains

    # A step of 16 multiply-adds takes 16 cycles of a scheduler, and a load from shared memory 30.
    ahead = 3 if config.each * planes <= 16 and config.bk % 4 == 0 else 1
    return Atom(kind, tm * tn * planes, tm, tm * planes, tn * planes, 1, config.bk, ahead, load, multiply)


def complexes(builder, kind: Kind, ar, ai, br, bi, re, im):
    """re += ar*br, re -= ai*bi; im += ar*bi, im += ai*br, in mat1's and mat2's order also where they changed places."""
    ai = ptx.negative(builder, ai) if "a" in kind.conj else ai
    bi = ptx.negative(builder, bi) if "b" in kind.conj else bi
    re = ptx.fma(builder, ptx.negative(builder, ai), bi, ptx.fma(builder, ar, br, re))
    if kind.turned:
        return re, ptx.fma(builder, ar, bi, ptx.fma(builder, ai, br, im))
    return re, ptx.fma(builder, ai, br, ptx.fma(builder, ar, bi, im))


@functools.cache
def double(config: GemmConfig, kind: Kind, a: Slice, b: Slice) -> Atom:
    """mma.sync.m16n8k4 in float64, whose bits are an increasing chain of fused multiply-adds. Lane 4g + t has k = t of
    rows g and g + 8 of A and of column g of B, and of C columns 2t and 2t + 1 of rows g and g + 8. Tier D8 has the
    upper and the lower rows in turn, by m8n8k4."""
    rows = 8 if config.tier == "D8" else 16
    mine: Part = part(config, kind.chain)
    down, across = mine.tm // 2, mine.tn // 2

    def load(builder, step, *addresses):
        counts, found = (2 * down, across), []
        for slice_, count, address in zip((a, b), counts, addresses):
            places = [(8 * i * slice_.line + 4 * step * slice_.step) * 8 for i in range(count)]
            found.append(joined(ptx.load_shared(builder, "float64", 1, address, at) for at in places))
        return found

    def multiply(builder, chains, x, y):
        chains = list(chains)
        for i in range(down):
            for j in range(across) if i % 2 == 0 else reversed(range(across)):
                for half in range(16 // rows):
                    at, count = (i * across + j) * 4 + 2 * half, rows // 4
                    x_, c = x[2 * i + half : 2 * i + half + rows // 8], chains[at : at + count]
                    chains[at : at + count] = ptx.mma(builder, f"m{rows}n8k4", "f64.f64.f64.f64", "dd", x_, [y[j]], c)
        return chains

    return Atom(kind, mine.tm * mine.tn, down, 2 * down, across, 4, config.bk // 4, 1, load, multiply)


@functools.cache
def mixed(config: GemmConfig, kind: Kind, a: Slice, b: Slice) -> Atom:
    """mma.sync of halves, bytes or tfloat32, 32 bytes of k at a time; sums stand as those of `double`. 16 lines of A or
    of B are four registers of a lane: lines 0 to 7 and 8 to 15 of the first 16 bytes, then of the second."""
    mine, size, float_ = part(config, kind.chain), BYTES[kind.a], kind.chain == "float32"
    down, across, depth = mine.tm // 2, mine.tn // 2, DEPTHS[kind.a]
    shape, sums = f"m16n8k{depth}", "f32" if float_ else "s32"
    kinds, letters = f"{sums}.{NAMES[kind.a]}.{NAMES[kind.b]}.{sums}", ("f" if float_ else "r", "r")

    def fragment(builder, slice_, address, line, p):
        at = (line * slice_.line + p * slice_.step) * size
        if slice_.step == 1 or size == 2:
            words = ptx.load_matrices(builder, address, at, slice_.step != 1)
        else:
            places = [at + (i * slice_.line + q * slice_.step) * size for q in (0, 4) for i in (0, 8)]
            words = joined(ptx.load_shared(builder, "int32", 1, address, place) for place in places)
        words = [ptx.tfloat32(builder, word) for word in words] if kind.a == "float32" else words
        return [builder.bitcast(word, ptx.REALS["float32"]) for word in words] if float_ else words

    def load(builder, step, *addresses):
        sides = zip((a, b), (down, across // 2), addresses)
        return [
            joined(fragment(builder, slice_, address, 16 * i, step * depth) for i in range(count))
            for slice_, count, address in sides
        ]

    def multiply(builder, chains, x, y):
        chains = list(chains)
        x, y = ([builder.bitcast(word, ptx.I32) for word in each] for each in (x, y))
        for i in range(down):
            for j in range(across) if i % 2 == 0 else reversed(range(across)):
                at, first = (i * across + j) * 4, j // 2 * 4 + j % 2
                ours = x[4 * i : 4 * i + 4], [y[first], y[first + 2]]
                chains[at : at + 4] = ptx.mma(builder, shape, kinds, letters, *ours, chains[at : at + 4])
        return chains

    words = 4 * down, 2 * across
    return Atom(kind, mine.tm * mine.tn, down, *words, depth, config.bk // depth, 1, load, multiply, True)


NAMES = {"bfloat16": "bf16", "float16": "f16", "float32": "tf32", "int8": "s8", "uint8": "u8"}
ATOMS = {"S": simt, "D": double, "D8": double, "M": mixed}


def atom(config: GemmConfig, kind: Kind, a: Slice, b: Slice) -> Atom:
    return ATOMS[config.tier](config, kind, a, b)


def read(builder, array, first: int, count: int) -> list:
    return [builder.load(ptx.element(builder, array, first + i)) for i in range(count)]


def write(builder, array, values, first: int = 0) -> None:
    for i, value in enumerate(values):
        builder.store(value, ptx.element(builder, array, first + i))


def sequence(atom: Atom, order: list[tuple[str, int]]):
    """run(chains, held, a, b): loads and steps in order, of the slice whose numbers of this thread lie at a and b."""

    @primitive(types.none, ARRAY, ARRAY, types.uint32, types.uint32)
    def run(builder, chains, held, a, b):
        values, each = read(builder, chains, 0, atom.chains), atom.a + atom.b
        for what, step in order:
            at = step % (atom.ahead + 1) * each
            if what == "load":
                write(builder, held, joined(atom.load(builder, step, a, b)), at)
            else:
                x, y = read(builder, held, at, atom.a), read(builder, held, at + atom.a, atom.b)
                values = atom.multiply(builder, values, x, y)
        write(builder, chains, values)

    return run


def remainder(atom: Atom):
    """run(chains, held, a, b, left): a step of which `left` steps of k, counted from this lane's, are inside. Others
    add 0 * -0, the one product that changes no sum."""

    @primitive(types.none, ARRAY, ARRAY, types.uint32, types.uint32, types.int32)
    def run(builder, chains, held, a, b, left):
        x, y = atom.load(builder, 0, a, b)
        if atom.depth > 1 and not atom.guarded:
            inside = builder.icmp_signed(">", left, ir.Constant(ptx.I32, 0))
            x, y = ([builder.select(inside, value, ir.Constant(value.type, pad)) for value in each]
                    for each, pad in ((x, 0.0), (y, -0.0)))  # fmt: skip
        write(builder, chains, atom.multiply(builder, read(builder, chains, 0, atom.chains), x, y))

    return run


def chains(atom: Atom, threads: int):
    """clear(chains), shift(chains), and put(chains, address), get(...) and add(...): to
    memory, from there, and what is there + chains. A group moves up to the first one's place instead of being indexed.
    In memory a thread's pieces lie PIECE bytes apart from its neighbours', for `threads` of them."""
    group, word = atom.chains // atom.groups, atom.kind.word
    wide = PIECE // ptx.BYTES[word]

    def moved(change):
        def move(builder, array, address):
            for i in range(0, atom.chains, wide):
                change(builder, array, i, min(wide, atom.chains - i), address, i // wide * threads * PIECE)

        return primitive(types.none, ARRAY, types.int64)(move)

    def put(builder, array, i, count, address, offset):
        ptx.store_global(builder, word, address, offset, read(builder, array, i, count))

    def get(builder, array, i, count, address, offset):
        write(builder, array, ptx.load_global(builder, word, count, address, offset), i)

    def add(builder, array, i, count, address, offset):
        sums = zip(ptx.load_global(builder, word, count, address, offset), read(builder, array, i, count))
        write(builder, array, [ptx.add(builder, total, chain) for total, chain in sums], i)

    @primitive(types.none, ARRAY)
    def clear(builder, array):
        write(builder, array, [ir.Constant(ptx.LLVM[ptx.LETTER[word]], 0)] * atom.chains)

    @primitive(types.none, ARRAY)
    def shift(builder, array):
        write(builder, array, read(builder, array, group, atom.chains - group))

    return clear, shift, moved(put), moved(get), moved(add)
