"""What lanes of a warp do together, as soon as all members of a mask have come: shuffles, votes, reductions."""

from __future__ import annotations

import numpy as np

from .instructions import instruction
from .machine import WARP
from .memory import Trap

FOLDS = {"add": np.add, "min": np.minimum, "max": np.maximum, "and": np.bitwise_and, "or": np.bitwise_or,
         "xor": np.bitwise_xor}  # fmt: skip


def whole(threads, lanes, place: int, members):
    """Those of the lanes that go on now, after all members of their warps have come."""
    chosen = threads.index(lanes)
    if members is None:
        return threads.together(chosen, place)
    wanted = np.zeros(threads.warp[-1] + 1, np.int64)
    given = threads.each(members(threads, chosen), chosen).astype(np.int64)
    wanted[threads.warp[chosen]] = given
    if (wanted[threads.warp[chosen]] != given).any():
        raise Trap("lanes of one warp give different masks of members")
    if not (given >> threads.laneid[chosen] & 1).all():
        raise Trap("a lane is not a member of the mask that it gives")
    return threads.together(chosen, place, wanted)


def cooperative(*names: str, member: int | None):
    """An instruction of the lanes that its operand `member` names: run(threads, lanes) when all are there."""

    def registered(make):
        @instruction(*names, control=True)
        def build(each, operands):
            inner = make(each, operands)
            members = None if member is None or len(each.operands) <= 0 else operands.read(each.operands[member], "b32")

            def run(threads, lanes):
                ready = whole(threads, lanes, each.place, members)
                if len(ready):
                    threads.pc[ready] = each.place + 1
                    inner(threads, ready)

            return run

        return make

    return registered


@cooperative("bar.warp.sync", member=0)
def warp_sync(each, operands):
    def run(threads, lanes):
        np.add.at(threads.order.turn, (threads.cluster[lanes], threads.agent[lanes]), 1)

    return run


def of_warps(threads, lanes, values):
    """Values by (warp, lane), zero where a lane is not there; and the row of each lane."""
    _, row = np.unique(threads.warp[lanes], return_inverse=True)
    table = np.zeros((row.max() + 1, WARP), values.dtype)
    table[row, threads.laneid[lanes]] = values
    return table, row


@cooperative("shfl.sync", member=-1)
def shuffle(each, operands):
    """Of lane - b, lane + b, lane ^ b or lane b, within segments; a lane beyond its segment keeps its own."""
    mode, kind = each.parts[2], each.parts[-1]
    tokens = [token.strip() for token in each.operands[0].split("|")]
    puts = [operands.write(token) for token in tokens]
    x, by, clamp = operands.read(each.operands[1], kind), *(operands.read(token, "u32") for token in each.operands[2:4])

    def run(threads, lanes):
        table, row = of_warps(threads, lanes, threads.each(x(threads, lanes), lanes))
        there, _ = of_warps(threads, lanes, np.ones(len(lanes), bool))
        lane, b = threads.laneid[lanes], threads.each(by(threads, lanes), lanes).astype(np.int64) & 31
        limits = threads.each(clamp(threads, lanes), lanes).astype(np.int64)
        segment, most = limits >> 8 & 31, limits & 31
        first, last = lane & segment, (lane & segment) | (most & ~segment)
        source = {"up": lane - b, "down": lane + b, "bfly": lane ^ b, "idx": first | (b & ~segment)}[mode]
        valid = source >= last if mode == "up" else source <= last
        source = np.where(valid, source, lane)
        if not there[row, source].all():
            raise Trap("a shuffle from a lane that does not take part")
        puts[0](threads, lanes, table[row, source])
        if len(puts) == 2:
            puts[1](threads, lanes, valid)

    return run


@cooperative("vote.sync", member=-1)
def vote(each, operands):
    put, truth = operands.write(each.operands[0]), operands.read(each.operands[1], "pred")
    mode = each.parts[2]

    def run(threads, lanes):
        true = threads.each(truth(threads, lanes), lanes)
        table, row = of_warps(threads, lanes, true)
        there, _ = of_warps(threads, lanes, np.ones(len(lanes), bool))
        ballot = (table << np.arange(WARP, dtype=np.uint32)).sum(1, dtype=np.uint32)
        every, some = (table | ~there).all(1), table.any(1)
        result = {"ballot": ballot, "all": every, "any": some, "uni": every | ~some}[mode]
        put(threads, lanes, result[row])

    return run


@cooperative("match.any.sync", "match.all.sync", member=-1)
def match(each, operands):
    tokens = each.operands[0].split("|")
    puts, x = [operands.write(token.strip()) for token in tokens], operands.read(each.operands[1], each.parts[-1])

    def run(threads, lanes):
        table, row = of_warps(threads, lanes, threads.each(x(threads, lanes), lanes))
        there, _ = of_warps(threads, lanes, np.ones(len(lanes), bool))
        same = (table[row] == table[row, threads.laneid[lanes]][:, None]) & there[row]
        masks = (same << np.arange(WARP, dtype=np.uint32)).sum(1, dtype=np.uint32)
        if each.parts[1] == "all":
            agree = (same == there[row]).all(1)
            masks = np.where(agree, masks, np.uint32(0))
            if len(puts) == 2:
                puts[1](threads, lanes, agree)
        puts[0](threads, lanes, masks)

    return run


@cooperative("redux.sync", member=-1)
def redux(each, operands):
    put, x = operands.write(each.operands[0]), operands.read(each.operands[1], each.parts[-1])
    fold = FOLDS[each.parts[2]]

    def run(threads, lanes):
        values, warps = threads.each(x(threads, lanes), lanes), threads.warp[lanes]
        for warp in np.unique(warps):
            put(threads, lanes[warps == warp], fold.reduce(values[warps == warp], dtype=values.dtype, keepdims=True))

    return run


@instruction("activemask")
def activemask(each, operands):
    put = operands.write(each.operands[0])

    def run(threads, lanes):
        lanes = threads.index(lanes)
        put(threads, lanes, threads.bits(lanes)[threads.warp[lanes]].astype(np.uint32))

    return run


@instruction("elect.sync", control=True)
def elect(each, operands):
    """The lowest lane of a warp."""
    chosen, predicate = (operands.write(token.strip()) for token in each.operands[0].split("|"))
    members = operands.read(each.operands[1], "b32")

    def run(threads, lanes):
        ready = whole(threads, lanes, each.place, members)
        if len(ready):
            threads.pc[ready] = each.place + 1
            mask = threads.bits(ready)[threads.warp[ready]]
            first = np.log2(mask & -mask).astype(np.uint32)
            chosen(threads, ready, first)
            predicate(threads, ready, first == threads.laneid[ready])

    return run
