"""Shared memory of the blocks that run together, with what is needed to trap its misuse: what has been written, by whom
and when, who has read it, and which asynchronous copies are on their way to it or from it.
"""

from __future__ import annotations

import numpy as np

from .memory import UNSIGNED, Trap
from .operands import RANK
from .order import Order

NOBODY, SEVERAL = -1, -2


class Shared:
    """`size` bytes for each of `blocks`, told apart in cells of `cell` bytes, the smallest that the program stores."""

    def __init__(self, blocks: int, size: int, cell: int, order: Order, cluster: int = 1):
        self.blocks, self.size, self.cell, self.order, self.cluster = blocks, size, cell, order, cluster
        self.pitch = -(-max(size, 1) // 1024) * 1024
        raw = np.empty(blocks * self.pitch + 1024, np.uint8)
        self.bytes = raw[-raw.ctypes.data % 1024 :][: blocks * self.pitch]
        self.bytes.fill(0xFF)  # NaN in every type of float
        self.views = {size: self.bytes.view(dtype) for size, dtype in UNSIGNED.items()}
        cells = len(self.bytes) // cell
        self.written = np.zeros(cells, bool)
        self.arriving = np.zeros(cells, np.int16)  # copies to the cell that nobody has waited for
        self.leaving = np.zeros(cells, np.int16)  # copies from the cell that nobody has waited for
        self.unfenced = np.zeros(cells, bool)  # stored by a thread, and not yet visible to asynchronous reads
        self.writer, self.writer_lane = np.zeros(cells, np.int16), np.full(cells, NOBODY, np.int32)
        self.writer_epoch, self.writer_turn = np.zeros(cells, np.int32), np.zeros(cells, np.int32)
        self.toucher, self.touch_epoch = np.zeros(cells, np.int16), np.zeros(cells, np.int32)  # by atomic operations
        self.reader_epoch = np.zeros((cells, order.readers), np.int32)
        self.reader_lane, self.reader_turn = np.full(cells, NOBODY, np.int32), np.zeros(cells, np.int32)

    def places(self, threads, lanes, addresses: np.ndarray, size: int, align: int | None = None) -> np.ndarray:
        """Byte positions that addresses stand for, after a look at their bounds and alignment."""
        offsets, ranks = addresses & ((1 << RANK) - 1), addresses >> RANK
        wrong = offsets % (align or size) != 0
        if wrong.any():
            raise Trap(f"misaligned shared access of {size} bytes at {int(offsets[wrong.argmax()])}")
        outside = (offsets + size > self.size) | (ranks < 0) | (ranks >= self.cluster) | (addresses < 0)
        if outside.any():
            at = int(addresses[outside.argmax()])
            raise Trap(f"shared access of {size} bytes at {at} outside the block's {self.size}")
        blocks = threads.cluster[lanes] * self.cluster + ranks
        if self.cluster > 1 and (remote := ranks != threads.rank[lanes]).any():
            threads.alive(blocks[remote])
        return blocks * self.pitch + offsets

    def cells(self, places: np.ndarray, size: int) -> np.ndarray:
        """Cells of `size` bytes at each place, a row for each."""
        return places[:, None] // self.cell + np.arange(max(1, size // self.cell))

    def load(self, threads, lanes, addresses, size: int, count: int = 1) -> list[np.ndarray]:
        places = self.places(threads, lanes, addresses, size * count)
        self.read(threads, lanes, self.cells(places, size * count))
        return [self.views[size][places // size + i] for i in range(count)]

    def store(self, threads, lanes, addresses, size: int, values: list[np.ndarray]) -> None:
        places = self.places(threads, lanes, addresses, size * len(values))
        self.write(threads, lanes, self.cells(places, size * len(values)))
        for i, value in enumerate(values):
            at = places // size + i
            self.views[size][at] = value
            if not (self.views[size][at] == value).all():
                raise Trap("race in shared memory: threads store different values to one place in one instruction")

    def describe(self, cells: np.ndarray, wrong: np.ndarray, lanes: np.ndarray) -> str:
        """Where and by whom, of the first cell that is wrong."""
        row, column = np.argwhere(wrong)[0]
        cell = int(cells[row, column])
        byte, writer, of = cell * self.cell % self.pitch, self.writer_lane[cell], int(lanes[row])
        return f"at byte {byte} by thread {of}, stored by {f'thread {writer}' if writer >= 0 else 'a copy'}"

    def complete(self, cells, lanes, verb: str) -> None:
        if (arriving := self.arriving[cells] > 0).any():
            where = self.describe(cells, arriving, lanes)
            raise Trap(f"race in shared memory: {verb} where a copy that was not waited for may still arrive, {where}")

    def read(self, threads, lanes, cells: np.ndarray) -> None:
        self.before_read(threads, lanes, cells)
        self.note_read(threads, lanes, cells)

    def before_read(self, threads, lanes, cells: np.ndarray, asynchronous: bool = False) -> None:
        """Trap reads of cells, a row for each lane, that are not ordered behind the stores."""
        agents, clusters, own = self.who(threads, lanes)
        self.complete(cells, own, "a read")
        self.untouched(cells, agents, clusters, own)
        if not self.written[cells].all():
            raise Trap(f"read of shared memory that nobody has written, "
                       f"{self.describe(cells, ~self.written[cells], own).split(',')[0]}")  # fmt: skip
        writers, turn = self.writer[cells], self.order.turn[clusters, agents]
        early = self.writer_epoch[cells] > self.order.known[clusters[:, None], agents[:, None], writers]
        early |= self.within_warp(cells, agents, turn, own)
        if early.any():
            raise Trap(f"race in shared memory: a read without a barrier after the store, "
                       f"{self.describe(cells, early, own)}")  # fmt: skip
        if asynchronous and (unfenced := self.unfenced[cells]).any():
            raise Trap(f"an asynchronous read without fence.proxy.async after the store, "
                       f"{self.describe(cells, unfenced, own)}")  # fmt: skip

    def note_read(self, threads, lanes, cells: np.ndarray) -> None:
        agents, clusters, own = self.who(threads, lanes)
        turn = self.order.turn[clusters, agents]
        self.reader_epoch[cells, agents[:, None]] = self.order.known[clusters, agents, agents][:, None]
        same = (self.reader_turn[cells] == turn[:, None]) & (self.reader_lane[cells] != own[:, None])
        self.reader_lane[cells] = np.where(same & (self.reader_lane[cells] != NOBODY), SEVERAL, own[:, None])
        self.reader_turn[cells] = turn[:, None]

    def write(self, threads, lanes, cells: np.ndarray) -> None:
        self.before_store(threads, lanes, cells)
        self.note_store(threads, lanes, cells)

    def before_store(self, threads, lanes, cells: np.ndarray) -> None:
        """Trap stores that are not ordered behind other stores and reads."""
        agents, clusters, own = self.who(threads, lanes)
        self.complete(cells, own, "a store")
        self.untouched(cells, agents, clusters, own)
        if (leaving := self.leaving[cells] > 0).any():
            raise Trap(f"race in shared memory: a store where a copy or a product that was not waited for may still "
                       f"read, {self.describe(cells, leaving, own)}")  # fmt: skip
        known, turn, writers = self.order.known[clusters, agents], self.order.turn[clusters, agents], self.writer[cells]
        early = self.writer_epoch[cells] > np.take_along_axis(known, writers.astype(np.int64), 1)
        early |= self.within_warp(cells, agents, turn, own)
        if early.any():
            raise Trap(f"race in shared memory: a store without a barrier after another one, "
                       f"{self.describe(cells, early, own)}")  # fmt: skip
        early = (self.reader_epoch[cells] > known[:, None, : self.order.readers]).any(2)
        by = (self.reader_lane[cells] != own[:, None]) & (self.reader_lane[cells] != NOBODY)
        of_warp = self.reader_epoch[cells, agents[:, None]] == known[np.arange(len(agents)), agents][:, None]
        early |= by & of_warp & (self.reader_turn[cells] == turn[:, None])
        if early.any():
            raise Trap(f"race in shared memory: a store without a barrier after a read, "
                       f"{self.describe(cells, early, own)}")  # fmt: skip

    def note_store(self, threads, lanes, cells: np.ndarray, copy: tuple[int, int] | None = None) -> None:
        """Cells have been stored by lanes, or by the copy of an (agent, epoch)."""
        agents, clusters, own = self.who(threads, lanes)
        agent, epoch = copy or (agents[:, None], self.order.known[clusters, agents, agents][:, None])
        self.writer[cells], self.writer_epoch[cells] = agent, epoch
        self.writer_lane[cells] = NOBODY if copy else own[:, None]
        self.writer_turn[cells] = self.order.turn[clusters, agents][:, None]
        self.written[cells], self.unfenced[cells] = True, copy is None

    def fence(self, threads, lanes) -> None:
        """Make visible to asynchronous reads what these lanes stored, or know that others stored."""
        agents, clusters, own = self.who(threads, lanes)
        for cluster in np.unique(clusters):
            size = self.cluster * self.pitch // self.cell
            cells = cluster * size + np.flatnonzero(self.unfenced[cluster * size : (cluster + 1) * size])
            for agent in np.unique(agents[clusters == cluster]):
                mine = self.writer[cells] == agent
                known = self.writer_epoch[cells] <= self.order.known[cluster, agent, self.writer[cells]]
                lanes_here = own[(agents == agent) & (clusters == cluster)]
                known &= (~mine | np.isin(self.writer_lane[cells], lanes_here) | (self.writer_lane[cells] < 0)
                          | (self.writer_turn[cells] < self.order.turn[cluster, agent]))  # fmt: skip
                self.unfenced[cells[known]] = False

    def touch(self, threads, lanes, cells: np.ndarray) -> None:
        """Note atomic stores, which are no race with each other."""
        agents, clusters, own = self.who(threads, lanes)
        self.complete(cells, own, "an atomic operation")
        if not self.written[cells].all():
            raise Trap("an atomic operation on shared memory that nobody has written")
        early = self.writer_epoch[cells] > self.order.known[clusters[:, None], agents[:, None], self.writer[cells]]
        early |= self.within_warp(cells, agents, self.order.turn[clusters, agents], own)
        if early.any():
            raise Trap(f"race in shared memory: an atomic operation without a barrier after a store, "
                       f"{self.describe(cells, early, own)}")  # fmt: skip
        self.toucher[cells] = agents[:, None]
        self.touch_epoch[cells] = self.order.known[clusters, agents, agents][:, None]

    def untouched(self, cells, agents, clusters, own) -> None:
        """Trap accesses that are not ordered behind atomic ones."""
        if (epochs := self.touch_epoch[cells]).any():
            early = epochs > self.order.known[clusters[:, None], agents[:, None], self.toucher[cells]]
            if early.any():
                raise Trap(f"race in shared memory: an access without a barrier after an atomic operation, "
                           f"{self.describe(cells, early, own).split(',')[0]}")  # fmt: skip

    def within_warp(self, cells, agents, turn, own) -> np.ndarray:
        """Whether another lane of the same warp stored last, with nothing since that orders the two."""
        lane = self.writer_lane[cells]
        return ((self.writer[cells] == agents[:, None]) & (lane != own[:, None]) & (lane >= 0)
                & (self.writer_turn[cells] == turn[:, None]))  # fmt: skip

    def who(self, threads, lanes):
        """(warp in its cluster, cluster, number) of each lane."""
        return threads.agent[lanes], threads.cluster[lanes], threads.number[lanes]
