"""Products of every dtype on CUDA, in Numba's simulator: exact against NumPy's integers and the stated chains.

Needs NUMBA_ENABLE_CUDASIM=1; test_simulator.py runs it. float32 and float64 are gemm_in_simulator.py's.
"""

import itertools

import ml_dtypes
import numpy as np
import pytest

import nbkernels
from nbkernels.cuda import gemm
from nbkernels.cuda.kinds import kind_of
from nbkernels.cuda.tiles import Tiles
from tests import reference
from tests.compare import same_bits
from tests.on_cuda.simulated import LAYOUTS, device

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # NumPy's, of integers that wrap

TILES = {4: Tiles(16, 32, 4, 4, 4), 8: Tiles(8, 16, 4, 2, 2), 16: Tiles(8, 16, 4, 2, 2)}
WHOLE = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "bool")
HALVES = ("float16", "bfloat16")
MIXES = [(a, b, "int32") for a, b in itertools.product(("int8", "uint8"), repeat=2)]
DTYPES = [(d, d, d) for d in (*WHOLE, *HALVES, "complex64", "complex128")]
DTYPES += [*MIXES, *((d, d, "float32") for d in HALVES)]


def dtype_of(name):
    return np.dtype(ml_dtypes.bfloat16 if name == "bfloat16" else name)


def numbers(rng, shape, name):
    """All of a dtype's range: what wraps, and halves that become infinite."""
    if name == "bool":
        return rng.random(shape) < 0.2
    if name[0] in "iu":
        info = np.iinfo(name)
        return rng.integers(info.min, info.max, shape, name, endpoint=True)
    x = rng.standard_normal(shape) * (1 + 1000 * (rng.random(shape) < 0.1))
    return (x + 1j * rng.standard_normal(shape) if name[0] == "c" else x).astype(dtype_of(name))


def expected(x, a, b, beta, alpha, out, segment=4096):
    """beta*x + alpha*(a @ b) in an array of dtype `out`."""
    shape, whole = (len(a), b.shape[1]), out.kind in "iub"
    if whole:
        total = (a.astype(out) @ b.astype(out)) if out.kind != "b" else a @ b
        if out.kind == "b":
            return (x & bool(beta)) | (total & bool(alpha))
        be, al = (
            np.array(f % 2 ** (8 * out.itemsize), "u8").astype(f"u{out.itemsize}").view(out) for f in (beta, alpha)
        )
        return be * x + al * total
    if out.kind != "c":
        total = np.float32(alpha) * reference.matmul(a.astype("f4"), b.astype("f4"), segment)
        return reference.fma32(np.float32(beta), np.broadcast_to(x, shape).astype("f4"), total).astype(out)
    fma = reference.fma32 if out == "complex64" else reference.fma64
    real, x = a.real.dtype.type, np.broadcast_to(x, shape)
    re, im = reference.complex_chains(a, b, segment)
    al, be = (complex(out.type(f)) for f in (alpha, beta))
    al, be = ((real(f.real), real(f.imag)) for f in (al, be))
    sums = al[0] * re, al[0] * im
    if al[1]:
        sums = fma(-al[1], im, sums[0]), fma(al[1], re, sums[1])
    sums = fma(be[0], x.real, sums[0]), fma(be[0], x.imag, sums[1])
    if be[1]:
        sums = fma(-be[1], x.imag, sums[0]), fma(be[1], x.real, sums[1])
    result = np.empty(shape, out)
    result.real, result.imag = sums
    return result


def factors(out):
    """Pairs (beta, alpha)."""
    if out == "bool":
        return [(True, False), (True, True), (False, True)]
    if out.startswith(("int", "uint")):
        return [(-3, 7), (1, 1), (2**31 - 1, -5)]
    return [(0.75, -1.25), (0.5j, 1 - 2j) if out[0] == "c" else (1, 1)]


def run(x, a, b, beta, alpha, out, **keywords):
    tile = TILES[np.dtype(kind_of(a.dtype.name, b.dtype.name, out.dtype.name).chain).itemsize]
    gemm.gemm(device(out), None if x is None else device(x), device(a), device(b), beta, alpha, tile, **keywords)
    return out


@pytest.mark.parametrize("dtypes", DTYPES, ids=" ".join)
def test_bits_across_tile_edges(rng, dtypes):
    """Through both orders of out (the second one swaps the operands), in one block and over its edge."""
    names, shapes = itertools.cycle(LAYOUTS), [(3, 2, 5), (9, 33, 7)]
    dense = dtypes[0][0] in "biu"  # the others fill what lies between with NaN
    for ((m, n, k), order), (beta, alpha) in zip(itertools.product(shapes, "CF"), itertools.cycle(factors(dtypes[2]))):
        lay = (lambda v: v[::-1].copy()[::-1]) if dense else LAYOUTS[next(names)]
        a, b, x = (numbers(rng, shape, name) for shape, name in zip(((m, k), (k, n), (n,)), dtypes))
        want = expected(x, a, b, beta, alpha, dtype_of(dtypes[2]))
        same_bits(run(x, lay(a), lay(b), beta, alpha, np.zeros((m, n), dtype_of(dtypes[2]), order)), want)


