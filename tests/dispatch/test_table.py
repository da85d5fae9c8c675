"""Registrations, precedence and the printed table; needs no array library."""

import sys
import threading

import pytest

import nbkernels
from nbkernels.dispatch import Library, MissingKernelError, RegistrationError, Table, add_device, keys
from nbkernels.dispatch.table import resolve


def kernel(*args):
    return "kernel", args


STRUCTURED = {"structured": kernel, "dispatch": {"CPU": kernel}}


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
    fallback = library.register_fallback("CPU", "m:fallback")
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
    fallback.remove()
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
        ("f_(Tensor(a!) self) -> Tensor(a!)", STRUCTURED, "f_ is in-place and structured; declare the functional form"),
        (
            "f(Tensor self, *, Tensor(a!) x, Tensor(b!) out) -> Tensor(b!)",
            STRUCTURED,
            "a structured op writes one Tensor",
        ),
        ("f_(Tensor self) -> Tensor", {}, "ends in _ is an in-place op"),
        ("f(Tensor(a!) self) -> Tensor(a!)", {}, "its name ends in _, as in f_"),
        ("f.out(Tensor self) -> Tensor", {}, r"out overload, so it has .* \*, Tensor\(a!\) out"),
        ("f.x_out(Tensor self, *, Tensor o) -> Tensor", {}, "is an out overload"),
        ("f.out(Tensor self, *, Tensor out) -> Tensor", {}, r"must be keyword-only and written: Tensor\(a!\) out"),
        ("f(int n) -> Tensor", {}, "takes no Tensor"),
        ("f(Tensor x) -> Tensor", {"variants": "function, method"}, "a method needs an argument named self"),
        ("f.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)", {"variants": "method"}, "an out variant is a function"),
        ("f(Tensor self) -> Tensor", {"variants": "function, procedure"}, "variants are 'function', 'method'"),
        ("f(Tensor self) -> Tensor", {"variants": "method, method"}, "variants are 'function', 'method'"),
        (
            "f(Tensor self) -> Tensor",
            {"manual_kernel_registration": True, "dispatch": {"CPU": kernel}},
            "leave out disp",
        ),
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
    with pytest.raises(RegistrationError, match="there is no op 'ff'; it is one of f"):
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
        keys.remove_device("NPU")
    for name in ("Autograd", "AutogradX", "CompositeImplicit", "a b"):
        with pytest.raises(RegistrationError, match="cannot be a device key"):
            add_device(name)


