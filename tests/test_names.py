"""Names that the package does not have: the error says which is meant."""

import pytest

import nbkernels


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("elemntwise", "; did you mean 'elementwise'[?]"),
        ("mul", "; did you mean 'multiply'[?]"),
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
