"""Python first: what compiled code does for later calls is done in Python for the first ones, where that takes less
than to compile it: 0.1 to 10 ms a call, for 0.5 to 3 s. A program that makes a few calls never waits for that code, nor
does one whose cache or package has it: it is loaded then. How many calls of a kind are the first ones:
nbkernels/first_calls.py.
"""

from __future__ import annotations

import sys

from .. import first_calls
from .cache import recorded
from .kept import on_disk


class Patience:
    """Counts the calls of one kind. `code`: the name, a glob pattern, of what is compiled for later ones."""

    def __init__(self, code: str = ""):
        self.code, self.calls, self.waits = code, 0, True  # until a call is none of the first: what is asked each time

    def __call__(self) -> bool:
        """Whether this call is one of the first."""
        self.calls += 1
        self.waits = self.lasts()
        if self.waits:
            recorded()
        return self.waits

    def lasts(self, code: str = "") -> bool:
        """Whether the call that was counted last was one; `code`: what a call of its kind needs later, beside."""
        if not 0 < first_calls.CALLS >= self.calls:
            return False
        if self.code and on_disk(self.code):
            self.calls = sys.maxsize  # for good, and soon told
            return False
        return not (code and on_disk(code))
