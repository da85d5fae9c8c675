"""Forms that are declared one by one, as in ATen, its names of the keys, and redispatch; with tiny kernels."""

from types import SimpleNamespace

import numpy as np
import pytest

from nbkernels.dispatch import (
    ArgumentError,
    MetaArray,
    MissingKernelError,
    OutError,
    RegistrationError,
    add_device,
    keys,
)
from tests.toys import Box

SHAPES = "Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1"


def addmm_meta(self, mat1, mat2, beta, alpha):
    if mat1.shape[1] != mat2.shape[0]:
        raise ValueError(f"addmm: {mat1.shape} and {mat2.shape}")
    return SimpleNamespace(shape=(mat1.shape[0], mat2.shape[1]), dtype=self.dtype, strides=None)


def addmm_kernel(out, self, mat1, mat2, beta, alpha):
    out[...] = beta * self + alpha * mat1 @ mat2


@pytest.fixture
def addmm(library):
    """The three forms as native_functions.yaml has them; BOX has kernels of the functional and the in-place form."""
    library.define(f"addmm.out(Tensor self, {SHAPES}, Tensor(a!) out) -> Tensor(a!)", structured=addmm_meta,
                   dispatch={"CPU": addmm_kernel})  # fmt: skip
    own = {"BOX": lambda *args: ("on a box", args)} if "BOX" in keys.devices() else None
    in_place = {"BOX": lambda *args: args[0].items.reverse()} if own else None
    library.define(f"addmm(Tensor self, {SHAPES}) -> Tensor", structured_delegate="addmm.out", dispatch=own,
                   variants="function, method")  # fmt: skip
    library.define(f"addmm_(Tensor(a!) self, {SHAPES}) -> Tensor(a!)", structured_delegate="addmm.out",
                   dispatch=in_place, variants="method")  # fmt: skip
    return [library[name].function for name in ("addmm", "addmm_", "addmm.out")]


def test_forms_that_are_declared_one_by_one(addmm, library):
    functional, in_place, to = addmm
    x, wanted = np.eye(3), np.eye(3) * 5
    assert np.array_equal(functional(x, x, x, beta=2, alpha=3), wanted)
    out = np.full((3, 3), np.nan)
    assert to(x, x, x, out=out, beta=2, alpha=3) is out
    assert np.array_equal(out, wanted)
    out[...] = np.nan
    assert functional(x, x, x, out=out, beta=2, alpha=3) is out
    assert np.array_equal(out, wanted)
    assert in_place(x, x.copy(), x.copy(), beta=2, alpha=3) is x
    assert np.array_equal(x, wanted)
    assert [op.schema.full_name for op in library] == ["addmm.out", "addmm", "addmm_"]
    assert {form.full_name for op in library for form in op.forms_declared} == {"addmm.out", "addmm", "addmm_"}
    assert library.methods() == {"addmm": functional, "addmm_": in_place}
    assert functional(MetaArray((2, 3), "f4"), *[MetaArray((3, 3), "f4")] * 2) == MetaArray((3, 3), "f4")


def test_every_form_has_the_checks_of_the_out_form(addmm):
    functional, in_place, to = addmm
    x, small = np.ones((3, 3)), np.ones((2, 3))
    for call in (
        lambda: functional(x, small, small),
        lambda: to(x, small, small, out=x),
        lambda: in_place(x, small, small),
    ):
        with pytest.raises(ValueError, match=r"^addmm: \(2, 3\) and \(2, 3\)"):
            call()
    with pytest.raises(
        OutError, match=r"^addmm_: the result has shape \(2, 3\) and self has \(3, 3\); .* never expands"
    ):
        in_place(x, small, x)
    with pytest.raises(OutError, match=r"^addmm: the result has shape"):
        to(x, small, x, out=x)
    with pytest.raises(ArgumentError, match=r"^addmm: out must be an array, not None"):
        to(x, x, x, out=None)
    with pytest.raises(TypeError, match="out"):
        to(x, x, x)


def test_a_delegate_has_kernels_of_its_own_beside_its_targets(boxes, addmm, library):
    functional, in_place, to = addmm
    x, y = Box([1, 2]), Box([3, 4])
    assert functional(x, y, y, beta=2) == ("on a box", (x, y, y, 2, 1))  # as they came, and what it returns
    assert in_place(x, y, y) is x
    assert x.items == [2, 1]
    for call in (lambda: to(x, y, y, out=x), lambda: functional(x, y, y, out=x)):  # which are the out form's to run
        with pytest.raises(MissingKernelError, match="addmm has no kernel for BOX; it has CPU, Meta"):
            call()
    assert functional.table().row("BOX").reason == functional.table().row("CPU").reason == "direct"
    assert [row.key for row in functional.table().registered()] == ["BOX", "CPU"]
    with library.register("addmm.out", "BOX", addmm_kernel):
        assert functional.table().row("BOX").row.kernel is not addmm_kernel
    with library.register("addmm.out", "CPU", lambda out, *args: out.fill(7), override=True):
        assert (functional(*[np.ones((2, 2))] * 3) == 7).all()  # it hears of the target's changes
    assert (functional(*[np.ones((2, 2))] * 3) == 3).all()
    for key in ("CPU", "CUDA", "Meta"):
        with pytest.raises(RegistrationError, match=f"cannot list {key}: register there"):
            library.define(f"addmm.x(Tensor self, {SHAPES}) -> Tensor", structured_delegate="addmm.out",
                           dispatch={key: lambda *args: None})  # fmt: skip


