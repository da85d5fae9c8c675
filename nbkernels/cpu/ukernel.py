"""The micro-kernel: an mr x nr tile of C held in registers, C[i, j] <- chain of fma(A[i, p], B[p, j], .) over p.

One LLVM function per height 1..mr and per number of vectors across 1..nv, so that every edge has a kernel of its own;
lanes beyond the last column are masked where C and X are touched. An element of A is read as a scalar and spread over
a vector, through any two strides; a row of B is nv whole vectors (masked loads would cost 8 %: they take an FMA port).
The tile starts from zero or from a stored partial result and ends as a partial result or as the finished C, so an
element is one chain however k is cut (the library's fixed order).

    start   0: zero                       1: the partial result at t
    stop    0: store the chain at t       1: C = chain       2: C = fma(beta, x, alpha * chain)
"""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from ..jit.vector import ELEMENT, I64, VOID, Lanes, loop

# Rows of B to run ahead with prefetch: 8 rows of 128 bytes cover the L2 latency of ~15 cycles at 12 cycles a row.
AHEAD = 8
# name and kind of the arguments: p address, i integer, s scalar of the element type
ARGUMENTS = "a:p rsa:i csa:i b:p rsb:i kb:i t:p rst:i c:p rsc:i width:i start:i stop:i x:p rsx:i alpha:s beta:s"


def _unroll(tile, mr: int) -> int:
    """Steps of k per turn of the loop: the full tile fills the window, short tiles are cheap to compile instead."""
    return 4 if mr == tile.mr else 1


def _define(module: ir.Module, tile, mr: int, nv: int, packed: bool) -> ir.Function:
    """The LLVM function of the mr x nv tile; defined once per module. Packed: its strides of A and B are constants."""
    name = f"ukernel_{tile}_{mr}x{nv}" + "_packed" * packed
    if name in module.globals:
        return module.globals[name]
    element = ELEMENT[tile.dtype]
    kinds = {"p": element.as_pointer(), "i": I64, "s": element}
    spec = [item.split(":") for item in ARGUMENTS.split()]
    function = ir.Function(module, ir.FunctionType(VOID, [kinds[kind] for _, kind in spec]), name)
    function.linkage = "internal"
    function.attributes.add("noinline")
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    arg = dict(zip((n for n, _ in spec), function.args))
    if packed:  # no register and no addition for a row of A: 5 % at 12x32
        arg |= {"rsa": I64(1), "csa": I64(tile.mr), "rsb": I64(tile.nr)}
    lanes = Lanes(builder, tile.dtype, tile.lanes)
    cells = [(i, j) for i in range(mr) for j in range(nv)]
    masks = [lanes.mask(builder.sub(arg["width"], I64(j * tile.lanes))) for j in range(nv)]

    def address(matrix: str, i: int, j: int):
        row = lanes.at(arg[matrix], builder.mul(arg["rs" + matrix], I64(i)))
        return lanes.at(row, j * tile.lanes)

    entry, resume = builder.block, function.append_basic_block("resume")
    begin = function.append_basic_block("begin")
    builder.cbranch(builder.icmp_signed("==", arg["start"], I64(0)), begin, resume)
    builder.position_at_end(resume)
    partial = [lanes.load(address("t", i, j), masks[j]) for i, j in cells]
    builder.branch(begin)
    builder.position_at_end(begin)
    chain = []
    for value in partial:
        phi = builder.phi(lanes.type)
        phi.add_incoming(lanes.zero, entry)
        phi.add_incoming(value, resume)
        chain.append(phi)

    rows = [builder.mul(arg["rsa"], I64(i)) for i in range(mr)]

    def step(a, b, chain):  # chain += A[:, p] B[p, :]
        across = [lanes.load(lanes.at(b, j * tile.lanes)) for j in range(nv)]
        result = []
        for i in range(mr):
            down = lanes.splat(builder.load(lanes.at(a, rows[i]), align=1))
            result += [lanes.fma(down, across[j], chain[i * nv + j]) for j in range(nv)]
        return result

    partial = builder.icmp_signed("==", arg["stop"], I64(0))
    arg["to"], arg["rsto"] = (builder.select(partial, arg[t], arg[c]) for t, c in (("t", "c"), ("rst", "rsc")))

    def turn(steps):
        def body(index, carried):
            a, b, chain = carried[0], carried[1], carried[2:]
            # The next tile of C comes nearer meanwhile, a row each turn (the last one again and again): without it each
            # tile begins and ends with a wait for L3 (Zen 4, n = 1024, f32: 95 % of the peak in the loops, then 98 %).
            if packed and steps > 1:
                row = builder.select(builder.icmp_signed("<", index, I64(mr)), index, I64(mr - 1))
                following = lanes.at(arg["to"], builder.mul(arg["rsto"], row))
                for j in range(nv, 2 * nv):
                    lanes.prefetch(lanes.at(following, j * tile.lanes))
            for _ in range(steps):
                lanes.prefetch(lanes.at(b, builder.mul(arg["rsb"], I64(AHEAD))))
                chain = step(a, b, chain)
                a, b = lanes.at(a, arg["csa"]), lanes.at(b, arg["rsb"])
            return [a, b, *chain]

        return body

    unroll = _unroll(tile, mr)
    carried = [arg["a"], arg["b"], *chain]
    carried = loop(builder, builder.udiv(arg["kb"], I64(unroll)), carried, turn(unroll))
    if unroll > 1:
        carried = loop(builder, builder.urem(arg["kb"], I64(unroll)), carried, turn(1))
    chain = carried[2:]

    plain, epilogue = (function.append_basic_block(name) for name in ("plain", "epilogue"))
    builder.cbranch(builder.icmp_signed("==", arg["stop"], I64(2)), epilogue, plain)
    builder.position_at_end(plain)
    for (i, j), value in zip(cells, chain):
        lanes.store(value, address("to", i, j), masks[j])
    builder.ret_void()
    builder.position_at_end(epilogue)
    alpha, beta = lanes.splat(arg["alpha"]), lanes.splat(arg["beta"])
    for (i, j), value in zip(cells, chain):
        x = lanes.load(address("x", i, j), masks[j])
        lanes.store(lanes.fma(beta, x, builder.fmul(alpha, value)), address("c", i, j), masks[j])
    builder.ret_void()
    return function


