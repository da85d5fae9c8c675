"""The cache of compiled code, as people see it: `python -m nbkernels cache`."""

import contextlib
import datetime
import sys

from nbkernels import winners
from nbkernels.jit.disk import files, upkeep
from nbkernels.plots import columns


def text():
    """Where it is, how large, and a line for each toolchain whose code is there."""
    base, most = files.base(), upkeep.bound()[0]
    found = upkeep.toolchains(base)
    size, count = sum(each.size for each in found), sum(len(each.entries) for each in found)
    facts = [
        ("path", base),
        ("size", f"{upkeep.written(size)} of at most {upkeep.written(most)} ({upkeep.SIZE})"),
        ("entries", count),
        *(("note", line) for line in dict.fromkeys(notes(base, found))),
    ]
    rows = [(*row(each), "  ".join(made(each))) for each in found]
    table = columns.fitted(rows, ["toolchain", "entries", "size", "last used", "made by"], columns.room())
    return columns.pairs(facts, columns.room()) + (f"\n\n{table}" if rows else "")


def row(toolchain):
    name = toolchain.path.name + (" *" if toolchain.path.name == files.toolchain() else "")
    used = datetime.date.fromtimestamp(toolchain.used).isoformat()
    return name, len(toolchain.entries), upkeep.written(toolchain.size), used


def made(toolchain):
    """The versions that made it; those of options and sources differ where the versions agree."""
    record = toolchain.made_by()
    if not record:
        return ["unknown"]
    options = record.get("options")
    said = [
        f"{record.get('python')} ({record.get('platform')})",
        *(f"{name} {record.get(name)}" for name in ("nbkernels", "numba", "llvmlite")),
        *(f"{name}={value}" for name, value in (options.items() if isinstance(options, dict) else ())),
    ]
    return ["".join(c for c in each if c.isprintable()) for each in said]


def notes(base, found):
    """What is not loaded, and why."""
    for path in (base, base / files.toolchain()):
        if wrong := files.distrust(path):
            yield f"{wrong}: nothing in it is loaded"
    for each in found:
        yield from each.doubts()
    if wrong := upkeep.bound()[1]:
        yield wrong


def prune():
    """Remove the code of every toolchain but this process's."""
    return _remove(lambda toolchain: toolchain.path.name != files.toolchain())


def clear():
    """Remove all, with the tuner's winners."""
    status = _remove(lambda toolchain: True)
    base = files.base()
    if not files.distrust(base):
        for name in (winners.FILE, f"{winners.FILE}.lock"):
            with contextlib.suppress(FileNotFoundError):
                (base / name).unlink()
    return status


def _remove(chosen):
    base = files.base()
    if wrong := files.distrust(base):
        print(f"cache: {wrong}: nothing is removed", file=sys.stderr)
        return 2
    gone, status = [], 0
    for toolchain in filter(chosen, upkeep.toolchains(base)):
        if reasons := upkeep.remove(toolchain):
            print(f"cache: {toolchain.path} stays: {', '.join(reasons)}", file=sys.stderr)
            status = 2
        else:
            gone.append(toolchain)
    entries, size = sum(len(each.entries) for each in gone), upkeep.written(sum(each.size for each in gone))
    print(
        f"{base}: " + (f"toolchains removed: {len(gone)}, {entries} entries, {size}" if gone else "nothing to remove")
    )
    return status
