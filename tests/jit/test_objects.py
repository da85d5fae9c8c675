"""What `elementwise` and `epilogue` make, called in jitted code; and how Numba finds all of it by itself."""

import textwrap
from importlib import metadata
from pathlib import Path

import numba
import numpy as np
import pytest

import nbkernels as nb
from nbkernels import extension
from tests.cases import loose
from tests.compare import same_bits
from tests.processes import python


@nb.elementwise
def smooth(x):
    return x if x > 0 else 0.5 * np.expm1(x)


@nb.elementwise
def scaled(x, y):
    return x * y + 1


@nb.epilogue
def ended(product, bias):
    return max(product + bias, 0.0)


@numba.njit
def calls(a, row, mask, out):
    held = out.copy()
    scaled(a, row, out=held, where=mask)
    smooth(a, out=out, where=mask)
    return smooth(a), scaled(3, a), held, ended(row, a, a.T, row[0], alpha=2)


def test_bits_are_those_of_calls_from_python(rng):
    for order, step in (("C", 2), ("F", -1)):
        a, out = (loose(rng.standard_normal((9, 9)).astype("f4"), order, step) for _ in range(2))
        row, mask, expected = rng.standard_normal(18).astype("f4")[::2], loose(rng.random((9, 9)) < 0.5), out.copy()
        for got, want in zip(calls(a, row, mask, out), calls.py_func(a, row, mask, expected)):
            same_bits(got, want)
        same_bits(out, expected)


def test_what_cannot_be_called_is_told(rng):
    x = np.ones(3)
    three = nb.elementwise(lambda x, y, z: x + y + z)
    raising = nb.elementwise(lambda x: x if x > 0 else [1.0][int(x)])
    for call, args, why in (
        (lambda x: three(x, x, x), (x,), "it has 3 arguments, and jitted code calls functions of one or two"),
        (lambda x: scaled(2.0, 1), (x,), "scaled: no array among x, y"),
        (lambda x: scaled(x, "2"), (x,), "scaled: y is .*, and an array or a number is wanted"),
        (lambda x, out: scaled(x, 2, out=out), (x, np.ones(3, int)), "cannot be cast"),
        (lambda x: scaled(x, x, x=x), (x,), "got multiple|missing|unexpected|too many"),
        (lambda x: nb.mm_(x, x), (np.ones((3, 3)),), "mm_ of nbkernels cannot be called in jitted code"),
    ):
        with pytest.raises(numba.core.errors.NumbaError, match=why):
            numba.njit(call)(*args)
    with pytest.raises(TypeError):
        raising(x)


SCRIPT = """
    import sys
    import numba, numpy as np
    numba.njit(lambda x: x + 1)(1)
    assert "nbkernels" not in sys.modules or "nbkernels.jitted" not in sys.modules
    import nbkernels as nb
    from nbkernels import extension

    extension.init()
    x = np.ones((3, 3), np.int8)
    assert (numba.njit(lambda x: nb.maximum.reduce(nb.add(x, x)))(x) == 2).all()
    print("nbkernels.jitted" in sys.modules)
"""


def test_numba_finds_it_without_an_import():
    """As by the entry point, which an installation tells it of; what is heavy comes with the first call."""
    script = textwrap.dedent(SCRIPT)
    assert python(script, PYTHONWARNINGS="error") == "True\n"


def test_the_entry_point_names_it():
    text = (Path(__file__).parents[2] / "pyproject.toml").read_text()
    found = text.partition("[project.entry-points.numba_extensions]\ninit = ")[2].partition("\n")[0].strip('"')
    point = metadata.EntryPoint("init", found, "numba_extensions")
    assert point.load() is extension.init
    assert point.load()() is None


def test_cuda_shows_its_block():
    """For kernels of one's own; it comes with its first use."""
    import nbkernels.cuda

    assert "block" in dir(nbkernels.cuda)
    with pytest.raises(AttributeError, match="has no attribute 'blocks'"):
        _ = nbkernels.cuda.blocks


def test_a_block_says_that_there_is_no_driver(monkeypatch):
    block = pytest.importorskip("nbkernels.cuda.block")

    def bindings():
        raise block.driver.DriverError("cuInit", 100)

    monkeypatch.setattr(block.driver, "bindings", bindings)
    expected = None if block.driver.simulated() else "cuInit: 100: this machine has no CUDA GPU, or no driver for it"
    assert block.missing() == expected
