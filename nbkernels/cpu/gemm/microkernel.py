"""The micro-kernel: an mr x nr tile of C held in registers. C[i, j] <- chain of fma(A[i, p], B[p, j], .) over p, or
whatever the kind of the product makes of a step.

One LLVM function per height 1..mr and per number of vectors across 1..nv, so that every edge has a kernel of its own,
compiled alone when a product first needs it: callers find them in the tile's `table`. Lanes beyond the last column are
left out where C and X are touched. An element of A is read as a scalar and spread over a vector; a row of B is nv whole
vectors (masked loads would cost 8 %: they take an FMA port). They lie in panels or have any strides: of mr rows a
function each, as a constant stride takes no register. Fewer rows go by that for any strides: half as much to compile.
The tile starts from zero or from a stored partial result and ends as a partial result or as the finished C, so an
element is one chain however k is cut (the library's fixed order).

    start   0: zero                       1: the partial result at t
    stop    0: store the chain at t       1: C = chain       2: C = fma(beta, x, alpha * chain)
"""

from __future__ import annotations

import functools

from ...jit.compile.lazy import plain
from ...jit.compile.routine import Table, call_routine, known_table, words_of
from ...jit.ir.amx import BYTES, unit
from ...jit.ir.chain import Chain, in_groups
from ...jit.ir.emit import begun, kinds, on_tile, values
from ...jit.ir.kind import UNIT
from ...jit.ir.vector import I64, LINE, loop
from . import matrix_unit

# Rows of a B in place, or of what is packed, to run ahead with prefetch: they lie apart, beyond what the hardware
# follows, and may come from memory (f64, one thread, us: 16x2048x512 1666 -> 1168). Panels in the caches come as the
# hardware follows them.
APART = 16
# Arguments (emit.py). What is asked for of B lies `ahead` bytes after its rows; of panels in memory, from there on in
# STREAMS places, `gap` bytes apart, by turns, `pace` bytes a step: one stream is not all that a core can read.
ARGUMENTS = "a:p rsa:i csa:i b:p rsb:i kb:i t:t rst:i c:c rsc:i width:i start:i stop:i x:c rsx:i alpha:s beta:s ahead:i"
STREAMS = 4
# Steps of k per turn of a full tile's loop, which fill the window; short tiles are cheap to compile instead. Narrow
# vectors take 20 instructions for 12 multiply-adds, and a neighbour on the core takes half of what it can issue.
UNROLL, NARROW = 2, 8
# How A and B lie: anyhow, in panels, A in a panel and B by rows, of which the tile makes a panel on its way, or in
# panels, those of B in memory.
LIES = "", "_packed", "_copying", "_streamed"
STRIDED, PACKED, COPYING, STREAMED = range(4)


def _spec(lie: int) -> str:
    """The arguments for operands that lie so."""
    return ARGUMENTS + {COPYING: " panel:p", STREAMED: " pace:i gap:i"}.get(lie, "")


def _known(tile, lie: int) -> dict:
    """The strides that are known of operands that lie so."""
    planes = tile.kind.planes
    a = {} if lie == STRIDED or tile.kind.way == UNIT else {"rsa": I64(1), "csa": I64(tile.mr * planes)}
    return a | {"rsb": I64(tile.nr * planes)} if lie in (PACKED, STREAMED) else a


