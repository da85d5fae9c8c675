"""Tests of the CUDA kernels that need NUMBA_ENABLE_CUDASIM=1; test_cuda_simulator.py runs them."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import cuda, float64
from numba.core import config

assert config.ENABLE_CUDASIM, "run with NUMBA_ENABLE_CUDASIM=1"

import nbkernels
from nbkernels.cuda import elementwise, gemm, launch, memory, simulator, tiles
from nbkernels.cuda.tiles import Tiles
from tests import reference

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # NumPy's, of overflow and NaN in scalars

# One warp; two pieces down; two warps down; two across; two pieces across, with four warps in f64 (pieces of 2).
TILES = {
    "float32": [Tiles(16, 32, 4, 4, 4), Tiles(32, 32, 8, 8, 4), Tiles(32, 32, 8, 4, 4), Tiles(16, 64, 4, 4, 4),
                Tiles(32, 64, 4, 4, 8)],
    "float64": [Tiles(8, 16, 4, 2, 2), Tiles(16, 16, 4, 4, 2), Tiles(32, 32, 4, 2, 4)],
}  # fmt: skip
SMALL = TILES["float32"][0]
DeviceArray = type(cuda.to_device(np.zeros(1)))


def device(x):
    """The array itself, as a device array: views keep their strides."""
    return DeviceArray(x)


# --- the reference: one exact chain of fused multiply-adds ----------------------------------------


def fma32(a, b, c):
    """a*b + c of float32 arrays, rounded once.

    The product is exact in float64 (48 of 53 bits). The sum is taken there with its error (Knuth's TwoSum) and rounded
    to odd: from 53 bits so rounded, rounding to 24 is right (Boldo and Melquiond, 2008: 53 >= 24 + 2).
    """
    p, c = np.asarray(a, np.float64) * np.asarray(b, np.float64), np.asarray(c, np.float64)
    s = p + c
    t = s - p
    error = (p - (s - t)) + (c - t)
    even = (s.view(np.int64) & 1) == 0
    odd = np.where((error != 0) & np.isfinite(error) & even, np.nextafter(s, np.copysign(np.inf, error)), s)
    return odd.astype(np.float32)


@np.vectorize
def fma64(a, b, c):
    """a*b + c of doubles, rounded once: Python rounds a fraction to the nearest double."""
    if not np.isfinite((a, b, c)).all():
        return a * b + c
    exact = Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c))
    return float(exact) if exact else a * b + c  # a zero's sign is the sum's


def product(x, a, b, beta, alpha, segment=tiles.SEGMENT):
    """beta*x + alpha*(a @ b) in the library's order."""
    dtype, (m, k), n = a.dtype.type, a.shape, b.shape[1]
    fma = fma32 if dtype is np.float32 else fma64
    x = None if beta == 0 else np.broadcast_to(x, (m, n))
    if k == 0 or alpha == 0:
        return np.zeros((m, n), dtype) if x is None else dtype(beta) * x
    total = None
    for start in range(0, k, segment):
        chain = np.zeros((m, n), dtype)
        for p in range(start, min(start + segment, k)):
            chain = fma(a[:, p : p + 1], b[p : p + 1], chain)
        total = chain if total is None else total + chain
    total = dtype(alpha) * total
    return total if x is None else fma(dtype(beta), x, total)


def equal(actual, expected):
    """Equal bit by bit, any NaN equal to any NaN."""
    expected = np.asarray(expected)
    assert (actual.dtype, actual.shape) == (expected.dtype, expected.shape)
    np.testing.assert_array_equal(actual, expected)
    number = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(actual)[number], np.signbit(expected)[number])


def numbers(rng, *shape, dtype="float32"):
    return rng.standard_normal(shape).astype(dtype)


def run(x, a, b, beta=1, alpha=1, tile=SMALL, out=None):
    """The kernel's result in an out full of NaN."""
    out = np.full((a.shape[0], b.shape[1]), np.nan, a.dtype) if out is None else out
    gemm.gemm(device(out), None if x is None else device(np.asarray(x)), device(a), device(b), beta, alpha, tile)
    return out


