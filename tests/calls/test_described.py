"""Calls described by data: as text, as a line of JSON and back, made again; lines of strangers."""

import json

import ml_dtypes
import numpy as np
import pytest

import nbkernels as nb
from nbkernels.calls import call as module
from nbkernels.calls import sets
from nbkernels.calls.call import Call
from nbkernels.calls.described import Unfit

BASE = np.ones((6, 8), np.float32)
OWN = f"{__name__}:shifted"


@nb.elementwise
def shifted(x, by):
    return x + by


def doubled(x):
    return x * 2


DESCRIBED = [
    (("mm", BASE, BASE.T), {}, "mm(float32 6x8, float32 8x6 T)"),
    (("add", BASE[::2, ::-1], 2), {}, "add(float32 3x8 strides (64, -4), 2)"),
    (("add", np.ones((), "f8"), 1j), {"casting": "same_kind"}, "add(float64 0-d, 1j, casting='same_kind')"),
    (("add", np.float32(2), BASE[:0]), {"dtype": np.float64}, "add(float32(2.0), float32 0x8, dtype=float64)"),
    (("add.reduce", BASE), {"axis": (0, 1)}, "add.reduce(float32 6x8, axis=(0, 1))"),
    (("add.at", BASE, ([0, 1], slice(1, None)), 1.0), {}, "add.at(float32 6x8, ([0, 1], 1:None:None), 1.0)"),
    (("add.at", BASE, (..., np.zeros(2, np.int64)), 1.0), {}, "add.at(float32 6x8, (Ellipsis, int64 2), 1.0)"),
    (("maximum", np.ones(3, ml_dtypes.bfloat16), ml_dtypes.bfloat16(2)), {}, "maximum(bfloat16 3, bfloat16(2.0))"),
    (("linear_q", BASE, nb.quantize(BASE)), {"dynamic": True},
     "linear_q(float32 6x8, int8 weights 6x8 by 8, scales float32, dynamic=True)"),
    (("linear_q", BASE[:1], nb.quantize(np.ones((3, 8), "f4"), 8, "int4", symmetric=False, scales="float16")), {},
     "linear_q(float32 1x8, int4 weights 3x8 by 8, scales float16, zero points)"),
    (("elementwise", BASE, 2), {"function": OWN}, f"elementwise(float32 6x8, 2, function='{OWN}')"),
]  # fmt: skip


@pytest.mark.parametrize(("args", "keywords", "text"), DESCRIBED, ids=lambda x: x if isinstance(x, str) else "")
def test_text_and_line(args, keywords, text):
    call = Call.of(*args, **keywords)
    assert str(call) == text
    assert "\n" not in call.line()
    assert Call.parse(call.line()) == call
    call()


def test_arrays_come_back_as_they_were(monkeypatch):
    """dtype, shape, strides, alignment, whether it can be written, and which elements two arrays share."""
    block = np.zeros(4096, np.uint8)
    odd = block[1 : 1 + 64].view("f4")[:9].reshape(3, 3) if not (block.ctypes.data + 1) % 4 else np.ndarray(
        (3, 3), "f4", block, 1)  # fmt: skip
    readonly = np.ones((3, 3), np.float32)
    readonly.flags.writeable = False
    given = odd, readonly, BASE[1:4, :3], BASE[0:3, 5:2:-1], np.broadcast_to(np.float32(1), (3, 3))
    seen = []
    monkeypatch.setattr(Call, "function", lambda self: (lambda *args: seen.extend(args), {}))
    call = Call.of("add", *given)
    Call.parse(call.line())()
    made = seen[-len(given) :]
    for old, new in zip(given, made):
        assert (old.dtype, old.shape, old.strides) == (new.dtype, new.shape, new.strides)
        assert old.ctypes.data % 16 == new.ctypes.data % 16
        assert old.flags.writeable == new.flags.writeable
        assert (new == 1).all()
    for i, j in np.ndindex(len(given), len(given)):
        assert np.shares_memory(given[i], given[j]) == np.shares_memory(made[i], made[j])
    assert made[2].ctypes.data - made[3].ctypes.data == given[2].ctypes.data - given[3].ctypes.data


def test_what_is_not_numpys_takes_the_same_path(monkeypatch):
    class Mine(np.ndarray):
        pass

    call = Call.of("add", BASE.view(Mine), BASE)
    assert [array.exact for array in call.arrays()] == [False, True]
    assert type(call()) is not np.ndarray


@pytest.mark.parametrize(
    ("args", "reason"),
    [
        (("add", object(), 1), "what it is given is object"),
        (("add", nb.meta(3, "float32"), 1), "its arrays are on Meta"),
        (("add", np.ones(3, "c32" if hasattr(np, "complex256") else "S3"), 1), "its arrays are "),
        (("add", np.ones(3, ">f4"), 1), "its arrays are "),
    ],
)
def test_what_cannot_be_described(args, reason):
    with pytest.raises(Unfit, match=reason):
        Call.of(*args)


def array(**more):
    return {"array": "float32", "shape": [3], **more}


