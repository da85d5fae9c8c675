"""out_dtype, mode and conj of the products built on addmm: against slow references, and bit for bit against mm."""

import itertools

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import nbkernels as nb
from nbkernels import composites, epilogues
from nbkernels.cpu.gemm import general_entry
from nbkernels.dispatch import MetaArray
from nbkernels.jit.ir import chain
from tests import reference

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
# Dtypes of both factors and of the result, keywords.
KINDS = {
    "i8u8": ("int8", "uint8", "int32", dict(out_dtype="int32")),
    "f16": ("float16", "float16", "float32", dict(out_dtype=np.float32)),
    "c64": ("complex64", "complex64", "complex64", dict(conj="ab")),
}
if "bf16" in chain.ways():
    KINDS["bf16"] = (BFLOAT16, BFLOAT16, "float32", dict(out_dtype="float32", mode="bf16_dot"))


def numbers(rng, shape, dtype):
    dtype = np.dtype(dtype)
    if dtype.kind in "iu":
        return rng.integers(np.iinfo(dtype).min, np.iinfo(dtype).max, shape, dtype, endpoint=True)
    x = rng.standard_normal(shape)
    return (x + 1j * rng.standard_normal(shape) if dtype.kind == "c" else x).astype(dtype)


def same(found, expected):
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)


def orders(x):
    """x in C order, with its matrices turned, with every dimension turned, and read backwards."""
    yield x
    yield np.swapaxes(np.swapaxes(x, -1, -2).copy(), -1, -2)
    yield x.transpose().copy().transpose()
    yield np.flip(np.flip(x).copy())


@pytest.mark.parametrize("kind", KINDS)
def test_a_batch_has_the_bits_of_its_products(rng, kind):
    """One tile, several tiles, blocks of k, a segment; alone, over threads, and too large for a stack."""
    left, right, to, keywords = KINDS[kind]
    for count, m, n, k in ((9, 4, 4, 4), (3, 13, 60, 31), (2, 3, 5, 4100), (1, 9, 7, 5), (2, 100, 101, 99)):
        a, b, x = numbers(rng, (count, m, k), left), numbers(rng, (count, k, n), right), numbers(rng, (n,), to)
        product = np.stack([nb.mm(p, q, **keywords) for p, q in zip(a, b)])
        added = np.stack([nb.addmm(x, p, q, beta=3, alpha=-2, **keywords) for p, q in zip(a, b)])
        same(nb.bmm(a, b, **keywords), product)
        for p, q, out in zip(orders(a), orders(b), orders(np.ones_like(product))):
            nb.bmm(p, q, out=out, **keywords)
            same(out, product)
            assert nb.baddbmm(x, p, q, beta=3, alpha=-2, out=out, **keywords) is out
            same(out, added)
            out[...] = x
            assert nb.baddbmm_(out, p, q, beta=3, alpha=-2, **keywords) is out
            same(out, added)


@settings(max_examples=60)
@given(st.data())
def test_any_batch(data):
    """Broadcast, interleaved and empty stacks of int8, exact."""
    count, m, n, k = (data.draw(st.integers(0, high)) for high in (40, 20, 60, 40))
    rng = np.random.default_rng(0)

    def drawn(shape, dtype):
        order = data.draw(st.permutations([0, 1, 2]))
        x = numbers(rng, [shape[d] for d in order], dtype).transpose(np.argsort(order))
        if data.draw(st.booleans()) and shape[0]:
            x = np.broadcast_to(x[:1], shape)
        return x[:, ::-1] if data.draw(st.booleans()) else x

    a, b, x = drawn((count, m, k), "int8"), drawn((count, k, n), "uint8"), drawn((count, m, n), "int32")
    product = a.astype(np.int32) @ b.astype(np.int32)
    same(nb.bmm(a, b, out_dtype="int32"), product)
    same(nb.baddbmm(x, a, b, beta=-1, alpha=5, out_dtype="int32"), 5 * product - x)
    same(nb.baddbmm(x, a, b, beta=0, out_dtype="int32"), product)
    same(nb.baddbmm(x, a, b, alpha=0, beta=7, out_dtype="int32"), 7 * x)
    room = rng.integers(-9, 9, (count + 1, max(m, n), max(m, n))).astype(np.int8)
    left, right, out = room[:count, :m, :m], room[1:, :m, :n], room[:count, :m, -n:] if n else room[:count, :m, :0]
    expected = left @ right
    same(nb.bmm(left, right, out=out), expected)  # out overlaps both: by way of a copy


