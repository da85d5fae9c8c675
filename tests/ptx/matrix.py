"""ldmatrix, stmatrix and mma.sync: instructions of whole warps."""

from __future__ import annotations

import re

import numpy as np

from .fragments import COLUMN, LANES, ROW, left, right, sums
from .instructions import instruction
from .machine import WARP
from .memory import Trap
from .numerics import decoded, multiply_add
from .operands import RAW, TYPES


def by_warp(threads, lanes) -> np.ndarray:
    """Lanes as rows of 32, a warp each."""
    lanes = threads.index(lanes)
    if len(lanes) % WARP or (threads.laneid[lanes].reshape(-1, WARP) != LANES).any():
        raise Trap("divergence: an instruction of whole warps, and lanes are missing")
    return lanes.reshape(-1, WARP)


@instruction("ldmatrix", "stmatrix", warps=True)
def matrices(each, operands):
    """8x8 matrices of 16-bit elements: lane 8*i + r gives the address of row r of matrix i, and each lane has two
    neighbours of a row, or of a column."""
    parts, loads = each.parts, each.parts[0] == "ldmatrix"
    if "m8n8" not in parts:
        raise NotImplementedError(each.opcode)
    count = int(next(part for part in parts if re.fullmatch(r"x\d", part))[1])
    token, listed = (each.operands[1], each.operands[0]) if loads else each.operands[:2]
    address, transposed, tokens = operands.address(token), "trans" in parts, operands.vector(listed)
    if len(tokens) != count:
        raise ValueError(f"{len(tokens)} registers for {count} matrices")
    row, column = (ROW[:, None] + 0 * np.arange(2), 2 * COLUMN[:, None] + np.arange(2))
    if transposed:
        row, column = column, row
    puts = [operands.write(x) for x in tokens] if loads else [operands.read(x, "b32") for x in tokens]

    def run(threads, lanes):
        warps, shared = by_warp(threads, lanes), threads.shared
        starts = address(threads, lanes).reshape(-1, WARP)[:, : 8 * count]
        givers = warps[:, : 8 * count].ravel()
        places = shared.places(threads, givers, starts.ravel(), 16)
        cells = shared.cells(places, 16)
        at = places.reshape(-1, count, 8)[:, :, row] // 2 + column  # warp, matrix, lane, element
        if loads:
            shared.read(threads, givers, cells)
            words = np.ascontiguousarray(shared.views[2][at]).view(np.uint32)[..., 0]
            for i, put in enumerate(puts):
                put(threads, warps.ravel(), words[:, i].ravel())
            return
        shared.write(threads, givers, cells)
        values = np.stack([threads.each(x(threads, lanes), lanes).reshape(-1, WARP) for x in puts], 1)
        shared.views[2][at] = np.ascontiguousarray(values)[..., None].view(np.uint16)

    return run


def fragment(operands, token: str, kind: str):
    """(threads, lanes) -> words as [register, warp, lane]"""
    tokens = operands.vector(token)
    reads = [operands.read(x, "b64" if kind == "f64" else "b32") for x in tokens]

    def read(threads, lanes):
        return np.stack([threads.each(x(threads, lanes), lanes).reshape(-1, WARP) for x in reads])

    return read, len(tokens)


def placed(words: np.ndarray, kind: str, shape, where) -> np.ndarray:
    """A tile for each warp, from [register, warp, lane] words and the places of their elements."""
    values = decoded(words, kind)  # register, warp, lane, element
    tile = np.zeros((words.shape[1], *shape), values.dtype)
    tile[:, where[0], where[1]] = values.transpose(1, 0, 2, 3)
    return tile


@instruction("mma.sync", "mma", warps=True)
def mma(each, operands):
    """D = C + A B of a warp: A is m x k by rows, B is k x n by columns."""
    shape = next(part for part in each.parts if re.fullmatch(r"m\d+n\d+k\d+", part))
    m, n, k = map(int, re.findall(r"\d+", shape))
    if n != 8 or "row" not in each.parts or "col" not in each.parts:
        raise NotImplementedError(each.opcode)
    into, kind_a, kind_b, from_ = each.parts[-4:]
    size = {"f64": 64, "tf32": 32, "f16": 16, "bf16": 16}.get(kind_a, 8)
    along = 64 // size if kind_a == "f64" else 32 // size
    read_a, count_a = fragment(operands, each.operands[1], kind_a)
    read_b, count_b = fragment(operands, each.operands[2], kind_b)
    if count_a * WARP * along != m * k or count_b * WARP * along != n * k:
        raise ValueError(f"{count_a} and {count_b} registers do not hold {shape}")
    at_a, at_b = left(count_a, along, m), right(count_b, along)
    puts = [operands.write(token) for token in operands.vector(each.operands[0])]
    reads = [operands.read(token, RAW_OF[from_]) for token in operands.vector(each.operands[3])]
    at_c, at_d = (sums(len(some), m * n // (WARP * len(some))) for some in (reads, puts))

    def run(threads, lanes):
        warps = by_warp(threads, lanes)
        a = placed(read_a(threads, lanes), kind_a, (m, k), at_a)
        b = placed(read_b(threads, lanes), kind_b, (k, n), at_b)
        words = np.stack([threads.each(x(threads, lanes), lanes).reshape(-1, WARP) for x in reads])
        c = np.zeros((len(warps), m, n), TYPES["f32" if from_ == "f16" else from_])
        c[:, at_c[0], at_c[1]] = elements(words, from_).transpose(1, 0, 2, 3)
        d = multiply_add(c, a, b, kind_a, "satfinite" in each.parts)
        values = packed(d[:, at_d[0], at_d[1]], into)  # warp, register, lane
        for i, put in enumerate(puts):
            put(threads, warps.ravel(), values[:, i].ravel())

    return run


RAW_OF = {"f64": "b64", "f32": "b32", "s32": "b32", "f16": "b32"}


def elements(words: np.ndarray, kind: str) -> np.ndarray:
    """C's elements along a last axis, in the type of their sums; those of f16 are two in a word."""
    if kind == "f16":
        return np.ascontiguousarray(words)[..., None].view(np.float16).astype(np.float32)
    return words.view(TYPES[kind])[..., None]


def packed(d: np.ndarray, kind: str) -> np.ndarray:
    """D's words, of the elements along a last axis."""
    if kind == "f16":
        return np.ascontiguousarray(d.astype(np.float16)).view(np.uint32)[..., 0]
    return np.ascontiguousarray(d[..., 0]).view(RAW[TYPES[kind].itemsize])
