"""Registrations, precedence and the printed table; needs no array library."""

import subprocess
import sys
from pathlib import Path

import pytest

import nbkernels
from nbkernels.dispatch import Library, MissingKernelError, RegistrationError, add_device, keys
from nbkernels.dispatch.table import resolve


def kernel(*args):
    return "kernel", args


def other(*args):
    return "other", args


@pytest.fixture
def library():
    return Library("tests")


def computed(op, key):
    """(function, reason) of a run-time key."""
    found = op.table.row(key)
    return (found.row.kernel if found.row else None), found.reason


def op_with(library, **kernels):
    return library.define("f(Tensor self) -> Tensor", dispatch=kernels)


def test_a_direct_kernel_is_for_its_key_alone(library):
    op = op_with(library, CPU=kernel)
    assert computed(op, "CPU") == (kernel, "direct")
    for key in ("CUDA", "Meta", "AutogradCPU"):
        assert computed(op, key) == (None, "missing")


def test_precedence_step_by_step(library):
    """Take the strongest away, again and again: what is next in line takes over."""
    op = library.define("f(Tensor self) -> Tensor", dispatch={"Autograd": "m:autograd"})
    library.register_fallback("CPU", "m:fallback")
    library.register_fallback("AutogradCPU", "m:autograd_fallback")
    assert computed(op, "CPU") == ("m:fallback", "fallback")
    assert computed(op, "AutogradCPU") == ("m:autograd", "Autograd")
    with library.register(op, "CompositeImplicit", "m:implicit"):
        assert computed(op, "CPU") == ("m:implicit", "CompositeImplicit")
        assert computed(op, "AutogradCPU") == ("m:implicit", "CompositeImplicit")
        with library.register(op, "CPU", "m:cpu"):
            assert computed(op, "CPU") == ("m:cpu", "direct")
            # the composite is not what runs on the CPU now, so its parts have no gradient there; on CUDA they have
            assert computed(op, "AutogradCPU") == ("m:autograd", "Autograd")
            assert computed(op, "AutogradCUDA") == ("m:implicit", "CompositeImplicit")
    with library.register(op, "CompositeExplicit", "m:explicit"):
        assert computed(op, "CPU") == ("m:explicit", "CompositeExplicit")
        assert computed(op, "AutogradCPU") == ("m:autograd", "Autograd")
        with library.register(op, "CompositeExplicitNonFunctional", "m:non_functional"):
            assert computed(op, "CPU") == ("m:non_functional", "CompositeExplicitNonFunctional")
            with library.register(op, "AutogradCPU", "m:direct_autograd"):
                assert computed(op, "AutogradCPU") == ("m:direct_autograd", "direct")
    library.register_fallback("CPU", None)
    assert computed(op, "CPU") == (None, "missing")
    assert computed(library.define("g(Tensor self) -> Tensor", dispatch={"CUDA": "m:g"}), "AutogradCPU") == (
        "m:autograd_fallback",
        "fallback",
    )


def test_no_table_means_composite_implicit(library):
    op = Library("mine", composites="mine.bodies").define("twice(Tensor self) -> Tensor")
    assert computed(op, "Meta") == ("mine.bodies:twice", "CompositeImplicit")


def test_a_structured_op_has_a_meta_row(library):
    op = library.define("f(Tensor self) -> Tensor", structured=kernel, dispatch={"CPU": other})
    assert computed(op, "Meta") == (kernel, "structured")
    with library.register(op, "Meta", other):
        assert computed(op, "Meta") == (other, "direct")


def test_one_kernel_for_several_keys(library):
    op = library.define("f(Tensor self) -> Tensor", dispatch={"CPU, CUDA": kernel})
    assert computed(op, "CPU") == computed(op, "CUDA") == (kernel, "direct")


def test_override_and_removal(library):
    op = op_with(library, CPU=kernel)
    with pytest.raises(RegistrationError, match=r"already has a kernel for CPU.*override=True"):
        library.register("f", "CPU", other)
    first = library.register("f", "CPU", other, override=True)
    second = library.register(op, "CPU", "m:third", override=True)
    assert computed(op, "CPU") == ("m:third", "direct")
    first.remove()  # not the one in force: nothing changes
    assert computed(op, "CPU") == ("m:third", "direct")
    second.remove()
    assert computed(op, "CPU") == (kernel, "direct")
    second.remove()  # twice is once
    assert computed(op, "CPU") == (kernel, "direct")


def test_a_registration_ends_with_its_block_even_after_an_error(library):
    op = op_with(library, CPU=kernel)
    with pytest.raises(ZeroDivisionError), library.register(op, "CPU", other, override=True):
        raise ZeroDivisionError
    assert computed(op, "CPU") == (kernel, "direct")


def test_definitions_end_with_their_block(library):
    with library.define("f(Tensor self) -> Tensor", dispatch={"CPU": kernel}):
        assert library["f"].schema.name == "f"
    with pytest.raises(RegistrationError, match="there is no op 'f'"):
        library["f"]


def test_overloads_are_apart(library):
    one = library.define("f.one(Tensor self) -> Tensor", dispatch={"CPU": kernel})
    two = library.define("f(Tensor self, Tensor b) -> Tensor", dispatch={"CPU": other})
    assert (library["f.one"], library["f"], library[two.function]) == (one, two, two)
    with pytest.raises(RegistrationError, match="give this one an overload name"):
        library.define("f(Tensor self) -> Tensor", dispatch={"CPU": kernel})


