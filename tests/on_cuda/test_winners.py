"""The tuner's winners on CUDA: configs of every tier, found by a clock of the test's own on interpreted kernels, kept,
taken by the products that they are for and by no others.
"""

import dataclasses
import functools
import json
import sys

import ml_dtypes
import numpy as np
import pytest

import nbkernels
from nbkernels import cli, winners
from nbkernels.dispatch import driver
from nbkernels.problem import CLASSES, LAYOUTS
from nbkernels.tuning import ask, configs, cuda, keep, race, run

try:
    from nbkernels.commands import cubins as building
    from nbkernels.cuda import explain, gemm, rehearsal, tuned
    from nbkernels.cuda.kinds import kind_of
    from nbkernels.cuda.product import choose, tensor
    from nbkernels.cuda.product import gemm as products
    from nbkernels.cuda.product.config import GemmConfig
    from tests.on_cuda import wheels
    from tests.ptx.device import Device

    wheels.work()
except (ImportError, RuntimeError) as error:
    pytest.skip(f"lacks the CUDA wheels: {str(error).splitlines()[0]}", allow_module_level=True)

HOPPER, AMPERE = (9, 0), (8, 0)


@pytest.fixture(autouse=True)
def modes_of_gpus(monkeypatch):
    """Chains, which conftest.py asks for, are the CPU's."""
    monkeypatch.setattr(sys.modules["nbkernels.modes"], "OF_GPUS", ("tf32",))


# -- the tuner, end to end ---------------------------------------------------------------------------------------------

S, M, W = functools.partial(GemmConfig, "S"), functools.partial(GemmConfig, "M"), functools.partial(GemmConfig, "W")
# (dtype, mode), device, layout, shape, candidates of every tier that the card has for it; the first one is the fastest.
TUNES = [
    ("float32", None, HOPPER, "NT", (37, 35, 41), [S(32, 16, 32, 3, 4), S(8, 16, 16, 3, 1)]),
    ("float64", None, HOPPER, "NN", (33, 32, 24), [GemmConfig("D", 32, 32, 16, 3, 2), S(8, 16, 16, 3, 2)]),
    ("float64", None, AMPERE, "TN", (33, 32, 24), [GemmConfig("D8", 32, 32, 16, 3, 2), S(8, 16, 8, 3, 1)]),
    ("complex64", None, AMPERE, "NN", (33, 18, 21), [S(8, 16, 16, 3, 2), S(8, 16, 8, 3, 1)]),
    ("bfloat16", None, HOPPER, "NT", (72, 64, 72), [M(32, 32, 32, 3, 2), W(64, 64, 64, 3, 4), W(64, 128, 64, 2, 4)]),
    ("float16", "chain", AMPERE, "NN", (33, 34, 40), [S(32, 16, 32, 3, 4), S(8, 16, 16, 3, 1)]),
    ("float32", "tf32", HOPPER, "NT", (72, 64, 68), [W(64, 64, 32, 3, 4), W(64, 32, 32, 4, 4)]),
    ("float32", "tf32", AMPERE, "TN", (40, 36, 44), [M(32, 32, 16, 3, 2), M(32, 32, 32, 3, 4)]),
    ("int8", None, HOPPER, "NT", (72, 64, 144), [W(64, 64, 128, 3, 4), M(32, 32, 64, 3, 4)]),
    ("int8", None, AMPERE, "NN", (40, 36, 80), [M(32, 32, 64, 3, 2), M(64, 32, 64, 3, 4)]),
    ("int64", None, AMPERE, "NN", (33, 18, 21), [S(8, 16, 16, 3, 2)]),
]  # fmt: skip


def installed(monkeypatch, cc, shape):
    """The device, and a tuner of one shape without laps that time takes."""
    gpu = Device(cc).installed(monkeypatch)
    monkeypatch.setattr(cuda, "missing", lambda: None)
    monkeypatch.setattr(cuda, "placed", lambda x: gpu.array(x.copy("A")))
    monkeypatch.setattr(ask, "SIZES", {name: [shape] for name in CLASSES})
    monkeypatch.setattr(run, "ROUNDS", 1)
    monkeypatch.setattr(race, "LAPS", 1)
    monkeypatch.setattr(race, "NEAR", 1)
    monkeypatch.setattr(building, "apart", lambda *_: [])
    return gpu


