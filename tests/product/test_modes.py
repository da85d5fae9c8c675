"""The mode of products where a call names none: nbkernels.modes, NBKERNELS_MODE, what the processor is fastest by."""

import json
import sys

import ml_dtypes
import numpy as np
import pytest

import nbkernels as nb
from nbkernels.commands import info
from nbkernels.cpu.gemm import kinds
from tests.compare import same_bits
from tests.processes import python

modes = sys.modules["nbkernels.modes"]  # whose name in the package is the block's
BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
OWN = [mode for mode in kinds.MODES if kinds.has(mode)]


@pytest.fixture
def fastest(monkeypatch):
    """No word of the environment's, and a processor that is fastest by what is named here."""
    monkeypatch.setattr(modes, "_of_environment", dict)

    def by(mode):
        monkeypatch.setattr(kinds, "_fastest", lambda dtype: mode if dtype == "bfloat16" else "chain")
        modes._renew()

    yield by
    monkeypatch.undo()
    modes._renew()


def products(rng, dtype=BFLOAT16, **mode):
    """Each public product once, by the entries of small ones and by packed panels."""
    a, b = (rng.standard_normal(shape).astype(dtype) for shape in ((70, 4100), (4100, 33)))
    x, stack = b[:33, :33], np.stack([b[:40], b[40:80]])
    yield nb.mm(a, b, **mode)
    yield nb.mm(a[:5, :7], b[:7], **mode)
    yield nb.addmm(x, b[:33], b[:33], alpha=2, beta=3, **mode)
    yield nb.bmm(np.swapaxes(stack, 1, 2), stack, **mode)
    yield nb.matmul(a[:, :40], stack, **mode)
    yield nb.linear(a[:, :33], x, x[0], **mode)
    yield nb.mv(a, b[:, 0], **mode)
    yield nb.mm(a, b, out_dtype="float32", **mode)
    yield nb.mm(a[:, :70], a[:, :70].T, **mode)


@pytest.mark.parametrize("mode", ["chain", *OWN])
def test_the_default_has_the_bits_of_its_mode(fastest, mode):
    fastest(mode)
    for got, want in zip(products(np.random.default_rng(1)), products(np.random.default_rng(1), mode=mode)):
        same_bits(got, want)


def test_blocks_go_before_the_environment_and_the_inner_one_before_the_outer(fastest, rng):
    a, b = (rng.standard_normal(shape).astype(BFLOAT16) for shape in ((40, 900), (900, 40)))
    fastest("chain")
    by = {mode: nb.mm(a, b, mode=mode).tobytes() for mode in ("chain", *OWN)}
    for mode in OWN:
        with nb.modes(mode):
            assert nb.mm(a, b).tobytes() == by[mode]
            with nb.modes("chain"):
                assert nb.mm(a, b).tobytes() == by["chain"]
                assert nb.mm(a, b, mode=mode).tobytes() == by[mode]
            assert nb.mm(a, b).tobytes() == by[mode]
        assert nb.mm(a, b).tobytes() == by["chain"]
        assert by[mode] != by["chain"]


@pytest.mark.parametrize("mode", OWN or ["chain"])
def test_sums_of_vectors_have_an_order_of_their_own(fastest, mode, rng):
    x, y = (rng.standard_normal(3000).astype(BFLOAT16) for _ in "xy")
    fastest("chain")
    expected = nb.dot(x, y), nb.vdot(x, y), nb.matmul(x, y)
    fastest(mode)
    for got, want in zip((nb.dot(x, y), nb.vdot(x, y), nb.matmul(x, y)), expected):
        same_bits(np.asarray(got), np.asarray(want))


def test_other_dtypes_are_as_they_were(rng):
    a, b = (rng.standard_normal((30, 30)) for _ in "ab")
    for dtype in ("float32", "float64", "float16", "int8"):
        x, y = a.astype(dtype), b.astype(dtype)
        before = nb.mm(x, y)
        with nb.modes(*OWN[:1]):
            same_bits(nb.mm(x, y), before)


def test_modes_that_are_not_there_are_refused(monkeypatch):
    with pytest.raises(ValueError, match="there is no mode 'fast'; there are 'amx', 'bf16_dot', 'chain', 'tf32'"):
        nb.modes("fast")
    monkeypatch.setattr(kinds, "has", lambda mode, dtype="": True)
    with pytest.raises(ValueError, match="modes 'chain' and 'bf16_dot' are both of bfloat16"):
        nb.modes("chain", "bf16_dot")
    monkeypatch.setattr(kinds, "has", lambda mode, dtype="": mode not in kinds.MODES)
    with pytest.raises(ValueError, match="this processor has no mode 'amx'; wanted is one of 'chain', 'tf32'"):
        nb.modes("amx")


def test_info_says_which(monkeypatch):
    with nb.modes("chain"):
        assert info.modes() == "float16 chain, bfloat16 chain"
    monkeypatch.setattr(modes, "_of_environment", lambda: modes._by_dtype(["fast"]))
    assert info.modes().startswith("there is no mode 'fast'")


def test_gpus_hear_of_their_own_modes_alone():
    with nb.modes("chain", "tf32"):
        assert [modes.asked(each, of_gpus=True) for each in ("bfloat16", "float32")] == ["chain", "tf32"]
        assert kinds.kind_of("float32", "float32", "float32").way == "fma"
    for mode in OWN:
        with nb.modes(mode):
            assert modes.asked("bfloat16", of_gpus=True) is None


SAYS = """
import json, ml_dtypes, numpy as np, nbkernels as nb
a = np.random.default_rng(2).standard_normal((20, 20)).astype(ml_dtypes.bfloat16)
try:
    print(json.dumps([nb.mm(a, a).tobytes().hex(), nb.explain(nb.mm, a, a).mode]))
except ValueError as error:
    print(json.dumps([str(error), ""]))
"""


@pytest.mark.parametrize("asked", ["", "chain", "tf32, chain", "chian", *OWN])
def test_the_environment(asked, rng):
    found, said = json.loads(python(SAYS, **{modes.VARIABLE: asked, "PYTHONWARNINGS": "error"}))
    if asked == "chian":
        assert found == "NBKERNELS_MODE=chian: there is no mode 'chian'; there are 'amx', 'bf16_dot', 'chain', 'tf32'"
        return
    mode = {"": kinds._fastest("bfloat16"), "tf32, chain": "chain"}.get(asked, asked)
    a = np.random.default_rng(2).standard_normal((20, 20)).astype(BFLOAT16)
    assert (found, said) == (nb.mm(a, a, mode=mode).tobytes().hex(), mode)
