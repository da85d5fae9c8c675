"""The CUDA product engine (nbkernels/cuda/product): its plans as pure numbers, its kernels interpreted and assembled.

Kernels run on the interpreter (tests/ptx), which traps races, misaligned accesses and accesses outside the arrays, and
must give the CPU's bits. float64's tensor cores are interpreted as the increasing chain that they are on a card.
"""

import itertools

import numpy as np
import pytest

import nbkernels
from tests.compare import same_bits

try:
    from nbkernels.cuda import gemm as products
    from nbkernels.cuda.assemble import assemble
    from nbkernels.cuda.kinds import kind_of
    from nbkernels.cuda.memory import empty
    from nbkernels.cuda.product import choose, gemm, layout
    from nbkernels.cuda.product.config import SHARED, GemmConfig, candidates, legal
    from nbkernels.cuda.product.layout import Access
    from nbkernels.cuda.product.schedule import schedule
    from nbkernels.cuda.product.variant import Variant
    from nbkernels.dispatch.driver import DeviceView
    from tests.on_cuda import wheels
    from tests.ptx.device import Device

    wheels.work()
except (ImportError, RuntimeError) as error:
    pytest.skip(f"lacks the CUDA wheels: {str(error).splitlines()[0]}", allow_module_level=True)

pytestmark = pytest.mark.usefixtures("at_first")
CHOSEN = {chain: choose.configs((9, 0), chain) for chain in ("float32", "float64", "complex64", "complex128", "int64")}
CONFIGS = [(chain, config) for chain, each in CHOSEN.items() for config in each]
ACCESSES = {"S": [Access("k", 1), Access("l", 1), Access("l", 0)], "D": [Access(o, v) for o in "kl" for v in (1, 2)]}
MATRIX = [GemmConfig("D", *sizes) for sizes in choose.MATRIX]
AMPERE = GemmConfig("D8", *choose.MATRIX[2])