@pytest.mark.sampled
@pytest.mark.parametrize(("dtype", "mode", "cc", "layout", "shape", "candidates"), TUNES, ids=str)
def test_the_tuner_finds_configs_of_every_tier(monkeypatch, table, dtype, mode, cc, layout, shape, candidates):
    """Each has the default's bits, in the interpreter; the one that the clock finds fastest is kept, taken and told."""
    gpu = installed(monkeypatch, cc, shape)
    side = cuda.side(dtype, mode)
    assert isinstance(side, configs.Configs)
    assert [side.illegal(each) for each in candidates] == [[]] * len(candidates)
    made, sample = [], side.sample

    def timed(candidate, lane):
        made.append(candidate)
        return sample(candidate, lane)

    # No call is made again for its time.
    side.clock = lambda call, repeats: 0.5 if made[-1] == candidates[0] else 1.0
    side.sample, side.candidates, side.neighbours = timed, lambda shapes: candidates, lambda *_: []
    found = run.tune(shape, side=side, layout=layout, budget=600)
    assert found.failed == {}
    assert [final.tiles for final in found.kept] == [vars(candidates[0])], str(found)
    assert str(found).count("winner") == 1
    (key,) = table.entries()
    assert key == f"gemm {side.dtype} square {layout} on {tuned.place()}"
    assert side.dtype == (f"{dtype} {mode}" if mode else dtype)

    a, b, out = side.matrices(*shape, layout)
    before, arrays = out.copy(), [gpu.array(x) for x in (out, a, b)]
    configs.multiply(arrays[1], arrays[2], gpu.array(before), side.kind, side.mode, None)
    assert gpu.launches[-1][0].arguments[0].config != candidates[0]  # the default's own, though there is a winner
    gpu.launches.clear()
    gemm.mm(*arrays, mode)
    assert out.tobytes() == before.tobytes()
    assert gpu.launches[-1][0].arguments[0].config == candidates[0]
    facts = explain.facts("mm", False, arrays[0], (*arrays[1:], mode, None, None))
    assert facts["tile"] == f"{candidates[0]}, tuned"
    assert facts["path"] == f"tier {candidates[0].tier}"


def test_a_config_of_other_bits_or_none_at_all_is_told(monkeypatch, table):
    """It is no winner, however fast: one that computes something else, nothing, or reads no such operands."""
    shape, fine, wrong, idle = (24, 20, 30), S(32, 16, 32, 3, 4), S(8, 16, 16, 3, 1), S(8, 16, 32, 3, 2)
    installed(monkeypatch, HOPPER, shape)
    side, real = cuda.side("float32"), configs.multiply

    def multiply(a, b, out, kind, mode, config):
        if config != idle:
            real(a, b, out, kind, mode, None if config == wrong else config)
        if config == wrong:
            np.asarray(out.owner).view("i4")[-1, -1] ^= 1

    monkeypatch.setattr(configs, "multiply", multiply)
    made, sample = [], side.sample
    side.clock = lambda call, repeats: 0.5 if made[-1] == fine else 1.0
    side.sample = lambda candidate, lane: made.append(candidate) or sample(candidate, lane)
    side.candidates, side.neighbours = lambda shapes: [wrong, idle, fine], lambda *_: []
    found = run.tune(shape, side=side, layout="NN", budget=600)
    assert [final.tiles for final in found.kept] == [vars(fine)]
    assert [*found.failed] == [str(wrong), str(idle)] or [*found.failed] == [str(idle), str(wrong)]
    assert all("other bits than the default" in why for why in found.failed.values())


def test_a_config_that_reads_no_such_operands_is_told():
    with rehearsal.card(HOPPER):
        calls = configs.rehearsed("bfloat16", "bfloat16", None, [(OWN["W"], (40, 33, 31, "NN", 1))])
        _, failed = rehearsal.kernels(calls, HOPPER)
    assert [str(error) for error in failed.values()] == [f"{OWN['W']} cannot multiply these operands"]


# -- what is tried -----------------------------------------------------------------------------------------------------