@pytest.mark.parametrize("shape", [(4, 8, 8), (1, 8, 8), (2, 130, 130)])
def test_explain_tells_of_stacks(monkeypatch, shape):
    ran, real = [], general_entry.General.stack
    monkeypatch.setattr(general_entry.General, "stack", lambda self, *args: ran.append(real(self, *args)) or ran[-1])
    a = np.ones(shape, np.int8)
    found = nb.explain(nb.bmm, a, a, out_dtype="int32")
    assert not ran
    nb.bmm(a, a, out_dtype="int32")
    assert found.path == ("stack, one thread a product" if any(ran) else "packed")


def test_matrices_with_keywords_go_the_short_way(rng, monkeypatch):
    a, b, bias = numbers(rng, (5, 7), "int8"), numbers(rng, (7, 4), "int8"), numbers(rng, (4,), "int32")
    weight, product = b.T.copy(), a.astype("int32") @ b
    for _ in range(2):  # after the first calls of these types nothing goes by the general path
        same(nb.matmul(a, b, out_dtype="int32"), product)
        same(nb.linear(a, weight, out_dtype="int32"), product)
        same(nb.linear(a, weight, bias, out_dtype="int32"), product + bias)
        monkeypatch.setattr(composites, "_matmul", None)
    out = np.empty((5, 4), "int32")
    assert nb.linear(a, weight, bias, out_dtype="int32", out=out) is out
    same(out, product + bias)


def test_who_is_a_stack():
    """Products too large for one thread, of one stack or of what a matrix unit takes, go one by one."""
    expected = {(4, 8): 1, (1000, 8): 2, (4, 2100): 0, (3, 900): 0, (4, 900): 2, (5, 900): 2, (3, 300): 2}
    for (count, n), threads in expected.items():
        assert general_entry.shared(count, (8, n, n), 2, 0, 0) == threads, (count, n)
    odd, a = np.zeros((4, 8, 8), [("flag", "i1"), ("x", "f2")])["x"], np.ones((4, 8, 8), np.float16)
    odd[...] = 3
    assert (nb.bmm(odd, a) == 24).all()
    assert (nb.bmm(a, a, out=odd) == 8).all()


@pytest.mark.parametrize("launch", [1, 3 << 20, general_entry.LAUNCH])
@pytest.mark.parametrize("dtype", ["float16", "int8", "complex64"])
def test_stacks_of_larger_products(rng, monkeypatch, dtype, launch):
    """A thread a product, also by launches that let Ctrl-C through, and all together where threads had better share."""
    monkeypatch.setattr(general_entry, "LAUNCH", launch)
    for count in (3, 7):
        a, b, x = (numbers(rng, shape, dtype) for shape in ((count, 100, 105), (count, 105, 98), (count, 1, 98)))
        found = nb.baddbmm(x, a, b.swapaxes(1, 2).copy().swapaxes(1, 2), alpha=2)
        for i in range(count):
            same(found[i], nb.addmm(x[i], a[i], b[i], alpha=2))


@pytest.mark.parametrize("kind", KINDS)
def test_the_family_has_the_bits_of_mm(rng, kind):
    left, right, to, keywords = KINDS[kind]
    a, b, x = numbers(rng, (2, 5, 7), left), numbers(rng, (2, 7, 4), right), numbers(rng, (4,), to)
    v, w, c, d = numbers(rng, (7,), right), numbers(rng, (7,), left), numbers(rng, (5,), to), numbers(rng, (3,), left)
    rows = nb.mm(a.reshape(10, 7), b[0], **keywords).reshape(2, 5, 4)
    same(nb.matmul(a, b[0], **keywords), rows)
    same(nb.matmul(a[:, None], b, **keywords)[1, 0], nb.mm(a[1], b[0], **keywords))
    same(nb.matmul(w, b, **keywords)[1], nb.mm(w[None], b[1], **keywords)[0])
    same(nb.linear(a, b[0].T, **keywords), rows)
    biased = nb.linear(a, np.ascontiguousarray(b[0].T), x, **keywords)
    same(biased, nb.addmm(x, a.reshape(10, 7), b[0], **keywords).reshape(2, 5, 4))
    same(nb.mv(a[0], v, **keywords), nb.mm(a[0], v[:, None], **keywords)[:, 0])
    added = nb.addmm(c[:, None], a[0], v[:, None], beta=2, alpha=3, **keywords)[:, 0]
    same(nb.addmv(c, a[0], v, beta=2, alpha=3, **keywords), added)
    same(nb.outer(d, v, **keywords), nb.mm(d[:, None], v[None], **keywords))
    same(nb.addr(np.zeros(7, to), d, v, alpha=3, **keywords), 3 * nb.outer(d, v, **keywords))
    p, q = (rng.integers(0, 4, 7).astype(dtype) for dtype in (left, right))  # sums that every order gives
    same(np.asarray(nb.dot(p, q, **keywords)), nb.mm(p[None], q[:, None], **keywords)[0, 0])
    once = nb.addmm(x, a[0], b[0], beta=2, alpha=3, **keywords)
    twice = nb.addmm(once, a[1], b[1], alpha=3, **keywords)
    same(nb.addbmm(x, a, b, beta=2, alpha=3, **keywords), twice)
    own = np.broadcast_to(x, (5, 4)).copy()
    assert nb.addbmm_(own, a, b, beta=2, alpha=3, **keywords) is own
    same(own, twice)


