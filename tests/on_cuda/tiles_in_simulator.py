"""Which tiles CUDA kernels may have, choose and are given, in Numba's simulator.

Needs NUMBA_ENABLE_CUDASIM=1; test_simulator.py runs it.
"""

import numpy as np
import pytest

import nbkernels
from nbkernels.cuda import gemm, tiles
from nbkernels.cuda.tiles import Tiles
from nbkernels.problem import GemmProblem
from tests.compare import same_bits
from tests.on_cuda.simulated import TILES, device, numbers, product, run

pytestmark = pytest.mark.usefixtures("at_first")  # the CPU's


@pytest.mark.parametrize("dtype", TILES)
def test_tile_rules(dtype):
    for tile in (*TILES[dtype], *tiles.candidates(dtype)):
        assert tiles.illegal(tile, dtype) == []
    assert len(tiles.candidates(dtype)) > 20


@pytest.mark.parametrize(
    ("tile", "reason"),
    [
        (Tiles(0, 32, 4, 4, 4), "positive"),
        (Tiles(30, 32, 4, 4, 4), "not made of threads'"),
        (Tiles(24, 32, 4, 6, 4), "multiple of the 4"),
        (Tiles(8, 32, 4, 4, 4), "lanes"),
        (Tiles(256, 256, 8, 4, 4), "more than 1024"),
        (Tiles(128, 32, 8, 8, 8), "whole slices"),
        (Tiles(32, 32, 3, 4, 4), "odd"),
        (Tiles(128, 128, 64, 8, 8), "shared memory"),
        (Tiles(128, 128, 8, 16, 16), "registers"),
    ],
)
def test_every_reason_against_tiles(tile, reason):
    reasons = tiles.illegal(tile, "float32")
    assert any(reason in line for line in reasons), reasons
    with pytest.raises(ValueError, match=r"tiles=\("):
        run(None, np.zeros((1, 1), "f4"), np.zeros((1, 1), "f4"), 0, tile=tile)


def test_default_tiles_follow_the_problem():
    problem = tiles.GemmProblem(8192, 8192, 8192, "float32")
    assert tiles.default(problem, 132).bm * tiles.default(problem, 132).bn >= 128 * 128
    small = tiles.default(tiles.GemmProblem(100, 100, 100, "float32"), 132)
    assert small.bm * small.bn <= 64 * 64


def test_the_segment_is_the_cpus():
    from nbkernels.cpu.gemm import blocking as cpu

    assert tiles.SEGMENT == cpu.SEGMENT


def test_tiles_of_a_call(rng):
    """Every product that is cut takes them and keeps its bits; wrong ones are an error that names it."""
    own, a, b, x = Tiles(16, 32, 4, 4, 4), numbers(rng, 6, 9), numbers(rng, 9, 7), numbers(rng, 7)
    calls = {
        "addmm": (x, a, b),
        "mm": (a, b),
        "baddbmm": (x, a[None], b[None]),
        "addbmm": (x, a[None], b[None]),
        "matmul": (a[None], b),
        "linear": (a, b.T, x),
        "addmm_activation": (x, a, b),
    }
    for name, hosted in calls.items():
        function, args = getattr(nbkernels, name), [device(v) for v in hosted]
        expected = product(x, a, b, name not in ("mm", "matmul"), 1)
        expected = np.maximum(expected, 0) if name == "addmm_activation" else expected
        expected = expected[None] if name in ("baddbmm", "matmul") else expected
        for sizes in (own, list(own)):
            same_bits(function(*args, tiles=sizes).copy_to_host(), expected)
        out = device(np.full_like(expected, np.nan))
        for wrong, why in (((1, 2), "five sizes"), ((*list(own)[:4], 3), "not made of threads'")):
            with pytest.raises(ValueError, match=rf"^{name}: tiles=\(.*{why}"):
                function(*args, tiles=wrong, out=out)
        assert np.isnan(out.copy_to_host()).all()
    assert nbkernels.explain(nbkernels.mm, device(a), device(b), tiles=own).tile == str(own)


def test_explain_tells_the_kernels_choices(rng):
    a, b, x = (device(numbers(rng, *shape)) for shape in ((20, 8), (8, 40), (40,)))
    whole = nbkernels.explain(nbkernels.linear, a, device(numbers(rng, 40, 8)), x)
    (part,) = whole.parts
    for found in (nbkernels.explain(nbkernels.addmm, x, a, b), part):
        assert (found.op, found.device, found.path) == ("addmm", "CUDA:0", "simt")
        assert found.kernel == "nbkernels.cuda.gemm:addmm"
        assert found.row.startswith("CUDA: direct, registered at nbkernels/ops.py:")
        assert found.tile == str(tiles.default(GemmProblem(20, 40, 8, "float32"), 1))
        assert (found.bytes, found.flops) == (4 * (20 * 40 + 20 * 8 + 8 * 40 + 40), 2 * 20 * 8 * 40)
    added = nbkernels.explain(nbkernels.add, a, 2)
    assert (added.path, added.bytes, added.flops) == ("loop", 2 * 4 * 160, 160)
    assert nbkernels.explain(nbkernels.add, device(np.ones((0, 3))), 1).path == "nothing: an empty result"


def test_the_tuner_here(table, monkeypatch):
    """Its candidates are right, bit by bit; what its clock finds faster is kept, used by that layout, and told."""
    from nbkernels.cuda import tuned
    from nbkernels.tuning import ask, cuda
    from nbkernels.tuning.run import tune

    fast, slow, seconds = Tiles(16, 32, 4, 4, 4), Tiles(32, 32, 4, 4, 4), []
    side = cuda.Cuda("float32", lambda call, repeats: call() or seconds[-1])
    sample, prepare, shape = side.sample, side.prepare, (9, 9, 9)

    def timed(candidate, lane):
        seconds.append(0.8 if candidate == fast else 1.0)
        return sample(candidate, lane)

    monkeypatch.setattr(ask, "SIZES", {"square": [shape]})
    monkeypatch.setattr("nbkernels.tuning.run.ROUNDS", 3)
    monkeypatch.setattr("nbkernels.tuning.race.LAPS", 1)
    monkeypatch.setattr(tiles, "default", lambda *_: Tiles(16, 64, 4, 4, 4))
    side.sample, side.candidates, side.neighbours = timed, lambda shapes: [fast, slow], lambda *_: []
    side.prepare = lambda lane: prepare((*shape, *lane[3:]))  # for what is compiled beforehand, too
    found = tune(shape, side=side, layout="NT", budget=120)
    assert [final.tiles for final in found.kept] == [vars(fast)], str(found)
    assert found.failed == {}
    assert list(table.entries()) == [f"gemm float32 square NT on {tuned.place()}"]
    a, b = (device(np.ones(shape[:2], "f4", order=order)) for order in "CF")
    out, kind = device(np.zeros(shape[:2], "f4")), gemm.kind_of(*["float32"] * 3)
    assert (gemm.winner(out, a, b, kind), gemm.winner(out, a, a, kind)) == (fast, None)
    assert nbkernels.explain(nbkernels.mm, a, b, out=out).tile == f"{fast}, tuned"
    assert "tuned" not in nbkernels.explain(nbkernels.mm, a, a, out=out).tile
    gemm.mm(out, a, b)
    np.testing.assert_array_equal(out.copy_to_host(), np.full(shape[:2], 9, "f4"))