KINDS = [("float32", None), ("float32", "tf32"), ("float64", None), ("complex64", None), ("complex128", None),
         ("bfloat16", None), ("float16", "chain"), ("int8", None), ("int32", None), ("int64", None)]  # fmt: skip
TIERS = {
    HOPPER: ["S", "W", "SD", "S", "S", "MW", "S", "MW", "S", "S"],
    AMPERE: ["S", "M", "S D8", "S", "S", "M", "S", "M", "S", "S"],
    (8, 6): ["S", "M", "S", "S", "S", "M", "S", "M", "S", "S"],
}


@pytest.mark.parametrize("cc", TIERS, ids=str)
def test_candidates_are_of_every_tier_and_few(cc):
    """All are legal, those that the library would choose among them; a sweep completes sizes to a config of a tier."""
    with rehearsal.card(cc):
        for (dtype, mode), tiers in zip(KINDS, TIERS[cc]):
            side = configs.Configs(dtype, mode)
            assert side.dtype == side.kind_name() == (f"{dtype} {mode}" if mode else dtype)
            tiers = tiers.split() if " " in tiers else [*tiers]
            for shapes in ask.SIZES.values():
                found = side.candidates(shapes)
                assert sorted({each.tier for each in found}) == sorted(tiers)
                assert len(found) <= configs.MOST * len(tiers) + len(shapes)
                assert [side.illegal(each) for each in found] == [[]] * len(found)
                assert side.default not in found  # the library's choice for each product is another candidate
                assert not any(map(side.illegal, side.neighbours(found[0], shapes)))
            made = [side.complete({"tier": tier}) for tier in tiers]
            assert [each.tier for each in made] == tiers
            assert not any(map(side.illegal, made))
            assert type(made[0]) is GemmConfig
        side = configs.Configs("bfloat16")
        if cc == HOPPER:
            grid, reasons = ask.grid({"bm": [64, 128, 192], "bn": [64, 256]}, side.complete, side.illegal)
            assert len(grid) == 4
            assert sum(reasons.values()) == 2
        with pytest.raises(ask.Impossible, match="'tf32' of float32"):
            configs.Configs("float64", "tf32")
        with pytest.raises(ask.Impossible, match="dtype 'float33'"):
            configs.Configs("float33")


def test_the_splits_of_segments_are_neighbours():
    with rehearsal.card(HOPPER):
        side = configs.Configs("bfloat16")
        first = side.candidates([(64, 64, 9000)])[-1]
        assert replaced(first, split=not first.split) in side.neighbours(first, [(64, 64, 9000)])
        assert all(each.split == first.split for each in side.neighbours(first, [(64, 64, 90)]))


def replaced(config, **sizes):
    return dataclasses.replace(config, **sizes)


def test_kernels_are_compiled_ahead_by_other_processes(monkeypatch, tmp_path):
    """Those that the race is going to launch, of the default and a candidate, by rehearsal; and really, one of them."""
    config, lane = S(32, 16, 32, 3, 4), (40, 36, 30, "NT", 1)
    seen = []
    monkeypatch.setattr(building, "apart", lambda *given: seen.append(given) or [(1, 2), (2, 2)])
    heard = []
    Device().installed(monkeypatch)
    side = configs.Configs("float32")
    side.compile([(side.default, lane), (config, lane)], 1e9, lambda *said: heard.append(said[:3]))
    (calls, archs, seconds), *_ = seen
    assert (archs, heard) == ([(9, 0, "a")], [("compile", 1, 2), ("compile", 2, 2)])
    kernels, failed = rehearsal.kernels(calls(), HOPPER)
    assert failed == {}
    chosen = choose.choose(HOPPER, 132, "float32", *lane[:3])
    assert {kernel.arguments[0].config for kernel in kernels} == {chosen, config}
    monkeypatch.undo()
    monkeypatch.setenv("NBKERNELS_CACHE_DIR", str(tmp_path))
    calls = functools.partial(configs.rehearsed, "float32", "float32", None, [(config, lane)])
    assert list(building.apart(calls, archs, 60)) == [(1, 1)]
    assert len(list(tmp_path.rglob("*.nbc"))) == 1


# -- which products take a winner --------------------------------------------------------------------------------------

OWN = {"S": S(32, 64, 16, 4, 4), "M": M(64, 64, 32, 3, 4), "W": W(64, 64, 64, 3, 4)}


