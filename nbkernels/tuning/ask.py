"""Requests to the tuner, in words: shapes and their classes, layouts, lists and ranges of tile sizes. Pure."""

from __future__ import annotations

import itertools
from collections import Counter

from ..problem import CLASSES, LAYOUTS, shape_class

# Products that a class is tuned by: on the CPU large enough for the packed path, with sizes that are no power of two.
SIZES = {
    "square": [(600, 600, 600), (1000, 1000, 1000), (1536, 1536, 1536)],
    "tall": [(2600, 400, 400), (4096, 512, 512), (3000, 700, 900)],
    "wide": [(400, 2600, 400), (512, 4096, 512), (700, 3000, 900)],
    "deep": [(200, 200, 5000), (333, 333, 2500), (512, 512, 2048)],
    "flat": [(1200, 1200, 100), (1024, 1024, 256), (2000, 1500, 300)],
}
MOST = 1 << 16  # of a shape's size: three such matrices of float64 have 96 GiB, more is a slip of the pen
WAYS = 100_000  # combinations of sizes that are looked at
WORDS = {"tier": {each: each for each in ("S", "D", "D8", "M", "W")}, "split": {"0": False, "1": True}}  # are no sizes


class Impossible(ValueError):
    """What was asked for cannot be had; the text is one line for a person."""


def shapes(asked) -> dict[str, list[tuple[int, int, int]]]:
    """{class: the shapes to time} for None (every class), the name of a class, three sizes, or a list of these.

    >>> shapes([(8, 8, 8), "deep"])
    {'square': [(8, 8, 8)], 'deep': [(200, 200, 5000), (333, 333, 2500), (512, 512, 2048)]}
    """
    if asked is None:
        return {name: list(sizes) for name, sizes in SIZES.items()}
    if isinstance(asked, str) or (len(asked) == 3 and all(isinstance(size, int) for size in asked)):
        asked = [asked]
    found = {}
    for each in asked:
        if isinstance(each, str):
            if each not in SIZES:
                raise Impossible(f"shape {each!r}: three sizes M N K or one of {', '.join(CLASSES)} is wanted")
            found.setdefault(each, []).extend(SIZES[each])
            continue
        sizes = tuple(each)
        if len(sizes) != 3 or not all(type(size) is int and 1 <= size <= MOST for size in sizes):
            raise Impossible(f"shape {sizes}: three whole numbers M N K from 1 to {MOST} are wanted")
        found.setdefault(CLASSES[shape_class(*sizes)], []).append(sizes)
    return {name: list(dict.fromkeys(sizes)) for name, sizes in found.items()}


def layouts(asked) -> list[str]:
    """The layouts to judge by: all where none is named; the first one is what candidates race in."""
    asked = [asked] if isinstance(asked, str) else asked or LAYOUTS
    for each in asked:
        if each not in LAYOUTS:
            raise Impossible(f"layout {each!r}: one of {', '.join(LAYOUTS)} is wanted")
    return list(dict.fromkeys(asked))


def values(text: str) -> list[int]:
    """Sizes from a list or a range.

    >>> values("128,256"), values("64:256"), values("64:256:64"), values("4:8:2,32")
    ([128, 256], [64, 128, 256], [64, 128, 192, 256], [4, 6, 8, 32])
    """
    found = []
    for part in text.split(","):
        ends = part.split(":")
        if not all(end.isdecimal() and 0 < int(end) <= 1 << 24 for end in ends) or len(ends) > 3:
            raise Impossible(f"{part!r} is no size: a number, FIRST:LAST (doubling) or FIRST:LAST:STEP is wanted")
        first, last, *step = map(int, (*ends, *ends[:1])[: max(2, len(ends))])
        if last < first:
            raise Impossible(f"the range {part!r} is empty")
        if step and (last - first) // step[0] > WAYS:
            raise Impossible(f"{text!r} has more than {WAYS} sizes")
        if step:
            found += range(first, last + 1, step[0])
        else:
            found += [first << i for i in range(25) if first << i <= last]
    return list(dict.fromkeys(found))


def words(name, asked) -> list:
    """What a tier or a split is asked to be."""
    given = asked.split(",") if isinstance(asked, str) else asked if isinstance(asked, list | tuple) else [asked]
    known = WORDS[name] | {value: value for value in WORDS[name].values()}
    if not given or not all(isinstance(each, str | bool) and each in known for each in given):
        raise Impossible(f"tiles {name}={asked}: of {', '.join(WORDS[name])} are wanted")
    return list(dict.fromkeys(known[each] for each in given))


def tiles(asked, names) -> dict[str, list[int]]:
    """{name of a size: values} from {"kc": [128, 256]}, {"kc": "128:512"} or ["kc=128:512", ...].

    >>> tiles(["kc=128:512", "mr=4,6"], ("mr", "kc"))
    {'kc': [128, 256, 512], 'mr': [4, 6]}
    >>> tiles(["tier=M,W", "split=1"], ("tier", "split"))
    {'tier': ['M', 'W'], 'split': [True]}
    """
    if not asked:
        return {}
    if not isinstance(asked, dict):
        pairs = [each.partition("=") for each in ([asked] if isinstance(asked, str) else asked)]
        if wrong := next(("".join(pair) for pair in pairs if pair[1] != "="), None):
            raise Impossible(f"tiles {wrong!r}: NAME=SIZES is wanted, NAME one of {', '.join(names)}")
        asked = {name: sizes for name, _, sizes in pairs}
    found = {}
    for name, sizes in asked.items():
        if name == "stages" and name not in names:
            raise Impossible("tiles stages: the CUDA kernels have two slices in shared memory, no other number")
        if name not in names:
            raise Impossible(f"tiles {name!r}: there are {', '.join(names)}")
        if name in WORDS:
            found[name] = words(name, sizes)
            continue
        sizes = values(sizes) if isinstance(sizes, str) else [sizes] if isinstance(sizes, int) else list(sizes)
        if not sizes or not all(type(size) is int and size > 0 for size in sizes):
            raise Impossible(f"tiles {name}={sizes}: positive whole numbers are wanted")
        found[name] = list(dict.fromkeys(sizes))
    return found


def grid(asked, complete, illegal):
    """(legal candidates, {reason: how many it turned away}) of every combination of the sizes that are asked for;
    `complete` makes tiles of some sizes, `illegal` says what is against them."""
    ways = 1
    for sizes in asked.values():
        ways *= len(sizes)
    if ways > WAYS:
        raise Impossible(f"{ways} combinations of tiles are more than {WAYS}: shorter lists or wider steps are wanted")
    found, reasons = {}, Counter()
    for sizes in itertools.product(*asked.values()):
        made = complete(dict(zip(asked, sizes)))
        if against := illegal(made):
            reasons.update(against[:1])
        else:
            found[made] = None
    return list(found), dict(reasons)