def _emit(context, builder, signature, args, packed: bool):
    """Call the function for this height and width."""
    record, names = signature.args[0].tile, [item.split(":")[0] for item in ARGUMENTS.split()]
    height, width = args[1], args[2 + names.index("width")]
    pointer = ELEMENT[record.dtype].as_pointer()
    kinds = [item.split(":")[1] for item in ARGUMENTS.split()]
    values = [builder.inttoptr(v, pointer) if kind == "p" else v for v, kind in zip(args[2:], kinds)]
    done, bad = builder.append_basic_block("done"), builder.append_basic_block("unreachable")
    across = builder.sdiv(builder.add(width, I64(record.lanes - 1)), I64(record.lanes))
    choice = builder.add(builder.mul(height, I64(record.nv)), across)
    switch = builder.switch(choice, bad)
    for mr in range(1, record.mr + 1):
        for nv in range(1, record.nv + 1):
            block = builder.append_basic_block(f"call_{mr}x{nv}")
            switch.add_case(I64(mr * record.nv + nv), block)
            with builder.goto_block(block):
                builder.call(_define(builder.module, record, mr, nv, packed), values)
                builder.branch(done)
    builder.position_at_end(bad)
    builder.unreachable()
    builder.position_at_end(done)
    return context.get_dummy_value()


def _signature(tile):
    kinds = {"p": types.int64, "i": types.int64, "s": getattr(types, tile.tile.dtype)}
    return types.void(tile, types.int64, *[kinds[item.split(":")[1]] for item in ARGUMENTS.split()])


@intrinsic
def ukernel(typing, tile, height, a, rsa, csa, b, rsb, kb, t, rst, c, rsc, width, start, stop, x, rsx, alpha, beta):
    """Run the micro-kernel for `height` <= tile.mr rows and `width` <= tile.nr columns; addresses are int64."""
    return _signature(tile), lambda *emission: _emit(*emission, packed=False)


@intrinsic
def ukernel_packed(
    typing, tile, height, a, rsa, csa, b, rsb, kb, t, rst, c, rsc, width, start, stop, x, rsx, alpha, beta
):
    """The same for packed panels: rsa = 1, csa = tile.mr and rsb = tile.nr, whatever is given."""
    return _signature(tile), lambda *emission: _emit(*emission, packed=True)