def key(dtype="bfloat16", name="square", layout="NN", place=None):
    return winners.key(dtype, 4 * CLASSES.index(name) + LAYOUTS.index(layout), place or tuned.place())


def kept(table, config, *sizes, **where):
    """A winner that was measured on products of these sizes."""
    sizes = sizes or ((600, 600, 600), (1536, 1536, 1536))
    lanes = [[*size, "NN", 1] for size in sizes]
    entry = {"candidate": config if isinstance(config, dict) else vars(config), "seconds": 1.0, "lanes": lanes}
    assert table.add({key(**where): entry})
    tuned.renew()


def made(stage, m, n, k, layout="NN", dtype="bfloat16", mode=None, items=(), by_columns=False, pitch=0, out=None,
         steps=None):  # fmt: skip
    """The config of a product on a rehearsed card, and whether it is a winner; rows of mat1 lie `pitch` elements
    further apart, and `steps` of k are made, all where that is None."""
    kind = np.dtype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
    target = np.dtype(out or kind)

    def array(dtype, rows, columns, turned, more=0):
        size = dtype.itemsize
        steps = (size, (rows + more) * size) if turned else ((columns + more) * size, size)
        return stage.stand((*items, rows, columns), dtype, (*(rows * columns * size for _ in items), *steps))

    a = array(kind, m, k, layout[0] == "T", pitch)
    c, b = array(target, m, n, by_columns), array(kind, k, n, layout[1] == "T")
    of = kind_of(dtype, dtype, target.name, "", None if mode == "tf32" else mode)
    found = products.planned(c, None, a, b, of, k if steps is None else steps, mode=mode)
    return found.launches[0][0].config, found.tuned


@pytest.mark.parametrize("tier", OWN)
def test_a_winner_is_taken_by_its_slot_and_place(table, tier):
    """Of its dtype, mode, class and layout, on its card; by products as large as those that it was measured on."""
    dtype = "float32" if tier == "S" else "bfloat16"
    own, of = OWN[tier], dict(dtype=dtype)
    with rehearsal.card(HOPPER) as stage:
        default = made(stage, 1000, 1000, 1000, **of)
        assert default[1] is False
        kept(table, own, **of)
        for sizes in ((1000, 1000, 1000), (600, 600, 600), (1536, 1536, 1536), (2000, 720, 904)):
            assert made(stage, *sizes, **of) == (own, True)
        assert made(stage, 1000, 1000, 1000, layout="NT", **of)[1] is False
        assert made(stage, 1000, 1000, 1000, layout="TT", by_columns=True, **of) == (
            (own, True) if tier != "W" else made(stage, 1000, 1000, 1000, layout="TT", by_columns=True, **of)
        )
        outside = (64, 64, 64), (592, 592, 600), (1544, 1544, 1000), (1000, 1000, 1600), (1000, 1000, 592)
        for sizes in (*outside, (3000, 700, 900), (2000, 2000, 300)):
            assert made(stage, *sizes, **of)[1] is False, sizes
        assert made(stage, 1000, 1000, 1000, items=(3,), **of)[1] is False
        assert made(stage, 1000, 1000, 1000, steps=0, **of)[1] is False  # where alpha is 0
        assert made(stage, 1000, 1000, 1000, dtype="float16" if tier != "S" else "int32")[1] is False
        other = "tf32" if tier == "S" else "chain"
        assert made(stage, 1000, 1000, 1000, mode=other, **of)[1] is False
        assert table.remove([key(dtype)])
        kept(table, own, place="another card, 9.0, 132 multiprocessors", **of)
        assert made(stage, 1000, 1000, 1000, **of) == default
    kept(table, own, place="no card, so that no winner is its, 9.0, 132 multiprocessors", **of)
    with rehearsal.card(AMPERE) as stage:
        assert made(stage, 1000, 1000, 1000, **of)[1] is False


def test_of_w_by_columns_the_default_goes_on(table):
    with rehearsal.card(HOPPER) as stage:
        default = made(stage, 1000, 1000, 1000, layout="TT", by_columns=True)
        kept(table, OWN["W"])
        assert made(stage, 1000, 1000, 1000, layout="TT", by_columns=True) == default


