"""Shares of a peak: the speed of a row over the fastest sample of its instruction, by as many threads.

A peak is the fastest sample of a call that runs nothing but the instruction which the kernel uses, in turns with the
row, or of a row itself, whose samples are no less true: so no share exceeds 1, however the clock drifts. Rows of one
run that use the same instruction and as many threads are held against one peak.
"""

from __future__ import annotations

from .. import tune

BUSY = 0.2  # by how much samples of a peak may differ on a host that does nothing else


def against(of: str, work: float, ours, peak_work: float, samples) -> dict:
    """What a row says of its peak: `of` which instruction, the row's operations (or bytes) a second, the most that was
    seen, and how far apart the peak's samples are; of seconds of a call that does `work`, and of the peak's own."""
    rate, most = work / tune.middle(ours), max(peak_work / min(samples), work / min(ours))
    return {"peak": of, "rate": rate, "peak_rate": most, "peak_spread": max(samples) / min(samples) - 1,
            "peak_share": rate / most}  # fmt: skip


def settle(rows) -> None:
    """Hold rows of one peak and as many threads against the fastest sample of them all."""
    most = {}
    for row in rows:
        if row.get("peak_rate"):
            most[_key(row)] = max(most.get(_key(row), 0), row["peak_rate"])
    for row in rows:
        if row.get("peak_rate"):
            row["peak_share"] = row["rate"] / most[_key(row)]


def _key(row) -> tuple:
    return row["peak"], row["threads"]


def busy(rows) -> str | None:
    """A line where the host did something else while these rows were measured.

    >>> busy([{"peak_spread": 0.1}]), busy([{"peak_spread": 0.25}, {}])
    (None, 'the host was busy: samples of a peak differ by up to 25%; shares are of the fastest')
    """
    spread = max((row.get("peak_spread") or 0 for row in rows), default=0)
    said = f"the host was busy: samples of a peak differ by up to {spread:.0%}; shares are of the fastest"
    return said if spread > BUSY else None


def lifted(peaks: dict, rows) -> dict:
    """The peaks of a number of threads, none lower than what these rows reached by as many."""
    own = {row["peak"]: row["peak_rate"] / 1e9 for row in sorted(
        (row for row in rows if row.get("peak_rate") and row["threads"] == peaks["threads"]),
        key=lambda row: row["peak_rate"])}  # fmt: skip
    widths = {level: max(width, own.get(copies(level), 0)) for level, width in peaks["gb_s"].items()}
    return peaks | {"gflops": max(peaks["gflops"], own.get(additions(peaks["dtype"]), 0)), "gb_s": widths}


def additions(dtype: str) -> str:
    """The name of the peak of a dtype's products."""
    from ..jit.ir.vector import width_bits

    return f"multiply-adds of {dtype}, vectors of {width_bits()} bits"


def copies(level: str) -> str:
    return f"copies in {level}"
