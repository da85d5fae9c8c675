"""Text in 80 columns: tables, pairs of names and values, lines."""

from __future__ import annotations

import sys
import textwrap

WIDTH = 80


def room() -> int:
    """WIDTH, or no end where no terminal takes what is printed: a program that reads it wants whole lines."""
    return WIDTH if sys.stdout.isatty() else sys.maxsize


def line(text, width: int = WIDTH) -> str:
    """A line, continued below where it is too long; words, paths among them, stay whole."""
    return textwrap.fill(text, width, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)


def text(lines) -> str:
    """Lines, each as it is where it fits."""
    return "\n".join(each if len(each) <= WIDTH else line(each) for each in lines.splitlines())


def fitted(rows, headers, width: int = WIDTH) -> str:
    """A table, whose widest columns are made narrower, with cells of several lines, until it fits.

    >>> print(fitted([["a", "word " * 30]], ["b", "c"]))
    b  c
    -  -----------------------------------------------------------------------------
    a  word word word word word word word word word word word word word word word
       word word word word word word word word word word word word word word word
    """
    from tabulate import tabulate

    table = [[str(cell).strip() for cell in row] for row in [headers, *rows]]
    widths = [max(len(part) for cell in column for part in [*cell.splitlines(), ""]) for column in zip(*table)]
    while sum(widths) + 2 * (len(widths) - 1) > width:
        widths[widths.index(max(widths))] -= 1
    table.insert(1, ["-" * width for width in widths])
    return tabulate(table, tablefmt="plain", disable_numparse=True, maxcolwidths=widths)


def pairs(facts, width: int = WIDTH) -> str:
    """
    >>> print(pairs([("name", "value"), ("n", "word " * 20)]))
    name  value
    n     word word word word word word word word word word word word word word word
          word word word word word
    """
    indent = 2 + max(len(name) for name, _ in facts)

    def pair(name, value):
        return textwrap.fill(str(value), width, initial_indent=f"{name:{indent}}", subsequent_indent=" " * indent,
                             break_long_words=False, break_on_hyphens=False)  # fmt: skip

    return "\n".join(pair(*fact).rstrip() for fact in facts)


def table(records, spare=()) -> str:
    """Records, dicts with the same keys, a row each. What all of them have alike is told once, above; the `spare`
    columns go, the last one first, as long as the table is too wide.

    >>> print(table([{"a": "1", "b c": "x"}, {"a": "1", "b c": "y"}]))
    a 1
    b
    c
    ---
    x
    y
    """
    from tabulate import tabulate

    def alike(key):
        return key and len(records) > 1 and len({record[key] for record in records}) == 1 and records[0][key] != ""

    above = ", ".join(f"{key} {value}" for key, value in records[0].items() if alike(key))
    keys = [key for key in records[0] if not alike(key)]
    spare = [key for key in spare if key in keys]
    while True:
        rows = [[record[key] for key in keys] for record in records]
        headers = [key.replace(" ", "\n", 1) for key in keys]
        text = tabulate(rows, headers=headers, disable_numparse=True)
        wide = max(map(len, text.splitlines())) > WIDTH
        if not (spare and wide):
            return "\n".join(filter(None, [line(above), fitted(rows, headers) if wide else text]))
        keys.remove(spare.pop())