def test_values_are_those_of_slow_references(rng):
    a, b = numbers(rng, (2, 3, 40), "float16"), numbers(rng, (2, 40, 5), "float16")
    for i, found in enumerate(nb.bmm(a, b, out_dtype="float32")):
        same(found, reference.matmul(a[i].astype("f4"), b[i].astype("f4")))
    a, b = numbers(rng, (2, 3, 40), "complex64"), numbers(rng, (2, 40, 5), "complex64")
    for conj in ("a", "b", "ab"):
        p, q = a.conj() if "a" in conj else a, b.conj() if "b" in conj else b
        for i, found in enumerate(nb.matmul(a, b, conj=conj)):
            same(found, reference.complex_matmul(p[i], q[i]))
        same(nb.linear(a, b[0].T, conj=conj)[1], reference.complex_matmul(p[1], q[0]))
    v = numbers(rng, 40, "int8")
    same(np.asarray(nb.dot(v, v, out_dtype="int32")), np.asarray(v.astype("i4") @ v.astype("i4")))
    same(np.asarray(nb.vdot(v, v, out_dtype="int32")), np.asarray(v.astype("i4") @ v.astype("i4")))


@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_activations_of_halves(rng, activation):
    """The function in the result's dtype, of the product as addmm stores it."""
    ending = epilogues.ENDINGS[activation, "none"]
    function = ending.apply
    for m, n, k in ((5, 7, 9), (150, 160, 300)):
        a, b, x = (numbers(rng, shape, "float16") for shape in ((m, k), (k, n), (n,)))
        same(nb.addmm_activation(x, a, b, activation=activation), function(nb.addmm(x, a, b)))
        wide = x.astype(np.float32)
        found = nb.addmm_activation(wide, a, b, activation=activation, out_dtype="float32")
        same(found, function(nb.addmm(wide, a, b, out_dtype="float32")))
        before = np.ones((m, n), np.float32)
        same(ending(wide, a, b, out_dtype="float32", before=before), found)
        same(before, nb.addmm(wide, a, b, out_dtype="float32"))


def test_deep_products_of_bytes_wrap_on_every_path():
    """Modulo 2**32, as documented: 2**17 times 2**14 is 2**31."""
    k = 1 << 17
    low, high = (np.broadcast_to(np.full(1, value, dtype), (1, k)) for value, dtype in ((-128, "int8"), (255, "uint8")))
    for left, right in itertools.product((low, high), repeat=2):
        exact = int(left[0, 0]) * int(right[0, 0]) * k
        wrapped = (exact + 2**31) % 2**32 - 2**31
        assert nb.mm(left, right.T, out_dtype="int32").tolist() == [[wrapped]]
        assert nb.dot(left[0], right[0], out_dtype="int32") == wrapped
        many = nb.bmm(np.broadcast_to(left, (2, 3, k)), np.broadcast_to(right.T, (2, k, 2)), out_dtype="int32")
        assert (many == wrapped).all()
        twice = nb.mm(np.broadcast_to(left, (60, k)), np.broadcast_to(right.T, (k, 70)), out_dtype="int32")
        assert (twice == wrapped).all()


CALLS = {
    "mm": lambda a, **kw: nb.mm(a, a, **kw),
    "bmm": lambda a, **kw: nb.bmm(a[None], a[None], **kw)[0],
    "matmul": lambda a, **kw: nb.matmul(a, a, **kw),
    "linear": lambda a, **kw: nb.linear(a, a.T, **kw),
    "addmm": lambda a, **kw: nb.addmm(np.zeros(1, kw.get("to", a.dtype)), a, a, **kw),
}


