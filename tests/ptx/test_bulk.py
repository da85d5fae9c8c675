"""Bulk copies and clusters in the PTX interpreter (tests/ptx): tensor maps, stores, exchanges between blocks."""

import numpy as np
import pytest

from tests import ptx
from tests.ptx import TensorMap, Trap
from tests.ptx.programs import program, run
from tests.ptx.test_copies import WORD, faulty, trapped

# --- tensor maps ------------------------------------------------------------------------------------------------------

INIT = """setp.eq.u32 %p1, %r0, 0; @!%p1 bra READY; mbarrier.init.shared.b64 [smem+4096], 1;
fence.mbarrier_init.release.cluster; READY: bar.sync 0;"""
ISSUE = """@!%p1 bra WAIT; mbarrier.arrive.expect_tx.shared.b64 _, [smem+4096], %r20; mov.u32 %r21, smem;
cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r21], [p1, {%r22, %r23}], [smem+4096];
WAIT: mov.u32 %r24, 0; TRY: mbarrier.try_wait.parity.shared::cta.b64 %p2, [smem+4096], %r24; @!%p2 bra TRY;"""
ALL_OUT = "".join(
    f"ld.shared.u32 %r9, [smem_{i}];".replace(f"smem_{i}", f"%r2+{128 * i}") + f"st.global.u32 [%rd6+{128 * i}], %r9;"
    for i in range(32)
)
LOAD = f"{WORD} add.u64 %rd6, %rd5, %rd0; {INIT} mov.u32 %r20, 4096; mov.u32 %r22, <x>; mov.u32 %r23, <y>;\n"
LOAD += ISSUE + ALL_OUT


def at(x, y):
    return LOAD.replace("<x>", str(x)).replace("<y>", str(y))


def aligned(x):
    """The array at an address that is a multiple of 128."""
    raw = np.zeros(x.nbytes + 128, np.uint8)
    made = raw[-raw.ctypes.data % 128 :][: x.nbytes].view(x.dtype).reshape(x.shape)
    made[...] = x
    return made


def tensor_map(x, box, swizzle=128):
    return TensorMap(x.ctypes.data, x.shape[::-1], x.strides[-2::-1], box, x.dtype, swizzle)


def load(body, source, map_):
    """Run a program that brings 4096 bytes to the beginning of shared memory and writes them out."""
    out = np.zeros(1024, "u4")
    text = program(body, ["u64", "map"], 8192)
    ptx.run(text, 1, 32, [out.ctypes.data, map_], ptx.Memory(out, source))
    return out


