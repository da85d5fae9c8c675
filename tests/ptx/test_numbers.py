"""Arithmetic of the PTX interpreter (tests/ptx): whole numbers against Python's, floats against exact ones."""

import itertools

import numpy as np
import pytest

from tests import reference
from tests.compare import same_bits
from tests.ptx.programs import each

WORDS = [0, 1, 2, 5, 31, 32, 255, 256, 65535, 1 << 31, (1 << 31) + 7, (1 << 32) - 1, 0x12345678, 0xDEADBEEF]


def signed(x, bits=32):
    x &= (1 << bits) - 1
    return x - (1 << bits) if x >> bits - 1 else x


def toward_zero(a, b):
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


INTEGERS = {
    "add.s32 %r9, %r1, %r2;": lambda a, b: a + b,
    "sub.u32 %r9, %r1, %r2;": lambda a, b: a - b,
    "mul.lo.s32 %r9, %r1, %r2;": lambda a, b: a * b,
    "mul.hi.u32 %r9, %r1, %r2;": lambda a, b: a * b >> 32,
    "mul.hi.s32 %r9, %r1, %r2;": lambda a, b: signed(a) * signed(b) >> 32,
    "mul.wide.s16 %r9, %h1, %h2;": lambda a, b: signed(a, 16) * signed(b, 16),
    "mad.lo.u32 %r9, %r1, %r2, %r2;": lambda a, b: a * b + b,
    "div.u32 %r9, %r1, %r2;": lambda a, b: a // b if b else -1,
    "rem.u32 %r9, %r1, %r2;": lambda a, b: a % b if b else a,
    "div.s32 %r9, %r1, %r2;": lambda a, b: toward_zero(signed(a), signed(b)) if b else -1,
    "rem.s32 %r9, %r1, %r2;": lambda a, b: signed(a) - toward_zero(signed(a), signed(b)) * signed(b) if b else a,
    "shl.b32 %r9, %r1, %r2;": lambda a, b: a << b if b < 32 else 0,
    "shr.u32 %r9, %r1, %r2;": lambda a, b: a >> b if b < 32 else 0,
    "shr.s32 %r9, %r1, %r2;": lambda a, b: signed(a) >> min(b, 31),
    "min.s32 %r9, %r1, %r2;": lambda a, b: min(signed(a), signed(b)),
    "max.u32 %r9, %r1, %r2;": lambda a, b: max(a, b),
    "and.b32 %r9, %r1, %r2;": lambda a, b: a & b,
    "xor.b32 %r9, %r1, %r2;": lambda a, b: a ^ b,
    "not.b32 %r9, %r1;": lambda a, b: ~a,
    "neg.s32 %r9, %r1;": lambda a, b: -a,
    "abs.s32 %r9, %r1;": lambda a, b: abs(signed(a)),
    "popc.b32 %r9, %r1;": lambda a, b: bin(a).count("1"),
    "clz.b32 %r9, %r1;": lambda a, b: 32 - a.bit_length(),
    "brev.b32 %r9, %r1;": lambda a, b: int(f"{a:032b}"[::-1], 2),
    "bfind.u32 %r9, %r1;": lambda a, b: a.bit_length() - 1,
    "bfe.u32 %r9, %r1, 4, 9;": lambda a, b: a >> 4 & 511,
    "bfe.s32 %r9, %r1, 4, 9;": lambda a, b: signed((a >> 4 & 511) << 23) >> 23,
    "bfi.b32 %r9, %r1, %r2, 8, 5;": lambda a, b: b & ~(31 << 8) | (a & 31) << 8,
    "prmt.b32 %r9, %r1, %r2, 0x7a20;":
        lambda a, b: a & 255 | (a >> 16 & 255) << 8 | (255 if a >> 23 & 1 else 0) << 16 | (b >> 24) << 24,
    "lop3.b32 %r9, %r1, %r2, %r1, 0x96;": lambda a, b: a ^ b ^ a,
    "shf.l.wrap.b32 %r9, %r1, %r2, 5;": lambda a, b: (b << 32 | a) << 5 >> 32,
    "shf.r.clamp.b32 %r9, %r1, %r2, 40;": lambda a, b: b,
    "dp4a.u32.s32 %r9, %r1, %r2, %r1;":
        lambda a, b: a + sum((a >> s & 255) * signed(b >> s & 255, 8) for s in (0, 8, 16, 24)),
    "setp.lt.s32 %p1, %r1, %r2; selp.b32 %r9, 7, %r1, %p1;": lambda a, b: 7 if signed(a) < signed(b) else a,
    "setp.hi.and.u32 %p1|%p2, %r1, %r2, %p0; selp.u32 %r9, 1, 0, %p2;": lambda a, b: 0,
    "set.ge.u32.u32 %r9, %r1, %r2;": lambda a, b: -1 if a >= b else 0,
    "cvt.s32.s8 %r9, %r1;": lambda a, b: signed(a, 8),
    "cvt.u32.u16 %r9, %h1;": lambda a, b: a & 65535,
    "cvt.sat.u8.u32 %r9, %r1;": lambda a, b: min(a, 255),
    "mov.b32 {%h3, %h4}, %r1; mov.b32 %r9, {%h4, %h3};": lambda a, b: a >> 16 | a << 16,
    "add.cc.u32 %r8, %r1, %r2; addc.u32 %r9, 0, 0;": lambda a, b: a + b >> 32,
    "sub.cc.u32 %r8, %r1, %r2; subc.u32 %r9, 0, 0;": lambda a, b: -(a < b),
    "mad.lo.cc.u32 %r8, %r1, %r2, %r1; madc.hi.u32 %r9, %r1, %r2, 3;": lambda a, b: (a * b + a >> 32) + 3,
}  # fmt: skip