def test_composites_of_a_delegate_yield_to_its_targets_kernels(library):
    meta = lambda self: SimpleNamespace(shape=self.shape, dtype=self.dtype, strides=None)  # noqa: E731
    library.define("f.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)", structured=meta,
                   dispatch={"CPU": lambda out, x: out.fill(1)})  # fmt: skip
    mine = {"CompositeExplicitAutograd": lambda x: "composite"}
    f = library.define("f(Tensor self) -> Tensor", structured_delegate="f.out", dispatch=mine)
    assert [f.table.row(key).reason for key in ("CPU", "CUDA", "Meta")] == ["direct", "CompositeExplicit", "structured"]
    assert f.function(np.zeros(2)).tolist() == [1, 1]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("g(Tensor self, Tensor b) -> Tensor", "its arguments and returns must be the same"),
        ("g(Tensor self) -> (Tensor, Tensor)", "its arguments and returns must be the same"),
        ("g.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)", "g.out is out: what delegates is the functional form"),
    ],
)
def test_delegates_that_cannot_stand(library, text, words):
    library.define("f.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)", structured=lambda x: x,
                   dispatch={"CPU": lambda out, x: None})  # fmt: skip
    with pytest.raises(RegistrationError, match=words):
        library.define(text, structured_delegate="f.out")
    library.define("f(Tensor self) -> Tensor", structured_delegate="f.out")
    with pytest.raises(RegistrationError, match=r"delegates to f, which delegates itself: to f.out, then"):
        library.define("g(Tensor self) -> Tensor", structured_delegate="f")
    with pytest.raises(RegistrationError, match="a structured op writes one Tensor"):
        library.define("h.out(Tensor self, *, Tensor(a!) a, Tensor(b!) out) -> Tensor(b!)", structured=lambda x: x,
                       dispatch={"CPU": lambda out, x: None})  # fmt: skip


@pytest.mark.parametrize("kind", ["ExplicitAutogradNonFunctional", "ExplicitAutograd", "ImplicitAutograd"])
def test_atens_names_of_the_composites(library, kind):
    aten, ours = f"Composite{kind}", f"Composite{kind.replace('Autograd', '')}"
    op = library.define("f(Tensor self) -> Tensor", dispatch={aten: lambda x: "composite"})
    assert op.table.row("CPU").reason == ours
    assert op.function(np.ones(1)) == "composite"
    with pytest.raises(RegistrationError, match=f"already has a kernel for {ours}"):
        library.register(op, aten, lambda x: None)
    with library.register(op, aten, lambda x: "other", override=True):
        assert op.function(np.ones(1)) == "other"
    both = {aten: lambda x: 1, ours: lambda x: 2}
    with pytest.raises(RegistrationError, match=f"g: its dispatch lists {ours} twice"):
        library.define("g(Tensor self) -> Tensor", dispatch=both)
    with pytest.raises(RegistrationError, match="cannot be a device key"):
        add_device(aten)


def test_no_key_is_listed_twice(library):
    with pytest.raises(RegistrationError, match="f: its dispatch lists CUDA twice"):
        library.define("f(Tensor self) -> Tensor", dispatch={"CPU, CUDA": lambda x: 1, "CUDA": lambda x: 2})


# -- redispatch -------------------------------------------------------------------------------------------------------


def test_a_kernel_calls_what_it_replaced(library, scale):
    calls = []

    def counted(out, *args):
        calls.append("counted")
        mine.replaced(out, *args)

    def shifted(out, *args):
        calls.append("shifted")
        above.replaced(out, *args)
        out += 1

    x = np.ones(2)
    with library.register(scale, "CPU", counted, override=True) as mine:
        assert scale.function(x, 3).tolist() == [3, 3]
        with library.register(scale, "CPU", shifted, override=True) as above:
            assert scale.function(x, 3).tolist() == [4, 4]
            assert scale.in_place(x, 2) is x
            mine.remove()  # what is replaced now is the kernel below
            assert scale.function(np.ones(2), 3).tolist() == [4, 4]
    assert calls == ["counted"] + ["shifted", "counted"] * 2 + ["shifted"]


def test_it_may_be_a_composite_or_a_fallback(library):
    op = library.define("f(Tensor self) -> str", dispatch={"CompositeImplicit": lambda x: "composite"})
    with library.register(op, "CPU", lambda x: "CPU, " + mine.replaced(x)) as mine:
        assert op.function(np.ones(1)) == "CPU, composite"
    bare = library.define("g(Tensor self) -> str", manual_kernel_registration=True)
    with library.register(bare, "CPU", lambda x: mine.replaced(x)) as mine:
        with pytest.raises(
            MissingKernelError, match=r"g: the kernel for CPU \(dispatch/test_forms.py:.*\) took the place of no other"
        ):
            bare.function(np.ones(1))
        with (
            library.register_fallback("CPU", lambda op, args, out: "fallback"),  # is called with other arguments
            pytest.raises(MissingKernelError, match="took the place of no other"),
        ):
            bare.function(np.ones(1))
    with library.register_fallback("CPU", lambda op, args, out: "first") as first:
        with library.register_fallback("CPU", lambda *args: "second, " + over.replaced(*args), override=True) as over:
            assert bare.function(np.ones(1)) == "second, first"
        with pytest.raises(MissingKernelError, match="took the place of no other"):
            first.replaced(bare, (), None)
