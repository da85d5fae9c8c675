"""Numba's CUDA simulator itself, what stands around kernels, and the whole way from the public functions.

Needs NUMBA_ENABLE_CUDASIM=1; test_simulator.py runs it.
"""

from fractions import Fraction

import numpy as np
import pytest
from numba import cuda, float64

import nbkernels
from nbkernels.cuda import memory
from nbkernels.cuda.kernels import simulator
from tests.compare import same_bits
from tests.on_cuda.simulated import DeviceArray, device, numbers, product
from tests.reference import fma32, fma64


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
    same_bits(np.array([simulator.fma(None, u, v, w) for u, v, w in zip(a, b, c, strict=True)]), ours)
    d, e, f = (numbers(rng, 200, dtype="f8") for _ in range(3))
    same_bits(np.array([simulator.fma(None, u, v, w) for u, v, w in zip(d, e, f, strict=True)]), fma64(d, e, f))


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
    """From nbkernels.addmm down, on device arrays: the simulator's results are the stated chains, bit by bit."""
    a, b, x = numbers(rng, 6, 9), numbers(rng, 9, 7), numbers(rng, 7)
    args = [cuda.to_device(v) for v in (x, a, b)]
    result = nbkernels.addmm(*args, beta=0.3, alpha=1.7)
    assert isinstance(result, DeviceArray)
    same_bits(result.copy_to_host(), product(x, a, b, 0.3, 1.7))
    out = cuda.to_device(np.full((6, 7), np.nan, "f4"))
    assert nbkernels.mm(args[1], args[2], out=out) is out
    same_bits(out.copy_to_host(), product(None, a, b, 0, 1))
    same_bits(nbkernels.linear(args[1], args[1], None).copy_to_host(), product(None, a, a.T, 0, 1))
    same_bits(nbkernels.add(args[0], 2.5).copy_to_host(), x + np.float32(2.5))
    same_bits(nbkernels.sum_to(args[1], (9,)).copy_to_host().round(3), a.sum(0).round(3))
    assert nbkernels.sum_to(args[1], (6, 9)) is args[1]