def widest(access, chain):
    """Access("l", 0): 16 bytes at a time."""
    return access if access.vector else Access(access.order, 16 // np.dtype(chain).itemsize)


# --- plans ------------------------------------------------------------------------------------------------------------


LONG = GemmConfig("S", 256, 16, 8, 2, 1)  # more 16-byte pieces in a line of a slice than threads


@pytest.mark.parametrize(("chain", "config"), [*CONFIGS, ("float32", LONG)], ids=str)
def test_copies_fill_a_slice_once(chain, config):
    """Every element of A's and B's slices is copied by one thread, to a place of its own inside the slice."""
    threads = 32 * config.warps
    for a, b in itertools.product([widest(x, chain) for x in ACCESSES[config.tier]], repeat=2):
        for each in layout.slices(config, chain, a, b):
            vector, found, places = each.access.vector, set(), set()
            for thread, (along, across, offset) in itertools.product(range(threads), each.copies(threads)):
                x, y = thread % each.pieces * vector, thread // each.pieces
                start = (x * each.line + y * each.step) if each.by_lines else (x * each.step + y * each.line)
                at = start * each.size + offset
                assert at % (vector * each.size) == 0
                for e in range(vector):
                    i, p = (x + along + e, y + across) if each.by_lines else (y + across, x + along + e)
                    assert at + e * each.size == (i * each.line + p * each.step) * each.size < each.bytes
                    found.add((i, p))
                    places.add(at + e * each.size)
            assert len(found) == len(places) == each.lines * each.depth
            assert {i for i, _ in found} == {*range(each.lines)}


@pytest.mark.parametrize(("chain", "config"), CONFIGS, ids=str)
def test_parts_cover_a_tile_once(chain, config):
    """By warps, lanes and the pieces in which a thread stores its chains."""
    mine, stored = layout.part(config, chain), layout.pieces(config, chain)
    assert mine.down * mine.across == config.warps
    assert (mine.down * mine.wm, mine.across * mine.wn) == (config.bm, config.bn)
    assert mine.lm * mine.ln == 32
    tall = 1 if config.matrix else stored.inner
    corners = [(i * tall, j * stored.width) for i in range(mine.lm) for j in range(mine.ln)]
    walk = itertools.product(corners, range(stored.groups), range(stored.count), range(stored.width))
    found = [
        (
            i + g // stored.inner * stored.outer + g % stored.inner + h % stored.rows * 8,
            j + h // stored.rows * stored.step + e,
        )
        for (i, j), g, h, e in walk
    ]
    assert sorted(found) == [*itertools.product(range(mine.wm), range(mine.wn))]
    if config.tier == "S":
        bits = layout.lane_bits(mine.lm, mine.ln)
        assert sorted(itertools.chain(*bits)) == [*range(5)]


@pytest.mark.parametrize(("m", "n", "items", "segments"), [(1, 1, 1, 1), (300, 700, 1, 1), (2000, 100, 3, 2)])
def test_a_schedule_gives_each_tile_one_block(m, n, items, segments):
    config = GemmConfig("S", 64, 32, 16, 3, 2)
    place = schedule(config).py_func
    made = [tuple(map(int, place(i, m, n, segments))) for i in range(config.tiles(m, n) * items * segments)]
    wanted = itertools.product(range(items), range(segments), range(0, m, 64), range(0, n, 32))
    assert {each[:4] for each in made} == {*wanted}
    assert len({(each[1], each[4]) for each in made}) == len(made)


def test_a_config_that_cannot_be_is_refused_with_reasons():
    for config, chain, cc, reason in (
        (GemmConfig("X", 64, 64, 8, 3, 2), "float32", (9, 0), "tier 'X' is none of S, D, D8, M, W"),
        (GemmConfig("S", 64, 64, 8, 1, 2), "float32", (9, 0), "stages=1"),
        (GemmConfig("S", 64, 64, 8, 3, 2), "float32", (7, 5), "compute capability 7.5 is below 8.0"),
        (GemmConfig("S", 96, 64, 8, 3, 2), "float32", (9, 0), "96 x 64 is not made of powers of two"),
        (GemmConfig("S", 256, 256, 8, 3, 4), "float32", (9, 0), "512 elements a thread are none of"),
        (GemmConfig("D", 64, 64, 16, 3, 4), "float32", (9, 0), "tier D multiplies float64, not float32"),
        (GemmConfig("D8", 128, 128, 16, 6, 8), "float64", (8, 6), "bytes of shared memory are more than 101376"),
        (GemmConfig("D", 64, 64, 16, 3, 4), "float64", (8, 0), "no mma.sync of 16 rows in float64"),
        (GemmConfig("M", 64, 64, 16, 3, 4), "bfloat16", (9, 0), "bk=16 is not a multiple of 32, two steps in turn"),
        (GemmConfig("S", 8, 128, 8, 3, 1), "int64", (9, 0), "1 warps do not cover 8 x 128"),  # by lanes in one row
        (GemmConfig("S", 64, 64, 8, 3, 2, 65), "float32", (9, 0), "raster=65 is not from 1 to 64"),
    ):
        reasons = legal(config, chain, cc)
        assert any(reason in each for each in reasons), reasons


@pytest.mark.parametrize("cc", SHARED, ids=str)
@pytest.mark.parametrize("chain", [*CHOSEN, "int32"])
def test_every_device_has_configs(cc, chain):
    """For every shape one of those that are legal there; D where it is faster."""
    for m, n, k in itertools.product((1, 16, 300, 8192), (1, 64, 5000), (0, 1, 4096, 70_000)):
        config = choose.choose(cc, 80, chain, m, n, k)
        assert legal(config, chain, cc) == []
        assert config.split in (False, k > 4096)
    large = choose.choose(cc, 80, chain, 8192, 8192, 8192)
    assert large.tier == (choose.DOUBLE.get(cc, "S") if chain == "float64" else "S")
    assert candidates(large.tier, chain, cc)


# --- kernels, interpreted ---------------------------------------------------------------------------------------------


@pytest.fixture
def gpu(monkeypatch):
    return Device().installed(monkeypatch)


def numbers(rng, *shape, dtype="float32"):
    dtype = np.dtype(dtype)
    if dtype.kind in "iu":
        return rng.integers(np.iinfo(dtype).min, np.iinfo(dtype).max, shape, dtype, endpoint=True)
    x = rng.standard_normal(shape)
    return (x + 1j * rng.standard_normal(shape) if dtype.kind == "c" else x).astype(dtype)


def readonly(x):
    x.flags.writeable = False
    return x


def product(gpu, out, a, b, config, x=None, beta=0, alpha=1):
    """Computes into out, which is returned."""
    kind = kind_of(*(each.dtype.name for each in (a, b, out)))
    arrays = [None if each is None else gpu.array(each) for each in (out, x, a, b)]
    gemm.multiply(*arrays, beta, alpha, kind, a.shape[-1], config)
    return out


def ordered(x, order):
    """x in memory by rows, "N", by columns, "T", or apart and backwards, "A"."""
    if order == "N":
        return readonly(x.copy())
    if order == "T":
        return readonly(x.mT.copy()).mT
    wide = np.full((*x.shape[:-2], 2 * x.shape[-2], 3 * x.shape[-1]), 99).astype(x.dtype)[..., ::-2, ::-3]
    wide[...] = x
    return readonly(wide)


def factors(dtype):
    return (3, -2) if np.dtype(dtype).kind in "iu" else (1 + 2j, 2 - 1j) if np.dtype(dtype).kind == "c" else (0.5, -2)


SMALL = [(c, config) for c, config in CONFIGS if config.bm * config.bn <= 64 * 64] + [
    ("int32", choose.SIMT[2]),
    ("float64", AMPERE),
]


@pytest.mark.sampled
@pytest.mark.parametrize(("dtype", "config"), SMALL, ids=str)
def test_every_config_has_the_cpus_bits(gpu, rng, dtype, config):
    """Ragged in all sizes, with x, beta and alpha, A by rows and B by rows: a few tiles, more slices than stages."""
    m, n, k = config.bm + 3, config.bn + 16, config.bk * (config.stages + 1) + 3
    a, b, x = numbers(rng, m, k, dtype=dtype), numbers(rng, k, n, dtype=dtype), numbers(rng, m, n, dtype=dtype)
    beta, alpha = factors(dtype)
    got = product(gpu, np.full((m, n), 7, dtype), ordered(a, "N"), ordered(b, "N"), config, x, beta, alpha)
    same_bits(got, nbkernels.addmm(x, a, b, beta=beta, alpha=alpha))


LARGE = [("float32", choose.SIMT[0]), ("float32", choose.SIMT[1]), ("float64", MATRIX[0])]


@pytest.mark.sampled
@pytest.mark.parametrize(("dtype", "config"), LARGE, ids=str)
def test_large_tiles_without_guards(gpu, rng, dtype, config):
    """The kernels of large products: whole tiles, 16-byte copies where the layout has them, 16-byte stores."""
    a, b = numbers(rng, config.bm, 48, dtype=dtype), numbers(rng, 48, config.bn, dtype=dtype)
    same_bits(product(gpu, np.full((config.bm, config.bn), 7, dtype), a, b, config), nbkernels.mm(a, b))
    assert [kernel.arguments[0].ragged for kernel, _ in gpu.launches] == [False]
    assert gpu.launches[0][0].arguments[0].vector == 16 // a.dtype.itemsize


@pytest.mark.sampled
@pytest.mark.parametrize("orders", ["NTN", "TNN", "TTN", "AAA", "NNT"])
@pytest.mark.parametrize(("dtype", "config"), [("float32", choose.SIMT[4]), ("float64", MATRIX[2])], ids=str)
def test_layouts(gpu, rng, dtype, config, orders):
    """Of A, B, and of C and X; what lies between C's elements stays."""
    m, n, k = 40, 36, 42
    a, b, x = numbers(rng, m, k, dtype=dtype), numbers(rng, k, n, dtype=dtype), numbers(rng, m, n, dtype=dtype)
    out = ordered(np.full((m, n), 7, dtype), orders[2])
    whole = out if out.base is None else out.base
    whole.flags.writeable = out.flags.writeable = True
    before = whole.copy()
    product(gpu, out, ordered(a, orders[0]), ordered(b, orders[1]), config, ordered(x, orders[2]), 0.5, -2)
    same_bits(out, nbkernels.addmm(x, a, b, beta=0.5, alpha=-2))
    out[...] = 7
    same_bits(whole, before)


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("dtype", "tier", "split"),
    [("float32", "S", False), ("float64", "D", False), ("float16", "S", True), ("float64", "D", True),
             ("float32", "S", True), ("complex64", "S", False), ("float16", "S", False), ("complex64", "S", True)],
)  # fmt: skip
def test_segments(gpu, rng, dtype, tier, split):
    """k = 8197, three chains: in one launch where a block walks them, in two where each has a block."""
    config = GemmConfig(tier, 32, 32, 64 if dtype[0] != "c" else 16, 2, 4, split=split)
    a, b, x = (numbers(rng, *shape, dtype=dtype) for shape in ((5, 8197), (8197, 31), (31,)))
    got = product(gpu, np.full((5, 31), 7, dtype), a, b, config, x, 0.5, -2)
    same_bits(got, nbkernels.addmm(x, a, b, beta=0.5, alpha=-2))
    assert [kernel.arguments[0].role for kernel, _ in gpu.launches] == (["part", "sum"] if split else ["long"])


