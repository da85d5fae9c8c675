"""Compile the kernels of a set of calls into the cache: `python -m nbkernels warmup`."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor, wait
from fnmatch import fnmatchcase

from tqdm import tqdm

from ..calls import sets
from ..calls.call import Call
from ..calls.described import Unfit
from ..explain import explain
from ..plots import columns

# Operations whose kernels are the same, for one dtype.
PRODUCTS = frozenset("mm addmm addmm_activation linear matmul bmm baddbmm addbmm outer addr".split())
GRACE = 3  # seconds that an interrupted process has for the kernel that it compiles: a product's may take longer
CHILD = "from nbkernels.commands import warmup; warmup.serve()"
DEAF = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)"  # the parent hears it, and ends its children


class Nothing(ValueError):
    """Why there is nothing to compile."""


def chosen(name, dtypes=(), only=()) -> list[tuple[str, Call]]:
    """(label, call) of a set or a recorded file, of arrays of these dtypes, with one of these patterns in the label."""
    work = sets.calls(name, lambda what: print(f"warmup: {what}", file=sys.stderr))
    if not work:
        raise Nothing(f"{name} holds no call")
    if dtypes:
        work = [(label, call) for label, call in work if call.dtypes() & set(dtypes)]
        if not work:
            raise Nothing(f"no call of {name} has arrays of {', '.join(dtypes)}")
    for pattern in only:
        if not any(matches(label, pattern) for label, _ in work):
            raise Nothing(f"no call of {name} matches {pattern!r}; --list prints them")
    return [(label, call) for label, call in work if not only or any(matches(label, pattern) for pattern in only)]


def matches(label, pattern):
    return pattern in label or fnmatchcase(label, pattern)


def listed(work) -> str:
    """A table of the calls and of the code that does most of each one's work: where it is now."""
    return columns.fitted([(label, "; ".join(code(call))) for label, call in work], ["call", "code"], columns.room())


def code(call) -> list[str]:
    """What `explain` says of the compiled code of a call and its parts; of what it does not explain, nothing."""
    with contextlib.suppress(Exception):  # which the call itself will raise, and warmup name
        function, args, keywords = call.made()
        found = explain(function, *args, **keywords)
        return list(dict.fromkeys(part.code for part in found.parts or (found,) if part.code))
    return []


def groups(work):
    """Lists of calls that share kernels, for one process each to compile: those of one operation and dtype."""
    found = {}
    for label, call in work:
        name = "product" if call.name in PRODUCTS else call.name.rstrip("_")
        found.setdefault((name, *sorted(call.dtypes())), []).append((label, call))
    return sorted(found.values(), key=len, reverse=True)


def run(work, jobs=None, progress=True) -> int:
    """Make every call once, in `jobs` processes; says how many, the time, and where the compiled code is. 1 where one
    of them failed, which is named, else 0."""
    from ..jit.disk import files

    start, failed = time.perf_counter(), []
    parts = groups(work)
    jobs = min(jobs or os.cpu_count() or 1, len(parts))
    with tqdm(total=len(work), desc="warmup", disable=not progress) as bar:

        def done(label, error):
            bar.update()
            if error:
                failed.append(label)
                bar.write(f"warmup: {label}: {error}", file=sys.stderr)

        if jobs == 1:
            for label, call in work:
                bar.set_postfix_str(label, refresh=False)
                done(label, attempt(call))
        else:
            share(parts, jobs, lambda label: bar.set_postfix_str(label, refresh=False), done)
    took = f"{time.perf_counter() - start:.1f} s"
    print(columns.line(f"{len(work) - len(failed)} calls in {took}; compiled code: {files.status()}", columns.room()))
    return 1 if failed else 0


def attempt(call):
    """Make a call, twice, as some kernels are for calls like an earlier one, and a product by every path, for costs are
    another machine's; what went wrong, in one line, or None."""
    from .. import first_calls
    from ..cpu.gemm import cost, paths

    first_calls.CALLS = 0
    try:
        call()
        call()
        for way in cost.WAYS if call.name in PRODUCTS and call.dtypes() <= set(cost.DTYPES) else ():
            with paths.only(way):
                call()
    except (Exception, SystemExit) as error:
        what = str(error) if isinstance(error, Unfit) else f"{type(error).__name__}: {error}"
        return " ".join(what.split()) or type(error).__name__
    return None


# -- processes --------------------------------------------------------------------------------------------------------


def share(parts, jobs, begun, done, child=None):
    """Let `jobs` processes, which child() makes, make the calls, a part after the other each."""
    waiting, lock = queue.SimpleQueue(), threading.Lock()
    for part in parts:
        waiting.put(part)

    def work(child):
        with contextlib.closing(child), contextlib.suppress(queue.Empty):
            while not child.stopped:
                for label, call in waiting.get_nowait():
                    with lock:
                        begun(label)
                    error = child.make(call)
                    if child.stopped:
                        return
                    with lock:
                        done(label, error)

    children = [(child or Child)() for _ in range(jobs)]
    with ThreadPoolExecutor(jobs) as pool:
        threads = [pool.submit(work, each) for each in children]
        try:
            while wait(threads, timeout=0.2).not_done:  # a wait without a timeout hears no Ctrl-C on Windows
                pass
        finally:
            for each in children:
                each.stop()
            if wait(threads, timeout=GRACE).not_done:
                for each in children:
                    each.stop(at_once=True)
        for thread in threads:
            thread.result()


class Child:
    """A process that makes calls which it is told as lines, one at a time; started again where a call ended it. All but
    `stop` is for one thread."""

    def __init__(self, code=CHILD, **environment):
        self.code, self.environment = code, environment
        self.process, self.stopped, self.lock = None, False, threading.Lock()

    def make(self, call):
        """What went wrong with the call, or None."""
        if self.process is None:
            with self.lock:
                if self.stopped:
                    return None
                environment = {key: value for key, value in os.environ.items() if key != "NBKERNELS_RECORD"}
                command, pipe = [sys.executable, "-c", f"{DEAF}; {self.code}"], subprocess.PIPE
                self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, env=environment | self.environment)
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.write(call.line().encode() + b"\n")
            self.process.stdin.flush()
        answer = self.process.stdout.readline()
        return json.loads(answer) if answer.endswith(b"\n") else f"its process ended with status {self.close()}"

    def close(self):
        """Let the process end, which waits for a line; its status."""
        with self.lock:
            process, self.process = self.process, None
        if process is None:
            return None
        for pipe in (process.stdin, process.stdout):
            with contextlib.suppress(BrokenPipeError):
                pipe.close()
        return process.wait()

    def stop(self, at_once=False):
        """Ask the process to end once the kernel that it compiles is on disk, or end it, and start no other one. Files
        are whole in either case, for they appear by a rename."""
        with self.lock:
            self.stopped = True
            if self.process is not None:
                (self.process.kill if at_once else self.process.terminate)()


def serve():
    """What a child does: for each line that comes in, make the call, and say what went wrong."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # heard after a compilation, which shield.py lets end
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what a user's module prints is no answer
    with contextlib.suppress(KeyboardInterrupt, BrokenPipeError):
        for line in sys.stdin:
            answers.write(json.dumps(attempt(Call.parse(line))) + "\n")
            answers.flush()
