"""Packed weights: the bits of products with the matrix itself, on every side, and what may not be done with them."""

import pickle

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nbkernels as nb
from nbkernels.cpu.gemm import kinds
from nbkernels.cpu.gemm.blocking import default
from tests.cases import LAYOUTS
from tests.compare import same_bits

BFLOAT16 = ml_dtypes.bfloat16
DTYPES = [np.float32, np.float64, np.float16, BFLOAT16]
SHAPES = [(1, 1, 1), (1, 7, 5), (3, 4100, 33), (20, 300, 700), (64, 1030, 100), (13, 8200, 3), (2, 1024, 1)]


@pytest.mark.sampled
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(("m", "k", "n"), SHAPES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_bits_are_those_of_the_matrix(rng, dtype, m, k, n, threads):
    x, weight, bias = (rng.standard_normal(shape).astype(dtype) for shape in ((m, k), (n, k), (n,)))
    as_weight, as_mat2 = nb.pack(weight, for_="weight"), nb.pack(weight.T)
    with nb.threads(threads):
        same_bits(nb.linear(x, as_weight, bias), nb.linear(x, weight, bias))
        same_bits(nb.linear(x[None, None], as_weight), nb.linear(x[None, None], weight))
        same_bits(nb.mm(x, as_mat2), nb.mm(x, weight.T))
        same_bits(nb.matmul(np.stack([x, x]), as_mat2), nb.matmul(np.stack([x, x]), weight.T))
        same_bits(nb.addmm(bias, x, as_mat2, beta=2, alpha=3), nb.addmm(bias, x, weight.T, beta=2, alpha=3))
        for order in "CF":
            out = np.full((m, n), 7, dtype, order)
            assert nb.mm(x, as_mat2, out=out) is out
            same_bits(out, nb.mm(x, weight.T))


@pytest.mark.sampled
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(("m", "k", "n"), SHAPES)
@pytest.mark.parametrize("dtype", [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)])
def test_whole_numbers_are_exact(rng, dtype, m, k, n, threads):
    """They wrap; bytes to int32, too."""
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    x, w, bias = (rng.integers(low, high, shape, dtype, endpoint=True) for shape in ((m, k), (k, n), (n,)))
    as_mat2, as_weight = nb.pack(w), nb.pack(w.T, "weight")
    same_bits(as_mat2.unpack(), w)
    same_bits(as_weight.unpack(), np.ascontiguousarray(w.T))
    with nb.threads(threads), np.errstate(over="ignore"):
        same_bits(nb.mm(x, as_mat2), x @ w)
        same_bits(nb.linear(x, as_weight, bias), x @ w + bias)
        same_bits(nb.matmul(np.stack([x, x]), as_mat2)[1], x @ w)
        scaled = 2 * bias.astype("u8") - 3 * (x @ w).astype("u8")
        same_bits(nb.addmm(bias, x, as_mat2, beta=2, alpha=-3), scaled.astype(dtype))
        out = np.full((m, n), 7, dtype, "F")
        same_bits(nb.mm(x, as_mat2, out=out), x @ w)
        if np.dtype(dtype).itemsize == 1:
            wide, bias = x.astype("i4") @ w.astype("i4"), bias.astype("i4")
            same_bits(nb.mm(x, as_mat2, out_dtype="int32"), wide)
            same_bits(nb.linear(x[None], as_weight, bias, out_dtype=np.int32), (wide + bias)[None])
            out = np.full((m, 2 * n), 7, "i4")
            same_bits(nb.mm(x, as_mat2, out_dtype="int32", out=out[:, ::2]), wide)
            assert (out[:, 1::2] == 7).all()
    assert nb.explain(nb.mm, x, as_mat2).path == "packed, mat2 beforehand"


@pytest.mark.parametrize("mode", ["chain", *(["bf16_dot"] if kinds.has("bf16_dot") else [])])
def test_modes(rng, mode):
    x, w = (rng.standard_normal(shape).astype(BFLOAT16) for shape in ((5, 4101), (4101, 40)))
    with nb.modes(mode):
        packed = nb.pack(w)
        same_bits(nb.mm(x, packed), nb.mm(x, w))
        same_bits(nb.mm(x, packed, out_dtype="float32"), nb.mm(x, w, out_dtype="float32"))
        same_bits(packed.unpack(), w)


@pytest.mark.sampled
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_any_layout_and_any_number(rng, dtype, layout):
    w = rng.standard_normal((37, 4099))
    w.flat[::97] = np.resize([np.inf, -np.inf, np.nan, -0.0, 5e-324, 1e-45, 6e-8, 65504], w.flat[::97].size)
    with np.errstate(over="ignore"):
        w = LAYOUTS[layout](w.astype(dtype))
    w.flags.writeable = False
    for side in ("mat2", "weight"):
        packed = nb.pack(w, side)
        same_bits(packed.unpack(), np.ascontiguousarray(w))
        assert (packed.shape, packed.dtype, packed.ndim, packed.for_) == (w.shape, w.dtype, 2, side)
        assert packed.nbytes >= w.nbytes


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_that_stay_in_a_cache_and_more(rng, dtype):
    """Panels stream by as many as stay, edges of a tile's rows among them; of more each tile of rows goes by itself."""
    tiles = default(np.dtype(dtype).name)
    w = rng.standard_normal((2 * tiles.kc + 3, 3 * tiles.nr + 5)).astype(dtype)
    packed = nb.pack(w)
    for m in (*(tiles.mr * i + d for i in (1, 2, 8) for d in (-1, 0, 1)), tiles.nb, tiles.nb + 1):
        x = rng.standard_normal((m, len(w))).astype(dtype)
        for threads in (1, 2):
            with nb.threads(threads):
                same_bits(nb.mm(x, packed), nb.mm(x, w))