def test_a_workspace_lives_until_all_is_launched(gpu, monkeypatch):
    """What is given back before a launch is somebody else's when the kernel runs."""
    events = []

    class Room(DeviceView):
        def __del__(self):
            events.append("given back")

    def room(shape, like, dtype):
        made = empty(shape, like, dtype)
        return Room(made.address, made.shape, made.strides, made.dtype, 0, made.stream, made.owner, made.adapter)

    monkeypatch.setattr(gemm, "empty", room)
    monkeypatch.setattr(gemm, "launch", lambda kernel, *rest, **more: events.append(kernel.arguments[0].role))
    a, b = np.ones((2, 8192), "f4"), np.ones((8192, 3), "f4")
    for split, roles in ((True, ["part", "sum"]), (False, ["long"])):
        product(gpu, np.zeros((2, 3), "f4"), a, b, GemmConfig("S", 32, 32, 64, 2, 4, split=split))
        assert events == [*roles, "given back"]
        events.clear()


@pytest.mark.parametrize("config", [choose.SIMT[-1], choose.SIMT[4]], ids=str)
def test_batches_are_one_launch(gpu, rng, config):
    """With strides of items that are 0 or negative, and one x for all. A block has eight items where a warp has one."""
    a, b, x = numbers(rng, 11, 17, 9), numbers(rng, 1, 9, 12), numbers(rng, 12)
    out = np.full((11, 17, 12), 7, "f4")
    product(gpu, out, readonly(a)[::-1], np.broadcast_to(b, (11, 9, 12)), config, x, 2, 3)
    same_bits(out, nbkernels.baddbmm(x, a[::-1], np.broadcast_to(b, (11, 9, 12)), beta=2, alpha=3))
    assert len(gpu.launches) == 1


