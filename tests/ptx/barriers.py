"""mbarriers: phases that end when as many threads as expected have arrived and all announced bytes have come."""

from __future__ import annotations

import numpy as np

from .copies import groups
from .instructions import instruction
from .memory import Trap
from .order import COPIES

SIZE = 8


class Barrier:
    """One mbarrier. Its copies are stores of an agent of its own, which a wait for another one does not cover."""

    def __init__(self, threads, cluster: int, count: int, agent: int):
        self.threads, self.cluster, self.count, self.agent = threads, cluster, count, agent
        self.phase, self.pending, self.bytes, self.copied = 0, count, 0, 0
        self.known = np.zeros(threads.order.known.shape[2], np.int32)
        self.open = self.known.copy()
        self.waiting = []

    def arrive(self, lanes: np.ndarray, count: int) -> None:
        """`count` arrivals in all, by these lanes, whose deeds become known to those who wait."""
        if count > self.pending:
            raise Trap(f"{count} arrivals at an mbarrier that expects {self.pending} more in this phase")
        released = self.threads.order.release(self.cluster, self.threads.agent[lanes])
        self.open = np.maximum(self.open, released)
        self.pending -= count
        self.turn()

    def expect(self, count: int) -> None:
        self.bytes += count

    def complete(self, count: int, epoch: int | None = None) -> None:
        """So many bytes have come, by a copy of an epoch."""
        self.bytes -= count
        if epoch is not None:
            self.open[self.agent] = max(self.open[self.agent], epoch)
        self.turn()

    def next_epoch(self) -> int:
        self.copied += 1
        return self.copied

    def turn(self) -> None:
        """The next phase, when nothing is missing in this one."""
        if self.pending == 0 and self.bytes == 0:
            self.phase, self.pending, self.known = self.phase + 1, self.count, self.open.copy()
            for lanes in self.waiting:
                self.threads.wake(lanes)
            self.waiting = []


def at(threads, place: int) -> Barrier:
    found = threads.notes.setdefault("mbarriers", {}).get(int(place))
    if found is None:
        raise Trap(f"no mbarrier was initialised at byte {int(place) % threads.shared.pitch}")
    return found


def each_barrier(threads, lanes, addresses):
    """(barrier, which of the lanes mean it), after a look whether they may know that it is initialised."""
    places = threads.shared.places(threads, lanes, addresses, SIZE)
    threads.shared.touch(threads, lanes, threads.shared.cells(places, SIZE))
    for place in np.unique(places):
        yield at(threads, place), places == place


@instruction("mbarrier.init")
def init(each, operands):
    address, count = operands.address(each.operands[0]), operands.read(each.operands[1], "u32")

    def run(threads, lanes):
        lanes = threads.index(lanes)
        places = threads.shared.places(threads, lanes, address(threads, lanes), SIZE)
        threads.shared.write(threads, lanes, threads.shared.cells(places, SIZE))
        kept = threads.notes.setdefault("mbarriers", {})
        for lane, place, number in zip(lanes, places, threads.each(count(threads, lanes), lanes)):
            cluster = threads.cluster[lane]
            before = kept.get(int(place))
            used = {barrier.agent for barrier in kept.values() if barrier.cluster == cluster}
            free = set(range(threads.order.readers, threads.order.readers + COPIES)) - used
            if before is None and not free:
                raise Trap(f"more than {COPIES} mbarriers in a cluster")
            kept[int(place)] = Barrier(threads, cluster, int(number), before.agent if before else min(free))
            if before:  # epochs go on, so that old copies stay old
                kept[int(place)].copied = before.copied

    return run


@instruction("mbarrier.inval")
def inval(each, operands):
    address = operands.address(each.operands[0])

    def run(threads, lanes):
        places = threads.shared.places(threads, lanes, address(threads, lanes), SIZE)
        threads.shared.write(threads, lanes, threads.shared.cells(places, SIZE))

    return run


@instruction("mbarrier.arrive", "mbarrier.arrive_drop", "mbarrier.expect_tx", "cp.async.mbarrier.arrive")
def arrive(each, operands):
    """`(state,) [barrier] (, bytes or count)`; of cp.async, after all copies that its thread began before."""
    tokens, parts = list(each.operands), each.parts
    put = operands.write(tokens.pop(0)) if not tokens[0].startswith("[") else None
    address, value = operands.address(tokens[0]), operands.read(tokens[1], "u32") if len(tokens) > 1 else None
    expects, only = "expect_tx" in parts, parts[1] == "expect_tx"

    def run(threads, lanes):
        lanes = threads.index(lanes)
        if parts[0] == "cp":
            groups(threads).finish(lanes, -1)
        given = np.ones(len(lanes), np.int64) if value is None else threads.each(value(threads, lanes), lanes)
        for barrier, some in each_barrier(threads, lanes, address(threads, lanes)):
            if put:
                put(threads, lanes[some], np.full(some.sum(), barrier.phase, np.uint64))
            if expects:
                barrier.expect(int(given[some].sum()))
            if "arrive_drop" in parts:
                barrier.count -= int(some.sum())
            if parts[0] == "cp" and "noinc" not in parts:
                barrier.pending += int(some.sum())
            if not only:
                barrier.arrive(lanes[some], int(some.sum() if expects else given[some].sum()))

    return run


@instruction("mbarrier.try_wait", "mbarrier.test_wait", control=True)
def wait(each, operands):
    """Whether the phase of this parity, or the one that a state was taken in, has ended; try_wait waits for that."""
    put, address, parity = (
        operands.write(each.operands[0]),
        operands.address(each.operands[1]),
        "parity" in each.parts,
    )
    value = operands.read(each.operands[2], "u32" if parity else "u64")
    blocks = each.parts[1] == "try_wait"

    def run(threads, lanes):
        lanes = threads.index(lanes)
        given = threads.each(value(threads, lanes), lanes)
        for barrier, some in each_barrier(threads, lanes, address(threads, lanes)):
            ended = (barrier.phase & 1 != given[some] & 1) if parity else (given[some] != barrier.phase)
            over, late = lanes[some][ended], lanes[some][~ended]
            if len(over):
                threads.order.acquire(barrier.cluster, threads.agent[over], barrier.known)
                put(threads, over, np.ones(len(over), bool))
            if len(late) and blocks:
                threads.wait(late, each.place)
                barrier.waiting.append(late)
            elif len(late):
                put(threads, late, np.zeros(len(late), bool))

    return run


@instruction("fence.proxy.async", "fence.mbarrier_init")
def fence(each, operands):
    return lambda threads, lanes: threads.shared.fence(threads, threads.index(lanes))
