"""The PTX interpreter (tests/ptx): text, threads that part and meet, memory, and the traps that must and must not fire.

Arithmetic is test_numbers.py's, asynchronous copies and tensor cores are test_tensor.py's.
"""

import re

import numpy as np
import pytest

from tests import ptx
from tests.ptx import Memory, Trap
from tests.ptx.programs import HEAD, each, run


def test_names_of_inner_blocks_are_their_own():
    """Registers, labels and branches of inline assembly, twice, with the names that are used outside."""
    block = """{ .reg .pred p; .reg .b32 %r1; mov.u32 %r1, 5;
    AGAIN: sub.u32 %r1, %r1, 1; add.u32 %r9, %r9, 1; setp.ne.u32 p, %r1, 0; @p bra AGAIN; }"""
    assert (each(f"mov.u32 %r9, %r1; {block} {block} add.u32 %r9, %r9, %r1;", [7, 8]) == [24, 26]).all()


def test_an_unknown_opcode_says_its_name():
    with pytest.raises(NotImplementedError, match=r"frobnicate\.f32"):
        run("frobnicate.f32 %f1, %f2;", np.zeros(1))


def test_functions_local_memory_and_constants():
    text = f"""{HEAD}
    .func (.param .align 8 .b8 result[8]) twice (.param .b64 twice_0);
    .const .align 4 .b8 table[8] = {{1, 0, 0, 0, 10, 0, 0, 0}};
    .visible .entry kernel(.param .u64 p0) {{
    .local .align 8 .b8 depot[16];
    .reg .b64 %rd<9>; .reg .b32 %r<9>; .reg .pred %p<2>;
    ld.param.u64 %rd0, [p0]; mov.u32 %r0, %tid.x; mul.wide.u32 %rd1, %r0, 4; add.u64 %rd0, %rd0, %rd1;
    mov.u64 %rd2, depot; cvta.local.u64 %rd3, %rd2; st.u32 [%rd3+8], %r0; ld.local.u32 %r1, [%rd2+8];
    setp.lt.u32 %p0, %r0, 20; @%p0 bra SKIP;
    cvt.u64.u32 %rd4, %r1;
    {{ .reg .b32 temp; .param .b64 param0; st.param.b64 [param0+0], %rd4; .param .align 8 .b8 retval0[8];
    call.uni (retval0), twice, (param0); ld.param.b64 %rd5, [retval0+0]; }}
    cvt.u32.u64 %r1, %rd5;
    SKIP: ld.const.u32 %r2, [table+4]; add.u32 %r1, %r1, %r2; st.global.u32 [%rd0], %r1; ret; }}
    .func (.param .align 8 .b8 result[8]) twice (.param .b64 twice_0) {{
    .reg .b64 %rd<4>; ld.param.b64 %rd1, [twice_0]; add.u64 %rd1, %rd1, %rd1; st.param.b64 [result+0], %rd1; ret; }}"""
    out = np.zeros(32, np.uint32)
    ptx.run(text, 1, 32, [out.ctypes.data], Memory(out))
    lane = np.arange(32)
    assert (out == np.where(lane < 20, lane, 2 * lane) + 10).all()


def test_arguments_have_their_sizes():
    body = """ld.param.u8 %r1, [p1]; ld.param.f32 %f1, [p2]; cvt.rn.f32.u32 %f2, %r1; add.f32 %f1, %f1, %f2;
    st.global.f32 [%rd0], %f1;"""
    out = np.zeros(1, "f4")
    run(body, out, threads=1, kinds=("u8", "f32"), more=(np.uint8(3), np.float32(0.5)))
    assert out[0] == 3.5
    with pytest.raises(ValueError, match="of 8 bytes for a parameter of 4"):
        run(body, out, threads=1, kinds=("u8", "f32"), more=(np.uint8(3), 1))
    with pytest.raises(ValueError, match="2 arguments for 3 parameters"):
        run(body, out, threads=1, kinds=("u8", "f32"), more=(np.uint8(3),))


def test_blocks_and_threads_of_three_dimensions():
    body = """mov.u32 %r1, %tid.y; mov.u32 %r2, %ntid.x; mad.lo.u32 %r1, %r1, %r2, %r0; mov.u32 %r2, %ctaid.z;
    mov.u32 %r3, %nctaid.y; mov.u32 %r4, %ctaid.y; mad.lo.u32 %r2, %r2, %r3, %r4; mov.u32 %r3, %nctaid.x;
    mov.u32 %r4, %ctaid.x; mad.lo.u32 %r2, %r2, %r3, %r4; mad.lo.u32 %r1, %r2, 12, %r1; mul.wide.u32 %rd5, %r1, 4;
    add.u64 %rd5, %rd5, %rd0; add.u32 %r1, %r1, 1; st.global.u32 [%rd5], %r1;"""
    (out,) = run(body, np.zeros(12 * 24, np.uint32), threads=(4, 3), grid=(2, 3, 4))
    assert (out == np.arange(1, 289)).all()