@pytest.mark.parametrize("text", INTEGERS)
def test_whole_numbers(text):
    pairs = list(itertools.product(WORDS, WORDS))
    prepared = "cvt.u16.u32 %h1, %r1; cvt.u16.u32 %h2, %r2; setp.ne.u32 %p0, 0, 0;"
    found = each(prepared + text, pairs, inputs=2)
    assert found.tolist() == [INTEGERS[text](*pair) & 0xFFFFFFFF for pair in pairs]


def test_whole_numbers_of_64_bits():
    values = [0, 1, 1 << 31, 1 << 32, (1 << 63) - 1, 1 << 63, (1 << 64) - 1, 0x123456789ABCDEF0]
    pairs = list(itertools.product(values, values))
    for text, function in {
        "mul.hi.u64 %rd19, %rd11, %rd12;": lambda a, b: a * b >> 64,
        "mul.lo.u64 %rd19, %rd11, %rd12;": lambda a, b: a * b,
        "div.s64 %rd19, %rd11, %rd12;": lambda a, b: toward_zero(signed(a, 64), signed(b, 64)) if b else -1,
        "mul.wide.u32 %rd19, %r1, %r2;": lambda a, b: (a & 0xFFFFFFFF) * (b & 0xFFFFFFFF),
        "mad.wide.s32 %rd19, %r1, %r2, %rd12;": lambda a, b: signed(a) * signed(b) + b,
        "cvt.s64.s32 %rd19, %r1;": lambda a, b: signed(a),
        "clz.b64 %r3, %rd11; cvt.u64.u32 %rd19, %r3;": lambda a, b: 64 - a.bit_length(),
        "shr.s64 %rd19, %rd11, %r2;": lambda a, b: signed(a, 64) >> min(b & 0xFFFFFFFF, 63),
    }.items():
        prepared = "cvt.u32.u64 %r1, %rd11; cvt.u32.u64 %r2, %rd12;"
        found = each(prepared + text, pairs, np.uint64, 2)
        assert found.tolist() == [function(*pair) & (1 << 64) - 1 for pair in pairs], text


SPECIAL = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e-45, -1e-40, 3e38, 1 + 2**-23, 0.1, -2.5, 1e10, 0.5, 3.5]


def reals(text, values, dtype, inputs):
    """The same for floats: inputs in %f1... or %fd1..., the result in %f9 or %fd9."""
    kind, register, word = ("f32", "%f", "%r") if dtype == "f4" else ("f64", "%fd", "%rd")
    first, last = (1, 9) if dtype == "f4" else (11, 19)
    before = "".join(f"mov.b{kind[1:]} {register}{1 + i}, {word}{first + i};" for i in range(inputs))
    rows = np.array(values, dtype).reshape(-1, inputs).view("u4" if dtype == "f4" else "u8")
    rows = rows.tolist() if inputs > 1 else rows.ravel().tolist()
    bits = each(f"{before} {text} mov.b{kind[1:]} {word}{last}, {register}9;", rows, rows and f"u{dtype[1]}", inputs)
    return bits.view(dtype)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_fma_is_rounded_once(rng, dtype):
    x = rng.standard_normal((600, 3)).astype(dtype)
    x[:200, 2] = -(x[:200, 0] * x[:200, 1]) * rng.choice([1, 1 + 2**-20, 2**-24, 2.0**-60], 200)
    x[200:400] = rng.choice(SPECIAL, (200, 3))
    name, r = ("f32", "%f") if dtype == "f4" else ("f64", "%fd")
    with np.errstate(all="ignore"):
        expected = (reference.fma32 if dtype == "f4" else reference.fma64)(*x.T)
    same_bits(reals(f"fma.rn.{name} {r}9, {r}1, {r}2, {r}3;", x, dtype, 3), expected.astype(dtype))


def test_rounding_modes_bound_the_exact_result(rng):
    x = rng.standard_normal((500, 3)).astype("f4")
    low, high, zero = (reals(f"fma.{mode}.f32 %f9, %f1, %f2, %f3;", x, "f4", 3) for mode in ("rm", "rp", "rz"))
    exact = x[:, 0].astype("g") * x[:, 1] + x[:, 2]
    assert (low <= exact).all()
    assert (exact <= high).all()
    assert (np.nextafter(low, np.float32(np.inf)) >= high).all()
    same_bits(zero, np.where(exact > 0, low, high))


