"""use_in_numpy: what is asked of this process, and NumPy as all of that wants it."""

from __future__ import annotations

import os
import sys
from _thread import RLock

from .. import watch

_lock = RLock()
if hasattr(os, "register_at_fork"):  # in a child there is nobody to open it
    os.register_at_fork(after_in_child=_lock._at_fork_reinit)
_wishes: list[use_in_numpy] = []  # those that hold
_paused: list[use_in_numpy] = []  # those that ask that nothing be replaced
_taken: dict = {}  # slots whose loops are replaced now, in order


def _wanted() -> dict:
    """loop -> elements from which on it is ours, None where it is only counted."""
    from .which import chosen, every

    found = dict.fromkeys(every()) if _wishes and watch.watching() else {}
    for each in [] if _paused else _wishes:
        for loop, least in chosen(each.wish).items():
            found[loop] = least if found.get(loop) is None else min(least, found[loop])
    return found


def apply() -> None:
    """Replace what is wanted and is not replaced; give back what is not wanted any more."""
    with _lock:
        wanted = _wanted() if _wishes else {}
        for slot in [slot for slot in _taken if slot.loop not in wanted]:
            slot.give_back()
            del _taken[slot]
        if wanted:
            from .slots import slots  # Numba comes with it

            counted = watch.watching() > 0
            for slot in slots(list(wanted)):
                least = wanted[slot.loop]
                slot.take(least is not None, least or 0, counted)
                slot.why = _refused(slot.loop) if least is None else ""
                _taken[slot] = None
        patched = [] if _paused else [each.wish for each in _wishes if each.wish.functions]
        if patched or f"{__package__}.functions" in sys.modules:
            from .functions import patch

            patch(patched)


def _refused(loop) -> str:
    """Why a loop, of those that are counted, is NumPy's own."""
    if _paused:
        return "use_in_numpy(False) holds"
    whys = [each.wish.least(loop)[1] for each in _wishes]
    return "" if "" in whys else whys[-1] if whys else "use_in_numpy is off"


class use_in_numpy:
    """use_in_numpy(True) or with use_in_numpy(): NumPy's own ufuncs run our kernels, in code that nobody edits

    Replaced are the inner loops of `@`, `np.matmul`, `vecdot`, `matvec`, `vecmat` and of element-wise ufuncs, for the
    dtypes that were measured faster here than in NumPy: integers and float16 for most. It holds for the whole process,
    all threads; the old loops come back where the block ends, however it ends, or with `use_in_numpy(False)`, which as
    a block turns it off for as long. Blocks may be nested and may cross in threads: what any of them asks for holds.

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
        self._removed: list = []
        check()
        with _lock:
            if on:
                _wishes.append(self)
            else:
                self._removed = [each for each in _wishes if not each._depth]
                for each in self._removed:
                    _wishes.remove(each)
            apply()

    def __enter__(self) -> use_in_numpy:
        with _lock:
            self._depth += 1
            if not self.on:
                _wishes.extend(self._removed)
                self._removed = []
                _paused.append(self)
            elif self._depth > 1 or self not in _wishes:
                _wishes.append(self)
            apply()
        return self

    def __exit__(self, *exception) -> None:
        with _lock:
            self._depth -= 1
            (_wishes if self.on else _paused).remove(self)
            apply()
