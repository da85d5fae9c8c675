"""explain(): it tells what the call then does, and does nothing itself."""

import ctypes
import os
import subprocess
import sys
from array import array
from importlib.util import find_spec
from itertools import islice
from types import SimpleNamespace

import numba
import numpy as np
import pytest

import nbkernels as nb
from nbkernels.commands import docs
from nbkernels.cpu.elementwise import gates
from nbkernels.cpu.gemm import batch, gemm, kernels, paths, stacks_float
from nbkernels.cpu.gemm.blocking import small
from nbkernels.cpu.gemm.paths import only
from nbkernels.cpu.runtime import threads, workspace
from nbkernels.cpu.runtime.status import DONE, GEMV, PACKED, PATHS, SMALL
from nbkernels.dispatch import OutError
from nbkernels.ops import LIBRARY
from tests.cases import EVERY
from tests.paths import way


def draw(*shape, dtype="float32"):
    return np.random.default_rng(0).normal(size=shape).astype(dtype)


def general(function, *args, **keywords):
    """The call by the general path, as a table without a fast path takes it."""
    kernel = function.op.table.row("CPU").row.kernel
    with nb.register(function, "CPU", kernel, override=True):
        return function(*args, **keywords)


@pytest.fixture
def ran(monkeypatch):
    """Names of the paths that products go to instead of being computed; the small one's are, and have none."""
    threads.open_up()
    names, kept, handed = [], [], ctypes.CFUNCTYPE(*[ctypes.c_int64] * 3, ctypes.c_double, ctypes.c_double)

    def done(name, answer=DONE):
        def run(*_, **__):
            names.append(name)
            return answer

        return run

    entries = [handed(done(PATHS[path])) for path in range(GEMV, PACKED + 1)]
    for dtype in ("float32", "float64"):
        ways = gemm.small_table(dtype).ways
        kept.append((ways, ways.tolist()))
        for at, entry in enumerate(entries):
            ways[2 * at] = ctypes.cast(entry, ctypes.c_void_p).value
    doors = {path: SimpleNamespace(product=done(PATHS[path])) for path in gemm.DOORS}
    monkeypatch.setattr(gemm, "DOORS", {path: lambda dtype, door=door: door for path, door in doors.items()})
    monkeypatch.setattr(gemm, "packed", done("packed"))
    monkeypatch.setattr(gemm, "gemv", done("gemv"))
    yield names
    for ways, before in kept:
        ways[:] = array("q", before)


def test_the_facts_of_a_product():
    found, none = nb.explain(nb.mm, draw(5, 6), draw(6, 7)), nb.explain(nb.mm, draw(5, 0), draw(0, 7))
    assert (found.flops, found.layout, found.kernel, found.copies) == (420, "NN", "nbkernels.cpu.gemm.gemm:mm", ())
    assert (none.flops, none.path) == (0, "beta * self alone")


def test_the_code_of_a_call_is_the_code_that_runs():
    """Each function that `explain` says is there was made or loaded by the call, under that name."""
    a, i, v = draw(30, 40), np.arange(60).reshape(6, 10), draw(4000)
    wide, stack = draw(4, 400), draw(3, 4, 4)
    calls = [
        (nb.mm, a, a.T), (nb.mm, wide, draw(400, 3000)), (nb.mm, i, i.T), (nb.mm, a[:1], a.T), (nb.bmm, stack, stack),
        (nb.mv, a, v[:40]), (nb.dot, v, v), (nb.add, a, 1), (nb.less, i, 2.5), (nb.subtract, 2.5, i),
        (nb.add.reduce, a), (nb.sum_to, a, (1, 40)), (nb.maximum.reduce, i),
    ]  # fmt: skip
    for function, *args in calls:
        function(*args)
        name, where = nb.explain(function, *args).code.split(": ")
        there = {each.name.rpartition(".")[2]: each.where for each in nb.specializations()}
        assert where.split(",")[0] in (*there.values(), "in the cache"), (function, name)
        assert name in there or where == "in the cache", (function, name)
    assert nb.explain(nb.add, a[:0], 1).code is None