@pytest.mark.parametrize(
    ("text", "declaration", "words"),
    [
        ("f_(Tensor(a!) self) -> Tensor(a!)", {}, "declare the functional form"),
        ("f(Tensor self, *, Tensor(a!) out) -> Tensor(a!)", {}, "declare the functional form"),
        ("f_(Tensor self) -> Tensor", {}, "ends in _ is an in-place op"),
        ("f(int n) -> Tensor", {}, "takes no Tensor"),
        ("f(Tensor self, Tensor out) -> Tensor", {}, r"Tensor\(a!\) out"),
        ("f(Tensor self) -> Tensor", {"dispatch": {"CPUU": kernel}}, "unknown dispatch key 'CPUU'; did you mean 'CPU'"),
        ("f(Tensor self) -> Tensor", {"dispatch": {"CompositeImplicit": "tests:f"}}, "only repeats the default"),
        ("f(Tensor self) -> Tensor", {"structured": kernel}, "has no kernels"),
        ("f(Tensor self) -> ()", {"structured": kernel, "dispatch": {"CPU": kernel}}, "returns one Tensor"),
        (
            "f(Tensor self) -> Tensor",
            {"structured": kernel, "dispatch": {"CompositeImplicit": kernel}},
            "kernels are in the out form",
        ),
        (
            "f(Tensor self) -> Tensor",
            {"dispatch": {"CompositeImplicit": kernel, "CompositeExplicit": other}},
            "cannot have both CompositeExplicit and CompositeImplicit",
        ),
    ],
)
def test_declarations_that_cannot_stand(library, text, declaration, words):
    with pytest.raises(RegistrationError, match=words):
        library.define(text, **declaration)
    assert not list(library)


def test_unknown_names_are_answered_with_the_nearest(library):
    op_with(library, CPU=kernel)
    with pytest.raises(RegistrationError, match="unknown dispatch key 'cuda'"):
        library.register("f", "cuda", kernel)
    with pytest.raises(RegistrationError, match="there is no op 'ff'; did you mean 'f'"):
        library.register("ff", "CUDA", kernel)


def test_further_devices(library):
    op = op_with(library, CompositeExplicit=kernel)
    assert add_device("NPU") == "NPU" == add_device("NPU")
    try:
        assert keys.runtime().count("NPU") == 1
        assert computed(op, "NPU") == (kernel, "CompositeExplicit")
        assert computed(op, "AutogradNPU") == (None, "missing")
        library.register(op, "NPU", other)
        assert computed(op, "NPU") == (other, "direct")
    finally:
        keys._devices.remove("NPU")
    for name in ("Autograd", "AutogradX", "CompositeImplicit", "a b"):
        with pytest.raises(RegistrationError, match="cannot be a device key"):
            add_device(name)


def test_the_table_prints(library):
    op = library.define("f(Tensor self) -> Tensor", dispatch={"CPU": kernel, "CompositeImplicit": "mine:f"})
    lines = str(op.function.table()).splitlines()
    assert lines[:2] == ["f(Tensor self) -> Tensor", "registered"]
    assert lines[2].split()[:2] == ["CPU", "test_table:kernel"]
    assert lines[2].split()[2].startswith("tests/test_table.py:")
    assert [line.split()[:3] for line in lines[lines.index("computed") + 1 :]] == [
        ["CPU", "test_table:kernel", "direct"],
        ["CUDA", "mine:f", "CompositeImplicit"],
        ["Meta", "mine:f", "CompositeImplicit"],
        ["AutogradCPU", "-", "missing"],
        ["AutogradCUDA", "mine:f", "CompositeImplicit"],
        ["AutogradMeta", "mine:f", "CompositeImplicit"],
    ]


def test_kernels_of_the_library_exist():
    """Every "module:name" of the table that needs no GPU package can be imported."""
    for op in nbkernels.addmm.op.library:
        for rows in op.table.rows.values():
            for row in rows:
                for name in (row.kernel, row.fast):
                    if name and "cuda" not in name:
                        assert callable(resolve(name)) or isinstance(resolve(name), dict), name


def test_a_kernel_that_does_not_exist_is_named():
    with pytest.raises(MissingKernelError, match="'math:nothing' does not exist: math has no 'nothing'"):
        resolve("math:nothing")


def test_dispatch_imports_neither_numpy_nor_numba():
    """The dispatcher by itself, parsing, defining and calling; its directory is found without importing nbkernels."""
    directory = Path(keys.__file__).parent
    code = f"""
import importlib.util, sys
spec = importlib.util.spec_from_file_location("dispatch", {str(directory / "__init__.py")!r})
dispatch = importlib.util.module_from_spec(spec); sys.modules["dispatch"] = dispatch; spec.loader.exec_module(dispatch)

class Box:
    shape, strides = (), ()
class Boxes(dispatch.Adapter):
    classes = ("__main__.Box",)
    def spec(self, x): return x
dispatch.register_adapter(Boxes())
library = dispatch.Library("mine")
same = library.define("same(Tensor self) -> Tensor", dispatch={{"CPU": lambda x: x}}).function
box = Box(); assert same(box) is box; str(same.table())
for name in ("numpy", "numba", "torch", "cupy"): assert name not in sys.modules, name
"""
    subprocess.run([sys.executable, "-c", code], check=True)
