"""Rows in a results file: new ones take the places of old ones that measured the same, the others are kept."""

import json

from nbkernels.commands import info

MEASURED = (
    "bench",
    "op",
    "size",
    "pattern",
    "shape",
    "dtype",
    "threads",
    "layout",
)  # what a row is of, where it says so


def keep(path, rows, order=None):
    """Put rows into the file at `path`; with an order, keys as `key` gives them, only those that it names."""
    old = json.loads(path.read_text(encoding="utf-8"))["rows"] if path.exists() else []
    found = {key(row): row for row in (*old, *rows)}
    every = [found[each] for each in (found if order is None else order) if each in found]
    path.write_text(json.dumps({"meta": info.meta(), "rows": every}, indent=1) + "\n", encoding="utf-8")


def key(row) -> tuple:
    """What a row has measured.

    >>> key({"op": "add", "dtype": "float32", "size": 10, "pattern": "row", "ours_s": 1e-6})
    ('add', 10, 'row', 'float32')
    """
    return tuple(tuple(row[name]) if name == "shape" else row[name] for name in MEASURED if name in row)