class Subclass(np.ndarray):
    pass


SPELT = {
    "int64": (int, "int64", "i8", np.int64, np.dtype("int64")),
    "float64": (float, "float64", "d", np.float64),
    "bool": (bool, "bool", "?", np.bool_),
    "float32": ("f4", np.float32, np.dtype(">f4")),
}


@pytest.mark.parametrize("dtype", SPELT)
def test_one_rule_for_what_names_a_dtype(dtype):
    """On the fast path, on the slow one, which subclasses take, and without data."""
    a = np.ones((4, 4), dtype)
    for name, spelt in itertools.product(CALLS, SPELT[dtype]):
        for x in (a, a.view(Subclass)):
            found = CALLS[name](x, out_dtype=spelt)
            assert found.dtype == np.dtype(dtype)
            assert found.dtype.isnative
            assert (found == (4 if dtype != "bool" else 1)).all()
    assert nb.mm(*[MetaArray((4, 4), dtype)] * 2, out_dtype=spelt).dtype == np.dtype(dtype)
    for wrong in ("int16", object, "no such", [4], 4, np.int16):
        for name in CALLS:
            with pytest.raises(TypeError, match="out_dtype"):
                CALLS[name](a, out_dtype=wrong)


def test_names_of_widened_dtypes():
    for spelt in (np.int32, "i4", "int32", np.dtype(">i4")):
        found = nb.mm(np.ones((3, 3), "int8"), np.ones((3, 3), "int8"), out_dtype=spelt)
        assert found.dtype == np.dtype("int32")
        assert (found == 3).all()


BYTES3, HALF = np.ones((2, 3, 3), np.int8), np.ones((3, 3), np.float16)
BAD = [
    (lambda: nb.bmm(BYTES3, BYTES3, out_dtype="int64"), TypeError, "bmm: out_dtype int64 cannot be had"),
    (lambda: nb.bmm(BYTES3, BYTES3, conj="a"), ValueError, "bmm: conj is 'a', 'b' or 'ab' for complex"),
    (lambda: nb.bmm(BYTES3, BYTES3, mode="bf16_dot"), ValueError, "bmm: there is no mode 'bf16_dot' for int8"),
    (lambda: nb.bmm(BYTES3, BYTES3.view("u1")), TypeError, "bmm: self and mat2 must share a dtype"),
    (lambda: nb.baddbmm(BYTES3, BYTES3, BYTES3, out_dtype="int32"), TypeError, "self is int8 and out_dtype is int32"),
    (lambda: nb.linear(HALF, HALF, HALF[0], out_dtype="float32"), TypeError, "bias is float16 and out_dtype"),
    (lambda: nb.mv(HALF, HALF[0], out_dtype="int32"), TypeError, "mv: out_dtype int32 cannot be had from self float16"),
    (lambda: nb.matmul(HALF, HALF, mode="fast"), ValueError, "matmul: there is no mode 'fast' for float16"),
    (lambda: nb.addmv(HALF[0], HALF, HALF[0], conj="c"), ValueError, "addmv: conj is"),
    (lambda: nb.addmm_activation(BYTES3[0], BYTES3[0], BYTES3[0]), TypeError, "self has dtype int8"),
    (lambda: nb.baddbmm(np.ones((3, 3), "i4"), BYTES3, BYTES3, alpha=0.5, out_dtype="int32"), TypeError, "alpha=0.5"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "kind", "words"), BAD, ids=[words for *_, words in BAD])
def test_bad_keywords_are_clear_errors(call, kind, words):
    with pytest.raises(kind, match=words):
        call()