def test_the_references_fma_and_the_simulators(rng):
    """Hand-made cases where rounding twice is wrong, then two independent ways to round once."""
    one, eps = np.float32(1), np.float32(2**-23)
    # 1 + 2**-24 is a tie; 2**-60 more decides it. Rounded to float64 first, it is lost.
    assert fma32(np.float32(2**-30), np.float32(2**-30), fma32(one, np.float32(2**-24), one)) == one
    assert fma32(one + eps, one - eps, np.float32(-1)) == np.float32(-(2.0**-46))
    assert float(fma64(1 + 2**-52, 1 - 2**-52, -1.0)) == -(2.0**-104)
    a, b = numbers(rng, 2000), numbers(rng, 2000)
    c = -(a * b) * rng.choice([1, 1 + 2**-20, 2**-24, 2**24], 2000).astype("f4")
    pairs = zip(a, b, c, strict=True)
    exact = [Fraction(float(u)) * Fraction(float(v)) + Fraction(float(w)) for u, v, w in pairs]
    ours = fma32(a, b, c)
    for neighbours in (np.nextafter(ours, np.float32(np.inf)), np.nextafter(ours, np.float32(-np.inf))):
        for value, result, neighbour in zip(exact, ours, neighbours, strict=True):
            assert abs(Fraction(float(result)) - value) <= abs(Fraction(float(neighbour)) - value)
    equal(np.array([simulator.fma(None, u, v, w) for u, v, w in zip(a, b, c, strict=True)]), ours)
    d, e, f = (numbers(rng, 200, dtype="f8") for _ in range(3))
    equal(np.array([simulator.fma(None, u, v, w) for u, v, w in zip(d, e, f, strict=True)]), fma64(d, e, f))


@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize("barriers", [(1, 1), (0, 1), (1, 0)])
def test_the_simulator_shows_a_missing_barrier(backwards, barriers):
    """Each thread reads what its neighbour wrote, and then overwrites its own."""

    @cuda.jit
    def kernel(out):
        place, thread = cuda.shared.array(8, float64), cuda.threadIdx.x
        place[thread] = thread
        if barriers[0]:
            cuda.syncthreads()
        out[thread] = place[(thread - 1 if backwards else thread + 1) % 8]
        if barriers[1]:
            cuda.syncthreads()
        place[thread] = 0.5

    out = np.zeros(8)
    kernel[1, 8](out)
    assert ((out + (1 if backwards else -1)) % 8 == np.arange(8)).all() == (barriers == (1, 1))


def test_an_error_in_a_thread_of_the_simulator_ends_the_launch():
    @cuda.jit
    def kernel(out, wrong):
        x, y = cuda.threadIdx.x, cuda.threadIdx.y
        if x == wrong:
            raise ValueError("so")
        cuda.syncthreads()
        out[cuda.blockIdx.x, y, x] = cuda.laneid

    out = np.zeros((3, 2, 20))
    for wrong in (0, 5, 19):
        with pytest.raises(ValueError, match=rf"tid=\[{wrong}, [01], 0\] ctaid=\[0, 0, 0\]: so"):
            kernel[3, (20, 2)](out, wrong)
    assert not out.any()
    kernel[3, (20, 2)](out, 20)
    assert (out == np.arange(40).reshape(2, 20) % 32).all()


# --- GEMM -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("dtype", "tile"), [(d, t) for d in TILES for t in TILES[d]], ids=lambda v: str(v))
def test_bits_across_every_tile_edge(rng, dtype, tile):
    for m, n, k in (
        (1, 1, 1),
        (tile.bm - 1, tile.bn + 1, tile.bk - 1),
        (tile.bm, tile.bn, tile.bk),
        (tile.bm + 1, 3, 2 * tile.bk + 1),
    ):
        a, b, x = numbers(rng, m, k, dtype=dtype), numbers(rng, k, n, dtype=dtype), numbers(rng, n, dtype=dtype)
        equal(run(x, a, b, 1.25, -0.7, tile), product(x, a, b, 1.25, -0.7))


