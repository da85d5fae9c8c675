"""cp.async: copies of a thread from global to shared memory, in groups that it waits for."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .instructions import instruction
from .memory import Trap


@dataclass
class Copies:
    """What some lanes copy by one instruction: bytes for each, their places, and the group of each lane's own."""

    lanes: np.ndarray
    groups: np.ndarray
    places: np.ndarray
    cells: np.ndarray
    data: np.ndarray


class Groups:
    """Copies that are on their way, and each lane's count of groups that it has closed."""

    def __init__(self, threads):
        self.threads, self.closed, self.pending = threads, np.zeros(threads.count, np.int64), []

    def finish(self, lanes: np.ndarray, left: int) -> None:
        """Carry out the lanes' copies but those of their last `left` groups; of -1, those of the open one, too."""
        limit = np.full(self.threads.count, -1)
        limit[lanes] = self.closed[lanes] - left
        rest = []
        for copies in self.pending:
            now = copies.groups < limit[copies.lanes]
            if now.any():
                self.carry_out(copies, now)
            if not now.all():
                rest.append(Copies(*(part[~now] for part in vars(copies).values())))
        self.pending = rest

    def carry_out(self, copies: Copies, now: np.ndarray) -> None:
        shared = self.threads.shared
        lanes, cells = copies.lanes[now], copies.cells[now]
        np.subtract.at(shared.arriving, cells, 1)
        shared.bytes[copies.places[now][:, None] + np.arange(copies.data.shape[1])] = copies.data[now]
        shared.note_store(self.threads, lanes, cells)


def groups(threads) -> Groups:
    if "copies" not in threads.notes:
        threads.notes["copies"] = Groups(threads)
    return threads.notes["copies"]


@instruction("cp.async.ca", "cp.async.cg")
def copy(each, operands):
    """`[shared], [global], size (, bytes that are read; the others are zero)`"""
    to, source, size = operands.address(each.operands[0]), operands.address(each.operands[1]), int(each.operands[2])
    more = [token for token in each.operands[3:] if "cache" not in token]
    if "L2::cache_hint" in each.opcode:
        more = more[:-1]
    ignored = bool(more) and operands.program.registers.get(more[0].strip("!")) == "pred"
    given = operands.read(more[0], "pred" if ignored else "u32") if more else None
    if size not in ((16,) if ".cg" in each.opcode else (4, 8, 16)):
        raise ValueError(f"copies of {size} bytes")

    def run(threads, lanes):
        lanes = threads.index(lanes)
        places = threads.shared.places(threads, lanes, to(threads, lanes), size)
        read = np.full(len(lanes), size)
        if given is not None:
            values = threads.each(given(threads, lanes), lanes)
            read = np.where(values, 0, size) if ignored else values.astype(np.int64)
        if (read > size).any():
            raise Trap(f"a copy of {size} bytes is to read {int(read.max())}")
        cells = threads.shared.cells(places, size)
        threads.shared.before_store(threads, lanes, cells)
        data = fetched(threads.memory, source(threads, lanes), size, read)
        np.add.at(threads.shared.arriving, cells, 1)
        kept = groups(threads)
        kept.pending.append(Copies(lanes, kept.closed[lanes].copy(), places, cells, data))

    return run


def fetched(memory, addresses, size: int, read: np.ndarray) -> np.ndarray:
    """The first `read` bytes at each address, and zeros up to `size`. All are to be in an allocation, as
    compute-sanitizer counts a copy of which a part is read."""
    data = np.zeros((len(addresses), size), np.uint8)
    wrong = addresses % size != 0
    if (wrong & (read > 0)).any():
        raise Trap(f"misaligned global address of a copy of {size} bytes: {int(addresses[wrong.argmax()]):#x}")
    for count in np.unique(read[read > 0]):
        some = read == count
        memory.check(addresses[some], int(count), align=1)
        memory.check_allocated(addresses[some], size)
        data[some, :count] = memory.gather(addresses[some][:, None] + np.arange(count))
    return data


@instruction("cp.async.commit_group")
def commit(each, operands):
    def run(threads, lanes):
        groups(threads).closed[lanes] += 1

    return run


@instruction("cp.async.wait_group", "cp.async.wait_all")
def wait(each, operands):
    left = int(each.operands[0]) if each.operands else -1
    return lambda threads, lanes: groups(threads).finish(threads.index(lanes), left)
