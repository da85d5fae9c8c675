"""Products of float32 and float64 on CUDA, in Numba's simulator: the bits of the stated chains.

Needs NUMBA_ENABLE_CUDASIM=1; test_simulator.py runs it. Other dtypes are products_in_simulator.py's.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import nbkernels
from nbkernels.cuda import call as settled_call
from nbkernels.cuda import elementwise, gemm, memory
from tests.compare import same_bits
from tests.on_cuda.simulated import LAYOUTS, SMALL, TILES, device, inside, numbers, product, run

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # NumPy's, of NaN


@pytest.mark.parametrize(("dtype", "tile"), [(d, t) for d in TILES for t in TILES[d]], ids=lambda v: str(v))
def test_bits_across_every_tile_edge(rng, dtype, tile):
    for m, n, k in (
        (1, 1, 1),
        (tile.bm - 1, tile.bn + 1, tile.bk - 1),
        (tile.bm, tile.bn, tile.bk),
        (tile.bm + 1, 3, 2 * tile.bk + 1),
    ):
        a, b, x = numbers(rng, m, k, dtype=dtype), numbers(rng, k, n, dtype=dtype), numbers(rng, n, dtype=dtype)
        same_bits(run(x, a, b, 1.25, -0.7, tile), product(x, a, b, 1.25, -0.7))


def test_many_blocks_in_every_place(rng):
    """Ten rows of tiles and two columns: a whole band, and a lower one."""
    tile = TILES["float64"][0]
    a, b = numbers(rng, 9 * tile.bm + 3, 2, dtype="f8"), numbers(rng, 2, tile.bn + 5, dtype="f8")
    same_bits(run(None, a, b, 0, 1, tile), product(None, a, b, 0, 1))


@pytest.mark.parametrize("first", LAYOUTS)
@pytest.mark.parametrize("second", LAYOUTS)
def test_layouts_of_the_inputs(rng, first, second):
    a, b = numbers(rng, 5, 6), numbers(rng, 6, 7)
    same_bits(run(None, LAYOUTS[first](a), LAYOUTS[second](b), 0), product(None, a, b, 0, 1))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("x_layout", ["N", "T", "both reversed, T"])
def test_layouts_of_out_and_self(rng, layout, x_layout):
    a, b, x = numbers(rng, 18, 5), numbers(rng, 5, 3), numbers(rng, 18, 3)
    out = LAYOUTS[layout](np.full((18, 3), np.nan, "f4"))
    around = out.base.copy() if out.base is not None else None
    run(LAYOUTS[x_layout](x), a, b, 2, 3, out=out)
    same_bits(out, product(x, a, b, 2, 3))
    if around is not None:  # what lies between rows is not touched
        out[...] = np.nan
        same_bits(out.base, around)


@pytest.mark.parametrize("zero", [(0, 4), (4, 0), (0, 0)])
def test_zero_strides(rng, zero):
    a = np.lib.stride_tricks.as_strided(numbers(rng, 8), (6, 6), zero)
    b = np.lib.stride_tricks.as_strided(numbers(rng, 8), (6, 6), zero[::-1])
    same_bits(run(None, a, b, 0), product(None, a, b, 0, 1))


@pytest.mark.parametrize("shape", [(), (1,), (3,), (1, 3), (2, 1), (1, 1), (2, 3)])
@pytest.mark.parametrize("k", [2, 0])
def test_self_expands(rng, shape, k):
    x, a, b = numbers(rng, *shape), numbers(rng, 2, k), numbers(rng, k, 3)
    same_bits(run(x, a, b, -0.5, 2), product(x, a, b, -0.5, 2))


@pytest.mark.parametrize("beta", [0, 0.0, -0.0, False])
def test_beta_zero_does_not_read_self(rng, beta):
    a, b = numbers(rng, 3, 4), numbers(rng, 4, 5)
    same_bits(run(np.full((3, 5), np.nan, "f4"), a, b, beta, 2), product(None, a, b, 0, 2))
    same_bits(run(np.full(5, np.inf, "f4"), a, b, beta, 0), np.zeros((3, 5), "f4"))


def test_alpha_zero_does_not_read_the_matrices(rng):
    x, nan = numbers(rng, 5), np.full((3, 3), np.nan, "f4")
    same_bits(run(x, nan, np.full((3, 5), np.inf, "f4"), 2, 0), np.broadcast_to(2 * x, (3, 5)))
    same_bits(run(-x, nan[:, :0], np.zeros((0, 5), "f4"), 0, 1), np.zeros((3, 5), "f4"))


def test_empty_results_launch_nothing(monkeypatch):
    monkeypatch.setattr(gemm, "launch", None)
    monkeypatch.setattr(elementwise, "launch", None)
    run(np.zeros(0, "f4"), np.zeros((3, 2), "f4"), np.zeros((2, 0), "f4"))
    run(np.zeros((1, 1), "f4"), np.zeros((0, 2), "f4"), np.zeros((2, 4), "f4"))


def test_nan_and_infinity_stay_in_their_rows_and_columns(rng):
    """Edges are padded with zeros, and what lies beyond the arrays in memory is NaN: neither may leak."""
    a, b = inside(numbers(rng, 17, 5), 1, 1), inside(numbers(rng, 5, 33), 1, 1)
    a[3, 2], b[1, 7] = np.nan, np.inf
    result = run(None, a, b, 0)
    expected = product(None, a, b, 0, 1)
    same_bits(result, expected)
    assert np.isnan(result[3]).all()
    assert not np.isnan(np.delete(np.delete(result, 3, 0), 7, 1)).any()


def test_a_negative_zero_survives_padding(rng):
    """A chain that underflowed to -0 stays -0 through the steps that pad k to a whole slice."""
    a, b = np.full((2, 1), 1e-30, "f4"), np.full((1, 2), -1e-30, "f4")
    result = run(None, a, b, 0)
    same_bits(result, product(None, a, b, 0, 1))
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
    same_bits(run(x, a, b, 1.5, 0.3, out=out), expected)


@pytest.mark.parametrize("case", ["out is mat1", "out is mat2", "rows shifted", "transposed self", "interleaved"])
def test_overlap(rng, case, monkeypatch):
    made = []
    monkeypatch.setattr(settled_call, "empty", lambda *args: made.append(args) or memory.empty(*args))
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
    same_bits(run(x, a, b, 2, 1, out=out), expected)
    assert len(made) == (case != "interleaved")


def test_batches_and_vectors_are_products(rng, monkeypatch):
    """Through the public operations: every matrix of a batch has the bits of one product."""
    monkeypatch.setattr(gemm, "default", lambda problem, count: SMALL)
    a, b, x = numbers(rng, 3, 4, 5), numbers(rng, 3, 5, 2), numbers(rng, 3, 4, 2)
    add = nbkernels.baddbmm(device(x), device(a), device(b), beta=0.5, alpha=-2).copy_to_host()
    for i in range(3):
        same_bits(add[i], product(x[i], a[i], b[i], 0.5, -2))
    shifted = np.concatenate([a, a])[:, :, :4]
    expected = [product(None, shifted[i], shifted[i + 1], 0, 1) for i in range(3)]
    nbkernels.bmm(device(shifted[:3]), device(shifted[1:4]), out=device(shifted[2:5]))
    for i in range(3):
        same_bits(shifted[2 + i], expected[i])
    total = product(product(x[0], a[0], b[0], 2, 1), a[1], b[1], 1, 1)
    same_bits(nbkernels.addbmm(*map(device, (x[0], a[:2], b[:2])), beta=2).copy_to_host(), total)
    same_bits(nbkernels.matmul(device(a), device(b[0])).copy_to_host()[1], product(None, a[1], b[0], 0, 1))
    outer = nbkernels.outer(*map(device, (a[0, 0], b[0, 0]))).copy_to_host()
    same_bits(outer, product(None, a[0, :1].T, b[0, :1], 0, 1))


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
    out = data.draw(layouts)(np.full((m, n), np.nan, "f4"))
    same_bits(run(x, a, b, beta, alpha, out=out), product(x, a, b, beta, alpha))
