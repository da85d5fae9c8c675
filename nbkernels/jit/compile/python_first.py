"""First calls of a kind made in Python, without compilation, where that takes less time than compiling.
A call takes 0.1 to 10 ms so, compilation 0.5 to 3 s. A program that makes a few calls never waits for that code, nor
does one whose cache or package has it: it is loaded then. nbkernels/first_calls.py says how many calls of a kind are
first ones. After as many, the next calls, up to the same number, are made again in a thread of its own
(nbkernels/background.py), which compiles for them; each call goes on as a first one until that is done.
"""

from __future__ import annotations

import sys

from ... import background, first_calls
from ..disk.cached_code import on_disk
from .cache import recorded


class Patience:
    """Counts the calls of one kind. `code`: the name, a glob pattern, of what is compiled for later ones."""

    def __init__(self, code: str = ""):
        self.code, self.calls, self.waits = code, 0, True  # until a call is none of the first: what is asked each time
        self.made = False  # whether what the last call needs is there, although it is none of the first

    def __call__(self, large: bool = False) -> bool:
        """Whether this call is one of the first. `large`: one that takes long, so that what later ones need is compiled
        from now on."""
        if background.here():
            return False
        calls = first_calls.CALLS
        self.calls = max(self.calls, calls * large) + 1
        over = self.calls > 2 * calls
        if self.waits and self.calls > calls > 0:
            self.made = not background.busy() if over else background.made(sys._getframe(1))
        lasts = self.lasts()
        self.waits = lasts or not over
        if lasts:
            recorded()
        return lasts

    def lasts(self, code: str = "") -> bool:
        """Whether the call that was counted last was one; `code`: what a call of its kind needs later, beside."""
        if first_calls.CALLS < 1 or background.here() or (self.made and self.calls > first_calls.CALLS):
            return False
        if self.code and on_disk(self.code):
            self.calls, self.made = sys.maxsize, True  # for good, and soon told
            return False
        return not (code and on_disk(code))
