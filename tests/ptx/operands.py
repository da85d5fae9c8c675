"""Operands as functions of a running block's threads: read(threads, lanes) and write(threads, lanes, values).

`lanes` are places in the arrays of all threads that run together: a slice when it is all of them, else indices. A value
is an array with one element for each lane, or with one for all of them.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable

import numpy as np

from .parse import SIZES, Program

TYPES = {
    **{f"{kind}{bits}": np.dtype(f"u{bits // 8}") for kind in "bu" for bits in (8, 16, 32, 64)},
    **{f"s{bits}": np.dtype(f"i{bits // 8}") for bits in (8, 16, 32, 64)},
    "f16": np.dtype("f2"), "f32": np.dtype("f4"), "f64": np.dtype("f8"), "pred": np.dtype(bool),
    **{name: np.dtype("u4") for name in ("f16x2", "bf16x2", "tf32", "e4m3x4", "e5m2x4")},
    **{name: np.dtype("u2") for name in ("bf16", "e4m3x2", "e5m2x2")},
}  # fmt: skip
RAW = {dtype.itemsize: TYPES[f"b{8 * dtype.itemsize}"] for dtype in map(np.dtype, ("u1", "u2", "u4", "u8"))}
# Generic addresses of what is not global memory; an address that cvta makes is moved by its window's start.
SHARED, LOCAL, PARAM, END = 1 << 48, 1 << 49, 1 << 50, 1 << 51
RANK = 24  # an address of shared memory is the block's rank in its cluster above these bits, and an offset
ADDRESS = re.compile(r"\[\s*(.+?)\s*(?:([+-])\s*(-?\w+)\s*)?\]", re.DOTALL)
WORDS = re.compile(
    r"%(?:(?:tid|ntid|ctaid|nctaid|cluster_ctaid|cluster_nctaid|clusterid|nclusterid)\.[xyz]"
    r"|laneid|warpid|nwarpid|cluster_ctarank|cluster_nctarank|dynamic_smem_size|clock|clock64|smid)"
)


class Operands:
    """Names of a program with their places: registers by number, variables by address."""

    def __init__(self, program: Program):
        self.program = program
        self.registers = {name: i for i, name in enumerate(program.registers)}
        self.dtypes = [
            np.dtype(bool) if kind == "pred" else RAW[SIZES[kind]] if SIZES[kind] <= 8 else None
            for kind in program.registers.values()
        ]
        self.addresses, self.sizes, self.constants = {}, {"shared": 0, "local": 0}, []
        outside = []  # of static size 0: dynamic shared memory, behind all the others
        for name, variable in program.variables.items():
            space = "local" if variable.space == "param" else variable.space
            if space in ("global", "const"):
                self.constant(name, variable)
            elif space == "shared" and variable.size == 0:
                outside.append(name)
            else:
                self.place(name, space, variable.size, variable.align)
        for name in outside:
            self.place(name, "shared", 0, program.variables[name].align)
        self.parameters, place = {}, 0
        for name, size in program.parameters.items():
            place = -(-place // min(size, 64)) * min(size, 64)
            self.parameters[name], place = place, place + size

    def place(self, name: str, space: str, size: int, align: int) -> None:
        start = -(-self.sizes[space] // align) * align
        self.addresses[name], self.sizes[space] = start, start + size

    def constant(self, name: str, variable) -> None:
        """A module's own global or constant memory: 256 bytes on, as the driver aligns it."""
        buffer = np.zeros(variable.size + 256, np.uint8)
        buffer = buffer[-buffer.ctypes.data % 256 :][: variable.size]
        buffer[:] = np.frombuffer(variable.data or bytes(variable.size), np.uint8)
        buffer.flags.writeable = variable.space == "global"
        self.addresses[name] = buffer.ctypes.data
        self.constants.append(buffer)

    def read(self, token: str, kind: str) -> Callable:
        """The operand's values in the NumPy type of PTX's `kind`."""
        dtype = TYPES[kind]
        if token.startswith("!"):
            inner = self.read(token[1:], kind)
            return lambda threads, lanes: ~inner(threads, lanes)
        if token in self.registers:
            return self.register(self.registers[token], dtype)
        if WORDS.fullmatch(token):
            return lambda threads, lanes: threads.special(token)[lanes].astype(dtype)
        if token in self.program.variables and self.program.variables[token].space == "shared":
            offset = self.addresses[token]
            return lambda threads, lanes: (offset + (threads.rank[lanes] << RANK)).astype(dtype)
        if match := re.fullmatch(r"([\w$%']+)\s*\+\s*(\d+)", token):
            inner, moved = self.read(match[1], kind), int(match[2])
            return lambda threads, lanes: inner(threads, lanes) + dtype.type(moved)
        value = np.array([self.number(token, dtype)]).view(dtype)
        return lambda threads, lanes: value

    def register(self, place: int, dtype: np.dtype) -> Callable:
        kept = self.dtypes[place]
        if kept == dtype:
            return lambda threads, lanes: threads.registers[place][lanes]
        if kept.itemsize == dtype.itemsize and "b" not in (kept.kind, dtype.kind):
            return lambda threads, lanes: threads.registers[place][lanes].view(dtype)
        narrow = RAW[dtype.itemsize]
        if "b" in (kept.kind, dtype.kind) or dtype.itemsize > kept.itemsize:
            raise ValueError(f"a register of {kept} does not hold a {dtype}")
        return lambda threads, lanes: threads.registers[place][lanes].astype(narrow).view(dtype)

    def number(self, token: str, dtype: np.dtype):
        """A literal, or an address that is the same for all threads, as bits of the type's size."""
        if dtype.kind == "b":
            return np.bool_(int(token, 0))
        raw = RAW[dtype.itemsize]
        if token in self.addresses:
            return raw.type(self.addresses[token])
        if token in self.parameters:
            return raw.type(PARAM + self.parameters[token])
        if match := re.fullmatch(r"0[fFdD]([0-9a-fA-F]+)", token):
            size = len(match[1]) // 2
            real = struct.unpack(">f" if size == 4 else ">d", bytes.fromhex(match[1]))[0]
            # Of the type's own size the bits are taken as they are, a NaN's too.
            bits = int(match[1], 16) if size == dtype.itemsize else None
            return raw.type(bits) if bits is not None else np.array([real]).astype(dtype).view(raw)[0]
        if dtype.kind == "f":
            return np.array([float(token)], dtype).view(raw)[0]
        return raw.type(int(token.rstrip("U"), 0) % (1 << 8 * dtype.itemsize))

    def write(self, token: str) -> Callable:
        """Writes into a register, extended to its size by sign or by zero as the values' type has it."""
        if token == "_":
            return lambda threads, lanes, values: None
        if token not in self.registers:
            raise ValueError(f"{token!r} is no register")
        place = self.registers[token]
        kept = self.dtypes[place]

        def put(threads, lanes, values):
            if values.dtype != kept:
                if values.dtype.itemsize == kept.itemsize:
                    values = values.view(kept)
                elif values.dtype.itemsize < kept.itemsize:
                    same = values if values.dtype.kind in "iu" else values.view(RAW[values.dtype.itemsize])
                    values = same.astype(kept)
                else:
                    raise ValueError(f"{values.dtype} does not fit into {token}")
            threads.registers[place][lanes] = values

        return put

    def vector(self, token: str) -> list[str]:
        """Tokens of `{a, b}`, or the one token."""
        return [each.strip() for each in token.strip("{}").split(",")] if token.startswith("{") else [token]

    def address(self, token: str) -> Callable:
        """Addresses that `[register + offset]` or `[name + offset]` stand for, as int64."""
        base, sign, moved = ADDRESS.fullmatch(token).groups()
        moved = int(f"{sign}{moved}".replace("--", "").replace("+-", "-"), 0) if sign else 0
        if base in self.registers:
            size = self.dtypes[self.registers[base]].itemsize
            inner = self.read(base, f"u{8 * size}")
        else:
            inner = self.read(base, "u64")
        return lambda threads, lanes: threads.each(inner(threads, lanes), lanes).astype(np.int64) + moved
