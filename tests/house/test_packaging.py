"""What is in the wheel and the sdist: built by setuptools in a copy of the tree, the wheel from the unpacked sdist."""

import itertools
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

import nbkernels

ROOT = Path(__file__).resolve().parents[2]
TREE = "nbkernels", "dispatch", "conda", "docs", "tests", "bench", "examples", ".ci"


URL = "https://example.org/people/nbkernels"


def build(kind, source, out, url=URL):
    code = f"from setuptools import build_meta; print(build_meta.build_{kind}({str(out)!r}))"
    environment = dict(os.environ, NBKERNELS_URL=url)
    result = subprocess.run([sys.executable, "-c", code], cwd=source, env=environment, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    return out / result.stdout.split()[-1]


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """(names in the sdist without its top directory, ZipFile of the wheel made from it)."""
    folder = tmp_path_factory.mktemp("dist")
    source = folder / "source"
    for name in TREE:
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__", ".*_cache"))
    for path in ROOT.iterdir():
        if path.is_file() and path.name != ".gitignore":
            shutil.copy(path, source)
    sdist = build("sdist", source, folder)
    with tarfile.open(sdist) as tar:
        tar.extractall(folder / "unpacked", **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))
    (top,) = (folder / "unpacked").iterdir()
    names = {str(path.relative_to(top)) for path in top.rglob("*") if path.is_file()}
    with zipfile.ZipFile(build("wheel", top, folder)) as wheel:
        yield names, wheel


def test_editable_is_a_path_that_type_checkers_follow(tmp_path):
    """They run no finder, as setuptools writes it for packages that lie elsewhere than their names say."""
    shutil.copytree(
        ROOT, tmp_path / "clone", symlinks=True, ignore=shutil.ignore_patterns(".*", "__pycache__", "bench")
    )
    build("editable", tmp_path / "clone", tmp_path)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as found:
        names = [name for name in found.namelist() if ".dist-info/" not in name]
        assert [Path(name).suffix for name in names] == [".pth"]
        assert Path(found.read(names[0]).decode().strip()) == tmp_path / "clone"
    assert (tmp_path / "clone/nbkernels/dispatch/__init__.pyi").is_file()


def modules():
    nbkernels = {str(path.relative_to(ROOT)) for path in (ROOT / "nbkernels").rglob("*.py")}
    return nbkernels | {f"nbkernels/{path.relative_to(ROOT)}" for path in (ROOT / "dispatch").rglob("*.py")}


def test_wheel_holds_every_module_and_the_data(built):
    names = {name for name in built[1].namelist() if ".dist-info/" not in name}
    more = ("data/digits.npz", "data/LICENSE.txt", "in_numpy/measured.json", "cpu/gemm/costs.json",
            "__init__.pyi", "py.typed", "torch/__init__.pyi", "dispatch/__init__.pyi")  # fmt: skip
    assert names == modules() | {f"nbkernels/{name}" for name in more}


def test_wheel_carries_its_licences(built):
    licences = [name for name in built[1].namelist() if "LICENSE" in name and ".dist-info/" in name]
    assert len(licences) == 2
    texts = [built[1].read(name).decode() for name in licences]
    assert any("the nbkernels developers" in text for text in texts)
    assert any("10.24432/C50P49" in text and "CC BY 4.0" in text for text in texts)


SMALL = {"filelock", "numba", "llvmlite", "numpy", "platformdirs", "tabulate", "tqdm"}