def matrix(rng, rows, columns, dtype):
    """A view of zeros, in any layout; they all share them."""
    strides = (columns, 1), (1, rows), (columns + 3, 1), (2 * columns, 2)
    steps = strides[rng.choice(4, p=[0.4, 0.35, 0.15, 0.1])]
    zeros = ZEROS.view(dtype)
    return np.lib.stride_tricks.as_strided(zeros, (rows, columns), [step * zeros.itemsize for step in steps])


ZEROS = np.zeros(9 << 20)


@pytest.mark.sampled
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("workers", [1, 2])
def test_products_take_the_path_that_explain_names(ran, rng, dtype, workers):
    """Random shapes and layouts, by the fast and the general path; all but small ones are only handed on."""
    before, zeros, odd, cases = numba.get_num_threads(), np.zeros(1 << 20, dtype), 0, 2500 if EVERY else 1000
    numba.set_num_threads(min(workers, before))
    try:
        for case in range(cases):
            m, n, k = (int(2 ** rng.uniform(0, 11)) for _ in range(3))
            a, b = matrix(rng, m, k, dtype), matrix(rng, k, n, dtype)
            out = matrix(np.random.default_rng(case), m, n, dtype).copy("K") if case % 2 else np.empty((m, n), dtype)
            x = [None, zeros[:n], zeros[:1], out][case % 4]
            function, args = (nb.mm, (a, b)) if x is None else (nb.addmm, (x, a, b))
            found = nb.explain(function, *args, out=out)
            assert found.path in [PATHS[way] for way in paths.legal(out, x, a, b)]
            del ran[:]
            function(*args, out=out) if case % 5 else general(function, *args, out=out)
            assert found.path == (ran[0] if ran else "small"), (m, n, k, a.strides, b.strides, out.strides)
            assert len(ran) <= 1
            odd += bool(ran)
    finally:
        numba.set_num_threads(before)
    assert odd > cases / 5


@pytest.mark.release
def test_the_path_does_not_depend_on_what_the_stack_held(tmp_path):
    own = os.environ | {"NBKERNELS_CACHE_DIR": str(tmp_path), "TESTS_POISON": "2"}
    own.pop("NBKERNELS_SKIPPED", None)
    which = f"{__file__}::{test_products_take_the_path_that_explain_names.__name__}[1-float32]"
    run = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "tests.poison", "-p", "no:cacheprovider", which]
    found = subprocess.run(run, env=own, capture_output=True, text=True, timeout=300)
    assert found.returncode == 0, found.stdout
    assert "1 passed" in found.stdout


@pytest.mark.parametrize(
    ("count", "m", "n", "k"), [(9, 4, 5, 6), (9, 40, 5, 6), (3, 70, 60, 50), (2, 150, 140, 130), (3, 1, 90, 80)]
)
def test_the_path_of_a_batch_is_the_one_it_takes(monkeypatch, count, m, n, k):
    names = []
    for place, (word, real) in stacks_float.WAYS.items():
        counted = word, lambda tile, real=real, word=word: names.append(word) or real(tile)
        monkeypatch.setitem(stacks_float.WAYS, place, counted)
    a, b = draw(count, m, k), draw(count, k, n)
    for out in (draw(count, m, n), draw(count, n, m).swapaxes(1, 2), draw(count, m, 2 * n)[:, :, ::2]):
        del names[:]
        found = nb.explain(nb.bmm, a, b, out=out)
        assert not names
        kernels.ready(small("float32"))[kernels.MULTIPLIER + 1 :] = 0  # those of stacks are asked for once
        nb.bmm(a, b, out=out)
        assert found.path == (f"stack of {names[0]}" if names else way(m, n, k, threads.count()))
        assert found.flops == 2 * count * m * n * k


def test_temporaries_are_those_that_the_kernel_makes(monkeypatch):
    made, real = [], gemm.fresh
    x, v = draw(8, 8), draw(8)
    calls = [(x, x.T, None), (x, x, x), (x, x, x[::-1]), (x, draw(8, 8), None), (draw(8, 8), draw(8, 8), v)]
    for a, b, out in calls:
        out = out if out is not None and out.ndim == 2 else np.full((8, 8), np.nan, "f4")
        found = nb.explain(nb.mm, a.copy() if out.base is None and out is not x else a, b, out=out)
        monkeypatch.setattr(gemm, "fresh", lambda *args: made.append(args) or real(*args))
        general(nb.mm, a.copy() if out.base is None and out is not x else a, b, out=out)
        monkeypatch.undo()
        assert len(found.temporaries) == len(made)
        assert all("256 bytes: out overlaps" in text for text in found.temporaries)
        made.clear()


