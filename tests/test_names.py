"""Names that the package does not have: the error says which is meant."""

import pytest

import nbkernels


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("elemntwise", "; did you mean 'elementwise'[?]"),
        ("mul", "; did you mean 'multiply'[?]"),
        ("einsum", "; np.einsum of arrays that asarray[(][)] makes runs here"),
        ("data", "; import nbkernels.data"),
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


def test_names_of_numpy_run_here():
    import numpy as np

    x = nbkernels.asarray(np.ones((2, 2)))
    calls = {"einsum": ("ij,jk", x, x), "where": (x > 0, x, x), "clip": (x, 0, 1), "mean": (x,), "var": (x,), "std": (x,)}
    for name in nbkernels._OF_ARRAYS:
        if hasattr(np, name):
            with nbkernels.watch() as log:
                getattr(np, name)(*calls.get(name, (x, x)))
            assert log, name
            assert not log.fallbacks, name


def test_dir_shows_public_names_alone():
    assert dir(nbkernels) == sorted([*nbkernels.__all__, "__version__"])
