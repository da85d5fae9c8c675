"""Threads of several blocks, run together: one NumPy operation an instruction for all of them that stand at it.

The threads at the lowest place of the program go first and the others wait for them there, so that threads which
parted meet again. A thread that spins makes way for the others.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .memory import Trap
from .operands import Operands
from .order import Order
from .parse import Program
from .shared import Shared

WARP = 32
ENDLESS = 1 << 20  # branches of the threads that run together: some minutes
PATIENCE = 2000  # turns of some threads while others stand ready, after which those go first


@dataclass(frozen=True)
class Code:
    """A compiled instruction. One of `control` says itself where its threads go on, or that they wait; one of `warps`
    is run by all lanes of a warp at once."""

    run: Callable
    guard: Callable | None
    control: bool
    warps: bool
    text: str


@dataclass
class Compiled:
    """A program with its operands' places, ready to run on any blocks."""

    program: Program
    operands: Operands
    codes: list[Code]
    cell: int
    watched: frozenset = frozenset()


class Threads:
    """The state of all threads of some blocks: registers, places in the program, memories, who waits for what."""

    def __init__(self, compiled: Compiled, launch, blocks: list[tuple[int, int, int]]):
        self.compiled, self.launch, self.memory = compiled, launch, launch.memory
        self.cluster_size, self.block, self.grid = launch.cluster, launch.block, launch.grid
        each = launch.block[0] * launch.block[1] * launch.block[2]
        count, warps = len(blocks) * each, -(-each // WARP)
        self.count, self.all = count, np.arange(count)
        self.slab, self.number = np.repeat(np.arange(len(blocks)), each), np.tile(np.arange(each), len(blocks))
        self.cluster, self.rank = self.slab // launch.cluster, self.slab % launch.cluster
        self.laneid, self.in_block = self.number % WARP, each
        self.warp = self.slab * warps + self.number // WARP  # of all
        self.agent = self.rank * warps + self.number // WARP  # of the cluster
        self.warps_in_block, self.blocks = warps, np.array(blocks)
        self.registers = [np.zeros(count, dtype) for dtype in compiled.operands.dtypes]
        self.carry = np.zeros(count, bool)
        self.local = np.full((count, compiled.operands.sizes["local"]), 0xFF, np.uint8)
        self.order = Order(len(blocks) // launch.cluster, warps * launch.cluster)
        size = compiled.operands.sizes["shared"] + launch.shared
        self.shared = Shared(len(blocks), size, compiled.cell, self.order, launch.cluster)
        self.pc = np.full(count, compiled.program.start)
        self.done, self.waiting = np.zeros(count, bool), np.zeros(count, bool)
        self.returns = {name: np.zeros(count, np.int64) for name in compiled.program.functions}
        self.notes = {}  # what barriers and asynchronous instructions keep
        self.words, self.at_end = {}, []

    def each(self, values: np.ndarray, lanes) -> np.ndarray:
        """One value for each lane, of values that may be the same for all."""
        n = self.count if isinstance(lanes, slice) else len(lanes)
        return values if len(values) == n else np.broadcast_to(values, (n,))

    def index(self, lanes) -> np.ndarray:
        return self.all[lanes]

    def special(self, word: str) -> np.ndarray:
        if word not in self.words:
            self.words[word] = self.word(*word[1:].split("."))
        return self.words[word]

    def word(self, name: str, axis: str = "x") -> np.ndarray:
        """A special register's values, one for each thread."""
        d, (width, height, _) = "xyz".index(axis), self.block
        parted = (self.number % width, self.number // width % height, self.number // (width * height))
        alike = {
            "ntid": self.block[d], "nctaid": self.grid[d], "cluster_nctarank": self.cluster_size,
            "cluster_nctaid": self.cluster_size if d == 0 else 1, "nwarpid": self.warps_in_block,
            "dynamic_smem_size": self.launch.shared, "clock": 0, "clock64": 0, "smid": 0,
            "nclusterid": self.grid[d] // (self.cluster_size if d == 0 else 1),
        }  # fmt: skip
        if name in alike:
            return np.full(self.count, alike[name])
        place = self.blocks[self.slab]
        return {
            "tid": lambda: parted[d], "ctaid": lambda: place[:, d], "laneid": lambda: self.laneid,
            "warpid": lambda: self.number // WARP, "cluster_ctarank": lambda: self.rank,
            "cluster_ctaid": lambda: self.rank if d == 0 else self.rank * 0,
            "clusterid": lambda: place[:, d] // (self.cluster_size if d == 0 else 1),
        }[name]()  # fmt: skip

    def run(self) -> None:
        """Until every thread has ended; a Trap tells at which instruction."""
        codes, turns, patience, left = self.compiled.codes, 0, 0, ENDLESS
        late = np.zeros(self.count, bool)  # threads that have been at work while others stood ready
        while not self.done.all():
            ready = ~(self.done | self.waiting)
            if not ready.any():
                raise Trap(f"deadlock: {self.stuck()}")
            left -= 1
            if left == 0:
                raise Trap(f"no end after {ENDLESS} branches: {self.stuck()}")
            if patience > PATIENCE and (ready & ~late).any():
                ready &= ~late
                turns += 1
                if turns > PATIENCE:
                    late[:], patience, turns = False, 0, 0
            places = self.pc[ready]
            place = int(places.min())
            here = ready & (self.pc == place)
            others = places[places != place]
            patience = patience + 1 if len(others) else 0
            if patience:
                late |= here
            else:
                late[:] = False
            lanes = slice(None) if here.all() else np.flatnonzero(here)
            self.straight(codes, place, lanes, int(others.min()) if len(others) else len(codes))

    def straight(self, codes, place: int, lanes, stop: int) -> None:
        """Run lanes from `place` to where their ways may part, or others wait for them."""
        while True:
            code = codes[place]
            place += 1
            chosen = lanes
            if code.guard is not None:
                true = self.each(code.guard(self, lanes), lanes)
                chosen = lanes if true.all() else self.index(lanes)[true]
            if code.control:
                self.pc[lanes] = place
            elif code.warps and not isinstance(chosen, slice) and len(chosen):
                together = self.together(chosen, place - 1)
                if len(together) != len(chosen) or len(chosen) != len(self.index(lanes)):
                    self.pc[np.setdiff1d(self.index(lanes), chosen)] = place
                    self.pc[together] = place
                    self.carry_out(code, place - 1, together)
                    return
            if isinstance(chosen, slice) or len(chosen):
                self.carry_out(code, place - 1, chosen)
            if code.control:
                return
            if place >= stop:
                self.pc[lanes] = place
                return

    def carry_out(self, code, place: int, lanes) -> None:
        if isinstance(lanes, slice) or len(lanes):
            try:
                code.run(self, lanes)
            except Trap as trap:
                raise Trap(f"{trap}\n  at instruction {place}: {code.text}") from None

    def together(self, lanes: np.ndarray, place: int, members: np.ndarray | None = None) -> np.ndarray:
        """Of lanes that come to an instruction of whole warps, those that need not wait, with others that waited here.

        `members` are the lanes of its warp that each one waits for, as bits; all that there are if it is not given.
        """
        if len(lanes) == self.count:
            return lanes
        waiting = np.flatnonzero(self.waiting & (self.pc == place) & np.isin(self.warp, self.warp[lanes]))
        present = np.union1d(lanes, waiting)
        bits = self.bits(present)
        wanted = self.bits(self.all) if members is None else self.bits(self.all) & members
        if (gone := self.bits(np.flatnonzero(self.done)) & wanted)[self.warp[present]].any():
            warp = int(self.warp[present][gone[self.warp[present]].argmax()])
            raise Trap(
                f"divergence: of warp {warp} lanes {int(gone[warp]):#x} have ended, and the others wait for them"
            )
        ready = (bits & wanted == wanted)[self.warp[present]]
        self.waiting[present[ready]] = False
        self.wait(present[~ready], place)
        return present[ready]

    def bits(self, lanes: np.ndarray) -> np.ndarray:
        """Lanes of each warp as bits."""
        found = np.bincount(self.warp[lanes], 1 << self.laneid[lanes], self.warp[-1] + 1)
        return found.astype(np.int64)

    def stuck(self) -> str:
        """Which instructions the threads wait at, for a message."""
        live = ~self.done
        where = sorted(set(self.pc[live].tolist()))
        parts = [f"{int((self.pc[live] == place).sum())} threads wait at {self.compiled.codes[place].text!r}"
                 for place in where]  # fmt: skip
        if self.done.any():
            parts.append(f"{int(self.done.sum())} have ended")
        return ", ".join(parts)

    def alive(self, blocks: np.ndarray) -> None:
        """Trap where a block whose shared memory is to be touched from outside has ended."""
        for block in np.unique(blocks):
            if self.done[self.slab == block].all():
                raise Trap(f"access to the shared memory of block {self.blocks[block]}, which has ended")

    def wait(self, lanes, place: int) -> None:
        """Lanes stay at the instruction at `place` until they are woken."""
        self.pc[lanes], self.waiting[lanes] = place, True

    def wake(self, lanes) -> None:
        self.waiting[lanes] = False
