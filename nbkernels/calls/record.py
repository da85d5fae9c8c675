"""A record of calls: a file of lines of JSON, which NBKERNELS_RECORD=file writes, and `warmup --from` reads.

A line is written where a kernel is about to be compiled, or loaded from disk, for the first time in a process: of the
public call that led there, which its frame tells. So calls by kernels that are there cost nothing more.
"""

from __future__ import annotations

import json
import os
import sys
import threading

import numpy as np

from .. import methods
from ..array import Array, _plain
from ..dispatch.function import parameter
from ..dispatch.op import Op
from ..ops import LIBRARY
from ..quantized.weights import linear_q
from ..shield import in_children
from .call import IN_NUMPY, LINEAR_Q, OF_FUNCTIONS, VERSION, Call, named
from .described import PLAIN, Unfit

# -- reading ----------------------------------------------------------------------------------------------------------


def read(file, unfit):
    """The calls in a file; `unfit(what)` hears of each line that holds none, and why."""
    with open(file, encoding="utf-8", errors="replace") as lines:
        for number, line in enumerate(lines, 1):
            try:
                if line.strip():
                    yield Call.parse(line)
            except Unfit as error:
                unfit(f"{file}:{number}: {error}")


# -- writing ----------------------------------------------------------------------------------------------------------


class Record:
    """The file that calls of this process go to. Every process appends whole lines; one that is there comes once."""

    def __init__(self, file):
        self.file, self.lines, self.lock, self.torn = file, None, threading.Lock(), False
        in_children(self.lock._at_fork_reinit)

    def add(self, line):
        with self.lock:
            if self.lines is None:
                self.lines = self.there()
            if line not in self.lines:
                self.lines.add(line)
                self.append(("\n" * self.torn + line + "\n").encode())

    def there(self):
        """What earlier processes wrote; the last line of one that was ended may be torn."""
        if not os.path.isfile(self.file):
            return set()
        with open(self.file, encoding="utf-8", errors="replace") as lines:
            text = lines.read()
        self.torn = not text.endswith("\n") and bool(text)
        return set(text.splitlines())

    def append(self, content):
        """In one write to the end of the file, which systems let no other process's write come between."""
        handle = os.open(self.file, os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o666)
        try:
            written = os.write(handle, content)
        finally:
            os.close(handle)
        self.torn = written < len(content)
        if self.torn:
            raise OSError(f"{written} of {len(content)} bytes could be written")


def recorder(file):
    """The function that the compiler calls before it compiles or loads a kernel; it never raises."""
    record, off = Record(os.path.abspath(file)), []

    def note():
        if not off:
            try:
                record.add(call_of(sys._getframe(1)))
            except Exception as error:
                off.append(error)
                print(f"nbkernels: no longer recorded in {file}: {type(error).__name__}: {error}", file=sys.stderr)

    return note


def call_of(frame) -> str:
    """The line of the innermost call, outwards from a frame, that can be described, or of the reason why none can."""
    reason = None
    while frame is not None:
        try:
            call = described(frame)
            if call is not None:
                return call.line()
        except Exception as error:  # what arrays of other libraries raise, too
            reason = reason or f"{frame.f_code.co_name}: {error if isinstance(error, Unfit) else repr(error)}"
        frame = frame.f_back
    return json.dumps({"nbkernels": VERSION, "unfit": reason or "a kernel inside of a jitted function, or of a tool"})


def described(frame):
    """The public call whose frame this is, or None where it is another function's."""
    code, values = frame.f_code, frame.f_locals
    if code is methods.at.__code__:
        return Call.of(f"{values['op']}.at", values["self"], values["indices"], values["other"])
    if code is Array.__add__.__code__:  # that of every operator
        x, y = map(_plain, (values["self"], values["other"]))
        return Call.of(
            values["op"], *((y, x) if values["turned"] else (x, y)), **({"out": x} if values["in_place"] else {})
        )
    if code is linear_q.__code__:
        given = {name: values[name] for name, default in KEYWORDS[LINEAR_Q].items() if not usual(values[name], default)}
        return Call.of(LINEAR_Q, values["given"], values["w"], **given)
    for name, kind in OF_FUNCTIONS.items():
        if code is kind.__call__.__code__:
            return of_function(name, values)
    slot = getattr(sys.modules.get("nbkernels.in_numpy.inner_loops"), "Slot", None)
    if slot and code is slot.compile.__code__:
        loop = values["self"].loop
        return Call.of(IN_NUMPY, loop.ufunc.__name__, *(np.empty(1, dtype) for dtype in loop.dtypes[:-1]))
    if slot and code is slot.take.__code__:
        return Call.of(IN_NUMPY)
    op = getattr(frame.f_globals.get("__general"), "__self__", None)
    if not isinstance(op, Op) or op.library is not LIBRARY:
        return None
    given = [(argument, values[parameter(argument.name)]) for argument in op.arguments]
    args = [value for argument, value in given if not argument.keyword_only]
    keywords = {a.name: value for a, value in given if a.keyword_only and not usual(value, a.value)}
    if values.get("out") is not None:
        keywords["out"] = values["out"]
    if code.co_name in ("reduce", "accumulate"):  # ops that take the name of another: its methods
        self, op, axis = args
        return Call.of(f"{op}.{code.co_name}", self, axis=axis, **keywords)
    return Call.of(code.co_name, *args, **keywords)


def of_function(name, values):
    """A call of what `elementwise` or `epilogue` made of a function, by the locals of its frame."""
    apply = getattr(values["self"], "apply", values["self"])
    args = (
        values["args"] if name == "elementwise" else (*map(values.get, ("input", "mat1", "mat2")), *values["operands"])
    )
    keywords = {key: values[key] for key in KEYWORDS[name] if not usual(values[key], KEYWORDS[name][key])}
    dtypes = {"dtypes": list(apply.dtypes)} if apply.dtypes else {}
    return Call.of(name, *args, function=named(apply.function), **dtypes, **keywords)


KEYWORDS = {  # and their defaults
    "elementwise": dict(out=None, where=None),
    LINEAR_Q: dict(bias=None, activation=None, dynamic=False),
    "epilogue": dict(beta=1, alpha=1, out=None, before=None, out_dtype=None, mode=None, conj=None, tiles=None),
}


def usual(value, default):
    return value is default or (type(value) is type(default) and type(value) in PLAIN and value == default)
