"""Names that the package does not have: the error says which is meant."""

import inspect

import numpy as np
import pytest

import nbkernels
from nbkernels import cli


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("elemntwise", "; did you mean 'elementwise'[?]"),
        ("mul", "; did you mean 'multiply'[?]"),
        ("inner", "; np.inner of arrays that asarray[(][)] makes runs here"),
        ("data", "; import nbkernels.data"),
        ("matmull", "; did you mean 'matmul'[?]"),
        ("softmax", "; it is exp.*"),
        ("relu", "; of a product it is addmm_activation's activation="),
        ("linalg", "; mm, bmm and matmul are here, and numpy.linalg has the rest"),
        ("info", "; it is a command: python -m nbkernels info"),
        ("sort", "; numpy.sort is NumPy's"),
        ("fft", "; numpy.fft is NumPy's"),
        ("conv2d", ""),
        ("zzzz", ""),
        ("q.z", ""),
        ("__wrapped__", ""),
    ],
)
def test_unknown_names(name, hint, monkeypatch):
    monkeypatch.delattr(nbkernels, "data", raising=False)  # it is here where it has been imported
    with pytest.raises(AttributeError, match=f"^module 'nbkernels' has no attribute '{name}'{hint}$") as error:
        getattr(nbkernels, name)
    assert error.value.name == name, "else Python adds a guess of its own"


def test_names_that_others_have_lead_somewhere():
    for path in nbkernels._ELSEWHERE.values():
        found = nbkernels
        for part in path.split("."):
            found = getattr(found, part)
        assert callable(found)


def test_words_that_are_commands_are_all_of_them():
    commands = {
        name for name, said in nbkernels._SAID.items() if said == f"it is a command: python -m nbkernels {name}"
    }
    assert commands | {"tune"} == set(cli._parser()[1])


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda x: nbkernels.addmm(x, x, x, alhpa=2), r"addmm\(\) got .* 'alhpa'[;.] [dD]id you mean 'alpha'\?"),
        (lambda x: nbkernels.mm(x, x, ouput=x), r"mm\(\) got .* 'ouput'[;.] [dD]id you mean 'out'\?"),
        (lambda x: nbkernels.add(x, x, whre=None), r"add\(\) got .* 'whre'[;.] [dD]id you mean 'where'\?"),
        (lambda x: nbkernels.add_(x, x, alhpa=2), r"add_\(\) got .* 'alhpa'[;.] [dD]id you mean 'alpha'\?"),
        (
            lambda x: nbkernels.elementwise(abs_of)(x, wher=None),
            r"abs_of\(\) got .* 'wher'[;.] [dD]id you mean 'where'\?",
        ),
        (lambda x: nbkernels.mm(x, x, zzzz=x), r"mm\(\) got an unexpected keyword argument 'zzzz'$"),
    ],
)
def test_keywords_that_are_none_are_answered_with_the_nearest(call, said):
    x = np.ones((2, 2))
    with pytest.raises(TypeError, match=said):
        call(x)
    assert (x == 1).all()


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda x: nbkernels.add(x, x, x), r"add\(\) takes 2 positional arguments; by name: alpha, where, .*, out$"),
        (lambda x: nbkernels.add(x, x, 1, None, None, None, None, x), r"add\(\) takes 2 positional"),
        (lambda x: nbkernels.add_(x, x, None), r"add_\(\) takes 2 positional arguments; by name: alpha"),
        (lambda x: nbkernels.exp(x, x, where=None), r"exp\(\) takes 1 positional argument; by name: where"),
        (lambda x: nbkernels.round(x, 0, x), r"round\(\) takes 1 to 2 positional arguments; by name"),
        (lambda x: nbkernels.mm(x, x, x), r"mm\(\) takes 2 positional arguments; by name: out_dtype"),
    ],
)
def test_what_has_a_name_has_no_place(call, said):
    x = np.full((2, 2), 3.0)
    with pytest.raises(TypeError, match=said):
        call(x)
    assert (x == 3).all()


def abs_of(x):
    return abs(x)


def test_signatures_have_no_other_names():
    told = str(inspect.signature(nbkernels.addmm))
    assert told.startswith("(self, mat1, mat2, *, beta=1, alpha=1")
    assert told.endswith("out=None)")
    for name in nbkernels.ops.OPERATIONS:
        kinds = {p.kind for p in inspect.signature(getattr(nbkernels, name)).parameters.values()}
        assert inspect.Parameter.VAR_KEYWORD not in kinds


def test_names_of_numpy_run_here():
    x = nbkernels.asarray(np.ones((2, 2)))
    calls = {
        "einsum": ("ij,jk", x, x),
        "where": (x > 0, x, x),
        "clip": (x, 0, 1),
        "mean": (x,),
        "var": (x,),
        "std": (x,),
    }
    for name in nbkernels._OF_ARRAYS:
        if hasattr(np, name):
            with nbkernels.watch() as log:
                getattr(np, name)(*calls.get(name, (x, x)))
            assert log, name
            assert not log.fallbacks, name


def test_dir_shows_public_names_alone():
    assert dir(nbkernels) == sorted([*nbkernels.__all__, "__version__"])