STRANGE = [
    ("", "no JSON"),
    ("{", "no JSON"),
    ("[" * 100_000, "no JSON"),
    ("null", "no call of nbkernels"),
    ('{"call": "add"}', "no call of nbkernels"),
    ({"nbkernels": 2, "call": "add"}, "a line of version 2, not 1"),
    ({"nbkernels": 1, "unfit": "a lambda"}, "not recorded: a lambda"),
    ({"nbkernels": 1}, "a call has a name, args and keywords"),
    ({"nbkernels": 1, "call": "add", "args": 3}, "a call has a name, args and keywords"),
    ({"nbkernels": 1, "call": "exit"}, "there is no operation exit"),
    ({"nbkernels": 1, "call": "define"}, "there is no operation define"),
    ({"nbkernels": 1, "call": "add.__globals__"}, "there is no operation add.__globals__"),
    ({"nbkernels": 1, "call": "add.op"}, "there is no operation add.op"),
    ({"nbkernels": 1, "call": "mm.reduce"}, "there is no operation mm.reduce"),
    ({"nbkernels": 1, "call": "elementwise", "keywords": {"function": "os:system"}}, "there is no function os:system"),
    ({"nbkernels": 1, "call": "elementwise", "keywords": {"function": "nowhere_at_all:f"}}, "cannot be imported"),
    ({"nbkernels": 1, "call": "elementwise", "keywords": {"function": 3}}, "function 3|module of 3"),
    ({"nbkernels": 1, "call": "add", "args": [array(shape=[-1])]}, "-1 should be a whole number from 0"),
    ({"nbkernels": 1, "call": "add", "args": [array(shape=[1.5])]}, "1.5 should be a whole number"),
    ({"nbkernels": 1, "call": "add", "args": [array(shape="abc")]}, "'a' should be a whole number"),
    ({"nbkernels": 1, "call": "add", "args": [array(strides=[4, 4])]}, "as many strides"),
    ({"nbkernels": 1, "call": "add", "args": [array(memory=[0, -8])]}, "-8 should be a whole number"),
    ({"nbkernels": 1, "call": "add", "args": [array(memory=[0])]}, "add: "),
    ({"nbkernels": 1, "call": "add", "args": [{"array": "object", "shape": [3]}]}, "'object' should be one of"),
    ({"nbkernels": 1, "call": "add", "args": [{"array": ["f4"], "shape": [3]}]}, "add: "),
    ({"nbkernels": 1, "call": "add", "args": [{"pickle": "cos"}]}, "nothing is encoded as 'pickle'"),
    ({"nbkernels": 1, "call": "add", "args": [{}]}, "add: "),
    ({"nbkernels": 1, "call": "add", "args": [{"dtype": "V8"}]}, "'V8' should be one of"),
    (
        {"nbkernels": 1, "call": "linear_q", "args": [{"weights": "int8", "shape": [0, 8]}]},
        "0 should be a whole number",
    ),
]


@pytest.mark.parametrize(("line", "reason"), STRANGE)
def test_lines_of_strangers(line, reason):
    with pytest.raises(Unfit, match=reason):
        Call.parse(line if isinstance(line, str) else json.dumps(line))


@pytest.mark.parametrize(
    ("args", "reason"),
    [
        ([array(shape=[10**12]), 1], "its arrays take 4,000,000,000,000 bytes; at most"),
        ([array(shape=[10**400], strides=[4]), 1], "bytes; at most"),
        ([array(strides=[-4]), 1], "an array begins 8 bytes before its memory"),
        ([array(shape=[10**6, 1], strides=[0, 4]), array(shape=[10**6], strides=[0])], "its result takes 4,000,000,"),
    ],
)  # fmt: skip
def test_what_would_be_too_large(args, reason):
    """Nothing is allocated for it."""
    call = Call.parse(json.dumps({"nbkernels": 1, "call": "add", "args": args}))
    with pytest.raises(Unfit, match=reason):
        call()


@pytest.mark.parametrize(
    ("rows", "shape", "reason"),
    [(1, [10**9, 10**9], "its arrays take 1,5"), (10**6, [10**6, 8], "its result takes 4,000,000,000,000 bytes")],
)
def test_weights_that_would_be_too_large(rows, shape, reason):
    weights = {"weights": "int8", "shape": shape, "group": 8, "scales": "float32", "zeros": False}
    x = array(shape=[rows, shape[1]], strides=[0, 0])
    with pytest.raises(Unfit, match=reason):
        Call.parse(json.dumps({"nbkernels": 1, "call": "linear_q", "args": [x, weights]}))()


def test_an_outer_that_would_be_too_large():
    wide = np.broadcast_to(np.float32(1), 10**6)
    with pytest.raises(Unfit, match="its result takes"):
        Call.of("add.outer", wide, wide)()


def test_functions_that_can_be_imported_again():
    assert module.named(doubled) == f"{__name__}:doubled"
    assert module.named(shifted.function) == f"{__name__}:shifted"
    assert module.operation_of("elementwise", f"{__name__}:doubled").function is doubled
    assert module.operation_of("elementwise", f"{__name__}:shifted").function is shifted.function
    for function, reason in ((lambda x: x, "<lambda>"), (local(), "local.<locals>.inner")):
        with pytest.raises(Unfit, match=reason):
            module.named(function)


def local():
    def inner(x):
        return x

    return inner


def test_the_sets():
    thirty, everyday, everything = (dict(x) for x in (sets.thirty(), sets.calls("everyday"), sets.calls("all")))
    assert len(thirty) == 30
    assert thirty.keys() <= everyday.keys() <= everything.keys()
    for call in everything.values():
        assert Call.parse(call.line()) == call
