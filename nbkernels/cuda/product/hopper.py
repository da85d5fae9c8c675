"""Instructions of compute capability 9.0: barriers in shared memory, bulk tensor copies, and wgmma, as PTX.

An address of shared memory is 32 bits, a barrier is known by its address. Integers of any width are taken and cut to
the width that the instruction wants, so that kernels count in plain Python numbers.
"""

from __future__ import annotations

import functools
import inspect

from llvmlite import ir
from numba.cuda import cgutils, types
from numba.cuda.datamodel import models
from numba.cuda.extending import intrinsic, register_model
from numba.cuda.typing import signature

I32, I64 = ir.IntType(32), ir.IntType(64)
REGISTERS = {"r": I32, "l": I64, "f": ir.FloatType()}
NUMBERS = {"": types.none, "r": types.uint32, "l": types.uint64, "f": types.float32}


def emit(builder, text: str, inputs: str, values, outputs: str = "", tied=(), ordered: bool = True):
    """Append the PTX `text`; $0, $1 ... are first the outputs, then the inputs, by their letters of REGISTERS.

    `tied` values enter in the registers of the first outputs. Ordered text keeps its place among reads and writes of
    memory. All of it is convergent: the compiler neither duplicates it nor moves it under a condition.
    """
    kinds = [REGISTERS[letter] for letter in outputs]
    result = ir.VoidType() if not kinds else kinds[0] if len(kinds) == 1 else ir.LiteralStructType(kinds)
    values = [_cut(builder, value, REGISTERS[letter]) for value, letter in zip(values, inputs, strict=True)] + [*tied]
    clobbers = ["~{memory}"] if ordered else []
    constraints = [*("=" + letter for letter in outputs), *inputs, *map(str, range(len(tied))), *clobbers]
    function = ir.FunctionType(result, [value.type for value in values])
    asm = ir.InlineAsm(function, text, ",".join(constraints), side_effect=ordered)
    return builder.call(asm, values, attrs=("convergent",))


def _cut(builder, value, wanted):
    if not isinstance(wanted, ir.IntType) or value.type == wanted:
        return value
    return builder.trunc(value, wanted) if value.type.width > wanted.width else builder.zext(value, wanted)


def arguments(*names: str):
    """Decorate a definition that takes *values: Numba is to see so many arguments by these names."""

    def decorate(define):
        places = [inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in ("context", *names)]
        define.__signature__ = inspect.Signature(places)
        return intrinsic(define)

    return decorate


def instruction(text: str, inputs: str = "", output: str = "", ordered: bool = True, result=None):
    """An intrinsic of one piece of PTX: an argument for each letter of `inputs`, a result where `output` is one."""

    @arguments(*(f"x{place}" for place in range(len(inputs))))
    def call(context, *given):
        def generate(context, builder, signature, values):
            result = emit(builder, text, inputs, values, output, ordered=ordered)
            return result if output else context.get_dummy_value()

        return signature(result or NUMBERS[output], *given), generate

    return call


# Barriers in shared memory (mbarrier): `wait` returns when the phase of this parity is complete.
barrier_init = instruction("mbarrier.init.shared::cta.b64 [$0], $1;", "rr")
barrier_fence = instruction("fence.mbarrier_init.release.cluster;")
barrier_expect = instruction("mbarrier.arrive.expect_tx.shared::cta.b64 _, [$0], $1;", "rr")
barrier_arrive = instruction("mbarrier.arrive.shared::cta.b64 _, [$0];", "r")
barrier_wait = instruction(
    "{ .reg .pred done; AGAIN_${:uid}: mbarrier.try_wait.parity.shared::cta.b64 done, [$0], $1; "
    "@!done bra AGAIN_${:uid}; }",
    "rr",
)

# Bulk tensor copies (TMA): boxes of a tensor map between global and shared memory, coordinates innermost first.
load_box = instruction(
    "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [$0], [$1, {$3, $4, $5}], [$2];",
    "rlrrrr",
)
store_box = instruction("cp.async.bulk.tensor.3d.global.shared::cta.tile.bulk_group [$0, {$2, $3, $4}], [$1];", "lrrrr")
store_commit = instruction("cp.async.bulk.commit_group;")
prefetch_map = instruction("prefetch.tensormap [$0];", "l")
publish = instruction("fence.proxy.async.shared::cta;")  # writes to shared memory are visible to bulk copies

