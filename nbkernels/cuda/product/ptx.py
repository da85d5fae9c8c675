"""Every PTX instruction of the product kernels, and the little LLVM around them.

Two kinds of function: an emitter takes llvmlite's builder and values, and writes one instruction; `primitive` turns an
emitter, or a function that calls several, into a function that kernels call. Addresses are whole numbers: 64 bits of
global memory, 32 of shared. Offsets are constants of the instruction, so that they cost nothing.

A copy and a barrier are side effects, and memory is what they touch: nothing moves across. Loads from shared memory are
side effects only, so that they stay in order among themselves while arithmetic moves; mma is neither.
"""

from __future__ import annotations

from llvmlite import ir
from numba.cuda import cgutils, types
from numba.cuda.extending import intrinsic
from numba.cuda.typing import signature

I32, I64, VOID = ir.IntType(32), ir.IntType(64), ir.VoidType()
REALS = {"float32": ir.FloatType(), "float64": ir.DoubleType()}
LLVM = {"r": I32, "l": I64, "f": ir.FloatType(), "d": ir.DoubleType()}
LETTER = {"float32": "f", "float64": "d", "int32": "r", "int64": "l"}  # of a word: how PTX passes it,
PTX = {"float32": "f32", "float64": "f64", "int32": "b32", "int64": "b64"}  # and names it
BYTES = {"float32": 4, "float64": 8, "int32": 4, "int64": 8}
ARRAY = "array"  # of primitive's parameters: a local array, of which the emitter gets a pointer to its first element


def primitive(result, *parameters):
    """A decorator: emit(builder, *values) becomes a function of kernels, of these types of Numba, or of ARRAY.

    Whole numbers of any width are taken, and cut or extended to the type.
    """

    def fit(context, builder, wanted, kind, value):
        if wanted == ARRAY:
            return context.make_array(kind)(context, builder, value=value).data
        return value if kind == wanted else context.cast(builder, value, kind, wanted)

    def made(emit):
        def generate(context, builder, signature, values):
            given = zip(parameters, signature.args, values)
            answer = emit(builder, *(fit(context, builder, *each) for each in given))
            return context.get_dummy_value() if result is types.none else answer

        def typed(*given):
            return signature(result, *given), generate

        names = ", ".join(f"x{i}" for i in range(len(parameters)))  # an intrinsic has as many parameters as it is given
        scope = {"typed": typed}
        exec(f"def {emit.__name__}(typing, {names}): return typed({names})", scope)
        return intrinsic(scope[emit.__name__])

    return made


def asm(builder, text: str, outs: str, ins: str, values, *, effect=False, memory=False, tied=()):
    """One instruction: $0... are the outs, then the ins, by LETTER; `tied` values are read where outs are written."""
    result = VOID if not outs else LLVM[outs] if len(outs) == 1 else ir.LiteralStructType([LLVM[c] for c in outs])
    constraints = [f"={c}" for c in outs] + list(ins) + [str(i) for i in range(len(tied))] + ["~{memory}"] * memory
    values = [*values, *tied]
    call = ir.InlineAsm(
        ir.FunctionType(result, [x.type for x in values]), text, ",".join(constraints), side_effect=effect or memory
    )
    return builder.call(call, values)


def parts(builder, answer, count: int) -> list:
    """The values that an instruction of several outs answers."""
    return [answer] if count == 1 else [builder.extract_value(answer, i) for i in range(count)]


def element(builder, array, i: int):
    """Pointer to element i of a local array."""
    return builder.gep(array, [ir.Constant(I64, i)])


def bits(builder, array, i: int):
    """Pointer to the lower 32 bits of element i of a local array of words."""
    return builder.bitcast(element(builder, array, i), I32.as_pointer())


def listed(first: int, count: int) -> str:
    """`{$4, $5}`"""
    return "{" + ", ".join(f"${first + i}" for i in range(count)) + "}"


def braces(first: int, count: int) -> str:
    """`{$4, $5}`; of one operand `$4`."""
    return f"${first}" if count == 1 else listed(first, count)


