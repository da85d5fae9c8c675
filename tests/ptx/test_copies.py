"""Asynchronous copies of threads in the PTX interpreter (tests/ptx): cp.async and mbarriers.

Each program that is right stands beside ones that lack a wait, a fence or a barrier, which have to be found.
"""

import numpy as np
import pytest

from tests.ptx import Trap
from tests.ptx.programs import run

WORD = "mov.u32 %r1, smem; shl.b32 %r2, %r0, 2; add.u32 %r2, %r2, %r1; mul.wide.u32 %rd5, %r0, 4;"
# out[i] = a word of shared memory at %r3
OUT = "ld.shared.u32 %r9, [%r3]; add.u64 %rd6, %rd5, %rd0; st.global.u32 [%rd6], %r9;"


def faulty(right: str, old: str, new: str = "") -> str:
    """The program with one thing planted."""
    assert right.count(old) == 1, (right, old)
    return right.replace(old, new)


def trapped(body: str, message: str, *arrays, **how):
    with pytest.raises(Trap, match=message):
        run(body, *arrays, **how)


# --- cp.async ---------------------------------------------------------------------------------------------------------

# Two stages of a word for each of 64 threads; each reads its neighbour's in the other warp.
STAGES = f"""{WORD} add.u64 %rd6, %rd5, %rd1; add.u32 %r4, %r0, 32; and.b32 %r4, %r4, 63; shl.b32 %r4, %r4, 2;
add.u32 %r4, %r4, %r1; mov.u32 %r8, 0;
cp.async.ca.shared.global [%r2], [%rd6], 4; cp.async.commit_group;
cp.async.ca.shared.global [%r2+256], [%rd6+256], 4; cp.async.commit_group;
cp.async.wait_group 1; bar.sync 0;
ld.shared.u32 %r5, [%r4];
bar.sync 1;
cp.async.ca.shared.global [%r2], [%rd6+512], 4; cp.async.commit_group;
cp.async.wait_group 0; bar.sync 2;
ld.shared.u32 %r6, [%r4+256]; ld.shared.u32 %r7, [%r4];
add.u32 %r5, %r5, %r6; add.u32 %r5, %r5, %r7; add.u64 %rd6, %rd5, %rd0; st.global.u32 [%rd6], %r5;"""


@pytest.mark.parametrize("grid", [1, 3])
def test_stages_of_copies(rng, grid):
    data = rng.integers(0, 1 << 20, 192).astype("u4")
    out, _ = run(STAGES, np.zeros(64, "u4"), data, threads=64, shared=512, grid=grid)
    assert (out == np.roll(data.reshape(3, 64), 32, 1).sum(0)).all()


@pytest.mark.parametrize(("old", "new", "message"), [
    ("cp.async.wait_group 1;", "", "may still arrive"),
    ("cp.async.wait_group 1;", "cp.async.wait_group 2;", "may still arrive"),
    ("cp.async.wait_group 0;", "cp.async.wait_group 1;", "may still arrive"),
    ("bar.sync 0;", "", "without a barrier after the store|that nobody has written|may still arrive"),
    ("bar.sync 1;", "", "a store without a barrier after a read"),
    ("bar.sync 2;", "", "without a barrier after the store|may still arrive"),
    ("[%r2+256], [%rd6+256]", "[%r2], [%rd6+256]", "may still arrive"),
    ("[%r2], [%rd6+512]", "[%r2+256], [%rd6+512]", "may still arrive"),  # the stage that is still on its way
    ("[%rd6+512]", "[%rd6+516]", "global load of 4 bytes outside"),
    ("[%rd6+512]", "[%rd6+514]", "misaligned"),
])  # fmt: skip
def test_faults_of_stages(old, new, message):
    trapped(faulty(STAGES, old, new), message, np.zeros(64, "u4"), np.zeros(192, "u4"), threads=64, shared=512)


def test_copies_of_less_than_their_size():
    """Bytes beyond the count are zero and are not read; with a predicate none is."""
    body = f"""{WORD} shl.b32 %r3, %r0, 4; add.u32 %r3, %r3, %r1; mul.wide.u32 %rd7, %r0, 16; add.u64 %rd7, %rd7, %rd1;
    mul.lo.u32 %r4, %r0, 4; setp.eq.u32 %p1, %r0, 0; cp.async.cg.shared.global [%r3], [%rd7], 16, %r4;
    @!%p1 bra WAIT; cp.async.cg.shared.global [%r3+80], [%rd1+64], 16, %p1; WAIT: cp.async.wait_all;
    bar.warp.sync -1; ld.shared.v4.u32 {{%r5, %r6, %r7, %r8}}, [%r3]; mul.wide.u32 %rd7, %r0, 16;
    add.u64 %rd7, %rd7, %rd0;    st.global.v4.u32 [%rd7], {{%r5, %r6, %r7, %r8}};"""
    data = np.arange(1, 17).astype("u4")
    out, _ = run(body, np.full(16, 9, "u4"), data, threads=4, shared=128)
    assert (out.reshape(4, 4) == np.where(np.arange(4) < np.arange(4)[:, None], data.reshape(4, 4), 0)).all()


