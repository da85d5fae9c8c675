"""watch(): what ran in NumPy in place of here can be seen, with the reason."""

import re
import threading

import numpy as np
import pytest

import nbkernels as nb

PLAIN = np.array([[1.0, 2.0], [3.0, 4.5]])


@pytest.mark.parametrize(
    ("call", "name", "why"),
    [
        (lambda x: x @ x, "matmul", ""),
        (lambda x: 2 * x, "multiply", ""),
        (lambda x: np.add(x, 1, out=x), "add", ""),
        (lambda x: x.sum(), "add.reduce", ""),
        (lambda x: np.max(x, axis=0), "maximum.reduce", ""),
        (lambda x: np.subtract.outer(x, x), "subtract.outer", ""),
        (np.sqrt, "sqrt", ""),
        (np.spacing, "spacing", "nbkernels has no spacing"),
        (lambda x: np.add.reduceat(x, [0, 1]), "add.reduceat", "nbkernels has no add.reduceat"),
        (lambda x: x + [1, 2], "add", "an operand is a list"),
        (lambda x: x + np.ones(2, np.longdouble), "add", "an operand is ndarray of (longdouble|float)"),
        (lambda x: np.add(x[0], 1, out=nb.asarray(np.zeros((3, 2)))), "add", r".*the result has shape \(2,\)"),
        (lambda x: np.concatenate([x, x]), "concatenate", "it is no ufunc"),
        (lambda x: np.dot(x, x), "dot", ""),
        (lambda x: np.dot(x, x, x), "dot", ""),
        (lambda x: np.where([True, False], x, 0.0), "where", ""),
        (lambda x: np.clip(x, 0, 1), "clip", ""),
        (lambda x: np.einsum("ij->j", x), "einsum", "it is no einsum of two operands"),
        (lambda x: np.sort(x), "sort", "it is no ufunc"),
    ],
)
def test_each_call_is_told(call, name, why):
    with nb.watch() as log:
        call(nb.asarray(PLAIN.copy()))
    (found,) = log
    assert (found.name, found.where) == (name, "NumPy" if why else "nbkernels")
    assert log.fallbacks == ([found] if why else [])
    assert re.match(why, found.why) if why else found.why == ""
    assert str(log).split() == [name, found.where, *found.why.split()]


def test_errstate_is_a_reason():
    with nb.watch() as log, np.errstate(all="raise"):
        nb.asarray(PLAIN) + 1
    assert log[0].why == "np.errstate asks for more than warnings"


def test_a_block_sees_its_own_thread_and_ends():
    x = nb.asarray(PLAIN)
    with nb.watch() as outer:
        thread = threading.Thread(target=lambda: x + x)
        thread.start()
        thread.join()
        x + x
        with nb.watch() as inner:
            x - x
    x * x
    assert [call.name for call in outer] == ["add"]
    assert [call.name for call in inner] == ["subtract"]
    with pytest.raises(ZeroDivisionError), nb.watch():
        raise ZeroDivisionError
    with nb.watch() as log:
        pass
    x + x
    assert log == []