def wide(word: str, count: int) -> str:
    """`v4.f32`; of one `f32`."""
    return PTX[word] if count == 1 else f"v{count}.{PTX[word]}"


# Shared memory


def load_shared(builder, word: str, count: int, address, offset: int) -> list:
    """`count` neighbouring words."""
    text = f"ld.shared.{wide(word, count)} {braces(0, count)}, [${count}+{offset}];"
    return parts(builder, asm(builder, text, LETTER[word] * count, "r", [address], effect=True), count)


def store_shared(builder, word: str, address, offset: int, values) -> None:
    count = len(values)
    text = f"st.shared.{wide(word, count)} [$0+{offset}], {braces(1, count)};"
    asm(builder, text, "", "r" + LETTER[word] * count, [address, *values], memory=True)


@intrinsic
def shared_address(typing, array):
    """The 32-bit address of an array in shared memory."""

    def generate(context, builder, signature, values):
        data = context.make_array(array)(context, builder, value=values[0]).data
        data = builder.addrspacecast(data, ir.PointerType(data.type.pointee, 3))
        return builder.trunc(builder.ptrtoint(data, I64), I32)

    return signature(types.uint32, array), generate


@intrinsic
def address(typing, pointer):
    """The address that a pointer among a kernel's parameters holds."""

    def generate(context, builder, signature, values):
        return builder.ptrtoint(values[0], I64)

    return (signature(types.int64, pointer), generate) if isinstance(pointer, types.CPointer) else None


def load_matrices(builder, address, offset: int, transposed: bool) -> list:
    """Four 8 x 8 matrices of 16 bits: lane l gives the address of row l % 8 of matrix l // 8, and gets two neighbours
    of row l // 4 of each, or of column l // 4."""
    trans = ".trans" if transposed else ""
    text = f"ldmatrix.sync.aligned.m8n8.x4{trans}.shared.b16 {braces(0, 4)}, [$4+{offset}];"
    return parts(builder, asm(builder, text, "rrrr", "r", [address], effect=True), 4)


def store_narrow(builder, size: int, address, offset: int, bits) -> None:
    """1 or 2 bytes of a register into shared memory."""
    asm(builder, f"st.shared.b{8 * size} [$0+{offset}], $1;", "", "rr", [address, bits], memory=True)


def widened(builder, dtype: str, word, bits):
    """The number of a dtype of 1 or 2 bytes, the lowest of a register whose others are 0, as a word."""
    if dtype == "bfloat16":
        return builder.bitcast(builder.shl(bits, ir.Constant(I32, 16)), word)
    if dtype == "float16":
        text = "{ .reg .b16 half; cvt.u16.u32 half, $1; cvt.f32.f16 $0, half; }"
        return asm(builder, text, "f", "r", [bits])
    if dtype == "bool":
        return builder.zext(builder.icmp_unsigned("!=", bits, ir.Constant(I32, 0)), word)
    exact = builder.trunc(bits, ir.IntType(16 if dtype == "int16" else 8))
    return builder.zext(exact, word) if dtype == "uint8" else builder.sext(exact, word)


def tfloat32(builder, word):
    """A float32 rounded to 10 bits behind the point, halves away from zero."""
    return asm(builder, "cvt.rna.tf32.f32 $0, $1;", "r", "r", [word])


# Asynchronous copies from global to shared memory, of 4, 8 or 16 bytes


def copy_async(builder, size: int, target, offset: int, source, count=None) -> None:
    """`size` bytes, of which `count` are read and the others zeros; with 0 of them the source may be any address."""
    how = "cg" if size == 16 else "ca"
    text = f"cp.async.{how}.shared.global [$0+{offset}], [$1], {size}{'' if count is None else ', $2'};"
    given = [target, source] if count is None else [target, source, count]
    asm(builder, text, "", "rlr"[: len(given)], given, memory=True)


@primitive(types.none)
def commit(builder):
    """The copies since the last commit become a group."""
    asm(builder, "cp.async.commit_group;", "", "", (), memory=True)


