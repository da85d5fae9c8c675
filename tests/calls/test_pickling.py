"""Public callables in pickles and in other processes, before and after their first call."""

import importlib
import math
import multiprocessing
import os
import pickle
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import nbkernels as nb

ROOT = Path(__file__).parents[2]
X = np.array([0.5, 2.0])


@nb.elementwise(dtypes=np.float64, gradient=lambda grad, x: grad * 2)
def decorated(x):
    return x * 2


@nb.elementwise
def several(x, y):
    return x + y, x * y


@nb.epilogue
def capped(v, limit):
    return min(v, limit)


def plain(x):
    return math.exp(x) + OFFSET


OFFSET = 1
of_plain, of_lambda = nb.elementwise(plain), nb.elementwise(lambda x: x * 3)
fused, fused_lambda = nb.fuse(plain), nb.fuse(lambda a, b: a * b + 1)


def closed(factor):
    @nb.elementwise(gradient=lambda grad, x: grad * factor)
    def scaled(x):
        return x * factor

    return scaled


def calls():
    """name -> (operation, arguments)"""
    found = {
        "decorated": (decorated, (X,)),
        "several": (several, (X, X)),
        "of a function": (of_plain, (X,)),
        "of a lambda": (of_lambda, (X,)),
        "fused": (fused, (X,)),
        "fused lambda": (fused_lambda, (X, X)),
        "closed": (closed(3.0), (X,)),
        "epilogue": (capped, (np.zeros(2), np.eye(2), np.eye(2), 0.5)),
        "epilogue of a lambda": (nb.epilogue(lambda v: v + 1), (np.zeros(2), np.eye(2), np.eye(2))),
    }
    for method, args in dict(reduce=(X,), accumulate=(X,), outer=(X, X), at=(X.copy(), [0], 1.0)).items():
        found[f"add.{method}"] = getattr(nb.add, method), args
    return found


def same(found, expected):
    for one, other in zip(*(x if isinstance(x, tuple) else (x,) for x in (found, expected)), strict=True):
        np.testing.assert_array_equal(one, other)


def run(task):
    """In another process."""
    operation, args = task
    return operation(*args)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_before_and_after_the_first_call(protocol):
    for name, (operation, args) in calls().items():
        for _ in range(2):
            again = pickle.loads(pickle.dumps(operation, protocol))
            same(run((again, args)), run((operation, args)))
            assert again.__name__ == operation.__name__, name
        if name in ("decorated", "several", "epilogue") or "add" in name:
            assert again is operation


@pytest.mark.parametrize("room", ["nbkernels", "nbkernels.torch"])
def test_every_public_callable(room):
    if room == "nbkernels.torch" and not find_spec("torch"):
        pytest.skip("needs torch")
    room, seen = importlib.import_module(room), 0
    for name in room.__all__ if hasattr(room, "__all__") else room.FUNCTIONS:
        if name == "torch" and not find_spec("torch"):
            continue
        function = getattr(room, name)
        if callable(function) and not hasattr(function, "__self__"):  # define and its like change a process's table
            methods = [getattr(function, m) for m in ("reduce", "accumulate", "outer", "at") if hasattr(function, m)]
            for each in (function, *methods):
                assert pickle.loads(pickle.dumps(each)) is each
                seen += 1
    assert seen > 150


def test_what_it_is_made_of_goes_with_it():
    for operation in (decorated, closed(3.0)):
        again = pickle.loads(pickle.dumps(operation))
        result, pull = nb.vjp(again, X)
        assert result.dtype == np.float64
        same(pull(np.ones(2))[0], nb.vjp(operation, X)[1](np.ones(2))[0])
    several_dtypes = nb.elementwise(lambda x: (x, x), dtypes=("f4", "f8"))
    assert [x.dtype for x in pickle.loads(pickle.dumps(several_dtypes))(X)] == ["f4", "f8"]


def spawned(tasks):
    """By an executor: a Pool waits for ever for a process that ends while it reads a task."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return list(pool.map(run, tasks))


def by_joblib(tasks):
    joblib = pytest.importorskip("joblib")
    return joblib.Parallel(n_jobs=2)(joblib.delayed(operation)(*args) for operation, args in tasks)


def by_dask(tasks):
    dask = pytest.importorskip("dask")
    lazy = [dask.delayed(operation)(*args) for operation, args in tasks]
    return dask.compute(*lazy, scheduler="processes", num_workers=1)


@pytest.mark.parametrize("of_all", [spawned, by_joblib, by_dask])
def test_in_other_processes(of_all):
    found, expected = of_all([*calls().values()]), map(run, calls().values())
    for one, other in zip(found, expected, strict=True):
        if other is not None:  # at writes what the other process has
            same(one, other)


MAIN = """\
import multiprocessing, pickle, sys
import numpy as np, nbkernels as nb

SCALE = 3

@nb.elementwise
def scaled(x):
    return x * SCALE

if __name__ == "__main__":
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        print(pool.apply(scaled, (np.arange(3),)).tolist())
    with open(sys.argv[1], "wb") as file:
        pickle.dump(scaled, file)
"""
OTHER = "import pickle, sys; print(pickle.load(open(sys.argv[1], 'rb'))(4))"


def test_of_a_main_program(tmp_path):
    """Whose names another program does not have."""
    (tmp_path / "main.py").write_text(MAIN, encoding="utf-8")
    told, environment = [], os.environ | {"PYTHONPATH": str(ROOT)}
    for program in (["main.py"], ["-c", OTHER]):
        command = [sys.executable, *program, str(tmp_path / "pickle")]
        run = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        assert run.returncode == 0, run.stderr
        told.append(run.stdout.strip())
    assert told == ["[0, 3, 6]", "12"]
