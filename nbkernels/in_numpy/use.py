"""use_in_numpy: the requests of this process, and NumPy patched as all of them together ask."""

from __future__ import annotations

import sys
import weakref
from _thread import RLock, get_ident

from .. import watch
from ..shield import Block, Step, in_children

_lock = RLock()
_standing: list[use_in_numpy] = []  # those that hold until use_in_numpy(False)
# The threads and those whose block is open there, and those whose block asks that nothing be replaced.
_open: list[tuple[int, weakref.ref[use_in_numpy]]] = []
_pausing: list[tuple[int, weakref.ref[use_in_numpy]]] = []
_applying: list[None] = []  # calls of `apply` that are under way, one within the other
_taken: dict = {}  # slots whose loops are replaced now, in order


def _wishes() -> list[use_in_numpy]:
    """The use_in_numpy objects in force: the standing ones, then those of open blocks."""
    return _standing + _living(_open)


def _living(blocks):
    return [each for _, block in blocks if (each := block()) is not None]


def _wanted(wishes) -> dict:
    """loop -> elements from which on it is ours, None where it is only counted."""
    from .which import chosen, every

    found = dict.fromkeys(every()) if watch.watching() else {}
    for each in [] if _living(_pausing) else wishes:
        for loop, least in chosen(each.wish).items():
            found[loop] = least if found.get(loop) is None else min(least, found[loop])
    return found


def apply() -> None:
    """Replace what is wanted and is not replaced; give back what is not wanted any more."""
    with _lock:
        _applying.append(None)
        if len(_applying) > 1:  # the collector has found a block in the midst of it, which begins again
            return
        try:
            calls = 0
            while calls < len(_applying):
                calls = len(_applying)
                _apply()
        finally:
            _applying.clear()


def _apply():
    wishes = _wishes()
    wanted = _wanted(wishes) if wishes else {}
    for slot in [slot for slot in _taken if slot.loop not in wanted]:
        slot.give_back()
        del _taken[slot]
    if wanted:
        from .inner_loops import slots  # Numba comes with it

        counted = watch.watching() > 0
        for slot in slots(list(wanted)):
            least, _taken[slot] = wanted[slot.loop], None
            slot.take(least is not None, least or 0, counted)
            slot.why = _refused(slot.loop) if least is None else ""
    patched = [] if _living(_pausing) else [each.wish for each in wishes if each.wish.functions]
    if patched or f"{__package__}.functions" in sys.modules:
        from .functions import patch

        patch(patched)


def _found(block) -> None:
    """The one whose block it was is gone, and its end was never called."""
    with _lock:
        for blocks in (_open, _pausing):
            blocks[:] = [each for each in blocks if each[1] is not block]
    Step(apply).make()


def _after_fork() -> None:
    """Other threads change nothing in the child."""
    _lock._at_fork_reinit()
    _applying.clear()


in_children(_after_fork)


def _refused(loop) -> str:
    """Why a loop, of those that are counted, is NumPy's own."""
    if _living(_pausing):
        return "use_in_numpy(False) holds"
    whys = [each.wish.least(loop)[1] for each in _wishes()]
    return "" if "" in whys else whys[-1] if whys else "use_in_numpy is off"


class use_in_numpy(Block):
    """use_in_numpy(True) or with use_in_numpy(): NumPy's own ufuncs run our kernels, in code that nobody edits

    Replaced are the inner loops of `@`, `np.matmul`, `vecdot`, `matvec`, `vecmat` and of element-wise ufuncs, for the
    dtypes that were measured faster here than in NumPy: integers and float16 for most. It holds for the whole process,
    all threads; the old loops come back where the block ends, however it ends, or with `use_in_numpy(False)`, which as
    a block turns it off for as long. Blocks may be nested and may cross in threads: what any of them asks for holds,
    and `use_in_numpy(False)` leaves the blocks of other threads alone.

    floats: also products of float32, float64 and complex numbers, and what else of these was measured faster.
    names, dtypes: only these ufuncs, only these dtypes; where both are given, whether it was measured faster or not.
    functions: also np.dot, inner, tensordot, einsum of two operands and linalg.multi_dot, which are patched.

    Raises TypeError and ValueError for names and dtypes that there are not, RuntimeError for a NumPy whose C table is
    unknown.

    >>> import numpy as np, nbkernels
    >>> a = np.arange(6, dtype=np.int32).reshape(2, 3)
    >>> with nbkernels.use_in_numpy():
    ...     a @ a.T
    array([[ 5, 14],
           [14, 50]], dtype=int32)
    """

    def __init__(self, on: bool = True, *, floats=False, names=None, dtypes=None, functions=False):
        if not isinstance(on, bool):
            raise TypeError(f"use_in_numpy: True or False is wanted, not {on!r}")
        from .table import check  # what this library is imported with stays small
        from .which import wish

        self.on, self.wish, self._depth = on, wish(floats, names, dtypes, functions), 0
        self._removed: tuple[list, list] = [], []
        check()
        try:
            Step(self._ask).make()
        except BaseException:
            Step(self._take_back).make()
            raise

    def _ask(self) -> None:
        """What it asks for without a block."""
        with _lock:
            if self.on:
                _standing.append(self)
            else:
                self._removed = _standing[:], [each for each in _open if each[0] == get_ident()]
                _standing.clear()
                _open[:] = [each for each in _open if each[0] != get_ident()]
            apply()

    def _take_back(self) -> None:
        with _lock:
            self._withdraw()
            apply()

    def _withdraw(self) -> None:
        if self in _standing:
            _standing.remove(self)
        standing, blocks = self._removed
        _standing.extend(standing)
        _open.extend(each for each in blocks if (block := each[1]()) is not None and block._depth)
        self._removed = [], []

    def _begin(self) -> use_in_numpy:
        with _lock:
            self._withdraw()
            self._depth += 1
            (_open if self.on else _pausing).append((get_ident(), weakref.ref(self, _found)))
            apply()
        return self

    def _end(self) -> None:
        with _lock:
            blocks = _open if self.on else _pausing
            if found := [each for each in blocks if each[1]() is self]:  # else use_in_numpy(False) has ended it
                blocks.remove(found[-1])
            self._depth -= 1
            apply()

    _skip = _take_back
