"""Products under way: registers and shared memory that wgmma uses until its group has been waited for.

A register of sums may be copied to another one meanwhile, as compilers rename them; all else is trapped. And what
other instructions wrote to it has to be fenced before wgmma uses it.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from .machine import WARP, Code, Compiled
from .memory import Trap


class Flight:
    """Groups of wgmma, numbered for each lane: how many it has closed, and up to which they have ended."""

    def __init__(self, threads):
        self.threads, self.pending = threads, []
        self.closed, self.ended = np.zeros(threads.count, np.int64), np.full(threads.count, -1)
        self.used = {name: np.full(threads.count, -1) for name in threads.compiled.watched}
        self.touched = {name: np.zeros(threads.count, bool) for name in threads.compiled.watched}

    def begin(self, lanes, cells, registers) -> None:
        np.add.at(self.threads.shared.leaving, cells, 1)
        self.pending.append((self.closed[lanes[0]], cells, lanes))
        for name in registers:
            self.used[name][lanes] = self.closed[lanes]

    def finish(self, lanes, left: int) -> None:
        """All groups of a warpgroup but its last `left` ones have ended."""
        self.ended[lanes] = np.maximum(self.ended[lanes], self.closed[lanes] - left - 1)
        shared, rest = self.threads.shared, []
        for group, cells, of in self.pending:
            if group <= self.ended[of[0]]:
                np.subtract.at(shared.leaving, cells, 1)
                agent, epoch = self.threads.order.product(self.threads.cluster[of[0]], self.threads.agent[of[::WARP]])
                shared.reader_epoch[cells, agent] = epoch
            else:
                rest.append((group, cells, of))
        self.pending = rest

    def untouched(self, registers, lanes) -> None:
        for name in registers:
            if self.touched[name][lanes].any():
                raise Trap(f"wgmma uses {name}, which was written without a wgmma.fence after it")

    def idle(self, names, lanes) -> None:
        for name in names:
            if (self.used[name][lanes] > self.ended[lanes]).any():
                raise Trap(f"{name} is used while wgmma, which was not waited for, may still use it")


def flight(threads) -> Flight:
    if "wgmma" not in threads.notes:
        threads.notes["wgmma"] = Flight(threads)
    return threads.notes["wgmma"]


def watched(compiled: Compiled) -> Compiled:
    """The program with a look at each instruction that touches registers of wgmma, or copies of them."""
    program = compiled.program
    names = set(program.accumulators)
    moves = [each.operands for each in program.instructions
             if each.parts[0] == "mov" and all(token in program.registers for token in each.operands)]  # fmt: skip
    grown = bool(names)
    while grown:
        more = {name for move in moves if names & set(move) for name in move} - names
        names, grown = names | more, bool(more)
    codes = [look(code, each, names) for code, each in zip(compiled.codes, program.instructions)]
    return replace(compiled, codes=codes, watched=frozenset(names))


def look(code: Code, each, names: set) -> Code:
    if not names or each.parts[0] == "wgmma" or not each.operands:
        return code
    tokens = [part.strip() for operand in each.operands for part in operand.strip("{}[]").split(",")]
    count = len(each.operands[0].strip("{}").split(","))
    writes = [] if each.parts[0] in ("st", "stmatrix", "red") else [name for name in tokens[:count] if name in names]
    reads = [name for name in tokens[0 if not writes else count :] if name in names]
    if not reads and not writes:
        return code
    if each.parts[0] == "mov" and len(writes) == len(reads) == 1:

        def run(threads, lanes):
            state = flight(threads)
            code.run(threads, lanes)
            for kept in (state.used, state.touched):
                kept[writes[0]][lanes] = kept[reads[0]][lanes]
    else:

        def run(threads, lanes):
            state = flight(threads)
            state.idle(reads, lanes)
            code.run(threads, lanes)
            for name in writes:
                state.used[name][lanes], state.touched[name][lanes] = -1, True

    return replace(code, run=run)
