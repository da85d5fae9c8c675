"""Words, locks, cores and the GIL, as several threads of jitted code share them."""

from __future__ import annotations

import sys

from llvmlite import ir

from ..compile.lazy import cgutils, intrinsic, types
from ..ir.vector import I32, I64, VOID
from .address import words as pointed

SPINS = 1 << 14  # looks at a word, about 10 us of them, before the thread gives its core away
CORES = 1024  # of a machine, as C libraries count them


@intrinsic
def take(typing, words, index):
    """words[index]++ seen by all threads; the value before."""

    def emit(context, builder, signature, args):
        return builder.atomic_rmw("add", builder.gep(args[0], [args[1]]), I64(1), "monotonic")

    return types.int64(pointed(), types.int64), emit


def _atomic(operation):
    @intrinsic
    def change(typing, words, index, value):
        def emit(context, builder, signature, args):
            builder.atomic_rmw(operation, builder.gep(args[0], [args[1]]), args[2], "monotonic")
            return context.get_dummy_value()

        return types.void(pointed(), types.int64, types.int64), emit

    return change


add_to, set_in = _atomic("add"), _atomic("or")  # words[index] += value, |= value, seen by all threads


@intrinsic
def take_from(typing, words, index, back):
    """One of words[index + 1] jobs, each given away once among all threads, or -1: from the front on, or, if `back`,
    from the back, so that in call after call each of two threads finds its own half in its own caches."""

    def emit(context, builder, signature, args):
        words, index, back = args
        back = builder.icmp_signed("!=", back, I64(0))
        mine = builder.select(back, I64(1 << 32), I64(1))
        taken = builder.atomic_rmw("add", builder.gep(words, [index]), mine, "monotonic")
        front, behind = builder.and_(taken, I64((1 << 32) - 1)), builder.lshr(taken, I64(32))
        jobs = builder.load(builder.gep(words, [builder.add(index, I64(1))]))
        job = builder.select(back, builder.sub(builder.sub(jobs, I64(1)), behind), front)
        return builder.select(builder.icmp_signed("<", builder.add(front, behind), jobs), job, I64(-1))

    return types.int64(pointed(), types.int64, types.int64), emit


@intrinsic
def wait(typing, words, index, value):
    """Until words[index] >= value: what other threads wrote before they arrived is then seen."""

    def emit(context, builder, signature, args):
        word, spins = builder.gep(args[0], [args[1]]), cgutils.alloca_once_value(builder, I64(0))
        again, done = builder.append_basic_block("wait"), builder.append_basic_block("seen")
        builder.branch(again)
        builder.position_at_end(again)
        seen = builder.icmp_signed(">=", builder.load_atomic(word, "acquire", 8), args[2])
        spun = builder.add(builder.load(spins), I64(1))
        builder.store(spun, spins)
        with builder.if_then(builder.icmp_signed("==", builder.and_(spun, I64(SPINS - 1)), I64(0)), likely=False):
            _pass(builder)
        builder.cbranch(seen, done, again)
        builder.position_at_end(done)
        return context.get_dummy_value()

    return types.void(pointed(), types.int64, types.int64), emit


def _pass(builder):
    """Let another thread run: the one waited for may have no core."""
    if sys.platform != "win32":
        kind = ir.FunctionType(ir.IntType(32), [])
        builder.call(cgutils.get_or_insert_function(builder.module, kind, "sched_yield"), [])


@intrinsic
def seen(typing, words, index):
    """words[index], and with it all that its writer wrote before."""

    def emit(context, builder, signature, args):
        return builder.load_atomic(builder.gep(args[0], [args[1]]), "acquire", 8)

    return types.int64(pointed(), types.int64), emit


@intrinsic
def exchange(typing, words, index, value):
    """words[index] = value, with all that this thread has written before; the value that stood there."""

    def emit(context, builder, signature, args):
        return builder.atomic_rmw("xchg", builder.gep(args[0], [args[1]]), args[2], "acq_rel")

    return types.int64(pointed(), types.int64, types.int64), emit


@intrinsic
def replace(typing, words, index, old, new):
    """Whether words[index] was `old`, and is `new` now: of several threads, for one."""

    def emit(context, builder, signature, args):
        place = builder.gep(args[0], [args[1]])
        return builder.extract_value(builder.cmpxchg(place, *args[2:], "acq_rel", "acquire"), 1)

    return types.boolean(pointed(), *[types.int64] * 3), emit


@intrinsic
def let_others(typing):
    """Let another thread run on this core, if one waits for it."""

    def emit(context, builder, signature, args):
        _pass(builder)
        return context.get_dummy_value()

    return types.void(), emit


def _with_lock(name, result, *numbers):
    """Emit a call of one of Python's functions of plain locks, which need no GIL."""

    def emit(context, builder, signature, args):
        place = ir.IntType(8).as_pointer()
        kind = ir.FunctionType(result, [place, *[number.type for number in numbers]])
        function = cgutils.get_or_insert_function(builder.module, kind, name)
        builder.call(function, [builder.inttoptr(args[0], place), *numbers])
        return context.get_dummy_value()

    return types.void(types.int64), emit


@intrinsic
def sleep(typing, lock):
    """Until somebody wakes who sleeps at the lock."""
    return _with_lock("PyThread_acquire_lock", ir.IntType(32), ir.IntType(32)(1))


@intrinsic
def wake(typing, lock):
    """Wake who sleeps there, or is about to."""
    return _with_lock("PyThread_release_lock", VOID)


@intrinsic
def keep_off(typing, thread):
    """Keep a thread, by its number in the system, off the core that this one runs on; nothing where it knows no such
    call, or where this thread may run on that core alone."""

    def emit(context, builder, signature, args):
        if sys.platform == "linux":
            cores = cgutils.alloca_once(builder, ir.ArrayType(I64, CORES // 64))

            def of_system(name, *values):
                kind = ir.FunctionType(I32, [value.type for value in values])
                return builder.call(cgutils.get_or_insert_function(builder.module, kind, name), values)

            known = of_system("sched_getaffinity", I32(0), I64(CORES // 8), cores)
            core = builder.zext(of_system("sched_getcpu"), I64)
            usable = builder.and_(
                builder.icmp_signed(">=", known, I32(0)), builder.icmp_unsigned("<", core, I64(CORES))
            )
            with builder.if_then(usable):
                place = builder.gep(cores, [I64(0), builder.lshr(core, I64(6))])
                bit = builder.shl(I64(1), builder.and_(core, I64(63)))
                builder.store(builder.and_(builder.load(place), builder.not_(bit)), place)
                of_system("sched_setaffinity", builder.trunc(args[0], I32), I64(CORES // 8), cores)
        return context.get_dummy_value()

    return types.void(types.int64), emit


@intrinsic
def release(typing):
    """Give the GIL away, from code that holds it; what `reacquire` needs."""

    def emit(context, builder, signature, args):
        kind = ir.FunctionType(ir.IntType(8).as_pointer(), [])
        return builder.ptrtoint(
            builder.call(cgutils.get_or_insert_function(builder.module, kind, "PyEval_SaveThread"), []), I64
        )

    return types.int64(), emit


@intrinsic
def reacquire(typing, state):
    """Wait for the GIL again."""

    def emit(context, builder, signature, args):
        pointer = ir.IntType(8).as_pointer()
        function = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(VOID, [pointer]), "PyEval_RestoreThread"
        )
        builder.call(function, [builder.inttoptr(args[0], pointer)])
        return context.get_dummy_value()

    return types.void(types.int64), emit