def test_many_blocks_in_every_place(rng):
    """Ten rows of tiles and two columns: a whole band, and a lower one."""
    tile = TILES["float64"][0]
    a, b = numbers(rng, 9 * tile.bm + 3, 2, dtype="f8"), numbers(rng, 2, tile.bn + 5, dtype="f8")
    equal(run(None, a, b, 0, 1, tile), product(None, a, b, 0, 1))


LAYOUTS = {
    "N": lambda x: np.ascontiguousarray(x),
    "T": lambda x: np.asfortranarray(x),
    "rows reversed": lambda x: np.ascontiguousarray(x[::-1])[::-1],
    "both reversed, T": lambda x: np.asfortranarray(x[::-1, ::-1])[::-1, ::-1],
    "every third of rows and columns": lambda x: _inside(x, 3, 3),
    "padded rows": lambda x: _inside(x, 1, 1),
}


def _inside(x, rows, columns):
    buffer = np.full((x.shape[0] * rows + 2, x.shape[1] * columns + 3), np.nan, x.dtype)
    view = buffer[1 : 1 + x.shape[0] * rows : rows, 2 : 2 + x.shape[1] * columns : columns]
    view[...] = x
    return view


@pytest.mark.parametrize("first", LAYOUTS)
@pytest.mark.parametrize("second", LAYOUTS)
def test_layouts_of_the_inputs(rng, first, second):
    a, b = numbers(rng, 5, 6), numbers(rng, 6, 7)
    equal(run(None, LAYOUTS[first](a), LAYOUTS[second](b), 0), product(None, a, b, 0, 1))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("x_layout", ["N", "T", "both reversed, T"])
def test_layouts_of_out_and_self(rng, layout, x_layout):
    a, b, x = numbers(rng, 18, 5), numbers(rng, 5, 3), numbers(rng, 18, 3)
    out = LAYOUTS[layout](np.full((18, 3), np.nan, "f4"))
    around = out.base.copy() if out.base is not None else None
    run(LAYOUTS[x_layout](x), a, b, 2, 3, out=out)
    equal(out, product(x, a, b, 2, 3))
    if around is not None:  # what lies between rows is not touched
        out[...] = np.nan
        equal(out.base, around)


@pytest.mark.parametrize("zero", [(0, 4), (4, 0), (0, 0)])
def test_zero_strides(rng, zero):
    a = np.lib.stride_tricks.as_strided(numbers(rng, 8), (6, 6), zero)
    b = np.lib.stride_tricks.as_strided(numbers(rng, 8), (6, 6), zero[::-1])
    equal(run(None, a, b, 0), product(None, a, b, 0, 1))


@pytest.mark.parametrize("shape", [(), (1,), (3,), (1, 3), (2, 1), (1, 1), (2, 3)])
@pytest.mark.parametrize("k", [2, 0])
def test_self_expands(rng, shape, k):
    x, a, b = numbers(rng, *shape), numbers(rng, 2, k), numbers(rng, k, 3)
    equal(run(x, a, b, -0.5, 2), product(x, a, b, -0.5, 2))


@pytest.mark.parametrize("beta", [0, 0.0, -0.0, False])
def test_beta_zero_does_not_read_self(rng, beta):
    a, b = numbers(rng, 3, 4), numbers(rng, 4, 5)
    equal(run(np.full((3, 5), np.nan, "f4"), a, b, beta, 2), product(None, a, b, 0, 2))
    equal(run(np.full(5, np.inf, "f4"), a, b, beta, 0), np.zeros((3, 5), "f4"))


def test_alpha_zero_does_not_read_the_matrices(rng):
    x, nan = numbers(rng, 5), np.full((3, 3), np.nan, "f4")
    equal(run(x, nan, np.full((3, 5), np.inf, "f4"), 2, 0), np.broadcast_to(2 * x, (3, 5)))
    equal(run(-x, nan[:, :0], np.zeros((0, 5), "f4"), 0, 1), np.zeros((3, 5), "f4"))


