"""Storage of the tuner's winners: one file for all machines, written by one tune at a time; export and import."""

from __future__ import annotations

import contextlib
import datetime
import importlib.metadata
import json
from pathlib import Path

from ..winners import sound
from .ask import Impossible

FORMAT = "nbkernels tiles 1"
# Of sizes, as people read them.
ORDER = ("mr", "nr", "kc", "nb", "mc", "nc", "tier", "bm", "bn", "bk", "tm", "tn", "stages", "warps", "raster", "split")
VERSIONS = ("nbkernels", "numba", "llvmlite")


class Busy(Impossible):
    """Another tune is at work."""


def versions() -> dict[str, str]:
    found = {}
    for name in VERSIONS:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found[name] = importlib.metadata.version(name)
    return found


@contextlib.contextmanager
def alone(store):
    """For as long as this tune goes on no other one on the same file begins: Busy. Where no lock can be had, since
    nothing can be written there, it goes on without."""
    from filelock import FileLock, Timeout

    if store is None:
        yield
        return
    lock = FileLock(f"{store.path}.lock")
    try:
        store.path.parent.mkdir(parents=True, exist_ok=True)
        lock.acquire(timeout=0)
    except Timeout:
        said = f"another tune is at work on {store.path}: wait, or name another NBKERNELS_CACHE_DIR"
        raise Busy(said) from None
    except (OSError, NotImplementedError):
        yield
        return
    try:
        yield
    finally:
        lock.release()


def entry(winner, verdicts, default) -> dict:
    """What is kept of a winner: its sizes, how much faster it was where, and by which versions."""
    return {
        "candidate": vars(winner), "default": vars(default), "seconds": verdicts[0].winner_s,
        "ratio": min(each.ratio for each in verdicts), "noise": max(each.noise for each in verdicts),
        "lanes": [list(each.lane) for each in verdicts], "versions": versions(),
        "date": datetime.date.today().isoformat(),
    }  # fmt: skip


def kept(store, place) -> dict:
    """{key: entry} of a machine."""
    found = {} if store is None else store.entries()
    return {key: each for key, each in found.items() if key.startswith("gemm ") and key.endswith(f" on {place}")}


def older(entry) -> str | None:
    """Which versions it was measured with, where these are others than now."""
    then = entry.get("versions")
    if not isinstance(then, dict):
        return "unknown versions"
    now = versions()
    changed = [f"{name} {then.get(name)}" for name in VERSIONS if then.get(name) != now.get(name)]
    return ", ".join(changed) or None


def shown(entries) -> list[dict]:
    """A line for each winner."""
    lines = []
    for key, each in sorted(entries.items()):
        sizes, ratio = each["candidate"], each.get("ratio")
        said = " ".join(f"{name}={sizes[name]}" for name in ORDER if name in sizes) if isinstance(sizes, dict) else "?"
        old = f" with {then}: tune again?" if (then := older(each)) else ""
        lines.append({"winner": key.partition(" on ")[0].removeprefix("gemm "), "tiles": said,
                      "over the default": f"{ratio:.2f}x" if isinstance(ratio, float) else "",
                      "measured": f"{each.get('date', '')}{old}"})  # fmt: skip
    return lines


def export(store, file) -> int:
    """Write every machine's winners to a file; how many."""
    entries = {} if store is None else store.entries()
    text = json.dumps({"format": FORMAT, "versions": versions(), "winners": entries}, indent=1, sort_keys=True)
    Path(file).write_text(text + "\n", encoding="utf-8")
    return len(entries)


def read(file) -> dict:
    """The winners that an exported file holds, sets of positive sizes under keys, and a config's tier and split;
    Impossible where it is none."""
    try:
        content = json.loads(Path(file).read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise Impossible(f"{file} is no file of winners: {error or type(error).__name__}") from None
    if not isinstance(content, dict) or content.get("format") != FORMAT or not isinstance(content.get("winners"), dict):
        raise Impossible(f"{file} is no file of winners: {FORMAT!r} is wanted, as --export writes it")
    return {key: each for key, each in content["winners"].items() if _whole(key, each)}


def _whole(key, entry) -> bool:
    sizes = entry.get("candidate") if isinstance(entry, dict) else None
    kinds = {"tier": "str", "split": "bool"}
    whole = isinstance(sizes, dict) and sizes and all(sound(x, kinds.get(name, "int")) for name, x in sizes.items())
    return bool(whole and key.startswith("gemm ") and " on " in key)