def test_the_table_prints(library):
    op = library.define("f(Tensor self) -> Tensor", dispatch={"CPU": kernel, "CompositeImplicit": "mine:f"})
    lines = str(op.function.table()).splitlines()
    assert lines[:2] == ["f(Tensor self) -> Tensor", "registered"]
    assert lines[2].split()[:2] == ["CPU", f"{__name__}:kernel"]
    assert lines[2].split()[2].startswith("dispatch/test_table.py:")
    assert [line.split()[:3] for line in lines[lines.index("computed") + 1 :]] == [
        ["CPU", f"{__name__}:kernel", "direct"],
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


def test_an_error_in_the_module_of_a_kernel_is_its_own(tmp_path, monkeypatch):
    (tmp_path / "broken_kernels.py").write_text("import math\nmath.nothing\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(AttributeError, match="module 'math' has no attribute 'nothing'"):
        resolve("broken_kernels:mm")


# -- forms, delegates, flags ------------------------------------------------------------------------------------------


def test_every_form_has_a_name_of_its_own(library):
    library.define("f(Tensor self) -> Tensor", **STRUCTURED)
    for text in ("f.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)", "f_(Tensor(a!) self) -> Tensor(a!)"):
        with pytest.raises(RegistrationError, match="is defined already, by f;"):
            library.define(text)
    library.define("g_(Tensor(a!) self) -> Tensor(a!)")
    with pytest.raises(RegistrationError, match="g_ is defined already; remove it first"):
        library.define("g(Tensor self) -> Tensor", **STRUCTURED)


def test_methods(library):
    one = library.define("f(Tensor self) -> Tensor", variants="function, method", **STRUCTURED)
    library.define("g(Tensor self) -> Tensor")
    assert library.methods() == {"f": one.function, "f_": one.in_place}


def test_a_delegate_shares_all_but_its_name(library):
    op = library.define("f(Tensor self, Tensor b) -> Tensor", **STRUCTURED)
    also = library.define("also(Tensor self, Tensor b) -> Tensor", structured_delegate="f", python_module="more")
    assert (also.entries, also.structured) == (op.entries, op.structured)
    assert [computed(also, key) for key in keys.runtime()] == [computed(op, key) for key in keys.runtime()]
    assert (also.function.__name__, also.in_place.__name__, also.function.__module__) == ("also", "also_", "tests.more")
    with library.register("f", "CUDA", other):
        assert computed(also, "CUDA") == (other, "direct")
    with pytest.raises(RegistrationError, match="also delegates to f: register the kernel there"):
        library.register(also, "CUDA", other)
    with pytest.raises(RegistrationError, match="delegates to f, so it cannot list CPU: register there"):
        library.define("x(Tensor self, Tensor b) -> Tensor", structured_delegate=op, dispatch={"CPU": kernel})
    with pytest.raises(RegistrationError, match="its arguments and returns must be the same"):
        library.define("x(Tensor self) -> Tensor", structured_delegate=op)
    library.define("h(Tensor self, Tensor b) -> Tensor")
    with pytest.raises(RegistrationError, match="delegates to h, which is not structured"):
        library.define("x(Tensor self, Tensor b) -> Tensor", structured_delegate="h")
    assert len(list(library)) == 3


def test_manual_registration_starts_empty(library):
    op = library.define("f(Tensor self) -> Tensor", manual_kernel_registration=True)
    assert computed(op, "CPU") == (None, "missing")
    with library.register(op, "CPU", kernel):
        assert computed(op, "CPU") == (kernel, "direct")


def test_kernels_that_do_not_fit_are_told_at_once(library):
    words = (
        rf"{__name__}:.*<lambda> \(dispatch/test_table.py:\d+\) does not fit its schema: it takes \(a\) and would be "
    )
    with pytest.raises(RegistrationError, match=words + r"called with \(self, b\)"):
        library.define("f(Tensor self, Tensor b) -> Tensor", dispatch={"CPU": lambda a: a})
    op = library.define("f(Tensor self) -> Tensor", **STRUCTURED)
    with pytest.raises(RegistrationError, match=words + r"called with \(out, self\)"):
        library.register(op, "CUDA", lambda a: a)
    with pytest.raises(RegistrationError, match="does not fit"):
        library.register_fallback("CPU", lambda op: op)
    for wrong in (lambda: library.register_fallback("CPU", 3), lambda: library.register("f", "CUDA", None)):
        with pytest.raises(RegistrationError, match="must be a callable or 'module:name', not "):
            wrong()
    with pytest.raises(RegistrationError, match="does not fit"):
        library.define("g(Tensor self) -> Tensor", structured=lambda: None, dispatch={"CPU": kernel})
    for formulas, words in (
        ({"self": lambda grad, other: grad}, "the formula of 'self' needs other"),
        ({"me": lambda grad: grad}, "the formula of 'me' is for no tensor argument"),
    ):
        with pytest.raises(RegistrationError, match=words):
            library.define("g(Tensor self) -> Tensor", gradient=formulas, **STRUCTURED)
    assert [op.schema.name for op in library] == ["f"]


def takes_two(a, b):
    return a


def test_a_kernel_by_name_is_told_when_it_is_loaded(library):
    op = library.define("f(Tensor self) -> Tensor", dispatch={"CPU": f"{__name__}:takes_two"})
    with pytest.raises(RegistrationError, match=rf"{__name__}:takes_two .* takes \(a, b\) and .* called with \(self\)"):
        op.table.row("CPU").row.load()


def test_fallbacks_override_and_go(library):
    op = library.define("f(Tensor self) -> Tensor", manual_kernel_registration=True)
    with library.register_fallback("CPU", kernel):
        with pytest.raises(RegistrationError, match=r"tests already has a fallback for CPU.*override=True"):
            library.register_fallback("CPU", other)
        with library.register_fallback("CPU", other, override=True):
            assert computed(op, "CPU") == (other, "fallback")
        assert computed(op, "CPU") == (kernel, "fallback")
    assert computed(op, "CPU") == (None, "missing")


def test_devices_that_can_go():
    for name in ("CPU", "CUDA", "Meta", "Autograd", "Nothing"):
        with pytest.raises(RegistrationError, match="is not a device key that was added"):
            keys.remove_device(name)


def test_what_a_set_of_registrations_would_run():
    table = Table.of("CPU", "CompositeImplicit")
    assert [(row.key, row.reason) for row in table.computed()][:2] == [("CPU", "direct"), ("CUDA", "CompositeImplicit")]
    assert table.row("AutogradCPU").row is None
    assert [row.key for row in table.registered()] == ["CPU", "CompositeImplicit"]
    with pytest.raises(RegistrationError, match="already has a kernel for CPU"):
        Table.of("CPU", "CPU")


def test_registration_while_calls_run(library):
    """Threads read while others register: every look sees a kernel that was in force, and the last change wins."""
    op = op_with(library, CPU="m:base")
    seen, stop = set(), threading.Event()

    def read():
        while not stop.is_set():
            seen.add(op.table.row("CPU").row.kernel)

    def write(name):
        for _ in range(200):
            with library.register(op, "CPU", name, override=True):
                pass
            library.define(f"{name[2:]}(Tensor self) -> Tensor", dispatch={"CPU": name})
            library.remove(name[2:])

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        readers = [threading.Thread(target=read) for _ in range(3)]
        writers = [threading.Thread(target=write, args=(f"m:k{i}",)) for i in range(4)]
        for thread in readers + writers:
            thread.start()
        for thread in writers:
            thread.join()
        stop.set()
        for thread in readers:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert seen <= {"m:base", "m:k0", "m:k1", "m:k2", "m:k3"}
    assert computed(op, "CPU") == ("m:base", "direct")
    assert [op.schema.name for op in library] == ["f"]


def test_a_look_up_that_a_registration_overtakes(library, monkeypatch):
    """What was computed from the old rows is not kept for later."""
    op = op_with(library, CPU=kernel)
    compute = op.table.compute

    def overtaken(key):
        found = compute(key)
        monkeypatch.undo()
        library.register(op, "CPU", other, override=True)
        return found

    monkeypatch.setattr(op.table, "compute", overtaken)
    assert computed(op, "CPU") == (kernel, "direct")
    assert computed(op, "CPU") == (other, "direct")
