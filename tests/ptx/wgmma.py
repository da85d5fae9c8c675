"""wgmma: products of four warps, asynchronous, from shared memory by descriptors; setmaxnreg."""

from __future__ import annotations

import re

import numpy as np

from .fragments import left, sums
from .inflight import flight
from .instructions import instruction
from .machine import WARP
from .matrix import elements, fragment, packed
from .memory import Trap
from .numerics import decoded, multiply_add
from .operands import TYPES
from .tensormap import swizzled

GROUP = 4 * WARP
SPANS = {0: 0, 1: 128, 2: 64, 3: 32}  # of bits 62 and 63
BYTES = {"f16": 2, "bf16": 2, "tf32": 4}


def warpgroups(threads, lanes) -> np.ndarray:
    """Lanes as rows of 128 that begin at a multiple of 128."""
    lanes = threads.index(lanes)
    numbers = threads.number[lanes]
    if len(lanes) % GROUP or (numbers.reshape(-1, GROUP) % GROUP != np.arange(GROUP)).any():
        raise Trap("divergence: an instruction of whole warpgroups, and warps are missing")
    return lanes.reshape(-1, GROUP)


def aligned(*names: str):
    """An instruction of whole warpgroups, which wait for all of their lanes: run(threads, lanes of one)."""

    def registered(make):
        @instruction(*names, control=True)
        def build(each, operands):
            inner = make(each, operands)

            def run(threads, lanes):
                lanes = threads.together(threads.index(lanes), each.place)
                if not len(lanes):
                    return
                threads.pc[lanes] = each.place + 1
                waiting = np.flatnonzero(threads.notes.setdefault(("group", each.place), np.zeros(threads.count, bool)))
                present = np.union1d(lanes, waiting)
                group = threads.slab[present] * (1 << 20) + threads.number[present] // GROUP
                names, counts = np.unique(group, return_counts=True)
                whole = np.isin(group, names[counts == GROUP])
                held = threads.notes["group", each.place]
                held[:] = False
                held[present[~whole]] = True
                threads.wait(present[~whole], each.place)
                ready = present[whole]
                threads.waiting[ready], threads.pc[ready] = False, each.place + 1
                if len(ready):
                    for of_group in warpgroups(threads, ready):
                        inner(threads, of_group)

            return run

        return make

    return registered


@aligned("wgmma.fence")
def fence(each, operands):
    def run(threads, lanes):
        for touched in flight(threads).touched.values():
            touched[lanes] = False

    return run


@aligned("wgmma.commit_group")
def commit(each, operands):
    def run(threads, lanes):
        flight(threads).closed[lanes] += 1

    return run


@aligned("wgmma.wait_group")
def wait(each, operands):
    left_over = int(each.operands[0])
    return lambda threads, lanes: flight(threads).finish(lanes, left_over)