def test_empty_results_launch_nothing(monkeypatch):
    monkeypatch.setattr(gemm, "launch", None)
    monkeypatch.setattr(elementwise, "launch", None)
    run(np.zeros(0, "f4"), np.zeros((3, 2), "f4"), np.zeros((2, 0), "f4"))
    run(np.zeros((1, 1), "f4"), np.zeros((0, 2), "f4"), np.zeros((2, 4), "f4"))


def test_nan_and_infinity_stay_in_their_rows_and_columns(rng):
    """Edges are padded with zeros, and what lies beyond the arrays in memory is NaN: neither may leak."""
    a, b = _inside(numbers(rng, 17, 5), 1, 1), _inside(numbers(rng, 5, 33), 1, 1)
    a[3, 2], b[1, 7] = np.nan, np.inf
    result = run(None, a, b, 0)
    expected = product(None, a, b, 0, 1)
    equal(result, expected)
    assert np.isnan(result[3]).all()
    assert not np.isnan(np.delete(np.delete(result, 3, 0), 7, 1)).any()


def test_a_negative_zero_survives_padding(rng):
    """A chain that underflowed to -0 stays -0 through the steps that pad k to a whole slice."""
    a, b = np.full((2, 1), 1e-30, "f4"), np.full((1, 2), -1e-30, "f4")
    result = run(None, a, b, 0)
    equal(result, product(None, a, b, 0, 1))
    assert np.signbit(result).all()


def test_whole_numbers_are_exact(rng):
    a, b = rng.integers(-9, 10, (40, 21)).astype("f4"), rng.integers(-9, 10, (21, 35)).astype("f4")
    np.testing.assert_array_equal(run(None, a, b, 0, tile=TILES["float32"][2]), a @ b)


@pytest.mark.parametrize("place", ["new", "self", "self, F"])
def test_segments(rng, monkeypatch, place):
    """Chains end after a segment, sums are added in order; in place, they wait in a temporary."""
    monkeypatch.setattr(gemm, "SEGMENT", 8)
    a, b, x = numbers(rng, 3, 21), numbers(rng, 21, 5), numbers(rng, 3, 5)
    x = np.asfortranarray(x) if place.endswith("F") else x
    expected = product(x, a, b, 1.5, 0.3, segment=8)
    assert (expected != product(x, a, b, 1.5, 0.3)).any()
    out = x if place.startswith("self") else None
    equal(run(x, a, b, 1.5, 0.3, out=out), expected)


@pytest.mark.parametrize("case", ["out is mat1", "out is mat2", "rows shifted", "transposed self", "interleaved"])
def test_overlap(rng, case, monkeypatch):
    made = []
    monkeypatch.setattr(gemm, "empty", lambda *args: made.append(args) or launch.empty(*args))
    memory_ = numbers(rng, 5, 8)
    a, b, x, out = numbers(rng, 4, 4), numbers(rng, 4, 4), numbers(rng, 4, 4), memory_[:4, :4]
    if case == "out is mat1":
        a = out
    elif case == "out is mat2":
        b = out[::-1].T
    elif case == "rows shifted":
        a = memory_[1:, :4]
    elif case == "transposed self":
        x = out.T
    else:  # the same rows, other columns: nothing shared, no temporary
        a = memory_[:4, 4:]
    expected = product(x.copy(), a.copy(), b.copy(), 2, 1)
    equal(run(x, a, b, 2, 1, out=out), expected)
    assert len(made) == (case != "interleaved")


def test_batches_and_vectors_are_products(rng):
    """Through the public operations: every matrix of a batch has the bits of one product."""
    a, b, x = numbers(rng, 3, 4, 5), numbers(rng, 3, 5, 2), numbers(rng, 3, 4, 2)
    add = nbkernels.baddbmm(device(x), device(a), device(b), beta=0.5, alpha=-2).copy_to_host()
    for i in range(3):
        equal(add[i], product(x[i], a[i], b[i], 0.5, -2))
    shifted = np.concatenate([a, a])[:, :, :4]
    expected = [product(None, shifted[i], shifted[i + 1], 0, 1) for i in range(3)]
    nbkernels.bmm(device(shifted[:3]), device(shifted[1:4]), out=device(shifted[2:5]))
    for i in range(3):
        equal(shifted[2 + i], expected[i])
    total = product(product(x[0], a[0], b[0], 2, 1), a[1], b[1], 1, 1)
    equal(nbkernels.addbmm(*map(device, (x[0], a[:2], b[:2])), beta=2).copy_to_host(), total)
    equal(nbkernels.matmul(device(a), device(b[0])).copy_to_host()[1], product(None, a[1], b[0], 0, 1))
    equal(nbkernels.outer(*map(device, (a[0, 0], b[0, 0]))).copy_to_host(), product(None, a[0, :1].T, b[0, :1], 0, 1))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("k", [0, 1, 63, 150, 4200])
