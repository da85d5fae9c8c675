"""Compile the CUDA kernels of a set of calls, without a GPU: `python -m nbkernels warmup --cuda 9.0a`, and prebuild.

Each of `jobs` processes makes the calls on a card that is not there (cuda/rehearsal.py), and compiles those of their
kernels that it is told by name.
"""

from __future__ import annotations

import contextlib
import functools
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

WORK = {}  # what a process can be told to compile: name -> (kernel, architecture)


def chosen(names) -> list[tuple]:
    """The architectures that texts name; a ValueError where one names none."""
    from ..cuda import cubins

    return [cubins.parse(name) for name in names]


def calls(name, dtypes=(), only=()):
    """(label, function) of the calls that warmup.chosen selects, but use_in_numpy's, as cuda.rehearsal takes them."""
    from ..calls.call import IN_NUMPY
    from .warmup import chosen

    work = chosen(name, dtypes, only)
    return [(label, functools.partial(rehearsed, call)) for label, call in work if call.name != IN_NUMPY]


def rehearsed(call, stand):
    """Make a calls.call.Call on arrays of stand's."""
    from ..calls.described import Array, Dtype, each, value

    def made(x):
        if isinstance(x, Array):
            return stand(x.shape, value(Dtype(x.dtype)), x.strides, x.offset, x.memory)
        return value(x)

    function, keywords = call.function()
    args, keywords = each((list(call.args), keywords), made)
    return function(*args, **keywords)


def listed(calls, names) -> int:
    """Print the kernels of calls(), and where each one's code is."""
    from ..cuda import cubins
    from ..plots import columns

    prepare(calls, chosen(names))
    rows = ((f"{cubins.written(arch)} {kernel}", cubins.where(kernel, arch)) for kernel, arch in WORK.values())
    print(columns.fitted(rows, ["kernel", "code"], columns.room()))
    return 0


def run(calls, names, jobs=None, out=None, progress=True) -> int:
    """Compile the kernels of calls() for the architectures of these names that are not there yet, into the cache or
    into the folder `out`; 1 where a kernel or a call failed, which is named, else 0."""
    from tqdm import tqdm

    from ..jit.disk import files

    start, failed = time.perf_counter(), 0
    count, refused, made = build(calls, chosen(names), jobs, out)
    for call, error in refused.items():
        print(f"{call}: {error}", file=sys.stderr)
    with tqdm(made, "CUDA kernels", count, disable=not progress) as bar:
        for kernel, _, error in bar:
            bar.set_postfix_str(kernel, refresh=False)
            if error:
                failed += 1
                bar.write(f"{kernel}: {error}", file=sys.stderr)
    where = out or files.status()
    print(f"CUDA kernels: {count - failed} in {time.perf_counter() - start:.1f} s; compiled code: {where}")
    return 1 if failed or refused else 0


def build(calls, archs, jobs=None, out=None):
    """(number of kernels, {call: error} of calls that cannot be made, an iterator that compiles and yields (kernel,
    seconds, error or None) as each is done)"""
    from ..cuda import toolchain

    refused = prepare(calls, archs)
    toolchain.ready()  # an ImportError for all of them at once
    names = list(WORK)

    def made():
        context = multiprocessing.get_context("spawn")
        at_most = min(jobs or os.cpu_count() or 1, len(names) or 1)
        with ProcessPoolExecutor(at_most, context, child, (calls, archs)) as pool:
            try:
                for each in as_completed([pool.submit(compiled, name, out) for name in names]):
                    yield each.result()
            finally:
                pool.shutdown(cancel_futures=True)  # where who asked has had enough

    return len(names), refused, made()


APART = "from nbkernels.commands import cubins; cubins.serve()"


def apart(calls, archs, seconds):
    """Compile the kernels of calls() by a process of its own and its children, for so many seconds at most: yields (how
    many are done, of how many). In this process's place, whose main module its children would run again."""
    task, pipe = pickle.dumps((calls, archs, seconds)), subprocess.PIPE
    command = [sys.executable, "-c", APART]
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL) as made:
        with contextlib.suppress(BrokenPipeError), made.stdin:
            made.stdin.write(task)
        for line in made.stdout:
            yield tuple(map(int, line.split()))


def serve():
    """Compile, in a process of its own, the kernels of calls, and tell how many are done."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent hears it, and closes the pipe
    calls, archs, seconds = pickle.load(sys.stdin.buffer)
    end, (count, _, made) = time.perf_counter() + seconds, build(calls, archs)
    with contextlib.suppress(BrokenPipeError), contextlib.closing(made):
        for done, _ in enumerate(made, 1):
            print(done, count, flush=True)
            if time.perf_counter() > end:
                break


def prepare(calls, archs):
    """Fill WORK; {call: error} of calls that cannot be made."""
    from ..cuda import cubins, rehearsal

    WORK.clear()
    refused = {}
    for arch in archs:
        kernels, errors = rehearsal.kernels(calls(), arch)
        refused |= {call: f"{cubins.written(arch)}: {error}" for call, error in errors.items()}
        WORK.update((f"{cubins.written(arch)}/{cubins.name(kernel, arch)}", (kernel, arch)) for kernel in kernels)
    return refused


def child(calls, archs):
    """What a process begins with."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent hears it
    prepare(calls, archs)


def compiled(name, out):
    """(kernel, seconds, what went wrong in a line) of a kernel that is on disk afterwards."""
    from ..cuda import cubins

    (kernel, arch), start, error = WORK[name], time.perf_counter(), None
    try:
        if out is None:
            cubins.machine(kernel, arch)
        else:
            cubins.carry(kernel, arch, Path(out))
    except Exception as reason:
        error = " ".join(f"{type(reason).__name__}: {reason}".split())
    return f"{cubins.written(arch)} {kernel}", time.perf_counter() - start, error