def test_bmm_is_one_launch(gpu, rng):
    a, b = numbers(rng, 40, 16, 16), numbers(rng, 40, 16, 16)
    out = np.full((40, 16, 16), 7, "f4")
    products.bmm(*map(gpu.array, (out, a, b)))
    same_bits(out, nbkernels.bmm(a, b))
    assert len(gpu.launches) == 1


@pytest.mark.parametrize(("beta", "alpha", "k"), [(0, 1, 0), (2, 1, 0), (2, 0, 5), (0, 0, 5), (0, 1, 5)])
def test_nothing_is_read_that_does_not_count(gpu, beta, alpha, k):
    """x where beta is 0, a and b where alpha is 0 or there is no k: they are NaN here."""
    x, a, b = np.full((3, 4), np.nan if beta == 0 else -0.0, "f4"), np.ones((3, k), "f4"), np.ones((k, 4), "f4")
    if alpha == 0:
        a[...] = b[...] = np.nan
    out = np.full((1, 3, 4), 7, "f4")
    products.baddbmm(*map(gpu.array, (out, x, a[None], b[None])), beta, alpha)
    if alpha == 0 or k == 0:
        assert {str(kernel.arguments[0].a) for kernel, _ in gpu.launches} == {"l1"}
    assert not np.isnan(out).any()
    same_bits(out[0], nbkernels.addmm(x, a, b, beta=beta, alpha=alpha))


