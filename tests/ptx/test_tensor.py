"""Tensor cores in the PTX interpreter (tests/ptx): ldmatrix, stmatrix, mma.sync, wgmma, and the sums that they make."""

from fractions import Fraction

import numpy as np
import pytest

from tests import reference
from tests.compare import same_bits
from tests.ptx import Trap
from tests.ptx.numerics import multiply_add, table
from tests.ptx.programs import run
from tests.ptx.test_bulk import aligned
from tests.ptx.test_copies import faulty

LANES = np.arange(32)


# --- matrices of a warp -----------------------------------------------------------------------------------------------

FILL = "mov.u32 %r1, smem;" + "".join(
    f"mad.lo.u32 %r2, %r0, 4, {128 * i}; cvt.u64.u32 %rd5, %r2; add.u64 %rd5, %rd5, %rd1; ld.global.u32 %r3, [%rd5];"
    f"add.u32 %r2, %r2, %r1; st.shared.u32 [%r2], %r3;" for i in range(4)
) + "bar.warp.sync -1; mad.lo.u32 %r2, %r0, 16, %r1;"  # fmt: skip
STORE = "mul.wide.u32 %rd5, %r0, 16; add.u64 %rd5, %rd5, %rd0; st.global.v4.u32 [%rd5], {%r11, %r12, %r13, %r14};"