def test_dot_has_the_bits_of_the_cpu(rng, dtype, k):
    a, b = numbers(rng, 2 * k, dtype=dtype)[::2], numbers(rng, k, dtype=dtype)[::-1]
    expected = reference.dot(a, b) if k else np.zeros((), dtype)
    for name in ("dot", "vdot", "matmul"):
        equal(getattr(nbkernels, name)(device(a), device(b)).copy_to_host(), expected)
    if k:
        out = a[k // 2 :][:1].reshape(())  # one of its own inputs
        nbkernels.dot(device(a), device(b), out=device(out))
        equal(out, expected)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("m", "k"), [(1, 1), (17, 5), (3, 33), (2, 4200), (0, 3), (3, 0)])
def test_mv_has_the_bits_of_the_cpu(rng, dtype, m, k):
    a, v, x = numbers(rng, m, k, dtype=dtype), numbers(rng, 2 * k, dtype=dtype)[::-2], numbers(rng, m, dtype=dtype)
    none, real = 0 in (m, k), np.dtype(dtype).type
    plain = np.zeros(m, dtype) if none else reference.mv(a, v)
    added = real(0.5) * x if none else reference.addmv(x, a, v, 0.5, -2)
    for mat in (a, np.asfortranarray(a)):
        equal(nbkernels.addmv(device(x), device(mat), device(v), beta=0.5, alpha=-2).copy_to_host(), added)
        if k > 4096:  # two segments, one by one step in the simulator
            return
        equal(nbkernels.mv(device(mat), device(v)).copy_to_host(), plain)
        equal(nbkernels.matmul(device(v), device(mat.T)).copy_to_host(), plain)
        own = x.copy()
        nbkernels.addmv_(device(own), device(mat), device(v), beta=0.5, alpha=-2)
        equal(own, added)
    if m > 1 and k:
        equal(nbkernels.addmv(device(x[:1]), device(a), device(v), beta=0).copy_to_host(), plain)
        out = np.full(2 * m, np.nan, dtype)
        nbkernels.mv(device(a), device(v), out=device(out[::2]))
        equal(out[::2], plain)
        assert np.isnan(out[1::2]).all()


def test_mv_whose_out_is_read(rng):
    a, v = numbers(rng, 5, 5), numbers(rng, 9)
    expected = reference.mv(a, v[:5])
    nbkernels.mv(device(a), device(v[:5]), out=device(v[2:7]))
    equal(v[2:7], expected)


def test_inputs_are_never_written(rng):
    arrays = [numbers(rng, 3, 4), numbers(rng, 4, 5), numbers(rng, 3, 5)]
    for x in arrays:
        x.flags.writeable = False
    run(arrays[2], arrays[0], arrays[1])


def test_what_a_gpu_cannot_address_is_an_error():
    packed = np.zeros(12, np.dtype([("x", "f4"), ("y", "u1")]))["x"].reshape(3, 4)
    with pytest.raises(ValueError, match="not multiples of its size"):
        run(None, packed, np.zeros((4, 2), "f4"), 0)


layouts = st.sampled_from(list(LAYOUTS.values()))


