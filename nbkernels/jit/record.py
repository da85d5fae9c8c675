"""Record: int64 words in memory by their names. Compiled code reads `f.kc`, writes `f.kc = 256`, and `f.low[p] = 0`
where a name has several words.

What threads share and what one compiled function tells another stand in such words; a Record says once which there are.
"""

from __future__ import annotations

from array import array
from operator import itemgetter

from numba import types
from numba.core.typing.templates import AttributeTemplate
from numba.extending import (
    infer_getattr,
    intrinsic,
    lower_cast,
    lower_getattr_generic,
    lower_setattr_generic,
    models,
    register_model,
)

from .vector import I64, LINE


class Record:
    """
    >>> pair = Record("Pair", "next jobs | done")  # what follows a bar begins a cache line of its own
    >>> pair["jobs"], pair["done"], pair.words, pair.bytes
    (1, 8, 16, 128)
    >>> Record("Rows", "count starts[3] steps[3]")["steps"]  # of several words the first; `f.steps` points there
    4
    """

    def __init__(self, name: str, words: str):
        self.name, self.text, self.places, self.counts, each = name, words, {}, {}, LINE // 8
        self.words = 0
        for line in words.split("|"):
            for word in line.split():
                word, _, count = word.rstrip("]").partition("[")
                self.places[word], self.counts[word] = self.words, int(count or 0)
                self.words += int(count or 1)
            self.words = -(-self.words // each) * each
        self.type = RecordType(self)
        items = {word: _item(place, self.counts[word]) for word, place in self.places.items()}
        self.python = type(name, (array,), items)

    @property
    def bytes(self) -> int:
        return 8 * self.words

    def __getitem__(self, word: str) -> int:
        """The place of a word, as what goes by a number has it: atomic operations, and Python's arrays of words."""
        return self.places[word]

    def array(self, content: bytes | None = None) -> array:
        """The words from Python: an array, zero or of such bytes, whose items have these names as well."""
        return self.python("q", bytes(self.bytes) if content is None else content)

    @property
    def kernel(self):
        """The signature of what threads run: void(words, task)."""
        return types.void(self.type, types.int64)

    def pointer(self):
        """An intrinsic: the words at an address."""
        kind = self.type

        @intrinsic
        def at(typing, address):
            def emit(context, builder, signature, args):
                return builder.inttoptr(args[0], I64.as_pointer())

            return kind(types.int64), emit

        return at


def _item(place, count):
    if count:  # several words
        part = slice(place, place + count)
        return property(
            lambda words: memoryview(words)[part],
            lambda words, values: memoryview(words).__setitem__(part, array("q", values)),
        )
    return property(itemgetter(place), lambda words, value: words.__setitem__(place, value))


class RecordType(types.CPointer):
    """The Numba type of a pointer to such words; by a number they are reached as those of any other pointer."""

    def __init__(self, record: Record):
        super().__init__(types.int64)
        self.record, self.name = record, f"Record({record.name})"

    @property
    def key(self):
        return self.name, *self.record.places.items(), *self.record.counts.values()

    def __reduce__(self):
        return _type, (self.record.name, self.record.text)


def _type(name, words):
    """As it comes back from a pickle: compiled code keeps its signature."""
    return Record(name, words).type


register_model(RecordType)(models.PointerModel)


@infer_getattr
class _Words(AttributeTemplate):
    key = RecordType

    def generic_resolve(self, kind, name):
        count = kind.record.counts.get(name)
        return None if count is None else types.CPointer(types.int64) if count else types.int64


def _place(builder, kind, value, name):
    return builder.gep(value, [I64(kind.record[name])])


@lower_getattr_generic(RecordType)
def _read(context, builder, kind, value, name):
    place = _place(builder, kind, value, name)
    return place if kind.record.counts[name] else builder.load(place)


@lower_setattr_generic(RecordType)
def _write(context, builder, signature, args, name):
    builder.store(args[1], _place(builder, signature.args[0], args[0], name))


@lower_cast(RecordType, types.CPointer)
def _plain(context, builder, kind, to, value):
    return value


@intrinsic
def address(typing, words):
    """Where such words are."""
    return types.int64(words), lambda context, builder, signature, args: builder.ptrtoint(args[0], I64)