@pytest.mark.parametrize("transposed", [False, True])
def test_ldmatrix_and_stmatrix(rng, transposed):
    """Four matrices of 8 x 8: a lane has two neighbours of row lane // 4, or of the column; stmatrix undoes it."""
    x = rng.integers(0, 1 << 16, (4, 8, 8)).astype("u2")
    how = ".trans" * transposed
    body = FILL + f"ldmatrix.sync.aligned.m8n8.x4{how}.shared.b16 {{%r11, %r12, %r13, %r14}}, [%r2];" + STORE
    out, _ = run(body, aligned(np.zeros((32, 4, 2), "u2")), aligned(x), shared=512)
    want = x.transpose(0, 2, 1) if transposed else x
    for lane in LANES:
        assert (out[lane] == want[:, lane // 4, 2 * (lane % 4) : 2 * (lane % 4) + 2]).all()
    back = body.replace(STORE, f"""bar.warp.sync -1;
    stmatrix.sync.aligned.m8n8.x4{how}.shared.b16 [%r2], {{%r11, %r12, %r13, %r14}}; bar.warp.sync -1;
    ld.shared.v4.u32 {{%r11, %r12, %r13, %r14}}, [%r2];""" + STORE)  # fmt: skip
    out, _ = run(back, aligned(np.zeros((4, 8, 8), "u2")), aligned(x), shared=512)
    assert (out == x).all()
    with pytest.raises(Trap, match="a read without a barrier"):
        run(faulty(body, "bar.warp.sync -1;", ""), aligned(np.zeros((4, 8, 8), "u2")), aligned(x), shared=512)
    with pytest.raises(Trap, match="deadlock"):
        run("setp.lt.u32 %p1, %r0, 16;" + body.replace("ldmatrix", "@%p1 ldmatrix"),
            aligned(np.zeros((4, 8, 8), "u2")), aligned(x), shared=512)  # fmt: skip


def halves(x):
    return x.astype("f2")


def bfloats(x):
    return (x.astype("f4").view("u4") >> 16).astype("u2")


KINDS = {
    "f16": (halves, lambda x: x.astype("f8")),
    "bf16": (bfloats, lambda x: (x.astype("u4") << 16).view("f4").astype("f8")),
    "tf32": (lambda x: x.astype("f4").view("u4") & 0xFFFFE000, lambda x: x.view("f4").astype("f8")),
    "f64": (lambda x: x, lambda x: x),
    "s8": (lambda x: np.rint(40 * x).clip(-128, 127).astype("i1"), lambda x: x.astype("i8")),
    "u8": (lambda x: np.rint(abs(60 * x)).clip(0, 255).astype("u1"), lambda x: x.astype("i8")),
    "e4m3": (lambda x: abs(20 * x).astype("u1") & 63 | (np.signbit(x) << 7).astype("u1"), lambda x: table("e4m3")[x]),
}
SUMS = {"f32": "f4", "f64": "f8", "s32": "i4", "f16": "f2"}
SHAPES = """m16n8k16 f32 f16, m16n8k16 f32 bf16, m16n8k8 f32 f16, m16n8k16 f16 f16, m16n8k8 f32 tf32, m16n8k4 f32 tf32,
m16n8k32 s32 s8, m16n8k16 s32 u8, m16n8k32 f32 e4m3, m8n8k4 f64 f64, m16n8k4 f64 f64, m16n8k8 f64 f64,
m16n8k16 f64 f64"""
SHAPES = [tuple(each.split()) for each in SHAPES.split(",")]


def words(tile, rows, along):
    """Registers of A, or of B' : [lane, register] words of `along` neighbours of a row, told by the definition."""
    size = along * tile.itemsize
    lines, depth = tile.shape
    found = np.zeros((32, lines * depth // (32 * along)), f"u{size}")
    for lane in LANES:
        for register in range(found.shape[1]):
            down, right = (register % 2, register // 2) if rows == 16 else (0, register)
            k = along * (lane % 4) + 4 * along * right
            found[lane, register] = tile[lane // 4 + 8 * down, k : k + along].copy().view(f"u{size}")[0]
    return found


def sums(tile):
    """Registers of C: two neighbours of row lane // 4, then of the row 8 further down."""
    return np.stack([tile[row + LANES // 4, 2 * (LANES % 4) + i] for row in range(0, len(tile), 8) for i in (0, 1)], 1)


@pytest.mark.parametrize(("shape", "into", "kind"), SHAPES, ids="-".join)
def test_mma(rng, shape, into, kind):
    """Of whole numbers exactly; of others the model's sums, and near the exact ones."""
    m, n, k = (int(part) for part in shape[1:].replace("n", " ").replace("k", " ").split())
    make, value = KINDS[kind]
    a, b = make(rng.standard_normal((m, k))), make(rng.standard_normal((n, k)))
    c = (10 * rng.standard_normal((m, n))).astype(SUMS[into])
    along = (8 if kind == "f64" else 4) // a.itemsize
    registers_a, registers_b, registers_c = words(a, m, along), words(b, 8, along), sums(c)
    if into == "f16":
        registers_c = np.ascontiguousarray(registers_c).view("u4")
    columns = np.concatenate([np.ascontiguousarray(x).view("u8" if kind == "f64" else "u4")
                              for x in (registers_a, registers_b, registers_c)], 1)  # fmt: skip
    register, size = ("%fd", 8) if kind == "f64" else ("%r", 4)
    width, counts = columns.shape[1], [x.shape[1] for x in (registers_a, registers_b, registers_c)]
    first = 10 if kind == "f64" else 20
    names = [f"{register}{first + i}" for i in range(width)]
    lists = ["{" + ", ".join(names[start : start + count]) + "}"
             for start, count in zip(np.cumsum([0, *counts]), counts)]  # fmt: skip
    kinds = f"{into}.{kind}.{kind}.{into}"
    body = f"mul.wide.u32 %rd5, %r0, {width * size}; add.u64 %rd5, %rd5, %rd1;"
    body += "".join(f"ld.global.b{8 * size} {name}, [%rd5+{size * i}];" for i, name in enumerate(names))
    body += f"mma.sync.aligned.{shape}.row.col.{kinds} {lists[2]}, {lists[0]}, {lists[1]}, {lists[2]};"
    body += f"mul.wide.u32 %rd5, %r0, {counts[2] * size}; add.u64 %rd5, %rd5, %rd0;"
    body += "".join(f"st.global.b{8 * size} [%rd5+{size * i}], {name};" for i, name in enumerate(names[-counts[2] :]))
    out, _ = run(body.replace(".b64 %fd", ".f64 %fd"), np.zeros((32, counts[2]), f"u{size}"), columns)
    found = out.view(SUMS[into])
    exact = c.astype(value(a).dtype) + value(a) @ value(b).T
    model = multiply_add(c if into != "f16" else c.astype("f4"), value(a), value(b).T, kind)
    same_bits(found, sums(model.astype(SUMS[into])))
    if kind in ("s8", "u8"):
        assert (model == exact).all()
    elif kind == "f64":
        chain = c
        for i in range(k):
            chain = reference.fma64(a[:, i, None], b[None, :, i], chain)
        same_bits(model, chain)
    else:
        np.testing.assert_allclose(model, exact, atol=2e-2 if into == "f16" else 2e-2 if kind == "e4m3" else 2e-5)


def test_sums_of_a_tensor_core_are_cut_off():
    """1 beside products of 2**-25 each: bits below 2**-25 of the largest are cut off, and so are the sum's."""
    a, b, c = np.full((1, 16), 2.0**-13), np.full((16, 1), 2.0**-12), np.ones((1, 1), "f4")
    exact = Fraction(1) + 16 * Fraction(2) ** -25
    assert multiply_add(c, a, b, "f16")[0, 0] == float(exact)  # 2**-21 is left of the sum's last bit
    assert multiply_add(c, a / 2, b, "f16")[0, 0] == 1  # each is below 2**-25: nothing of them is left
    assert multiply_add(c, -a, b, "f16")[0, 0] == 1 - 16 * 2.0**-25
    ones = np.full((1, 16), 2.0**-12)
    assert multiply_add(c, ones[:, :1], b[:1], "f16")[0, 0] == np.float32(1)  # 2**-24, half of the last bit: cut off
    with np.errstate(invalid="ignore"):
        assert np.isnan(multiply_add(c, np.full((1, 1), np.inf), np.zeros((1, 1)), "f16")).all()


# --- wgmma ------------------------------------------------------------------------------------------------------------


def laid_out(x, span, across=False):
    """An operand's bytes in shared memory as (bytes, lead, stride): rows of `span` bytes along k, or across it, in
    groups of 8, with their pieces moved by the row's number. Without a span, 8 x 16 bytes lie together."""
    lines, depth = (x.shape[1], x.shape[0]) if across else x.shape
    raw = np.ascontiguousarray(x.T if across else x).view(np.uint8).reshape(-1, depth * x.itemsize)
    if span == 0:
        groups = raw.reshape(lines // 8, 8, -1, 16).transpose(0, 2, 1, 3)
        return groups.ravel(), 128, groups.shape[1] * 128
    columns = -(-raw.shape[1] // span)
    result = np.zeros(columns * lines * span, np.uint8)
    for row in range(lines):
        for piece in range(raw.shape[1] // 16):
            at = piece * 16 // span * lines * span + row * span + piece * 16 % span
            at ^= (at >> 7 & span // 16 - 1) << 4
            result[at : at + 16] = raw[row, 16 * piece : 16 * piece + 16]
    return result, lines * span, 8 * span


def descriptor(start, lead, stride, span):
    return start >> 4 | lead >> 4 << 16 | stride >> 4 << 32 | {0: 0, 128: 1, 64: 2, 32: 3}[span] << 62


def wgmma(size, into, kind, n, k, at_a, at_b, flags):
    """The program: `size` bytes of operands come to shared memory, one product, and its sums go out."""
    count, four = n // 2, "{%r2, %r3, %r4, %r5}"
    names = [f"%f{i}" if into == "f32" else f"%r{10 + i}" for i in range(count)]
    copies = "".join(
        f"ld.global.v4.u32 {four}, [%rd5+{2048 * i}]; st.shared.v4.u32 [%r1+{2048 * i}], {four};"
        for i in range(size // 2048)
    )
    return f"""mul.wide.u32 %rd5, %r0, 16; add.u64 %rd5, %rd5, %rd1; mov.u32 %r1, smem; mad.lo.u32 %r1, %r0, 16, %r1;
    {copies} fence.proxy.async; bar.sync 0; setp.ne.u32 %p1, 0, 1;
    {"".join(f"mov.b32 {name}, {1 if into == 's32' else '0f3F800000'};" for name in names)}
    wgmma.fence.sync.aligned;
    wgmma.mma_async.sync.aligned.m64n{n}k{k}.{into}.{kind}.{kind} {{{", ".join(names)}}}, {at_a}, {at_b}, %p1{flags};
    wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;
    mul.wide.u32 %rd5, %r0, {4 * count}; add.u64 %rd5, %rd5, %rd0;
    {"".join(f"st.global.b32 [%rd5+{4 * i}], {name};" for i, name in enumerate(names))}"""


def product(rng, kind, n, spans, across=(False, False), changes=(), threads=128):
    """(found, 1 + A B') of a 64 x n product of one instruction."""
    make, value = KINDS[kind]
    into = "s32" if kind in ("s8", "u8") else "f32"
    size = make(np.ones(1)).itemsize
    k = 32 // size
    a, b = make(rng.standard_normal((64, k))), make(rng.standard_normal((n, k)))
    (bytes_a, *steps_a), (bytes_b, *steps_b) = map(laid_out, (a, b), spans, across)
    flags = "" if into == "s32" else ", 1, 1" + (f", {int(across[0])}, {int(across[1])}" if size == 2 else "")
    start_b = -(-len(bytes_a) // 1024) * 1024
    data = np.zeros(-(-(start_b + len(bytes_b)) // 2048) * 2048, np.uint8)
    data[: len(bytes_a)], data[start_b : start_b + len(bytes_b)] = bytes_a, bytes_b
    body = wgmma(len(data), into, kind, n, k, descriptor(0, *steps_a, spans[0]),
                 descriptor(start_b, *steps_b, spans[1]), flags)  # fmt: skip
    for change in changes:
        body = faulty(body, *change)
    out, _ = run(body, np.zeros((128, n // 2), SUMS[into]), aligned(data), threads=threads, shared=len(data))
    tile = np.zeros((64, n), out.dtype)
    for thread in range(128):
        for i in range(n // 2):
            row = 16 * (thread // 32) + thread % 32 // 4 + 8 * (i % 4 // 2)
            tile[row, 8 * (i // 4) + 2 * (thread % 4) + i % 2] = out[thread, i]
    return tile, multiply_add(np.ones((64, n), out.dtype), value(a), value(b).T, kind)


@pytest.mark.parametrize("kind", ["f16", "bf16", "tf32", "s8", "u8", "e4m3"])
@pytest.mark.parametrize("span", [128, 64, 32, 0])
def test_wgmma_of_rows_along_k(rng, kind, span):
    same_bits(*product(rng, kind, 16, (span, span)))


@pytest.mark.parametrize("across", [(True, False), (False, True), (True, True)])
@pytest.mark.parametrize("n", [8, 128])
def test_wgmma_of_rows_across_k(rng, across, n):
    spans = [128 if turned else 64 for turned in across]
    if n == 8 and across[1]:
        spans[1] = 32  # 8 halves are half of a row
        n = 16
    same_bits(*product(rng, "bf16", n, spans, across))


@pytest.mark.parametrize(("old", "new", "message"), [
    ("fence.proxy.async;", "", "without fence.proxy.async"),
    ("bar.sync 0;", "", "a read without a barrier"),
    ("wgmma.fence.sync.aligned;", "", "without a wgmma.fence"),
    ("wgmma.wait_group.sync.aligned 0;", "", "was not waited for"),
    ("wgmma.wait_group.sync.aligned 0;", "wgmma.wait_group.sync.aligned 1;", "was not waited for"),
    ("wgmma.commit_group.sync.aligned;", "", "was not waited for"),
    ("wgmma.wait_group.sync.aligned 0;", "st.shared.u32 [%r1], 0; wgmma.wait_group.sync.aligned 0;", "may still read"),
    ("wgmma.wait_group.sync.aligned 0;", "wgmma.wait_group.sync.aligned 0; st.shared.u32 [%r1], 0;", None),
    ("setp.ne.u32 %p1, 0, 1;", "setp.lt.u32 %p1, %r0, 96; @!%p1 ret;", "have ended|deadlock"),
])  # fmt: skip
def test_faults_of_wgmma(rng, old, new, message):
    if message is None:
        same_bits(*product(rng, "f16", 16, (128, 128), changes=[(old, new)]))
        return
    with pytest.raises(Trap, match=message):
        product(rng, "f16", 16, (128, 128), changes=[(old, new)])


def test_sums_may_be_renamed_while_they_are_made(rng):
    """As compilers do between two asm statements; the copy is not to be used, either, before the wait."""
    move = "wgmma.commit_group.sync.aligned; mov.f32 %f100, %f0; mov.f32 %f0, %f100;"
    same_bits(*product(rng, "f16", 16, (128, 128), changes=[("wgmma.commit_group.sync.aligned;", move)]))
    with pytest.raises(Trap, match="was not waited for"):
        product(rng, "f16", 16, (128, 128),
                changes=[("wgmma.commit_group.sync.aligned;", move + "add.f32 %f101, %f100, %f100;")])  # fmt: skip


def test_one_warp_tells_that_a_product_is_done(rng):
    """A fifth warp overwrites the operands when one warp of the four has waited for the product and arrived."""
    other = """setp.lt.u32 %p2, %r0, 128; @%p2 bra GROUP; bar.sync 3, 64; mov.u32 %r1, smem;
    mad.lo.u32 %r1, %r0, 4, %r1;
    st.shared.u32 [%r1+-512], 0; ret; GROUP: mul.wide.u32 %rd5, %r0, 16; add.u64 %rd5, %rd5, %rd1;"""
    waited = "wgmma.wait_group.sync.aligned 0; setp.lt.u32 %p2, %r0, 32; @%p2 bar.arrive 3, 64;"
    changes = [("mul.wide.u32 %rd5, %r0, 16; add.u64 %rd5, %rd5, %rd1;", other), ("bar.sync 0;", "bar.sync 0, 128;"),
               ("wgmma.wait_group.sync.aligned 0;", waited)]  # fmt: skip
    same_bits(*product(rng, "f16", 16, (128, 128), changes=changes, threads=160))
    early = [(changes[0][0], other.replace("3, 64", "3, 160")), changes[1],
             ("wgmma.wait_group.sync.aligned 0;", "bar.arrive 3, 160; wgmma.wait_group.sync.aligned 0;")]  # fmt: skip
    with pytest.raises(Trap, match="may still read"):
        product(rng, "f16", 16, (128, 128), changes=early, threads=160)
