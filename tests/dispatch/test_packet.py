"""Packets of overloads; and ATen's own table, which can be declared."""

import copy
import re
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from nbkernels.dispatch import ArgumentError, RegistrationError, add_device, keys, parse


@pytest.fixture
def add(library):
    def of(name):
        return {"CPU": lambda *args: (name, args)}

    library.define(
        "add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> str", dispatch=of("Tensor"), tags=["elementwise"]
    )
    library.define("add.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> str", dispatch=of("Scalar"))
    library.define("add.out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)", dispatch=of("out"))
    library.define("add(Tensor self, str how) -> str", dispatch=of(""))
    library.define("add.List(Tensor[] parts, int[] sizes=[]) -> str", dispatch=of("List"))
    return library.packet("add")


def test_a_packet_picks_by_the_arguments(add):
    x, y = np.ones(2), np.zeros(())
    assert add(x, x)[0] == add(x, x, alpha=2)[0] == add(x, y)[0] == "Tensor"
    assert add(x, 2)[0] == add(x, 2, 3)[0] == add(self=x, other=1.5)[0] == "Scalar"
    assert add(x, x, out=x) is x
    assert add(x, "so")[0] == ""
    assert add([x, x])[0] == add((x,), [1, 2])[0] == "List"
    assert add(2, x)[0] == "Tensor"  # where no overload takes them as they are
    assert add(x, 2, alpha=2)[0] == "Scalar"
    with pytest.raises(
        ArgumentError, match=r"(?s)^add: no overload takes these arguments\n  add.Tensor\(.*: .*\n  add.List"
    ):
        add(x, object())
    with pytest.raises(ArgumentError, match="too many positional arguments"):
        add(x, x, x, x, x)


def test_its_overloads_are_attributes(add, library, scale):
    x = np.ones(2)
    assert add.overloads() == ["Tensor", "Scalar", "out", "default", "List"]
    assert add.Scalar is library["add.Scalar"].function
    assert add.default is library["add"].function
    assert {"Scalar", "default", "overloads"} <= set(dir(add))
    with pytest.raises(
        AttributeError, match="add has no overload 'Tensors'; it has Tensor, Scalar, out, default, List"
    ):
        add.Tensors  # noqa: B018
    with pytest.raises(RegistrationError, match="there is no op 'ad'; did you mean 'add'"):
        library.packet("ad")
    assert str(add) == "<overloads of add: Tensor, Scalar, out, default, List>"
    with library.define("add.more(Tensor self) -> str", dispatch={"CPU": lambda x: "more"}):
        assert add(x) == add.more(x) == "more"
    assert "more" not in add.overloads()
    assert copy.copy(add)(x, 2)[0] == "Scalar"
    derived = library.packet("scale")  # of an op whose forms are derived
    assert derived.overloads() == ["default", "out"]
    assert derived.default is scale.function
    assert derived.out(x, 3, out=x) is derived(x, 1, out=x) is x
    for call in (lambda: derived.out(x, 3), lambda: derived.out(x, 3, out=None)):
        with pytest.raises(TypeError, match="out"):
            call()
    assert library.packet("scale_")(x, 2) is x
    assert x.tolist() == [6, 6]


# -- ATen's own table -------------------------------------------------------------------------------------------------


def native_functions():
    """The entries of native_functions.yaml, as torch has it with its code generator."""
    import torchgen

    text = (Path(torchgen.__file__).parent / "packaged/ATen/native/native_functions.yaml").read_text(encoding="utf-8")
    for block in re.split(r"^- func: ", text, flags=re.M)[1:]:
        lines = [line.split("#")[0].rstrip() for line in block.splitlines() if not line.lstrip().startswith("#")]
        entry, inside = {"func": lines[0].strip(), "dispatch": {}}, False
        for line in filter(None, lines[1:]):
            key, _, value = (part.strip() for part in line.partition(":"))
            inside = key == "dispatch" or (inside and line.startswith("    "))
            if inside and value:
                entry["dispatch"][key] = lambda *args: None
            elif not inside:
                entry[key] = value
        yield entry


REFUSED = (
    "takes no Tensor, so nothing says which device it runs on",
    "a structured op writes one Tensor",  # those of several
    "there is no op",  # their delegates
    "an argument called out must be keyword-only and written",  # backwards that read an out
    "is an out overload, so it has a keyword-only argument that is written",  # two that write a positional one
    "writes self, so it is an in-place op",  # three whose names lack the _
)


def test_atens_table_can_be_declared(library):
    """Every schema parses; all but a hundred of 2500 entries stand with their rows, variants, forms and delegates."""
    if find_spec("torchgen") is None:
        pytest.skip("needs torch")
    entries = list(native_functions())
    known = {*keys.devices(), *keys.ALIASES, *keys.ATEN}
    added = {key.strip() for entry in entries for names in entry["dispatch"] for key in names.split(",")} - known
    words, told = ("variants", "structured_delegate", "python_module"), []
    try:
        for key in added:
            add_device(key)
        for entry in sorted(entries, key=lambda entry: "structured_delegate" in entry):  # targets first
            assert str(parse(entry["func"])) == entry["func"]
            flags = {word: entry[word] for word in words if word in entry}
            if entry.get("structured") == "True":
                flags["structured"] = lambda *specs: None
            manual = entry.get("manual_kernel_registration") == "True"
            try:
                library.define(entry["func"], dispatch=entry["dispatch"], manual_kernel_registration=manual, **flags)
            except RegistrationError as error:
                told.append(str(error))
        assert len(entries) > 2000
        assert len(told) < len(entries) / 15
        assert [error for error in told if not any(part in error for part in REFUSED)] == []
        own, theirs = (library[name].table.row("SparseCPU") for name in ("addmm", "addmm.out"))
        assert (own.reason, theirs.reason, own.row.writes, theirs.row.writes) == ("direct", "direct", False, True)
        assert library["addmm"].table.row("CPU") == library["addmm.out"].table.row("CPU")
        assert library.packet("addmm").overloads() == ["out", "dtype", "dtype_out", "default"]
    finally:
        for key in added:
            keys.remove_device(key)
