"""Costs fitted to a machine by made-up times: what is found and kept, and that nothing is where nothing differs."""

import math
import time
from types import SimpleNamespace

import numpy as np
import pytest

from nbkernels import first_calls, winners
from nbkernels.commands import info
from nbkernels.cpu.gemm import blocking, cost, paths
from nbkernels.cpu.runtime import machine
from nbkernels.cpu.runtime.invalidate import renew
from nbkernels.cpu.runtime.status import DEEP, PACKED, SMALL, THIN
from nbkernels.jit.disk import files
from nbkernels.store import Store
from nbkernels.tuning import adapt, plans

KINDS = {kind: adapt.part(each["table"], "float64") for kind, each in cost.KINDS.items()}
OWN = cost.kind()
SLOWER = {THIN: 3.0, DEEP: 0.5, SMALL: 2.0, PACKED: 0.8}  # paths of a machine that is nobody's


def slower(costs):
    """Costs of a machine whose paths take so many times as long."""
    return costs * np.array([SLOWER.get(way, 1.0) for way in cost.WAYS])[:, None]


def timed(product, costs, noise=0.0):
    """Microseconds on a machine of these costs."""
    random = np.random.default_rng([*product.shape, product.threads])
    times = adapt.predicted(costs, [product])[0] * (1 + noise * random.random(len(cost.WAYS)))
    return np.where(product.may, times, math.nan)


def products(costs, noise=0.0, count=100):
    found = [each for threads in (1, 2) for each in plans.drawn("float64", threads, KINDS[OWN], count)]
    for each in found:
        each.times = timed(each, costs, noise)
    return found


def lost(costs, products):
    """The chosen path's time over the fastest one's: geometric mean."""
    return math.exp(np.log(adapt.chosen(costs, products) / np.nanmin([each.times for each in products], 1)).mean())


@pytest.fixture
def side(monkeypatch, tmp_path):
    """Of float64 by two threads, with a store of its own."""
    monkeypatch.setattr(files, "directory", lambda: tmp_path / "toolchain")
    monkeypatch.setattr(plans, "PRODUCTS", 100)
    monkeypatch.setenv("NBKERNELS_TUNED", "1")
    renew()
    yield SimpleNamespace(dtype="float64", available=2, renew=renew)
    monkeypatch.undo()
    renew()


def find(side, costs, store, end=math.inf):
    return plans.find(side, store, end, lambda *_: None, lambda product: timed(product, costs, 0.05))


def test_a_machine_whose_paths_are_slower_is_found():
    """From 100 products for each number of threads: of what others lose by the kind's costs a fifth is left."""
    machine = slower(KINDS[OWN])
    seen, others = products(machine, 0.1), products(machine, count=300)[100:300]
    before = lost(KINDS[OWN], others)
    assert before > 1.15
    _, costs, gain, error = adapt.best({OWN: KINDS[OWN]}, OWN, seen)
    assert lost(costs, others) - 1 < (before - 1) / 5
    assert gain > 0.1 > error


def test_where_times_match_nothing_changes():
    """But for the speed of all, which no choice depends on."""
    seen = products(3 * KINDS[OWN])
    np.testing.assert_allclose(adapt.adapted(KINDS[OWN], seen), 3 * KINDS[OWN], rtol=1e-9)
    assert adapt.best(KINDS, OWN, seen)[:3] == (OWN, None, 0)


def test_another_kinds_costs_are_fitted_where_they_serve_better():
    other = next(kind for kind in KINDS if kind != OWN)
    kind, costs, *_ = adapt.best(KINDS, OWN, products(KINDS[other], 0.1))
    assert kind == other
    assert costs is not None


def test_a_path_that_was_not_timed_keeps_its_share():
    seen = products(2 * KINDS[OWN])
    for each in seen:
        each.times[cost.WAYS.index(THIN)] = math.nan
    np.testing.assert_allclose(adapt.adapted(KINDS[OWN], seen), 2 * KINDS[OWN], rtol=1e-9)


def test_a_part_of_more_threads_is_what_the_choice_predicts():
    each = adapt.Product((400, 300, 200), "TN", 8, blocking.small("float64"), blocking.caches()[1])
    costs = cost.KINDS[OWN]["table"]
    product, expected = (400, 300, 200, 1, 400, 300, 1), []
    for way in cost.WAYS:
        features = cost.has(each.tile, product, cost.swaps(way, 400, 300, 1, 1), each.l2)
        expected.append(paths._time(each.tile, way, product, features, True, 8, costs))
    found = np.where(each.may, adapt.predicted(KINDS[OWN], [each])[0], math.inf)
    np.testing.assert_allclose(found, expected)


def test_products_are_the_same_each_time():
    one, two = (plans.drawn("float64", 2, KINDS[OWN], 20) for _ in range(2))
    assert [(each.shape, each.layout) for each in one] == [(each.shape, each.layout) for each in two]


def test_what_is_found_is_kept_used_and_told(side):
    store, before = winners.store(), cost.table[:]
    said = find(side, slower(KINDS[OWN]), store)
    kind, part = cost.fitted("float64")
    assert f"fitted from those of {kind}" in said
    assert cost.fitted("float32") is None
    assert cost.table[:] == cost.of_machine() != before
    assert list(cost.table[len(part) :]) == list(part)
    record = store.entries()[machine.plan_key("float64")]
    assert {"ratio", "noise", "versions", "date"} <= set(record)
    assert any(line.startswith("paths of float64 by costs of this machine") for line in info.winners())
    assert "not enough to be kept" in find(side, KINDS[OWN], store)
    assert cost.table[:] == before
    assert machine.plan_key("float64") not in store.entries()


def test_nothing_is_kept_where_it_cannot_be(side, tmp_path):
    assert find(side, slower(KINDS[OWN]), None).endswith("not kept")
    (tmp_path / "file").write_text("")
    assert find(side, slower(KINDS[OWN]), Store(tmp_path / "file" / "tiles.json")).endswith("not kept")
    assert cost.fitted("float64") is None
    assert "time ran out" in find(side, KINDS[OWN], winners.store(), end=time.perf_counter())
    side.dtype = "int8"
    assert find(side, KINDS[OWN], None) is None


@pytest.mark.release
def test_the_clock_times_every_path_that_a_product_may_take(monkeypatch):
    """And leaves those that took long before; where it stands still it tells nothing."""
    monkeypatch.setattr(first_calls, "CALLS", first_calls.CALLS)
    for threads in (1, 2):
        each = adapt.Product((70, 50, 90), "NT", threads, blocking.small("float64"), blocking.caches()[1])
        clock = plans.Clock("float64")
        each.times = clock(each)
        assert list(np.isnan(each.times)) == list(~each.may)
        each.times[each.may] = 1.0
        each.times[-2] = 1e6  # packed
        assert np.isnan(clock(each)[-2])
    monkeypatch.setattr(plans, "time", SimpleNamespace(perf_counter=lambda: 1.0))
    assert np.isnan(clock(each)).all()