def waiting(groups: int):
    """wait(): until no more than so many groups of copies are on their way."""

    @primitive(types.none)
    def wait(builder):
        asm(builder, f"cp.async.wait_group {groups};", "", "", (), memory=True)

    return wait


# Global memory


def load_global(builder, word: str, count: int, address, offset: int) -> list:
    text = f"ld.global.{wide(word, count)} {braces(0, count)}, [${count}+{offset}];"
    return parts(builder, asm(builder, text, LETTER[word] * count, "l", [address], memory=True), count)


def load_narrow(builder, size: int, address, inside, space: str = ".global"):
    """1 or 2 bytes, the others of the register 0; all 0, and nothing read, unless each pair (number, constant) of
    `inside` is in decreasing order. It stays where it is, so that it is under way early."""
    load = f"ld{space}.u{8 * size} $0, [$1];"
    if inside:
        tests = [f"setp.gt{'.and' * (i > 0)}.s32 inside, ${2 + i}, {least}{', inside' * (i > 0)};"
                 for i, (_, least) in enumerate(inside)]  # fmt: skip
        load = " ".join(["{ .reg .pred inside;", *tests, "mov.b32 $0, 0; @inside", load, "}"])
    values = [number for number, _ in inside]
    return asm(builder, load, "r", "l" + "r" * len(values), [address, *values], effect=True)


def store_global(builder, word: str, address, offset: int, values) -> None:
    count = len(values)
    text = f"st.global.{wide(word, count)} [$0+{offset}], {braces(1, count)};"
    asm(builder, text, "", "l" + LETTER[word] * count, [address, *values], memory=True)


# Arithmetic


def fma(builder, a, b, c):
    """a*b + c, rounded once; of whole numbers modulo 2**bits."""
    if isinstance(c.type, ir.IntType):
        letter = "r" if c.type == I32 else "l"
        return asm(builder, f"mad.lo.s{c.type.width} $0, $1, $2, $3;", letter, letter * 3, [a, b, c])
    name = "llvm.fma.f32" if c.type == REALS["float32"] else "llvm.fma.f64"
    function = cgutils.get_or_insert_function(builder.module, ir.FunctionType(c.type, [c.type] * 3), name)
    return builder.call(function, [a, b, c])


def moved(builder, address, step):
    """address + step, which the compiler takes as it is: multiples of a step that does not change, which it would
    compute before a loop and keep, fill the registers."""
    return asm(builder, "add.s64 $0, $1, $2;", "l", "ll", [address, step])


def negative(builder, x):
    """-x of a float. libNVVM knows no fneg."""
    return builder.fsub(ir.Constant(x.type, -0.0), x)


def add(builder, a, b):
    return (builder.add if isinstance(a.type, ir.IntType) else builder.fadd)(a, b)


def mma(builder, shape: str, kinds: str, letters: str, a, b, c) -> list:
    """C + A B of a warp, D in the place of C: `shape` as m16n8k4, `kinds` of D, A, B, C as f64.f64.f64.f64, `letters`
    of C's registers and of A's and B's."""
    (of_c, of_ab), count, end = letters, len(c), len(c) + len(a)
    to, first, second = (listed(*each) for each in ((0, count), (count, len(a)), (end, len(b))))
    text = f"mma.sync.aligned.{shape}.row.col.{kinds} {to}, {first}, {second}, {to};"
    return parts(builder, asm(builder, text, of_c * count, of_ab * (len(a) + len(b)), [*a, *b], tied=c), count)


def clamp(builder, x, low: int, high: int):
    """x, not below low and not above high, of 32 bits with a sign."""
    for name, bound in (("<", low), (">", high)):
        bound = ir.Constant(I32, bound)
        x = builder.select(builder.icmp_signed(name, x, bound), bound, x)
    return x


@primitive(types.int64, types.int64)
def again(builder, value):
    """again(x): x, of which the compiler does not know that it is the same each time. What is computed from it in a
    loop is computed there, and takes no register beside the loop."""
    return asm(builder, "mov.b64 $0, $1;", "l", "l", [value], effect=True)
