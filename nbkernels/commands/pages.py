"""A page for each public function, for the site: `python -m nbkernels docs --pages docs/api`."""

import inspect
import re
import textwrap
from pathlib import Path

import nbkernels

from ..ops import LIBRARY
from . import docs, drawings

METHODS = "reduce", "accumulate", "outer", "at"


def write(folder) -> int:
    """The pages and index.md, into a folder of their own; how many."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    names = public()
    for name in names:
        (folder / f"{name}.md").write_text(page(name), encoding="utf-8", newline="\n")
    (folder / "index.md").write_text(index(names), encoding="utf-8", newline="\n")
    return len(names)


def public() -> list[str]:
    """Names that have a page: all but in-place forms, which stand on the page of theirs."""
    names = [name for name in nbkernels.__all__ if not (name.endswith("_") and name[:-1] in nbkernels.__all__)]
    return sorted(names, key=str.lower)


def ops() -> dict:
    """{public name: op}."""
    return {op.schema.name: op for op in LIBRARY if getattr(nbkernels, op.schema.name, None) is op.function}


def index(names) -> str:
    """The list of all pages, with the first sentence of each."""
    found = ops()
    products = [name for name in drawings.SHAPES if name in names]
    others = [name for name in names if name not in products]
    groups = {
        "Products and sums": products,
        "Element-wise": [name for name in others if name in found],
        "Functions of functions, and of arrays": [name for name in others if name not in found],
    }
    lines = ["# Functions\n", "A page for each: its help, dtypes, devices, gradient and picture."]
    for title, members in groups.items():
        lines += [f"\n## {title}\n", "| function | |", "| --- | --- |"]
        lines += [f"| [{name}]({name}.md) | {_cell(_help(name).splitlines()[0])} |" for name in members]
    return "\n".join(lines) + "\n"


def page(name) -> str:
    """The page of a public function."""
    op = ops().get(name)
    parts = [f"# {name}", f"```python\n{signature(name)}\n```", *_markdown(_help(name))]
    if picture := drawings.drawn(name, op):
        parts.insert(3, picture)
    if hasattr(_called(name), "reduce"):
        parts += ["## Methods", *filter(None, [drawings.methods(name)]), _methods(_called(name))]
    if op:
        facts = {"forms": docs.forms, "dtypes": docs.dtypes, "devices": docs.devices, "gradient": docs.gradient}
        parts += ["## Dtypes, devices, gradient", "\n".join(f"- {key}: {fact(op)}" for key, fact in facts.items())]
    return "\n\n".join([*parts, "[All functions](index.md)"]) + "\n"


def signature(name) -> str:
    """`nbkernels.mm(self, mat2, *, ...)`, in lines of 80."""
    found = inspect.signature(_called(name))
    plain = [each.replace(annotation=each.empty) for each in found.parameters.values()]
    text = f"nbkernels.{name}{found.replace(parameters=plain, return_annotation=found.empty)}"
    if len(text) <= 80:
        return text
    start, rest = text[:-1].split("(", 1)
    lines = textwrap.wrap(f"{rest},", 76, break_long_words=False)
    return "\n".join([f"{start}(", *(f"    {line}" for line in lines), ")"])


def _called(name):
    """The function whose docstring a page shows: for the module `tune`, its function of that name."""
    if name == "tune":
        from ..tuning.run import tune

        return tune
    return getattr(nbkernels, name)


def _help(name) -> str:
    return inspect.getdoc(_called(name))


def _methods(function) -> str:
    """Return a table of an operation's methods: name, and first line of the docstring."""
    rows = [f"| `{name}` | {_cell(_first(getattr(function, name)))} |" for name in METHODS]
    return "\n".join(["| method | |", "| --- | --- |", *rows])


def _first(function) -> str:
    """The first paragraph of a docstring, in a line."""
    return " ".join(inspect.getdoc(function).split("\n\n")[0].split())


def _markdown(text):
    """The parts of a docstring: paragraphs, tables of words, examples."""
    for block in re.split(r"\n\s*\n", text.strip()):
        if block.startswith(">>>"):
            shown = re.sub(r" *# doctest: .*", "", block.replace("<BLANKLINE>", ""))
            yield f"```pycon\n{shown}\n```"
        elif re.match(r"\S+( \S+)* {2,}\S", block):
            rows = [f"| `{key}` | {_cell(what)} |" for key, what in _rows(block)]
            yield "\n".join(["| argument | |", "| --- | --- |", *rows])
        else:
            yield _plain(block)


def _rows(block):
    """(word, what it does) of the lines of a table; what is indented goes on."""
    rows = []
    for line in block.splitlines():
        if line[0].isspace():
            rows[-1][1] += " " + line.strip()
        else:
            rows.append(re.split(r" {2,}", line, maxsplit=1))
    return rows


def _cell(text) -> str:
    return _plain(text).replace("|", "\\|")


def _plain(text) -> str:
    """Text as Markdown that shows it as it is, but for `code`."""
    pieces = re.split(r"(`[^`]+`)", text)
    shown = (p if p.startswith("`") else re.sub(r"([\\*_\[\]])", r"\\\1", p).replace("<", "&lt;") for p in pieces)
    return "".join(shown)
