"""Stacks of products whose rows are an even number of vectors, or nearly: C[t] = A[t] @ B[t], from operands in place.

Loops of 16 steps, a call for each tile, spend half of the time between them. Here tiles of ROWS rows by two vectors
follow each other without a call, STEPS steps without a branch, so that the next tile's chains start while these end.
4 x 2 chains are what hides a latency of four cycles at two a cycle; 6 x 2 would load less, but leave rows over. The
last tile of a row or column ends with it, over some of the one before, with the same bits.

Zen 3, one thread, us, before and so: 100x16x16x16 of f32 13 and 11, f64 29 and 22, 20x32x32x32 18 and 15, 42 and 30,
10000x8x8x8 of f64 872 and 367, 10000x16x16x16 of f32 1652 and 1352, f64 3237 and 2869, 64x64x64x64 of f32 433 and 358;
one product 64x64x64 of f32 8.3 and 6.9, 32x32x32 of f64 3.2 and 2.4; 31x31x31 of f32 3.2 and 2.5, f64 5.1 and 3.5,
61x61x61 of f32 10.5 and 8.1, 100x13x13x13 of f64 49 and 27, 100x7x15x9 28 and 11.
"""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from ...jit.cache import jit
from ...jit.vector import ELEMENT, I64, LINE, VOID, Lanes, loop, opaque

ROWS, STEPS = 4, 8
EACH = 4  # steps between two lines of each matrix asked for: all of 16x16x16, and more of what is larger
# Bytes of A and B that stay in 32 KiB of L1 as they are needed (one thread, us, by one_block and so: 80x80x80 of f32,
# 50 KiB, 658 and 531, 96x96x96, 72 KiB, 1071 and 1026, 64x64x64 of f64, 64 KiB, 909 and 1065).
NEAR = 56 << 10
ARGUMENTS = "count m n k a sa step b sb rsb c sc rsc".split()


@jit(forceinline=True)
def suits(tile, m, n, k, rsa, csa):
    """Whether the products of a stack come here, if nothing is added to them and rows of C are contiguous. The last
    tile of a row is worth it if more than a vector of it is new."""
    near, rest = (m * k + k * n) * tile.itemsize <= NEAR, n % tile.nr
    fits = m >= ROWS and k >= STEPS and n >= tile.nr and (rest == 0 or rest > tile.lanes)
    return tile.narrow and fits and near and (rsa == 1 or csa == 1)


