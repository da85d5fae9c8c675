"""What goes in and what comes out, as schemas say: lists, 0-d arrays, named returns, names of every kind."""

import copy
import pickle
from importlib.util import find_spec
from types import SimpleNamespace

import numpy as np
import pytest

import nbkernels as nb
from nbkernels.dispatch import ArgumentError, DeviceError, MetaArray, RegistrationError, ResultError, Spec
from tests.toys import Box


def test_lists_of_arrays_that_may_be_absent(library):
    seen = []
    text = "index(Tensor self, Tensor?[] indices, Tensor[2] pair=[], Tensor?[]? more=None, int?[] sizes=[]) -> ()"
    op = library.define(text.replace(" pair=[]", " pair"), dispatch={"CPU": lambda *args: seen.append(args)})
    x, y = np.zeros(2), np.ones(1)
    op.function(x, [None, y, None], (x, y), [None], (None, 2))
    assert seen == [(x, (None, y, None), (x, y), (None,), (None, 2))]
    op.function(x, [None], [x, y])
    assert seen[-1][1:] == ((None,), (x, y), None, ())
    for bad, words in (
        (dict(indices=None), "indices must be a sequence of arrays, not None"),
        (dict(indices=[3]), r"indices\[0\] must be an array, not an int"),
        (dict(pair=[x]), "pair must be 2 arrays, not 1"),
        (dict(pair=[x, None]), r"pair\[1\] must be an array, not None"),
        (dict(more=[[None]]), r"more\[0\] must be an array, not a list"),
        (dict(sizes=(None, "a")), r"sizes must be a sequence of ints, not \(None, 'a'\)"),
        (dict(sizes="12"), "sizes must be a sequence of ints, not '12'"),
        (dict(sizes={1: 2}), "sizes must be a sequence of ints, not a dict"),
    ):
        with pytest.raises(ArgumentError, match=f"^index: {words}"):
            op.function(**{"self": x, "indices": [], "pair": [x, y], **bad})
    with pytest.raises(DeviceError, match=r"indices\[1\] on Meta"):
        op.function(x, [None, MetaArray((1,), "i8")], (x, y))


def test_a_structured_op_takes_them_too(library):
    def meta(self, parts):
        assert [part if part is None else part.shape for part in parts] == [None, (2,)]
        return SimpleNamespace(shape=self.shape, dtype=self.dtype, strides=None)

    def kernel(out, self, parts):
        out[...] = self + parts[1]

    op = library.define("f(Tensor self, Tensor?[] parts) -> Tensor", structured=meta, dispatch={"CPU": kernel})
    assert op.function(np.ones(2), [None, np.ones(2)]).tolist() == [2, 2]


def zero_dimensional():
    yield from (
        np.array(2.5),
        np.array(3),
        np.array(True),
        np.array(1 + 2j),
        np.float16(0.5),
        np.array(2, np.longdouble),
    )
    if find_spec("ml_dtypes"):
        import ml_dtypes

        yield from (np.array(1.5, ml_dtypes.bfloat16), ml_dtypes.bfloat16(1.5))
    if find_spec("torch"):
        import torch

        yield from (torch.tensor(2.5), torch.tensor(3), torch.tensor(1 + 2j), torch.tensor(1.5, dtype=torch.bfloat16))


@pytest.mark.parametrize("given", list(zero_dimensional()), ids=lambda x: f"{type(x).__name__}-{x.dtype}")
def test_0d_arrays_are_numbers(library, given):
    op = library.define(
        "f(Tensor self, Scalar s, *, Scalar[] many=[]) -> ()", dispatch={"CPU": lambda *args: seen.extend(args)}
    )
    seen = []
    op.function(np.ones(1), given, many=[given])
    kind = complex if "complex" in str(given.dtype) else bool if "bool" in str(given.dtype) else type(given.item())
    kind = kind if kind in (bool, int, complex) else float
    assert [type(x) for x in (seen[1], seen[2][0])] == [kind, kind]
    assert seen[1] == seen[2][0] == kind(given)


def test_arrays_that_are_no_numbers(library, boxes):
    op = library.define("f(Tensor self, Scalar s) -> ()", dispatch={"CPU": lambda *args: None})
    bad = [np.ones(1), np.ones((1, 1)), np.array("1"), np.array(None), np.array("2020", "M8[D]"), MetaArray((), "f8")]
    bad += [Box([1]), np.longdouble(1) / 3]
    if find_spec("torch"):
        import torch

        bad += [torch.ones(1), torch.tensor(1.0, requires_grad=True), torch.tensor(1.0, device="meta")]
    for given in bad:
        with pytest.raises(ArgumentError, match=r"^f: s must be a number, not "):
            op.function(np.ones(1), given)