def _define(module, name: str, tile, mr: int, nv: int, lie: int) -> None:
    """The LLVM function of the mr x nv tile."""
    builder, arg = begun(module, name, tile, _spec(lie))
    if tile.kind.way == UNIT:
        matrix_unit.micro_kernel(builder, tile, arg, mr, nv)
        return
    function, planes = builder.function, range(tile.kind.planes)
    arg |= _known(tile, lie)  # no register and no addition for a row of A: 5 % at 12x32
    ops = Chain(builder, tile.kind, tile.lanes)
    words = ops.words
    cells = [(i, j) for i in range(mr) for j in range(nv)]
    last = builder.sub(arg["width"], I64((nv - 1) * tile.lanes))
    masks = {dtype: ops.mask(last, dtype) for dtype in {tile.kind.chain, tile.kind.out}}

    def place(matrix: str, i: int, j: int):
        """Address and mask of cell i, j: only the last vector of a row may be cut."""
        row = words.at(arg[matrix], builder.mul(arg["rs" + matrix], I64(i)))
        mask = None if j < nv - 1 else masks[tile.kind.chain if matrix == "t" else tile.kind.out]
        return words.at(row, j * tile.lanes), mask

    entry, resume = builder.block, function.append_basic_block("resume")
    begin = function.append_basic_block("begin")
    builder.cbranch(builder.icmp_signed("==", arg["start"], I64(0)), begin, resume)
    builder.position_at_end(resume)
    partial = [ops.load(*place("t", i, j)) for i, j in cells]
    builder.branch(begin)
    builder.position_at_end(begin)
    chains = []
    for value in partial:
        phis = [builder.phi(plane.type) for plane in value]
        for phi, zero, plane in zip(phis, ops.zero, value):
            phi.add_incoming(zero, entry)
            phi.add_incoming(plane, resume)
        chains.append(phis)
    if tile.head:
        heads = [[words.load(words.at(arg["b"], j * tile.lanes))] for j in range(nv)]
        chains = [ops.add(chain, heads[j]) for (_, j), chain in zip(cells, chains)]
        arg["b"] = words.at(arg["b"], tile.head * tile.nr)
    chains = [ops.opened(chain) for chain in chains]

    rows = [builder.mul(arg["rsa"], I64(i)) for i in range(mr)]
    lines = range(0, nv * tile.lanes, LINE // tile.itemsize) if lie == STRIDED else ()  # of a row of B, to ask for

    def step(a, b, chains, target=None):  # chains += A[:, p] B[p, :]
        across = [[words.load(words.at(b, q * tile.nr + j * tile.lanes)) for q in planes] for j in range(nv)]
        for j, vectors in enumerate(across if target is not None else ()):
            words.store(vectors[0], words.at(target, j * tile.lanes))
        result = []
        for i in range(mr):
            down = [words.splat(builder.load(words.at(words.at(a, rows[i]), q * tile.mr), align=1)) for q in planes]
            result += [ops.step(down, across[j], chains[i * nv + j]) for j in range(nv)]
        return result

    if tile.kind.direct:  # chains and elements of C are stored alike
        partial = builder.icmp_signed("==", arg["stop"], I64(0))
        arg["to"], arg["rsto"] = (builder.select(partial, arg[t], arg[c]) for t, c in (("t", "c"), ("rst", "rsc")))

    def fetch(index):
        """The next tile of C comes nearer meanwhile, a row each turn: without it each tile begins and ends with a wait
        for L3 (n = 1024, f32: 95 % of the peak in the loops, then 98 %). Small products go down the rows and are done
        with them: it is this tile (4x512x512x64 NT, f32: 2.1 -> 1.65 ms)."""
        row = builder.select(builder.icmp_signed("<", index, I64(mr)), index, I64(mr - 1))
        to, rsto = ("to", "rsto") if tile.kind.direct else ("c", "rsc")
        following = words.at(arg[to], builder.mul(arg[rsto], row))
        for j in range(nv):
            away = j if lie == STRIDED else nv + j
            words.prefetch(words.at(following, away * tile.lanes), write=lie == STRIDED)

    def stream(index, steps):
        """Panels of B come nearer, as many lines as a turn reads."""
        place, turns = builder.and_(index, I64(STREAMS - 1)), builder.udiv(index, I64(STREAMS))
        along = builder.mul(turns, builder.mul(arg["pace"], I64(steps)))
        away = builder.add(arg["ahead"], builder.add(builder.mul(place, arg["gap"]), along))
        start = builder.gep(builder.bitcast(arg["b"], BYTES), [away])
        for line in range(0, steps * tile.nr * tile.itemsize, LINE):
            words.prefetch(builder.gep(start, [I64(line)]))

    copies, parts = lie == COPYING, len(chains[0])
    first = 2 + copies  # of the carried values, the chains'

    def turn(steps, fetches=False):
        def body(index, carried):
            a, b, target, chains = *carried[:2], carried[2] if copies else None, in_groups(carried[first:], parts)
            if fetches:
                fetch(index)
            if lie == STREAMED:
                stream(index, steps)
            for _ in range(steps):
                for j in lines:
                    away = builder.add(arg["ahead"], I64(j * tile.itemsize))
                    words.prefetch(builder.gep(builder.bitcast(b, BYTES), [away]))
                if copies:  # the next panel, to its end
                    words.prefetch(words.at(b, 2 * tile.nr - 1), level=2)
                chains = step(a, b, chains, target)
                a, b = words.at(a, arg["csa"]), words.at(b, arg["rsb"])
                target = words.at(target, tile.nr) if copies else None
            return [a, b, *[target] * copies, *_flat(chains)]

        return body

    carried, full = [arg["a"], arg["b"], *[arg.get("panel")] * copies, *_flat(chains)], mr == tile.mr
    # By 8 LLVM spills a chain where strides take registers, too: 100^3 of f32 takes 1.6 times as long.
    steps = NARROW if tile.narrow and lie != STRIDED else UNROLL
    unroll = max(1, steps * nv // tile.nv) if full else 1
    carried = loop(builder, builder.udiv(arg["kb"], I64(unroll)), carried, turn(unroll, full))
    if unroll > 1:
        carried = loop(builder, builder.urem(arg["kb"], I64(unroll)), carried, turn(1))
    chains = [ops.closed(chain) for chain in in_groups(carried[first:], parts)]
    _endings(builder, ops, arg, cells, chains, place)


def _flat(chains: list) -> list:
    return [plane for chain in chains for plane in chain]


def _endings(builder, ops, arg, cells, chains, place) -> None:
    """What the stops ask for; each returns."""
    plain, epilogue = (builder.function.append_basic_block(name) for name in ("plain", "epilogue"))
    builder.cbranch(builder.icmp_signed("==", arg["stop"], I64(2)), epilogue, plain)
    builder.position_at_end(plain)
    if ops.kind.direct:
        for (i, j), value in zip(cells, chains):
            ops.store(value, *place("to", i, j))
    else:
        with builder.if_else(builder.icmp_signed("==", arg["stop"], I64(0))) as (unfinished, finished):
            with unfinished:
                for (i, j), value in zip(cells, chains):
                    ops.store(value, *place("t", i, j))
            with finished:
                for (i, j), value in zip(cells, chains):
                    ops.write(value, *place("c", i, j))
    builder.ret_void()
    builder.position_at_end(epilogue)
    alpha, beta = ops.splat(arg["alpha"]), ops.splat(arg["beta"])
    for (i, j), value in zip(cells, chains):
        x = ops.read(*place("x", i, j))
        ops.write(ops.blend(beta, x, ops.scale(alpha, value)), *place("c", i, j))
    builder.ret_void()


@plain
def place(tile, lie, height, across):
    """Where the table has the micro-kernel for A and B that lie so, of so many rows and vectors across."""
    return (lie * (tile.mr + 1) + height) * (tile.nv + 1) + across


@functools.cache
def table(tile) -> Table:
    """A tile's micro-kernels. Fewer rows than the tile has go by any strides."""

    def of(at):
        row, nv = divmod(at, tile.nv + 1)
        lie, mr = divmod(row, tile.mr + 1)
        lie = lie if mr == tile.mr or lie > PACKED else STRIDED
        own = f"_{unit(tile.kind.a).name}" if tile.kind.way == UNIT else ""
        return f"ukernel{own}_{tile}_{mr}x{nv}{LIES[lie]}", functools.partial(_define, tile=tile, mr=mr, nv=nv, lie=lie)

    return Table(f"ukernels_{tile}", place(tile, len(LIES), 0, 0), of)


def every(tile, *lies: int) -> None:
    """Compile or load a tile's micro-kernels of every height and width (COPYING: the full one) for these layouts."""
    for lie in lies:
        for height in range(1, tile.mr + 1):
            for across in range(tile.nv if lie == COPYING else 1, tile.nv + 1):
                table(tile).supply(place(tile, lie, height, across))


@plain
def absent(tile, words, lie, height, n):
    """The place of a micro-kernel that `height` rows and n columns need and that is not in the table; or -1."""
    edge = n % tile.nr
    whole, rest = place(tile, lie, height, tile.nv), place(tile, lie, height, (edge + tile.lanes - 1) // tile.lanes)
    if n >= tile.nr and words[whole] == 0:
        return whole
    return rest if edge > 0 and words[rest] == 0 else -1


@plain
def absent_of(tile, words, lie, m, n):
    """The place of a micro-kernel that an m x n product, cut into tiles, needs and that is not in the table; or -1."""
    at = absent(tile, words, lie, tile.mr, n) if m >= tile.mr else -1
    return at if at >= 0 or m % tile.mr == 0 else absent(tile, words, lie, m % tile.mr, n)


known = words_of(table)


def _intrinsic(lie: int):
    """The micro-kernel for operands that lie so, of `height` <= tile.mr rows and `width` <= tile.nr columns."""
    own = lie == STREAMED  # what is asked for is the caller's to say

    def emit(context, builder, tile, arg):
        arg = arg | _known(tile, lie)
        ahead = {} if own else {"ahead": builder.mul(arg["rsb"], I64(APART * tile.itemsize))}
        across = builder.sdiv(builder.add(arg["width"], I64(tile.lanes - 1)), I64(tile.lanes))
        row = builder.add(arg["height"], I64(lie * (tile.mr + 1)))
        at = builder.add(builder.mul(row, I64(tile.nv + 1)), across)
        given = values(builder, kinds(tile, _spec(lie)), arg | ahead)
        call_routine(builder, known_table(context, builder, table, tile), at, given)

    arguments = _spec(lie) if own else _spec(lie).replace(" ahead:i", "")
    return on_tile(f"ukernel{LIES[lie]}", arguments, emit, "height:i")


# In panels rsb is ignored and, without a matrix unit, rsa and csa: the tile has them. To copy, rows of B are whole.
ukernel, ukernel_packed, ukernel_copying, ukernel_streamed = map(_intrinsic, (STRIDED, PACKED, COPYING, STREAMED))