@settings(max_examples=20)
@given(
    st.data(), st.integers(0, 20), st.integers(0, 34), st.integers(0, 11), st.sampled_from([0, 1, -0.3]),
    st.sampled_from([0, 1, 1e-3]), st.integers(0, 2**32),
)  # fmt: skip
def test_any_product(data, m, n, k, beta, alpha, seed):
    rng = np.random.default_rng(seed)
    a, b, x = (data.draw(layouts)(numbers(rng, *shape)) for shape in ((m, k), (k, n), (m, n)))
    x = data.draw(st.sampled_from([x, x[:, :1], x[:1], x[:1, :1]])) if m and n else x
    equal(
        run(x, a, b, beta, alpha, out=data.draw(layouts)(np.full((m, n), np.nan, "f4"))), product(x, a, b, beta, alpha)
    )


# --- tiles, memory, and the whole way from the public function ------------------------------------


@pytest.mark.parametrize("dtype", TILES)
def test_tile_rules(dtype):
    for tile in (*TILES[dtype], *tiles.candidates(dtype)):
        assert tiles.illegal(tile, dtype) == []
    assert len(tiles.candidates(dtype)) > 20


@pytest.mark.parametrize(
    ("tile", "reason"),
    [
        (Tiles(0, 32, 4, 4, 4), "positive"),
        (Tiles(30, 32, 4, 4, 4), "not made of threads'"),
        (Tiles(24, 32, 4, 6, 4), "multiple of the 4"),
        (Tiles(8, 32, 4, 4, 4), "lanes"),
        (Tiles(256, 256, 8, 4, 4), "more than 1024"),
        (Tiles(128, 32, 8, 8, 8), "whole slices"),
        (Tiles(32, 32, 3, 4, 4), "odd"),
        (Tiles(128, 128, 64, 8, 8), "shared memory"),
        (Tiles(128, 128, 8, 16, 16), "registers"),
    ],
)
def test_every_reason_against_tiles(tile, reason):
    reasons = tiles.illegal(tile, "float32")
    assert any(reason in line for line in reasons), reasons
    with pytest.raises(ValueError, match=r"tiles=\("):
        run(None, np.zeros((1, 1), "f4"), np.zeros((1, 1), "f4"), 0, tile=tile)


def test_default_tiles_follow_the_problem():
    problem = tiles.GemmProblem(8192, 8192, 8192, "float32")
    assert tiles.default(problem, 132).bm * tiles.default(problem, 132).bn >= 128 * 128
    small = tiles.default(tiles.GemmProblem(100, 100, 100, "float32"), 132)
    assert small.bm * small.bn <= 64 * 64


def test_the_segment_is_the_cpus():
    from nbkernels.cpu import tiles as cpu

    assert tiles.SEGMENT == cpu.SEGMENT


def test_pointers_are_bounded(rng):
    x = np.arange(12.0).reshape(3, 4)
    pointer = simulator.Pointer(x[::-1, 1:3])
    assert [pointer[0], pointer[1], pointer[-4], pointer[-8]] == [9, 10, 5, 1]
    for outside in (2, -9):
        with pytest.raises(IndexError):
            pointer[outside]
    with pytest.raises(IndexError):
        simulator.Pointer(x[:0])[0]


def test_clash():
    x = np.zeros((4, 6))
    assert memory.clash(device(x), device(x[::-1, ::2]))
    assert not memory.clash(device(x[:, ::2]), device(x[:, 1::2]))
    assert not memory.clash(device(x[:0]), device(x))
    assert memory.same(device(x[:1]), device(x[:1]), (0, 8))
    assert not memory.same(device(x), device(x), (0, 8))


def test_public_functions_give_the_cpus_bits(rng):
    """From nbkernels.addmm down, on device arrays: the simulator's results are the CPU kernels', bit by bit."""
    a, b, x = numbers(rng, 6, 9), numbers(rng, 9, 7), numbers(rng, 7)
    args = [cuda.to_device(v) for v in (x, a, b)]
    result = nbkernels.addmm(*args, beta=0.3, alpha=1.7)
    assert isinstance(result, DeviceArray)
    equal(result.copy_to_host(), nbkernels.addmm(x, a, b, beta=0.3, alpha=1.7))
    out = cuda.to_device(np.full((6, 7), np.nan, "f4"))
    assert nbkernels.mm(args[1], args[2], out=out) is out
    equal(out.copy_to_host(), nbkernels.mm(a, b))
    equal(nbkernels.linear(args[1], args[1], None).copy_to_host(), nbkernels.linear(a, a, None))
    equal(nbkernels.add(args[0], 2.5).copy_to_host(), x + np.float32(2.5))
    equal(nbkernels.sum_to(args[1], (9,)).copy_to_host().round(3), a.sum(0).round(3))
    assert nbkernels.sum_to(args[1], (6, 9)) is args[1]