REALS = {
    "add.rn.f32 %f9, %f1, %f2;": np.add, "sub.f32 %f9, %f1, %f2;": np.subtract, "mul.f32 %f9, %f1, %f2;": np.multiply,
    "div.rn.f32 %f9, %f1, %f2;": np.divide, "copysign.f32 %f9, %f2, %f1;": np.copysign,
    "neg.f32 %f9, %f1;": lambda x, y: -x, "abs.f32 %f9, %f1;": lambda x, y: abs(x),
    "min.f32 %f9, %f1, %f2;": lambda x, y: np.where(np.isnan(x), y, np.where(np.isnan(y), x,
        np.where((x < y) | ((x == y) & np.signbit(x)), x, y))),
    "max.NaN.f32 %f9, %f1, %f2;": lambda x, y: np.where((x > y) | ((x == y) & np.signbit(y)) | np.isnan(x), x, y),
    "sqrt.rn.f32 %f9, %f1;": lambda x, y: np.sqrt(x), "rcp.rn.f32 %f9, %f1;": lambda x, y: 1 / x,
    "setp.lt.f32 %p1, %f1, %f2; selp.f32 %f9, 0f3F800000, 0f00000000, %p1;": lambda x, y: (x < y).astype("f4"),
    "setp.geu.f32 %p1, %f1, %f2; selp.f32 %f9, 0f3F800000, 0f00000000, %p1;": lambda x, y: (~(x < y)).astype("f4"),
    "setp.ne.f32 %p1, %f1, %f2; selp.f32 %f9, 0f3F800000, 0f00000000, %p1;":
        lambda x, y: ((x < y) | (x > y)).astype("f4"),
    "setp.nan.f32 %p1, %f1, %f2; selp.f32 %f9, 0f3F800000, 0f00000000, %p1;":
        lambda x, y: (np.isnan(x) | np.isnan(y)).astype("f4"),
    "cvt.rn.f16.f32 %h1, %f1; cvt.f32.f16 %f9, %h1;": lambda x, y: x.astype("f2").astype("f4"),
    "cvt.rni.f32.f32 %f9, %f1;": lambda x, y: np.rint(x), "cvt.rmi.f32.f32 %f9, %f1;": lambda x, y: np.floor(x),
    "cvt.f64.f32 %fd1, %f1; cvt.rn.f32.f64 %f9, %fd1;": lambda x, y: x,
    "cvt.rzi.s32.f32 %r3, %f1; cvt.rn.f32.s32 %f9, %r3;": lambda x, y: np.clip(
        np.where(np.isnan(x), 0, np.trunc(x.astype("f8"))), -(2.0**31), 2.0**31 - 1).astype("i4").astype("f4"),
    "add.sat.f32 %f9, %f1, %f2;": lambda x, y: np.where(x + y > 0, np.fmin(x + y, 1), 0),
}  # fmt: skip


@pytest.mark.parametrize("text", REALS)
def test_reals(text):
    pairs = list(itertools.product(SPECIAL, SPECIAL))
    with np.errstate(all="ignore"):
        x, y = np.array(pairs, "f4").T
        expected = REALS[text](x, y).astype("f4")
    same_bits(reals(text, pairs, "f4", 2), expected)


def test_bfloat16_and_halves_in_pairs(rng):
    """Rounded to the nearest, ties to even; fma of halves once."""
    import ml_dtypes

    x = np.concatenate([rng.standard_normal(500), SPECIAL, [1 + 2**-8, 1 + 3 * 2**-8]]).astype("f4")
    bf16 = ml_dtypes.bfloat16
    found = reals("cvt.rn.bf16.f32 %h1, %f1; mov.b32 %r3, {0, %h1}; mov.b32 %f9, %r3;", x, "f4", 1)
    same_bits(found, x.astype(bf16).astype("f4"))
    pairs = rng.standard_normal((200, 2)).astype("f4")
    both = each("cvt.rn.f16x2.f32 %r9, %r1, %r2;".replace("%r1", "%f1").replace("%r2", "%f2").join(
        ["mov.b32 %f1, %r1; mov.b32 %f2, %r2;", ""]), pairs.view("u4").tolist(), inputs=2)  # fmt: skip
    same_bits(both.view("f2").reshape(-1, 2), pairs[:, ::-1].astype("f2"))
    words = rng.standard_normal((300, 6)).astype("f2")
    found = each("fma.rn.f16x2 %r9, %r1, %r2, %r3;", words.view("u4").reshape(-1, 3).tolist(), inputs=3).view("f2")
    a, b, c = (words.reshape(300, 3, 2)[:, i].astype("f8") for i in range(3))
    same_bits(found.reshape(300, 2), (a * b + c).astype("f2"))
