"""Branches, calls, and the barriers of a block."""

from __future__ import annotations

import numpy as np

from .instructions import instruction
from .memory import Trap


@instruction("bra", control=True)
def bra(each, operands):
    target = operands.program.labels[each.operands[0]]

    def run(threads, lanes):
        threads.pc[lanes] = target

    return run


@instruction("ret", "exit", control=True)
def ret(each, operands):
    bodies = {function.first: function.name for function in operands.program.functions.values()}
    bodies[operands.program.start] = None
    function = bodies[max(first for first in bodies if first <= each.place)] if each.parts[0] == "ret" else None

    def run(threads, lanes):
        if function:
            threads.pc[lanes] = threads.returns[function][lanes]
        else:
            threads.done[lanes] = True
            for check in threads.at_end:
                check(threads.index(lanes))

    return run


@instruction("call", control=True)
def call(each, operands):
    """`call (results), function, (parameters)`; no function calls itself, so that each has its variables once."""
    tokens = list(each.operands)
    results = split(tokens.pop(0)) if tokens[0].startswith("(") else []
    function = operands.program.functions[tokens[0]]
    given = split(tokens[1]) if len(tokens) > 1 else []

    def places(name):
        start = operands.addresses[name]
        return slice(start, start + operands.program.variables[name].size)

    passed = [(places(to), places(source)) for to, source in zip(function.parameters, given)]
    for mine, its in zip(results, function.results):  # what the caller reads is what the function wrote
        operands.addresses[mine] = operands.addresses[its]

    def run(threads, lanes):
        for to, source in passed:
            threads.local[lanes, to] = threads.local[lanes, source]
        threads.returns[function.name][lanes] = each.place + 1
        threads.pc[lanes] = function.first

    return run


def split(token: str) -> list[str]:
    return [part.strip() for part in token.strip("()").split(",") if part.strip()]


@instruction("nanosleep", "pragma", "membar", "fence", "prefetch", "prefetchu", "griddepcontrol", "discard",
             "applypriority")  # fmt: skip
def nothing(each, operands):
    return lambda threads, lanes: None


@instruction("trap", "brkpt")
def trap(each, operands):
    def run(threads, lanes):
        raise Trap("the kernel traps")

    return run


@instruction("bar.sync", "barrier.sync", "barrier.cta.sync", "bar.cta.sync", "bar.arrive", "barrier.arrive",
             "barrier.cta.arrive", "bar.red", "barrier.red", "barrier.cta.red", control=True)  # fmt: skip
def barrier(each, operands):
    """One of a block's 16 barriers, of all its threads or of as many as it says."""
    aligned, arrives, folds = (
        each.parts[0] == "bar" or "aligned" in each.parts,
        "arrive" in each.parts,
        "red" in each.parts,
    )
    tokens = list(each.operands)
    put = operands.write(tokens.pop(0)) if folds else None
    truth = operands.read(tokens.pop(), "pred") if folds else None
    name = operands.read(tokens[0], "u32")
    size = operands.read(tokens[1], "u32") if len(tokens) > 1 else None

    def run(threads, lanes):
        chosen = threads.index(lanes)
        if aligned:
            chosen = threads.together(chosen, each.place)
            threads.pc[chosen] = each.place + 1
        numbers = threads.each(name(threads, chosen), chosen)
        sizes = None if size is None else threads.each(size(threads, chosen), chosen)
        kept = threads.notes.setdefault("barriers", {})
        for block in np.unique(threads.slab[chosen]):
            for number in np.unique(numbers[threads.slab[chosen] == block]):
                here = (threads.slab[chosen] == block) & (numbers == number)
                wanted = threads.in_block if sizes is None else int(sizes[here][0])
                arrive(threads, kept.setdefault((block, number), {"waiting": [], "arrived": []}), chosen[here], wanted)

    def arrive(threads, state, lanes, wanted):
        state["arrived"].append(lanes)
        if not arrives:
            state["waiting"].append(lanes)
            threads.wait(lanes, each.place + 1)
        arrived = np.concatenate(state["arrived"])
        block = threads.slab[lanes[0]]
        if wanted == threads.in_block and (threads.done & (threads.slab == block)).any():
            raise Trap("divergent barrier: threads of the block have ended without it")
        if len(arrived) > wanted:
            raise Trap(f"{len(arrived)} threads at a barrier of {wanted}")
        if len(arrived) == wanted:
            waiting = np.concatenate([*state["waiting"], arrived[:0]])
            meet(threads, arrived, waiting)
            if folds:
                put(threads, waiting, folded(each.parts, truth(threads, waiting), len(waiting)))
            threads.wake(waiting)
            state["waiting"], state["arrived"] = [], []

    return run


def meet(threads, arrived, waiting) -> None:
    """Those who wait get to know what all that arrived have done."""
    cluster = threads.cluster[arrived[0]]
    known = threads.order.release(cluster, threads.agent[arrived])
    if len(waiting):
        threads.order.acquire(cluster, threads.agent[waiting], known)


def folded(parts, truth, count: int):
    value = {"popc": truth.sum(), "and": truth.all(), "or": truth.any()}[
        next(p for p in parts if p in ("popc", "and", "or"))
    ]
    return np.full(count, value, bool if parts[-1] == "pred" else np.uint32)