@pytest.mark.parametrize("dtypes", [("int8",) * 3, ("bool",) * 3, ("float16",) * 3, ("bfloat16", "bfloat16", "float32"),
                                    ("complex64",) * 3], ids=" ".join)  # fmt: skip
def test_segments_wait_in_what_chains_are(rng, monkeypatch, dtypes):
    monkeypatch.setattr(gemm, "SEGMENT", 4)
    a, b, x = (numbers(rng, shape, name) for shape, name in zip(((3, 11), (11, 5), (3, 5)), dtypes))
    (beta, alpha), out = factors(dtypes[2])[0], dtype_of(dtypes[2])
    want = expected(x, a, b, beta, alpha, out, segment=4)
    same_bits(run(x, a, b, beta, alpha, np.zeros((3, 5), out, "F")), want)
    same_bits(run(x, a, b, beta, alpha, x), want)  # in place


@pytest.mark.parametrize("name", ["complex64", "bfloat16", "int16", "bool"])
def test_what_is_not_read_does_not_matter(rng, name):
    """beta = 0, alpha = 0 and k = 0; a sum of no terms keeps the signs of beta * self."""
    bad = np.full((3, 3), np.nan if name[0] in "cbf" and name != "bool" else 1).astype(dtype_of(name))
    a, zero = numbers(rng, (3, 3), name), np.zeros((3, 3), dtype_of(name))
    same_bits(run(bad, a, a, 0, 1, np.ones_like(zero)), run(None, a, a, 0, 1, np.ones_like(zero)))
    same_bits(run(bad, bad, bad, 0, 0, np.ones_like(zero)), zero)
    x = numbers(rng, (3, 3), name)
    x[0] = -zero[0] if name != "bool" else x[0]
    for left, right, alpha in ((bad, bad, 0), (bad[:, :0], bad[:0], 1)):
        same_bits(run(x, left, right, 1, alpha, np.ones_like(x)), x)


def test_a_complex_chain_at_minus_zero_survives_the_padding_of_k():
    """The real part underflows to -0 at its one step."""
    a, b = np.full((1, 1), 1e-30, "complex64"), np.full((1, 1), -1e-30, "complex64")
    result = run(None, a, b, 0, 1, np.ones((1, 1), "complex64"))
    assert np.signbit(result.real).all()
    assert not np.signbit(result.imag).any()


@pytest.mark.parametrize("name", HALVES)
def test_halves_round_once_to_even_and_keep_nan(name):
    """Sums of a half and of half its last place, a little more and a little less: ties, subnormals, infinities, NaN."""
    dtype, bits = dtype_of(name), np.array([0, 1, 2, 0x3F, 0x40, 0x80, 0x3C00, 0x3F81, 0x7BFF, 0x7F7F, 0x7FC1], "u2")
    low, high = (word.astype("u2").view(dtype).astype("f4") for word in (bits, bits + 1))
    gap = np.concatenate([(high - low) / 2 * np.float32(f) for f in (1, 1.25, 0.75, -0.5)]).astype(dtype)
    b = np.stack([np.tile(low.astype(dtype), 4), gap])
    b = np.concatenate([b, -b], 1)
    want = (np.float32(0) + b[0].astype("f4") + b[1].astype("f4")).astype(dtype)
    same_bits(run(None, np.ones((1, 2), dtype), b, 0, 1, np.zeros((1, b.shape[1]), dtype)), want[None])


@pytest.mark.parametrize("conj", ["a", "b", "ab"])
def test_conjugates(rng, conj):
    a, b = numbers(rng, (3, 5), "complex64"), numbers(rng, (5, 4), "complex64")
    want = run(None, a.conj() if "a" in conj else a, b.conj() if "b" in conj else b, 0, 1, np.zeros((3, 4), a.dtype))
    for order in "CF":
        same_bits(run(None, a, b, 0, 1, np.zeros((3, 4), a.dtype, order), conj=conj), want)


def test_a_mode_of_cpus_is_refused():
    x = device(np.zeros((2, 2), ml_dtypes.bfloat16))
    with pytest.raises(ValueError, match="'bf16_dot' is an instruction of CPUs"):
        nbkernels.mm(x, x, mode="bf16_dot")


def test_overlap(rng):
    room = numbers(rng, (4, 6), "int16")
    a, b, out = room[:3, :3], numbers(rng, (3, 3), "int16"), room[1:4, 1:4]
    want = a @ b + out
    same_bits(run(out, a, b, 1, 1, out), want)


