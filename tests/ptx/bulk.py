"""Bulk copies: tiles of tensors by their maps (TMA) and runs of bytes, between global and shared memory.

A load's bytes are announced to an mbarrier; a store is waited for in groups of its thread. Loads arrive at once, and
what has not been waited for is told by the order of things (shared.py).
"""

from __future__ import annotations

import re

import numpy as np

from . import barriers
from .instructions import instruction
from .memory import Trap
from .operands import RANK
from .tensormap import TensorMap

COORDINATES = re.compile(r"\[\s*(\S+?)\s*,\s*\{(.*?)\}\s*\]", re.DOTALL)


def tensor(token: str, operands):
    """(threads, lanes) -> [(map, coordinates) of each lane], of `[map, {coordinates}]`"""
    name, listed = COORDINATES.fullmatch(token).groups()
    address, coordinates = operands.read(name, "u64"), [operands.read(x.strip(), "s32") for x in listed.split(",")]

    def read(threads, lanes):
        starts = np.stack([threads.each(x(threads, lanes), lanes) for x in coordinates], 1)
        for at, start in zip(threads.each(address(threads, lanes), lanes), starts):
            found = threads.launch.tensor_map(int(at))
            if len(start) != len(found.dims):
                raise Trap(f"{len(start)} coordinates for a tensor of {len(found.dims)} dimensions")
            yield found, start

    return read


def targets(threads, lane: int, address: int, mask: int | None) -> list[int]:
    """The address in each block of a cluster that a multicast names, or the address itself."""
    if mask is None:
        return [address]
    if mask >> threads.cluster_size:
        raise Trap(f"a multicast to blocks {mask:#x} of a cluster of {threads.cluster_size}")
    return [address & ((1 << RANK) - 1) | rank << RANK for rank in range(threads.cluster_size) if mask >> rank & 1]