def swizzle(x, span):
    """Rows of bytes as shared memory has them: the 16-byte pieces of 128 bytes are told by bits 7 to 9 of the place."""
    flat, result = x.reshape(-1, 16), np.zeros((x.size // 16, 16), np.uint8)
    for piece in range(len(flat)):
        result[piece ^ (piece >> 3 & span // 16 - 1)] = flat[piece]
    return result.ravel()


@pytest.mark.parametrize(("x", "y"), [(0, 0), (32, 8), (40, 30), (-4, -3), (100, 100)])
@pytest.mark.parametrize(("dtype", "span"), [("f4", 128), ("f2", 128), ("f2", 64), ("u1", 32)])
def test_tiles_have_their_swizzle_and_zeros_outside(rng, x, y, dtype, span):
    source = aligned(rng.integers(1, 100, (40, 80)).astype(dtype))
    columns = span // source.itemsize
    tile = np.zeros((4096 // span, columns), dtype)
    for row, column in np.ndindex(tile.shape):
        if 0 <= y + row < 40 and 0 <= x + column < 80:
            tile[row, column] = source[y + row, x + column]
    found = load(at(x, y), source, tensor_map(source, (columns, len(tile)), span))
    assert (found.view(np.uint8) == swizzle(tile.view(np.uint8).reshape(len(tile), span), span)).all()


@pytest.mark.parametrize(("old", "new", "message"), [
    ("TRY: mbarrier.try_wait.parity.shared::cta.b64 %p2, [smem+4096], %r24; @!%p2 bra TRY;", "",
     "a read without a barrier after the store|that nobody has written"),
    ("mov.u32 %r20, 4096;", "mov.u32 %r20, 4112;", "deadlock"),
    ("mov.u32 %r20, 4096;", "mov.u32 %r20, 4080;", "deadlock"),
    ("fence.mbarrier_init.release.cluster;", "", "without a fence after its initialisation"),
    ("READY: bar.sync 0;", "READY:", "no mbarrier|nobody has written|without a barrier"),
    ("mov.u32 %r21, smem;", "mov.u32 %r21, smem; add.u32 %r21, %r21, 128;", "no multiple of 1024"),
    ("[%r21], [p1, {%r22, %r23}]", "[%r21+4096], [p1, {%r22, %r23}]", "without a barrier after"),  # the mbarrier
    ("[%r21], [p1, {%r22, %r23}]", "[%r21+5120], [p1, {%r22, %r23}]", "of a block's 8192"),
    ("[p1, {%r22, %r23}]", "[p1, {%r22}]", "1 coordinates for a tensor of 2"),
    ("TRY: mbarrier.try_wait.parity.shared::cta.b64 %p2, [smem+4096], %r24;",
     "TRY: setp.eq.u32 %p2, 0, 0; xor.b32 %r24, %r24, 1; mbarrier.test_wait.parity.shared.b64 %p3, [smem+4096], %r24;",
     "a read without a barrier after the store|that nobody has written"),  # the phase before
])  # fmt: skip
def test_faults_of_a_load(old, new, message):
    source = aligned(np.zeros((40, 80), "f4"))
    with pytest.raises(Trap, match=message):
        load(faulty(at(0, 0), old, new), source, tensor_map(source, (32, 32)))


def test_a_map_that_reaches_beyond_its_array():
    source = aligned(np.zeros((40, 80), "f4"))
    beyond = TensorMap(source.ctypes.data, (80, 41), (320,), (32, 32), np.dtype("f4"))
    with pytest.raises(Trap, match="global load of 1 bytes outside"):
        load(at(0, 32), source, beyond)


@pytest.mark.parametrize(("changes", "message"), [
    (dict(address=4104), "not a multiple of 16"), (dict(strides=(324,)), "multiples of 16"),
    (dict(box=(64, 32)), "more than the swizzle's 128"), (dict(box=(32, 257)), "1 to 256"),
    (dict(box=(3, 32)), "12 bytes of the innermost"), (dict(dims=(80, 40, 2)), "3 dimensions"),
    (dict(dims=(80, 0)), "1 to 2"),
])  # fmt: skip
def test_maps_that_there_are_not(changes, message):
    given = dict(address=4096, dims=(80, 40), strides=(320,), box=(32, 32), dtype=np.dtype("f4"), swizzle=128)
    with pytest.raises(ValueError, match=message):
        TensorMap(**(given | changes))


# Each thread stores 128 bytes, one of them sends the tile out, and the place is used again.
SEND = (
    """mov.u32 %r1, smem; shl.b32 %r2, %r0, 7; add.u32 %r2, %r2, %r1; setp.eq.u32 %p1, %r0, 0;
"""
    + "".join(f"add.u32 %r3, %r0, {32 * i}; st.shared.u32 [%r2+{4 * i}], %r3;" for i in range(32))
    + """
fence.proxy.async.shared::cta; bar.sync 0;
@!%p1 bra SENT; mov.u32 %r4, 16; mov.u32 %r5, 8;
cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [p1, {%r4, %r5}], [%r1];
cp.async.bulk.commit_group; cp.async.bulk.wait_group.read 0; SENT: bar.sync 1;
st.shared.u32 [%r2], 7;"""
)


def send(body):
    target = aligned(np.zeros((40, 80), "u4"))
    load(body, target, tensor_map(target, (32, 32)))
    return target


def test_a_tile_is_sent_out():
    """What lies beyond the tensor is not written."""
    target = send(SEND)
    rows = np.arange(32)[:, None] + 32 * np.arange(32)
    tile = np.zeros((32, 32), np.uint32)
    for row in range(32):
        for piece in range(8):
            tile[row, 4 * piece : 4 * piece + 4] = rows[row, 4 * (piece ^ row % 8) :][:4]
    assert (target[8:40, 16:48] == tile).all()
    target[8:40, 16:48] = 0
    assert not target.any()


@pytest.mark.parametrize(("old", "new", "message"), [
    ("fence.proxy.async.shared::cta;", "", "without fence.proxy.async"),
    ("bar.sync 0;", "", "a read without a barrier|nobody has written"),
    ("cp.async.bulk.wait_group.read 0;", "", "may still read"),
    ("cp.async.bulk.wait_group.read 0;", "cp.async.bulk.wait_group.read 1;", "may still read"),
    ("cp.async.bulk.commit_group;", "", "may still read"),
    ("SENT: bar.sync 1;", "SENT:", "may still read|a store without a barrier after a read"),
    ("wait_group.read 0; SENT: bar.sync 1;\nst.shared.u32 [%r2], 7;", "wait_group.read 1; SENT:",
     "ends while its bulk store"),
])  # fmt: skip
def test_faults_of_a_store(old, new, message):
    with pytest.raises(Trap, match=message):
        send(faulty(SEND, old, new))


def test_runs_of_bytes(rng):
    """In, out, and to the other block of a cluster."""
    body = f"""{WORD} add.u64 %rd6, %rd5, %rd0; {INIT} mov.u32 %r20, 4096; mov.u32 %r21, smem; @!%p1 bra WAIT;
    mbarrier.arrive.expect_tx.shared.b64 _, [smem+4096], 4096;
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r21], [%rd1], %r20, [smem+4096];
    WAIT: mov.u32 %r24, 0; TRY: mbarrier.try_wait.parity.shared::cta.b64 %p2, [smem+4096], %r24; @!%p2 bra TRY;
    bar.sync 0; @!%p1 bra END; cp.async.bulk.global.shared::cta.bulk_group [%rd0], [%r21], %r20;
    cp.async.bulk.commit_group; cp.async.bulk.wait_group 0; END:"""
    data = aligned(rng.integers(0, 99, 1024).astype("u4"))
    out, _ = run(body, aligned(np.zeros(1024, "u4")), data, shared=8192)
    assert (out == data).all()
    trapped(faulty(body, "mov.u32 %r20, 4096;", "mov.u32 %r20, 4088;"), "not multiples of 16", out, data, shared=8192)


# --- clusters ---------------------------------------------------------------------------------------------------------

# Each thread sends its number to its like in the other block, whose mbarrier counts the bytes.
EXCHANGE = f"""{WORD} mov.u32 %r10, %cluster_ctarank; xor.b32 %r11, %r10, 1; {INIT}
@!%p1 bra MET; mbarrier.arrive.expect_tx.shared.b64 _, [smem+4096], 128; MET:
barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;
mapa.shared::cluster.u32 %r12, %r2, %r11; mov.u32 %r13, smem; add.u32 %r13, %r13, 4096;
mapa.shared::cluster.u32 %r13, %r13, %r11; mov.u32 %r14, %ctaid.x; mad.lo.u32 %r14, %r14, 100, %r0;
st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%r12], %r14, [%r13];
mov.u32 %r24, 0; TRY: mbarrier.try_wait.parity.shared::cta.b64 %p2, [smem+4096], %r24; @!%p2 bra TRY;
ld.shared.u32 %r9, [%r2]; mov.u32 %r14, %ctaid.x; mad.lo.u32 %r14, %r14, 32, %r0; mul.wide.u32 %rd5, %r14, 4;
add.u64 %rd6, %rd5, %rd0; st.global.u32 [%rd6], %r9;
barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;"""


def test_blocks_of_a_cluster_exchange(rng):
    (out,) = run(EXCHANGE, np.zeros(128, "u4"), grid=4, cluster=2, shared=8192)
    assert (out.reshape(4, 32) == 100 * np.array([1, 0, 3, 2])[:, None] + np.arange(32)).all()


@pytest.mark.parametrize(("old", "new", "message"), [
    ("barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;", "",
     "no mbarrier|nobody has written|without a barrier"),
    ("barrier.cluster.wait.acquire.aligned;", "", "no mbarrier|nobody has written|without a barrier|twice"),
    ("barrier.cluster.arrive.release.aligned;", "", "without having arrived"),
    ("TRY: mbarrier.try_wait.parity.shared::cta.b64 %p2, [smem+4096], %r24; @!%p2 bra TRY;", "",
     "without a barrier|nobody has written"),
    ("mapa.shared::cluster.u32 %r12, %r2, %r11;", "mov.u32 %r12, %r2;", "of another block"),
    ("_, [smem+4096], 128;", "_, [smem+4096], 132;", "deadlock"),
    ("xor.b32 %r11, %r10, 1;", "add.u32 %r11, %r10, 1;", "mapa to rank 2"),
])  # fmt: skip
def test_faults_of_an_exchange(old, new, message):
    trapped(faulty(EXCHANGE, old, new), message, np.zeros(128, "u4"), grid=4, cluster=2, shared=8192)


def test_a_block_that_has_ended_is_not_reached():
    body = """mov.u32 %r1, smem; mov.u32 %r2, 1; mapa.shared::cluster.u32 %r3, %r1, %r2; mov.u32 %r4, %cluster_ctarank;
    st.shared.u32 [smem], 1; barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
    setp.eq.u32 %p1, %r4, 1; @%p1 ret; ld.shared::cluster.u32 %r5, [%r3]; st.global.u32 [%rd0], %r5;"""
    trapped(body, "which has ended", np.zeros(1, "u4"), threads=1, grid=2, cluster=2, shared=64)
    stays = body.replace("@%p1 ret;", "") + "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;"
    (out,) = run(stays, np.zeros(1, "u4"), threads=1, grid=2, cluster=2, shared=64)
    assert out[0] == 1
