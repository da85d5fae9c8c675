"""nbkernels.tune: it finds the fastest, in turns, and no file or directory can break its store."""

import json
import multiprocessing
import os
import time
from dataclasses import dataclass

import pytest

from nbkernels import tune
from nbkernels.store import Store


@dataclass(frozen=True)
class Config:
    size: int
    depth: int = 1


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "deep" / "winners.json")


def test_medians_run_in_turns():
    order = []
    times = tune.medians({"a": lambda: order.append("a"), "b": lambda: order.append("b")}, seconds=0, rounds=3)
    planning, turns = order[:-12], order[-12:]
    assert planning == sorted(planning)
    assert set(planning) == {"a", "b"}
    assert turns == ["a", "a", "b", "b"] * 3
    assert set(times) == {"a", "b"}
    assert all(t > 0 for t in times.values())


class Clock:
    """A clock that goes on where it is told to, of a process whose other threads spin until `busy`."""

    def __init__(self, busy=0.0):
        self.now, self.busy = 0.0, busy

    def perf_counter(self):
        return self.now

    def process_time(self):
        return min(self.now, self.busy)

    def sleep(self, seconds):
        self.now += seconds


@pytest.mark.parametrize(("slow", "seconds"), [(2, 0.1), (3, 0.01)])  # may compile; is the first that is timed
def test_a_stall_is_no_measure_of_how_often_to_repeat(slow, seconds, monkeypatch):
    calls, clock = [], Clock()
    monkeypatch.setattr(tune, "time", clock)

    def call():
        calls.append(0)
        clock.now += seconds if len(calls) == slow else 1e-6

    assert tune.medians({"a": call}, seconds=0.02, rounds=2)["a"] == pytest.approx(1e-6)
    assert len(calls) > 10_000


def test_settle_waits_for_threads_that_spin(monkeypatch):
    clock = Clock(busy=0.2)
    monkeypatch.setattr(tune, "time", clock)
    tune.settle(limit=0.05)
    assert clock.now == pytest.approx(0.05, abs=0.01)  # no longer than it may
    tune.settle(limit=10)
    assert clock.now == pytest.approx(0.2, abs=0.01)


def test_a_clock_that_is_set_back_tells_nothing(monkeypatch):
    """Every other look is an hour before the last: the samples that are negative go."""
    now, real = [0.0], time.perf_counter

    def jumping():
        now[0] += 1
        return real() - (3600 if now[0] % 7 == 0 else 0)

    monkeypatch.setattr(tune.time, "perf_counter", jumping)
    times = tune.medians({"a": lambda: None, "b": lambda: None}, seconds=0, rounds=9)
    assert all(0 < each < 3700 for each in times.values())


def test_store_keeps_other_keys_and_replaces_its_own(store):
    assert store.get("a") is None
    assert store.put("a", Config(1), 0.5)
    assert store.put("b", [1, 2], 0.25)
    assert store.put("a", Config(2, 3), 0.125)
    assert (store.get("a", Config), store.get("b")) == (Config(2, 3), [1, 2])
    assert store.entries()["a"]["seconds"] == 0.125
    assert [path.name for path in store.path.parent.iterdir()] == ["winners.json"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        '{"a": {"cand',
        "[]",
        "null",
        "\x00\xff",
        "[" * 100_000,
        '{"a": 3}',
        '{"a": {}}',
        '{"a": {"candidate": 3}}',
    ]
    + ['{"a": {"candidate": {"other": 1}}}', '{"a": {"candidate": null}}'],
    ids=lambda text: text[:20],
)
def test_a_broken_store_is_empty_and_heals(store, text):
    store.path.parent.mkdir()
    store.path.write_bytes(text.encode("latin-1"))
    assert store.get("a", Config) is None
    assert store.put("a", Config(5), 1.0)
    assert store.get("a", Config) == Config(5)


def test_truncated_anywhere(store):
    store.put("a", Config(1), 0.5)
    whole = store.path.read_bytes()
    for cut in range(len(whole) - 1):
        store.path.write_bytes(whole[:cut])
        assert store.get("a", Config) in (None, Config(1))


def test_a_directory_that_cannot_be_written_loses_the_winner_only(tmp_path):
    (tmp_path / "file").write_text("")
    store = Store(tmp_path / "file" / "winners.json")  # the parent is a file: fails for root as well
    assert not store.put("a", Config(1), 0.5)
    assert store.get("a") is None
    assert not store.remove(["a"]) or store.entries() == {}


def test_a_failed_write_leaves_the_old_winners(store, monkeypatch):
    store.put("a", Config(1), 0.5)
    monkeypatch.setattr(os, "replace", lambda *_: (_ for _ in ()).throw(PermissionError()))
    assert not store.put("a", Config(2), 0.5)
    assert store.get("a", Config) == Config(1)
    assert [path.name for path in store.path.parent.iterdir()] == ["winners.json"]


def test_an_interrupted_write_leaves_no_file_of_its_own(store, monkeypatch):
    store.put("a", Config(1), 0.5)

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        store.put("a", Config(2), 0.5)
    assert store.get("a", Config) == Config(1)
    assert [path.name for path in store.path.parent.iterdir()] == ["winners.json"]


def _write(path, number):
    for i in range(50):
        Store(path).put("k", Config(number, i), 1.0)


def test_writers_at_once_never_leave_half_a_file(store):
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=_write, args=(store.path, number)) for number in range(2)]
    for writer in writers:
        writer.start()
    while any(writer.is_alive() for writer in writers):
        if store.path.exists():
            json.loads(store.path.read_text())
    for writer in writers:
        writer.join()
        assert writer.exitcode == 0
    assert store.get("k", Config).depth == 49