def test_operands_are_packed_for_a_winner_or_it_is_left(table):
    """Rows that begin off 16 bytes are copied in large products; where that does not pay, no tensor map is there."""
    with rehearsal.card(HOPPER) as stage:
        kept(table, OWN["W"], (64, 64, 64), (4096, 4096, 4096))
        assert made(stage, 2048, 2048, 2048, pitch=1) == (OWN["W"], True)
        config, own = made(stage, 72, 72, 72, pitch=1)
        assert (config.tier, own) == ("M", False)


def test_segments_are_split_where_there_are_several(table):
    with rehearsal.card(HOPPER) as stage:
        own = replaced(OWN["W"], split=True)
        kept(table, own, (256, 256, 1024), (256, 256, 9000), name="deep")
        assert made(stage, 256, 256, 9000) == (own, True)
        assert made(stage, 256, 256, 2048) == (OWN["W"], True)


def test_bytes_of_any_sign_share_a_winner(table):
    own = W(64, 64, 128, 3, 4)
    with rehearsal.card(HOPPER) as stage:
        kept(table, own, dtype="int8", layout="NT")
        for dtype in ("int8", "uint8"):
            assert made(stage, 1024, 1024, 1024, layout="NT", dtype=dtype, out="int32") == (own, True)


FOREIGN = {
    "tiles of old": dict(bm=128, bn=128, bk=8, tm=8, tn=8),
    "no tier": dict(vars(OWN["W"]), tier="Z"),
    "a tier without tensor cores": vars(OWN["S"]),
    "another tier's": vars(GemmConfig("D", 64, 64, 16, 3, 4)),
    "a tier that is a number": dict(vars(OWN["W"]), tier=3),
    "too many stages": dict(vars(OWN["W"]), stages=40),
    "no stages": dict(vars(OWN["W"]), stages=0),
    "a size of another dtype": dict(vars(OWN["W"]), bk=32),
    "bands of no tiles": dict(vars(OWN["W"]), raster=0),
    "bands without an end": dict(vars(OWN["W"]), raster=1 << 23),
    "a size that is true": dict(vars(OWN["W"]), bm=True),
    "a split that is a number": dict(vars(OWN["W"]), split=1),
    "no number": dict(vars(OWN["W"]), warps="4"),
    "rows of three warpgroups": dict(vars(OWN["W"]), bm=192, warps=12),
    "a field too many": dict(vars(OWN["W"]), cluster=2),
    "a list": [64, 64, 64],
    "null": None,
}  # fmt: skip


@pytest.mark.parametrize("candidate", FOREIGN)
def test_what_cannot_be_used_is_not_there(table, candidate):
    with rehearsal.card(HOPPER) as stage:
        default = made(stage, 1024, 1024, 1024)
        entry = {"candidate": FOREIGN[candidate], "seconds": 1.0, "lanes": [[1024, 1024, 1024, "NN", 1]]}
        table.path.parent.mkdir(exist_ok=True)
        table.path.write_text(json.dumps({key(): entry}))
        tuned.renew()
        assert made(stage, 1024, 1024, 1024) == default


@pytest.mark.parametrize("lanes", [None, [], 3, [[1024]], [["a", "b", "c"]], "lanes", [None], {"1": 2}])
def test_a_winner_of_unknown_products_is_not_there(table, lanes):
    with rehearsal.card(HOPPER) as stage:
        entry = {"candidate": vars(OWN["W"]), "seconds": 1.0, "lanes": lanes}
        assert table.add({key(): entry if lanes is not None else {"candidate": vars(OWN["W"])}})
        tuned.renew()
        assert made(stage, 1024, 1024, 1024)[1] is False


