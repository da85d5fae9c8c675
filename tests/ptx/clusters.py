"""Clusters: barriers of all their blocks, addresses in other blocks' shared memory, stores that an mbarrier counts."""

from __future__ import annotations

import numpy as np

from . import barriers
from .bulk import barrier_of
from .instructions import instruction
from .memory import Trap
from .operands import RANK, TYPES


@instruction("mapa")
def mapa(each, operands):
    """The address in the block of another rank that stands for one's own."""
    put, x, rank = (
        operands.write(each.operands[0]),
        operands.read(each.operands[1], each.parts[-1]),
        operands.read(each.operands[2], "u32"),
    )

    def run(threads, lanes):
        ranks = rank(threads, lanes)
        if (ranks >= threads.cluster_size).any():
            raise Trap(f"mapa to rank {int(ranks.max())} of a cluster of {threads.cluster_size}")
        own = x(threads, lanes)
        low = own.dtype.type((1 << RANK) - 1)
        upper = own & ~own.dtype.type((1 << 32) - 1) if own.dtype.itemsize == 8 else own.dtype.type(0)
        put(threads, lanes, own & low | ranks.astype(own.dtype) << own.dtype.type(RANK) | upper)

    return run


@instruction("getctarank")
def getctarank(each, operands):
    put, x = operands.write(each.operands[0]), operands.read(each.operands[1], each.parts[-1])
    return lambda threads, lanes: put(
        threads, lanes, (x(threads, lanes).astype(np.uint64) >> np.uint64(RANK) & np.uint64(255)).astype(np.uint32)
    )


@instruction("barrier.cluster.arrive", "barrier.cluster.wait", control=True)
def barrier(each, operands):
    """All threads of a cluster arrive, and may go on with what the others need not know until they wait."""
    arrives = "arrive" in each.parts

    def run(threads, lanes):
        lanes = threads.together(threads.index(lanes), each.place)
        threads.pc[lanes] = each.place + 1
        size = threads.in_block * threads.cluster_size
        kept = threads.notes.setdefault("clusters", {})
        for cluster in np.unique(threads.cluster[lanes]):
            some = lanes[threads.cluster[lanes] == cluster]
            state = kept.setdefault(cluster, {"arrived": np.zeros(threads.count, bool), "open": None, "known": None,
                                              "waiting": [], "owes": np.zeros(threads.count, bool)})  # fmt: skip
            if arrives:
                came(threads, state, cluster, some, size)
            else:
                waits(threads, state, cluster, some)

    return run


def came(threads, state, cluster, lanes, size) -> None:
    if (state["arrived"] | state["owes"])[lanes].any():
        raise Trap("a thread arrives at the cluster's barrier twice without a wait")
    state["arrived"][lanes] = True
    known = threads.order.release(cluster, threads.agent[lanes])
    state["open"] = known if state["open"] is None else np.maximum(state["open"], known)
    ended = threads.done & (threads.cluster == cluster)
    if int((state["arrived"] | ended).sum()) == size:
        state["known"], state["open"] = state["open"], None
        state["owes"], state["arrived"] = state["arrived"].copy(), np.zeros(threads.count, bool)
        waiting = np.concatenate([*state["waiting"], lanes[:0]])
        state["waiting"] = []
        if len(waiting):
            threads.order.acquire(cluster, threads.agent[waiting], state["known"])
            state["owes"][waiting] = False
            threads.wake(waiting)


def waits(threads, state, cluster, lanes) -> None:
    over = state["owes"][lanes]
    if over.any():
        threads.order.acquire(cluster, threads.agent[lanes[over]], state["known"])
        state["owes"][lanes[over]] = False
    late = lanes[~over]
    if len(late):
        if not state["arrived"][late].all():
            raise Trap("a thread waits at the cluster's barrier without having arrived")
        threads.waiting[late] = True
        state["waiting"].append(late)


@instruction("st.async")
def store(each, operands):
    """To another block's shared memory; its mbarrier there counts the bytes."""
    kind = each.parts[-1]
    dtype = TYPES[f"b{kind[1:]}"]
    address, barrier_at = operands.address(each.operands[0]), operands.address(each.operands[2])
    inputs = [operands.read(token, f"b{kind[1:]}") for token in operands.vector(each.operands[1])]

    def run(threads, lanes):
        lanes = threads.index(lanes)
        shared, size = threads.shared, dtype.itemsize
        to, at = address(threads, lanes), barrier_at(threads, lanes)
        if (to >> RANK != at >> RANK).any():
            raise Trap("st.async with an mbarrier of another block than its target's")
        places = shared.places(threads, lanes, to, size * len(inputs))
        cells = shared.cells(places, size * len(inputs))
        shared.before_store(threads, lanes, cells)
        for i, x in enumerate(inputs):
            shared.views[size][places // size + i] = x(threads, lanes)
        spots = shared.places(threads, lanes, at, barriers.SIZE)
        for spot in np.unique(spots):
            some = spots == spot
            found = barrier_of(threads, lanes[some][:1], int(at[some][0]))
            epoch = found.next_epoch()
            shared.note_store(threads, lanes[some], cells[some], (found.agent, epoch))
            found.complete(int(some.sum()) * size * len(inputs), epoch)

    return run
