"""tiles= of the public products: the bits do not change, explain tells them, errors come before anything is written."""

import numpy as np
import pytest

import nbkernels as nb
from nbkernels.cpu.gemm import blocking as tiles

USUAL = tiles.default("float32")
OWN = tiles.Tiles(USUAL.mr // 2, USUAL.nr, 64, USUAL.nr, USUAL.mr // 2 * 3, USUAL.nr)
rng = np.random.default_rng(0)
A, B, X = (rng.standard_normal(shape).astype("f4") for shape in ((2, 13, 130), (2, 130, 70), (2, 13, 70)))
CALLS = {
    "mm": (nb.mm, A[0], B[0]),
    "addmm": (nb.addmm, X[0], A[0], B[0]),
    "bmm": (nb.bmm, A, B),
    "baddbmm": (nb.baddbmm, X, A, B),
    "addbmm": (nb.addbmm, X[0], A, B),
    "matmul": (nb.matmul, A, B[0]),
    "linear": (nb.linear, A, B[0].T, X[0, 0]),
    "addmm_activation": (nb.addmm_activation, X[0], A[0], B[0]),
    "epilogue": (nb.epilogue(lambda v: v * 2), X[0], A[0], B[0]),
}


@pytest.mark.parametrize("name", CALLS)
def test_the_bits_are_those_of_any_tiles(name):
    """And the tiles are those that run: a record, or its sizes as a list."""
    function, *args = CALLS[name]
    expected, out = function(*args), np.full_like(function(*args), np.nan)
    np.testing.assert_array_equal(function(*args, tiles=OWN), expected)
    assert function(*args, tiles=list(OWN), out=out) is out
    np.testing.assert_array_equal(out, expected)
    kept, said = out.copy(), function.__name__
    for wrong, reason in (
        (OWN.__class__(OWN.mr, OWN.nr + 1, *list(OWN)[2:]), "not a multiple of the"),
        ((1, 2), "six sizes"),
    ):
        with pytest.raises(ValueError, match=rf"^{said}: tiles=\(.*{reason}"):
            function(*args, tiles=wrong, out=out)
        np.testing.assert_array_equal(out, kept)


def test_explain_tells_them():
    for function, *args in CALLS["mm"], CALLS["bmm"], CALLS["linear"]:
        found = nb.explain(function, *args, tiles=OWN)
        for part in found.parts or (found,):
            assert (part.path, part.tile) == ("packed", str(OWN))
    assert nb.explain(nb.mm, A[0], B[0]).path != "packed"


def test_other_dtypes_and_in_place():
    a = rng.integers(-128, 128, (40, 200), "i1")
    np.testing.assert_array_equal(nb.mm(a, a.T, out_dtype="int32", tiles=OWN), a.astype("i4") @ a.T.astype("i4"))
    x = X[0].copy()
    assert nb.addmm_(x, A[0], B[0], tiles=OWN) is x
    np.testing.assert_array_equal(x, nb.addmm(X[0], A[0], B[0]))


def test_what_has_no_tiles_says_so():
    for other in A[0, 1], B[0]:
        with pytest.raises(ValueError, match="product with a vector is not cut"):
            nb.matmul(A[0, 0], other, tiles=OWN)
    with pytest.raises(TypeError, match="tiles must be a sequence of ints"):
        nb.mm(A[0], B[0], tiles="8x48")
