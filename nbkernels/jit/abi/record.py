"""Record: int64 words in memory by their names. Compiled code reads `f.kc`, writes `f.kc = 256`, and `f.low[p] = 0`
where a name has several words.

What threads share and what one compiled function tells another stand in such words; a Record says once which there are.
"""

from __future__ import annotations

import functools
from array import array
from operator import itemgetter
from typing import ClassVar

from ..compile.lazy import intrinsic, types
from ..ir.vector import I64, LINE


class Record:
    """
    In signatures a record's name is the type of a pointer to its words.

    >>> pair = Record("Pair", "next jobs | done")  # what follows a bar begins a cache line of its own
    >>> pair["jobs"], pair["done"], pair.words, pair.bytes
    (1, 8, 16, 128)
    >>> Record("Rows", "count starts[3] steps[3]")["steps"]  # of several words the first; `f.steps` points there
    4
    """

    known: ClassVar[dict[str, list[Record]]] = {}  # by their names

    def __init__(self, name: str, words: str):
        self.name, self.places, self.counts, each = name, {}, {}, LINE // 8
        self.words = 0
        for line in words.split("|"):
            for word in line.split():
                word, _, count = word.rstrip("]").partition("[")
                self.places[word], self.counts[word] = self.words, int(count or 0)
                self.words += int(count or 1)
            self.words = -(-self.words // each) * each
        self.known.setdefault(name, []).append(self)
        items = {word: _item(place, self.counts[word]) for word, place in self.places.items()}
        self.python = type(name, (array,), items)

    @property
    def bytes(self) -> int:
        return 8 * self.words

    def __str__(self) -> str:
        return self.name

    def __getitem__(self, word: str) -> int:
        """The place of a word, as what goes by a number has it: atomic operations, and Python's arrays of words."""
        return self.places[word]

    def array(self, content: bytes | None = None) -> array:
        """The words from Python: an array, zero or of such bytes, whose items have these names as well."""
        return self.python("q", bytes(self.bytes) if content is None else content)

    @property
    def kernel(self):
        """The signature of what threads run: void(words, task)."""
        return f"void({self}, int64)"

    def pointer(self):
        """An intrinsic: the words at an address."""
        record = self

        @intrinsic
        def at(typing, address):
            from ..compile.known import record_type

            def emit(context, builder, signature, args):
                return builder.inttoptr(args[0], I64.as_pointer())

            return record_type(record)(types.int64), emit

        return at


def _item(place, count):
    if count:  # several words
        part = slice(place, place + count)
        return property(
            lambda words: memoryview(words)[part],
            lambda words, values: memoryview(words).__setitem__(part, array("q", values)),
        )
    return property(itemgetter(place), lambda words, value: words.__setitem__(place, value))


def lasting(make):
    """As functools.cache, for what compiled code goes by the address of: threads that ask first at once get the same,
    and what was made lives as long as the process, after `cache_clear` too."""
    found, made = {}, []

    def look(*key):
        if key not in found:
            made.append(one := make(*key))
            return found.setdefault(key, one)
        return found[key]

    look.cache_clear = found.clear
    return functools.update_wrapper(look, make)


@intrinsic
def address(typing, words):
    """Where such words are."""
    return types.int64(words), lambda context, builder, signature, args: builder.ptrtoint(args[0], I64)
