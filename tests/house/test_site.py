"""The site: what its navigation names is there, its examples are true, each public function has a page."""

import doctest
import html
import inspect
import re
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

import nbkernels
from nbkernels.commands import drawings, pages
from nbkernels.plots import vector

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.usefixtures("at_first")


def test_the_navigation_has_every_page():
    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    named = re.findall(r": ([\w/]+\.md)$", text[text.index("\nnav:") :], re.MULTILINE)
    assert sorted(named) == sorted([path.name for path in (ROOT / "docs").glob("*.md")] + ["api/index.md"])


@pytest.mark.parametrize("name", ["index", "reproducibility", "tuning"])
def test_examples_are_true(name):
    text = (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(>>>.*?)```", text, re.DOTALL)
    example = doctest.DocTestParser().get_doctest("".join(blocks), {}, name, name, 0)
    failed, tried = doctest.DocTestRunner().run(example)
    assert failed == 0
    assert tried >= 6


def test_every_public_function_has_a_page():
    names = pages.public()
    assert {name.rstrip("_") for name in nbkernels.__all__} == set(names)
    listed = re.findall(r"^\| \[(\w+)\]\((\w+)\.md\)", pages.index(names), re.MULTILINE)
    assert sorted(listed) == sorted((name, name) for name in names)


def test_a_page_says_what_a_reader_asks():
    text = pages.page("addmm")
    assert text.startswith("# addmm\n\n```python\nnbkernels.addmm(\n    self, mat1, mat2, *, beta=1,")
    assert "\nout = beta \\* self + alpha \\* (mat1 @ mat2)\n" in text
    assert '| `conj` | "a", "b" or "ab": conjugate mat1, mat2 or both, without a copy |' in text
    assert "```pycon\n>>> import numpy as np, nbkernels\n" in text
    assert "- devices: CPU (`nbkernels.cpu.gemm.gemm:addmm`), CUDA" in text
    assert ">(m, k)<" in text
    assert 'x="8" y="24" width="70" height="56"' in text  # self, 5 wide and 4 high in cells of 14


def picture(name):
    return drawings.drawn(name, pages.ops().get(name))


def test_every_page_has_a_picture(monkeypatch):
    """It is XML, fits a phone at 4/5 of its size, and names itself for those who do not see it; tune's is a file that
    is there. Curves, which take a kernel each, are tested below, with some of them."""
    curve = vector.curves("f", [0.0, 1.0], {"": [0.0, 1.0]})
    monkeypatch.setattr(drawings, "_curves", lambda name, function, two: curve)
    found = {name: picture(name) for name in pages.public()}
    assert not [name for name, shown in found.items() if shown is None]
    for name, shown in found.items():
        if shown.startswith("!["):
            assert (ROOT / "docs" / "api" / re.search(r"\((.*)\)", shown)[1]).resolve().exists()
            continue
        (drawing,) = ElementTree.fromstring(shown)
        assert drawing.get("aria-label"), name
        width, height = map(float, drawing.get("viewBox").split()[2:])
        assert width <= 450, name
        for text in drawing.iter("text"):  # of 12 pixels, some 6.5 for a letter
            starts = float(text.get("x")) - {"start": 0, "middle": 3.25}[text.get("text-anchor")] * len(text.text)
            assert -1 <= starts <= starts + 6.5 * len(text.text) <= width + 8, (name, text.text)
            assert 0 < float(text.get("y")) <= height, (name, text.text)


def test_every_product_has_its_arrays_drawn():
    found = {name: picture(name) for name in drawings.SHAPES}
    for name, letters in drawings.SHAPES.items():
        assert found[name].count("<rect") >= len(letters.split()) + 1, name
    summed = {name: re.search(r">([bkmn, ]*): summed over<", shown) for name, shown in found.items()}
    assert {name: found[1] for name, found in summed.items() if found and found[1] != "k"} == {
        "addbmm": "b, k", "sum_to": "m", "tensordot": "b, k"
    }  # fmt: skip
    assert [name for name, found in summed.items() if not found] == ["outer", "addr", "matrix_transpose"]


@pytest.mark.parametrize(("name", "curves"), [("floor", 9), ("maximum", 4), ("reciprocal", 2)])
def test_curves_break_where_the_function_jumps(name, curves):
    """A step of floor for each number, the last a point; two branches of 1/x."""
    assert picture(name).count("<polyline") == curves


@pytest.mark.parametrize(("name", "bars", "dots"), [("less", 4, 0), ("equal", 0, 4), ("not_equal", 8, 4)])
def test_what_is_true_or_false_is_a_band_for_each_other(name, bars, dots):
    shown = picture(name)
    assert (shown.count('stroke-width="6"'), shown.count("<circle")) == (bars, dots)


def texts(shown):
    return [each.text for each in ElementTree.fromstring(shown).iter("text")]


def test_numbers_in_pictures_are_the_functions():
    assert texts(picture("isnan")) == "self nan inf -inf 1 0 out T F F F F".split()
    assert texts(picture("bitwise_and"))[-8:] == list(f"{0b00110101 & 0b01011100:08b}")
    assert texts(picture("bitwise_left_shift"))[-8:] == list(f"{(0b00110101 << 2) % 256:08b}")
    assert texts(picture("where"))[-4:] == ["1", "20", "30", "4"]
    found = texts(picture("gcd"))
    assert found[-8:] == [str(np.gcd(8, i)) for i in range(1, 9)]
    assert texts(picture("mean"))[-4:] == ["1", "3", "2", "6"]
    assert texts(picture("conj"))[-1] == "out = 2-3j"


def test_methods_of_an_operation_are_on_its_page():
    text = pages.page("subtract")
    assert "| `at` | self\\[i\\] = subtract(self\\[i\\], other\\[i\\])" in text
    shown = texts(re.findall("<figure>.*</figure>", text)[1])
    assert shown[:11] == ["self", "3", "1", "2", "2", "accumulate(self)", "3", "2", "0", "-2", "reduce(self)"]
    assert shown[-5:] == ["at(self, [0, 0, 3], 2)", "-1", "1", "2", "0"]  # 0 is written twice


def test_flows_name_arguments_and_methods_that_there_are():
    assert set(drawings.FLOWS) <= set(nbkernels.__all__)
    assert inspect.signature(nbkernels.use_in_numpy).parameters["floats"].default is False
    assert set("path tile threads copies flops".split()) <= set(dir(nbkernels.explain(nbkernels.mm, *[np.eye(2)] * 2)))


def test_words_stand_on_a_page_as_they_are():
    assert pages._plain("a < b*c[i] `x<y`") == r"a &lt; b\*c\[i\] `x<y`"
    assert html.unescape(pages.page("less").split("\n\n")[2]) == "out = self < other"


def test_a_curve_lies_where_its_values_are():
    drawn = vector.curves("f", [-4.0, -3.5, 4.0], {"": [0.0, 0.5, float("inf")]})
    assert 'points="0.0,120.0 20.0,105.0"' in drawn
