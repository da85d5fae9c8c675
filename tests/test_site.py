"""The site: what its navigation names is there, its examples are true, each public function has a page."""

import doctest
import re
from pathlib import Path

import pytest

import nbkernels
from nbkernels.commands import pages
from nbkernels.plots import vector

ROOT = Path(__file__).resolve().parent.parent


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


def test_every_product_has_its_arrays_drawn():
    for name, letters in pages.SHAPES.items():
        assert pages.drawn(name, pages.ops()[name]).count("<rect") >= len(letters.split()) + 1, name


@pytest.mark.parametrize(("name", "curves"), [("floor", 9), ("less", 8), ("maximum", 4), ("reciprocal", 2)])
def test_curves_break_where_the_function_jumps(name, curves):
    """A step of floor for each number, the last a point; less is 1, then 0, for each of four; two branches of 1/x."""
    assert pages.drawn(name, pages.ops()[name]).count("<polyline") == curves


def test_a_curve_lies_where_its_values_are():
    drawn = vector.curves("f", [-4.0, -3.5, 4.0], {"": [0.0, 0.5, float("inf")]})
    assert 'points="0.0,120.0 20.0,105.0"' in drawn


@pytest.mark.parametrize("name", ["isnan", "gcd", "bitwise_and", "vjp", "tune"])
def test_what_has_no_curve_has_no_picture(name):
    assert "<figure" not in pages.page(name)