# --- threads ----------------------------------------------------------------------------------------------------------


def test_threads_part_and_meet(rng):
    """A loop of another length for each thread, and both sides of a branch."""
    counts = rng.integers(0, 40, 64).astype("u4")
    text = """mov.u32 %r9, 0; mov.u32 %r4, 0;
    LOOP: setp.ge.u32 %p1, %r4, %r1; @%p1 bra DONE; add.u32 %r4, %r4, 1; and.b32 %r5, %r4, 1; setp.eq.u32 %p2, %r5, 0;
    @%p2 bra EVEN; add.u32 %r9, %r9, 100; bra.uni LOOP; EVEN: add.u32 %r9, %r9, 1; bra.uni LOOP; DONE:"""
    assert (each(text, counts.tolist()) == counts // 2 + 100 * ((counts + 1) // 2)).all()


def test_a_thread_that_spins_makes_way():
    """Threads at a lower place wait for one at a higher one, by way of global memory."""
    body = """setp.eq.u32 %p1, %r0, 31; @%p1 bra SET;
    SPIN: ld.volatile.global.u32 %r1, [%rd0]; setp.eq.u32 %p2, %r1, 0; @%p2 bra SPIN; bra.uni END;
    SET: st.global.u32 [%rd0], 1; END:"""
    (out,) = run(body, np.zeros(1, "u4"))
    assert out[0] == 1


def test_guards():
    assert each("setp.lt.u32 %p1, %r1, 3; mov.u32 %r9, 0; @%p1 mov.u32 %r9, 1; @!%p1 add.u32 %r9, %r9, 5;",
                [1, 2, 3, 4]).tolist() == [1, 1, 5, 5]  # fmt: skip


SHUFFLES = {
    "shfl.sync.down.b32 %r9|%p1, %r1, 3, 31, -1;": lambda x: np.r_[x[3:], x[29:]],
    "shfl.sync.up.b32 %r9, %r1, 1, 0, -1;": lambda x: np.r_[x[:1], x[:-1]],
    "shfl.sync.bfly.b32 %r9, %r1, 8, 31, -1;": lambda x: x[np.arange(32) ^ 8],
    "shfl.sync.idx.b32 %r9, %r1, 5, 0x181f, -1;": lambda x: x[np.arange(32) // 8 * 8 + 5],
    "setp.gt.u32 %p1, %r1, 15; vote.sync.ballot.b32 %r9, %p1, -1;":
        lambda x: np.full(32, sum(1 << i for i in range(32) if x[i] > 15), "u4"),
    "setp.gt.u32 %p1, %r1, 15; vote.sync.any.pred %p2, %p1, -1; selp.u32 %r9, 1, 0, %p2;": lambda x: np.ones(32, "u4"),
    "setp.gt.u32 %p1, %r1, 15; vote.sync.all.pred %p2, %p1, -1; selp.u32 %r9, 1, 0, %p2;": lambda x: np.zeros(32, "u4"),
    "and.b32 %r2, %r1, 1; match.any.sync.b32 %r9, %r2, -1;":
        lambda x: np.array([sum(1 << i for i in range(32) if x[i] & 1 == y & 1) for y in x], "u4"),
    "redux.sync.add.u32 %r9, %r1, -1;": lambda x: np.full(32, x.sum(), "u4"),
    "redux.sync.max.s32 %r9, %r1, -1;": lambda x: np.full(32, x.max(), "u4"),
    "elect.sync %r9|%p1, -1; selp.u32 %r9, 100, %r9, %p1;": lambda x: np.r_[100, np.zeros(31)].astype("u4"),
    "activemask.b32 %r9;": lambda x: np.full(32, 0xFFFFFFFF, "u4"),
}  # fmt: skip


@pytest.mark.parametrize("text", SHUFFLES)
def test_what_a_warp_does_together(rng, text):
    x = rng.permutation(32).astype("u4")
    assert (each(text, x.tolist()) == SHUFFLES[text](x)).all()


def test_members_of_a_mask_wait_for_each_other():
    """Half of a warp comes later to the same instruction; the other half of another one is not asked."""
    text = """mov.u32 %r9, 0; setp.lt.u32 %p1, %r1, 16; @%p1 bra LATE; bra.uni MEET; LATE: add.u32 %r1, %r1, 0;
    MEET: shfl.sync.bfly.b32 %r9, %r1, 16, 31, -1;"""
    assert (each(text, list(range(32))) == np.arange(32) ^ 16).all()
    part = (
        """mov.u32 %r9, 0; setp.ge.u32 %p1, %r1, 16; @%p1 bra END; shfl.sync.bfly.b32 %r9, %r1, 1, 31, 0xffff; END:"""
    )
    assert (each(part, list(range(32))) == np.r_[np.arange(16) ^ 1, np.zeros(16)]).all()


@pytest.mark.parametrize(("text", "message"), [
    ("setp.lt.u32 %p1, %r1, 9; @%p1 ret; shfl.sync.bfly.b32 %r9, %r1, 1, 31, -1;", "have ended"),
    ("shfl.sync.bfly.b32 %r9, %r1, 1, 31, 0xff;", "not a member"),
    ("setp.lt.u32 %p1, %r1, 8; @!%p1 bra E; shfl.sync.idx.b32 %r9, %r1, 20, 31, 0xff; E:", "does not take part"),
    ("setp.lt.u32 %p1, %r1, 16; @%p1 bra A; bar.warp.sync -1; bra.uni E; A: bar.warp.sync -1; E:", "deadlock"),
])  # fmt: skip
def test_warps_that_are_not_whole(text, message):
    with pytest.raises(Trap, match=message):
        each("mov.u32 %r9, 0;" + text, list(range(32)))


def test_atomics():
    body = """atom.global.add.u32 %r1, [%rd0], 2; red.global.max.u32 [%rd0+4], %r0;
    atom.global.cas.b32 %r2, [%rd0+8], 0, 9;
    atom.global.exch.b32 %r3, [%rd0+12], %r0; atom.global.inc.u32 %r4, [%rd0+16], 4; mul.wide.u32 %rd5, %r0, 4;
    add.u64 %rd5, %rd5, %rd1; st.global.u32 [%rd5], %r1; red.global.add.f32 [%rd0+20], 0f3F000000;"""
    out, seen = run(body, np.zeros(8, "u4"), np.zeros(64, "u4"), threads=64)
    assert out[:5].tolist() == [128, 63, 9, 63, 64 % 5]
    assert out[5:6].view("f4") == 32
    assert sorted(seen) == list(range(0, 128, 2))


# --- memory -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("body", "message"), [
    ("ld.global.u32 %r1, [%rd0+1];", "misaligned global load of 4 bytes"),
    ("ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%rd0+8];", "misaligned global load of 16 bytes"),
    ("ld.global.u32 %r1, [%rd0+64];", "4 bytes past the end of the one of 64 bytes"),
    ("ld.global.u32 %r1, [%rd0+-4];", "4 bytes before"),
    ("st.global.u64 [%rd0+64], %rd1;", "8 bytes past the end"),
    ("st.global.u32 [%rd1], %r1;", "which is read-only"),
    ("st.shared.u32 [smem+256], %r1;", "outside the block's 256"),
    ("st.shared.u32 [smem+2], %r1;", "misaligned shared access"),
    ("ld.shared.u32 %r1, [smem];", "that nobody has written"),
    ("st.shared.u32 [smem], %r0;", "different values to one place in one instruction"),
    ("trap;", "the kernel traps"),
])  # fmt: skip
def test_accesses_that_are_trapped(body, message):
    room = np.zeros(48, "u8")
    x, y = room[-room.ctypes.data % 64 // 8 :][:8], room[-room.ctypes.data % 64 // 8 + 16 :][:8]
    y.flags.writeable = False
    with pytest.raises(Trap, match=message) as trapped:
        run(body, x, y, shared=256)
    assert re.search(r"at instruction \d+: " + re.escape(body.split()[0].rstrip(";")), str(trapped.value))


def test_generic_addresses_reach_every_memory():
    body = """mov.u64 %rd5, smem; cvta.shared.u64 %rd6, %rd5; mul.wide.u32 %rd7, %r0, 4; add.u64 %rd6, %rd6, %rd7;
    st.u32 [%rd6], %r0; add.u64 %rd8, %rd1, %rd7; setp.lt.u32 %p1, %r0, 10; selp.b64 %rd9, %rd6, %rd8, %p1;
    ld.u32 %r1, [%rd9]; add.u64 %rd8, %rd0, %rd7; st.u32 [%rd8], %r1;"""
    out, _ = run(body, np.zeros(32, "u4"), np.arange(100, 132).astype("u4"), shared=128)
    assert (out == np.where(np.arange(32) < 10, np.arange(32), np.arange(100, 132))).all()


# Each thread stores its word, then reads that of the thread 1, or 32, further on.
STORE = "shl.b32 %r1, %r0, 2; mov.u32 %r2, smem; add.u32 %r1, %r1, %r2; st.shared.u32 [%r1], %r0;"
NEXT = "add.u32 %r3, %r0, {}; and.b32 %r3, %r3, 63; shl.b32 %r3, %r3, 2; add.u32 %r3, %r3, %r2;"
LOAD = "ld.shared.u32 %r9, [%r3];"
OUT = "mul.wide.u32 %rd5, %r0, 4; add.u64 %rd5, %rd5, %rd0; st.global.u32 [%rd5], %r9;"


@pytest.mark.parametrize("grid", [1, 5])
@pytest.mark.parametrize(("by", "between", "after", "message"), [
    (32, "bar.sync 0;", "bar.sync 0;", None),
    (1, "barrier.sync.aligned 0;", "bar.sync 3, 64;", None),
    (32, "", "bar.sync 0;", "a read"),  # of what is not yet written
    (32, "bar.warp.sync -1;", "bar.sync 0;", "a read|read of shared memory"),
    (32, "bar.sync 0;", "", "a store without a barrier after a read"),
    (1, "bar.sync 0;", "", "a store without a barrier after a read"),
    (0, "", "", None),  # its own
])  # fmt: skip
def test_races(grid, by, between, after, message):
    body = STORE + NEXT.format(by) + between + LOAD + after + "st.shared.u32 [%r1], 5;" + OUT
    if message is None:
        (out,) = run(body, np.zeros(64, "u4"), threads=64, grid=grid, shared=256)
        assert (out == (np.arange(64) + by) % 64).all()
        return
    with pytest.raises(Trap, match=message):
        run(body, np.zeros(64, "u4"), threads=64, grid=grid, shared=256)


def test_a_read_of_another_warps_store_is_a_race_though_it_came_first():
    """The second warp reads what the first one stored long before, and no barrier says so."""
    body = f"""setp.lt.u32 %p1, %r0, 32; @!%p1 bra SECOND; {STORE} bra.uni END;
    SECOND: mov.u32 %r2, smem; shl.b32 %r1, %r0, 2; add.u32 %r1, %r1, %r2; ld.shared.u32 %r9, [%r1+-128]; END:"""
    with pytest.raises(Trap, match="a read without a barrier after the store"):
        run(body, np.zeros(64, "u4"), threads=64, shared=256)


def test_lanes_of_a_warp_are_ordered_by_bar_warp_sync():
    body = STORE + NEXT.format(1) + "{}" + LOAD + OUT
    run(body.format("bar.warp.sync -1;").replace("63", "31"), np.zeros(64, "u4"), shared=256)
    with pytest.raises(Trap, match="a read without a barrier after the store"):
        run(body.format("").replace("63", "31"), np.zeros(64, "u4"), shared=256)


@pytest.mark.parametrize(("body", "message"), [
    ("setp.lt.u32 %p1, %r0, 16; @%p1 bar.sync 0;", "divergence|deadlock"),
    ("setp.lt.u32 %p1, %r0, 32; @%p1 bar.sync 0;", "divergent barrier|deadlock"),
    ("setp.lt.u32 %p1, %r0, 32; @%p1 ret; bar.sync 0;", "divergent barrier"),
    ("setp.lt.u32 %p1, %r0, 32; @%p1 bar.sync 0; @!%p1 bar.sync 1;", "deadlock"),
    ("bar.sync 1, 32;", "64 threads at a barrier of 32"),
])  # fmt: skip
def test_barriers_that_threads_do_not_reach(body, message):
    with pytest.raises(Trap, match=message):
        run(body, np.zeros(1), threads=64)


def test_named_barriers_of_producers_and_consumers():
    """The first warp arrives and goes on, the second one waits for it."""
    body = f"""setp.lt.u32 %p1, %r0, 32; @!%p1 bra SECOND; {STORE} bar.arrive 2, 64; bra.uni END;
    SECOND: mov.u32 %r2, smem; shl.b32 %r1, %r0, 2; add.u32 %r1, %r1, %r2; bar.sync 2, 64;
    ld.shared.u32 %r9, [%r1+-128]; {OUT} END:"""
    (out,) = run(body, np.zeros(64, "u4"), threads=64, shared=256)
    assert (out[32:] == np.arange(32)).all()


def test_barriers_that_fold():
    body = (
        """setp.lt.u32 %p1, %r0, 40; bar.red.popc.u32 %r1, 0, %p1; bar.red.or.pred %p2, 0, %p1;
    selp.u32 %r2, 100, 0, %p2;
    add.u32 %r9, %r1, %r2;"""
        + OUT
    )
    (out,) = run(body, np.zeros(64, "u4"), threads=64)
    assert (out == 140).all()