def test_tiles_of_a_call(rng):
    """Every product that is cut takes them and keeps its bits; wrong ones are an error that names it."""
    own, a, b, x = Tiles(16, 32, 4, 4, 4), numbers(rng, 6, 9), numbers(rng, 9, 7), numbers(rng, 7)
    calls = {
        "addmm": (x, a, b),
        "mm": (a, b),
        "baddbmm": (x, a[None], b[None]),
        "addbmm": (x, a[None], b[None]),
        "matmul": (a[None], b),
        "linear": (a, b.T, x),
        "addmm_activation": (x, a, b),
    }
    for name, hosted in calls.items():
        function, args, expected = (
            getattr(nbkernels, name),
            [device(v) for v in hosted],
            getattr(nbkernels, name)(*hosted),
        )
        for sizes in (own, list(own)):
            equal(function(*args, tiles=sizes).copy_to_host(), expected)
        out = device(np.full_like(expected, np.nan))
        for wrong, why in (((1, 2), "five sizes"), ((*list(own)[:4], 3), "not made of threads'")):
            with pytest.raises(ValueError, match=rf"^{name}: tiles=\(.*{why}"):
                function(*args, tiles=wrong, out=out)
        assert np.isnan(out.copy_to_host()).all()
    assert nbkernels.explain(nbkernels.mm, device(a), device(b), tiles=own).tile == str(own)


def test_explain_tells_the_kernels_choices(rng):
    a, b, x = (device(numbers(rng, *shape)) for shape in ((20, 8), (8, 40), (40,)))
    whole = nbkernels.explain(nbkernels.linear, a, device(numbers(rng, 40, 8)), x)
    (part,) = whole.parts
    for found in (nbkernels.explain(nbkernels.addmm, x, a, b), part):
        assert (found.op, found.device, found.path) == ("addmm", "CUDA:0", "simt")
        assert found.kernel == "nbkernels.cuda.gemm:addmm"
        assert found.row.startswith("CUDA: direct, registered at nbkernels/ops.py:")
        assert found.tile == str(gemm.describe(20, 40, 8).tiles)
        assert (found.bytes, found.flops) == (4 * (20 * 40 + 20 * 8 + 8 * 40 + 40), 2 * 20 * 8 * 40)
    added = nbkernels.explain(nbkernels.add, a, 2)
    assert (added.path, added.bytes, added.flops) == ("grid-stride loop", 2 * 4 * 160, 160)
    assert nbkernels.explain(nbkernels.add, device(np.ones((0, 3))), 1).path == "nothing: an empty result"


@pytest.mark.parametrize("dtype", ["int8", "float16"])
def test_mv_of_other_dtypes_has_the_bits_of_mm(rng, dtype):
    a, v, x = (numbers(rng, *shape, dtype="float32") * 3 for shape in ((9, 20), (20,), (9,)))
    a, v, x = (each.astype(dtype) for each in (a, v, x))
    for mat in (a, np.asfortranarray(a)):
        given, taken = [device(each) for each in (x, mat, v)], (x[:, None], mat, v[:, None])
        plain, added = nbkernels.mv(*given[1:]), nbkernels.addmv(*given, beta=2, alpha=3)
        np.testing.assert_array_equal(plain.copy_to_host(), nbkernels.mm(*taken[1:])[:, 0])
        np.testing.assert_array_equal(added.copy_to_host(), nbkernels.addmm(*taken, beta=2, alpha=3)[:, 0])
        turned = nbkernels.matmul(device(v), device(mat.T)).copy_to_host()
        np.testing.assert_array_equal(turned, nbkernels.mm(v[None], mat.T)[0])
