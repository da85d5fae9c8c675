"""A record of calls: a file with a line of JSON each, which `NBKERNELS_RECORD` writes and `warmup --from` reads."""

from __future__ import annotations

from .call import Call, Unfit


def read(file, unfit):
    """The calls in a file; `unfit(what)` hears of each line that holds none, and why."""
    with open(file, encoding="utf-8", errors="replace") as lines:
        for number, line in enumerate(lines, 1):
            try:
                yield Call.parse(line)
            except Unfit as error:
                unfit(f"{file}:{number}: {error}")