warp_sync = instruction("bar.warp.sync 0xffffffff;")
threads_sync = instruction("bar.sync $0, $1;", "rr")  # number of the barrier (0 is syncthreads), threads that take part


@functools.cache
def multiply_done(ahead: int):
    """multiply_done(): all groups of multiplications but the last `ahead`."""
    return instruction(f"wgmma.wait_group.sync.aligned {ahead};")


@functools.cache
def store_read(pending: int):
    """store_read(): all stores but the last `pending` groups have read their shared memory."""
    return instruction(f"cp.async.bulk.wait_group.read {pending};")


@functools.cache
def keep_registers(count: int, more: bool):
    """keep(): each thread of the warpgroup goes on with so many registers, `more` than at launch or fewer."""
    return instruction(f"setmaxnreg.{'inc' if more else 'dec'}.sync.aligned.u32 {count};")


@intrinsic
def shared_address(context, array):
    def generate(context, builder, signature, values):
        data = context.make_array(signature.args[0])(context, builder, value=values[0]).data
        byte = ir.IntType(8)
        local = builder.addrspacecast(builder.bitcast(data, byte.as_pointer()), byte.as_pointer(3))
        return builder.trunc(builder.ptrtoint(local, I64), I32)

    return signature(types.uint32, array), generate


class TensorMapType(types.Type):
    """A tensor map among a kernel's parameters: 128 bytes, known to the kernel by their address."""

    def __init__(self):
        super().__init__(name="TensorMap")


tensor_map = TensorMapType()
_BYTES = ir.ArrayType(I64, 16)


@register_model(TensorMapType)
class _TensorMapModel(models.PrimitiveModel):
    def __init__(self, manager, kind):
        super().__init__(manager, kind, _BYTES.as_pointer())


@intrinsic
def map_address(context, tensormap):
    """Where a tensor map is, for bulk copies; its parameter is marked as the 128 constant bytes themselves."""

    def generate(context, builder, signature, values):
        function, module = builder.function, builder.module
        maps = [place for place, each in enumerate(function.args) if each.type == _BYTES.as_pointer()]
        if "byval " not in function.args[maps[0]].attributes:
            for place in maps:
                set.add(function.args[place].attributes, "byval ")  # as LLVM 7 writes it, which llvmlite does not know
                function.args[place].attributes.align = 64
            # Places count from 1; the first argument, where a device function returns, is none of the kernel's.
            places = module.add_metadata([I32(place) for place in maps])
            mark = module.add_metadata([function, ir.MetaDataString(module, "grid_constant"), places])
            cgutils.get_or_insert_named_metadata(module, "nvvm.annotations").add(mark)
        return builder.ptrtoint(values[0], I64)

    return signature(types.uint64, tensormap), generate


def registers(context, builder, signature, values, first: int, count: int):
    """Pointers to elements first, first+1 ... of the local array that is an intrinsic's first argument."""
    data = context.make_array(signature.args[0])(context, builder, value=values[0]).data
    return [builder.gep(data, [I64(first + place)]) for place in range(count)]