def places(descriptor: int, lines: int, depth: int, size: int, across: bool) -> np.ndarray:
    """Byte offsets of [line, byte along k] of an operand of `lines` x `depth` bytes, K-major; or MN-major, then of
    [line, k, byte of an element]."""
    start, lead, stride = ((descriptor >> at & 0x3FFF) << 4 for at in (0, 16, 32))
    span = SPANS[descriptor >> 62 & 3]
    if descriptor >> 49 & 7:
        raise NotImplementedError("a descriptor with a base offset")
    line = np.arange(lines)[:, None]
    if not across:
        byte = np.arange(depth)[None, :]
        if span:
            if (start % span) + depth > span:
                raise Trap(f"{depth} bytes along k from byte {start % span} of a row of {span}")
            return swizzled(start + line // 8 * stride + line % 8 * span + byte, span)
        return start + line // 8 * stride + byte // 16 * lead + line % 8 * 16 + byte % 16
    if not span:
        raise NotImplementedError("an MN-major operand without swizzle")
    along, byte = line * size, np.arange(depth)[None, :]
    k, part = byte // size, byte % size
    return swizzled(start + along // span * lead + along % span + k // 8 * stride + k % 8 * span + part, span)


@aligned("wgmma.mma_async")
def product(each, operands):
    """D = A B + D, or A B: 64 x n sums of a warpgroup, k of 32 bytes."""
    shape = next(part for part in each.parts if re.fullmatch(r"m\d+n\d+k\d+", part))
    m, n, k = map(int, re.findall(r"\d+", shape))
    into, kind, kind_b = [part for part in each.parts[each.parts.index(shape) + 1 :] if part != "satfinite"]
    size, tokens = BYTES.get(kind, 1), operands.vector(each.operands[0])
    puts = [operands.write(token) for token in tokens]
    reads = [operands.read(token, "b32") for token in tokens]
    at = sums(len(tokens), 2 if into == "f16" else 1)
    in_registers = each.operands[1].startswith("{")
    read_a, count = fragment(operands, each.operands[1], kind) if in_registers else (None, 0)
    descriptor_a = None if in_registers else operands.read(each.operands[1], "u64")
    descriptor_b, adds = operands.read(each.operands[2], "u64"), operands.read(each.operands[3], "pred")
    if len(tokens) * GROUP * (2 if into == "f16" else 1) != m * n or k * size != 32:
        raise ValueError(f"{len(tokens)} registers for {shape}")
    signs, turns = flags(each.operands[4:], kind, in_registers)
    accumulators = tokens + (operands.vector(each.operands[1]) if in_registers else [])
    operands.program.accumulators.update(accumulators)

    def operand(threads, lanes, value, lines, across, kind):
        descriptor = int(value[0])
        if (value != descriptor).any():
            raise Trap("lanes of one warpgroup give different descriptors")
        offsets = places(descriptor, lines, 32, size, across)
        if offsets.max() >= threads.shared.size:
            raise Trap(f"an operand of wgmma reaches byte {int(offsets.max())} of a block's {threads.shared.size}")
        at_bytes = offsets + int(threads.slab[lanes[0]]) * threads.shared.pitch
        cells = np.unique(at_bytes // threads.shared.cell)
        for warp in range(4):
            threads.shared.before_read(threads, lanes[warp * WARP : warp * WARP + 1], cells[None], asynchronous=True)
        raw = threads.shared.bytes[at_bytes]
        words = np.ascontiguousarray(raw).view(np.uint32).reshape(lines, 8)
        return decoded(words, kind).reshape(lines, k), cells

    def run(threads, lanes):
        flight(threads).untouched(accumulators, lanes)
        b, cells = operand(threads, lanes, threads.each(descriptor_b(threads, lanes), lanes), n, turns[1], kind_b)
        if in_registers:
            values = decoded(read_a(threads, lanes), kind)
            row, along = left(count, 4 // size)
            a = np.zeros((4, 16, k), values.dtype)
            a[:, row, along] = values.transpose(1, 0, 2, 3)
            a = a.reshape(64, k)
        else:
            a, more = operand(threads, lanes, threads.each(descriptor_a(threads, lanes), lanes), 64, turns[0], kind)
            cells = np.union1d(cells, more)
        c = np.zeros((4, 16, n), TYPES["f32" if into == "f16" else into])
        add = threads.each(adds(threads, lanes), lanes)
        if add.any():
            words = np.stack([threads.each(x(threads, lanes), lanes).reshape(4, WARP) for x in reads])
            c[:, at[0], at[1]] = elements(words, into).transpose(1, 0, 2, 3)
        d = multiply_add(c.reshape(64, n), signs[0] * a, signs[1] * b.T, kind, "satfinite" in each.parts)
        values = packed(d.reshape(4, 16, n)[:, at[0], at[1]], into)
        for i, put in enumerate(puts):
            put(threads, lanes, values[:, i].ravel())
        flight(threads).begin(lanes, cells, accumulators)

    return run


def flags(tokens, kind: str, in_registers: bool):
    """((sign of A, sign of B), (whether A, B are MN-major)) of the numbers at an instruction's end."""
    numbers = [int(token) for token in tokens]
    signs = tuple(numbers[:2]) if len(numbers) >= 2 and kind not in ("s8", "u8") else (1, 1)
    turns = numbers[2:]
    if in_registers:
        turns = [0, *turns]
    return signs, (bool(turns[0]) if turns else False, bool(turns[1]) if len(turns) > 1 else False)


@aligned("setmaxnreg")
def registers(each, operands):
    count = int(each.operands[0])
    if count % 8 or not 24 <= count <= 256:
        raise ValueError(f"{count} registers")
    return lambda threads, lanes: None
