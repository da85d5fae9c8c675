"""Words, locks, cores and the GIL, as several threads of jitted code share them."""

from __future__ import annotations

import sys

from llvmlite import ir

from ..compile.lazy import cgutils, emits
from ..ir.vector import I32, I64, library
from .address import c_function

SPINS = 1 << 14  # looks at a word, about 10 us of them, before the thread gives its core away
CORES = 1024  # of a machine, as C libraries count them


@emits("int64(words, int64)")
def take(builder, words, index):
    """words[index]++ seen by all threads; the value before."""
    return builder.atomic_rmw("add", builder.gep(words, [index]), I64(1), "monotonic")


def _atomic(operation):
    @emits("void(words, int64, int64)")
    def change(builder, words, index, value):
        builder.atomic_rmw(operation, builder.gep(words, [index]), value, "monotonic")

    return change


add_to, set_in = _atomic("add"), _atomic("or")  # words[index] += value, |= value, seen by all threads


@emits("int64(words, int64, int64)")
def take_from(builder, words, index, back):
    """One of words[index + 1] jobs, each given away once among all threads, or -1: from the front on, or, if `back`,
    from the back, so that in call after call each of two threads finds its own half in its own caches."""
    back = builder.icmp_signed("!=", back, I64(0))
    mine = builder.select(back, I64(1 << 32), I64(1))
    taken = builder.atomic_rmw("add", builder.gep(words, [index]), mine, "monotonic")
    front, behind = builder.and_(taken, I64((1 << 32) - 1)), builder.lshr(taken, I64(32))
    jobs = builder.load(builder.gep(words, [builder.add(index, I64(1))]))
    job = builder.select(back, builder.sub(builder.sub(jobs, I64(1)), behind), front)
    return builder.select(builder.icmp_signed("<", builder.add(front, behind), jobs), job, I64(-1))


@emits("void(words, int64, int64)")
def wait(builder, words, index, value):
    """Until words[index] >= value: what other threads wrote before they arrived is then seen."""
    word, spins = builder.gep(words, [index]), cgutils.alloca_once_value(builder, I64(0))
    again, done = builder.append_basic_block("wait"), builder.append_basic_block("seen")
    builder.branch(again)
    builder.position_at_end(again)
    seen = builder.icmp_signed(">=", builder.load_atomic(word, "acquire", 8), value)
    spun = builder.add(builder.load(spins), I64(1))
    builder.store(spun, spins)
    with builder.if_then(builder.icmp_signed("==", builder.and_(spun, I64(SPINS - 1)), I64(0)), likely=False):
        _pass(builder)
    builder.cbranch(seen, done, again)
    builder.position_at_end(done)


def _pass(builder):
    """Let another thread run on this core, if one waits for it: the one waited for may have none."""
    if sys.platform != "win32":
        library(builder, "sched_yield", I32)


@emits("int64(words, int64)")
def seen(builder, words, index):
    """words[index], and with it all that its writer wrote before."""
    return builder.load_atomic(builder.gep(words, [index]), "acquire", 8)


@emits("int64(words, int64, int64)")
def exchange(builder, words, index, value):
    """words[index] = value, with all that this thread has written before; the value that stood there."""
    return builder.atomic_rmw("xchg", builder.gep(words, [index]), value, "acq_rel")


@emits("boolean(words, int64, int64, int64)")
def replace(builder, words, index, old, new):
    """Whether words[index] was `old`, and is `new` now: of several threads, for one."""
    place = builder.gep(words, [index])
    return builder.extract_value(builder.cmpxchg(place, old, new, "acq_rel", "acquire"), 1)


let_others = emits("void()")(_pass)
# Sleep until somebody wakes who sleeps at the lock, one of Python's plain ones, which need no GIL: sleep(lock, 1); wake
# who sleeps there, or is about to.
sleep = c_function("PyThread_acquire_lock", "void(int64, int64)")
wake = c_function("PyThread_release_lock", "void(int64)")


@emits("void(int64)")
def keep_off(builder, thread):
    """Keep a thread, by its number in the system, off the core that this one runs on; nothing where it knows no such
    call, or where this thread may run on that core alone."""
    if sys.platform == "linux":
        cores = cgutils.alloca_once(builder, ir.ArrayType(I64, CORES // 64))

        known = library(builder, "sched_getaffinity", I32, I32(0), I64(CORES // 8), cores)
        core = builder.zext(library(builder, "sched_getcpu", I32), I64)
        usable = builder.and_(builder.icmp_signed(">=", known, I32(0)), builder.icmp_unsigned("<", core, I64(CORES)))
        with builder.if_then(usable):
            place = builder.gep(cores, [I64(0), builder.lshr(core, I64(6))])
            bit = builder.shl(I64(1), builder.and_(core, I64(63)))
            builder.store(builder.and_(builder.load(place), builder.not_(bit)), place)
            library(builder, "sched_setaffinity", I32, builder.trunc(thread, I32), I64(CORES // 8), cores)


# Give the GIL away, from code that holds it: release() is what `reacquire` needs, which waits for it again.
release, reacquire = c_function("PyEval_SaveThread", "int64()"), c_function("PyEval_RestoreThread", "void(int64)")