@only(PACKED)
def test_panels_are_as_large_as_it_says():
    a, b, f = np.ones((500, 900), "f4"), np.ones((900, 500), "f4"), np.asfortranarray
    out, far = np.ones((500, 500), "f4"), (np.repeat(a, 2, 1)[:, ::2], np.repeat(b, 2, 0)[::2])
    wide = np.ones((500, 300), "f4", order="F")  # its columns are contiguous: C' = B' A'
    for mat1, mat2, to in ((a, b, out), (f(a), b, out), (a, f(b), f(out)), (a, b[:, :300], wide), (*far, out)):
        (text,) = nb.explain(nb.mm, mat1, mat2, out=to).temporaries
        assert text.startswith("panels of mat1 and mat2, ")
        nb.mm(mat1, mat2, out=to)  # compile
        workspace.forget()
        nb.mm(mat1, mat2, out=to)
        assert text.endswith(f", {workspace._rooms[0][0]} bytes")
    (text,) = nb.explain(nb.mm, a.astype("f2"), b.astype("f2")).temporaries
    assert text.startswith("panels of mat1 and mat2, ")


def test_copies_are_named():
    record = np.zeros((4, 4), dtype=[("pad", "i1"), ("x", "f4")])["x"]
    found = nb.explain(nb.mm, record, draw(4, 4))
    assert found.copies == ("mat1",)


def test_loops_say_their_plan():
    x = draw(6, 4)
    found = nb.explain(nb.add, x, x[0])
    assert (found.op, found.path, found.flops, found.bytes) == ("add", "loops", 24, 2 * 96 + 16)
    assert found.layout.startswith("contiguous 6 x 4: out (16, 4)")
    square = draw(64, 64)
    assert nb.explain(nb.add, square, square.T).layout.startswith("transposed")
    assert nb.explain(nb.add, draw(2, 3), draw(2, 3)).threads == 1
    large = np.broadcast_to(np.float32(1), (gates.PARALLEL,))
    assert nb.explain(nb.add, large, 1).bytes == 4 * gates.PARALLEL + 4
    assert nb.explain(nb.add_, x, x[::-1]).temporaries == (
        "(6, 4) float32, 96 bytes: a copy of an input that out overlaps",
    )


def test_the_row_that_chose_it():
    a = draw(4, 4)
    before = nb.explain(nb.mm, a, a)
    assert before.row.startswith("CPU: direct, registered at nbkernels/ops.py:")
    assert before.fast == "nbkernels.cpu.gemm.fast:mm_fast"
    with nb.register("mm", "CPU", lambda out, self, mat2, mode, conj, tiles: out.fill(0), override=True):
        found = nb.explain(nb.mm, a, a)
        assert "calls/test_explain.py" in found.row
        assert (found.fast, found.path, found.flops) == (None, None, None)
        assert found.bytes == 3 * a.nbytes
    assert nb.explain(nb.add, np.ones(3), np.float64(2)).fast is None
    assert nb.explain(nb.mm, nb.meta((4, 4), "f4"), nb.meta((4, 4), "f4")).row.startswith("Meta: structured")


def test_composites_tell_their_parts(monkeypatch):
    x, w, b = draw(2, 3, 4, 5).transpose(1, 0, 2, 3), draw(6, 5), draw(6)
    found = nb.explain(nb.linear, x, w, b)
    assert [part.op for part in found.parts] == ["baddbmm"] * 3
    assert found.flops == sum(part.flops for part in found.parts) == 2 * 2 * 3 * 4 * 5 * 6
    called, real = [], batch.baddbmm
    with nb.register("baddbmm", "CPU", lambda *args: called.append(1) or real(*args), override=True):
        general(nb.linear, x, w, b)
    assert len(called) == 3
    mine = nb.explain(lambda x, y: nb.add(nb.mm(x, y), 1), draw(3, 4), draw(4, 5))
    assert [part.op for part in mine.parts] == ["mm", "add"]


