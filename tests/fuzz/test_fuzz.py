"""Some hostile calls, python -m tests.fuzz; and that it finds what is planted, a crash and a hang among it."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import nbkernels
from tests.fuzz import elementwise, illegal, judge, rooms, run, unary

CASES = 40
ROOT = Path(__file__).resolve().parents[2]


def test_new_cases_find_nothing():
    command = [sys.executable, "-m", "tests.fuzz", "--seconds", "1e6", "--cases", str(CASES), "--seed", "23"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1200, cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]
    assert int(done.stdout.split()[-2]) == CASES, done.stdout


def test_cases_of_modes_find_nothing():
    """Flush-to-zero and rounding set before, during and after calls that threads share."""
    theme, case, _ = run.families()["modes"]
    for number in range(6):
        rng = np.random.default_rng(number)
        case(theme(rng), rng, lambda call: None)


# A child's part, of cases 5, 6 and so on: 5 is fine, 6 is a finding, 7 ends the process, 8 hangs.
CHILD = """
import os, signal, sys, time
number = int(sys.argv[sys.argv.index("--from") + 1])
while True:
    print('{"begins": %d, "class": "planted"}' % number, flush=True)
    print('{"calls": "call(%d)"}' % number, flush=True)
    if number == 7:
        os.kill(os.getpid(), signal.SIGSEGV)
    if number == 8:
        time.sleep(1000)
    print('{"ends": %d, "finding": %s}' % (number, '"wrong"' if number == 6 else "null"), flush=True)
    number += 1
"""


@pytest.mark.sampled
@pytest.mark.parametrize("life", [1, 3, 1000])
def test_crashes_and_hangs_are_findings_and_the_run_goes_on(tmp_path, capsys, monkeypatch, life):
    """Whatever cases a child has."""
    monkeypatch.setattr(run, "LIFE", life)
    state = tmp_path / "state"
    campaign = run.Campaign(3, 5, hang=4.0, state=state)
    campaign.command = [sys.executable, "-c", CHILD]
    campaign.run(1e6, cases=7)
    assert campaign.next == 12
    assert (campaign.done["planted"], campaign.found["planted"]) == (7, 3)
    said = capsys.readouterr().out
    for number, what in ((6, "wrong"), (7, "SIGSEGV"), (8, "hangs")):
        assert what in said
        assert f"python -m tests.fuzz --seed 3 --case {number}" in said
    again = run.Campaign(3, state=state)
    assert (again.next, again.done, again.found) == (12, campaign.done, campaign.found)
    with pytest.raises(SystemExit, match="is of seed 3"):
        run.Campaign(4, state=state)
    assert json.loads(state.read_text())["next"] == 12


def test_a_case_is_drawn_from_its_number_alone():
    known = run.families()
    for number in (0, 47, 48, 1000):
        first, second = (run.draw(7, number, known) for _ in range(2))
        assert first[:3] == second[:3]
        assert first[3].random() == second[3].random()


def test_every_layout_holds_its_elements_alone(rng):
    for kind in rooms.KINDS:
        for _ in range(30):
            x = rooms.values(rng, rooms.a_shape(rng, large=0), "f4")
            placed = rooms.lay(rng, x, kind)
            np.testing.assert_array_equal(placed.view, x)
            assert placed.elements().sum() == x.nbytes
            assert (placed.room[~placed.elements()] == rooms.FILL).all()


def test_what_a_call_must_not_do(rng):
    x = rooms.lay(rng, np.arange(6.0).reshape(2, 3), "padded")
    out = rooms.lay(rng, np.zeros((2, 3)), "record")
    assert judge.called(lambda: np.negative(x.view, out=out.view), [x], out) is out.view

    def beyond():
        out.room[3] += 1
        return out.view

    def into_input():
        x.view[1, 1] += 1
        return out.view

    def raises(error):
        out.view[0, 0] = 9
        raise error

    turns = iter(range(99))
    for call, words in (
        (beyond, "outside of what is out's"),
        (into_input, "outside of what is out's"),
        (lambda: raises(ValueError()), "although refused"),
        (lambda: raises(KeyError("f4")), "raises KeyError"),
        (lambda: raises(RecursionError("deep")), "raises RecursionError"),
        (lambda: out.view.copy(), "not the out"),
        (lambda: np.full(3, next(turns)), "differs from the first"),
    ):
        with pytest.raises(judge.Finding, match=words):
            judge.called(call, [x], None if "differs" in words else out)


@pytest.mark.parametrize("wrong", ["nothing", "a bit", "the dtype", "unrefused", "refused"])
def test_a_wrong_operation_is_found(wrong, monkeypatch):
    """An element-wise operation that is wrong in one way: its cases find it."""
    real = nbkernels.add

    def planted(x, y, **keywords):
        if wrong == "unrefused" and "out" in keywords:
            keywords["out"].flags.writeable = True
        if wrong == "refused" and keywords.get("where") is not None:
            raise TypeError("no masks here")
        result = real(x, y, **keywords)
        if wrong == "a bit" and getattr(x, "strides", (1,))[-1:] not in ((4,), ()) and isinstance(result, np.ndarray):
            result[result == result] += 1
        return result.astype("f8") if wrong == "the dtype" and "out" not in keywords else result

    monkeypatch.setattr(nbkernels, "add", planted)
    monkeypatch.setattr(elementwise, "CASTINGS", ("same_kind", "unsafe"))
    found, dtype = 0, np.dtype("f4")
    for number in range(300):
        try:
            elementwise.case(("add", dtype, dtype, dtype), np.random.default_rng(number), lambda call: None)
        except judge.Finding:
            found += 1
    assert (found > 0) == (wrong != "nothing")


@pytest.mark.parametrize("wrong", ["nothing", "unwritten", "an ulp"])
def test_a_wrong_operation_of_one_is_found(wrong, monkeypatch):
    """One that leaves elements after a subnormal one as they are, and one that is off in a part of a complex number."""
    real = nbkernels.sqrt

    def planted(x, **keywords):
        before = None if keywords.get("out") is None else keywords["out"].copy()
        result = real(x, **keywords)
        small = np.flatnonzero((x.real == 0) & (abs(x.imag) == 5e-324))
        if wrong == "unwritten" and before is not None and small.size:
            result.flat[small[0] :] = before.flat[small[0] :]
        if wrong == "an ulp" and isinstance(result, np.ndarray):
            result *= 1 + 2**-48
        return result

    monkeypatch.setattr(nbkernels, "sqrt", planted)
    found = 0
    for number in range(60):
        try:
            unary.case(("sqrt", np.dtype("c16")), np.random.default_rng(number), lambda call: None)
        except judge.Finding:
            found += 1
    assert (found > 0) == (wrong != "nothing")


def test_what_is_spoilt_is_legal_otherwise(monkeypatch):
    """Each family's call is done where nothing is spoilt, so what refuses it is what was spoilt."""
    monkeypatch.setattr(illegal, "SPOILS", {"nothing": (illegal.EVERY, lambda *_: None)})
    for family in illegal.EVERY:
        with pytest.raises(judge.Finding, match=r"not refused|written"):
            illegal.illegal_case((family, np.dtype("f4")), np.random.default_rng(0), lambda call: None)