def test_underflow_to_negative_zero_stays(gpu):
    """A product that rounds to -0 is kept in a ragged slice of either tier: what pads it adds -0."""
    for dtype, config in (("float32", choose.SIMT[4]), ("float64", MATRIX[2]), ("float64", AMPERE)):
        tiny = np.finfo(dtype).tiny
        a, b = np.full((2, 1), -tiny, dtype), np.full((1, 3), tiny, dtype)
        got = product(gpu, np.full((2, 3), 7, dtype), a, b, config)
        assert (got == 0).all()
        assert np.signbit(got).all()


# --- kernels, assembled -----------------------------------------------------------------------------------------------

# What stores one number at a time from the largest tile spills, by CUDA 13.5; what it costs has not been measured.
SPILLED = pytest.mark.xfail(strict=True, reason="spills 460 to 490 bytes")
GATES = [
    (Variant(choose.SIMT[0], kind_of(*["float32"] * 3), Access("k", 1), Access("l", 4), 4, False), (9, 0)),
    pytest.param(Variant(choose.SIMT[1], kind_of(*["float32"] * 3), Access("k", 1), Access("k", 1), 1, True, "long"),
                 (8, 6), marks=SPILLED),
    (Variant(choose.SIMT[0], kind_of(*["int32"] * 3), Access("l", 4), Access("k", 1), 4, True), (8, 0)),
    (
        Variant(
            GemmConfig("D8", *choose.MATRIX[0]),
            kind_of(*["float64"] * 3),
            Access("k", 2),
            Access("l", 2),
            2,
            True,
            "long",
        ),
        (8, 0),
    ),
    (Variant(MATRIX[0], kind_of(*["float64"] * 3), Access("k", 1), Access("k", 1), 1, True), (9, 0)),
    (Variant(choose.WIDE[0], kind_of(*["complex64"] * 3), Access("k", 1), Access("l", 2), 2, True), (9, 0)),
    (Variant(choose.WIDEST[0], kind_of(*["complex128"] * 3), Access("k", 1), Access("l", 1), 1, True), (8, 0)),
    pytest.param(Variant(choose.SIMT[1], kind_of(*["float16"] * 3), *[Access("k", 1, True)] * 2, 1, True), (9, 0),
                 marks=SPILLED),
    (Variant(GemmConfig("M", 128, 128, 32, 4, 8), kind_of(*["bfloat16"] * 3), Access("k", 1, True), Access("l", 8), 1,
             True, "long"), (8, 0)),
    (Variant(GemmConfig("M", 128, 64, 32, 4, 4), kind_of(*["bfloat16"] * 3), Access("k", 1, True),
             Access("l", 1, True), 1, True), (9, 0)),
    (Variant(GemmConfig("M", 128, 128, 32, 4, 8), kind_of(*["float16"] * 3), Access("l", 2), Access("l", 1, True), 1,
             True), (8, 0)),
    (Variant(GemmConfig("M", 128, 64, 64, 4, 8), kind_of("int8", "uint8", "int32"), Access("k", 4),
             Access("k", 1, True), 1, True, "long"), (8, 9)),
    (Variant(GemmConfig("M", 128, 64, 64, 4, 8), kind_of("int8", "uint8", "int32"), Access("k", 16),
             Access("l", 1, True), 4, True), (8, 6)),
    (Variant(GemmConfig("M", 128, 128, 16, 4, 8), kind_of(*["float32"] * 3), Access("k", 1), Access("l", 4), 4, True,
             "long"), (9, 0)),
]  # fmt: skip


@pytest.mark.sampled
@pytest.mark.parametrize(("variant", "cc"), GATES, ids=str)
def test_resources(variant, cc):
    kernel = gemm.kernel(variant)
    used = assemble(kernel, cc).resources
    print(kernel, cc, used)
    assert used.spilled == used.stack == 0
    assert used.registers * kernel.threads * kernel.blocks <= 65536
    assert kernel.shared <= SHARED[cc]
    chains = variant.config.bm * variant.config.bn // kernel.threads * variant.size // 4
    assert used.registers >= chains  # or they are not there