def test_an_older_card_or_a_mode_refuses_tiers():
    halves, words = kind_of(*["bfloat16"] * 3), kind_of(*["float32"] * 3)
    for config, kind, mode, cc, reason in (
        (OWN["W"], halves, None, AMPERE, "compute capability 8.0 has no wgmma"),
        (OWN["S"], halves, None, HOPPER, "bfloat16 is multiplied by tensor cores"),
        (OWN["M"], words, None, HOPPER, "float32 is multiplied without tensor cores"),
        (M(64, 64, 16, 3, 4), words, "tf32", HOPPER, "does not always have the bits"),
        (W(64, 72, 64, 3, 4), halves, None, HOPPER, "is not 64 or 128 x 16"),
        (W(64, 64, 64, 3, 8), halves, None, HOPPER, "8 warps do not make 16 of 64 rows"),
        (W(64, 64, 32, 3, 4), halves, None, HOPPER, "bk=32 is not the 64 of a line"),
        (W(64, 64, 64, 20, 4), halves, None, HOPPER, "stages=20: shared memory has room for 2 to 13"),
        (W(64, 64, 64, 3, 4), kind_of(*["float64"] * 3), "", HOPPER, "tier W: float64 is multiplied without"),
    ):
        (first, *_) = tuned.refused(config, kind, mode, cc)
        assert reason in first
    assert tuned.refused(M(64, 64, 16, 3, 4), words, "tf32", AMPERE) == []
    for dtype in ("bfloat16", "int8", "float32"):
        for config in tensor.configs("W", dtype, HOPPER):
            assert products.Form(config, kind_of(*[dtype] * 3)).shared <= tensor.SHARED
            assert tuned.legal(config, dtype, HOPPER) == []


def test_tiers_in_words():
    names = configs.NAMES
    assert ask.tiles(["tier=M,W", "bm=64:128", "split=0,1"], names) == {
        "tier": ["M", "W"],
        "bm": [64, 128],
        "split": [False, True],
    }
    assert ask.tiles({"tier": "W", "split": True, "stages": 4}, names) == {
        "tier": ["W"],
        "split": [True],
        "stages": [4],
    }
    for wrong in (["tier=X"], ["split=2"], {"split": 1}, {"tier": []}, {"tier": 3}):
        with pytest.raises(ask.Impossible, match=r"tiles (tier|split)=.* are wanted"):
            ask.tiles(wrong, names)
    with pytest.raises(ask.Impossible, match="'tier': there are mr, nr"):
        ask.tiles(["tier=M"], ("mr", "nr"))
    with pytest.raises(ValueError, match="mode 'tf32': of device cuda"):
        nbkernels.tune(mode="tf32")


def test_the_command(monkeypatch, table, tmp_path, capsys):
    """What it would time on a card, its winners in words, and from file to file; on the CPU a mode is refused."""
    gpu = installed(monkeypatch, HOPPER, (64, 64, 64))
    line = ["tune", "--device", "cuda", "--dtype", "bfloat16"]
    assert cli.main([*line, "--dry-run", "--tiles", "tier=W,M", "bm=64,128,192"]) == 0
    out = capsys.readouterr().out
    assert "square: 4 candidates on 64x64x64" in out
    assert out.count("left out: 1 of the tiles: 192 x ") == 2
    assert cli.main([*line, "--dry-run"]) == 0
    assert "square: 20 candidates on 64x64x64" in capsys.readouterr().out
    kept(table, replaced(OWN["W"], split=True))
    assert cli.main([*line, "--show"]) == 0
    assert "tier=W bm=64 bn=64" in (out := capsys.readouterr().out)
    assert "raster=8 split=True" in out
    file, entries = tmp_path / "winners.json", table.entries()
    assert cli.main([*line, "--export", str(file)]) == 0
    assert cli.main([*line, "--reset"]) == 0
    assert table.entries() == {}
    assert cli.main([*line, "--import", str(file)]) == 0
    assert table.entries() == entries
    assert keep.read(file) == entries
    capsys.readouterr()
    assert cli.main(["tune", "--mode", "tf32"]) == 2
    assert cli.main([*line, "--mode", "tf32"]) == 2
    gpu.cc, gpu.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = (7, 0), 7
    driver.properties.cache_clear()
    assert cli.main([*line, "--mode", "chain"]) == 2
    assert capsys.readouterr().err.splitlines() == [
        "tune: mode 'tf32': of device cuda",
        "tune: mode 'tf32': on CUDA there are 'chain' of halves and 'tf32' of float32",
        "tune: mode 'chain': of products from compute capability 8.0 on",
    ]
    assert isinstance(cuda.side("float32"), cuda.Cuda)
    assert not isinstance(cuda.side("float32"), configs.Configs)
