"""Text in 80 columns: tables, pairs of names and values, lines."""

from __future__ import annotations

import textwrap

WIDTH = 80


def line(text) -> str:
    """A line, continued below where it is too long; words, paths among them, stay whole."""
    return textwrap.fill(text, WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)


def pairs(facts) -> str:
    """
    >>> print(pairs([("name", "value"), ("n", "word " * 20)]))
    name  value
    n     word word word word word word word word word word word word word word word
          word word word word word
    """
    indent = 2 + max(len(name) for name, _ in facts)

    def pair(name, value):
        return textwrap.fill(str(value), WIDTH, initial_indent=f"{name:{indent}}", subsequent_indent=" " * indent,
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
        text = tabulate(rows, headers=[key.replace(" ", "\n", 1) for key in keys], disable_numparse=True)
        if not spare or max(map(len, text.splitlines())) <= WIDTH:
            return "\n".join(filter(None, [line(above), text]))
        keys.remove(spare.pop())
