"""python -m nbkernels run: a script or a module, as python itself runs it, under use_in_numpy."""

from __future__ import annotations

import contextlib
import os
import runpy
import sys

from ..watch import watch
from .use import use_in_numpy


def run(target: str, arguments: list[str], *, module=False, report=False, **how) -> None:
    """Run a script, or a module by its name, with sys.argv and sys.path as python has them; with `report` a table of
    NumPy's loops goes to standard error afterwards. Raises SystemExit where the program does, and where it fails, once
    its traceback has been printed."""
    if not module and not os.path.exists(target):
        print(f"run: there is no file {target!r}", file=sys.stderr)
        raise SystemExit(2)
    sys.argv[:] = [target, *arguments]
    sys.path[0] = os.getcwd() if module else os.path.dirname(os.path.abspath(target))
    log = None
    try:
        with use_in_numpy(**how), watch() if report else contextlib.nullcontext() as log:
            _program(target, module)
    finally:
        if report and log is not None:
            from .report import text

            sys.stdout.flush()
            print(text(log), file=sys.stderr)


def _program(target, module):
    """Its failures look as they do without us: no frame of ours is in the traceback."""
    try:
        if module:
            runpy.run_module(target, run_name="__main__", alter_sys=True)
        else:
            runpy.run_path(target, run_name="__main__")
    except SystemExit:
        raise
    except BaseException as error:
        trace = error.__traceback__
        while trace and (trace.tb_frame.f_code.co_filename in (__file__, runpy.__file__) or _frozen(trace)):
            trace = trace.tb_next
        sys.excepthook(type(error), error.with_traceback(trace), trace)
        raise SystemExit(130 if isinstance(error, KeyboardInterrupt) else 1) from None


def _frozen(trace) -> bool:
    """Whether it is a frame of runpy's, as Python carries it."""
    return trace.tb_frame.f_code.co_filename.startswith("<frozen runpy")