def _define(module: ir.Module, tile, upright: bool, ahead: bool, odd: bool) -> ir.Function:
    """The LLVM function, defined once per module. A has contiguous rows, `step` apart, or `upright` columns. `ahead`:
    it asks for the next product's lines on the way. `odd`: something is left of m, n or k."""
    name = f"even_{tile.dtype}_v{tile.lanes}" + "_upright" * upright + "_ahead" * ahead + "_odd" * odd
    if name in module.globals:
        return module.globals[name]
    pointer = ELEMENT[tile.dtype].as_pointer()
    kinds = [pointer if name in "abc" else I64 for name in ARGUMENTS]
    function = ir.Function(module, ir.FunctionType(VOID, kinds), name)
    function.linkage = "linkonce_odr"
    function.attributes.add("noinline")
    function.attributes.add("optsize")  # loops are unrolled here, as far as they are to be
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    arg = dict(zip(ARGUMENTS, function.args))
    lanes, vectors = Lanes(builder, tile.dtype, tile.lanes), range(tile.nv)
    apart = [I64(0), arg["step"], builder.shl(arg["step"], I64(1)), opaque(builder, builder.mul(arg["step"], I64(3)))]

    def turn(count):
        """`count` steps: C += A[:, p:p+count] B[p:p+count]."""

        def body(index, carried):
            (a, b), asks, chains = carried[:2], carried[2:5], carried[5:]
            for p in range(count):
                if ahead and p % EACH == EACH - 1:
                    for matrix, line in zip("abc", asks):
                        lanes.prefetch(line, write=matrix == "c")
                    asks = [lanes.at(line, LINE // tile.itemsize) for line in asks]
                across = [lanes.load(lanes.at(b, j * tile.lanes)) for j in vectors]
                places = [lanes.at(a, i) if upright else lanes.at(lanes.at(a, apart[i]), p) for i in range(ROWS)]
                down = [lanes.splat(builder.load(place, align=1)) for place in places]
                chains = [lanes.fma(down[i], across[j], chains[i * tile.nv + j]) for i in range(ROWS) for j in vectors]
                b = lanes.at(b, arg["rsb"])
                a = lanes.at(a, arg["step"]) if upright else a
                # LLVM would load a row's elements for all steps at once, and spill them: 100x16x16x16 of f32 18 us.
                builder.asm(ir.FunctionType(VOID, []), "", "~{memory}", [], True)
            return [a if upright else lanes.at(a, count), b, *asks, *chains]

        return body

    def block(b):
        """A tile, all of k."""

        def body(index, carried):
            (a, c), asks = carried[:2], carried[2:]
            state = [a, b, *asks, *[lanes.zero] * (ROWS * tile.nv)]
            state = loop(builder, builder.udiv(arg["k"], I64(STEPS)), state, turn(STEPS))
            if odd:
                state = loop(builder, builder.urem(arg["k"], I64(STEPS)), state, turn(1))
            row = c
            for i in range(ROWS):
                for j in vectors:
                    lanes.store(state[5 + i * tile.nv + j], lanes.at(row, j * tile.lanes))
                row = lanes.at(row, arg["rsc"])
            a = lanes.at(a, ROWS) if upright else lanes.at(a, builder.mul(arg["step"], I64(ROWS)))
            return [a, row, *state[2:5]]

        return body

    def product(t, carried):
        a, b, c = carried
        following = [lanes.at(base, arg["s" + matrix]) for matrix, base in zip("abc", carried)]

        def panel(j, carried):
            (b, c), asks = carried[:2], carried[2:]
            state = loop(builder, builder.udiv(arg["m"], I64(ROWS)), [a, c, *asks], block(b))
            if not odd:
                return [lanes.at(b, tile.nr), lanes.at(c, tile.nr), *state[2:]]
            left = builder.urem(arg["m"], I64(ROWS))
            with builder.if_then(builder.icmp_signed(">", left, I64(0))):
                back = builder.sub(left, I64(ROWS))
                start = lanes.at(state[0], back if upright else builder.mul(arg["step"], back))
                block(b)(None, [start, lanes.at(state[1], builder.mul(arg["rsc"], back)), *state[2:]])
            ahead_by = builder.select(builder.icmp_signed("==", j, before_last), last_by, I64(tile.nr))
            return [lanes.at(b, ahead_by), lanes.at(c, ahead_by), *state[2:]]

        loop(builder, panels, [b, c, *following], panel)
        return following

    panels = builder.udiv(builder.add(arg["n"], I64(tile.nr - 1)), I64(tile.nr))
    before_last = builder.sub(panels, I64(2))
    last_by = builder.sub(arg["n"], builder.mul(I64(tile.nr), builder.sub(panels, I64(1))))
    loop(builder, arg["count"], [arg[matrix] for matrix in "abc"], product)
    builder.ret_void()
    return function


def _emit(context, builder, signature, args, upright, ahead):
    """Call the function for an A that lies so; `ahead` is a number, or None where nothing follows."""
    record, pointer = signature.args[0].tile, ELEMENT[signature.args[0].tile.dtype].as_pointer()
    arg = dict(zip(ARGUMENTS, args[-len(ARGUMENTS) :]))
    values = [builder.inttoptr(value, pointer) if name in "abc" else value for name, value in arg.items()]
    m, n, k = (builder.urem(arg[size], I64(by)) for size, by in (("m", ROWS), ("n", record.nr), ("k", STEPS)))

    def each(asked, which):
        """Call the function for the answers so far and those to the questions that are left."""
        if not asked:
            builder.call(_define(builder.module, record, *which), values)
        elif asked[0] is None:
            each(asked[1:], [*which, False])
        else:
            with builder.if_else(builder.icmp_signed("!=", asked[0], I64(0))) as (yes, no):
                with yes:
                    each(asked[1:], [*which, True])
                with no:
                    each(asked[1:], [*which, False])

    each([upright, ahead, builder.or_(m, builder.or_(n, k))], [])
    return context.get_dummy_value()


@intrinsic
def even(typing, tile, ahead, upright, count, m, n, k, a, sa, step, b, sb, rsb, c, sc, rsc):
    """Run `count` products, of n columns as `suits` says; addresses are int64."""
    return types.void(tile, *[types.int64] * 15), lambda *emission: _emit(
        *emission, upright=emission[-1][2], ahead=emission[-1][1]
    )


@intrinsic
def even_near(typing, tile, upright, count, m, n, k, a, sa, step, b, sb, rsb, c, sc, rsc):
    """The same where nothing is to be asked for."""
    return types.void(tile, *[types.int64] * 14), lambda *emission: _emit(
        *emission, upright=emission[-1][1], ahead=None
    )
