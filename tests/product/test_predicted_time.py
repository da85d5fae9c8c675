"""The choice by predicted time: what compiled code chooses is the least of what Python predicts; costs are data."""

import math
from array import array

import numpy as np
import pytest

import nbkernels as nb
from nbkernels.commands import info
from nbkernels.cpu.gemm import cost, paths
from nbkernels.cpu.gemm.blocking import SEGMENT, caches, small
from nbkernels.cpu.runtime import machine
from nbkernels.cpu.runtime.status import GEMV, PACKED, PATHS, SHORT, SMALL
from nbkernels.jit.compile.cache import entry
from tests.cases import TRANSPOSES, operands
from tests.paths import way as named


@pytest.fixture
def other():
    """Costs that are nobody's: random ones, of which each path's are least for some products."""
    before = cost.table[:]
    cost.fill(
        np.random.default_rng(5).random(len(before))
        * np.tile([1.0, *[1e-3] * (cost.COUNT - 1)], len(before) // cost.COUNT)
    )
    paths._path.cache_clear()
    yield
    cost.fill(before)
    paths._path.cache_clear()


def features(tile, m, n, k, layout, turned, cache) -> list[float]:
    """What a product has, by the words of cost.FEATURES."""
    if turned:
        m, n, layout = n, m, "".join("NT"[t == "N"] for t in reversed(layout))
    v, w, size = math.ceil(n / tile.nr), math.ceil(n / tile.lanes), tile.itemsize
    area = {"A": m * k / tile.lanes, "B": k * n / tile.lanes, "C": m * n / tile.lanes}
    columns = {"A": layout[0] == "T", "B": layout[1] == "T"}
    vast = {"A": columns["A"] and m * k * size > 16 * cache, "B": not columns["B"] and k * n * size > 16 * cache}
    crowded = (k if columns["B"] else n) * size % 4096 == 0  # from a line of B to the next
    found = []
    for name in cost.FEATURES:
        words, value = name.replace(",", "").split(), 1.0
        of = next((word for word in words if word in area), None)
        for word in words:
            value *= {"v": v, "w": w, "m": m, "k": k, **area}.get(word, 1)
        holds = {"by rows": not columns.get(of), "by columns": columns.get(of), "vast": vast.get(of),
                 "crowded": crowded, "turned": turned}  # fmt: skip
        found.append(value * all(true for what, true in holds.items() if name.endswith(what)))
    return found


def slowly(m, n, k, workers, dtype, layout) -> int:
    """The path with the least sum, of those that may be."""
    tile, cache, times = small(dtype), caches()[1], {}
    if m * n * max(k, 8) <= 16**3 and k <= 512:
        return SMALL
    if min(m, n) == 1:
        return GEMV
    for way in cost.WAYS:
        if not (paths.possible(tile, way, k, True) and paths.bounded(way, m, n, k)):
            continue
        wide, turned = m > n, {"deep": None, "short": m > n}.get(PATHS[way], False)
        if turned is None:  # deep
            turned = (wide and layout[0] == "T") or (layout[1] == "T" and (layout[0] == "T" or not wide))
        many = workers > 1 and paths.shared(way, m, n, k)
        at = cost.place(tile.itemsize, way, many)
        first, *rest = np.multiply(cost.table[at : at + cost.COUNT], features(tile, m, n, k, layout, turned, cache))
        times[way] = first + sum(rest) * (2 / workers if many else 1)
    return min(times, key=times.get)


def compiled():
    """The choice, from compiled code."""
    tile = small("float32")

    def run(m, n, k, rsa, csa, rsb, csb, workers):
        return paths.choose(tile, (m, n, k, rsa, csa, rsb, csb), True, workers, machine.l2(), cost.known())

    return entry(run, f"int64({', '.join(['int64'] * 8)})", "test_cost_choice")


@pytest.mark.parametrize("costs", ["its own", "other"])
def test_the_choice_is_the_least_of_what_is_predicted(rng, request, costs):
    if costs == "other":
        request.getfixturevalue(costs)
    run, found = compiled(), set()
    for case in range(1500):
        m, n, k = (int(2 ** rng.uniform(1, 11)) for _ in range(3))
        if case % 2:
            m, n, k = (max(2, size // 32 * 32) for size in (m, n, k))
        workers, layout = (1, 2, 8)[case % 3], list(TRANSPOSES)[case % 4]
        strides = [step for pair in paths.strides(layout, m, n, k) for step in pair]
        expected = slowly(m, n, k, workers, "float32", layout)
        assert paths.path(m, n, k, workers, "float32", layout) == expected, (m, n, k, workers, layout)
        assert run(m, n, k, *strides, workers) == expected
        found.add(expected)
    assert len(found) >= 5


@pytest.mark.parametrize("way", cost.WAYS)
def test_a_forced_path_is_what_explain_says_and_computes_it(rng, way):
    """By every costs, and after it the choice is what it was."""
    before = cost.table[:], paths.path(100, 200, 300, 2)
    for (m, n, k), layout in zip(((50, 90, 40), (45, 70, 300), (60, 200, 510), (300, 60, 7)), TRANSPOSES):
        a, b = operands(rng, m, n, k, "float64", TRANSPOSES[layout])
        expected = nb.mm(a, b)
        with paths.only(way):
            assert nb.explain(nb.mm, a, b).path == PATHS[way] == PATHS[paths.path(m, n, k, 1, "float64", layout)]
            assert nb.mm(a, b).tobytes() == expected.tobytes()
    assert (cost.table[:], paths.path(100, 200, 300, 2)) == before


def test_what_cannot_take_a_path_does_not():
    """k of more than the path can, more rows than it may, threads that are not woken; then it is packed."""
    for way, m, n, k, workers in ((0, 9, 9, 600, 1), (2, 65, 80, 80, 1), (2, 30, 40, 50, 2), (3, 30, 40, 50, 2),
                                  (3, 90, 90, 513, 2), (5, 330, 330, 330, 1)):  # fmt: skip
        with paths.only(cost.WAYS[way]):
            assert paths.path(m, n, k, workers) == PACKED
    for way in cost.WAYS:
        with paths.only(way):
            assert paths.path(16, 16, 16, 2) == SMALL
            assert paths.path(1, 200, 200, 2) == GEMV


@pytest.mark.parametrize("workers", [1, 2])
def test_the_bounds_of_short(workers):
    """64 rows or columns, of which each thread packs all; and nothing that is too little to launch threads for."""
    with paths.only(SHORT):
        assert named(64, 4000, 600, workers) == named(4000, 64, 600, workers, "float64", "TN") == "short"
        assert named(65, 4000, 600, workers) == named(64, 4000, SEGMENT + 1, workers) == "packed"
        assert named(30, 30, 30, workers) == "packed"


def test_only_ends_with_an_error():
    before = cost.table[:]
    with pytest.raises(KeyError), paths.only(PACKED):
        raise KeyError
    assert cost.table == before


def test_a_single_column_of_out_is_explained_as_it_runs(rng):
    """Where n is 1 both of out's strides may be an element's: what is asked of is C' = B' A'."""
    a, b = rng.standard_normal((300, 90))[:, ::2], rng.standard_normal((45, 1))
    m, n, k, rsa, csa, rsb, csb, rows = paths.seen(np.empty((300, 1)), None, a, b)
    assert (m, n, k, rsa, csa, rsb, csb, rows) == (1, 300, 45, 1, 1, 2, 90, True)


@pytest.mark.parametrize(("named", "width", "kind"), [("avx512", 256, "avx512"), ("arm64", 128, "avx2"),
                                                     ("", 256, "avx2"), ("", 512, "avx512")])  # fmt: skip
def test_an_unknown_kind_takes_the_nearest(monkeypatch, named, width, kind):
    monkeypatch.setattr(cost, "machine", lambda: machine.Machine(costs=named))
    monkeypatch.setattr(cost, "width_bits", lambda: width)
    assert cost.kind() == kind
    assert cost.of_machine() == cost.KINDS[kind]["table"]


def test_costs_are_kept_as_text():
    """Each kind says where its times are from; one line a path."""
    kinds, problem = cost.read(cost.FILE)
    assert problem is None
    assert {"avx2", "avx512"} <= set(kinds)
    for each in kinds.values():
        assert each["source"]
        assert each["date"] >= "2026-11-25"
        assert len(each["table"]) == 2 * 2 * len(cost.WAYS) * cost.COUNT
    assert f"{cost.kind()}: {kinds[cost.kind()]['source']}" in " ".join(info.text().split())


@pytest.mark.parametrize("change", [
    lambda text: "", lambda text: "[]", lambda text: "{}", lambda text: text.replace('"v k"', '"u w"'),
    lambda text: text.replace('"thin": [', '"thin": [-1, '), lambda text: text.replace('"float64"', '"float65"'),
    lambda text: text.replace('"packed": [', '"packed": [true, '), lambda text: "[" * 100_000,
])  # fmt: skip
def test_a_broken_file_holds_none_and_says_so(monkeypatch, tmp_path, change):
    """Then every product of any size takes the packed path."""
    file = tmp_path / "costs.json"
    file.write_text(change(cost.FILE.read_text()))
    kinds, problem = cost.read(file)
    assert kinds == {}
    assert problem.startswith(f"{file} holds no costs")
    monkeypatch.setattr(cost, "KINDS", kinds)
    monkeypatch.setattr(cost, "PROBLEM", problem)
    assert " ".join(problem.split()) in " ".join(info.text().split())  # whose lines fit 80 columns
    assert set(cost.of_machine()) == {0, math.inf}
    assert cost.read(tmp_path / "nothing")[0] == {}


def test_more_threads_share_all_but_the_first():
    costs, product = array("d", [5.0, *[1.0] * (cost.COUNT - 1)]), (200, 300, 400, 400, 1, 300, 1)
    features = cost.has(small("float32"), product, False, 1)
    two, eight = (cost.takes(costs, 0, features, share) for share in (1, 1 / 4))
    assert eight - 5 == pytest.approx((two - 5) / 4)


def test_the_rules_that_are_left():
    """Bounds, of rooms and launches, and nothing of a choice between paths that a cost could tell."""
    numbers = {name for name, value in vars(paths).items() if name.isupper() and type(value) is int}
    assert numbers - {name for name in numbers if name.lower() in PATHS.values()} == {
        "BY_ROWS", "BY_COLUMNS", "STRIDED", "SEGMENT", "ALONE", "LITTLE", "STORED", "AWAKE", "BRIEF", "PARALLEL",
        "SERIAL", "PANEL", "DEEPEST", "SHORT_ROWS", "IN_PLACE", "NARROW_IN_PLACE", "MIRRORED",
        "MIRRORED_STEPS",
    }  # fmt: skip