def test_nothing_runs():
    out = np.full((4, 4), np.nan, "f4")

    def fails(*args):
        raise AssertionError("it ran")

    with nb.register("mm", "CPU", fails, override=True):
        nb.explain(nb.mm, draw(4, 4), draw(4, 4), out=out)
        nb.explain(nb.linear, draw(2, 4), draw(4, 4))
    assert np.isnan(out).all()


def test_errors_are_those_of_the_call():
    with pytest.raises(TypeError, match=r"^explain: a function is needed, not an int"):
        nb.explain(3)
    with pytest.raises(ValueError, match="mm: self and mat2 cannot be multiplied, 2x3 and 4x5"):
        nb.explain(nb.mm, draw(2, 3), draw(4, 5))
    with pytest.raises(OutError, match="never resized"):
        nb.explain(nb.mm, draw(2, 3), draw(3, 5), out=draw(2, 2))


def test_it_prints():
    text = str(nb.explain(nb.addmm, draw(4), draw(4, 4), draw(4, 4), beta=0.5))
    lines = text.splitlines()
    assert lines[0] == "addmm"
    assert [line.split()[0] for line in lines[1:]] == (
        "device kernel row fast result path tile code layout threads copies temporaries bytes flops".split()
    )
    assert "  flops       128" in lines


@pytest.mark.parametrize("op", list(LIBRARY), ids=lambda op: op.schema.full_name)
def test_every_op_is_explained(op):
    for args in islice(
        docs.examples(op, lambda shape: np.ones(shape, "int64" if "bit" in op.schema.name else "f8")), 2
    ):
        keywords = {a.name: x for a, x in zip(op.arguments, args) if a.keyword_only}
        found = nb.explain(op.function, *[x for a, x in zip(op.arguments, args) if not a.keyword_only], **keywords)
        expected = np.asarray(op.call(args))
        assert found.result == f"{expected.shape} {expected.dtype}"
        assert found.op == op.named(args, False)
        assert found.device == "CPU"
        assert found.bytes > 0


def test_mv_says_which_order_it_has():
    a, v = np.ones((70, 50), "f4"), np.ones(50, "f4")
    assert nb.explain(nb.mv, a, v).path == "8 chains, by rows"
    assert nb.explain(nb.mv, np.asfortranarray(a), v).path == "8 chains, by columns"
    assert nb.explain(nb.addmv, v[:1], a[:, ::2], v[::2]).path == "8 chains, by rows, copied one at a time"
    assert nb.explain(nb.mv, a.astype("f2"), v.astype("f2")).path == "mm with the vector as a column"
    assert nb.explain(nb.matmul, v[:0], a[:0]).parts[0].path == "mm with the vector as a column"
    assert nb.explain(nb.mv, a[:50], a[0], out=a[0]).temporaries == ("(50,) float32, 200 bytes: out overlaps mat, vec",)


def test_dot_says_which_order_it_has():
    x = np.ones(100, "f2")
    assert nb.explain(nb.dot, x, x).path == "64 chains"
    assert nb.explain(nb.dot, x, x, out_dtype="float32").path == "mm of a row and a column"
    assert nb.explain(nb.dot, x.astype(int), x.astype(int)).path == "64 chains"


def test_torch_tensors_too():
    if find_spec("torch") is None:
        pytest.skip("needs torch")
    import torch

    with only(SMALL):
        found = nb.explain(nb.mm, torch.ones(64, 64), torch.ones(64, 64).T)
    assert (found.path, found.layout, found.fast, found.device) == ("small", "NT", None, "CPU")


def test_notebooks_show_tables():
    """One for each part; what arrays are called is no markup."""
    found = nb.explain(nb.add, np.ones(3), 2.0)
    html = found._repr_html_()
    assert html.count("<table>") == 1
    assert all(f"<td>{name} " in html or f"<td>{name}<" in html for name, _ in found._facts())
    parts = nb.explain(nb.addmm_activation, np.ones(3), np.ones((2, 3)), np.ones((3, 3)))
    assert parts._repr_html_().count("<table>") == 1 + len(parts.parts)
    assert "<x>" not in found._replace(op="<x>")._repr_html_()
