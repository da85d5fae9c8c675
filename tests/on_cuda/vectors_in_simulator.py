"""Products with vectors on CUDA, in Numba's simulator: the bits of the CPU's chains.

Needs NUMBA_ENABLE_CUDASIM=1; test_simulator.py runs it. Of other dtypes, dot is products_in_simulator.py's.
"""

import numpy as np
import pytest

import nbkernels
from tests import reference
from tests.compare import same_bits
from tests.on_cuda.simulated import device, numbers

# NumPy warns of integers that wrap. The CPU's first calls have the bits of its later ones.
pytestmark = [pytest.mark.filterwarnings("ignore::RuntimeWarning"), pytest.mark.usefixtures("at_first")]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("k", [0, 1, 63, 150, 4200])
def test_dot_has_the_bits_of_the_cpu(rng, dtype, k):
    a, b = numbers(rng, 2 * k, dtype=dtype)[::2], numbers(rng, k, dtype=dtype)[::-1]
    expected = reference.dot(a, b) if k else np.zeros((), dtype)
    for name in ("dot", "vdot", "matmul"):
        same_bits(getattr(nbkernels, name)(device(a), device(b)).copy_to_host(), expected)
    if k:
        out = a[k // 2 :][:1].reshape(())  # one of its own inputs
        nbkernels.dot(device(a), device(b), out=device(out))
        same_bits(out, expected)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("m", "k"), [(1, 1), (17, 5), (3, 33), (2, 4200), (0, 3), (3, 0)])
def test_mv_has_the_bits_of_the_cpu(rng, dtype, m, k):
    a, v, x = numbers(rng, m, k, dtype=dtype), numbers(rng, 2 * k, dtype=dtype)[::-2], numbers(rng, m, dtype=dtype)
    none, real = 0 in (m, k), np.dtype(dtype).type
    plain = np.zeros(m, dtype) if none else reference.mv(a, v)
    added = real(0.5) * x if none else reference.addmv(x, a, v, 0.5, -2)
    for mat in (a, np.asfortranarray(a)):
        same_bits(nbkernels.addmv(device(x), device(mat), device(v), beta=0.5, alpha=-2).copy_to_host(), added)
        if k > 4096:  # two segments, one by one step in the simulator
            return
        same_bits(nbkernels.mv(device(mat), device(v)).copy_to_host(), plain)
        same_bits(nbkernels.matmul(device(v), device(mat.T)).copy_to_host(), plain)
        own = x.copy()
        nbkernels.addmv_(device(own), device(mat), device(v), beta=0.5, alpha=-2)
        same_bits(own, added)
    if m > 1 and k:
        same_bits(nbkernels.addmv(device(x[:1]), device(a), device(v), beta=0).copy_to_host(), plain)
        out = np.full(2 * m, np.nan, dtype)
        nbkernels.mv(device(a), device(v), out=device(out[::2]))
        same_bits(out[::2], plain)
        assert np.isnan(out[1::2]).all()


def test_mv_whose_out_is_read(rng):
    a, v = numbers(rng, 5, 5), numbers(rng, 9)
    expected = reference.mv(a, v[:5])
    nbkernels.mv(device(a), device(v[:5]), out=device(v[2:7]))
    same_bits(v[2:7], expected)


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