@functools.cache
def multiplier(width: int, dtypes: tuple, steps: tuple, a_transposed: bool = False, b_transposed: bool = False):
    """multiply(sums, a, b, adds): sums += A B over the wgmmas of one stage, in one group; where adds is 0, sums = A B.

    64 x `width` sums a warpgroup, width / 2 a thread. `steps` lists how far into the operands of descriptors a and b
    each instruction reaches, in units of 16 bytes; transposed operands are contiguous along m or n instead of k.
    """
    dtype, whole, count = dtypes[0], dtypes[0] in ("s8", "u8"), width // 2
    depth, letter = {"f16": 16, "bf16": 16, "tf32": 8}.get(dtype, 32), "r" if whole else "f"
    ending = "" if whole else ", 1, 1" if dtype == "tf32" else f", 1, 1, {int(a_transposed)}, {int(b_transposed)}"
    shape = f"m64n{width}k{depth}.{'s32' if whole else 'f32'}.{'.'.join(dtypes)}"
    held = ", ".join(f"${place}" for place in range(count))
    a, b, adds = f"${count}", f"${count + 1}", f"${count + 2}"
    lines = [
        "{ .reg .pred adds, always; .reg .b64 a, b;",
        f"setp.ne.b32 adds, {adds}, 0; setp.eq.b64 always, {a}, {a};",
        "wgmma.fence.sync.aligned;",
    ]
    for step, (into_a, into_b) in enumerate(steps):
        lines += [f"add.s64 a, {a}, {into_a};", f"add.s64 b, {b}, {into_b};"]
        which = "always" if step else "adds"
        lines += [f"wgmma.mma_async.sync.aligned.{shape} {{{held}}}, a, b, {which}{ending};"]
    text = " ".join([*lines, "wgmma.commit_group.sync.aligned; }"])

    @intrinsic
    def multiply(context, sums, a, b, adds):
        def generate(context, builder, signature, values):
            places = registers(context, builder, signature, values, 0, count)
            before = [builder.load(place) for place in places]
            after = emit(builder, text, "llr", values[1:], letter * count, tied=before)
            for index, place in enumerate(places):
                builder.store(builder.extract_value(after, index), place)
            return context.get_dummy_value()

        return signature(types.none, sums, a, b, adds), generate

    return multiply


def piecewise(text: str, letter: str, count: int, pieces: int):
    """call(sums, piece, at, alpha): PTX over the `count` sums of a piece, $0, $1 ..., an address and a factor.

    The piece is a number in a kernel and a constant in each branch here, so that sums stay in registers.
    """

    @intrinsic
    def call(context, sums, piece, at, alpha):
        def generate(context, builder, signature, values):
            end = builder.append_basic_block()
            choice = builder.switch(values[1], end)
            for number in range(pieces):
                with builder.goto_block(block := builder.append_basic_block()):
                    places = registers(context, builder, signature, values, number * count, count)
                    held = [builder.load(place) for place in places]
                    emit(builder, text, letter * count + "r" + letter, [*held, *values[2:]])
                    builder.branch(end)
                choice.add_case(ir.Constant(values[1].type, number), block)
            builder.position_at_end(end)
            return context.get_dummy_value()

        return signature(types.none, sums, piece, at, alpha), generate

    return call


@functools.cache
def shared_word(word):
    """read(address): a number of 32 bits in shared memory."""
    return instruction("ld.shared.b32 $0, [$1];", "r", "f" if word == types.float32 else "r", result=word)


# store_bfloat16(address, value): in global memory, rounded to nearest even.
store_bfloat16 = instruction("{ .reg .b16 half; cvt.rn.bf16.f32 half, $1; st.global.b16 [$0], half; }", "lf")


@functools.cache
def waiting_sums(letter: str, count: int, apart: int):
    """put(sums, at): to global memory, 16 bytes and the next `apart` behind; get(sums, at), add(sums, at): from it."""
    plus = "fadd" if letter == "f" else "add"

    @intrinsic
    def put(context, sums, at):
        def generate(context, builder, signature, values):
            held = [builder.load(place) for place in registers(context, builder, signature, values, 0, count)]
            for first in range(0, count, 4):
                text = f"st.global.v4.b32 [$4+{first // 4 * apart}], {{$0, $1, $2, $3}};"
                emit(builder, text, letter * 4 + "l", [*held[first : first + 4], values[1]])
            return context.get_dummy_value()

        return signature(types.none, sums, at), generate

    def taking(adds):
        @intrinsic
        def take(context, sums, at):
            def generate(context, builder, signature, values):
                places = registers(context, builder, signature, values, 0, count)
                for first in range(0, count, 4):
                    text = f"ld.global.v4.b32 {{$0, $1, $2, $3}}, [$4+{first // 4 * apart}];"
                    waiting = emit(builder, text, "l", [values[1]], letter * 4)
                    for part, place in enumerate(places[first : first + 4]):
                        total = builder.extract_value(waiting, part)
                        total = getattr(builder, plus)(total, builder.load(place)) if adds else total
                        builder.store(total, place)
                return context.get_dummy_value()

            return signature(types.none, sums, at), generate

        return take

    return put, taking(False), taking(True)