# --- mbarriers --------------------------------------------------------------------------------------------------------

# A producer warp copies a word for each of its lanes, phase after phase, and a consumer warp adds them.
PIPE = f"""{WORD} and.b32 %r10, %r0, 31; setp.eq.u32 %p1, %r0, 0; @!%p1 bra READY;
mbarrier.init.shared.b64 [smem+128], 32; mbarrier.init.shared.b64 [smem+136], 32; READY: bar.sync 0;
mov.u32 %r4, 0; setp.lt.u32 %p1, %r0, 32; @%p1 bra PRODUCE;
mov.u32 %r9, 0; shl.b32 %r5, %r10, 2; add.u32 %r5, %r5, %r1;
CONSUME: and.b32 %r6, %r4, 1;
WAIT_FULL: mbarrier.try_wait.parity.shared.b64 %p2, [smem+128], %r6; @!%p2 bra WAIT_FULL;
ld.shared.u32 %r7, [%r5]; add.u32 %r9, %r9, %r7;
mbarrier.arrive.shared.b64 _, [smem+136];
add.u32 %r4, %r4, 1; setp.lt.u32 %p2, %r4, 3; @%p2 bra CONSUME;
mul.wide.u32 %rd5, %r10, 4; add.u64 %rd6, %rd5, %rd0; st.global.u32 [%rd6], %r9; bra.uni END;
PRODUCE: mul.wide.u32 %rd5, %r0, 4; add.u64 %rd6, %rd5, %rd1;
NEXT: and.b32 %r6, %r4, 1; xor.b32 %r6, %r6, 1;
WAIT_EMPTY: mbarrier.try_wait.parity.shared.b64 %p2, [smem+136], %r6; @!%p2 bra WAIT_EMPTY;
cp.async.ca.shared.global [%r2], [%rd6], 4;
cp.async.mbarrier.arrive.noinc.shared.b64 [smem+128];
add.u64 %rd6, %rd6, 128; add.u32 %r4, %r4, 1; setp.lt.u32 %p2, %r4, 3; @%p2 bra NEXT; END:"""


@pytest.mark.parametrize("grid", [1, 2])
def test_a_pipe_of_two_warps(rng, grid):
    data = rng.integers(0, 1 << 20, (3, 32)).astype("u4")
    out, _ = run(PIPE, np.zeros(32, "u4"), data, threads=64, shared=256, grid=grid)
    assert (out == data.sum(0)).all()


@pytest.mark.parametrize(("old", "new", "message"), [
    ("@!%p2 bra WAIT_FULL;", "", None),  # try_wait waits by itself here
    ("WAIT_FULL: mbarrier.try_wait.parity.shared.b64 %p2, [smem+128], %r6; @!%p2 bra WAIT_FULL;", "",
     "that nobody has written|may still arrive|without a barrier"),
    ("WAIT_EMPTY: mbarrier.try_wait.parity.shared.b64 %p2, [smem+136], %r6; @!%p2 bra WAIT_EMPTY;", "",
     "without a barrier|arrivals at an mbarrier"),
    ("xor.b32 %r6, %r6, 1;", "", "deadlock"),
    ("mbarrier.arrive.shared.b64 _, [smem+136];", "", "deadlock"),
    ("[smem+136], 32;", "[smem+136], 31;", "arrivals at an mbarrier"),
    ("[smem+128], 32;", "[smem+128], 33;", "deadlock"),
    ("READY: bar.sync 0;", "READY:", "no mbarrier|that nobody has written|without a barrier"),
    ("@!%p1 bra READY;", "@!%p1 bra READY; ret;", "have ended"),
    ("cp.async.mbarrier.arrive.noinc", "mbarrier.arrive", None),  # replaced below
])  # fmt: skip
def test_faults_of_a_pipe(old, new, message):
    if new == "mbarrier.arrive":  # the arrival does not wait for the copy
        body, message = PIPE.replace("cp.async.mbarrier.arrive.noinc.shared.b64 [smem+128]",
                                     "mbarrier.arrive.shared.b64 _, [smem+128]"), "may still arrive"  # fmt: skip
    else:
        body = faulty(PIPE, old, new)
    if message is None:
        run(body, np.zeros(32, "u4"), np.zeros(96, "u4"), threads=64, shared=256)
    else:
        trapped(body, message, np.zeros(32, "u4"), np.zeros(96, "u4"), threads=64, shared=256)
