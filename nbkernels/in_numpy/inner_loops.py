"""Slots: replaced inner loops of NumPy, each with the words that our compiled code reads, and its kernel."""

from __future__ import annotations

import _thread
import ctypes
import functools
import time
import traceback
import warnings

import numpy as np

from ..cpu.elementwise import elementwise
from ..cpu.numpy_loops import elementwise as inner
from ..cpu.numpy_loops import products as inner_products
from ..cpu.numpy_loops.elementwise import SLOT
from ..jit.abi.trampolines import trampolines
from . import table
from .which import OURS, PRODUCTS, QUIET, RESTING, SINKING, Loop, every, possible

FORMS = dict(zip(PRODUCTS, (inner.MATMUL, inner.VECDOT, inner.MATVEC, inner.VECMAT)))
LINE = 8  # words of a cache line: threads that count in two slots do not share one
_slots: dict[tuple[str, str], Slot] = {}  # made once, kept for ever: a thread may be in one at any time


_at: dict[int, Slot] = {}  # by the address of its words


class Slot:
    """One loop of one ufunc; `replaced` while NumPy calls our trampoline in its place; `why` it is only counted."""

    def __init__(self, loop: Loop, words: np.ndarray):
        self.loop, self.words, self.original = loop, words, 0
        self.address, self.trampoline, self.replaced, self.failure, self.why = words.ctypes.data, 0, False, "", ""

    def take(self, ours: bool, least: int, counted: bool = False) -> None:
        """Let NumPy call this slot: our kernel from `least` elements on, or its own loop; small calls `counted`."""
        w, body = self.words, self.body() if ours else inner.other()
        w[SLOT["least"]], w[SLOT["gate"]] = least, 0 if counted else -1 if self.loop.product else least
        if self.loop.product:
            inner_products.prepare(w, self.loop.dtypes[0], always=ours and least == 0)
        if not self.replaced:
            w[SLOT["body"]] = inner.other()
            old = table.replace(self.loop.ufunc, self.loop.types, self.trampoline, self.address + 8 * SLOT["old"])
            self.original = self.original or old
            if old != self.original:  # it may call ours, as what it has replaced
                table.replace(self.loop.ufunc, self.loop.types, old)
                w[SLOT["old"]] = self.original
                return
            self.replaced = True
        w[SLOT["body"]] = body

    def give_back(self) -> None:
        """NumPy has its own loop again, or whoever's has replaced ours since."""
        if not self.replaced:
            return
        last = table.replace(self.loop.ufunc, self.loop.types, self.original)
        if last != self.trampoline:
            table.replace(self.loop.ufunc, self.loop.types, last)
        self.replaced = False

    def body(self) -> int:
        return inner_products.products() if self.loop.product else inner.elementwise()

    def compile(self) -> None:
        """Enter the kernel in the words."""
        if self.loop.product:
            name, conjugated = self.loop.dtypes[0], self.loop.ufunc.__name__ in ("vecdot", "vecmat")
            inner_products.fill(self.words, name, "a" if conjugated and name.startswith("complex") else "")
        else:
            self.words[SLOT["kernel"]] = _elementwise(self.loop)

    @property
    def of_stacks(self) -> bool:
        """Whether stacks of small matrices alone are for our kernel."""
        return bool(self.words[SLOT["smalls"]])

    def counts(self) -> np.ndarray:
        """Calls and work, by what became of them: rows in the order of inner.COUNTED."""
        return self.words[inner.HERE : inner.HERE + 2 * len(inner.COUNTED)].reshape(-1, 2).copy()


def _elementwise(loop: Loop) -> int:
    *inputs, result = map(np.dtype, loop.letters)
    return elementwise.loop(OURS[loop.ufunc.__name__], inputs[0], inputs[-1], result)


def _interrupt():
    time.sleep(0.01)  # now it would come to _make once more
    _thread.interrupt_main()


@ctypes.CFUNCTYPE(None, ctypes.c_int64)
def _make(address):
    """What a slot's first call reaches: compile its kernel."""
    slot = _at[address]
    try:
        slot.compile()
    except KeyboardInterrupt:  # for the program, which is inside NumPy now: the next call begins again
        slot.words[SLOT["maker"]] = maker()
        _thread.start_new_thread(_interrupt, ())  # threading's waits until one runs, and Ctrl-C would come here
    except BaseException as error:
        slot.failure = f"{type(error).__name__}: {error}"
        try:
            warnings.warn(f"use_in_numpy: {slot.loop} stays NumPy's: {slot.failure}", RuntimeWarning, stacklevel=1)
        except Warning:
            traceback.print_exc()


def maker() -> int:
    return ctypes.cast(_make, ctypes.c_void_p).value


def slots(loops: list[Loop]) -> list[Slot]:
    """The slots of these loops, made at once where they are new."""
    new = [loop for loop in loops if loop.key not in _slots]
    if new:
        made = [Slot(loop, row) for loop, row in zip(new, _room(len(new)))]
        for slot, slot.trampoline in zip(made, trampolines([slot.address for slot in made])):
            w, letters = slot.words, slot.loop.letters
            w[SLOT["maker"]], w[SLOT["inputs"]] = maker(), slot.loop.ufunc.nin
            w[SLOT["form"]] = FORMS.get(slot.loop.ufunc.__name__, inner.ELEMENTWISE)
            name = slot.loop.ufunc.__name__
            special = inner.SINKING if name in SINKING else inner.RESTING if name in RESTING else 1
            w[SLOT["floats"]] = special if slot.loop.of_floats and name not in QUIET else 0
            w[SLOT["widths"] : SLOT["widths"] + len(letters)] = [np.dtype(letter).itemsize for letter in letters]
            _slots[slot.loop.key] = _at[slot.address] = slot
    return [_slots[loop.key] for loop in loops]


@functools.cache
def _rooms() -> list:
    return []


def _room(count: int) -> np.ndarray:
    """Words for so many slots, each from a cache line on, which stay where they are."""
    size = -(-SLOT.words // LINE) * LINE
    room = np.zeros((count + 1) * size, np.int64)
    _rooms().append(room)
    start = -room.ctypes.data % (8 * LINE) // 8
    return room[start : start + count * size].reshape(count, size)


def warm(name: str | None = None, *operands) -> None:
    """Compile what a ufunc of such operands needs under use_in_numpy; without a name, what every block needs."""
    for body in (inner.other, inner.elementwise, inner_products.products):
        body()
    if name is not None:
        dtypes = tuple(x.dtype.name for x in operands)
        loops = [loop for loop in every() if loop.key[0] == name and loop.dtypes[:-1] == dtypes and not possible(loop)]
        if not loops:
            raise TypeError(f"use_in_numpy has no kernel for {name} of {', '.join(dtypes)}")
        (slot,) = slots(loops[:1])
        if slot.loop.product and not slot.replaced:
            inner_products.prepare(slot.words, dtypes[0], always=False)
        slot.compile()


def all_slots() -> list[Slot]:
    """Every slot that was ever made."""
    return list(_slots.values())