def test_gradients_of_complex_products_are_torchs(rng):
    """With every conj; torch's own conventions for complex numbers."""
    torch = pytest.importorskip("torch", reason="needs torch")
    conjs = (None, "a", "b", "ab")
    ways = {
        "mm": ((2, 3), (3, 4)), "bmm": ((5, 2, 3), (5, 3, 4)), "mv": ((2, 3), (3,)), "outer": ((2,), (3,)),
        "dot": ((3,), (3,)), "matmul": ((5, 2, 3), (3, 4)),
    }  # fmt: skip
    cases = [(name, shapes, conj, {}) for (name, shapes), conj in itertools.product(ways.items(), conjs)]
    cases += [("matmul", shapes, "b", {}) for shapes in (((5, 2, 3), (3,)), ((3,), (5, 3, 4)), ((3,), (3, 4)))]
    factors = dict(beta=1 - 2j, alpha=0.5 + 1j)
    added = {"addmm": ((4,), (2, 3), (3, 4)), "baddbmm": ((5, 2, 4), (5, 2, 3), (5, 3, 4)),
             "addbmm": ((2, 4), (5, 2, 3), (5, 3, 4)), "addmv": ((2,), (2, 3), (3,)),
             "addr": ((2, 3), (2,), (3,))}  # fmt: skip
    cases += [(name, shapes, conj, factors) for (name, shapes), conj in itertools.product(added.items(), conjs)]
    cases += [("vdot", ((3,), (3,)), "", {}), ("linear", ((5, 2, 3), (4, 3)), "a", {})]
    for name, shapes, conj, keywords in cases:
        arrays = [np.asarray(numbers(rng, shape, "complex64"), order="CF"[i % 2]) for i, shape in enumerate(shapes)]
        leaves = [torch.from_numpy(x).requires_grad_() for x in arrays]
        *rest, left, right = leaves
        pair = left.conj() if "a" in (conj or "") else left, right.conj() if "b" in (conj or "") else right
        function = torch.nn.functional.linear if name == "linear" else getattr(torch, name)
        result = function(*rest, *pair, **keywords)
        grad = np.asarray(numbers(rng, tuple(result.shape), "complex64"))
        result.backward(torch.from_numpy(grad))
        keywords = keywords | ({} if name == "vdot" else {"conj": conj})
        for x, leaf, found in zip(arrays, leaves, getattr(nb, name).op.gradient(grad, *arrays, **keywords)):
            np.testing.assert_allclose(found, leaf.grad.resolve_conj().numpy(), 1e-5, 1e-5, err_msg=f"{name} {conj}")
            if x.ndim == 2 and name in ("mm", "addmm"):
                assert found.flags.f_contiguous == x.flags.f_contiguous, name


def test_gradients_of_widened_products(rng):
    """Computed in the result's dtype, and rounded once to the factor's."""
    a, b, x = numbers(rng, (5, 7), "float16"), numbers(rng, (7, 4), "float16"), numbers(rng, (4,), "float32")
    grad = numbers(rng, (5, 4), "float32")
    wide = a.astype("f4"), b.astype("f4")
    for keywords in ({}, dict(beta=2.0, alpha=0.3)):
        expected = nb.addmm.op.gradient(grad, x, *wide, **keywords)
        found = nb.addmm.op.gradient(grad, x, a, np.asfortranarray(b), out_dtype="float32", **keywords)
        for mine, theirs, leaf in zip(found, expected, (x, a, b)):
            same(mine, theirs.astype(leaf.dtype))
        assert found[2].flags.f_contiguous
    for name, args in (
        ("bmm", (a[None], b[None])),
        ("matmul", (a[None], b)),
        ("linear", (a, b.T)),
        ("mv", (a, b[:, 0])),
    ):
        g = numbers(rng, getattr(nb, name)(*args).shape, "float32")
        expected = getattr(nb, name).op.gradient(g, *(z.astype("f4") for z in args))
        for mine, theirs in zip(getattr(nb, name).op.gradient(g, *args, out_dtype="float32"), expected):
            assert theirs is mine is None or mine.dtype == np.float16
            if mine is not None:
                same(mine, theirs.astype(np.float16))
    active = nb.addmm_activation.op.gradient(grad, x, a, b, activation="silu", out_dtype="float32")
    assert [g.dtype for g in active] == [x.dtype, a.dtype, b.dtype]
    assert nb.dot.op.gradient(2.0, a[0], a[1])[0].tolist() == (2 * a[1]).tolist()


def test_keywords_of_torch_tensors(rng):
    torch = pytest.importorskip("torch", reason="needs torch")
    a, b = torch.randn(3, 5, 6), torch.randn(3, 6, 4)
    for dtype in (torch.bfloat16, torch.float16):
        p, q = a.to(dtype), b.to(dtype)
        assert torch.equal(nb.bmm(p, q, out_dtype=torch.float32), nb.bmm(p.float(), q.float()))
        assert torch.equal(nb.matmul(p, q[0], out_dtype=torch.float32), nb.matmul(p.float(), q[0].float()))
        left, right = nb.bmm.op.gradient(torch.ones(3, 5, 4), p, q, out_dtype=torch.float32)
        assert (left.dtype, right.dtype) == (dtype, dtype)