def test_wheel_metadata(built):
    (name,) = (name for name in built[1].namelist() if name.endswith(".dist-info/METADATA"))
    metadata = built[1].read(name).decode()
    assert "Requires-Python: >=3.10\n" in metadata
    assert f"Version: {nbkernels.__version__}\n" in metadata
    links = dict(re.findall(r"^Project-URL: (.*), (.*)$", metadata, re.MULTILINE))
    assert list(links) == ["Source", "Documentation", "Issues", "Changelog"]
    assert links["Source"] == URL
    for name in ("Documentation", "Changelog"):
        assert (ROOT / Path(links[name]).name).exists()
    assert "Description-Content-Type: text/markdown\n" in metadata
    found = re.findall(r"!?\[[^]]*\]\([^)]*\)", metadata)
    assert f"[First steps]({URL}/blob/HEAD/docs/index.md)" in found
    assert f"{URL}/raw/HEAD/docs/pictures/tiles-panels.png)" in metadata
    assert [link for link in found if "](https://" not in link] == ["[Figures](#figures)", "[Tile sizes](#tile-sizes)"]
    for extra in ("test", "bench", "types", "plot", "cuda12", "cuda13", "torch", "jax", "completion", "docs", "all"):
        assert f"Provides-Extra: {extra}\n" in metadata
    for extra, plugin in itertools.product(("test", "bench"), ("pytest-benchmark", "pytest-xdist")):  # of addopts
        assert re.search(rf'^Requires-Dist: {plugin}>=.*extra == "{extra}"$', metadata, re.MULTILINE)
    for line in metadata.splitlines():  # what everyone installs stays small
        if line.startswith("Requires-Dist:") and "extra ==" not in line:
            assert re.split("[<>]", line.split()[1])[0] in SMALL


def test_sdist_can_be_tested(built):
    for path in [*(ROOT / "tests").rglob("*.py"), *(ROOT / "bench").rglob("*.json"), *(ROOT / "examples").glob("*.py")]:
        assert str(path.relative_to(ROOT)) in built[0]
    assert {"README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "LICENSE"} <= built[0]
    assert {".ci/run", "mkdocs.yml", "conda/recipe/recipe.yaml"} <= built[0]
    assert not [name for name in built[0] if "__pycache__" in name]


def test_condas_recipe_is_in_step():
    """Version, Python, dependencies, bounds, summary and entry point are those of pyproject.toml."""
    recipe = (ROOT / "conda" / "recipe" / "recipe.yaml").read_text(encoding="utf-8")
    pyproject = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert f'version: "{nbkernels.__version__}"\n' in recipe
    block = re.search(r"^dependencies = \[\n(.*?)^\]", pyproject, re.DOTALL | re.MULTILINE)[1]
    wanted = [re.sub("(?=[<>])", " ", each, count=1) for each in re.findall('^    "(.*?)"', block, re.MULTILINE)]
    least = re.search('requires-python = "(.*)"', pyproject)[1]
    run = recipe[recipe.index("  run:\n") : recipe.index("\ntests:")]
    assert re.findall("    - (.*)", run) == [f"python {least}", *wanted]
    name, bound = re.search(r'^requires = \["(setuptools)(.*)"\]', pyproject, re.MULTILINE).groups()
    assert f"    - {name} {bound}\n" in recipe
    for pattern, line in (('description = "(.*)"', "summary: {}"), ('^nbkernels = "(.*)"', "- nbkernels = {}"),
                          ('^license = "(.*?)"', "license: {}")):  # fmt: skip
        assert line.format(re.search(pattern, pyproject, re.MULTILINE)[1]) in recipe


def test_digits_are_the_uci_test_set():
    from nbkernels.data import digits

    pixels, labels = digits()
    assert (pixels.shape, pixels.dtype.name, labels.shape) == ((1797, 64), "uint8", (1797,))
    assert (pixels.min(), pixels.max()) == (0, 16)
    counts = [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]  # as published: instances of 0..9
    assert [int((labels == digit).sum()) for digit in range(10)] == counts
    assert pixels[0, :8].tolist() == [0, 0, 5, 13, 9, 1, 0, 0]


def test_links_are_the_publishers(tmp_path):
    """Without an address there are none; one that is none is refused."""
    for name in ("setup.py", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tmp_path)
    (tmp_path / "nbkernels").mkdir()
    (tmp_path / "nbkernels" / "__init__.py").write_text('__version__ = "1"\n')
    pyproject = tmp_path / "pyproject.toml"
    pyproject.write_text(re.sub("^(packages|package-dir) =.*$", "", pyproject.read_text(), flags=re.MULTILINE))
    with tarfile.open(build("sdist", tmp_path, tmp_path, "")) as tar:
        (name,) = (name for name in tar.getnames() if re.fullmatch("[^/]*/PKG-INFO", name))
        text = tar.extractfile(name).read()
        assert b"Project-URL" not in text
        assert b"](docs/index.md)" in text
    with pytest.raises(AssertionError, match=r"NBKERNELS_URL=example\.org: wanted is"):
        build("sdist", tmp_path, tmp_path, "example.org")