@pytest.mark.parametrize("name", ["complex64", "float16", "int8", "bool"])
def test_the_family(rng, name, monkeypatch):
    """Every operation built on the kernel, through the public functions, has the bits of its products."""
    tile = TILES[np.dtype(kind_of(name, name, name).chain).itemsize]
    monkeypatch.setattr(gemm, "default", lambda problem, count: tile)
    a, b, x = numbers(rng, (2, 3, 4), name), numbers(rng, (2, 4, 2), name), numbers(rng, (2, 3, 2), name)

    def product(x, a, b, beta=1, alpha=1):
        return run(x, a, b, beta, alpha, np.zeros((len(a), b.shape[1]), a.dtype))

    def call(op, *args, **keywords):
        return getattr(nbkernels, op)(*map(device, args), **keywords).copy_to_host()

    both = [product(x[i], a[i], b[i]) for i in range(2)]
    same_bits(call("baddbmm", x, a, b), np.stack(both))
    same_bits(call("bmm", a, b), np.stack([product(None, a[i], b[i]) for i in range(2)]))
    same_bits(call("matmul", a, b[0])[1], product(None, a[1], b[0]))
    same_bits(call("linear", a[0], b[0].T, x[0, 0]), product(x[0, :1], a[0], b[0]))
    wide = np.dtype("f4" if name in ("float16", "bfloat16") else name)  # sums of halves are rounded once
    total = x[0].astype(wide)
    for i in range(2):
        total = run(total, a[i], b[i], 1, 1, np.zeros(total.shape, wide))
    same_bits(call("addbmm", x[0], a, b), total.astype(a.dtype))
    same_bits(call("mv", a[0], b[0, :, 0]), product(None, a[0], b[0, :, :1])[:, 0])
    same_bits(call("addmv", x[0, :, 0], a[0], b[0, :, 0]), both[0][:, 0])
    same_bits(call("outer", a[0, 0], b[0, 0]), product(None, a[0, :1].T, b[0, :1]))
    same_bits(call("addr", x[0], a[0, :, 0], b[0, 0]), product(x[0], a[0, :, :1], b[0, :1]))
    if name == "float16":
        activated = call("addmm_activation", x[0], a[0], b[0])
        same_bits(activated, np.maximum(both[0], 0))


BATCHES = {
    "item 1 has strides (4, 20)": lambda x: x.transpose(0, 2, 1).copy().transpose(0, 2, 1),
    "rows reversed": lambda x: x[:, ::-1].copy()[:, ::-1],
    "all reversed": lambda x: x[::-1, ::-1, ::-1].copy()[::-1, ::-1, ::-1],
    "the batch inside": lambda x: x.transpose(1, 2, 0).copy().transpose(2, 0, 1),
    "one matrix for all": lambda x: np.broadcast_to(x[1], x.shape),
}


@pytest.mark.parametrize("layout", BATCHES)
def test_batches_of_any_strides(rng, layout, monkeypatch):
    """Every op that takes a batch apart, on operands, self and out of these strides; device() refuses to be indexed."""
    monkeypatch.setattr(gemm, "default", lambda problem, count: TILES[4])
    lay = BATCHES[layout]
    a, b, x = (lay(rng.integers(-9, 10, shape).astype("f4")) for shape in ((3, 5, 4), (3, 4, 2), (3, 5, 2)))
    out = np.zeros((3, 5, 2), "f4") if layout.startswith("one") else lay(np.zeros((3, 5, 2), "f4"))
    nbkernels.baddbmm(device(x), device(a), device(b), beta=2, out=device(out))
    np.testing.assert_array_equal(out, 2 * x + a @ b)
    np.testing.assert_array_equal(
        nbkernels.addbmm(device(x[0]), device(a), device(b)).copy_to_host(), x[0] + (a @ b).sum(0)
    )
    apart = nbkernels.matmul(device(np.stack([a, a], 1)[:, ::-1]), device(b[:, None]))  # dimensions that do not merge
    np.testing.assert_array_equal(apart.copy_to_host(), np.stack([a @ b, a @ b], 1))


DOTS = [("complex64",) * 3, ("bfloat16",) * 3, ("float16", "float16", "float32"), ("uint8", "int8", "int32"),
        ("uint64",) * 3, ("bool",) * 3]  # fmt: skip


@pytest.mark.parametrize("dtypes", DOTS, ids=" ".join)
def test_dot(rng, dtypes):
    """Floats in 64 chains, and in two segments; those that widen in their product's one chain."""
    first, second, to = dtypes
    out = dtype_of(to)
    for k in (0, 5, 4200 if first == "complex64" else 150):
        a, b = numbers(rng, 2 * k, first)[::2], numbers(rng, k, second)[::-1]
        wider = None if first == to else to
        got = nbkernels.dot(device(a), device(b), out_dtype=wider).copy_to_host()
        if out.kind in "iub":
            want = np.dot(a.astype(out), b.astype(out))
        elif k == 0:
            want = 0
        elif wider:
            want = reference.matmul(a[None].astype("f4"), b[:, None].astype("f4"))[0, 0]
        elif first == "complex64":
            want = reference.dot(a, b)
            same_bits(nbkernels.vdot(device(a), device(b)).copy_to_host(), np.array(reference.dot(a.conj(), b)))
        else:
            want = reference.dot(a.astype("f4"), b.astype("f4"))
        same_bits(got, np.array(want).astype(out))