def arrive(threads, lanes, address: int, places: np.ndarray, data: np.ndarray, barrier_at: int) -> None:
    """Bytes of one lane's copy, with their mbarrier in the same block; `places` are offsets in that block."""
    shared = threads.shared
    found = barrier_of(threads, lanes, barrier_at)
    base = int(shared.places(threads, lanes, np.array([address >> RANK << RANK]), 1)[0])
    if places.max() >= shared.size:
        raise Trap(f"a copy to byte {int(places.max())} of a block's {shared.size}")
    cells = np.unique((base + places) // shared.cell)[None]
    shared.before_store(threads, lanes, cells)
    shared.bytes[base + places] = data
    epoch = found.next_epoch()
    shared.note_store(threads, lanes, cells, (found.agent, epoch))
    found.complete(data.size, epoch)


def barrier_of(threads, lanes, address: int) -> barriers.Barrier:
    shared = threads.shared
    place = shared.places(threads, lanes, np.array([address]), barriers.SIZE)
    cells = shared.cells(place, barriers.SIZE)
    shared.touch(threads, lanes, cells)
    if shared.unfenced[cells].any():
        raise Trap("a bulk copy uses an mbarrier without a fence after its initialisation")
    return barriers.at(threads, place[0])


@instruction("cp.async.bulk.tensor", *(f"cp.async.bulk.{to}" for to in
             ("shared", "shared::cluster", "shared::cta", "global")))  # fmt: skip
def copy(each, operands):
    names = [part for part in each.parts if part.split("::")[0] in ("shared", "global") and "complete_tx" not in part]
    to, source = (name.split("::")[0] for name in names[:2])
    if to == "global":
        return put_out(each, operands)
    if source == "shared":
        return between(each, operands)
    return taken_in(each, operands)


def taken_in(each, operands):
    """`[shared], [map, {coordinates}], [mbarrier] (, blocks)` or `[shared], [global], bytes, [mbarrier] (, blocks)`"""
    tokens, tiled = list(each.operands), "tensor" in each.parts
    address = operands.address(tokens[0])
    source = tensor(tokens[1], operands) if tiled else operands.address(tokens[1])
    count = None if tiled else operands.read(tokens[2], "u32")
    rest = tokens[2:] if tiled else tokens[3:]
    barrier = operands.address(rest[0])
    mask = operands.read(rest[1], "u16") if "multicast::cluster" in each.opcode else None

    def run(threads, lanes):
        lanes = threads.index(lanes)
        to, at = address(threads, lanes), barrier(threads, lanes)
        masks = [None] * len(lanes) if mask is None else threads.each(mask(threads, lanes), lanes).tolist()
        given = source(threads, lanes)
        counts = [None] * len(lanes) if tiled else threads.each(count(threads, lanes), lanes).tolist()
        for i, (start, size) in enumerate(zip(given, counts)):
            one = lanes[i : i + 1]
            data, places = box(threads, *start, int(to[i])) if tiled else run_of(threads, int(start), int(to[i]), size)
            pairs = zip(*(targets(threads, one[0], int(x[i]), masks[i]) for x in (to, at)))
            for place, its_barrier in pairs:
                arrive(threads, one, place, places, data, its_barrier)

    return run


def box(threads, found: TensorMap, start, to: int):
    """(bytes of a box, zero outside the tensor, their offsets in shared memory)"""
    offset, wanted = to & ((1 << RANK) - 1), max(128, 8 * found.swizzle)
    if offset % wanted:
        raise Trap(f"a tile of swizzle {found.swizzle} at byte {offset} of shared memory, no multiple of {wanted}")
    addresses, inside = found.tile(start)
    if inside.any():
        threads.memory.check(addresses[inside], 1)
    data = np.where(inside, threads.memory.gather(np.where(inside, addresses, found.address)), 0)
    return data.astype(np.uint8), found.places(offset)


def run_of(threads, source: int, to: int, size: int):
    """(bytes of a run, their offsets in shared memory)"""
    offset = to & ((1 << RANK) - 1)
    if size % 16 or offset % 16 or source % 16:
        raise Trap(f"a bulk copy of {size} bytes from {source:#x} to byte {offset}: not multiples of 16")
    addresses = source + np.arange(size)
    threads.memory.check(addresses, 1)
    return threads.memory.gather(addresses), offset + np.arange(size)


def between(each, operands):
    """`[shared of a block], [own shared], bytes, [mbarrier of that block]`"""
    to, source, barrier = (operands.address(each.operands[i]) for i in (0, 1, 3))
    count = operands.read(each.operands[2], "u32")

    def run(threads, lanes):
        lanes = threads.index(lanes)
        sizes = threads.each(count(threads, lanes), lanes)
        for i, (target, start, at) in enumerate(
            zip(to(threads, lanes), source(threads, lanes), barrier(threads, lanes))
        ):
            one, size = lanes[i : i + 1], int(sizes[i])
            places = threads.shared.places(threads, one, np.array([start]), size, 16)
            cells = threads.shared.cells(places, size)
            threads.shared.before_read(threads, one, cells, asynchronous=True)
            threads.shared.note_read(threads, one, cells)
            data = threads.shared.bytes[places[0] : places[0] + size].copy()
            offset = int(target) & ((1 << RANK) - 1)
            arrive(threads, one, int(target), offset + np.arange(size), data, int(at))

    return run


# --- stores, in groups ------------------------------------------------------------------------------------------------


class Stores:
    """Cells that lanes' bulk stores may still read, in groups as their threads close them."""

    def __init__(self, threads):
        self.threads, self.closed, self.pending = threads, np.zeros(threads.count, np.int64), []

    def begin(self, lane: int, cells: np.ndarray) -> None:
        self.threads.shared.leaving[cells] += 1
        self.pending.append((lane, self.closed[lane], cells))

    def finish(self, lanes, left: int) -> None:
        shared, rest = self.threads.shared, []
        for lane, group, cells in self.pending:
            if lane in lanes and group < self.closed[lane] - left:
                shared.leaving[cells] -= 1
                shared.note_read(self.threads, np.array([lane]), cells[None])
            else:
                rest.append((lane, group, cells))
        self.pending = rest

    def ended(self, lanes) -> None:
        """Threads have ended: nothing may still read the shared memory that goes with them."""
        if left := [lane for lane, _, _ in self.pending if lane in lanes]:
            raise Trap(f"thread {self.threads.number[left[0]]} ends while its bulk store may still read shared memory")


def stores(threads) -> Stores:
    if "stores" not in threads.notes:
        threads.notes["stores"] = Stores(threads)
        threads.at_end.append(threads.notes["stores"].ended)
    return threads.notes["stores"]


def put_out(each, operands):
    """`[map, {coordinates}], [shared]` or `[global], [shared], bytes`"""
    tiled = "tensor" in each.parts
    target = tensor(each.operands[0], operands) if tiled else operands.address(each.operands[0])
    source = operands.address(each.operands[1])
    count = None if tiled else operands.read(each.operands[2], "u32")

    def run(threads, lanes):
        lanes = threads.index(lanes)
        counts = [0] * len(lanes) if tiled else threads.each(count(threads, lanes), lanes).tolist()
        given = zip(lanes, target(threads, lanes), source(threads, lanes), counts)
        for lane, to, at, size in list(given):
            store(threads, lane, to, int(at), size)

    return run


def store(threads, lane: int, to, at: int, size: int) -> None:
    shared, one, offset = threads.shared, np.array([lane]), at & ((1 << RANK) - 1)
    if isinstance(to, tuple):
        found, start = to
        if offset % max(128, 8 * found.swizzle):
            raise Trap(f"a tile of swizzle {found.swizzle} at byte {offset} of shared memory")
        (addresses, inside), places = found.tile(start), found.places(offset)
    else:
        if size % 16 or offset % 16 or to % 16:
            raise Trap(f"a bulk store of {size} bytes from byte {offset} to {int(to):#x}: not multiples of 16")
        addresses, places, inside = to + np.arange(size), offset + np.arange(size), np.ones(size, bool)
    if places.max() >= shared.size:
        raise Trap(f"a bulk store of byte {int(places.max())} of a block's {shared.size}")
    places = places + int(threads.slab[lane]) * shared.pitch
    cells = np.unique(places // shared.cell)
    shared.before_read(threads, one, cells[None], asynchronous=True)
    if inside.any():
        threads.memory.check(addresses[inside], 1, write=True)
        threads.memory.scatter(addresses[inside], shared.bytes[places[inside]])
    stores(threads).begin(lane, cells)


@instruction("cp.async.bulk.commit_group")
def commit(each, operands):
    def run(threads, lanes):
        stores(threads).closed[lanes] += 1

    return run


@instruction("cp.async.bulk.wait_group")
def wait(each, operands):
    left = int(each.operands[0])
    return lambda threads, lanes: stores(threads).finish(set(threads.index(lanes).tolist()), left)


@instruction("prefetch.tensormap", "cp.async.bulk.prefetch")
def prefetch(each, operands):
    return lambda threads, lanes: None


@instruction("createpolicy")
def policy(each, operands):
    put = operands.write(each.operands[0])
    return lambda threads, lanes: put(threads, lanes, np.zeros(1, np.uint64))