def test_named_returns_are_fields(library):
    def kernel(x):
        return x.max(), x.argmax()

    op = library.define("max(Tensor self) -> (Tensor values, Tensor indices)", dispatch={"CPU": kernel})
    found = op.function(np.array([1.0, 5.0, 2.0]))
    assert (found.values, found.indices) == found == (5, 1)
    assert (type(found).__name__, found._fields) == ("max", ("values", "indices"))
    for again in (pickle.loads(pickle.dumps(found)), copy.deepcopy(found)):
        assert (again, again.values) == (found, 5)
    plain = library.define("f(Tensor self) -> (Tensor, int n)", dispatch={"CPU": lambda x: [x, 1]})
    assert type(plain.function(np.ones(1))) is tuple
    with (
        library.register(op, "CPU", lambda x: (1, 2, 3), override=True),
        pytest.raises(ResultError, match=r"^max: .*<lambda> returned 3 results, and its op returns 2"),
    ):
        op.function(np.ones(1))
    with (
        library.register(op, "CPU", lambda x: x, override=True),
        pytest.raises(ResultError, match="returned a ndarray, and its op returns 2"),
    ):
        op.function(np.ones(1))
    for names in ("a, Tensor a", "_a, Tensor b"):
        with pytest.raises(RegistrationError, match="names of returns differ, and none starts with _"):
            library.define(f"g(Tensor self) -> (Tensor {names})")


def fast_max(x):
    return (x.max(), "fast") if x.ndim == 1 else None


def test_fast_paths_have_the_same_fields(library):
    op = library.define("max(Tensor self) -> (Tensor values, str from)", dispatch={"CPU": lambda x: (x.max(), "slow")},
                        fast=f"{__name__}:fast_max")  # fmt: skip
    for _ in range(2):
        assert op.function(np.ones(2)).from_ == "fast"
        assert op.function(np.ones((2, 2))).from_ == "slow"


def test_what_is_written_comes_out_whatever_the_kernel_returns(library):
    def kernel(x, values, indices):
        values[...], indices[...] = x.max(), x.argmax()

    text = "max.out(Tensor self, *, Tensor(a!) values, Tensor(b!) indices) -> (Tensor(a!) values, Tensor(b!) indices)"
    op = library.define(text, dispatch={"CPU": kernel})
    values, indices = np.zeros(()), np.zeros((), int)
    found = op.function(np.array([1.0, 4.0]), values=values, indices=indices)
    assert found.values is values
    assert found.indices is indices
    assert (values, indices) == (4, 1)


@pytest.mark.parametrize("name", "fast result find general usual worded missing type values from".split())
def test_arguments_and_ops_of_any_name(library, name):
    """Those that the public functions use themselves, too."""
    text = f"{name}(Tensor {name}, Tensor? other=None) -> Tensor"
    op = library.define(text, dispatch={"CPU": lambda x, y: x}, fast=f"{__name__}:declines")
    x = np.ones(2)
    assert op.function(x) is op.function(x) is x


def declines(x, other):
    return None


DATA = np.zeros(2)


@pytest.mark.parametrize("returned", [
    5, None, "shape", (2,), [(2,), np.dtype("f8")], MetaArray, DATA.dtype, np.zeros(2, object),
    Spec(2, DATA.dtype, None), Spec((-1,), DATA.dtype, None), Spec((2.0,), DATA.dtype, None), Spec((2,), None, None),
    Spec(None, DATA.dtype, None),
    Spec((2,), np.dtype([("a", "O")]), None), Spec((2,), DATA.dtype, (8, 8)),
], ids=str)  # fmt: skip
def test_what_a_meta_function_returns_is_looked_at(library, returned):
    """Before anything is written, wherever the op is called."""

    def rule(self):
        return returned

    op = library.define("f(Tensor self) -> Tensor", structured=rule, dispatch={"CPU": lambda out, self: out.fill(1)})
    calls = [
        lambda: op.function(DATA),
        lambda: op.function(DATA, out=np.zeros(2)),
        lambda: op.function(MetaArray((2,), "f8")),
        lambda: nb.explain(op.function, DATA),
    ]
    for call in calls:
        with pytest.raises(ResultError, match=r"^f: its meta function rule returned .*; it should return what"):
            call()