@given(st.integers(0, 40), st.integers(0, 40), st.integers(0, 40), st.sampled_from(DTYPES), st.booleans())
def test_any_sizes(m, k, n, dtype, weight):
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal((m, k)).astype(dtype), rng.standard_normal((n, k) if weight else (k, n)).astype(dtype)
    packed, call = nb.pack(w, "weight" if weight else "mat2"), nb.linear if weight else nb.mm
    same_bits(call(x, packed), call(x, w))
    same_bits(packed.unpack(), w)


def test_pickles_are_packed_anew(rng):
    w = rng.standard_normal((30, 50)).astype("f4")
    again = pickle.loads(pickle.dumps(nb.pack(w, "weight")))
    assert repr(again) == "Packed(30 x 50, float32, for weight)"
    same_bits(again.unpack(), w)


def test_gradients_of_the_other_operand(rng):
    x, w, grad = (rng.standard_normal(shape).astype("f4") for shape in ((3, 40), (5, 40), (3, 5)))
    for call, side, matrix in ((nb.linear, "weight", w), (nb.mm, "mat2", np.ascontiguousarray(w.T))):
        packed = nb.pack(matrix, side)
        for got, want in zip(call.op.gradient(grad, x, packed), call.op.gradient(grad, x, matrix)):
            assert (got is None) == (want is None)
            if got is not None:
                same_bits(got, want)
        (out, back), (_, wanted) = (nb.vjp(lambda x, w=w, call=call: call(x, w), x) for w in (packed, matrix))
        same_bits(np.asarray(out), call(x, matrix))
        same_bits(np.asarray(back(grad)[0]), np.asarray(wanted(grad)[0]))


def test_tensors_and_explain(rng):
    torch = pytest.importorskip("torch")
    x, w = rng.standard_normal((8, 400)).astype("f4"), rng.standard_normal((300, 400)).astype("f4")
    packed = nb.pack(torch.from_numpy(w), "weight")
    found = nb.linear(torch.from_numpy(x), packed)
    assert isinstance(found, torch.Tensor)
    same_bits(found.numpy(), nb.linear(x, w))


def test_explain_says_so(rng):
    w = nb.pack(rng.standard_normal((300, 400)).astype("f4"))
    found = nb.explain(nb.mm, np.ones((8, 300), "f4"), w)
    assert (found.path, found.layout) == ("packed, mat2 beforehand", "N-")
    assert not found.copies


W = np.arange(12.0).reshape(3, 4)
WRONG = [  # of W packed as mat2, p, and as a weight, q
    (lambda p, q: nb.mm(W, q), TypeError, "mm: mat2 is packed for the weight of linear; unpack"),
    (lambda p, q: nb.linear(W, p), TypeError, "mat2 is packed for mat2 of mm, addmm and matmul; unpack"),
    (lambda p, q: nb.mm(p, W.T), TypeError, "mm: self is packed for mat2"),
    (lambda p, q: nb.add(p, 1), TypeError, "add: self is packed for mat2"),
    (lambda p, q: nb.mv(p, W[0]), TypeError, "mv: self is packed"),
    (lambda p, q: nb.addmm(p, W.T, p), TypeError, "addmm: self is packed"),
    (lambda p, q: nb.mm(W[:, :3], p, out=p), ValueError, "cannot be written: packed weights do not change"),
    (lambda p, q: nb.mm(W, p), ValueError, "mm: self and mat2 cannot be multiplied, 3x4 and 3x4"),
    (lambda p, q: nb.mm(np.ones((2, 2, 3)), p), ValueError, "mm: self must be 2-D, and it is 3-D"),
    (lambda p, q: nb.mm(np.ones((2, 3)), p, out=np.ones((2, 5))), ValueError, "out is never resized"),
    (lambda p, q: nb.linear(W, q, np.ones(2)), ValueError, "linear"),
    (lambda p, q: nb.mm(W[:, :3].astype("f4"), p), TypeError, "must share a dtype"),
    (lambda p, q: nb.mm(W[:, :3], p, tiles=tuple(default("float64"))), ValueError, "no tiles and no other mode"),
    (lambda p, q: nb.mm(W.astype("u1"), nb.pack(W.T.astype("i1")), out_dtype="i4"), ValueError, "for int8 .* uint8"),
    (lambda p, q: nb.pack(np.ones((2, 2), "c8")), TypeError, "complex64 is none of float32, float64, .* int8"),
    (lambda p, q: nb.pack(np.ones(3)), ValueError, r"pack: a matrix is wanted, not an array of shape \(3,\)"),
    (lambda p, q: nb.pack(W, for_="left"), ValueError, "pack: for_ is 'mat2' or 'weight', not 'left'"),
    (lambda p, q: nb.pack([[1.0]]), TypeError, "pack: a matrix on the CPU is wanted, not a list"),
    (lambda p, q: nb.pack(p), TypeError, "not a Packed"),
    (lambda p, q: np.asarray(p), TypeError, "packed weights are no array"),
]


@pytest.mark.parametrize(("call", "error", "words"), WRONG)
def test_what_packed_weights_are_not_for(call, error, words):
    mat2, weight = nb.pack(W), nb.pack(W, "weight")
    with pytest.raises(error, match=words):
        call(mat2, weight)


def test_another_mode_is_refused(rng):
    w = rng.standard_normal((30, 50)).astype(BFLOAT16)
    with nb.modes("chain"):
        packed = nb.pack(w)
    for mode in (mode for mode in kinds.MODES if kinds.has(mode)):
        with pytest.raises(ValueError, match="no tiles and no other mode"):
            nb.mm(w[:, :30], packed, mode=mode)
